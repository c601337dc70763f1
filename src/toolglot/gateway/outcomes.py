"""What counts as an answer, and how the client is told that there is none, or that a call was not made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from toolglot.core.errors import UpstreamError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reason,
    ReasoningDelta,
    ReasoningSigned,
    Started,
    TextDelta,
)
from toolglot.core.redaction import redact, redact_code

SILENT: Final[tuple[type, ...]] = (ReasoningDelta, ReasoningSigned, CallStarted, CallArguments, CallEnded)
"""Events that are no answer by themselves; calls are counted when they are complete."""
ENVELOPE: Final[tuple[type, ...]] = (Started, Finished, Failed)
WORDS: Final = (TextDelta, ReasoningDelta)
EMPTY: Final = "The model's answer was empty."
UNSPOKEN: Final = "The model's answer holds reasoning or white space, but neither text nor a call."
CUT_CALL: Final = "The call of {tool} was cut off before it was complete, and was not made."
REASON_CHARS: Final = 500
"""So many characters tell what is wrong with a call."""


def redact_failure(failure: Failed, secrets: Iterable[str]) -> Failed:
    """A failure that may be told: upstreams like to repeat keys."""
    return Failed(redact_code(failure.kind, secrets) or UpstreamError.code, redact(failure.message, secrets))


def find_emptiness(events: Sequence[Event], successes: Sequence[str]) -> Failed | None:
    """Why a whole answer that passes as it is is none: it has failed, or it ends as a success and says nothing."""
    last = events[-1] if events else Failed("empty_answer", EMPTY)
    if isinstance(last, Failed):
        return last
    if not isinstance(last, Finished) or last.reason not in successes or any(map(is_content, events)):
        return None
    return Failed("empty_answer", UNSPOKEN if any(isinstance(event, WORDS) for event in events) else EMPTY)


def is_content(event: Event) -> bool:
    """Whether this event is part of an answer or the beginning of a call."""
    return type(event) is CallStarted or (type(event) not in ENVELOPE and is_answer(event))


def is_answer(event: Event) -> bool:
    """Whether this event is part of an answer, not only of the way to it."""
    return not event.text.isspace() if type(event) is TextDelta else type(event) not in SILENT


def says_more(waiting: Iterable[tuple[Event, str]]) -> bool:
    """Whether text follows a call."""
    events = [event for event, _ in waiting]
    ended = [at for at, event in enumerate(events) if isinstance(event, CallEnded)]
    return bool(ended) and any(isinstance(event, TextDelta) and is_answer(event) for event in events[ended[-1] :])


def describe_refusal(event: CallRejected) -> str:
    """Why a call was not made, in a sentence."""
    if event.reason is Reason.TRUNCATED:
        return CUT_CALL.format(tool=event.tool or "a tool")
    why = "; ".join(map(str, event.defects)) or event.reason.value
    return f"The call of {event.tool or 'a tool'} was not made: {why[:REASON_CHARS]}."
