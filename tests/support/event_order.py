"""The order of events, which ``toolglot.core.events`` documents."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    Started,
)


class OrderError(AssertionError):
    """Events that violate the order documented in ``toolglot.core.events``."""


class OrderChecker(Struct):
    """Checks the events of one answer, one at a time; raises ``OrderError`` at the first one out of order."""

    seen: int = 0
    calls: int = 0
    open: set[int] = field(default_factory=set)
    over: bool = False

    def check(self, event: Event) -> None:
        if self.over:
            raise OrderError(f"{event} after the end of the answer")
        match event:
            case Started() if self.seen:
                raise OrderError("Started is not the first event")
            case CallStarted(index=index):
                if index != self.calls:
                    raise OrderError(f"call {index} started where call {self.calls} was expected")
                self.calls += 1
                self.open.add(index)
            case CallArguments(index=index):
                self._require_open(index, event)
            case CallEnded(index=index):
                self._require_open(index, event)
                self.open.discard(index)
            case CallRejected(index=int(index)):
                self._require_open(index, event)
                self.open.discard(index)
            case Finished() | Failed():
                self.over = True
        self.seen += 1

    def _require_open(self, index: int, event: Event) -> None:
        if index not in self.open:
            raise OrderError(f"{event} names a call that is not open")


def check_order(events: Iterable[Event]) -> None:
    """Raise ``OrderError`` if the events of one answer are out of order."""
    checker = OrderChecker()
    for event in events:
        checker.check(event)
