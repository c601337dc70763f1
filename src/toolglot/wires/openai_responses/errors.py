"""Errors of the Responses wire.

{"error": {"message": "...", "type": "invalid_request_error", "param": "input[2]", "code": "invalid_tool_results"}}
"""

from __future__ import annotations

import json
from typing import Any

from toolglot.core.error_guide import explain
from toolglot.core.errors import ToolglotError, UpstreamResponseError
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import parse_object, text_at
from toolglot.wires.translation import table_at

SERVER_KIND = "server_error"
KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def describe(payload: object) -> tuple[str, str, str | None]:
    """Code, message and kind of an error, nested or flat."""
    if not isinstance(payload, dict):
        return UpstreamResponseError.code, str(payload), None
    inner = payload.get("error")
    if isinstance(inner, (dict, str)):
        return describe(inner)
    kind = text_at(payload, "type")
    kind = "" if kind == "error" else kind
    message = text_at(payload, "message") or text_at(payload, "detail") or json.dumps(payload)
    return str(payload.get("code") or kind or UpstreamResponseError.code), message, kind or None


def decode_error(status: int, body: bytes) -> UpstreamResponseError:
    """Decode the body of an upstream's error response."""
    payload = parse_object(body)
    if payload is None:
        return UpstreamResponseError(f"The upstream answered with status {status}.", status)
    code, message, kind = describe(payload)
    return UpstreamResponseError(message, status, code, kind)


def encode_error(error: ToolglotError) -> bytes:
    """Encode an error as the body of a response."""
    usual = KINDS.get(error.status) or ("invalid_request_error" if error.status < 500 else SERVER_KIND)
    kind = getattr(error, "kind", None) or usual
    payload = encode_failure(error.code, explain(error), kind)
    return encode({"error": payload | {"param": getattr(error, "where", None)}})


def encode_failure(code: str, message: str, kind: str = SERVER_KIND) -> dict[str, Any]:
    return {"message": message, "type": kind, "param": None, "code": code}


def read_failure(response: dict[str, Any]) -> tuple[str, str]:
    """Code and message of a failed response."""
    payload = table_at(response, "error")
    return text_at(payload, "code") or "upstream_failed", text_at(payload, "message") or "The upstream's answer failed."
