"""What became of one request: a ``RequestRecorder`` while it runs, a ``Record`` once it is over.

*Strategy.* A watch is filled while the request runs and costs little; it becomes a frozen record once, at the end.
Whatever a client or a model chose (names, ids) is cut short and cleaned before it is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import msgspec

from toolglot.config.rollout import LEAKED, LEFT, NATIVE_CALLS, NEAR_MISS, READING, RESCUE, SHELL, SUCCESS, XML, Arm
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
    TextDelta,
    Usage,
)
from toolglot.core.redaction import redact_printable

BODY_LENGTH: Final = 64 << 10
OWN_ID: Final = re.compile("req_[0-9a-f]{24}")
"""An id that was made here; it need not be cleaned."""

SHELL_DIALECT: Final = "shell_fence"
CHOSEN: Final = frozenset({Reason.LOW_CONFIDENCE, Reason.SWITCHED_OFF, Reason.UNKNOWN_TOOL, Reason.QUOTATION})
"""Why a call is left alone though it can be read: that is so wished."""
NO_ATTEMPT: Final = frozenset({Reason.FABRICATED_RESULT})

Clock = Callable[[], float]
Bytes = bytes
"""The type, where a field has its name."""


Outcomes = Mapping[str, Mapping[str, int]]
"""For each transformation how often it came to which end: success, or the reason of a call that was not delivered."""


class DryRunResult(msgspec.Struct, frozen=True):
    """What a dry run would have delivered."""

    calls: int
    tools: tuple[str, ...]
    read_as: tuple[str, ...]
    repairs: tuple[str, ...]
    rejected: tuple[str, ...]
    confidences: tuple[float, ...]
    outcomes: Outcomes
    error: str


class Record(msgspec.Struct, frozen=True):
    """What became of one request. ``time`` is when it began, ``first_chunk`` (if any) and ``duration`` count seconds.

    ``arms`` are those of the transformations that the request met, ``conversation`` is what they were drawn by.
    ``transformed`` are the tools of calls made out of text, ``complaints`` are the client's of the answer before.
    ``offered`` counts the tools of the request, ``stripped`` those of them that the model was not told of.
    """

    request_id: str
    time: str
    wire: str
    model: str
    upstream: str
    upstream_model: str
    mode: str
    dialect: str
    client: str
    stream: bool
    offered: int
    stripped: int
    status: int
    calls: int
    tools: tuple[str, ...]
    read_as: tuple[str, ...]
    repairs: tuple[str, ...]
    rejected: tuple[str, ...]
    notes: tuple[str, ...]
    chunks: int
    bytes: int
    first_chunk: float | None
    duration: float
    finish: str
    usage: Mapping[str, int] | None
    error: str
    client_gone: bool
    conversation: str
    arms: Mapping[str, str]
    outcomes: Outcomes
    transformed: tuple[str, ...]
    confidences: tuple[float, ...]
    complaints: tuple[str, ...]
    would: DryRunResult | None

    @property
    def answered(self) -> bool:
        """Whether the client got an answer, and not an error instead."""
        return self.status < 400

    def __str__(self) -> str:
        """One line of JSON for machines."""
        return msgspec.json.encode(self).decode()

    def as_line(self) -> str:
        """One short line for a person."""
        when = datetime.fromisoformat(self.time).astimezone().strftime("%H:%M:%S")
        manner = f"{self.mode}/{self.dialect}" if self.dialect else self.mode
        manner += f" for {self.client}" if self.client else ""
        first = "" if self.first_chunk is None else f" first {self.first_chunk:.2f}s"
        said = {
            "stripped": f"{self.stripped} of {self.offered} tools" if self.stripped else "",
            "calls": ", ".join(self.tools),
            "repairs": ", ".join(self.repairs),
            "rejected": ", ".join(self.rejected),
            "notes": "; ".join(self.notes),
            "error": self.error,
            "arms": ", ".join(f"{name} {arm}" for name, arm in self.arms.items() if arm != Arm.ON),
            "would call": ", ".join(self.would.tools) if self.would else "",
            "client complains": ", ".join(self.complaints),
        }
        tail = "".join(f"  {what}: {words}" for what, words in said.items() if words)
        gone = "  client gone" if self.client_gone else ""
        model = self.model if self.upstream_model in ("", self.model) else f"{self.model} -> {self.upstream_model}"
        return f"{when} {self.status} {model or '-'} {manner or '-'} {self.duration:.2f}s{first}{tail}{gone}"


def _count(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }


def _write_time(seconds: float) -> str:
    millis = round(seconds * 1e6) // 1000
    return f"{_write_second(millis // 1000)}.{millis % 1000:03}+00:00"


@lru_cache(maxsize=16)
def _write_second(second: int) -> str:
    """Many requests begin in the same second."""
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}"


class RequestRecorder(msgspec.Struct):
    """A request under way: what its record will say, as far as it is known."""

    request_id: str
    wire: str
    time: float
    began: float
    clock: Clock
    model: str = ""
    upstream: str = ""
    upstream_model: str = ""
    mode: str = ""
    dialect: str = ""
    client: str = ""
    """The profile of an XML client; empty for all others."""
    stream: bool = False
    offered: int = 0
    stripped: int = 0
    calls: int = 0
    tools: list[str] = []
    read_as: list[str] = []
    repairs: list[str] = []
    rejected: list[str] = []
    notes: list[str] = []
    chunks: int = 0
    bytes: int = 0
    first_chunk: float | None = None
    finish: str = ""
    usage: Usage | None = None
    error: str = ""
    client_gone: bool = False
    conversation: str = ""
    arms: dict[str, str] = {}
    outcomes: dict[str, dict[str, int]] = {}
    transformed: list[str] = []
    confidences: list[float] = []
    complaints: list[str] = []
    would: RequestRecorder | None = None
    dry: bool = False
    """Whether it watches a dry run."""
    open: dict[int, str] = {}
    heard: list[Event] | None = None
    said: list[str] | None = None
    """The text of the model itself, if bodies are logged."""
    heard_length: int = 0
    told_lengths: dict[type, int] = {}
    record: Record | None = None
    kept: list[Bytes] | None = None

    def sent(self, data: Bytes) -> None:
        """These bytes went to the client in one write."""
        if self.first_chunk is None:
            self.first_chunk = self.clock() - self.began
        self.chunks += 1
        if self.kept is not None and self.bytes < 2 * BODY_LENGTH:
            self.kept.append(data[: 2 * BODY_LENGTH - self.bytes])
        self.bytes += len(data)

    def hear(self, events: Iterable[Event]) -> None:
        """Keep the model's own text, as far as a log shows it."""
        if self.said is not None and self.heard_length <= 2 * BODY_LENGTH:
            texts = [event.text for event in events if isinstance(event, TextDelta)]
            self.said += texts
            self.heard_length += sum(map(len, texts))

    def hear_told(self, told: Iterable[Event]) -> None:
        """Keep what a dry run would have delivered: every call, and as much of text and arguments as a log shows."""
        if self.heard is None:
            return
        for event in told:
            size = len(event.fragment) if isinstance(event, CallArguments) else 0
            size = len(event.text) if isinstance(event, TextDelta | ReasoningDelta) else size
            if size:
                kind, room = type(event), 2 * BODY_LENGTH
                if self.told_lengths.get(kind, 0) > room:
                    continue
                self.told_lengths[kind] = self.told_lengths.get(kind, 0) + size
            self.heard.append(event)

    def see(self, event: Event) -> None:
        """Take note of an event of the answer; deltas say nothing here and need not be shown."""
        match event:
            case CallStarted(index=index, name=name):
                self.tools.append(name)
                self.open[index] = name
            case CallEnded(index=index, dialect=dialect):
                self.calls += 1
                name = self.open.pop(index, "")
                if dialect:
                    self.read(event, name)
                else:
                    self.count_native()
            case CallRejected():
                self.reject(event)
            case Finished(reason=reason, usage=usage):
                self.finish, self.usage = reason, usage or self.usage
            case Failed(kind=kind):
                self.error = kind

    def read(self, ended: CallEnded, name: str) -> None:
        """A call was made out of text."""
        self.repairs.extend(ended.repairs)
        if not self.client:  # what a client gets as XML is told when it has been written
            self.transformed.append(name)
        self.confidences.append(ended.confidence)
        if ended.dialect not in self.read_as:
            self.read_as.append(ended.dialect)
        transformation = self.transformation(ended.dialect)
        if transformation != SHELL:
            self.count_native(LEAKED)
        if transformation != XML:  # those are counted when they are rendered
            self.count(transformation)

    def reject(self, rejected: CallRejected) -> None:
        """A call was not delivered. Without a dialect it is one that the upstream made itself."""
        reason = rejected.reason
        self.rejected.append(reason.value)
        if reason in NO_ATTEMPT:
            return
        if rejected.dialect or self.dry or self.mode != NATIVE_CALLS:
            self.count(self.transformation(rejected.dialect), reason.value)
        else:
            self.count_native(reason.value)

    def count_native(self, outcome: str = SUCCESS) -> None:
        """An upstream with native tools set out to make a call; what a dry run reads says nothing of that."""
        if self.mode == NATIVE_CALLS and not self.dry:
            self.count(NATIVE_CALLS, outcome)

    def leave(self, dialect: str, reason: Reason) -> None:
        """A call could be read and stays text: because that is so wished, or because its arguments do not fit."""
        chosen = LEFT if reason is Reason.EXTRA_CALL else reason.value if reason in CHOSEN else NEAR_MISS
        self.count(self.transformation(dialect), chosen)

    def miss(self, dialect: str) -> None:
        """Text was meant as a call and could not be read as one."""
        self.count(self.transformation(dialect), NEAR_MISS)

    def transformation(self, dialect: str) -> str:
        if dialect == SHELL_DIALECT:
            return SHELL
        return XML if self.client else READING if self.mode == "text" else RESCUE

    def count(self, transformation: str, outcome: str = SUCCESS, times: int = 1) -> None:
        """A transformation came to an end: success, or the reason why not."""
        if times:
            ends = self.outcomes.setdefault(transformation, {})
            ends[outcome] = ends.get(outcome, 0) + times

    def rehearse(self, mode: str, client: str = "") -> RequestRecorder:
        """A watch for what would be delivered; its findings are told as ``would``."""
        self.would = RequestRecorder(
            self.request_id, self.wire, self.time, self.began, self.clock, mode=mode, client=client, dry=True
        )
        if self.kept is not None:
            self.would.heard, self.would.said = [], []
        return self.would

    def rehearsed(self) -> DryRunResult:
        return DryRunResult(
            calls=self.calls,
            tools=tuple(map(redact_printable, self.tools)),
            read_as=tuple(self.read_as),
            repairs=tuple(self.repairs),
            rejected=tuple(self.rejected),
            confidences=tuple(self.confidences),
            outcomes=self.outcomes,
            error=redact_printable(self.error),
        )

    def forget(self) -> None:
        """What was seen so far is not delivered."""
        self.calls = 0
        for seen in (self.tools, self.read_as, self.repairs, self.rejected, self.transformed, self.confidences):
            seen.clear()
        self.outcomes.clear()
        self.open.clear()

    def conclude(self, status: int) -> Record:
        """The record, with everything that others chose made fit to be told."""
        return Record(  # in order: it takes twice as long to name all fields
            self.request_id if OWN_ID.fullmatch(self.request_id) else redact_printable(self.request_id),
            _write_time(self.time),
            self.wire,
            redact_printable(self.model),
            redact_printable(self.upstream),
            redact_printable(self.upstream_model),
            self.mode,
            self.dialect,
            self.client,
            self.stream,
            self.offered,
            self.stripped,
            status,
            self.calls,
            tuple(map(redact_printable, self.tools)),
            tuple(self.read_as),
            tuple(self.repairs),
            tuple(self.rejected),
            tuple(map(redact_printable, self.notes)),
            self.chunks,
            self.bytes,
            self.first_chunk,
            self.clock() - self.began,
            self.finish,
            _count(self.usage) if self.usage else None,
            redact_printable(self.error),
            self.client_gone,
            self.conversation,
            self.arms,
            self.outcomes,
            tuple(map(redact_printable, self.transformed)),
            tuple(self.confidences),
            tuple(self.complaints),
            self.would.rehearsed() if self.would else None,
        )
