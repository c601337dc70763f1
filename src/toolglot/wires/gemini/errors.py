"""Errors of the Gemini wire.

{"error": {"code": 400, "message": "...", "status": "INVALID_ARGUMENT", "details": [{"reason": "invalid_request"}]}}
"""

from __future__ import annotations

from typing import Any

import msgspec

from toolglot.core.error_guide import explain
from toolglot.core.errors import ToolglotError, UpstreamError, UpstreamResponseError, read_status
from toolglot.core.json_numbers import decode, encode
from toolglot.wires.json_fields import dicts_in, parse_object, text_at

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


def describe(payload: object) -> tuple[str, str]:
    """Code and message of an error. A stream in list form starts with it."""
    if isinstance(payload, list) and payload:
        return describe(payload[0])
    if not isinstance(payload, dict):
        return UpstreamResponseError.code, str(payload)
    inner = payload.get("error")
    if isinstance(inner, (dict, str)):
        return describe(inner)
    reasons = [text_at(detail, "reason") for detail in dicts_in(payload.get("details"))]
    code = next(filter(None, reasons), "") or text_at(payload, "status") or UpstreamResponseError.code
    return code, text_at(payload, "message") or str(payload)


def decode_error(status: int, body: bytes) -> UpstreamResponseError:
    """Decode the body of an upstream's error response."""
    payload = next(iter(parse_list(body)), parse_object(body))
    if payload is None:
        return UpstreamResponseError(f"The upstream answered with status {status}.", status)
    code, message = describe(payload)
    return UpstreamResponseError(message, status, code)


def encode_error(error: ToolglotError) -> bytes:
    """Encode an error as the body of a response."""
    where = getattr(error, "where", None)
    return encode(encode_failure(error.code, explain(error), error.status, {"field": where} if where else {}))


def encode_failure(code: str, message: str, status: int = 0, metadata: dict[str, str] | None = None) -> dict[str, Any]:
    status = status or read_status(code) or UpstreamError.status
    value = STATUSES.get(status) or ("INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")
    reason = {"@type": REASON, "reason": code, "domain": "toolglot", "metadata": metadata or {}}
    return {"error": {"code": status, "message": message, "status": value, "details": [reason]}}


def parse_list(data: bytes) -> list[dict[str, Any]]:
    """Parse a stream in list form; empty if it is not a JSON list."""
    if data.lstrip()[:1] != b"[":
        return []
    try:
        return dicts_in(decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
