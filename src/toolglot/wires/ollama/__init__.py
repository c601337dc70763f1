"""Ollama's wire, ``POST /api/chat``: one JSON object per line."""

from __future__ import annotations

import re

from toolglot.wires.ollama.errors import decode_error, encode_error
from toolglot.wires.ollama.models import list_models, show_model, show_version
from toolglot.wires.ollama.request_decoder import FORMAT, NAME, decode_request
from toolglot.wires.ollama.request_encoder import (
    CARRIES,
    OUTPUT_FORMATS,
    adapt_request,
    encode_request,
    enforces_format,
)
from toolglot.wires.ollama.response_decoder import StreamDecoder, decode_response
from toolglot.wires.ollama.response_encoder import KNOWN_FIELDS, KNOWN_REQUEST, StreamEncoder, encode_response
from toolglot.wires.protocol import SUCCESS_REASONS, ExtraEndpoint, StreamPatterns, Wire

_CONTENT = re.compile(rb'"content"\s*:\s*"[^"]|"tool_calls"\s*:\s*\[')
_DONE = re.compile(rb'"done"\s*:\s*true')
_is_done = _DONE.search


def may_end(event: bytes) -> object:
    return event.find(b'"error"') >= 0 or _is_done(event)


def locate(model: str, *, stream: bool) -> str:
    return "/chat"


def authorize(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


WIRE = Wire(
    name=NAME,
    routes=("/api/chat",),
    base_path="/api",
    own_prefix="/api",
    stream_type="application/x-ndjson",
    stream_patterns=StreamPatterns(common=b'"message"', may_have_content=_CONTENT.search, may_end=may_end),
    sends_whole_calls=True,
    success_reasons=(*SUCCESS_REASONS, "content_filter"),  # encoded as stop
    extra_endpoints=(
        ExtraEndpoint("GET", "/api/tags", list_models, needs_models=True),
        ExtraEndpoint("POST", "/api/show", show_model),
        ExtraEndpoint("GET", "/api/version", show_version),
    ),
    carries=CARRIES,
    output_formats=OUTPUT_FORMATS,
    format_fields=(FORMAT,),
    enforces_format=enforces_format,
    known_fields=KNOWN_FIELDS,
    known_request=KNOWN_REQUEST,
    decode_request=decode_request,
    encode_request=encode_request,
    adapt_request=adapt_request,
    locate=locate,
    authorize=authorize,
    open_decoder=StreamDecoder,
    decode_response=decode_response,
    open_encoder=StreamEncoder,
    encode_response=encode_response,
    decode_error=decode_error,
    encode_error=encode_error,
)
