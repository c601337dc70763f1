"""What became of each request: one record, told as one line of log and counted in metrics.

    telemetry = Telemetry()
    watch = telemetry.begin(request_id, "openai_chat")
    watch.mode, watch.dialect = "text", "hermes"
    watch.see(event); watch.sent(data)
    telemetry.finish(watch, 200)

*Strategy.* A ``Watch`` is filled while the request runs and costs little; it becomes a frozen ``Record`` once, at the
end. Whatever a client or a model chose (names, ids) is cut short and cleaned before it is told, and labels of metrics
come from sets that cannot grow without bound.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, TextIO, TypeVar

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from toolglot.events import CallEnded, CallRejected, CallStarted, Event, Failed, Finished, Usage

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
REQUESTS: Final = "toolglot.requests"
BODIES: Final = "toolglot.bodies"
MASK: Final = "***"
NAME_LENGTH: Final = 200
BODY_LENGTH: Final = 64 << 10
LABELS: Final = 100
KNOWN: Final = 1000
OTHER: Final = "other"
FIRST_CHUNK_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
DURATION_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)

Clock = Callable[[], float]
M = TypeVar("M", Counter, Histogram)
Bytes = bytes
"""The type, where a field has its name."""

NAMED: Final = re.compile(
    r"""(?ix) (?P<kept> (?:authorization|(?:x-)?api[-_]?key|(?:access|auth|refresh)[-_]?token|password|secret)
    (?:\\*["'])? \s*[:=]\s* (?:\\*["'])? (?:(?:bearer|basic)\s+)? ) [^\s"'\\,;}\]&]+"""
)
BORNE: Final = re.compile(r"(?i)(?P<kept>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}")
SHAPED: Final = re.compile(
    r"""(?x) (?P<kept> (?<![A-Za-z0-9]) ) (?:
    (?:sk|pk|rk|gsk|xai|hf|gh[a-z]|github_pat|glpat|xox[a-z])[-_][A-Za-z0-9_-]{8,}
    | AIza[\w-]{20,} | AKIA[A-Z0-9]{12,} | eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)? )"""
)
CREDENTIALS: Final = re.compile(r"(?P<kept>://)[^/\s:@\"]+:[^/\s@\"]+@")

SECRETS: Final[tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]] = (
    (("api", "auth", "access", "refresh", "password", "secret"), NAMED),
    (("bearer", "basic"), BORNE),
    ((), SHAPED),
    (("://",), CREDENTIALS),
)
"""What looks like a secret, and the words one of which must be there before it is worth a look; none: how it begins."""


_MAYBE_SHAPED = re.compile(r"(?:sk|pk|rk|gsk|xai|hf|gh[a-z]|github_pat|glpat|xox[a-z])[-_]|AIza|AKIA|eyJ")
"""How a key begins that is known by its shape: far quicker to look for than the whole of it."""


def redact(text: str, known: Iterable[str] = ()) -> str:
    """The text with everything that is, or looks like, a key blackened."""
    for secret in known:
        if secret:
            text = text.replace(secret, MASK)
    small = text.lower()
    for words, pattern in SECRETS:
        if any(word in small for word in words) if words else _MAYBE_SHAPED.search(text):
            text = pattern.sub(rf"\g<kept>{MASK}", text)
    return text


def clean(text: str) -> str:
    """A text that others chose, fit for a line of log: short and printable."""
    short = text if len(text) <= NAME_LENGTH else text[: NAME_LENGTH - 1] + "…"
    return short if short.isprintable() else "".join(char if char.isprintable() else "?" for char in short)


@lru_cache(maxsize=4096)
def _tidy(text: str) -> str:
    """The same without keys. Names of models and tools, and most notes, come again with every request."""
    return clean(redact(text))


@dataclass(frozen=True, slots=True)
class Record:
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
        told = {name: getattr(self, name) for name in self.__slots__}
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
            request_id=_tidy(self.request_id),
            time=self.time,
            wire=self.wire,
            model=_tidy(self.model),
            upstream=_tidy(self.upstream),
            upstream_model=_tidy(self.upstream_model),
            mode=self.mode,
            dialect=self.dialect,
            stream=self.stream,
            status=status,
            calls=self.calls,
            tools=tuple(map(_tidy, self.tools)),
            read_as=tuple(self.read_as),
            repairs=tuple(self.repairs),
            rejected=tuple(self.rejected),
            notes=tuple(map(_tidy, self.notes)),
            chunks=self.chunks,
            bytes=self.bytes,
            first_chunk=self.first_chunk,
            duration=self.clock() - self.began,
            finish=self.finish,
            usage=self.usage,
            error=_tidy(self.error),
            client_gone=self.client_gone,
        )


class Labels:
    """Keeps the values of one label few: when there are too many, further ones are ``other``."""

    def __init__(self, limit: int = LABELS) -> None:
        self.limit = limit
        self.known: set[str] = set()

    def __call__(self, value: object) -> str:
        label = str(value)
        if label not in self.known:
            if len(self.known) >= self.limit:
                return OTHER
            self.known.add(label)
        return label


class Metrics:
    """The records, counted for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.labels: dict[str, Labels] = {}
        self.known: dict[tuple[object, ...], Any] = {}
        counter, histogram = self._counter, self._histogram
        self.requests = counter("toolglot_requests", "Requests answered.", "status", "mode", "dialect")
        self.calls = counter("toolglot_calls", "Tool calls delivered.", "dialect")
        self.repairs = counter("toolglot_repairs", "Repairs made while calls were read.", "repair")
        self.rejections = counter("toolglot_rejections", "Calls that were not delivered.", "reason")
        self.errors = counter("toolglot_errors", "Requests that failed.", "kind")
        self.gone = counter("toolglot_clients_gone", "Requests whose client left before the end.")
        self.streams = Gauge("toolglot_streams_in_flight", "Streams under way.", registry=self.registry)
        self.first_chunk = histogram("toolglot_first_chunk_seconds", "Time to the first chunk.", FIRST_CHUNK_BUCKETS)
        self.duration = histogram("toolglot_request_seconds", "Time to the end of the answer.", DURATION_BUCKETS)

    def _counter(self, name: str, tells: str, *labels: str) -> Counter:
        return Counter(name, tells, labels, registry=self.registry)

    def _histogram(self, name: str, tells: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, tells, ("mode",), buckets=buckets, registry=self.registry)

    def _of(self, metric: M, **values: object) -> M:
        """The metric for these labels. The few there are come again and again."""
        key = (metric, *values.values())
        found: M | None = self.known.get(key)
        if found is None:
            labels = {name: self.labels.setdefault(name, Labels())(value) for name, value in values.items()}
            found = metric.labels(**labels)
            if len(self.known) < KNOWN:
                self.known[key] = found
        return found

    def count(self, record: Record) -> None:
        mode, dialect = record.mode or "none", record.dialect or "none"
        self._of(self.requests, status=record.status, mode=mode, dialect=dialect).inc()
        if record.calls:
            self._of(self.calls, dialect=dialect).inc(record.calls)
        for repair in record.repairs:
            self._of(self.repairs, repair=repair).inc()
        for reason in record.rejected:
            self._of(self.rejections, reason=reason).inc()
        if record.error:
            self._of(self.errors, kind=record.error).inc()
        if record.client_gone:
            self.gone.inc()
        if record.first_chunk is not None:
            self._of(self.first_chunk, mode=mode).observe(record.first_chunk)
        self._of(self.duration, mode=mode).observe(record.duration)


