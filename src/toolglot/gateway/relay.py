"""Answers that pass from an upstream to a client of the same wire as they are, and are only watched."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cached_property
from itertools import islice
from typing import Final

from msgspec.structs import replace

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
from toolglot.gateway.exchange import UNFINISHED, Exchange
from toolglot.gateway.outcomes import EMPTY, is_content, redact_failure
from toolglot.gateway.response_pipeline import name_answerer, rehearse, remember
from toolglot.wires.protocol import ResponseDecoder, ResponseEncoder
from toolglot.wires.sse import BLANK_LINES, BOM, complete_event, find_end, join_line_ends, split_events

RECENT: Final = 8
"""How many pieces are kept to read the end of an answer for the record."""
LAST: Final = 3
"""How many events may tell of the end: why it came, what it cost, and that it is here."""
EDGE: Final = 3
"""How many bytes of an end of events may have come before the last of it."""
UNRECORDED: Final = frozenset({Started, TextDelta, ReasoningDelta, CallArguments})
"""Events that a record has nothing to say of."""
NO_FRAME: Final = (b"", b"\0")
TRIES: Final = 4
"""How often in one answer it is tried to tell what its events have in common."""
LINES: Final = "application/x-ndjson"
INVALID: Final = "upstream_invalid"
"""What readers of all wires call an event that cannot be read."""
CUT: Final = "The upstream closed the connection in the middle of its answer."


class RelayedStream:
    """An answer that passes untouched, event by event.

    Strategy. Events are passed on when they are whole, which costs a client nothing: it cannot use half of one. They
    are not decoded, only searched for the wire's ``stream_patterns``: content, until the first of it has
    come, and what may end the answer. Events that have it are read, so that an answer that is cut, empty or broken ends
    with an error, and nothing is passed on behind the end. An event that differs from such as have nothing of it only
    inside of one string is not even searched. When all is over, the beginning and the last pieces tell what the record
    wants to know.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.patterns = exchange.wire.stream_patterns
        self.word = self.patterns.common
        self.search: Callable[[bytes], object] = self.may_matter
        self.over = self.said = self.finished = False
        self.first = b""
        self.recent: deque[bytes] = deque(maxlen=RECENT)
        self.frame = NO_FRAME
        self.tries = TRIES
        self.waiting: list[bytes] = []
        self.edge = b""
        self.lines = exchange.wire.stream_type == LINES
        self.ends = (b"\n",) if self.lines else BLANK_LINES
        self.end = self.ends[0]
        self.reader = self.open_reader()
        exchange.afterwards = self.sum_up
        self.rehearsal = rehearse(exchange, streamed=True)

    def may_matter(self, event: bytes) -> object:
        """Whether an event is worth reading, as long as nothing was said."""
        return self.patterns.may_end(event) or self.patterns.may_have_content(event)

    def open_reader(self) -> ResponseDecoder:
        return self.exchange.wire.open_decoder(self.exchange.source.new_call_id)

    def feed(self, piece: bytes) -> bytes:
        if self.rehearsal is not None:
            self.rehearsal.feed(piece)
        before, behind = self.frame
        if (
            piece.endswith(behind)
            and piece.startswith(before)
            and piece.find(b'"', len(before), -len(behind)) < 0
            and not self.waiting
        ):
            self.recent.append(piece)
            return piece
        return self.check(piece)

    def check(self, piece: bytes) -> bytes:
        """What may pass of a piece that is not like those before it."""
        if self.waiting or not piece.endswith(self.ends):
            piece = self.join(piece)
            if not piece:
                return b""
        if not self.first:
            piece = piece.removeprefix(BOM)
            self.first = piece
        if self.search(piece) or piece.find(self.word) < 0 or piece.find(self.end, 0, -2) >= 0:
            piece = self.look(piece)
        elif self.tries and self.said and len(self.recent) == RECENT:
            self.tries -= 1
            self.frame = find_frame(piece, self.recent[-1])
        self.recent.append(piece)
        return piece

    def join(self, piece: bytes) -> bytes:
        """The events that are whole now. The beginning of the next one waits; its pieces are joined once."""
        self.waiting.append(piece)
        seen = self.edge + piece
        self.edge = seen[-EDGE:]
        if not find_end(seen, self.lines):
            return b""
        joined = b"".join(self.waiting)
        size = find_end(joined, self.lines)
        self.waiting, self.edge = [joined[size:]] if joined[size:] else [], joined[size:][-EDGE:]
        return joined[:size]

    def look(self, events: bytes) -> bytes:
        """What may pass of these events: all up to the end of the answer, or a failure in its place."""
        out: list[bytes] = []
        for event in split_events(events, self.lines):
            if self.search(event):
                if not self.read(event, out):
                    continue
            elif event.find(self.word) < 0 and self.tells_secrets(event):
                continue
            out.append(event)
            if self.over:
                break
        return b"".join(out)

    def read(self, event: bytes, out: list[bytes]) -> bool:
        """Take note of an event that may say or end something. Tells whether it may pass."""
        told = self.reader.feed(join_line_ends(event))
        last = told[-1] if told else None
        if self.finished and self.patterns.finish_is_final and self.adds(event):
            return False
        if not self.said and any(map(is_content, told)):
            self.said, self.search = True, self.patterns.may_end
        if not self.finished and not isinstance(last, Failed):
            last = self.finish(last) or last
        self.over = isinstance(last, Finished)
        if isinstance(last, Failed):
            out.append(self.end_badly(last))
        return not isinstance(last, Failed)

    def tells_secrets(self, event: bytes) -> bool:
        """Whether an event that does not belong to the wire repeats a key: nothing says that it is the model's text."""
        text = event.decode(errors="replace")
        return redact(text, self.exchange.secrets) != text

    def adds(self, event: bytes) -> bool:
        """Whether an event behind a reason to finish goes on with the answer, and does not end it once more."""
        alone = self.open_reader()
        return any(map(is_content, alone.feed(join_line_ends(event)))) and not has_finish(alone)

    def finish(self, last: Event | None) -> Failed | None:
        """Take note of a reason to end, if there is one now; it is no success if nothing was said."""
        ended = last if isinstance(last, Finished) else None
        self.finished = ended is not None or has_finish(self.reader)
        if not self.finished:
            return None
        if self.patterns.finish_is_final:
            self.search = bool
        if self.said:
            return None
        if ended is None:  # what the reason means is told at the end; all that follows is read by another
            finished, self.reader = self.reader.close(), self.open_reader()
            ended = next((one for one in finished if isinstance(one, Finished)), None)
        success = ended is not None and ended.reason in self.exchange.wire.success_reasons
        return Failed("empty_answer", EMPTY) if success else None

    def end_badly(self, failure: Failed) -> bytes:
        """Tell a failure in the client's wire, without secrets."""
        self.over = True
        failure = redact_failure(failure, self.exchange.secrets)
        self.exchange.watch.error = self.exchange.watch.error or failure.kind
        return self.say(failure)

    def close(self) -> bytes:
        """The upstream has closed the connection."""
        return self.stop(Failed(UNFINISHED, CUT))

    def fail(self, error: ToolglotError) -> bytes:
        return self.stop(Failed(error.code, error.message))

    def stop(self, failure: Failed) -> bytes:
        """The last bytes: an event that only lacks its blank line, and the failure unless the answer had its end."""
        if self.rehearsal is not None:
            self.rehearsal.close()
        if self.over:
            return b""
        out = [self.take_rest()]
        if not self.over:
            out.append(self.patterns.terminator if self.finished else self.end_badly(failure))
        self.over = True
        return b"".join(out)

    def take_rest(self) -> bytes:
        """What waits, if it is a whole event without its end."""
        rest, self.waiting = b"".join(self.waiting), []
        event = rest if not rest or rest.endswith(self.ends) else complete_event(rest, self.lines)
        if any(
            isinstance(told, Failed) and told.kind == INVALID for told in self.open_reader().feed(join_line_ends(event))
        ):
            return b""  # it was cut
        self.first = self.first or event
        self.recent.append(event)
        return self.look(event)

    def heartbeat(self) -> bytes:
        return self.say(None)

    @cached_property
    def writer(self) -> ResponseEncoder:
        return self.exchange.wire.open_encoder(name_answerer(self.exchange), self.exchange.asked)

    def say(self, failure: Failed | None) -> bytes:
        """A failure in the words of the wire, or a sign of life."""
        interject = self.exchange.wire.interject
        if interject is not None:
            return interject(failure, begun=bool(self.first))
        return self.writer.heartbeat() if failure is None else self.writer.write([failure])

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
        reader = self.exchange.wire.open_decoder(self.exchange.source.new_call_id)
        told: list[Event] = [event for event in reader.feed(read) if type(event) not in UNRECORDED]
        told += reader.close()
        remember(self.exchange, reader)
        return self.allow_for_gap(told, reader, events, end) if partial else told

    def allow_for_gap(self, told: list[Event], reader: ResponseDecoder, events: list[bytes], end: bytes) -> list[Event]:
        """The same without what only seems so: the arguments of a call whose middle is not known look broken."""
        told = [event for event in told if type(event) is not CallRejected]
        if reader.finish_reason is None:
            return told
        return [self.doubt(event, reader, events, end) if type(event) is Finished else event for event in told]

    def doubt(self, finished: Finished, reader: ResponseDecoder, events: list[bytes], end: bytes) -> Finished:
        """The reason as the upstream told it: a call whose middle is not known only looks as if it had been cut."""
        if not reader.finish_reason:  # it was told before what is known of the end
            return replace(finished, reason="")
        if finished.reason == "length":
            for event in reversed(events):
                alone = self.exchange.wire.open_decoder(self.exchange.source.new_call_id)
                alone.feed(event + end)
                if alone.finish_reason:
                    reasons = [one.reason for one in alone.close() if isinstance(one, Finished)]
                    return replace(finished, reason=reasons[0]) if reasons else finished
        return finished


