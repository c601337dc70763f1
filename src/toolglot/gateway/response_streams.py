"""Streamed responses on their way to the client: ``feed(bytes) -> bytes`` for each chunk, ``close()`` at the end.

A response that is decoded and encoded again is a ``TranslatedStream``, which passes bytes unchanged where nothing needs
correction; one that passes undecoded is a ``RelayedStream``."""

from __future__ import annotations

import logging
from typing import Protocol

from toolglot.core.error_guide import explain
from toolglot.core.errors import ToolglotError
from toolglot.core.events import Event, Failed, Finished, TextDelta, merge_deltas, split_text
from toolglot.gateway.delivery import Delivery
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.outcomes import check_objects, make_explained_error
from toolglot.gateway.passthrough import Passthrough, cut_after_end
from toolglot.gateway.recovery.checked_delivery import CheckedDelivery
from toolglot.gateway.relay import RelayedStream
from toolglot.gateway.response_pipeline import (
    keep_for_reference,
    make_identity,
    observe_upstream,
    open_delivery,
    open_steps,
    settle_answer,
)
from toolglot.gateway.routing import NATIVE, RELAY
from toolglot.wires.protocol import HeadedEncoder, ToolAwareDecoder
from toolglot.wires.sse import NDJSON, escape_line_breaks
from toolglot.wires.vendor_fields import StreamFields

LOG = logging.getLogger("toolglot.gateway")
MERGED_FROM = 128
"""From so many events in one read on, adjacent deltas are merged: they are sent together anyway."""


class Stream(Protocol):
    """A streamed response. ``over``: the upstream has ended it."""

    @property
    def over(self) -> bool: ...

    def feed(self, chunk: bytes) -> bytes: ...

    def feed_large(self, chunk: bytes) -> bytes: ...

    def close(self) -> bytes: ...

    def fail(self, error: ToolglotError) -> bytes: ...

    def heartbeat(self) -> bytes: ...


def open_stream(exchange: Exchange) -> Stream:
    relayed = exchange.route.tool_mode is RELAY and exchange.is_relayed
    return RelayedStream(exchange) if relayed else TranslatedStream(exchange)


