"""Everything toolglot raises, drawn as one tree.

    ToolglotError
    ├── ClientError          the caller handed us something wrong      400
    │   ├── ToolSchemaError  a tool definition cannot be used
    │   ├── UnknownModelError  no model of this name is configured    404
    │   └── UsageError       an option or argument is not one we know
    ├── ModelError           the model's answer cannot be used         502
    ├── UpstreamError        the place that answers failed             502
    └── InternalError        our own fault                             500

Leaves are chosen by who is at fault. Each carries an HTTP status and a message that is safe to show.
The text a model wrote never raises: what cannot be read comes back as text or as a rejected call.
"""

from __future__ import annotations


class ToolglotError(Exception):
    """Base of every error that toolglot raises on purpose."""

    status = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ClientError(ToolglotError):
    """The caller handed us something wrong."""

    status = 400


class ToolSchemaError(ClientError):
    """A tool definition cannot be used; names the tool and the path inside its definition."""

    def __init__(self, tool: str, path: str, problem: str) -> None:
        super().__init__(f"tool {tool}: {path}: {problem}")
        self.tool = tool
        self.path = path
        self.problem = problem


class UnknownModelError(ClientError):
    """No model of this name is configured; names those that are."""

    status = 404
    code = "model_not_found"


class UsageError(ClientError):
    """An option or argument is not one we know."""


class ModelError(ToolglotError):
    """The model's answer cannot be used."""

    status = 502


class UpstreamError(ToolglotError):
    """The place that answers failed."""

    status = 502


class InternalError(ToolglotError):
    """Our own fault."""
