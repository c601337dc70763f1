"""Errors of the Chat Completions wire.

{"error": {"message": "...", "type": "invalid_request_error", "param": "messages[2]", "code": "invalid_tool_results"}}
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from toolglot.core.error_guide import explain
from toolglot.core.errors import ToolglotError, UpstreamError, UpstreamResponseError, read_status
from toolglot.core.json_numbers import encode

SERVER_KIND = "server_error"
"""Agents look for this type before they retry."""


KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def _kind_of(status: int) -> str:
    return KINDS.get(status) or ("invalid_request_error" if status < 500 else SERVER_KIND)


def describe(error: object) -> tuple[str, str]:
    """Code and message of an error, in any of the forms that servers use."""
    if not isinstance(error, dict):
        return UpstreamResponseError.code, str(error)
    inner = error.get("error")
    if isinstance(inner, (dict, str)):
        return describe(inner)
    message = error.get("message") or error.get("detail") or error.get("msg")
    code = error.get("code") or error.get("type") or UpstreamResponseError.code
    return str(code), message if isinstance(message, str) else json.dumps(error)


def decode_error(status: int, body: bytes) -> UpstreamResponseError:
    """Decode the body of an upstream's error response."""
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return UpstreamResponseError(f"The upstream answered with status {status}.", status)
    code, message = describe(payload)
    inner = payload.get("error", payload) if isinstance(payload, dict) else {}
    kind = inner.get("type") if isinstance(inner, dict) else None
    return UpstreamResponseError(message, status, code, kind if isinstance(kind, str) else None)


def encode_error(error: ToolglotError) -> bytes:
    """Encode an error as the body of a response."""
    kind = getattr(error, "kind", None) or _kind_of(error.status)
    return encode_failure(error.code, explain(error), kind, getattr(error, "where", None))


def encode_failure(code: str, message: str, kind: str = "", where: str | None = None) -> bytes:
    kind = kind or _kind_of(read_status(code) or UpstreamError.status)
    payload: dict[str, Any] = {"message": message, "type": kind, "param": where, "code": code}
    return encode({"error": payload})
