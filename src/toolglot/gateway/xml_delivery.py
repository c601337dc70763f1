"""Delivers a response to an XML client: like any other response, with its calls rendered as the client's XML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

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
from toolglot.gateway.delivery_plan import DeliveryPlan
from toolglot.gateway.recovery.checked_delivery import CheckedDelivery
from toolglot.gateway.telemetry.log import RequestRecorder
from toolglot.reading.reader import Reader

OUTCOMES: Final[Mapping[Outcome, str]] = {
    Outcome.SENT: SUCCESS,
    Outcome.FLAGGED: SUCCESS,
    Outcome.TRUNCATED: Reason.TRUNCATED,
    Outcome.DROPPED: Reason.EXTRA_CALL,
}


class XmlDelivery:
    """A delivery whose calls become text. The inner delivery is not streamed: if a call turns out to be none, no part
    of it was sent."""

    def __init__(
        self,
        renderer: ResponseRenderer,
        reader: Reader | None,
        recorder: RequestRecorder,
        plan: DeliveryPlan,
        mapper: ResponseMapper | None = None,
        recover: Callable[[Delivery], CheckedDelivery] | None = None,
    ) -> None:
        """``mapper`` turns calls to mapped tools into calls to the client's own tools. ``recover`` makes a delivery
        that may need several attempts."""
        self.renderer = renderer
        self.recorder = recorder
        self.plan = replace(plan, streamed=False, reports_rejected=True)
        inner = Delivery(reader, recorder, self.plan)
        self.delivery: Delivery | CheckedDelivery = recover(inner) if recover else inner
        self.mapper = mapper
        self.fences = FencedCalls(renderer.client)
        self.calls: list[Event] = []
        self.over = False
        renderer.answer = self

    def set_observer(self, observer: Callable[[Iterable[Event]], None]) -> None:
        """Show the events, with calls out of their fences, to a dry run as well."""
        self.delivery.set_observer(observer)

    def begin_attempt(self, reader: Reader | None, plan: DeliveryPlan) -> bool:
        """The model was asked again; its next answer goes on here. Returns False if it goes on with a cut answer."""
        assert isinstance(self.delivery, CheckedDelivery)
        self.plan = replace(plan, streamed=False, reports_rejected=True)
        begins = self.delivery.begin_attempt(reader, self.plan)
        if begins:
            self.fences = FencedCalls(self.renderer.client)
            self.calls, self.over = [], False
        return begins

    @property
    def source(self) -> Delivery:
        """The delivery that has read the model's text."""
        return self.delivery if isinstance(self.delivery, Delivery) else self.delivery.delivery

    def settle(self) -> list[Event]:
        """No attempt has succeeded: the end of the first answer, which stands."""
        assert isinstance(self.delivery, CheckedDelivery)
        return self.render(self.delivery.settle())

    def deliver(self, events: Sequence[Event]) -> list[Event]:
        """What the client receives for these events of the upstream."""
        delivered = self.delivery.deliver(list(self.remove_fences(events)))
        self.over = self.delivery.over
        return self.render(delivered)

    def render(self, delivered: list[Event]) -> list[Event]:
        """The events with calls as the client's XML."""
        if self.mapper is not None:
            delivered = self.mapper.feed(delivered)
        if self.fences.before and not any(map(self.is_fenced, delivered)):
            delivered = self.fences.put_back(delivered)
        out = self.renderer.feed(self.move_calls_last(delivered) if self.plan.native else delivered)
        if delivered and isinstance(delivered[-1], Finished | Failed):
            self.recorder.notes += self.renderer.notes
            for record in self.renderer.reports:
                outcome = _name_outcome(record)
                self.recorder.count(XML, outcome)
                if outcome == SUCCESS:
                    self.recorder.transformed.append(record.tool)
        return out

    def extract_call(self, span: Span) -> WrittenCall:
        """The model's text at this position, with the blanks before it if the call keeps its place behind the text. The
        text of a further attempt is not sent, so its calls have none."""
        quote = self.source.quote
        text = quote((0, span[0]))
        fence = self.fences.before if self.fences.holds(quote((span[0], None))) else ""
        alone = self.plan.native or (isinstance(self.delivery, CheckedDelivery) and self.delivery.is_further)
        before = None if alone else text[len(text.rstrip()) :] + fence
        return WrittenCall(self.source.remove_breaks(quote(span)), before, span[1])

    def is_fenced(self, event: Event) -> bool:
        """Whether this call was read in the code fence that was removed."""
        span = event.span if isinstance(event, CallEnded | CallRejected) else None
        return span is not None and self.fences.holds(self.source.quote((span[0], None)))

    def extract_text(self, start: int, end: int | None) -> str:
        """The model's text at this position; up to the end of the answer, with the closing fence that was removed."""
        text = self.source.remove_breaks(self.source.quote((start, end)))
        return text + (self.fences.behind if end is None else "")

    def move_calls_last(self, events: Iterable[Event]) -> list[Event]:
        """Text first, then calls: some text is held until the end, and nothing can follow a call. A response that
        failed makes no calls."""
        out: list[Event] = []
        for event in events:
            if isinstance(event, CallStarted | CallArguments | CallEnded | CallRejected):
                self.calls.append(event)
                continue
            if isinstance(event, Finished):
                out += self.calls
            out.append(event)
        return out

    def remove_fences(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events with calls out of their code fences."""
        for event in events:
            if isinstance(event, TextDelta):
                text = self.fences.feed(event.text)
                event = event if text == event.text else TextDelta(text)
            elif isinstance(event, Finished | Failed):
                cut = isinstance(event, Failed) or event.reason == "length"
                if rest := self.fences.close(cut):
                    yield TextDelta(rest)
            if not isinstance(event, TextDelta) or event.text:
                yield event


def _name_outcome(record: CallReport) -> str:
    """How a call ended, as an outcome of the rollout."""
    rejected = record.defects[0].reason if record.defects else Reason.INVALID_VALUE
    return str(OUTCOMES.get(record.outcome, rejected))
