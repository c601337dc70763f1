"""The fields of a reply on the chat wire that matter, typed."""

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


class ReplyMessage(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None
    extra_content: Any = None
    reasoning_details: Any = None
    annotations: Any = None


class ReplyChoice(msgspec.Struct):
    delta: ReplyMessage | None = None
    message: ReplyMessage | None = None
    finish_reason: str | None = None
    index: int | None = None


class Reply(msgspec.Struct):
    choices: list[ReplyChoice] | None = None
    id: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


decode = msgspec.json.Decoder(Reply, float_hook=parse_float).decode
