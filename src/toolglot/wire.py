"""What a wire is: a JSON protocol, both directions of it.

A wire reads requests into a ``Conversation`` and writes them, reads replies into events and writes them. Each room of
``wires/`` is one wire; nothing outside of it knows its words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from toolglot.conversation import Conversation
from toolglot.errors import RefusedError, ToolglotError
from toolglot.events import Event


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a client put it. ``notes`` tell what was mended on the way in."""

    conversation: Conversation
    stream: bool = False
    wants_usage: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who answers, as far as the client is told: the id of this answer, its time and the model's name."""

    id: str
    created: int
    model: str


class ReplyReader(Protocol):
    """Reads a streamed reply, piece by piece."""

    def feed(self, piece: bytes) -> list[Event]: ...

    def close(self) -> list[Event]:
        """The connection is over. An answer that did not end by itself has failed."""
        ...


class ReplyWriter(Protocol):
    """Writes a streamed reply, event by event."""

    def write(self, events: Iterable[Event]) -> bytes: ...

    def beat(self) -> bytes:
        """An event that says nothing and keeps the client waiting."""
        ...


class Wire(Protocol):
    """Both directions of a protocol."""

    path: str

    def decode_request(self, body: bytes) -> Asked: ...

    def encode_request(self, conversation: Conversation, *, stream: bool, wants_usage: bool) -> bytes: ...

    def read_stream(self, new_id: Callable[[], str]) -> ReplyReader: ...

    def decode_reply(self, body: bytes, new_id: Callable[[], str]) -> list[Event]: ...

    def write_stream(self, answerer: Answerer, wants_usage: bool) -> ReplyWriter: ...

    def encode_reply(self, events: Iterable[Event], answerer: Answerer) -> bytes: ...

    def decode_error(self, status: int, body: bytes) -> RefusedError: ...

    def encode_error(self, error: ToolglotError) -> bytes: ...
