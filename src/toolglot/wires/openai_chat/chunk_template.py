"""A fast path for chunks: those of one response nearly always differ in one string only.

Strategy. When a chunk decodes to one delta, its bytes are split around the string of that delta. The split is verified:
with another string in its place the chunk must decode to the same except for that string. From then on, a chunk with
the same prefix and suffix is recognized by comparing bytes, and only the string between is decoded; so are several such
chunks that arrive together. If there is anything but JSON strings between prefixes and suffixes, the chunks are decoded
as usual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from toolglot.core.events import CallArguments, Event, ReasoningDelta, TextDelta
from toolglot.core.json_numbers import encode
from toolglot.wires.openai_chat.response_schema import Function, MessageDelta, ResponseBody, decode
from toolglot.wires.sse import BLANK, DATA, split_framed

PROBE: Final = "\x01"
STRINGS: Final = {
    TextDelta: ("content",),
    ReasoningDelta: ("reasoning_content", "reasoning"),
    CallArguments: ("arguments",),
}
"""The fields that hold the string of a delta."""
Delta = TextDelta | ReasoningDelta | CallArguments
_decode_string = msgspec.json.Decoder(str).decode


class ChunkTemplate:
    """Prefix and suffix of a chunk, and the event that a string between them becomes. ``is_text``: a piece of text."""

    __slots__ = ("_after", "_before", "_emit", "_from", "_to", "is_text")

    def __init__(self, before: bytes, after: bytes, emit: Callable[[str], Event]) -> None:
        self._before = before
        self._after = after
        self._from = len(before)
        self._to = -len(after)
        self._emit = emit
        self.is_text = emit is TextDelta

    def read_string(self, piece: bytes) -> str:
        """The string of one chunk that matches the template; empty if it does not (hot path)."""
        if piece[: self._from] != self._before or piece[self._to :] != self._after:
            return ""
        try:
            return _decode_string(piece[self._from : self._to])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""

    def read(self, pieces: bytes) -> list[Event] | None:
        """Decode one or more chunks that match the template; None if they do not."""
        text = self.read_string(pieces)
        return [self._emit(text)] if text else self._read_several(pieces)

    def _read_several(self, pieces: bytes) -> list[Event] | None:
        """Decode chunks that arrived together."""
        try:
            texts = [_decode_string(each) for each in split_framed(pieces, self._before, self._after) or ()]
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return [self._emit(text) for text in texts] if texts and all(texts) else None


def infer_template(piece: bytes, delta: Delta, emit: Callable[[str], Event]) -> ChunkTemplate | None:
    """Infer the template of a chunk that decoded to ``delta``; None if it is not one event with that string."""
    text = delta.fragment if isinstance(delta, CallArguments) else delta.text
    before, found, after = piece.partition(encode(text))
    if not (found and before.startswith(DATA) and after.endswith(BLANK)) or piece.count(b"\n") != len(BLANK):
        return None
    try:
        chunk, probed = (
            decode(one.removeprefix(DATA).removesuffix(BLANK)) for one in (piece, before + encode(PROBE) + after)
        )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # it was decoded leniently
    holder = _find_holder(probed, delta)
    for name in STRINGS[type(delta)]:
        if holder is not None and getattr(holder, name) == PROBE:
            setattr(holder, name, text)
            return ChunkTemplate(before, after, emit) if probed == chunk else None
    return None


def _find_holder(payload: ResponseBody, delta: Delta) -> MessageDelta | Function | None:
    """The object that holds the string, if the chunk has no other content."""
    message = payload.choices[0].delta if payload.choices and len(payload.choices) == 1 else None
    calls = (message.tool_calls if message else None) or []
    if isinstance(delta, CallArguments):
        return calls[0].function if len(calls) == 1 else None
    return None if calls else message
