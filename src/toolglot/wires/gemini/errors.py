"""Errors on the Gemini wire.

{"error": {"code": 400, "message": "...", "status": "INVALID_ARGUMENT", "details": [{"reason": "invalid_request"}]}}
"""

from __future__ import annotations

from typing import Any

from toolglot.core.errors import ToolglotError, UpstreamError, UpstreamResponseError
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import dicts_in, text_at

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    504: "DEADLINE_EXCEEDED",
}
REASON = "type.googleapis.com/google.rpc.ErrorInfo"


def describe(told: object) -> tuple[str, str]:
    """Code and message of an error. A stream that is written as a list begins with it."""
    if isinstance(told, list) and told:
        return describe(told[0])
    if not isinstance(told, dict):
        return UpstreamResponseError.code, str(told)
    inner = told.get("error")
    if isinstance(inner, (dict, str)):
        return describe(inner)
    reasons = [text_at(detail, "reason") for detail in dicts_in(told.get("details"))]
    code = next(filter(None, reasons), "") or text_at(told, "status") or UpstreamResponseError.code
    return code, text_at(told, "message") or str(told)


def encode_error(error: ToolglotError) -> bytes:
    """An error as the body of a reply."""
    where = getattr(error, "where", None)
    return encode(tell_failure(error.code, error.message, error.status, {"field": where} if where else {}))


def tell_failure(
    code: str, message: str, status: int = UpstreamError.status, metadata: dict[str, str] | None = None
) -> dict[str, Any]:
    word = STATUSES.get(status) or ("INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")
    reason = {"@type": REASON, "reason": code, "domain": "toolglot", "metadata": metadata or {}}
    return {"error": {"code": status, "message": message, "status": word, "details": [reason]}}
