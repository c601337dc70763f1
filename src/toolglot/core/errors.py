"""Every error that toolglot raises, as one tree.

    ToolglotError
    ├── ClientError                    the request is wrong                                  400
    │   ├── ToolSchemaError            a tool definition cannot be used
    │   ├── UsageError                 an option, argument or setting that cannot be used
    │   ├── RequestError               a request that cannot be served
    │   │   └── ToolResultsError       a tool result that lacks a field
    │   ├── AuthenticationError        missing or unknown API key                            401
    │   ├── OriginError                possibly a cross-site request                         403
    │   ├── ForbiddenError             the key's scope or a setting does not allow it        403
    │   ├── UnknownModelError          no upstream serves the model                          404
    │   ├── UnknownPathError           a path that is not served                             404
    │   │   └── MethodError            a method that its path does not take                  405
    │   ├── RequestSizeError           the body exceeds the limit                            413
    │   ├── HeaderSizeError            the header section exceeds the limit                  431
    │   └── RateLimitError             the key has used up its requests per minute           429
    ├── UpstreamError                  the upstream failed                                   502
    │   ├── UpstreamResponseError      it responded with an error            its own status
    │   ├── UnreachableError           no connection to it                                   502
    │   ├── UpstreamTimeoutError       it sent nothing within the timeout                    504
    │   ├── UpstreamEncodingError      its body cannot be decoded                            502
    │   └── AnswerSizeError            its body exceeds the limit                            502
    │       ├── EventSizeError         one event of its stream exceeds the limit
    │       ├── CompressionError       its body is compressed too much
    │       └── AnswerHeadError        the header section of its response exceeds the limit
    ├── StoreError                     the store failed                                      503
    ├── OverloadError                  the gateway is at its limit                           503
    ├── ShutdownError                  the gateway is shutting down                          503
    └── InternalError                  a bug in toolglot                                     500
        └── StuckError                 work that did not end

The branch says who is at fault. Each error has an HTTP status, a stable code for programs and a message that is safe to
show. Text written by a model never raises: what cannot be read is returned as text or as a rejected call.

``error_guide`` has the cause, the next step and an example for each code, and makes the text that clients are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple


class UpstreamPlace(NamedTuple):
    """An upstream as it is named in messages: ``address`` is its base URL without secrets."""

    name: str
    address: str

    def __str__(self) -> str:
        return f"upstream {self.name!r} at {self.address}"


class ToolglotError(Exception):
    """Base of every error that toolglot raises deliberately.

    ``message`` says what failed. ``step`` replaces the next step of the guide, if this error has a more precise one.
    ``explanation``, if it is set, is the whole text for the client.
    """

    status = 500
    code = "internal_error"

    def __init__(self, message: str, *, step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.step = step
        self.explanation = ""


def forget_frames(error: BaseException) -> None:
    """Drop the frames of an error that is dealt with, and of the errors that led to it.

    A frame that refers to its own error is freed only by the garbage collector, and with it the body of the request or
    of the answer.
    """
    following: BaseException | None = error
    while following is not None:
        following.__traceback__ = None
        following = following.__cause__ or following.__context__


class ClientError(ToolglotError):
    """The request is wrong."""

    status = 400
    code = "invalid_request"


class ToolSchemaError(ClientError):
    """A tool definition cannot be used; ``path`` locates the problem inside the definition of ``tool``."""

    code = "invalid_tool_schema"

    def __init__(self, tool: str, path: str, problem: str) -> None:
        super().__init__(f"tool {tool}: {path}: {problem}")
        self.tool = tool
        self.path = path
        self.problem = problem


class UsageError(ClientError):
    """An option, argument or setting that cannot be used. Clients of a gateway never see this error."""

    code = "invalid_usage"


class RequestError(ClientError):
    """A request that cannot be served; ``where`` is the path of the field at fault."""

    def __init__(self, message: str, where: str | None = None) -> None:
        super().__init__(message)
        self.where = where


class ToolResultsError(RequestError):
    """A tool result that lacks a field. Results that do not match the calls are no error: the history is healed."""

    code = "invalid_tool_results"


class AuthenticationError(ClientError):
    """Missing or unknown API key."""

    status = 401
    code = "invalid_api_key"


class OriginError(ClientError):
    """A request that a web page of another origin may have sent."""

    status = 403
    code = "forbidden_origin"


class ForbiddenError(ClientError):
    """The scope of the client's key, or a setting, does not allow the request."""

    status = 403
    code = "forbidden"


