"""Typed schema of the response fields that the decoder needs."""

from __future__ import annotations

from typing import Any

import msgspec

from toolglot.core.json_numbers import parse_float


class Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: Function | None = None
    extra_content: Any = None


class MessageDelta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None
    function_call: Function | None = None
    extra_content: Any = None


class ChoiceDelta(msgspec.Struct):
    delta: MessageDelta | None = None
    message: MessageDelta | None = None
    finish_reason: str | None = None
    index: int | None = None
    usage: Any = None
    error: Any = None


class ResponseBody(msgspec.Struct):
    choices: list[ChoiceDelta] | None = None
    id: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    x_groq: dict[str, Any] | None = None


decode = msgspec.json.Decoder(ResponseBody, float_hook=parse_float).decode
