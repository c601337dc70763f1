"""The Messages wire of Anthropic, ``POST /v1/messages``: what Claude and its agents speak."""

from __future__ import annotations

import re

from toolglot.wires.anthropic_messages.errors import decode_error, encode_error
from toolglot.wires.anthropic_messages.ids import NAME
from toolglot.wires.anthropic_messages.request_decoder import answer_count, count_tokens, decode_request
from toolglot.wires.anthropic_messages.request_encoder import adapt_request, encode_request
from toolglot.wires.anthropic_messages.response_decoder import StreamDecoder as read_stream
from toolglot.wires.anthropic_messages.response_decoder import decode_reply, read_reply
from toolglot.wires.anthropic_messages.response_encoder import STOP, encode_reply, interject
from toolglot.wires.anthropic_messages.response_encoder import StreamEncoder as write_stream
from toolglot.wires.protocol import Extra, Marks

ROUTES = ("/v1/messages", "/messages")
HOME = "/v1/messages"
STREAM_TYPE = "text/event-stream"
SEALS = True
CARRIES_SEALS = True
EXTRAS = tuple(Extra("POST", f"{route}/count_tokens", answer_count) for route in ROUTES)
CARRIED = ("anthropic-version", "anthropic-beta")
TOOL_NAMES = r"[a-zA-Z0-9_-]{1,128}"
VERSION = "2023-06-01"

_SAYS = re.compile(rb'"content_block_start"|"text_delta"')


def may_end(event: bytes) -> object:
    return event.find(b'"message_') >= 0 or event.find(b'"error"') >= 0


MARKS = Marks(b'"content_block_', _SAYS.search, may_end, closing=STOP)


def locate(model: str, *, stream: bool) -> str:
    return "/messages"


def authorize(key: str) -> dict[str, str]:
    return {"x-api-key": key, "anthropic-version": VERSION}


__all__ = [
    "CARRIED",
    "CARRIES_SEALS",
    "EXTRAS",
    "HOME",
    "MARKS",
    "NAME",
    "ROUTES",
    "SEALS",
    "STREAM_TYPE",
    "TOOL_NAMES",
    "adapt_request",
    "authorize",
    "count_tokens",
    "decode_error",
    "decode_reply",
    "decode_request",
    "encode_error",
    "encode_reply",
    "encode_request",
    "interject",
    "locate",
    "read_reply",
    "read_stream",
    "write_stream",
]
