"""Errors on Ollama's wire.

{"error": "..."}
"""

from __future__ import annotations

from toolglot.core.errors import RefusedError, ToolglotError
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import parse_object, text_at


def decode_error(status: int, body: bytes) -> RefusedError:
    """The error that an upstream answered with."""
    told = parse_object(body) or {}
    return RefusedError(text_at(told, "error") or f"The upstream answered with status {status}.", status)


def encode_error(error: ToolglotError) -> bytes:
    """An error as the body of a reply."""
    return encode({"error": error.message})
