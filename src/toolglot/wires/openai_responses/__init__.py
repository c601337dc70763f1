"""The Responses wire of OpenAI, ``POST /v1/responses``: what Codex and the newer agents speak."""

from __future__ import annotations

from toolglot.wires.openai_responses.asking import encode_request
from toolglot.wires.openai_responses.failures import decode_error, encode_error
from toolglot.wires.openai_responses.recall import expand_request
from toolglot.wires.openai_responses.replies import StreamReader as read_stream
from toolglot.wires.openai_responses.replies import decode_reply, read_reply
from toolglot.wires.openai_responses.requests import NAME, adapt_request, decode_request
from toolglot.wires.openai_responses.telling import StreamWriter as write_stream
from toolglot.wires.openai_responses.telling import encode_reply, interject

ROUTES = ("/v1/responses", "/responses")
STREAM_TYPE = "text/event-stream"
LAST_WORDS = b""
SEALS = True
CARRIES_SEALS = True
TOOL_NAMES = r"[a-zA-Z0-9_-]{1,64}"


def locate(model: str, *, stream: bool) -> str:
    return "/responses"


def authorize(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


__all__ = [
    "CARRIES_SEALS",
    "LAST_WORDS",
    "NAME",
    "ROUTES",
    "SEALS",
    "STREAM_TYPE",
    "TOOL_NAMES",
    "adapt_request",
    "authorize",
    "decode_error",
    "decode_reply",
    "decode_request",
    "encode_error",
    "encode_reply",
    "encode_request",
    "expand_request",
    "interject",
    "locate",
    "read_reply",
    "read_stream",
    "write_stream",
]
