"""What became of one request: a ``Watch`` while it runs, a ``Record`` once it is over.

*Strategy.* A watch is filled while the request runs and costs little; it becomes a frozen record once, at the end.
Whatever a client or a model chose (names, ids) is cut short and cleaned before it is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import msgspec

from toolglot.events import CallEnded, CallRejected, CallStarted, Event, Failed, Finished, Usage
from toolglot.redaction import tidy

BODY_LENGTH: Final = 64 << 10
OWN_ID: Final = re.compile("req_[0-9a-f]{24}")
"""An id that was made here; it need not be cleaned."""

Clock = Callable[[], float]
Bytes = bytes
"""The type, where a field has its name."""


class Record(msgspec.Struct, frozen=True):
    """What became of one request. Times are seconds; ``first_chunk`` is None when nothing was sent."""

    request_id: str
    time: float
    wire: str
    model: str
    upstream: str
    upstream_model: str
    mode: str
    dialect: str
    stream: bool
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
    usage: Usage | None
    error: str
    client_gone: bool

    def __str__(self) -> str:
        """One line of JSON for machines."""
        told = msgspec.structs.asdict(self)
        told["time"] = datetime.fromtimestamp(self.time, UTC).isoformat(timespec="milliseconds")
        told["usage"] = _count(self.usage) if self.usage else None
        return msgspec.json.encode(told).decode()

    def as_line(self) -> str:
        """One short line for a person."""
        when = datetime.fromtimestamp(self.time).astimezone().strftime("%H:%M:%S")
        manner = f"{self.mode}/{self.dialect}" if self.dialect else self.mode
        first = "" if self.first_chunk is None else f" first {self.first_chunk:.2f}s"
        said = {
            "calls": ", ".join(self.tools),
            "repairs": ", ".join(self.repairs),
            "rejected": ", ".join(self.rejected),
            "notes": "; ".join(self.notes),
            "error": self.error,
        }
        tail = "".join(f"  {what}: {words}" for what, words in said.items() if words)
        gone = "  client gone" if self.client_gone else ""
        model = self.model if self.upstream_model in ("", self.model) else f"{self.model} -> {self.upstream_model}"
        return f"{when} {self.status} {model or '-'} {manner or '-'} {self.duration:.2f}s{first}{tail}{gone}"


def _count(usage: Usage) -> dict[str, int]:
    return {name: getattr(usage, name) for name in ("input_tokens", "output_tokens", "total_tokens")}


@dataclass(slots=True)
class Watch:
    """A request under way: what its record will say, as far as it is known."""

    request_id: str
    wire: str
    time: float
    began: float
    clock: Clock = field(repr=False)
    model: str = ""
    upstream: str = ""
    upstream_model: str = ""
    mode: str = ""
    dialect: str = ""
    stream: bool = False
    calls: int = 0
    tools: list[str] = field(default_factory=list)
    read_as: list[str] = field(default_factory=list)
    repairs: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    chunks: int = 0
    bytes: int = 0
    first_chunk: float | None = None
    finish: str = ""
    usage: Usage | None = None
    error: str = ""
    client_gone: bool = False
    record: Record | None = None
    kept: list[Bytes] | None = None

    def sent(self, data: Bytes) -> None:
        """These bytes went to the client in one write."""
        if self.first_chunk is None:
            self.first_chunk = self.clock() - self.began
        self.chunks += 1
        self.bytes += len(data)
        if self.kept is not None and self.bytes <= 2 * BODY_LENGTH:
            self.kept.append(data)

    def see(self, event: Event) -> None:
        """Take note of an event of the answer; deltas say nothing here and need not be shown."""
        match event:
            case CallStarted(name=name):
                self.tools.append(name)
            case CallEnded(dialect=dialect, repairs=repairs):
                self.calls += 1
                self.repairs.extend(repairs)
                if dialect and dialect not in self.read_as:
                    self.read_as.append(dialect)
            case CallRejected(reason=reason):
                self.rejected.append(reason.value)
            case Finished(reason=reason, usage=usage):
                self.finish, self.usage = reason, usage or self.usage
            case Failed(kind=kind):
                self.error = kind

    def conclude(self, status: int) -> Record:
        """The record, with everything that others chose made fit to be told."""
        return Record(
            request_id=self.request_id if OWN_ID.fullmatch(self.request_id) else tidy(self.request_id),
            time=self.time,
            wire=self.wire,
            model=tidy(self.model),
            upstream=tidy(self.upstream),
            upstream_model=tidy(self.upstream_model),
            mode=self.mode,
            dialect=self.dialect,
            stream=self.stream,
            status=status,
            calls=self.calls,
            tools=tuple(map(tidy, self.tools)),
            read_as=tuple(self.read_as),
            repairs=tuple(self.repairs),
            rejected=tuple(self.rejected),
            notes=tuple(map(tidy, self.notes)),
            chunks=self.chunks,
            bytes=self.bytes,
            first_chunk=self.first_chunk,
            duration=self.clock() - self.began,
            finish=self.finish,
            usage=self.usage,
            error=tidy(self.error),
            client_gone=self.client_gone,
        )
