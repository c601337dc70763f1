"""When the pieces of an answer came, for the console; kept only if bodies are stored.

*Strategy.* While the answer arrives, only its events and the times are kept; what they amount to is worked out in the
thread that writes the record. A stored trace holds times and lengths, no text: texts and calls are bodies, which are
redacted as a whole, because a secret may be spread over several pieces. Its size is limited.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

import msgspec

from toolglot.core.events import CallArguments, CallStarted, Event, ReasoningDelta, TextDelta

ESCAPED: Final = 8
"""Bytes that a character may take in a JSON document, and some more."""
TOO_LONG: Final = "(too long)"
MAX_PIECES: Final = 20_000
"""Pieces of each direction; what comes later has no times."""
TEXT: Final = "text"
REASONING: Final = "reasoning"
CALL: Final = "call"


class UpstreamPiece(msgspec.Struct, array_like=True):
    """A piece of the model's own answer: milliseconds since the request began, kind, characters, attempt."""

    time: int
    kind: str
    size: int
    attempt: int


class NativeCall(msgspec.Struct):
    """A native call as the model made it, in an attempt; the arguments may be no JSON."""

    attempt: int
    name: str
    arguments: str = ""


class StoredTrace(msgspec.Struct):
    """A trace as it is stored. ``client`` has the milliseconds and the bytes of each write; ``attempts`` are the times
    at which attempts ended that were followed by another one."""

    upstream: list[UpstreamPiece] = []
    client: list[tuple[int, int]] = []
    attempts: list[int] = []


class Trace(msgspec.Struct):
    """What is noted while an answer arrives. Times are those of the recorder's clock; ``began`` is its first one."""

    began: float
    reasoning_limit: int
    events: list[tuple[float, int, Sequence[Event]]] = []
    """The time, the attempt and the events of each chunk of the upstream; at most ``MAX_PIECES``."""
    writes: list[tuple[float, int]] = []
    """The time and the bytes of each write to the client; at most ``MAX_PIECES``."""
    ends: list[float] = []
    reasoning: list[str] = []
    """The model's reasoning, which is a body of its own."""
    reasoning_length: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.events or self.writes)

    def keep_reasoning(self, text: str) -> None:
        if self.reasoning_length <= self.reasoning_limit:
            self.reasoning.append(text)
            self.reasoning_length += len(text)

    def encode(self) -> bytes:
        """The trace as JSON, without text."""
        began = self.began
        client = [(round((time - began) * 1000), size) for time, size in self.writes]
        attempts = [round((time - began) * 1000) for time in self.ends]
        return msgspec.json.encode(StoredTrace(list(self._join_pieces()), client, attempts))

    def encode_calls(self) -> bytes:
        """The native calls of the model as JSON; empty if there are none. Arguments that are too long are left out, so
        that the document is not cut, and no secret in it."""
        calls: dict[tuple[int, int], tuple[str, list[str]]] = {}
        left = self.reasoning_limit // ESCAPED
        for _, attempt, events in self.events:
            for event in events:
                if isinstance(event, CallStarted) and left > 0:
                    calls[attempt, event.index], left = (event.name[:left], []), left - len(event.name)
                elif isinstance(event, CallArguments) and (attempt, event.index) in calls:
                    calls[attempt, event.index][1].append(event.fragment)
                    left -= len(event.fragment)
                    if left <= 0:
                        calls[attempt, event.index][1][:] = [TOO_LONG]
        found = [NativeCall(attempt, name, "".join(parts)) for (attempt, _), (name, parts) in calls.items()]
        return json.dumps(msgspec.to_builtins(found)).encode() if found else b""

    def _join_pieces(self) -> Iterator[UpstreamPiece]:
        """The pieces; those of one kind within a millisecond are one."""
        last: UpstreamPiece | None = None
        began = self.began
        for seconds, attempt, events in self.events:
            time = round((seconds - began) * 1000)
            for event in events:
                found = MEASURES.get(type(event))
                if found is None or not (size := len(found[1](event))):
                    continue
                if last is not None and last.time == time and last.kind == found[0] and last.attempt == attempt:
                    last.size += size
                else:
                    if last is not None:
                        yield last
                    last = UpstreamPiece(time, found[0], size, attempt)
        if last is not None:
            yield last


MEASURES: Final[Mapping[type[Event], tuple[str, Callable[[Event], str]]]] = {
    TextDelta: (TEXT, attrgetter("text")),
    ReasoningDelta: (REASONING, attrgetter("text")),
    CallStarted: (CALL, attrgetter("name")),
    CallArguments: (CALL, attrgetter("fragment")),
}
"""The kinds of pieces of an answer, and their texts."""
