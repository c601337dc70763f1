"""An answer for an XML client: its calls become text, and its text stays text.

Strategy. Text streams as it comes, made harmless (``escaper``). A call does not. XML clients run whatever is open when
the stream ends, with the part of the value that has arrived, so a command that was cut would be run and a file that was
cut would be written. Nothing can be taken back that has left, and no mark makes a client drop an open call. So the XML
of a call leaves in one piece when its arguments are complete, checked and read back (``calls``); heartbeats of the wire
keep the connection alive meanwhile.

A message has one call: the client breaks the stream off when it has run it. So the first call that starts is the one
that is sent. Later ones are dropped, and all that stands behind them. Text behind the first one is sent at the end of
the stream if the call stands as the model wrote it, and dropped if the call was rendered. What is dropped is told to
the record. A call that cannot be sent is told in words, with its arguments, and no later one is run in its place: it
may have needed the first. A message is never empty, because clients take that for a failure of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from toolglot.clients.xml.call_renderer import RenderedCall, render_call
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.parsers import utf16_length
from toolglot.clients.xml.profile import JS_WHITESPACE
from toolglot.clients.xml.text_escaping import TextEscaper, escape_text
from toolglot.clients.xml.verbatim_calls import SENT_AS_WRITTEN, find_call, has_value, keep_call, keep_rejected
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Defect,
    Event,
    Failed,
    Finished,
    Reason,
    Span,
    TextDelta,
)


class Outcome(StrEnum):
    """What became of a call."""

    SENT = "sent"
    FLAGGED = "flagged"
    """Sent, with a difference that is allowed and told."""
    REFUSED = "refused"
    TRUNCATED = "truncated"
    DROPPED = "dropped"
    """Not the first of its message."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call of the model and what became of it."""

    tool: str
    outcome: Outcome
    notes: tuple[str, ...] = ()
    defects: tuple[Defect, ...] = ()

    def __str__(self) -> str:
        return "; ".join([f"{self.tool} {self.outcome}", *self.notes, *map(str, self.defects)])


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as the model wrote it, the blanks before it and the mark of a fence, and where it ends in the answer. None
    for what is before it: the call stands on a line of its own."""

    text: str
    before: str | None
    end: int


class AnswerText(Protocol):
    """The answer as the model wrote it."""

    def extract_call(self, span: Span) -> WrittenCall:
        """A call that stands there."""
        ...

    def extract_text(self, start: int, end: int | None) -> str:
        """What stands there, as far as it has come."""
        ...


@dataclass(slots=True)
class _OpenCall:
    index: int
    id: str
    name: str
    fragments: list[str] = field(default_factory=list)


OWN_DIALECT: Final = "roo_xml"
"""What the reader calls the XML of these clients."""
_EMPTY_ANSWER = "(The model gave no answer.)"
_TRUNCATED = "(The call of {tool} was cut off before it was complete, and was not made.)"
_REFUSED = "(The call of {tool} was not made: {reasons}. Its arguments were:)\n\n{arguments}"

MAX_SHOWN_ARGUMENTS: Final = 8000
"""So many characters of the arguments of a refused call are told. Clients take a minute for half a million."""
_OMITTED = "\n\n({count} characters were left out here.)\n\n"


def shorten_arguments(arguments: str) -> str:
    """The arguments of a refused call as they are told: all of them, or beginning and end with a note between them."""
    count = len(arguments) - MAX_SHOWN_ARGUMENTS
    if count <= 0:
        return arguments
    half = MAX_SHOWN_ARGUMENTS // 2
    return arguments[:half] + _OMITTED.format(count=count) + arguments[-half:]


class ResponseRenderer:
    """One answer on its way to an XML client. ``reports`` says what became of its calls."""

    def __init__(
        self,
        client: XmlClient,
        model: str,
        *,
        carry_ids: bool = False,
        servers: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        """``model`` is the id that the client asked for: it decides what the client un-escapes. ``carry_ids`` puts the
        call's id into the XML, in a tag that clients skip and send back with the history."""
        self.client = client
        self.model = model
        self.carry_ids = carry_ids
        self.servers = servers
        self.reports: list[CallReport] = []
        self.answer: AnswerText | None = None
        """What the model wrote. Calls in this client's own XML are looked up in it."""
        self.escaper = TextEscaper(client)
        self.first: int | None = None
        self.open: _OpenCall | None = None
        self.sent = False
        self.has_text = False
        self.size = 0
        self.ends_line = True
        self.blanks = ""
        """Those at the end of what was said so far."""
        self.dropped_length = 0
        self.verbatim: WrittenCall | None = None
        """The call that was sent, if it stands as the model wrote it."""
        self.next_call_at: int | None = None
        """Where the call behind it begins, which is not sent."""
        self.uncertain: WrittenCall | None = None
        """A call that lacks something. It may be a mention of the tool: words behind it on its line decide."""
        self.has_mention = False
        """Whether there was such a mention."""

    @property
    def notes(self) -> list[str]:
        told = [str(record) for record in self.reports if record.outcome is not Outcome.SENT]
        return told + (
            [f"{self.dropped_length} characters behind the call were dropped"] if self.dropped_length else []
        )

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """What the client is told of these events."""
        out: list[Event] = []
        for event in events:
            match event:
                case TextDelta(text=text):
                    self._say(text, out)
                case CallStarted():
                    self._settle(out, self.first is not None)
                    self._start(event)
                case CallArguments(index=index, fragment=fragment):
                    if self.open is not None and self.open.index == index:
                        self.open.fragments.append(fragment)
                case CallEnded(index=index):
                    if self.open is not None and self.open.index == index:
                        self._end(self.open, event, out)
                    else:
                        self._leave_out(event.span)
                case CallRejected():
                    self._reject(event, out)
                case Finished():
                    self._finish(event, out)
                case Failed():
                    self._settle(out)
                    self._put(self.escaper.close(), out)
                    out.append(event)
                case _:
                    out.append(event)
        return out

    def _say(self, text: str, out: list[Event]) -> None:
        if self.uncertain is not None and not text.strip(JS_WHITESPACE):
            return
        if self.uncertain is not None:
            self._settle(out)
            text = text.lstrip(JS_WHITESPACE)
        if not self.sent:
            self._put(self.escaper.feed(text), out)
        elif text.strip(JS_WHITESPACE) and (self.verbatim is None or self.next_call_at is not None):
            self.dropped_length += len(text)

    def _cite(self, start: int, end: int | None) -> str:
        return self.answer.extract_text(start, end) if self.answer is not None else ""

    def _blanks_behind(self, call: WrittenCall) -> str:
        """The blanks behind the doubtful call, which the reader takes for nobody's."""
        behind = self._cite(call.end, None)
        return behind[: len(behind) - len(behind.lstrip(JS_WHITESPACE))]

    def _has_own_lines(self, call: WrittenCall) -> bool:
        """Whether the doubtful call gives a value, and shares its lines with no words."""
        first = not (self.has_text or self.escaper.held) or "\n" in (call.before or self.blanks)
        return first and "\n" in self._blanks_behind(call) and has_value(self.client, self.model, call.text)

    def _leave_out(self, span: Span | None) -> None:
        """A further call, or what the model made of it, is not sent, nor what stands behind it."""
        if (self.sent or self.uncertain is not None) and self.next_call_at is None and span is not None:
            self.next_call_at = span[0]

    def _settle(self, out: list[Event], last: bool = False) -> None:
        """Send the doubtful call as it was written if it has lines of its own or is the ``last`` that may be made; else
        it is text."""
        call, self.uncertain = self.uncertain, None
        if call is None:
            return
        kept = keep_rejected(self.client, self.model, call.text, last or self._has_own_lines(call))
        if kept is not None:
            self._put(self.escaper.close(), out)
            self._send(kept, "", call, out)
        else:
            self.has_mention = True
            before = (call.before or "").removeprefix(self.blanks)
            self._say(before + call.text + self._blanks_behind(call), out)

    def _put(self, text: str, out: list[Event]) -> None:
        if text:
            self.has_text = self.has_text or bool(text.strip(JS_WHITESPACE))
            self.size += utf16_length(text)
            self.ends_line = text.endswith("\n")
            words = text.rstrip()
            self.blanks = text[len(words) :] if words else self.blanks + text
            out.append(TextDelta(text))

    def _start(self, event: CallStarted) -> None:
        if self.first is None:
            self.first = event.index
            self.open = _OpenCall(event.index, event.id, event.name)
        else:
            self.reports.append(CallReport(event.name, Outcome.DROPPED, ("a message has one call",)))

    def _end(self, call: _OpenCall, event: CallEnded, out: list[Event]) -> None:
        self.open = None
        arguments = "".join(call.fragments)
        call_id = call.id if self.carry_ids else ""
        written = None
        if event.dialect == OWN_DIALECT and event.span is not None and self.answer is not None:
            written = self.answer.extract_call(event.span)
        rendered = keep_call(self.client, self.model, call.name, arguments, written.text) if written else None
        rendered = rendered or render_call(self.client, self.model, call.name, arguments, call_id, self.servers)
        if written and SENT_AS_WRITTEN in rendered.notes and not keep_rejected(self.client, self.model, written.text):
            self.uncertain = written
        else:
            stands = written is not None and written.text.startswith(rendered.text)
            self._send(rendered, arguments, written if stands else None, out)

    def _send(self, rendered: RenderedCall, arguments: str, written: WrittenCall | None, out: list[Event]) -> None:
        """Put the call into the message, or tell why it is not made. ``written`` if it stands as the model wrote it."""
        self._put(self.escaper.close(), out)
        most = self.client.limits.message
        if rendered.text and most and self.size + utf16_length(rendered.text) >= most:
            rendered = RenderedCall(rendered.tool, "", (_TOO_LONG,), rendered.notes)
        if not rendered.text:
            self._refuse(rendered, arguments, out)
            return
        outcome = Outcome.FLAGGED if rendered.notes else Outcome.SENT
        self.reports.append(CallReport(rendered.tool, outcome, rendered.notes))
        before = written.before if written is not None else None
        self.verbatim = written if before is not None else None
        if before is not None and before.startswith(self.blanks):
            self._put(before.removeprefix(self.blanks) + rendered.text, out)
        else:
            self._put_apart(rendered.text, out)
        self.sent = True

    def _refuse(self, rendered: RenderedCall, arguments: str, out: list[Event]) -> None:
        self.reports.append(CallReport(rendered.tool, Outcome.REFUSED, rendered.notes, rendered.defects))
        reasons = "; ".join(map(str, rendered.defects))
        told = _REFUSED.format(tool=rendered.tool, reasons=reasons, arguments=shorten_arguments(arguments))
        self._put_apart(escape_text(self.client, told), out)
        self.ends_line = False

    def _put_apart(self, text: str, out: list[Event]) -> None:
        """On a line of its own."""
        self._put(text if self.ends_line else f"\n\n{text}", out)

    def _put_behind(self, text: str, out: list[Event]) -> None:
        """What the model wrote behind the call that was sent as it stands, if the client reads so much."""
        most = self.client.limits.message
        if most and self.size + utf16_length(text) >= most:
            self.dropped_length += len(text)
        else:
            self._put(escape_text(self.client, text), out)

    def _reject(self, event: CallRejected, out: list[Event]) -> None:
        """Text that set out to be a call and was not: it is text."""
        if event.index is not None and self.open is not None and self.open.index == event.index:
            self.open = None
        if event.reason in (Reason.EXTRA_CALL, Reason.FABRICATED_RESULT):
            self._leave_out(event.span)
            return
        own = event.dialect == OWN_DIALECT and event.reason is not Reason.TRUNCATED
        self._settle(out, self.first is not None)
        if self.sent and own and keep_rejected(self.client, self.model, event.raw, last=True):
            self._leave_out(event.span)
        if not own or self.sent or self.first not in (None, event.index):
            self._say(event.raw, out)
            return
        self.uncertain, rest = self._find_rejected(event)
        if rest:
            self._say(rest, out)
        elif keep_rejected(self.client, self.model, event.raw):
            self._settle(out)

    def _find_rejected(self, event: CallRejected) -> tuple[WrittenCall, str]:
        """The rejected call, and what was read beyond the place where the client ends it."""
        text = event.raw.strip(JS_WHITESPACE)
        before, call = event.raw[: event.raw.index(text)], find_call(self.client, text)
        call = call if call and text.startswith(call) else text
        if event.span is None or self.answer is None:
            return WrittenCall(call, self.blanks + before, 0), text[len(call) :]
        start = event.span[0] + len(before)
        return self.answer.extract_call((start, start + len(call))), text[len(call) :]

    def _finish(self, event: Finished, out: list[Event]) -> None:
        self._settle(out, last=True)
        self._put(self.escaper.close(), out)
        if self.verbatim is not None:
            behind = self._cite(self.verbatim.end, self.next_call_at)
            self._put_behind(behind if self.next_call_at is None else behind.rstrip(JS_WHITESPACE), out)
        elif self.has_mention and not self.sent:
            whole = self._cite(0, None)
            self._put(whole[len(whole.rstrip(JS_WHITESPACE)) :].removeprefix(self.blanks), out)
        if self.open is not None:
            self.reports.append(CallReport(self.open.name, Outcome.TRUNCATED))
            self._put_apart(escape_text(self.client, _TRUNCATED.format(tool=self.open.name)), out)
        if not self.has_text:
            self._put(_EMPTY_ANSWER, out)
        out.append(Finished("stop" if event.reason == "tool_calls" else event.reason, event.usage))


_TOO_LONG = Defect(Reason.INVALID_VALUE, "message", "more text than the client reads", "a shorter message")
