"""A native answer that needs nothing put right passes as it is, byte for byte.

Strategy. The answer is read and delivered as any other, and beside the bytes stand the events that a client would be
told of them. As long as those are the events that came, the bytes go on. While the reader holds text back, and at the
end until the upstream says that it is over, the bytes wait; so does the beginning of an event until its end is here,
though not what came in front of it. As soon as anything has to be put right (a call in text, a call without an id, an
end that is not true), the passage is over: what waits is told in our own words, and all that follows, by a writer that
takes up the answer where the bytes left it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolglot.core.events import Event, Started, TextDelta
from toolglot.gateway.delivery import Delivery
from toolglot.wires.protocol import ResponseDecoder


class Passthrough:
    """The bytes of one answer on their way. ``place`` is where those left it that went on."""

    def __init__(self, reader: ResponseDecoder, delivery: Delivery) -> None:
        self.reader = reader
        self.delivery = delivery
        self.used = False
        self.place: Any = None
        self.waiting: list[bytes] = []
        self.told: list[Event] = []
        self.owed = 0

    def take(self, piece: bytes, events: Sequence[Event], told: Sequence[Event]) -> bytes | None:
        """The bytes that may go on, for what came and what is told of it; nothing if the passage is over."""
        reader = self.reader
        same = len(events) == 1 == len(told) and events[0] is told[0]
        fits = reader.tidy and (same or self.compare(events, told))
        if fits and not self.owed and (reader.between or reader.over) and self.delivery.said:
            self.used, self.place = True, reader.place
            if not self.waiting:
                return piece
            piece = b"".join((*self.waiting, piece))
            self.waiting.clear()
            self.told.clear()
            return piece
        self.waiting.append(piece)
        self.told += told
        if not fits or reader.over:
            return None
        return b"" if self.owed or not self.delivery.said else self.divide()

    def divide(self) -> bytes:
        """The whole events of what waits. The beginning of the next one waits on."""
        size = self.reader.measure(self.waiting)
        if not size:
            return b""
        self.used, self.place = True, self.reader.place
        pieces = b"".join(self.waiting)
        self.waiting[:] = (pieces[size:],)
        self.told.clear()
        return pieces[:size]

    def compare(self, events: Sequence[Event], told: Sequence[Event]) -> bool:
        """Whether the client is told what came, though perhaps not all of the text yet."""
        if len(events) == 1 == len(told) and type(events[0]) is TextDelta is type(told[0]):
            self.owed += len(events[0].text) - len(told[0].text)
            return True
        self.owed += _length(events) - _length(told)
        return [one for one in events if type(one) not in (TextDelta, Started)] == [
            one for one in told if type(one) is not TextDelta
        ]


def _length(events: Sequence[Event]) -> int:
    return sum([len(event.text) for event in events if type(event) is TextDelta])
