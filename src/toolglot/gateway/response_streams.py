"""Streamed responses on their way to the client: ``feed(bytes) -> bytes`` for each chunk, ``close()`` at the end.

A response that is decoded and encoded again is a ``TranslatedStream``, which passes bytes unchanged where nothing needs
correction; one that passes undecoded is a ``RelayedStream``.

If the gateway fails to transform a stream, the rest passes as it came. For that the upstream's events and what became
of them are kept (``Undelivered``) as long as the two differ: while text is held back, or a call is read. Where they are
even again, which is after nearly every read, both are forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Protocol, TypeAlias, TypeVar

from msgspec import Struct

from toolglot.core.error_guide import explain
from toolglot.core.errors import ToolglotError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    ProviderEvent,
    ReasoningDelta,
    ReasoningSigned,
    Started,
    TextDelta,
    merge_deltas,
    split_text,
)
from toolglot.gateway.delivery import NATIVE as UPSTREAM
from toolglot.gateway.delivery import Delivery
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.outcomes import check_objects, make_explained_error
from toolglot.gateway.passthrough import Passthrough, cut_after_end
from toolglot.gateway.recovery.checked_delivery import CheckedDelivery
from toolglot.gateway.recovery.fast_path import FastPath
from toolglot.gateway.relay import RelayedStream
from toolglot.gateway.response_pipeline import (
    keep_for_reference,
    make_identity,
    observe_upstream,
    open_delivery,
    open_plain,
    open_steps,
    settle_answer,
)
from toolglot.gateway.routing import NATIVE, RELAY
from toolglot.wires.protocol import HeadedEncoder, ToolAwareDecoder
from toolglot.wires.sse import NDJSON, escape_line_breaks
from toolglot.wires.vendor_fields import StreamFields

LOG = logging.getLogger("toolglot.gateway")
_PASSING = (CallArguments, ReasoningDelta)
Delta: TypeAlias = TextDelta | ReasoningDelta
Picked = TypeVar("Picked")
CallEvent: TypeAlias = CallStarted | CallArguments | CallEnded | CallRejected
_CALL: tuple[type[CallEvent], ...] = (CallStarted, CallArguments, CallEnded, CallRejected)
_OTHERS: tuple[type[Event], ...] = (Started, ReasoningSigned, Finished, Failed, ProviderEvent)
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
            headed = encoder if isinstance(encoder, HeadedEncoder) else None
            self.fields = StreamFields(exchange.wire.known_fields, lines, headed)
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
        self.undelivered, self.has_failed = Undelivered(), False
        self.read_text: Callable[[bytes], str] | None = None
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
        self.undelivered = Undelivered()
        self.read_text = None
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
        decoder, direct, read_text = self.decoder, self.direct, self.read_text
        fast_path = None if direct is None else direct.fast_path
        if fast_path is not None and read_text is not None and (text := read_text(chunk)):
            try:
                delivered = fast_path(text)
            except Exception as error:
                delivered = self.pass_unread([TextDelta(text)], error)
            else:
                undelivered = self.undelivered
                only = delivered[0] if len(delivered) == 1 and not undelivered.taken else None
                if type(only) is TextDelta and only.text == text:
                    undelivered.offset += len(text)
                else:
                    undelivered.note_text(text, delivered)
            written = self.encoder.write(delivered)
        else:
            written = self.convert(chunk, fast_path)
        self.over = decoder.over or self.delivery.over
        return written if written.isascii() else escape_line_breaks(written)

    def convert(self, chunk: bytes, fast_path: FastPath | None) -> bytes:
        """Convert a chunk with more than text; it may be fields that only its wire knows (hot path)."""
        fields = self.fields
        if fields is None or fast_path is None or self.decoder.over or not (text := fields.read_text(chunk)):
            return self.encode(self.deliver_chunk(chunk))
        taken: list[Event] = [TextDelta(text)]
        try:
            delivered = fast_path(text)
        except Exception as error:
            delivered = self.pass_unread(taken, error)
        else:
            self.undelivered.note(taken, delivered)
        if len(delivered) == 1 and type(delivered[0]) is TextDelta:
            return fields.add_values(self.encoder.write(delivered))
        fields.read(chunk)
        return self.encode(delivered)

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
        delivered = self.deliver(events)
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
        if direct is None:
            return self.deliver(events)
        try:
            delivered = direct.deliver(events) if direct.fast_path is None else self.deliver_fast(direct, events)
        except Exception as error:
            return self.pass_unread(events, error)
        self.undelivered.note(events, delivered)
        fields = self.fields
        self.read_text = self.decoder.read_text if fields is None or fields.is_plain else None
        if self.read_text is not None or (fields is not None and fields.pattern is not None):
            direct.open_fast_path()
        return delivered

    def deliver(self, events: list[Event]) -> list[Event]:
        """What the client receives for these events. If an unexpected exception occurs, it is logged, and the rest of
        the response passes unread."""
        try:
            delivered = self.run_steps(self.deliver_events(events))
        except Exception as error:
            return self.pass_unread(events, error)
        self.undelivered.note(events, delivered)
        return delivered

    def pass_unread(self, events: list[Event], error: Exception) -> list[Event]:
        """After an exception: what the client has not received of the response so far, as it came. Raises the exception
        if it is an error for the client, if a part of a call in the text was sent, or after further attempts."""
        exchange, undelivered, recorder = self.exchange, self.undelivered, self.exchange.recorder
        further = isinstance(self.delivery, CheckedDelivery) and self.delivery.is_further
        if isinstance(error, ToolglotError) or undelivered.is_inside_call or further or self.has_failed:
            raise error
        LOG.exception("the answer of request %s could not be read and passes as it is", recorder.request_id)
        undelivered.taken += events
        rest = undelivered.list_rest(self.delivery.plan.break_character)
        self.delivery = plain = open_plain(self.delivery)
        undelivered.resume(plain)
        self.has_failed, self.direct, self.steps, self.deliver_events = True, None, [], plain.deliver
        if exchange.recovery is not None:
            exchange.recovery.closed, exchange.recovery.defect = True, None
        if self.passthrough is not None:
            self.passthrough.delivery = plain
        return plain.deliver(rest)

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

    def run_steps(self, delivered: list[Event]) -> list[Event]:
        for step in self.steps:
            delivered = step.feed(delivered)
        return delivered


# -- what the client has not received yet ------------------------------------------------------------------------------


class Undelivered(Struct, eq=False):
    """The difference between the events of the upstream and those of the client.

    ``taken`` and ``sent`` are the events since both were even, and ``offset`` is where the first of these stands in the
    upstream's text. ``balance`` is the text that was not sent, ``natives`` the native calls that were not sent whole.
    ``names`` are the calls that the client has, ``open`` those of them that have no end yet, by their numbers.
    ``is_inside_call``: a part of a call was sent that is read in the text, so that no text can follow.
    """

    taken: list[Event] = []
    sent: list[Event] = []
    offset: int = 0
    balance: int = 0
    natives: int = 0
    names: list[str] = []
    open: dict[int, str] = {}
    has_output: bool = False
    has_answer: bool = False
    is_inside_call: bool = False

    def note(self, taken: Sequence[Event], sent: Sequence[Event]) -> None:
        """Note a read (hot path)."""
        if self.has_answer and len(taken) == 1 == len(sent):
            one, other = taken[0], sent[0]
            if one is other and type(one) in _PASSING:
                return
            if type(one) is TextDelta is type(other) and not self.taken and one.text == other.text:
                self.offset += len(one.text)
                return
        self._note(taken, sent)

    def note_text(self, text: str, sent: Sequence[Event]) -> None:
        """The same for a piece of text that was not sent as it is (hot path)."""
        if self.is_inside_call and len(sent) == 1 and type(sent[0]) is CallArguments:
            self.offset += len(text)
            self.balance += len(text)
        else:
            self._note((TextDelta(text),), sent)

    def _note(self, taken: Sequence[Event], sent: Sequence[Event]) -> None:
        self.has_output = self.has_output or bool(sent)
        self.balance += len(_join(taken, TextDelta, ReasoningDelta))
        self.natives += len(_pick(taken, CallStarted))
        self.taken += taken
        for event in sent:
            self._note_sent(event)
        self.is_inside_call = bool(self.open) and not self.natives  # all of the text before the call was sent
        if self.is_inside_call or not (self.balance or self.natives or self.open):
            self.offset += len(_join(self.taken, TextDelta))
            self.taken.clear()
            self.sent.clear()

    def _note_sent(self, event: Event) -> None:
        self.sent.append(event)
        if type(event) is TextDelta or type(event) is ReasoningDelta:
            self.balance -= len(event.text)
            self.has_answer = self.has_answer or (type(event) is TextDelta and not event.text.isspace())
        elif type(event) is CallStarted:
            self.names.append(event.name)
            self.open[event.index] = event.name
        elif type(event) is CallEnded:
            self.open.pop(event.index, None)
            self.balance -= event.span[1] - event.span[0] if event.span is not None else 0
            self.natives -= not event.dialect

    def resume(self, plain: Delivery) -> None:
        """Make a new delivery go on with the calls that the client has."""
        recorder = plain.recorder
        recorder.tools += self.names
        recorder.calls = len(self.names) - len(self.open)
        recorder.open.update(self.open)
        plain.started, plain.has_output, plain.has_answer = len(self.names), self.has_output, self.has_answer
        plain.open_calls = {
            (UPSTREAM, taken.index): sent.index for taken, sent in self.pairs if sent and sent.index in self.open
        }

    @property
    def pairs(self) -> list[tuple[CallStarted, CallStarted | None]]:
        """The native calls, each with the same call as the client has it."""
        read = {event.index for event in _pick(self.sent, CallEnded) if event.dialect}
        sent = [event for event in _pick(self.sent, CallStarted) if event.index not in read]
        taken = _pick(self.taken, CallStarted)
        return [*zip_longest(taken, sent[: len(taken)])]

    def list_rest(self, break_character: str) -> list[Event]:
        """The events of the upstream that the client has not received."""
        thought = _join(self.taken, ReasoningDelta)
        reasoning = thought[len(_join(self.sent, ReasoningDelta)) :]
        text = self._find_text(break_character, (TextDelta,) if thought else (TextDelta, ReasoningDelta))
        rest: list[Event] = [delta for delta in (ReasoningDelta(reasoning), TextDelta(text)) if delta.text]
        for started, has in self.pairs:
            rest += self._list_call(started, has)
        return rest + _pick(self.taken, *_OTHERS)

    def _list_call(self, started: CallStarted, has: CallStarted | None) -> Iterable[Event]:
        """What the client has not received of a native call."""
        mine = [event for event in _pick(self.taken, *_CALL) if event.index == started.index]
        if has is None:
            return mine
        got = [event.fragment for event in _pick(self.sent, CallArguments) if event.index == has.index]
        rest = "".join([event.fragment for event in _pick(mine, CallArguments)])[len("".join(got)) :]
        ended = _pick(mine, CallEnded) if has.index in self.open else []
        return [CallArguments(started.index, rest), *ended] if rest else ended

    def _find_text(self, break_character: str, kinds: tuple[type[Delta], ...]) -> str:
        """The text of the upstream that the client has not received, as events of these kinds."""
        text, at = self._cut_calls(), 0
        text = text.replace(break_character, "") if break_character else text
        for piece in _pick(self.sent, *kinds):
            if words := piece.text.lstrip():  # blanks before a call are sent after it
                found = text.find(words, at)
                if found < 0:
                    return ""  # it was written anew for the client
                at = found + len(words)
            elif text.startswith(piece.text, at):
                at += len(piece.text)
        return text[at:]

    def _cut_calls(self) -> str:
        """The text of the upstream without the calls that were sent."""
        text = _join(self.taken, TextDelta)
        for event in reversed(_pick(self.sent, CallEnded)):
            if event.span is not None:
                start, end = (max(0, place - self.offset) for place in event.span)
                text = text[:start] + text[end:]
        return text


def _pick(events: Iterable[Event], *kinds: type[Picked]) -> list[Picked]:
    return [event for event in events if isinstance(event, kinds)]


def _join(events: Iterable[Event], *kinds: type[Delta]) -> str:
    return "".join([event.text for event in _pick(events, *kinds)])
