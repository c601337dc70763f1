"""The Responses wire of OpenAI, ``POST /v1/responses``: what Codex and the newer agents speak."""

from __future__ import annotations

import re

from toolglot.wires.openai_responses.errors import decode_error, encode_error
from toolglot.wires.openai_responses.previous_responses import expand_request
from toolglot.wires.openai_responses.request_decoder import NAME, decode_request
from toolglot.wires.openai_responses.request_encoder import adapt_request, encode_request
from toolglot.wires.openai_responses.response_decoder import StreamDecoder as read_stream
from toolglot.wires.openai_responses.response_decoder import decode_reply, read_reply
from toolglot.wires.openai_responses.response_encoder import StreamEncoder as write_stream
from toolglot.wires.openai_responses.response_encoder import encode_reply, interject
from toolglot.wires.protocol import Marks

ROUTES = ("/v1/responses", "/responses")
STREAM_TYPE = "text/event-stream"
SEALS = True
CARRIES_SEALS = True
TOOL_NAMES = r"[a-zA-Z0-9_-]{1,64}"

_SAYS = re.compile(rb'"response\.(?:output_text|refusal)\.delta"|"response\.output_item\.')


def may_end(event: bytes) -> object:
    """Only events that begin or end a response carry it."""
    return event.find(b'"response"') >= 0 or event.find(b'"error"') >= 0


MARKS = Marks(b'"response.', _SAYS.search, may_end)


def locate(model: str, *, stream: bool) -> str:
    return "/responses"


def authorize(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


__all__ = [
    "CARRIES_SEALS",
    "MARKS",
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