class UnknownModelError(ClientError):
    """No upstream serves the model."""

    status = 404
    code = "model_not_found"


class UnknownPathError(ClientError):
    """A path that is not served."""

    status = 404
    code = "unknown_path"


class MethodError(UnknownPathError):
    """A method that its path does not take; ``allowed`` are those that it takes."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, message: str, allowed: Sequence[str]) -> None:
        super().__init__(message)
        self.allowed = tuple(allowed)


class RequestSizeError(ClientError):
    """The request body exceeds the limit."""

    status = 413
    code = "request_too_large"


class HeaderSizeError(ClientError):
    """The header section of a request exceeds the limit."""

    status = 431
    code = "head_too_large"


class RateLimitError(ClientError):
    """The key has used up its requests per minute; ``retry_after`` is in seconds."""

    status = 429
    code = "rate_limit_exceeded"

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class UpstreamError(ToolglotError):
    """The upstream failed; ``place`` names it, once it is known."""

    status = 502
    code = "upstream_failed"
    place: UpstreamPlace | None = None
    entry = ""
    """The code of the entry in the guide, where the code of the error is the upstream's own."""


class UpstreamResponseError(UpstreamError):
    """The upstream responded with an error; status, code and message are passed on."""

    code = "upstream_refused"

    def __init__(self, message: str, status: int, code: str | None = None, kind: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code or self.code
        self.kind = kind
        self.headers: dict[str, str] = {}


_LIMITS: Final = ("rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED")


def read_status(code: str) -> int:
    """The HTTP status that the code of an error within an answer stands for; 0 if it does not name one."""
    if code in _LIMITS:
        return 429
    return int(code) if code.isascii() and code.isdigit() and len(code) == 3 and code[0] in "45" else 0


class UnreachableError(UpstreamError):
    """No connection to the upstream."""

    code = "upstream_unreachable"


class UpstreamTimeoutError(UpstreamError):
    """The upstream sent nothing within the timeout."""

    status = 504
    code = "upstream_timeout"


class UpstreamEncodingError(UpstreamError):
    """The upstream sent a body in a content encoding that was not asked for and cannot be decoded."""

    code = "upstream_encoding"


class AnswerSizeError(UpstreamError):
    """What the upstream sends exceeds a limit; the connection to it is closed. The code names the limit."""

    code = "answer_too_large"


class EventSizeError(AnswerSizeError):
    """One event of the upstream's stream exceeds the limit."""

    code = "event_too_large"


class CompressionError(AnswerSizeError):
    """The upstream's body is compressed more than the limit allows."""

    code = "compression_too_high"


class AnswerHeadError(AnswerSizeError):
    """The header section of the upstream's response exceeds the limit."""

    code = "answer_head_too_large"


class StoreError(ToolglotError):
    """The store failed. Requests that do not need it never see this error."""

    status = 503
    code = "store_unavailable"


class OverloadError(ToolglotError):
    """The gateway is at its concurrency limit; ``retry_after`` is in seconds."""

    status = 503
    code = "overloaded"

    def __init__(self, message: str, retry_after: int, *, step: str = "") -> None:
        super().__init__(message, step=step)
        self.retry_after = retry_after


class ShutdownError(ToolglotError):
    """The gateway is shutting down and the grace period of this answer is over."""

    status = 503
    code = "shutting_down"


class InternalError(ToolglotError):
    """A bug in toolglot."""


class StuckError(InternalError):
    """The conversion of a request or an answer did not end and was interrupted."""

    code = "gateway_stuck"

    def __init__(self, message: str = "The gateway could not convert this in time and gave up.") -> None:
        super().__init__(message)
