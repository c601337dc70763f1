"""Events: the steps of one model answer, independent of wire and dialect.

Order of the events (the tests check it for every answer):

1. ``Started`` is the first event, if present.
2. ``Finished`` or ``Failed`` is the last event, if present.
3. Calls are numbered 0, 1, 2, ... in the order of their ``CallStarted``.
4. ``CallArguments`` and ``CallEnded`` refer to an open call.
5. ``CallRejected`` closes an open call (its ``index``) or reports one that never started (``None``).
6. A call without ``CallEnded`` was truncated or rejected: it must not be executed.

The argument fragments of a call concatenate to one compact JSON object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, TypeAlias

from msgspec import Struct

Span: TypeAlias = tuple[int, int]


class Reason(StrEnum):
    """Why text that looked like a call was not delivered as one."""

    TRUNCATED = "truncated"
    MALFORMED = "malformed"
    UNKNOWN_TOOL = "unknown_tool"
    MISSING_ARGUMENT = "missing_argument"
    DUPLICATE_ARGUMENT = "duplicate_argument"
    INVALID_VALUE = "invalid_value"
    LOW_CONFIDENCE = "low_confidence"
    SWITCHED_OFF = "switched_off"
    EXTRA_CALL = "extra_call"
    FORBIDDEN = "forbidden"
    FABRICATED_RESULT = "fabricated_result"
    QUOTATION = "quotation"
    LEAKED = "leaked"
    COPIED_EXAMPLE = "copied_example"


class Defect(Struct, frozen=True, kw_only=True):
    """One problem of a call: where it is, what was found and what was expected."""

    reason: Reason
    where: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.where}: found {self.found}, expected {self.expected}"


class Started(Struct, frozen=True):
    """The answer begins; the upstream's response id and model name."""

    id: str = ""
    model: str = ""


class ReasoningDelta(Struct, frozen=True, gc=False):
    """A piece of the model's reasoning."""

    text: str


class ReasoningSigned(Struct, frozen=True):
    """An opaque signature of the reasoning; the client must return it unchanged on the next turn."""

    signature: str
    kind: str = ""


class TextDelta(Struct, frozen=True, gc=False):
    """A piece of text for the user."""

    text: str


class CallStarted(Struct, frozen=True):
    """A call begins: its index in this answer, its id and the name of its tool."""

    index: int
    id: str
    name: str


class CallArguments(Struct, frozen=True, gc=False):
    """A piece of the arguments of an open call."""

    index: int
    fragment: str


class CallEnded(Struct, frozen=True):
    """The call is complete. The other fields say how it was read from text; native calls keep the defaults."""

    index: int
    dialect: str = ""
    confidence: float = 1.0
    repairs: tuple[str, ...] = ()
    span: Span | None = None


class CallRejected(Struct, frozen=True):
    """Text that looked like a call and is not delivered as one."""

    raw: str
    reason: Reason
    tool: str | None = None
    defects: tuple[Defect, ...] = ()
    dialect: str = ""
    span: Span | None = None
    index: int | None = None


class NearMiss(Struct, frozen=True):
    """Text that was meant as a call and stays text. No event: it is found while an answer is read.

    ``tool`` is the offered tool that the text names; ``defects`` say what is wrong, as far as that is known; ``raw`` is
    the text of the call, as far as it was read.
    """

    dialect: str = ""
    tool: str | None = None
    defects: tuple[Defect, ...] = ()
    raw: str = ""


class Usage(Struct, frozen=True, kw_only=True):
    """Token counts. Input includes cached tokens; ``reported`` is the usage object as the upstream sent it."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    reported: Mapping[str, Any] = {}

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.input_tokens, self.output_tokens, self.total_tokens

    def __eq__(self, other: object) -> bool:
        return self.counts == other.counts if isinstance(other, Usage) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.counts)


class Finished(Struct, frozen=True):
    """The answer is complete; ``reason`` says why it ended."""

    reason: str
    usage: Usage | None = None


class Failed(Struct, frozen=True):
    """The answer was aborted by an error. ``explanation``, if it is set, is the whole text for the client."""

    kind: str
    message: str
    explanation: str = ""


class ProviderEvent(Struct, frozen=True):
    """An event that only its own wire understands; passed through unchanged."""

    wire: str
    data: Any


Event: TypeAlias = (
    Started
    | ReasoningDelta
    | ReasoningSigned
    | TextDelta
    | CallStarted
    | CallArguments
    | CallEnded
    | CallRejected
    | Finished
    | Failed
    | ProviderEvent
)


_INDEX = attrgetter("index")


PIECE: Final = 1 << 14
"""Characters of a text that are read at once: a search holds the interpreter until it is over."""


def split_text(events: Iterable[Event]) -> Iterator[Event]:
    """Split very long text: the same answer in more pieces."""
    for event in events:
        if type(event) is TextDelta and len(event.text) > PIECE:
            yield from (TextDelta(event.text[at : at + PIECE]) for at in range(0, len(event.text), PIECE))
        else:
            yield event


def merge_deltas(events: Iterable[Event]) -> Iterator[Event]:
    """Join adjacent deltas of one kind: the same answer in fewer pieces."""
    runs: Iterable[tuple[type, Iterable[Any]]] = groupby(events, type)
    for kind, run in runs:
        if kind is TextDelta or kind is ReasoningDelta:
            yield kind("".join([delta.text for delta in run]))
        elif kind is CallArguments:
            for index, fragments in groupby(run, _INDEX):
                yield CallArguments(index, "".join([delta.fragment for delta in fragments]))
        else:
            yield from run
