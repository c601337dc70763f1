"""Who is at fault when a request does not end well: client, gateway, upstream, model or parser.

A request has one fault, the first that applies: the error that ended it, a call of the model that was rejected, text
that looked like a call and could not be read. A request without any of them has ``none``.
"""

from __future__ import annotations

from typing import Final

from toolglot.core.errors import ClientError, ToolglotError, UpstreamError
from toolglot.core.events import Reason

NO_FAULT: Final = "none"
CLIENT: Final = "client"
GATEWAY: Final = "gateway"
UPSTREAM: Final = "upstream"
MODEL: Final = "model"
PARSER: Final = "parser"
FAULTS: Final = (NO_FAULT, CLIENT, GATEWAY, UPSTREAM, MODEL, PARSER)

MODEL_FAILURES: Final = frozenset(
    {
        "refused_call",
        "content_filter",
        "empty_answer",
        "forbidden_call",
        "malformed_call",
        "truncated_call",
        "malformed_function_call",
        "unexpected_tool_call",
        "too_many_tool_calls",
        "malformed_response",
        "parameter_too_large",
    }
)
"""Errors that end an answer because of what the model wrote."""

WRITTEN_WRONG: Final = frozenset(
    reason.value
    for reason in (
        Reason.TRUNCATED,
        Reason.MALFORMED,
        Reason.UNKNOWN_TOOL,
        Reason.MISSING_ARGUMENT,
        Reason.DUPLICATE_ARGUMENT,
        Reason.INVALID_VALUE,
        Reason.FORBIDDEN,
        Reason.FABRICATED_RESULT,
        Reason.LEAKED,
    )
)
"""Reasons of rejected calls that the model is responsible for; the others are choices of the settings."""


def classify_error(error: ToolglotError) -> str:
    """Who is at fault for an error that was raised."""
    return CLIENT if isinstance(error, ClientError) else UPSTREAM if isinstance(error, UpstreamError) else GATEWAY


def classify_failure(kind: str) -> str:
    """Who is at fault for a failure within an answer."""
    return MODEL if kind in MODEL_FAILURES else UPSTREAM
