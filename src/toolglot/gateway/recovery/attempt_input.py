"""One attempt: the upstream's events before they are delivered, the model's text, and calls in progress."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from toolglot.core.events import (
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    NearMiss,
    Reason,
    TextDelta,
)
from toolglot.gateway.outcomes import describe_rejection
from toolglot.gateway.recovery.attempts import Recovery

LEAST_OVERLAP: Final = 8
MOST_OVERLAP: Final = 400
"""How many characters of a cut answer a model may repeat when it goes on."""
LAST_PIECES: Final = 1000
UNKNOWN_DIALECT: Final = "unknown"
"""The dialect of a near miss in none: a call without a dialect is native."""


class OpenCall(Struct, eq=False):
    """A call in progress. ``held``: nothing of it is sent before it is complete. ``number`` is its number for the
    client, negative as long as nothing of it was sent."""

    event: CallStarted
    held: bool
    number: int = -1
    fragments: list[str] = []
    end: CallEnded | CallRejected | None = None

    @property
    def arguments(self) -> str:
        return "".join(self.fragments)


class AttemptInput(Struct, eq=False):
    """The upstream's events of one answer. ``reported`` is its finish reason, ``is_unparsed``: the server could
    not parse it; ``unparsed`` are the calls in its error, which cannot be read here either.
    ``beginning`` is the first text after a cut, until it is known how much of it the model repeats."""

    recovery: Recovery
    texts: list[str] = []
    reported: str = ""
    is_unparsed: bool = False
    unparsed: list[CallRejected] = []
    beginning: list[str] | None = None

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def end_of_text(self) -> str:
        return "".join(self.texts[-LAST_PIECES:])

    def take(self, events: list[Event]) -> list[Event]:
        """The events to deliver. An error that shows the model's call becomes that call."""
        if events and type(events[-1]) is Failed:
            events = [*events[:-1], *self.read_failure(events[-1])]
        if self.beginning is not None:
            events = self.skip_repetition(events, self.beginning)
        for event in events:
            if type(event) is TextDelta:
                self.texts.append(event.text)
            elif type(event) is Finished:
                self.reported = event.reason
        return events

    def read_failure(self, event: Failed) -> list[Event]:
        """The failure, or the calls in it, if the server could not parse what its model wrote."""
        read = self.recovery.read_failure(event)
        self.is_unparsed = read is not None
        if read and type(read[-1]) is Finished:
            return read
        self.unparsed = [one for one in read or () if type(one) is CallRejected]
        return [event]

    def is_cut_by_limit(self, event: CallRejected) -> bool:
        """Whether the token limit has cut this call. Decoders leave a native call open then; they reject one whose end
        is missing although the upstream has ended it."""
        return event.reason is Reason.TRUNCATED and bool(event.dialect) and self.reported == "length"

    def go_on(self) -> None:
        """The answer was cut; the next events continue it."""
        self.beginning, self.reported = [], ""

    def skip_repetition(self, events: list[Event], beginning: list[str]) -> list[Event]:
        """The events after a cut, without the end of the text before it if the model has repeated that."""
        beginning += [event.text for event in events if type(event) is TextDelta]
        joined, others = "".join(beginning), [event for event in events if type(event) is not TextDelta]
        if len(joined) < MOST_OVERLAP and not any(isinstance(event, Finished | Failed) for event in others):
            return others
        self.beginning = None
        rest = joined[measure_overlap(self.end_of_text, joined) :]
        return [TextDelta(rest), *others] if rest else others


def measure_overlap(before: str, after: str) -> int:
    """How many characters at the beginning of ``after`` repeat the end of ``before``; 0 if there are only a few."""
    longest = min(len(before), len(after), MOST_OVERLAP)
    return next((size for size in range(longest, LEAST_OVERLAP - 1, -1) if before.endswith(after[:size])), 0)


def move_blanks(events: list[Event]) -> list[Event]:
    """The events with the blanks before a rejected call, which come when it is rejected, behind the rejection: a
    part of the call was sent, so they wait with the rest of its text."""
    for at, event in enumerate(events[1:]):
        if type(event) is CallRejected and type(events[at]) is TextDelta and event.index is not None:
            events[at], events[at + 1] = event, events[at]
    return events


def show_rejected(rejected: CallRejected, gap: str) -> TextDelta:
    """A complete call that is not made, as text. ``rejected.raw`` are its arguments, ``gap`` separates it from other
    text."""
    return TextDelta(f"{gap}({describe_rejection(rejected)} Its arguments were:)\n\n{rejected.raw}")


def reject_missed(miss: NearMiss) -> CallRejected:
    """A near miss as a rejected call in text, so that the model learns what is wrong with it."""
    reason = miss.defects[0].reason if miss.defects else Reason.MALFORMED
    return CallRejected(miss.raw, reason, miss.tool, miss.defects, miss.dialect or UNKNOWN_DIALECT)
