"""Chunks of one answer are cast in one mould: nearly always they differ in nothing but one string.

Strategy. When a chunk was read that told one delta, its bytes are cut around the string of that delta. The cut is
proved: with another string in its place the chunk must read the same but for that string. From then on a chunk with
these bytes before and behind is known by comparing them, and only the string between is decoded. If that is no JSON
string, or the bytes are others, the chunk is read as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from toolglot.core.events import CallArguments, Event, ReasoningDelta, TextDelta
from toolglot.core.json_numbers import encode
from toolglot.wires.openai_chat.response_schema import Function, Reply, ReplyMessage, decode
from toolglot.wires.sse import BLANK, DATA

PROBE: Final = "\x01"
STRINGS: Final = {
    TextDelta: ("content",),
    ReasoningDelta: ("reasoning_content", "reasoning"),
    CallArguments: ("arguments",),
}
"""The fields that tell a delta."""
Delta = TextDelta | ReasoningDelta | CallArguments
_decode_string = msgspec.json.Decoder(str).decode


class ChunkTemplate:
    """The bytes before and behind the string, and what a string there tells."""

    __slots__ = ("_after", "_before", "_from", "_tell", "_to")

    def __init__(self, before: bytes, after: bytes, tell: Callable[[str], Event]) -> None:
        self._before = before
        self._after = after
        self._from = len(before)
        self._to = -len(after)
        self._tell = tell

    def read(self, piece: bytes) -> list[Event] | None:
        """What the piece tells, if it is a chunk of this mould."""
        if piece[: self._from] != self._before or piece[self._to :] != self._after:
            return None
        try:
            told = _decode_string(piece[self._from : self._to])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return [self._tell(told)] if told else None


def cast(piece: bytes, told: Delta, tell: Callable[[str], Event]) -> ChunkTemplate | None:
    """The mould of a chunk that told this, if it is one event and the string is found in it."""
    text = told.fragment if isinstance(told, CallArguments) else told.text
    before, found, after = piece.partition(encode(text))
    if not (found and before.startswith(DATA) and after.endswith(BLANK)) or piece.count(b"\n") != len(BLANK):
        return None
    try:
        chunk, twin = (
            decode(one.removeprefix(DATA).removesuffix(BLANK)) for one in (piece, before + encode(PROBE) + after)
        )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # it was read with patience
    holder = _find_holder(twin, told)
    for name in STRINGS[type(told)]:
        if holder is not None and getattr(holder, name) == PROBE:
            setattr(holder, name, text)
            return ChunkTemplate(before, after, tell) if twin == chunk else None
    return None


def _find_holder(reply: Reply, told: Delta) -> ReplyMessage | Function | None:
    """What the string stands in, if the chunk says nothing besides."""
    said = reply.choices[0].delta if reply.choices and len(reply.choices) == 1 else None
    calls = (said.tool_calls if said else None) or []
    if isinstance(told, CallArguments):
        return calls[0].function if len(calls) == 1 else None
    return None if calls else said
