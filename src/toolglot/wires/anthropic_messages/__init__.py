"""Anthropic's Messages wire, ``POST /v1/messages``: used by Claude and its agents."""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolglot.wires.anthropic_messages.errors import decode_error, encode_error
from toolglot.wires.anthropic_messages.ids import FORMAT, NAME, OLD_FORMAT, REFERENCES, find_refusal
from toolglot.wires.anthropic_messages.request_decoder import answer_count, decode_request
from toolglot.wires.anthropic_messages.request_encoder import (
    CARRIES,
    adapt_request,
    encode_request,
    enforces_format,
)
from toolglot.wires.anthropic_messages.response_decoder import StreamDecoder, decode_response
from toolglot.wires.anthropic_messages.response_encoder import (
    KNOWN_FIELDS,
    KNOWN_REQUEST,
    STOP,
    StreamEncoder,
    encode_response,
    interject,
)
from toolglot.wires.protocol import ExtraEndpoint, StreamPatterns, Wire

ROUTES = ("/v1/messages", "/messages")
VERSION_HEADER, VERSION = "anthropic-version", "2023-06-01"
WITHOUT_SAMPLING = "2026-10-21"
"""The first version that refuses the sampling parameters."""

_CONTENT = re.compile(rb'"content_block_start"|"text_delta"')


def may_end(event: bytes) -> object:
    return event.find(b'"message_') >= 0 or event.find(b'"error"') >= 0 or event.find(b'"file_id"') >= 0


def locate(model: str, *, stream: bool) -> str:
    return "/messages"


def authorize(key: str) -> dict[str, str]:
    return {"x-api-key": key, VERSION_HEADER: VERSION}


def list_refused(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The sampling parameters that an upstream refuses; versions are dates."""
    return ("temperature", "top_p", "top_k") if headers.get(VERSION_HEADER, VERSION) >= WITHOUT_SAMPLING else ()


WIRE = Wire(
    name=NAME,
    routes=ROUTES,
    own_prefix="/v1/messages",
    stream_type="text/event-stream",
    stream_patterns=StreamPatterns(
        common=b'"content_block_', may_have_content=_CONTENT.search, may_end=may_end, terminator=STOP
    ),
    extra_endpoints=tuple(ExtraEndpoint("POST", f"{route}/count_tokens", answer_count) for route in ROUTES),
    references=REFERENCES,
    forwarded_headers=(VERSION_HEADER, "anthropic-beta"),
    list_refused=list_refused,
    models_sign_reasoning=True,
    client_returns_signatures=True,
    tool_name_pattern=r"[a-zA-Z0-9_-]{1,128}",
    carries=CARRIES,
    format_fields=(".".join(FORMAT), OLD_FORMAT),
    enforces_format=enforces_format,
    find_refusal=find_refusal,
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
    interject=interject,
)
