"""Errors on Ollama's wire.

{"error": "..."}
"""

from __future__ import annotations

from toolglot.core.error_guide import explain
from toolglot.core.errors import ToolglotError, UpstreamResponseError
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import parse_object, text_at


def decode_error(status: int, body: bytes) -> UpstreamResponseError:
    """Decode the body of an upstream's error response."""
    payload = parse_object(body) or {}
    return UpstreamResponseError(text_at(payload, "error") or f"The upstream answered with status {status}.", status)


def encode_error(error: ToolglotError) -> bytes:
    """Encode an error as the body of a response."""
    return encode({"error": explain(error)})
