"""Answers on their way to a client: ``feed(bytes) -> bytes`` for what the upstream says, ``close()`` at its end.

One that has to be read and written anew is a ``Translation``, which lets pass what needs nothing put right; one that
nobody reads is a ``Relay``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import cached_property
from itertools import islice
from typing import Protocol, cast

from msgspec.structs import replace

from toolglot.answers import bring_back, listen, name_answerer, open_delivery, rehearse, remember
from toolglot.errors import ToolglotError
from toolglot.events import CallArguments, CallRejected, Event, Failed, Finished, ReasoningDelta, Started, TextDelta
from toolglot.exchange import Exchange, describe_failure
from toolglot.passage import Passage, ResumingWriter, TidyReader
from toolglot.sse import DATA
from toolglot.wire import ReplyReader, ReplyWriter

TAIL = 64
"""How many bytes of a relayed answer tell whether it has ended, or an event of it has."""

RECENT = 8
"""How many pieces of it are kept to read its end."""

LAST = 3
"""How many events may tell of the end: why it came, what it cost, and that it is here."""
UNRECORDED = frozenset({Started, TextDelta, ReasoningDelta, CallArguments})
"""Events that a record has nothing to say of."""
BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")
ENDS: Mapping[str, tuple[bytes, ...]] = {"application/x-ndjson": (b"\n",)}
"""What ends an event, by the type of a stream; blank lines in all others."""


class Stream(Protocol):
    """An answer that is handed on while it comes. ``over``: it has said that this was all."""

    @property
    def over(self) -> bool: ...

    def feed(self, piece: bytes) -> bytes: ...

    def close(self) -> bytes: ...

    def fail(self, error: ToolglotError) -> bytes: ...

    def beat(self) -> bytes: ...


def open_stream(exchange: Exchange) -> Stream:
    """The answer while it comes."""
    return Relay(exchange) if exchange.untouched else Translation(exchange)


class Translation:
    """An answer that is read and, as far as it has to be, written anew."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.writer = exchange.wire.write_stream(name_answerer(exchange), exchange.asked)
        self.restart()

    def restart(self) -> None:
        """Another answer comes instead; what the client was told of the first one holds."""
        self.reader = self.exchange.upstream_wire.read_stream(self.exchange.source.new_call_id)
        self.delivery = open_delivery(self.exchange, streamed=True)
        self.take_events = listen(self.exchange, self.delivery)
        self.steps = bring_back(self.exchange, streamed=True)
        healthy = self.exchange.unchanged and hasattr(self.reader, "tidy") and hasattr(self.writer, "resume")
        self.passage = Passage(cast("TidyReader", self.reader), self.delivery) if healthy else None

    @property
    def over(self) -> bool:
        return self.reader.over or self.delivery.over

    def feed(self, piece: bytes) -> bytes:
        if self.passage or self.steps:
            return self.carry(piece, self.reader.feed(piece))
        return self.writer.write(self.take_events(self.reader.feed(piece)))

    def close(self) -> bytes:
        events = self.reader.close()
        return self.carry(b"", events) if events else b""

    def carry(self, piece: bytes, events: list[Event]) -> bytes:
        """What the client is sent for a piece and the events in it."""
        told, passage = self.deliver(events), self.passage
        if passage is None:
            return self.writer.write(told)
        if self.reader.over:
            remember(self.exchange, self.reader)
        out = passage.take(piece, events, told)
        return self.writer.write(self.end_passage()) if out is None else out

    def end_passage(self) -> list[Event]:
        """From now on the client is told in our own words; what it has not been told yet."""
        passage, self.passage = self.passage, None
        if passage is None:
            return []
        if passage.used:
            cast("ResumingWriter", self.writer).resume(passage.place)
        return passage.told

    def whole(self, body: bytes) -> bytes:
        """The upstream answered in one piece although a stream was asked for. Raises if that is no answer."""
        told = self.deliver(self.exchange.upstream_wire.decode_reply(body, self.exchange.source.new_call_id))
        if isinstance(told[-1], Failed):
            raise describe_failure(told[-1])
        return self.writer.write(told)

    def fail(self, error: ToolglotError) -> bytes:
        """What broke behind the end of an answer does not matter."""
        if self.reader.over:
            return b""
        *told, last = self.reader.close()
        return self.write([*told, last if isinstance(last, Finished) else Failed(error.code, error.message)])

    def beat(self) -> bytes:
        interject = self.exchange.wire.interject
        return interject(None, begun=self.passage.used) if interject and self.passage else self.writer.beat()

    def write(self, events: list[Event]) -> bytes:
        told = self.deliver(events)
        return self.writer.write([*self.end_passage(), *told])

    def deliver(self, events: list[Event]) -> list[Event]:
        told = self.take_events(events)
        for step in self.steps:
            told = step.feed(told)
        return told


