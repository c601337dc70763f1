"""The wire of Ollama, ``POST /api/chat``: one JSON object per line."""

from __future__ import annotations

import re

from toolglot.wires.ollama.errors import decode_error, encode_error
from toolglot.wires.ollama.models import list_models, show_model, tell_version
from toolglot.wires.ollama.request_decoder import NAME, decode_request
from toolglot.wires.ollama.request_encoder import adapt_request, encode_request
from toolglot.wires.ollama.response_decoder import StreamDecoder as read_stream
from toolglot.wires.ollama.response_decoder import decode_reply, read_reply
from toolglot.wires.ollama.response_encoder import StreamEncoder as write_stream
from toolglot.wires.ollama.response_encoder import encode_reply
from toolglot.wires.protocol import SUCCESSES as USUAL_SUCCESSES
from toolglot.wires.protocol import Extra, Marks

ROUTES = ("/api/chat",)
ROOT = "/api"
HOME = "/api"
STREAM_TYPE = "application/x-ndjson"
WHOLE_CALLS = True
SUCCESSES = (*USUAL_SUCCESSES, "content_filter")  # it is told as stop
EXTRAS = (
    Extra("GET", "/api/tags", list_models, needs_models=True),
    Extra("POST", "/api/show", show_model),
    Extra("GET", "/api/version", tell_version),
)

_SAYS = re.compile(rb'"content"\s*:\s*"[^"]|"tool_calls"\s*:\s*\[')
_DONE = re.compile(rb'"done"\s*:\s*true')
_is_done = _DONE.search


def may_end(event: bytes) -> object:
    return event.find(b'"error"') >= 0 or _is_done(event)


MARKS = Marks(b'"message"', _SAYS.search, may_end)


def locate(model: str, *, stream: bool) -> str:
    return "/chat"


def authorize(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


__all__ = [
    "EXTRAS",
    "HOME",
    "MARKS",
    "NAME",
    "ROOT",
    "ROUTES",
    "STREAM_TYPE",
    "SUCCESSES",
    "WHOLE_CALLS",
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
