"""Render an answer for an XML client: calls become XML, text stays text.

Strategy. Text streams at once, escaped (``text_escaping``). A call does not stream. XML clients run whatever is open
when the stream ends, with the part of the value that has arrived: a truncated command would run and a truncated file
would be written. Sent text cannot be retracted, and no mark makes a client drop an open call. So the XML of a call is
sent in one piece when its arguments are complete, checked and parsed back (``call_renderer``); heartbeats of the wire
keep the connection alive meanwhile.

A message has one call: the client aborts the stream when it has run it. So the first call that starts is sent; later
calls, and all text after them, are dropped. Text after the first call is sent at the end of the stream if the call is
sent as the model wrote it, and dropped if the call was rendered. Drops are recorded. A call that cannot be sent is
reported as text, with its arguments, and no later call runs in its place: it may depend on the first. A message is
never empty, because clients treat that as a failure of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct, field

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
    """Outcome of a call."""

    SENT = "sent"
    FLAGGED = "flagged"
    """Sent, with an allowed difference that is recorded."""
    REFUSED = "refused"
    TRUNCATED = "truncated"
    DROPPED = "dropped"
    """Not the first of its message."""


class CallReport(Struct, frozen=True):
    """The outcome of one call."""

    tool: str
    outcome: Outcome
    notes: tuple[str, ...] = ()
    defects: tuple[Defect, ...] = ()

    def __str__(self) -> str:
        return "; ".join([f"{self.tool} {self.outcome}", *self.notes, *map(str, self.defects)])


class WrittenCall(Struct, frozen=True):
    """A call as the model wrote it, the whitespace and fence mark before it, and its end in the answer. ``before`` is
    None if the call is put on its own line."""

    text: str
    before: str | None
    end: int


class AnswerText(Protocol):
    """Access to the answer as the model wrote it."""

    def extract_call(self, span: Span) -> WrittenCall:
        """The call in this span."""
        ...

    def extract_text(self, start: int, end: int | None) -> str:
        """The text in this range, as far as it has arrived."""
        ...


class _OpenCall(Struct):
    index: int
    id: str
    name: str
    fragments: list[str] = field(default_factory=list)


OWN_DIALECT: Final = "roo_xml"
"""The dialect name for the XML of these clients."""
_EMPTY_ANSWER = "(The model gave no answer.)"
_TRUNCATED = "(The call of {tool} was cut off before it was complete, and was not made.)"
_REFUSED = "(The call of {tool} was not made: {reasons}. Its arguments were:)\n\n{arguments}"

MAX_SHOWN_ARGUMENTS: Final = 8000
"""Shown characters of the arguments of a refused call. Clients take a minute for half a million."""
_OMITTED = "\n\n({count} characters were left out here.)\n\n"


def shorten_arguments(arguments: str) -> str:
    """Shorten the arguments of a refused call: all of them, or beginning and end with a note between them."""
    count = len(arguments) - MAX_SHOWN_ARGUMENTS
    if count <= 0:
        return arguments
    half = MAX_SHOWN_ARGUMENTS // 2
    return arguments[:half] + _OMITTED.format(count=count) + arguments[-half:]


class ResponseRenderer:
    """Renders one answer. ``reports`` lists the outcome of each call."""

    def __init__(
        self,
        client: XmlClient,
        model: str,
        *,
        carry_ids: bool = False,
        servers: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        """``model`` is the id that the client requested, which decides what it un-escapes. ``carry_ids`` puts the call
        id into the XML, in a tag that clients skip and send back with the history."""
        self.client = client
        self.model = model
        self.carry_ids = carry_ids
        self.servers = servers
        self.reports: list[CallReport] = []
        self.answer: AnswerText | None = None
        """The original text. Calls in the client's own XML are looked up in it."""
        self.escaper = TextEscaper(client)
        self.first: int | None = None
        self.open: _OpenCall | None = None
        self.sent = False
        self.has_text = False
        self.size = 0
        self.ends_line = True
        self.trailing_whitespace = ""
        """Whitespace at the end of the text so far."""
        self.dropped_length = 0
        self.verbatim: WrittenCall | None = None
        """The call that was sent, if it was sent as written."""
        self.next_call_at: int | None = None
        """Start of the next call, which is not sent."""
        self.uncertain: WrittenCall | None = None
        """An incomplete call. It may be a mention of the tool: text after it on its line decides."""
        self.has_mention = False
        """Whether an incomplete call turned out to be a mention."""

    @property
    def notes(self) -> list[str]:
        notes = [str(report) for report in self.reports if report.outcome is not Outcome.SENT]
        return notes + (
            [f"{self.dropped_length} characters behind the call were dropped"] if self.dropped_length else []
        )

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """The events for the client."""
        out: list[Event] = []
        for event in events:
            match event:
                case TextDelta(text=text):
                    self._add_text(text, out)
                case CallStarted():
                    self._resolve_uncertain(out, self.first is not None)
                    self._start(event)
                case CallArguments(index=index, fragment=fragment):
                    if self.open is not None and self.open.index == index:
                        self.open.fragments.append(fragment)
                case CallEnded(index=index):
                    if self.open is not None and self.open.index == index:
                        self._end(self.open, event, out)
                    else:
                        self._skip_call(event.span)
                case CallRejected():
                    self._reject(event, out)
                case Finished():
                    self._finish(event, out)
                case Failed():
                    self._resolve_uncertain(out)
                    self._put(self.escaper.close(), out)
                    out.append(event)
                case _:
                    out.append(event)
        return out

    def _add_text(self, text: str, out: list[Event]) -> None:
        if self.uncertain is not None and not text.strip(JS_WHITESPACE):
            return
        if self.uncertain is not None:
            self._resolve_uncertain(out)
            text = text.lstrip(JS_WHITESPACE)
        if not self.sent:
            self._put(self.escaper.feed(text), out)
        elif text.strip(JS_WHITESPACE) and (self.verbatim is None or self.next_call_at is not None):
            self.dropped_length += len(text)

    def _extract_text(self, start: int, end: int | None) -> str:
        return self.answer.extract_text(start, end) if self.answer is not None else ""

    def _whitespace_after(self, call: WrittenCall) -> str:
        """Whitespace after the uncertain call, which the reader drops."""
        behind = self._extract_text(call.end, None)
        return behind[: len(behind) - len(behind.lstrip(JS_WHITESPACE))]

    def _has_own_lines(self, call: WrittenCall) -> bool:
        """Whether the uncertain call has a value, and no other text on its lines."""
        first = not (self.has_text or self.escaper.held) or "\n" in (call.before or self.trailing_whitespace)
        return first and "\n" in self._whitespace_after(call) and has_value(self.client, self.model, call.text)

    def _skip_call(self, span: Span | None) -> None:
        """Note the start of a further call, or of its fabricated result: neither it nor the text after it is sent."""
        if (self.sent or self.uncertain is not None) and self.next_call_at is None and span is not None:
            self.next_call_at = span[0]

    def _resolve_uncertain(self, out: list[Event], last: bool = False) -> None:
        """Send the uncertain call as written if it has its own lines or is the ``last`` possible one; else it is
        text."""
        call, self.uncertain = self.uncertain, None
        if call is None:
            return
        kept = keep_rejected(self.client, self.model, call.text, last or self._has_own_lines(call))
        if kept is not None:
            self._put(self.escaper.close(), out)
            self._send(kept, "", call, out)
        else:
            self.has_mention = True
            before = (call.before or "").removeprefix(self.trailing_whitespace)
            self._add_text(before + call.text + self._whitespace_after(call), out)

    def _put(self, text: str, out: list[Event]) -> None:
        if text:
            self.has_text = self.has_text or bool(text.strip(JS_WHITESPACE))
            self.size += utf16_length(text)
            self.ends_line = text.endswith("\n")
            content = text.rstrip()
            self.trailing_whitespace = text[len(content) :] if content else self.trailing_whitespace + text
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
            is_verbatim = written is not None and written.text.startswith(rendered.text)
            self._send(rendered, arguments, written if is_verbatim else None, out)

    def _send(self, rendered: RenderedCall, arguments: str, written: WrittenCall | None, out: list[Event]) -> None:
        """Send the call, or report why it cannot be sent. ``written`` if it is sent as the model wrote it."""
        self._put(self.escaper.close(), out)
        limit = self.client.limits.message
        if rendered.text and limit and self.size + utf16_length(rendered.text) >= limit:
            rendered = RenderedCall(rendered.tool, "", (_TOO_LONG,), rendered.notes)
        if not rendered.text:
            self._refuse(rendered, arguments, out)
            return
        outcome = Outcome.FLAGGED if rendered.notes else Outcome.SENT
        self.reports.append(CallReport(rendered.tool, outcome, rendered.notes))
        before = written.before if written is not None else None
        self.verbatim = written if before is not None else None
        if before is not None and before.startswith(self.trailing_whitespace):
            self._put(before.removeprefix(self.trailing_whitespace) + rendered.text, out)
        else:
            self._put_on_own_line(rendered.text, out)
        self.sent = True

    def _refuse(self, rendered: RenderedCall, arguments: str, out: list[Event]) -> None:
        self.reports.append(CallReport(rendered.tool, Outcome.REFUSED, rendered.notes, rendered.defects))
        reasons = "; ".join(map(str, rendered.defects))
        message = _REFUSED.format(tool=rendered.tool, reasons=reasons, arguments=shorten_arguments(arguments))
        self._put_on_own_line(escape_text(self.client, message), out)
        self.ends_line = False

    def _put_on_own_line(self, text: str, out: list[Event]) -> None:
        """Put text on a line of its own."""
        self._put(text if self.ends_line else f"\n\n{text}", out)

    def _put_after_call(self, text: str, out: list[Event]) -> None:
        """Send the text after a call that was sent as written, within the message limit of the client."""
        limit = self.client.limits.message
        if limit and self.size + utf16_length(text) >= limit:
            self.dropped_length += len(text)
        else:
            self._put(escape_text(self.client, text), out)

    def _reject(self, event: CallRejected, out: list[Event]) -> None:
        """Handle a rejected call: it is text, unless the client parses it as a call."""
        if event.index is not None and self.open is not None and self.open.index == event.index:
            self.open = None
        if event.reason in (Reason.EXTRA_CALL, Reason.FABRICATED_RESULT):
            self._skip_call(event.span)
            return
        own = event.dialect == OWN_DIALECT and event.reason not in (Reason.TRUNCATED, Reason.COPIED_EXAMPLE)
        self._resolve_uncertain(out, self.first is not None)
        if self.sent and own and keep_rejected(self.client, self.model, event.raw, last=True):
            self._skip_call(event.span)
        if not own or self.sent or self.first not in (None, event.index):
            self._add_text(event.raw, out)
            return
        self.uncertain, rest = self._find_rejected(event)
        if rest:
            self._add_text(rest, out)
        elif keep_rejected(self.client, self.model, event.raw):
            self._resolve_uncertain(out)

    def _find_rejected(self, event: CallRejected) -> tuple[WrittenCall, str]:
        """The rejected call, and the text parsed beyond the point where the client ends it."""
        text = event.raw.strip(JS_WHITESPACE)
        before, call = event.raw[: event.raw.index(text)], find_call(self.client, text)
        call = call if call and text.startswith(call) else text
        if event.span is None or self.answer is None:
            return WrittenCall(call, self.trailing_whitespace + before, 0), text[len(call) :]
        start = event.span[0] + len(before)
        return self.answer.extract_call((start, start + len(call))), text[len(call) :]

    def _finish(self, event: Finished, out: list[Event]) -> None:
        self._resolve_uncertain(out, last=True)
        self._put(self.escaper.close(), out)
        if self.verbatim is not None:
            behind = self._extract_text(self.verbatim.end, self.next_call_at)
            self._put_after_call(behind if self.next_call_at is None else behind.rstrip(JS_WHITESPACE), out)
        elif self.has_mention and not self.sent:
            whole = self._extract_text(0, None)
            self._put(whole[len(whole.rstrip(JS_WHITESPACE)) :].removeprefix(self.trailing_whitespace), out)
        if self.open is not None:
            self.reports.append(CallReport(self.open.name, Outcome.TRUNCATED))
            self._put_on_own_line(escape_text(self.client, _TRUNCATED.format(tool=self.open.name)), out)
        if not self.has_text:
            self._put(_EMPTY_ANSWER, out)
        out.append(Finished("stop" if event.reason == "tool_calls" else event.reason, event.usage))


_TOO_LONG = Defect(
    reason=Reason.INVALID_VALUE, where="message", found="more text than the client reads", expected="a shorter message"
)
