"""Errors of the Messages wire.

{"type": "error", "error": {"type": "invalid_request_error", "message": "..."}}
"""

from __future__ import annotations

from toolglot.core.error_guide import explain
from toolglot.core.errors import ToolglotError, UpstreamResponseError, read_status
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import parse_object, text_at

SERVER_KIND = "api_error"
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: SERVER_KIND,
    504: "timeout_error",
    529: "overloaded_error",
}


def describe(payload: object) -> tuple[str, str]:
    """Kind and message of an error, in any of the forms that servers use."""
    inner = payload.get("error", payload) if isinstance(payload, dict) else payload
    if not isinstance(inner, dict):
        return UpstreamResponseError.code, str(inner)
    message = text_at(inner, "message") or text_at(inner, "detail") or str(inner)
    return text_at(inner, "type") or UpstreamResponseError.code, message


def decode_error(status: int, body: bytes) -> UpstreamResponseError:
    """Decode the body of an upstream's error response."""
    payload = parse_object(body)
    if payload is None:
        return UpstreamResponseError(f"The upstream answered with status {status}.", status)
    kind, message = describe(payload)
    return UpstreamResponseError(message, status, kind, kind if kind in KINDS.values() else None)


def encode_error(error: ToolglotError) -> bytes:
    """Encode an error as the body of a response."""
    payload: str = getattr(error, "kind", None) or ""
    kind = KINDS.get(error.status) or (KINDS[400] if error.status < 500 else SERVER_KIND)
    return encode_failure(payload if payload in KINDS.values() else kind, explain(error))


def encode_failure(kind: str, message: str) -> bytes:
    """Encode a failure; unknown kinds become a server error, after which agents retry."""
    known = kind if kind in KINDS.values() else KINDS.get(read_status(kind), SERVER_KIND)
    return encode({"type": "error", "error": {"type": known, "message": message}})