class Telemetry:
    """Begins, finishes, tells and counts the records of one process."""

    def __init__(
        self,
        *,
        now: Clock = time.time,
        clock: Clock = time.monotonic,
        log_bodies: bool = False,
        known_secrets: Iterable[str] = (),
    ) -> None:
        self._now = now
        self._clock = clock
        self._log_bodies = log_bodies
        self._known_secrets = tuple(known_secrets)
        self._requests = logging.getLogger(REQUESTS)
        self._bodies = logging.getLogger(BODIES)
        self.metrics = Metrics()

    def begin(self, request_id: str, wire: str) -> Watch:
        kept: list[bytes] | None = [] if self._log_bodies else None
        return Watch(request_id, wire, self._now(), self._clock(), self._clock, kept=kept)

    def stream(self, watch: Watch) -> None:
        """The answer is a stream, and it is under way."""
        if not watch.stream:
            watch.stream = True
            self.metrics.streams.inc()

    def finish(self, watch: Watch, status: int) -> Record:
        """Tell and count the record; a request that is finished stays as it is."""
        if watch.record is None:
            watch.record = watch.conclude(status)
            if watch.stream:
                self.metrics.streams.dec()
            self.metrics.count(watch.record)
            self.body(watch, "answer", b"".join(watch.kept or ()))
            self._tell(watch.record)
        return watch.record

    def _tell(self, record: Record) -> None:
        log = self._requests
        if log.isEnabledFor(logging.INFO):
            # what a logger does by itself, but for looking up the place in the code, which is always this one
            log.handle(logging.LogRecord(log.name, logging.INFO, "", 0, record, (), None))

    def body(self, watch: Watch, what: str, data: bytes) -> None:
        """Log a body, ``what`` being request or answer, if that was asked for; keys in it are blackened."""
        if self._log_bodies:
            text = redact(data[: 2 * BODY_LENGTH].decode("utf-8", "replace"), self._known_secrets)
            told = {"request_id": clean(watch.request_id), "what": what, "bytes": len(data), "body": text[:BODY_LENGTH]}
            self._bodies.info("%s", json.dumps(told, separators=(",", ":")))

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus, of type ``CONTENT_TYPE``."""
        return generate_latest(self.metrics.registry)


class Lines(logging.Formatter):
    """One line per message: JSON, or short for a person. A last look takes out what looks like a key."""

    def __init__(self, short: bool) -> None:
        super().__init__()
        self.short = short

    def format(self, record: logging.LogRecord) -> str:
        told = record.msg
        if isinstance(told, Record):
            return told.as_line() if self.short else str(told)
        message = redact(super().format(record))
        if self.short or message.startswith("{"):
            return message
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": when, "level": record.levelname.lower(), "message": message}, separators=(",", ":"))


def log_to(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Send the log of toolglot to a stream (standard error): short lines on a terminal, JSON anywhere else."""
    stream = stream or sys.stderr
    output = logging.StreamHandler(stream)
    output.setFormatter(Lines(short=stream.isatty()))
    logger = logging.getLogger("toolglot")
    logger.handlers[:] = [output]
    logger.setLevel(level)
    logger.propagate = False
