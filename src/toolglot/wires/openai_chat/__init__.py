"""The chat wire of OpenAI, ``POST /v1/chat/completions``: what most clients and nearly every server speak."""

from __future__ import annotations

import re

from toolglot.wires.openai_chat.errors import decode_error, encode_error
from toolglot.wires.openai_chat.request_decoder import THOUGHT_FIELDS, decode_request
from toolglot.wires.openai_chat.request_encoder import adapt_request, encode_request
from toolglot.wires.openai_chat.response_decoder import StreamDecoder as read_stream
from toolglot.wires.openai_chat.response_decoder import decode_reply, read_reply
from toolglot.wires.openai_chat.response_encoder import StreamEncoder as write_stream
from toolglot.wires.openai_chat.response_encoder import encode_reply
from toolglot.wires.openai_chat.signatures import NAME
from toolglot.wires.protocol import Marks

ROUTES = ("/v1/chat/completions", "/chat/completions")
STREAM_TYPE = "text/event-stream"
TOOL_NAMES = r"[a-zA-Z0-9_-]{1,64}"

_SAYS = re.compile(
    rb'"(?:content|refusal)"\s*:\s*(?:"[^"]|[\[{])|"(?:tool_calls|function_call|audio|images)"\s*:\s*[\[{]'
)
_FINISH = re.compile(rb'"finish_reason"\s*:\s*"')
_may_finish = _FINISH.search


def may_end(event: bytes) -> object:
    return event.find(b"[DONE]") >= 0 or event.find(b'"error"') >= 0 or _may_finish(event)


MARKS = Marks(b'"choices"', _SAYS.search, may_end, closing=b"data: [DONE]\n\n")


def locate(model: str, *, stream: bool) -> str:
    return "/chat/completions"


def authorize(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


__all__ = [
    "MARKS",
    "NAME",
    "ROUTES",
    "STREAM_TYPE",
    "THOUGHT_FIELDS",
    "TOOL_NAMES",
    "adapt_request",
    "authorize",
    "decode_error",
    "decode_reply",
    "decode_request",
    "encode_error",
    "encode_reply",
    "encode_request",
    "locate",
    "read_reply",
    "read_stream",
    "write_stream",
]
