"""Everything toolglot raises, drawn as one tree.

    ToolglotError
    ├── ClientError             the caller handed us something wrong           400
    │   ├── ToolSchemaError     a tool definition cannot be used
    │   ├── UsageError          an option or argument is not one we know
    │   ├── RequestError        a request that cannot be served as it stands
    │   │   └── ToolResultsError    its tool results do not fit its calls
    │   ├── AccessError         no key, or not one of ours                     401
    │   ├── OriginError         sent by a web page of another site, perhaps    403
    │   ├── UnknownModelError   a model that nobody here answers for           404
    │   ├── UnknownPathError    an address or a method that is not served      404
    │   ├── SizeError           more than the limits allow                     413
    │   ├── HeadError           a head that is larger than that                431
    │   └── RateLimitError      more requests in a minute than the key may     429
    ├── ModelError              the model's answer cannot be used              502
    ├── UpstreamError           the place that answers failed                  502
    │   ├── RefusedError        it answered with an error of its own           its own status
    │   ├── UnreachableError    it could not be reached                        502
    │   └── SilenceError        it said nothing for too long                   504
    ├── OverloadError           no room for the request now                    503
    ├── ShutdownError           the gateway stops                              503
    └── InternalError           our own fault                                  500

Leaves are chosen by who is at fault. Each carries an HTTP status, a code that programs can rely on and a message that
is safe to show. The text a model wrote never raises: what cannot be read comes back as text or as a rejected call.
"""

from __future__ import annotations


class ToolglotError(Exception):
    """Base of every error that toolglot raises on purpose."""

    status = 500
    code = "internal_error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ClientError(ToolglotError):
    """The caller handed us something wrong."""

    status = 400
    code = "invalid_request"


class ToolSchemaError(ClientError):
    """A tool definition cannot be used; names the tool and the path inside its definition."""

    code = "invalid_tool_schema"

    def __init__(self, tool: str, path: str, problem: str) -> None:
        super().__init__(f"tool {tool}: {path}: {problem}")
        self.tool = tool
        self.path = path
        self.problem = problem


class UsageError(ClientError):
    """An option or argument is not one we know."""


class RequestError(ClientError):
    """A request that cannot be served as it stands; ``where`` is the path of the field at fault."""

    def __init__(self, message: str, where: str | None = None) -> None:
        super().__init__(message)
        self.where = where


class ToolResultsError(RequestError):
    """Tool results that do not fit the calls before them."""

    code = "invalid_tool_results"


class AccessError(ClientError):
    """No key, or not one of ours."""

    status = 401
    code = "invalid_api_key"


class OriginError(ClientError):
    """A request that a web page of another site may have caused."""

    status = 403
    code = "forbidden_origin"


class UnknownModelError(ClientError):
    """A model that nobody here answers for."""

    status = 404
    code = "model_not_found"


class UnknownPathError(ClientError):
    """An address or a method that is not served."""

    status = 404
    code = "unknown_path"


class SizeError(ClientError):
    """More than the limits allow."""

    status = 413
    code = "request_too_large"


class HeadError(ClientError):
    """A request whose head is larger than the limits allow."""

    status = 431
    code = "head_too_large"


class RateLimitError(ClientError):
    """More requests in a minute than one key may send; ``retry_after`` counts seconds."""

    status = 429
    code = "rate_limit_exceeded"

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelError(ToolglotError):
    """The model's answer cannot be used."""

    status = 502
    code = "unusable_answer"


class UpstreamError(ToolglotError):
    """The place that answers failed."""

    status = 502
    code = "upstream_failed"


class RefusedError(UpstreamError):
    """The upstream answered with an error of its own: its status is kept, and what it said."""

    code = "upstream_refused"

    def __init__(self, message: str, status: int, code: str | None = None, kind: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code or self.code
        self.kind = kind
        self.headers: dict[str, str] = {}


class UnreachableError(UpstreamError):
    """The upstream could not be reached."""

    code = "upstream_unreachable"


class SilenceError(UpstreamError):
    """The upstream said nothing for too long."""

    status = 504
    code = "upstream_timeout"


class OverloadError(ToolglotError):
    """There is no room for the request now; ``retry_after`` counts seconds."""

    status = 503
    code = "overloaded"

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ShutdownError(ToolglotError):
    """The gateway stops, and the time to finish this answer is over."""

    status = 503
    code = "shutting_down"


class InternalError(ToolglotError):
    """Our own fault."""
