"""Passes a native response through byte for byte, as long as nothing in it has to be corrected.

Strategy. The response is decoded and delivered like any other, and the events that came are compared with those that
the client should receive. As long as they are the same, the bytes pass. While the reader holds text back, and at the
end until the upstream says that it is over, the bytes wait; so does the beginning of an event until its end has come,
but not what came before it. Nothing passes after the event that ends the response. As soon as anything has to be
corrected (a call in text, a call without an id, a wrong finish reason), the passthrough ends: what waits is encoded,
and all that follows, by an encoder that resumes where the bytes end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from toolglot.core.events import Event, Failed, Started, TextDelta
from toolglot.gateway.outcomes import INVALID
from toolglot.wires.protocol import NewId, ResponseDecoder, Wire
from toolglot.wires.sse import BLANK_LINES, NDJSON, complete_event, join_line_ends, split_events


class Observed(Protocol):
    """A delivery that says whether it has delivered anything."""

    @property
    def has_output(self) -> bool: ...


class Passthrough:
    """The bytes of one response. ``position`` is where the bytes that passed end; ``unsent`` are the delivered events
    whose bytes wait."""

    def __init__(self, decoder: ResponseDecoder, delivery: Observed) -> None:
        self.decoder = decoder
        self.delivery = delivery
        self.used = False
        self.position: object = None
        self.waiting: list[bytes] = []
        self.unsent: list[Event] = []
        self.held_chars = 0
        """How many characters of text the reader holds back."""

    def take(self, chunk: bytes, events: Sequence[Event], delivered: Sequence[Event]) -> bytes | None:
        """The bytes that may pass, for a chunk, its events and what was delivered of them; None if the passthrough
        ends."""
        decoder = self.decoder
        same = len(events) == 1 == len(delivered) and events[0] is delivered[0]
        fits = decoder.tidy and (same or self.compare(events, delivered))
        if fits and not self.held_chars and (decoder.between or decoder.over) and self.delivery.has_output:
            self.used, self.position = True, decoder.place
            if not self.waiting:
                return chunk
            chunk = b"".join((*self.waiting, chunk))
            self.waiting.clear()
            self.unsent.clear()
            return chunk
        self.waiting.append(chunk)
        self.unsent += delivered
        if not fits or decoder.over:
            return None
        return b"" if self.held_chars or not self.delivery.has_output else self.split_waiting()

    def split_waiting(self) -> bytes:
        """The whole events of the bytes that wait. The beginning of the next event still waits."""
        size = self.decoder.measure(self.waiting)
        if not size:
            return b""
        self.used, self.position = True, self.decoder.place
        joined = b"".join(self.waiting)
        self.waiting[:] = (joined[size:],)
        self.unsent.clear()
        return joined[:size]

    def compare(self, events: Sequence[Event], delivered: Sequence[Event]) -> bool:
        """Whether the client receives what came, although perhaps not all of the text yet."""
        if len(events) == 1 == len(delivered) and type(events[0]) is TextDelta is type(delivered[0]):
            self.held_chars += len(events[0].text) - len(delivered[0].text)
            return True
        self.held_chars += _count_chars(events) - _count_chars(delivered)
        return [one for one in events if type(one) not in (TextDelta, Started)] == [
            one for one in delivered if type(one) is not TextDelta
        ]


def cut_after_end(data: bytes, wire: Wire, new_id: NewId) -> bytes:
    """The last bytes of a response up to the event that ends it. An event that only lacks its delimiter gets it."""
    lines = wire.stream_type == NDJSON
    events, end = split_events(data, lines)
    out: list[bytes] = []
    for event in events:
        whole = event + end
        if not whole.endswith(b"\n" if lines else BLANK_LINES):
            whole = complete_event(whole, lines)
        elif not wire.stream_patterns.may_end(whole):
            out.append(whole)
            continue
        alone = wire.open_decoder(new_id)
        decoded = alone.feed(join_line_ends(whole))
        unreadable = [one for one in decoded if isinstance(one, Failed) and one.kind == INVALID]
        if whole != event + end and (unreadable or not (decoded or alone.over)):
            break  # no event that only lacks its delimiter
        out.append(whole)
        if alone.over:
            break
    return b"".join(out)


def _count_chars(events: Sequence[Event]) -> int:
    return sum([len(event.text) for event in events if type(event) is TextDelta])