class TranslatedStream:
    """A response that is decoded and, as far as necessary, encoded again."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.encoder = encoder = exchange.wire.open_encoder(make_identity(exchange), exchange.client_request)
        self.fields: StreamFields | None = None
        if exchange.same_wire:
            lines = exchange.upstream_wire.stream_type == NDJSON
            keep_constant = encoder.keep_constant if isinstance(encoder, HeadedEncoder) else None
            self.fields = StreamFields(exchange.wire.known_fields, lines, keep_constant)
        self.restart()

    def restart(self) -> None:
        """Another response replaces the first one; what the client has received remains valid."""
        exchange, self.over = self.exchange, False
        if exchange.recovery is not None:
            exchange.recovery.delivery = None
        self.decoder = decoder = exchange.upstream_wire.open_decoder(exchange.new_call_id)
        if isinstance(decoder, ToolAwareDecoder):
            decoder.tools = exchange.tools
        self.delivery = delivery = open_delivery(exchange, streamed=True)
        self.deliver_events = observe_upstream(exchange, delivery)
        self.steps = open_steps(exchange, streamed=True)
        self.passthrough: Passthrough | None = None
        native = exchange.route.tool_mode is NATIVE
        if native and exchange.may_pass_through and isinstance(delivery, Delivery | CheckedDelivery):
            self.passthrough = Passthrough(self.decoder, delivery)
        self.direct = self.find_direct()

    def begin_attempt(self) -> None:
        """The model was asked again: its next answer continues this one."""
        exchange, self.over = self.exchange, False
        self.decoder = decoder = exchange.upstream_wire.open_decoder(exchange.new_call_id)
        if isinstance(decoder, ToolAwareDecoder):
            decoder.tools = exchange.tools
        self.delivery = open_delivery(exchange, streamed=True)
        self.deliver_events = observe_upstream(exchange, self.delivery)
        self.direct = self.find_direct()

    def find_direct(self) -> CheckedDelivery | None:
        """The delivery, if it has a fast path and text goes from the decoder through it to the encoder only."""
        delivery = self.delivery if isinstance(self.delivery, CheckedDelivery) else None
        observed = self.passthrough is not None or self.steps or self.deliver_events != self.delivery.deliver
        return None if observed else delivery

    def settle(self) -> bytes:
        """The model could not be asked again: the end of its first answer."""
        return escape_line_breaks(self.encoder.write(self.run_steps(settle_answer(self.exchange))))

    def feed(self, chunk: bytes) -> bytes:
        """Convert a chunk (hot path)."""
        if self.passthrough is not None:
            return self.feed_passing(self.passthrough, chunk)
        decoder, direct = self.decoder, self.direct
        fast_path = None if direct is None else direct.fast_path
        read_text = None if fast_path is None else decoder.read_text
        if fast_path is not None and read_text is not None and (text := read_text(chunk)):
            written = self.encoder.write(fast_path(text))
        else:
            written = self.encode(self.deliver_chunk(chunk))
        self.over = decoder.over or self.delivery.over
        return written if written.isascii() else escape_line_breaks(written)

    def feed_large(self, chunk: bytes) -> bytes:
        """Convert a large chunk, in a thread. Raises ToolglotError if it holds too much."""
        check_objects(chunk)
        if self.passthrough is not None:
            return self.feed_passing(self.passthrough, chunk, large=True)
        written = self.encode(self.deliver_chunk(chunk, large=True))
        self.over = self.decoder.over or self.delivery.over
        return escape_line_breaks(written)

    def feed_passing(self, passthrough: Passthrough, chunk: bytes, large: bool = False) -> bytes:
        """Convert a chunk that may pass unchanged (hot path)."""
        events = self.decoder.feed(chunk)
        if large:
            events = list(split_text(events))
        delivered = self.deliver_events(events)
        for step in self.steps:
            delivered = step.feed(delivered)
        written = self.pass_through(passthrough, chunk, events, delivered)
        self.over = self.decoder.over or self.delivery.over
        return written

    def deliver_chunk(self, chunk: bytes, large: bool = False) -> list[Event]:
        """Deliver the events of a chunk, and open the fast path for the next one."""
        if self.fields is not None:
            self.fields.read(chunk)
        events = self.decoder.feed(chunk)
        if len(events) >= MERGED_FROM:
            events = list(merge_deltas(events))
        if large:
            events = list(split_text(events))
        direct = self.direct
        if direct is None or direct.fast_path is None:
            delivered = self.deliver_events(events)
        else:
            delivered = self.deliver_fast(direct, events)
        for step in self.steps:
            delivered = step.feed(delivered)
        if direct is not None and self.decoder.read_text is not None:
            direct.open_fast_path()
        return delivered

    def deliver_fast(self, delivery: CheckedDelivery, events: list[Event]) -> list[Event]:
        """Deliver events that arrived together: on the fast path as far as it goes, the rest in the usual way."""
        out: list[Event] = []
        for at, event in enumerate(events):
            if delivery.fast_path is None or type(event) is not TextDelta:
                return out + delivery.deliver(events[at:])
            out += delivery.fast_path(event.text)
        return out

    def close(self) -> bytes:
        events = self.decoder.close()
        written = self.write_last(events) if events else b""
        self.over = self.over or self.decoder.over
        return written

    def write_last(self, events: list[Event]) -> bytes:
        delivered = self.deliver(events)
        if self.passthrough is not None:
            return self.pass_through(self.passthrough, b"", events, delivered)
        return escape_line_breaks(self.encode(delivered))

    def encode(self, delivered: list[Event]) -> bytes:
        """Encode events, with the fields that only their wire knows."""
        written = self.encoder.write(delivered)
        return written if self.fields is None else self.fields.write(written)

    def pass_through(
        self, passthrough: Passthrough, chunk: bytes, events: list[Event], delivered: list[Event]
    ) -> bytes:
        """The bytes of a chunk, or what is delivered of its events if they need correction."""
        if self.decoder.over:
            keep_for_reference(self.exchange, self.decoder)
        out = passthrough.take(chunk, events, delivered)
        if out and self.decoder.over:
            out = cut_after_end(out, self.exchange.wire, self.exchange.new_call_id)
        return escape_line_breaks(self.encode(self.end_passthrough())) if out is None else out

    def end_passthrough(self) -> list[Event]:
        """Encode from now on. Returns the events that were delivered and not sent yet."""
        passthrough, self.passthrough = self.passthrough, None
        if passthrough is None:
            return []
        if self.fields is not None:
            self.fields.read(b"".join(passthrough.waiting))
        if passthrough.used:
            self.encoder.resume(passthrough.position)
        return passthrough.unsent

    def convert_failure(self, error: ToolglotError) -> bytes:
        """Convert an error that may be that of the server's parser. Raises: the error, if it is not."""
        delivered = self.deliver([Failed(error.code, error.message)])
        if delivered and isinstance(delivered[-1], Failed):
            raise error
        return escape_line_breaks(self.encoder.write([*self.end_passthrough(), *delivered]))

    def convert_whole(self, body: bytes) -> bytes:
        """Convert a whole body although a stream was requested. Raises ToolglotError if it is no answer."""
        check_objects(body)
        exchange = self.exchange
        whole = exchange.upstream_wire.decode_response(body, exchange.new_call_id)
        delivered = self.deliver([*split_text(whole.events)])
        if delivered and isinstance(delivered[-1], Failed):
            raise make_explained_error(delivered[-1], exchange.upstream_wire)
        return escape_line_breaks(self.encoder.write(delivered))

    def fail(self, error: ToolglotError) -> bytes:
        """End the response with an error. One after its end is ignored."""
        if self.over:
            return b""
        if self.exchange.recovery is not None:
            self.exchange.recovery.closed = True
        failure = Failed(error.code, error.message, explain(error))
        try:
            delivered = self.deliver_last(failure)
            return escape_line_breaks(self.encoder.write([*self.end_passthrough(), *delivered]))
        except Exception:  # what failed in the middle of an answer may fail again at its end
            LOG.exception("request %s could not be ended as usual", self.exchange.recorder.request_id)
            self.end_passthrough()
            return escape_line_breaks(self.encoder.write([failure]))

    def deliver_last(self, failure: Failed) -> list[Event]:
        """What the upstream has ended, then the failure. If the end of its answer could not be converted, only that."""
        if self.decoder.over:
            return [failure]
        *events, last = self.decoder.close()
        return self.deliver([*events, last if isinstance(last, Finished) else failure])

    def heartbeat(self) -> bytes:
        interject = self.exchange.wire.interject
        if interject and self.passthrough:
            return interject(None, begun=self.passthrough.used)
        return self.encoder.heartbeat()

    def deliver(self, events: list[Event]) -> list[Event]:
        return self.run_steps(self.deliver_events(events))

    def run_steps(self, delivered: list[Event]) -> list[Event]:
        for step in self.steps:
            delivered = step.feed(delivered)
        return delivered
