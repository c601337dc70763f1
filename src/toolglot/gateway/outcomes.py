"""What counts as an answer, and how failures and rejected calls are described to the client."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from toolglot.core.error_guide import explain_failure
from toolglot.core.errors import (
    AnswerSizeError,
    ToolglotError,
    UpstreamError,
    UpstreamPlace,
    UpstreamResponseError,
    read_status,
)
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
from toolglot.wires.protocol import Wire

ENVELOPE: Final[tuple[type, ...]] = (Started, Finished, Failed)
NO_ANSWER: Final[tuple[type, ...]] = (
    *(ReasoningDelta, ReasoningSigned, CallStarted, CallArguments, CallEnded),
    *ENVELOPE,
)
"""Events that are no answer by themselves; calls are counted when they are complete."""
DELTAS: Final = (TextDelta, ReasoningDelta)
EMPTY: Final = "The model's answer was empty."
NO_TEXT: Final = "The model's answer holds reasoning or white space, but neither text nor a call."
CUT_CALL: Final = "The call of {tool} was cut off before it was complete, and was not made."
TOO_LARGE: Final = (
    "The arguments of the model's call of {tool} are larger than {limit} bytes, which is the limit here"
    " (tool_calling.max_parameter_bytes)."
)
MAX_REASON_CHARS: Final = 500
"""Limit for the description of what is wrong with a call."""
INVALID: Final = "upstream_invalid"
"""The error code with which decoders of all wires report an event that they cannot decode."""
UNFINISHED: Final = "upstream_closed"
"""The error code with which decoders of all wires report a response without a finish."""
MAX_OBJECTS: Final = 1_000_000
"""JSON objects in what is decoded at once: each takes far more memory than its two brackets."""
TOO_MANY_OBJECTS: Final = f"The upstream's answer holds more than {MAX_OBJECTS:,} JSON objects."


def check_objects(body: bytes) -> None:
    """Raise AnswerSizeError if a body holds too many objects to be decoded."""
    if body.count(b"{") > MAX_OBJECTS:
        raise AnswerSizeError(TOO_MANY_OBJECTS)


def make_error(event: Failed, wire: Wire) -> ToolglotError:
    """The error of a failed answer of an upstream, with the status that it names or that its code means."""
    if wire.chat is not None:
        return wire.chat.restore_error(event)
    if status := read_status(event.kind):
        return UpstreamResponseError(event.message, status, event.kind)
    error = UpstreamError(event.message)
    error.code = event.kind
    return error


def make_explained_error(event: Failed, wire: Wire) -> ToolglotError:
    """The error of a failed answer whose text is already the client's (``explain_to_client``)."""
    error = make_error(event, wire)
    error.explanation = event.message
    return error


def redact_failure(failure: Failed, secrets: Iterable[str]) -> Failed:
    """The failure without secrets: upstreams repeat API keys in their errors."""
    kind = redact_code(failure.kind, secrets) or UpstreamError.code
    return Failed(kind, redact(failure.message, secrets), redact(failure.explanation, secrets))


def explain_to_client(failure: Failed, place: UpstreamPlace | None, secrets: Iterable[str]) -> Failed:
    """The failure as the client gets it: without secrets, with its upstream and the next step."""
    redacted = redact_failure(failure, secrets)
    return Failed(redacted.kind, explain_failure(redacted, place))


def find_emptiness(events: Sequence[Event], successes: Sequence[str]) -> Failed | None:
    """Why a whole response that is relayed is no answer: it failed, or it finished successfully without content."""
    last = events[-1] if events else Failed("empty_answer", EMPTY)
    if isinstance(last, Failed):
        return last
    if not isinstance(last, Finished) or last.reason not in successes or any(map(is_content, events)):
        return None
    return Failed("empty_answer", NO_TEXT if any(isinstance(event, DELTAS) for event in events) else EMPTY)


def is_content(event: Event) -> bool:
    """Whether this event is part of an answer or the start of a call."""
    return type(event) is CallStarted or is_answer(event)


def is_answer(event: Event) -> bool:
    """Whether this event is part of an answer, not only of reasoning or of an unfinished call."""
    return not event.text.isspace() if type(event) is TextDelta else type(event) not in NO_ANSWER


def has_text_after_call(deferred: Iterable[tuple[Event, str]]) -> bool:
    """Whether text follows the last call."""
    events = [event for event, _ in deferred]
    ended = [at for at, event in enumerate(events) if isinstance(event, CallEnded)]
    return bool(ended) and any(isinstance(event, TextDelta) and is_answer(event) for event in events[ended[-1] :])


def describe_rejection(event: CallRejected) -> str:
    """Why a call was not made, in a sentence."""
    if event.reason is Reason.TRUNCATED:
        return CUT_CALL.format(tool=event.tool or "a tool")
    why = "; ".join(map(str, event.defects)) or event.reason.value
    return f"The call of {event.tool or 'a tool'} was not made: {why[:MAX_REASON_CHARS]}."


def describe_empty(reason: str, forbidden: Sequence[str], *, has_output: bool) -> Failed:
    """Why a finished response is no answer. ``forbidden`` are the names of calls that the client does not take,
    ``has_output``: something was delivered, but no text and no call."""
    if reason == "content_filter":
        return Failed(reason, "The model's answer was held back by a content filter.")
    if forbidden:
        names = ", ".join(dict.fromkeys(forbidden))
        why = f"The model's answer was a call of {names}, which tool_choice does not allow."
        return Failed("forbidden_call", why)
    return Failed("empty_answer", NO_TEXT if has_output else EMPTY)
