"""Relays a streamed response to a client of the same wire unchanged; its bytes are searched, not decoded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cached_property
from itertools import islice
from typing import Final

from msgspec.structs import replace

from toolglot.core.error_guide import explain
from toolglot.core.errors import ToolglotError
from toolglot.core.events import (
    CallArguments,
    CallRejected,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    Started,
    TextDelta,
)
from toolglot.core.redaction import redact
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.outcomes import EMPTY, INVALID, UNFINISHED, explain_to_client, is_content
from toolglot.gateway.response_pipeline import keep_for_reference, make_identity, open_dry_run
from toolglot.wires.protocol import ResponseDecoder, ResponseEncoder
from toolglot.wires.sse import (
    BLANK_LINES,
    BOM,
    EDGE,
    NDJSON,
    NO_FRAME,
    TRIES,
    complete_event,
    find_end,
    find_frame,
    join_line_ends,
    split_events,
    split_framed,
)

RECENT: Final = 8
"""How many chunks are kept, to decode the end of a response for the record."""
LAST: Final = 3
"""How many events make up the end: finish reason, usage, terminator."""
UNRECORDED: Final = frozenset({Started, TextDelta, ReasoningDelta, CallArguments})
"""Events that the recorder ignores."""
CUT: Final = "The upstream closed the connection in the middle of its answer."


class RelayedStream:
    """A response that passes unchanged, event by event.

    Strategy. Events pass when they are complete, which costs a client nothing: it cannot use half of one. They are not
    decoded, only searched for the wire's ``stream_patterns``: content, until the first has come, and what may end the
    response. Events with a match are decoded, so that a response that is cut, empty or broken ends with an error, and
    nothing passes after the end. An event that differs from one without a match only inside one string (both have the
    same *frame*) is not even searched. The record needs the finish reason, which was decoded; if there was more to
    record, the first and the last chunks are decoded for it at the end.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.patterns = exchange.wire.stream_patterns
        self.common = self.patterns.common
        self.search: Callable[[bytes], object] = self.needs_decoding
        self.over = self.has_content = self.finished = False
        self.ending: list[Event] = []
        """What the last event was decoded into, if the decoder knows the finish reason."""
        self.first = b""
        self.recent: deque[bytes] = deque(maxlen=RECENT)
        self.frame = NO_FRAME
        self.tries = TRIES
        self.waiting: list[bytes] = []
        self.edge = b""
        self.lines = exchange.wire.stream_type == NDJSON
        self.delimiters = (b"\n",) if self.lines else BLANK_LINES
        self.delimiter = self.delimiters[0]
        self.decoder = self.open_decoder()
        exchange.remaining_events = self.read_ends
        self.dry_run = open_dry_run(exchange, streamed=True)

    def needs_decoding(self, event: bytes) -> object:
        """Whether an event must be decoded, as long as there was no content."""
        return self.patterns.may_end(event) or self.patterns.may_have_content(event)

    def open_decoder(self) -> ResponseDecoder:
        return self.exchange.wire.open_decoder(self.exchange.new_call_id)

    def feed(self, chunk: bytes) -> bytes:
        if self.dry_run is not None:
            self.dry_run.feed(chunk)
        before, after = self.frame
        if (
            chunk.endswith(after)
            and chunk.startswith(before)
            and chunk.find(b'"', len(before), -len(after)) < 0
            and not self.waiting
        ):
            self.recent.append(chunk)
            return chunk
        return self.check(chunk)

    feed_large = feed

    def check(self, chunk: bytes) -> bytes:
        """What may pass of a chunk that does not have the known frame."""
        if self.waiting or not chunk.endswith(self.delimiters):
            chunk = self.join(chunk)
            if not chunk:
                return b""
        if self.has_known_frames(chunk):
            self.recent.append(chunk)
            return chunk
        if not self.first:
            chunk = chunk.removeprefix(BOM)
            self.first = chunk
        if chunk.find(self.delimiter, 0, -2) >= 0 or self.search(chunk) or chunk.find(self.common) < 0:
            chunk = self.filter_events(chunk)
        elif self.has_content and len(self.recent) == RECENT:
            self.find_frame(chunk, self.recent[-1])
        self.recent.append(chunk)
        return chunk

    def has_known_frames(self, chunk: bytes) -> bool:
        """Whether all events that arrived together have the known frame."""
        strings = split_framed(chunk, *self.frame)
        return strings is not None and b'"' not in b"".join(strings)

    def find_frame(self, one: bytes, other: bytes) -> None:
        """Find the frame of two events, if they do not have the known one."""
        if self.tries and not one.startswith(self.frame[0]):
            self.tries -= 1
            self.frame = find_frame(one, other)

    def join(self, chunk: bytes) -> bytes:
        """The events that are complete now. The beginning of the next one waits; its chunks are joined once."""
        self.waiting.append(chunk)
        seen = self.edge + chunk
        self.edge = seen[-EDGE:]
        if not find_end(seen, self.lines):
            return b""
        joined = b"".join(self.waiting)
        size = find_end(joined, self.lines)
        self.waiting, self.edge = [joined[size:]] if joined[size:] else [], joined[size:][-EDGE:]
        return joined[:size]

    def filter_events(self, data: bytes) -> bytes:
        """What may pass of these events: all up to the end of the response, or a failure in its place.

        Of a response with content at most the last events need decoding; they and all others are searched in one go.
        """
        out: list[bytes] = []
        (events, end), at = split_events(data, self.lines), 0
        while at < len(events) and not (self.has_content or self.over):
            self.filter_event(events[at] + end, out)
            at += 1
        last = max(at, len(events) - LAST)
        for group in (events[at:last], events[last:]):
            joined = end.join(group) + end
            if group and not self.over and not self.search(joined) and self.has_common(group):
                out.append(joined)
                if self.has_content and len(group) > 1:
                    self.find_frame(group[-1] + end, group[-2] + end)
                continue
            for event in group:
                if self.over:
                    break
                self.filter_event(event + end, out)
        return b"".join(out)

    def has_common(self, events: list[bytes]) -> bool:
        """Whether these are all events of the wire."""
        return not [event for event in events if self.common not in event]

    def filter_event(self, event: bytes, out: list[bytes]) -> None:
        """Append what may pass of an event to ``out``: all of it, nothing, or a failure in its place."""
        if event == self.patterns.terminator and has_finish(self.decoder):
            self.over, self.ending = True, self.decoder.close()
            out.append(event)
        elif self.search(event):
            if self.decode(event, out):
                out.append(event)
        elif self.common in event or not self.has_secrets(event):
            out.append(event)

    def decode(self, event: bytes, out: list[bytes]) -> bool:
        """Decode an event that may have content or end the response. Returns whether it may pass."""
        events = self.decoder.feed(join_line_ends(event) if b"\r" in event else event)
        last = events[-1] if events else None
        if self.finished and self.patterns.finish_is_final and self.adds_content(event):
            return False
        if not self.has_content and any(map(is_content, events)):
            self.has_content, self.search = True, self.patterns.may_end
        if not self.finished and not isinstance(last, Failed):
            last = self.check_finish(last) or last
        if isinstance(last, Failed):
            out.append(self.encode_failure(last))
            return False
        if isinstance(last, Finished):
            self.over, self.ending = True, events if has_finish(self.decoder) else []
        return True

    def has_secrets(self, event: bytes) -> bool:
        """Whether an event that does not belong to the wire contains a secret: it need not be the model's text."""
        text = event.decode(errors="replace")
        return redact(text, self.exchange.secrets) != text

    def adds_content(self, event: bytes) -> bool:
        """Whether an event after a finish reason continues the response, and does not end it once more."""
        alone = self.open_decoder()
        return any(map(is_content, alone.feed(join_line_ends(event)))) and not has_finish(alone)

    def check_finish(self, last: Event | None) -> Failed | None:
        """Note a finish reason, if there is one now; without content it is a failure."""
        ended = last if isinstance(last, Finished) else None
        self.finished = ended is not None or has_finish(self.decoder)
        if not self.finished:
            return None
        if self.patterns.finish_is_final:
            self.search = bool
        if self.has_content:
            return None
        if ended is None:  # the decoder reports the reason when closed; a new one decodes the rest
            finished, self.decoder = self.decoder.close(), self.open_decoder()
            ended = next((one for one in finished if isinstance(one, Finished)), None)
        success = ended is not None and ended.reason in self.exchange.wire.success_reasons
        return Failed("empty_answer", EMPTY) if success else None

    def encode_failure(self, failure: Failed) -> bytes:
        """Encode a failure in the client's wire, without secrets."""
        self.over = True
        failure = explain_to_client(failure, self.exchange.route.upstream.place, self.exchange.secrets)
        self.exchange.recorder.error = self.exchange.recorder.error or failure.kind
        return self.interject(failure)

    def close(self) -> bytes:
        """The upstream closed the connection."""
        return self.end(Failed(UNFINISHED, CUT))

    def fail(self, error: ToolglotError) -> bytes:
        return self.end(Failed(error.code, error.message, explain(error)))

    def end(self, failure: Failed) -> bytes:
        """The last bytes: an event that only lacks its delimiter, and the failure unless the response has ended."""
        if self.dry_run is not None:
            self.dry_run.close()
        out = [] if self.over else [self.take_waiting()]
        if not self.over:
            out.append(self.patterns.terminator if self.finished else self.encode_failure(failure))
        self.over = True
        keep_for_reference(self.exchange, self.decoder)
        return b"".join(out)

    def take_waiting(self) -> bytes:
        """The bytes that wait, if they are a complete event without its delimiter."""
        rest, self.waiting = b"".join(self.waiting), []
        event = rest if not rest or rest.endswith(self.delimiters) else complete_event(rest, self.lines)
        if any(
            isinstance(one, Failed) and one.kind == INVALID for one in self.open_decoder().feed(join_line_ends(event))
        ):
            return b""  # it was cut
        self.first = self.first or event
        self.recent.append(event)
        return self.filter_events(event)

    def heartbeat(self) -> bytes:
        return self.interject(None)

    @cached_property
    def encoder(self) -> ResponseEncoder:
        return self.exchange.wire.open_encoder(make_identity(self.exchange), self.exchange.client_request)

    def interject(self, failure: Failed | None) -> bytes:
        """A failure in the client's wire, or a heartbeat."""
        interject = self.exchange.wire.interject
        if interject is not None:
            return interject(failure, begun=bool(self.first))
        return self.encoder.heartbeat() if failure is None else self.encoder.write([failure])

    def read_ends(self) -> list[Event]:
        """The events of the first and the last chunks; none if no complete event of the end is known."""
        read = b"".join(self.recent)
        if len(self.ending) == 1 and not self.patterns.may_be_recorded(self.first + read):
            return self.ending
        for end in (*self.delimiters, b"\n"):  # the last one is the default
            if end in read:
                break
        _, *raw_events = read.rsplit(end, LAST + 2)
        partial = len(raw_events) > LAST + 1 or bool(self.recent and self.first is not self.recent[0])
        if partial:
            raw_events = _find_last(raw_events, read, end)
            if not any(raw_events):
                return []
            first, whole, _rest = self.first.partition(end)
            read = end.join((first, *raw_events) if whole else raw_events)
        decoder = self.exchange.wire.open_decoder(self.exchange.new_call_id)
        events: list[Event] = [event for event in decoder.feed(read) if type(event) not in UNRECORDED]
        events += decoder.close()
        return self.ignore_gap(events, decoder, raw_events, end) if partial else events

    def ignore_gap(
        self, events: list[Event], decoder: ResponseDecoder, raw_events: list[bytes], end: bytes
    ) -> list[Event]:
        """Remove artefacts of the gap: a call whose middle is missing looks malformed or cut."""
        events = [event for event in events if type(event) is not CallRejected]
        if decoder.finish_reason is None:
            return events
        return [
            self.correct_reason(event, decoder, raw_events, end) if type(event) is Finished else event
            for event in events
        ]

    def correct_reason(
        self, finished: Finished, decoder: ResponseDecoder, raw_events: list[bytes], end: bytes
    ) -> Finished:
        """The finish reason as the upstream gave it: a call whose middle is missing only looks cut."""
        if not decoder.finish_reason:  # it came before the chunks that were kept
            return replace(finished, reason="")
        if finished.reason == "length":
            for event in reversed(raw_events):
                alone = self.exchange.wire.open_decoder(self.exchange.new_call_id)
                alone.feed(event + end)
                if alone.finish_reason:
                    reasons = [one.reason for one in alone.close() if isinstance(one, Finished)]
                    return replace(finished, reason=reasons[0]) if reasons else finished
        return finished


def has_finish(decoder: ResponseDecoder) -> bool:
    """Whether there is a finish reason, on wires that send it before the end of the response."""
    return bool(decoder.finish_reason)


def _find_last(events: list[bytes], read: bytes, end: bytes) -> list[bytes]:
    """The last events that are not comments, and the incomplete one after them."""
    events = events[-LAST - 1 :]
    if [event for event in events[:-1] if event[:1] in b":"]:  # which is rare
        events[:-1] = [*islice(filter(_is_no_comment, reversed(read.split(end)[1:-1])), LAST)][::-1]
    return events


def _is_no_comment(event: bytes) -> bool:
    """Whether an event is more than comment lines, which serve as heartbeats."""
    return event[:1] not in (b":", b"") or not all(line.startswith(b":") for line in event.splitlines())