class Relay:
    """An answer that passes untouched.

    Only its end is watched: an event that is cut is not followed by another. Nothing is read while it passes; when all
    is over, its beginning and its last pieces tell what the record wants to know.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.last_words = exchange.wire.LAST_WORDS
        self.first = b""
        self.recent: deque[bytes] = deque(maxlen=RECENT)
        self.ends = ENDS.get(exchange.wire.STREAM_TYPE, BLANK_LINES)
        self.last = self.ends[0]
        exchange.afterwards = self.sum_up
        self.rehearsal = rehearse(exchange, streamed=True)

    @property
    def over(self) -> bool:
        # nearly always they are not there at all
        return self.last_words in self.last and self.between_events and self._says_last()

    def _says_last(self) -> bool:
        """Whether this ends with the last words, and they are an event of their own. Text can hold them too."""
        end = self.last.rstrip()
        if not self.last_words or not end.endswith(self.last_words):
            return False
        *before, line = end.splitlines()
        if not before:
            return False  # nobody knows what the line begins with
        if line == self.last_words:
            return line.startswith(DATA)
        reader = self.exchange.wire.read_stream(self.exchange.source.new_call_id)
        return any(isinstance(event, Finished) for event in reader.feed(line + BLANK_LINES[0]))

    def feed(self, piece: bytes) -> bytes:
        self.recent.append(piece)
        self.last = piece[-TAIL:] if len(piece) >= TAIL else (self.last + piece)[-TAIL:]
        if not self.first:
            self.first = piece
        if self.rehearsal is not None:
            self.rehearsal.feed(piece)
        return piece

    def close(self) -> bytes:
        if self.rehearsal is not None:
            self.rehearsal.close()
        return b""

    def fail(self, error: ToolglotError) -> bytes:
        self.close()
        gap = b"" if self.between_events else self.ends[0]
        if self._says_last():
            return gap
        return gap + self.say(Failed(error.code, error.message))

    def beat(self) -> bytes:
        return self.say(None) if self.between_events else b""

    @cached_property
    def writer(self) -> ReplyWriter:
        return self.exchange.wire.write_stream(name_answerer(self.exchange), self.exchange.asked)

    def say(self, failure: Failed | None) -> bytes:
        """A failure in the words of the wire, or a sign of life."""
        interject = self.exchange.wire.interject
        if interject is not None:
            return interject(failure, begun=bool(self.first))
        return self.writer.beat() if failure is None else self.writer.write([failure])

    @property
    def between_events(self) -> bool:
        return self.last.endswith(self.ends)

    def sum_up(self) -> list[Event]:
        """The events of the beginning and of the end; none if not even one whole event is known of the end."""
        read = b"".join(self.recent)
        for end in (*self.ends, b"\n"):  # the last one serves where none is found
            if end in read:
                break
        _, *events = read.rsplit(end, LAST + 2)
        partial = len(events) > LAST + 1 or bool(self.recent and self.first is not self.recent[0])
        if partial:
            events = _find_last(events, read, end)
            if not any(events):
                return []
            first, whole, _rest = self.first.partition(end)
            read = end.join((first, *events) if whole else events)
        reader = self.exchange.wire.read_stream(self.exchange.source.new_call_id)
        told: list[Event] = [event for event in reader.feed(read) if type(event) not in UNRECORDED]
        told += reader.close()
        remember(self.exchange, reader)
        return self.allow_for_gap(told, reader, events, end) if partial else told

    def allow_for_gap(self, told: list[Event], reader: ReplyReader, events: list[bytes], end: bytes) -> list[Event]:
        """The same without what only seems so: the arguments of a call whose middle is not known look broken."""
        told = [event for event in told if type(event) is not CallRejected]
        if not hasattr(reader, "finish"):
            return told
        return [self.doubt(event, reader, events, end) if type(event) is Finished else event for event in told]

    def doubt(self, finished: Finished, reader: ReplyReader, events: list[bytes], end: bytes) -> Finished:
        """The reason as the upstream told it: a call whose middle is not known only looks as if it had been cut."""
        if not getattr(reader, "finish", ""):  # it was told before what is known of the end
            return replace(finished, reason="")
        if finished.reason == "length":
            for event in reversed(events):
                alone = self.exchange.wire.read_stream(self.exchange.source.new_call_id)
                alone.feed(event + end)
                if getattr(alone, "finish", ""):
                    reasons = [one.reason for one in alone.close() if isinstance(one, Finished)]
                    return replace(finished, reason=reasons[0]) if reasons else finished
        return finished


def _find_last(events: list[bytes], read: bytes, end: bytes) -> list[bytes]:
    """The last events that say something, and what has come of another."""
    events = events[-LAST - 1 :]
    if [event for event in events[:-1] if event[:1] in b":"]:  # which is rare
        events[:-1] = [*islice(filter(_speaks, reversed(read.split(end)[1:-1])), LAST)][::-1]
    return events


def _speaks(event: bytes) -> bool:
    """Whether it is more than a sign of life."""
    return event[:1] not in (b":", b"") or not all(line.startswith(b":") for line in event.splitlines())
