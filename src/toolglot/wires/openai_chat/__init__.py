"""The chat wire of OpenAI, ``POST /v1/chat/completions``: what most clients and nearly every server speak."""

from __future__ import annotations

from toolglot.wires.openai_chat.chunks import StreamWriter as write_stream
from toolglot.wires.openai_chat.chunks import encode_reply
from toolglot.wires.openai_chat.failures import decode_error, encode_error
from toolglot.wires.openai_chat.replies import StreamReader as read_stream
from toolglot.wires.openai_chat.replies import decode_reply
from toolglot.wires.openai_chat.requests import NAME, decode_request, encode_request, parse_body

path = "/chat/completions"

__all__ = [
    "NAME",
    "decode_error",
    "decode_reply",
    "decode_request",
    "encode_error",
    "encode_reply",
    "encode_request",
    "parse_body",
    "path",
    "read_stream",
    "write_stream",
]
