"""When the pieces of an answer came, for the console; kept only if bodies are stored.

*Strategy.* A trace holds times and lengths, no text: the texts are bodies, which are redacted as a whole, because a
secret may be spread over several pieces. Its size is limited: when it is full, further pieces join the last one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from toolglot.core.events import CallArguments, CallStarted, Event, ReasoningDelta, TextDelta

MAX_PIECES: Final = 20_000
"""Pieces of each direction."""
MAX_REASONING: Final = 1 << 20
"""Characters of reasoning that are kept."""
TEXT: Final = "text"
REASONING: Final = "reasoning"
CALL: Final = "call"


class UpstreamPiece(msgspec.Struct, array_like=True):
    """A piece of the model's own answer: milliseconds since the request began, kind, characters, attempt."""

    time: int
    kind: str
    size: int
    attempt: int


class ClientPiece(msgspec.Struct, array_like=True):
    """One write to the client: milliseconds since the request began, bytes."""

    time: int
    size: int


class Trace(msgspec.Struct):
    """``attempts`` are the times, in milliseconds, at which attempts ended that were followed by another one."""

    upstream: list[UpstreamPiece] = []
    client: list[ClientPiece] = []
    attempts: list[int] = []
    reasoning: list[str] = []
    """The model's reasoning, which is a body of its own."""
    reasoning_length: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.upstream or self.client)

    def note_write(self, seconds: float, size: int) -> None:
        """Note one write to the client."""
        if len(self.client) < MAX_PIECES:
            self.client.append(ClientPiece(int(seconds * 1000), size))
        else:
            self.client[-1].size += size

    def note_events(self, seconds: float, events: Iterable[Event]) -> None:
        """Note events of the upstream."""
        time = int(seconds * 1000)
        for event in events:
            match event:
                case TextDelta(text=text):
                    self._note(time, TEXT, len(text))
                case ReasoningDelta(text=text):
                    self._note(time, REASONING, len(text))
                    if self.reasoning_length <= MAX_REASONING:
                        self.reasoning.append(text)
                        self.reasoning_length += len(text)
                case CallStarted(name=name):
                    self._note(time, CALL, len(name))
                case CallArguments(fragment=fragment):
                    self._note(time, CALL, len(fragment))

    def _note(self, time: int, kind: str, size: int) -> None:
        pieces, attempt = self.upstream, len(self.attempts)
        last = pieces[-1] if pieces else None
        same = last is not None and last.kind == kind and last.attempt == attempt
        if last is not None and same and (last.time == time or len(pieces) >= MAX_PIECES):
            last.size += size
        elif len(pieces) < 2 * MAX_PIECES:
            pieces.append(UpstreamPiece(time, kind, size, attempt))

    def end_attempt(self, seconds: float) -> None:
        self.attempts.append(int(seconds * 1000))

    def encode(self) -> bytes:
        """The trace as JSON, without text."""
        return msgspec.json.encode({"upstream": self.upstream, "client": self.client, "attempts": self.attempts})
