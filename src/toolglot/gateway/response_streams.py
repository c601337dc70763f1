"""Answers on their way to a client: ``feed(bytes) -> bytes`` for what the upstream says, ``close()`` at its end.

One that has to be read and written anew is a ``TranslatedStream``, which lets pass what needs nothing put right; one
that nobody reads is a ``RelayedStream``."""

from __future__ import annotations

from typing import Protocol

from toolglot.core.errors import ToolglotError
from toolglot.core.events import Event, Failed, Finished
from toolglot.gateway.exchange import Exchange, describe_failure
from toolglot.gateway.passthrough import Passthrough
from toolglot.gateway.relay import RelayedStream
from toolglot.gateway.response_pipeline import bring_back, listen, name_answerer, open_delivery, remember
from toolglot.wires.sse import escape_line_breaks


class Stream(Protocol):
    """An answer that is handed on while it comes. ``over``: it has said that this was all."""

    @property
    def over(self) -> bool: ...

    def feed(self, piece: bytes) -> bytes: ...

    def close(self) -> bytes: ...

    def fail(self, error: ToolglotError) -> bytes: ...

    def heartbeat(self) -> bytes: ...


def open_stream(exchange: Exchange) -> Stream:
    """The answer while it comes."""
    return RelayedStream(exchange) if exchange.untouched else TranslatedStream(exchange)


class TranslatedStream:
    """An answer that is read and, as far as it has to be, written anew."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.writer = exchange.wire.open_encoder(name_answerer(exchange), exchange.asked)
        self.restart()

    def restart(self) -> None:
        """Another answer comes instead; what the client was told of the first one holds."""
        self.reader = self.exchange.upstream_wire.open_decoder(self.exchange.source.new_call_id)
        self.delivery = open_delivery(self.exchange, streamed=True)
        self.take_events = listen(self.exchange, self.delivery)
        self.steps = bring_back(self.exchange, streamed=True)
        self.passage = Passthrough(self.reader, self.delivery) if self.exchange.unchanged else None

    @property
    def over(self) -> bool:
        return self.reader.over or self.delivery.over

    def feed(self, piece: bytes) -> bytes:
        if self.passage or self.steps:
            return self.carry(piece, self.reader.feed(piece))
        return escape_line_breaks(self.writer.write(self.take_events(self.reader.feed(piece))))

    def close(self) -> bytes:
        events = self.reader.close()
        return self.carry(b"", events) if events else b""

    def carry(self, piece: bytes, events: list[Event]) -> bytes:
        """What the client is sent for a piece and the events in it."""
        told, passage = self.deliver(events), self.passage
        if passage is None:
            return escape_line_breaks(self.writer.write(told))
        if self.reader.over:
            remember(self.exchange, self.reader)
        out = passage.take(piece, events, told)
        return escape_line_breaks(self.writer.write(self.end_passage())) if out is None else out

    def end_passage(self) -> list[Event]:
        """From now on the client is told in our own words; what it has not been told yet."""
        passage, self.passage = self.passage, None
        if passage is None:
            return []
        if passage.used:
            self.writer.resume(passage.place)
        return passage.told

    def whole(self, body: bytes) -> bytes:
        """The upstream answered in one piece although a stream was asked for. Raises if that is no answer."""
        told = self.deliver(self.exchange.upstream_wire.decode_response(body, self.exchange.source.new_call_id).events)
        if isinstance(told[-1], Failed):
            raise describe_failure(told[-1])
        return escape_line_breaks(self.writer.write(told))

    def fail(self, error: ToolglotError) -> bytes:
        """What broke behind the end of an answer does not matter."""
        if self.reader.over:
            return b""
        *told, last = self.reader.close()
        return self.write([*told, last if isinstance(last, Finished) else Failed(error.code, error.message)])

    def heartbeat(self) -> bytes:
        interject = self.exchange.wire.interject
        return interject(None, begun=self.passage.used) if interject and self.passage else self.writer.heartbeat()

    def write(self, events: list[Event]) -> bytes:
        told = self.deliver(events)
        return escape_line_breaks(self.writer.write([*self.end_passage(), *told]))

    def deliver(self, events: list[Event]) -> list[Event]:
        told = self.take_events(events)
        for step in self.steps:
            told = step.feed(told)
        return told
