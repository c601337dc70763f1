"""An answer for a client that takes calls as XML: what is delivered to others, written in its way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from toolglot.clients.fences import Unfencing
from toolglot.clients.rendering import OWN_DIALECT, Outcome, Record, Rendering, Written
from toolglot.delivery import Delivery
from toolglot.editing import Return
from toolglot.events import (
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
from toolglot.rollout import SUCCESS, XML

OUTCOMES: Final[Mapping[Outcome, str]] = {
    Outcome.SENT: SUCCESS,
    Outcome.FLAGGED: SUCCESS,
    Outcome.TRUNCATED: Reason.TRUNCATED,
    Outcome.DROPPED: Reason.EXTRA_CALL,
}


class Rendition(Delivery):
    """A delivery whose calls become text. As far as the delivery knows it is not streamed: of a call that turns out to
    be none, nothing has left yet."""

    def __init__(self, rendering: Rendering, *given: Any, mapped: Return | None = None) -> None:
        """``mapped`` tells calls to mapped tools as calls to the client's own; the rest is given to the delivery."""
        super().__init__(*given)
        self.rendering = rendering
        self.mapped = mapped
        self.unfencing = Unfencing(rendering.client)
        self.tells_rejected = True
        self.calls: list[Event] = []
        self.call_end = 0
        """Where the last call in the client's own XML ends in the model's text."""

    def deliver(self, events: Iterable[Event]) -> list[Event]:
        """What the client is told of these events of the upstream."""
        told = super().deliver(list(self.unfence(events)))
        if self.mapped is not None:
            told = self.mapped.feed(told)
        for event in told:
            if type(event) is CallEnded and event.dialect == OWN_DIALECT and event.span:
                self.rendering.written[event.index] = self.cut_out(event.span)
                self.call_end = event.span[1]
        if self.call_end and told and isinstance(told[-1], Finished):
            self.rendering.behind = self.quote((self.call_end, None))
        out = self.rendering.write(self.order(told) if self.native else told)
        if told and isinstance(told[-1], Finished | Failed):
            self.watch.notes += self.rendering.notes
            for record in self.rendering.records:
                end = _judge(record)
                self.watch.count(XML, end)
                if end == SUCCESS:
                    self.watch.transformed.append(record.tool)
        return out

    def cut_out(self, span: Span) -> Written:
        """What the model wrote there, with the blanks before it where the call keeps its place behind the text."""
        said = self.quote((0, span[0]))
        before = None if self.native else said[len(said.rstrip()) :]
        return Written(self.restore(self.quote(span)), before)

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


def _judge(record: Record) -> str:
    """How a call ended, in the words of the rollout."""
    refused = record.defects[0].reason if record.defects else Reason.INVALID_VALUE
    return str(OUTCOMES.get(record.outcome, refused))