def has_finish(reader: ResponseDecoder) -> bool:
    """Whether a reason to finish was told, on wires where the end of the answer is told apart."""
    return bool(reader.finish_reason)


def find_frame(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """What two events have in common before and behind the string in which they differ, with its quotes."""
    before = one[: _count_common(one, other)]
    before = before[: before.rfind(b'"') + 1]
    behind = one[len(one) - _count_common(one[::-1], other[::-1]) :]
    behind = behind[behind.find(b'"') :] if b'"' in behind else b""
    long = len(before) + len(behind)
    if not before or not behind or long > min(len(one), len(other)):
        return NO_FRAME
    return NO_FRAME if b'"' in one[len(before) : -len(behind)] else (before, behind)


def _count_common(one: bytes, other: bytes) -> int:
    """How many bytes of their beginnings are the same."""
    size = min(len(one), len(other))
    difference = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (difference.bit_length() + 7) // 8


def _find_last(events: list[bytes], read: bytes, end: bytes) -> list[bytes]:
    """The last events that say something, and what has come of another."""
    events = events[-LAST - 1 :]
    if [event for event in events[:-1] if event[:1] in b":"]:  # which is rare
        events[:-1] = [*islice(filter(_speaks, reversed(read.split(end)[1:-1])), LAST)][::-1]
    return events


def _speaks(event: bytes) -> bool:
    """Whether it is more than a sign of life."""
    return event[:1] not in (b":", b"") or not all(line.startswith(b":") for line in event.splitlines())
