"""An answer for a client that takes calls as XML: what is delivered to others, written in its way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from toolglot.clients.toolsets import ResponseMapper
from toolglot.clients.xml.fenced_calls import FencedCalls
from toolglot.clients.xml.response_renderer import CallReport, Outcome, ResponseRenderer, WrittenCall
from toolglot.config.rollout import SUCCESS, XML
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reason,
    Span,
    TextDelta,
)
from toolglot.gateway.delivery import Delivery

OUTCOMES: Final[Mapping[Outcome, str]] = {
    Outcome.SENT: SUCCESS,
    Outcome.FLAGGED: SUCCESS,
    Outcome.TRUNCATED: Reason.TRUNCATED,
    Outcome.DROPPED: Reason.EXTRA_CALL,
}


class XmlDelivery(Delivery):
    """A delivery whose calls become text. As far as the delivery knows it is not streamed: of a call that turns out to
    be none, nothing has left yet."""

    def __init__(self, rendering: ResponseRenderer, *given: Any, mapped: ResponseMapper | None = None) -> None:
        """``mapped`` tells calls to mapped tools as calls to the client's own; the rest is given to the delivery."""
        super().__init__(*given)
        self.rendering = rendering
        self.mapped = mapped
        self.unfencing = FencedCalls(rendering.client)
        self.tells_rejected = True
        self.calls: list[Event] = []
        rendering.answer = self

    def deliver(self, events: Iterable[Event]) -> list[Event]:
        """What the client is told of these events of the upstream."""
        told = super().deliver(list(self.unfence(events)))
        if self.mapped is not None:
            told = self.mapped.feed(told)
        if self.unfencing.before and not any(map(self.is_fenced, told)):
            told = self.unfencing.put_back(told)
        out = self.rendering.feed(self.order(told) if self.native else told)
        if told and isinstance(told[-1], Finished | Failed):
            self.watch.notes += self.rendering.notes
            for record in self.rendering.reports:
                end = _judge(record)
                self.watch.count(XML, end)
                if end == SUCCESS:
                    self.watch.transformed.append(record.tool)
        return out

    def extract_call(self, span: Span) -> WrittenCall:
        """What the model wrote there, with the blanks before it where the call keeps its place behind the text."""
        said = self.quote((0, span[0]))
        fence = self.unfencing.before if self.unfencing.holds(self.quote((span[0], None))) else ""
        before = None if self.native else said[len(said.rstrip()) :] + fence
        return WrittenCall(self.restore(self.quote(span)), before, span[1])

    def is_fenced(self, event: Event) -> bool:
        """Whether a call was read in the fence that was taken off."""
        span = event.span if isinstance(event, CallEnded | CallRejected) else None
        return span is not None and self.unfencing.holds(self.quote((span[0], None)))

    def extract_text(self, start: int, end: int | None) -> str:
        """What the model wrote there, with the end of the fence that was taken off at the end of the answer."""
        return self.restore(self.quote((start, end))) + (self.unfencing.behind if end is None else "")

    def order(self, events: Iterable[Event]) -> list[Event]:
        """Text first, then calls: some text may be looked at until the end, and nothing can follow a call. An answer
        that failed makes none."""
        out: list[Event] = []
        for event in events:
            if isinstance(event, CallStarted | CallArguments | CallEnded | CallRejected):
                self.calls.append(event)
                continue
            if isinstance(event, Finished):
                out += self.calls
            out.append(event)
        return out

    def unfence(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events with calls out of their fences."""
        for event in events:
            if isinstance(event, TextDelta):
                text = self.unfencing.feed(event.text)
                event = event if text == event.text else TextDelta(text)
            elif isinstance(event, Finished | Failed):
                cut = isinstance(event, Failed) or event.reason == "length"
                if rest := self.unfencing.close(cut):
                    yield TextDelta(rest)
            if not isinstance(event, TextDelta) or event.text:
                yield event


def _judge(record: CallReport) -> str:
    """How a call ended, in the words of the rollout."""
    refused = record.defects[0].reason if record.defects else Reason.INVALID_VALUE
    return str(OUTCOMES.get(record.outcome, refused))
