"""Logs one record per request as one line, and counts it in the metrics.

    telemetry = Telemetry()
    recorder = telemetry.begin(request_id, "openai_chat")
    recorder.mode, recorder.dialect = "text", "hermes"
    recorder.observe(event); recorder.count_bytes(data)
    telemetry.finish(recorder, 200)

``recorder`` and ``record`` define what is collected, ``metrics`` the counters, ``core.redaction`` what may be logged.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TextIO

import msgspec

from toolglot.core.events import Event
from toolglot.core.redaction import redact, redact_stream
from toolglot.gateway.telemetry.metrics import Metrics
from toolglot.gateway.telemetry.record import Record
from toolglot.gateway.telemetry.recorder import BODY_LENGTH, Clock, RequestRecorder
from toolglot.gateway.telemetry.trace import Trace
from toolglot.reading.reader import collect
from toolglot.store.interface import BODY_KINDS

if TYPE_CHECKING:  # they need the event loop or the SDK, which most commands do not
    from toolglot.gateway.telemetry.otel import Tracer
    from toolglot.gateway.telemetry.record_writer import RecordWriter
    from toolglot.gateway.telemetry.worker_metrics import WorkerMetrics

__all__ = ["RequestRecorder", "Telemetry", "gather_lines", "log_to", "redact"]

REQUESTS: Final = "toolglot.requests"
BODIES: Final = "toolglot.bodies"
SENT: Final = "upstream_request"
GATHER_SECONDS: Final = 0.1
"""Seconds for which lines gather before they are written."""
ATOMIC_BYTES: Final = 4096
"""Bytes that a pipe takes as a whole, so that lines of several workers do not mix."""
CallLater = Callable[[float, Callable[[], None]], object]
"""Calls a function after some seconds, on the event loop."""


class Telemetry:
    """Creates, logs and counts the records of one process."""

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
        self._known_secrets = tuple(filter(None, known_secrets))
        self._requests = logging.getLogger(REQUESTS)
        self._bodies = logging.getLogger(BODIES)
        self.metrics = Metrics()
        self.writer: RecordWriter | None = None
        """Stores the records; None without a store."""
        self.workers: WorkerMetrics | None = None
        """The metrics of all workers; None if there is only this process."""
        self.tracer: Tracer | None = None
        """Makes OpenTelemetry spans; None if traces are off."""
        self.open: dict[int, RequestRecorder] = {}
        """The recorders of requests in progress, by their identity; for the console."""

    def begin(self, request_id: str, wire: str, owner: bytes = b"", key: str = "") -> RequestRecorder:
        recorder = RequestRecorder(request_id, wire, self._now(), self._clock(), self._clock, owner=owner, key=key)
        recorder.known_secrets = self._known_secrets
        stores_bodies = self.writer is not None and self.writer.collects_bodies
        if self._log_bodies or stores_bodies:
            recorder.body, recorder.model_text = [], []
        if self.writer is not None and stores_bodies:
            recorder.body_limit = max(recorder.body_limit, self.writer.body_limit)
            recorder.bodies, recorder.trace = {}, Trace(recorder.began, recorder.body_limit)
        self.open[id(recorder)] = recorder
        return recorder

    def stream(self, recorder: RequestRecorder) -> None:
        """Count a stream in flight."""
        if not recorder.stream:
            recorder.stream = True
            self.metrics.streams.total += 1

    def finish(self, recorder: RequestRecorder, status: int) -> Record:
        """Log and count the record, once per request."""
        if recorder.record is None:
            self.open.pop(id(recorder), None)
            recorder.record = recorder.conclude(status)
            if recorder.stream:
                self.metrics.streams.total -= 1
            self.metrics.count(recorder.record)
            if recorder.model_text:
                self.body(recorder, "model", _encode("".join(recorder.model_text)))
            if recorder.body is not None:
                self.body(recorder, "answer", b"".join(recorder.body), recorder.bytes or None)
            if recorder.trace is not None and recorder.trace.reasoning:
                self.body(recorder, "reasoning", _encode("".join(recorder.trace.reasoning)))
            dry_run = recorder.dry_run
            if self._log_bodies and dry_run is not None and dry_run.delivered is not None:
                self.body(recorder, "dry_run", self.describe_dry_run(dry_run.model_text or (), dry_run.delivered))
            self._log(recorder.record)
            if self.writer is not None:
                self.writer.enqueue(recorder)
            if self.tracer is not None:
                self.tracer.finish(recorder, recorder.record)
        return recorder.record

    def _log(self, record: Record) -> None:
        if self._requests.isEnabledFor(logging.INFO):
            output = _only_output(self._requests)
            if output is None:
                self._requests.handle(_make_message(record))
            else:
                output.write(record)

    def body(self, recorder: RequestRecorder, what: str, data: bytes, size: int | None = None) -> None:
        """Log a body if ``log_bodies`` is set, and keep it if bodies are stored; keys in it are redacted.

        ``what`` is ``request`` (of the client), ``upstream_request``, ``model`` (the model's own text), ``answer``
        (what the client got) or ``dry_run`` (the model's own text, and what the client would have got). ``size`` is
        the size of the complete body, if ``data`` is only its beginning.
        """
        if recorder.bodies is not None and what in BODY_KINDS:
            if what == SENT and SENT in recorder.bodies:  # the model is asked again
                recorder.bodies[f"{SENT}.{sum(kind.startswith(SENT) for kind in recorder.bodies)}"] = recorder.bodies[
                    SENT
                ]
            recorder.bodies[what] = data[: recorder.body_limit]
        if self._log_bodies:
            redact_text = redact_stream if recorder.stream and what == "answer" else redact
            text = data[: 2 * BODY_LENGTH].decode("utf-8", "replace")
            text = redact_text(text, (*self._known_secrets, *recorder.own_secrets))[:BODY_LENGTH]
            size = len(data) if size is None else size
            fields = {"request_id": recorder.clean(recorder.request_id)[0], "what": what, "bytes": size, "body": text}
            self._bodies.info("%s", json.dumps(fields, separators=(",", ":")))

    def describe_dry_run(self, original: Iterable[str], delivered: Iterable[Event]) -> bytes:
        """The text that a dry run read and what it would have delivered, in a wire-neutral form, each shortened."""
        reading = collect(delivered)
        calls = [{"name": call.name, "arguments": self.shorten(call.arguments)} for call in reading.calls]
        fields = {"original": self.shorten("".join(original)), "text": self.shorten(reading.text), "calls": calls}
        return _encode(json.dumps(fields, ensure_ascii=False))

    def shorten(self, text: str) -> str:
        """The beginning of a text, redacted before it is cut, so that no part of a key remains at the cut."""
        return redact(text[: 2 * BODY_LENGTH], self._known_secrets)[: BODY_LENGTH // 3]


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _make_message(record: Record) -> logging.LogRecord:
    """A log record as a logger would make it, without the costly lookup of the calling line."""
    return logging.LogRecord(REQUESTS, logging.INFO, "", 0, record, (), None)


class JsonLines(logging.StreamHandler[TextIO]):
    """Writes one line per message: JSON, or short text for a terminal. Redacts whatever looks like a key.

    With ``call_later`` a record that follows another one closely waits a moment, and is written together with those
    that end meanwhile. Any other message is written at once, after the records that wait.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.short = stream.isatty()
        self.call_later: CallLater | None = None
        self._waiting: list[Record] = []
        self._last_write = 0.0

    def write(self, record: Record) -> None:
        """Write a record directly, without a ``LogRecord``."""
        with self.lock or nullcontext():
            self._waiting.append(record)
            if self.call_later is None or time.monotonic() - self._last_write >= GATHER_SECONDS:
                self.write_waiting()
            elif len(self._waiting) == 1:
                self.call_later(GATHER_SECONDS, self.write_waiting)

    def emit(self, record: logging.LogRecord) -> None:
        self.write_waiting()
        super().emit(record)

    def write_waiting(self) -> None:
        """Write the records that wait."""
        with self.lock or nullcontext():
            waiting, self._waiting = self._waiting, []
            if not waiting:
                return
            self._last_write = time.monotonic()
            try:
                for lines in join_lines(map(self.encode_record, waiting)):
                    self.stream.write(lines.decode())
                    self.stream.flush()
            except Exception:
                self.handleError(_make_message(waiting[0]))

    def flush(self) -> None:
        self.write_waiting()
        super().flush()

    def encode_record(self, record: Record) -> bytes:
        return record.as_line().encode("utf-8", "replace") if self.short else msgspec.json.encode(record)

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.msg, Record):
            return self.encode_record(record.msg).decode()
        message = redact(super().format(record))
        if self.short or message.startswith("{"):
            return message
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": when, "level": record.levelname.lower(), "message": message}, separators=(",", ":"))


def join_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Texts of one or more lines, as long as they may be to be written as a whole."""
    joined: list[bytes] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if joined and size > ATOMIC_BYTES:
            yield b"\n".join((*joined, b""))
            joined, size = [], len(line) + 1
        joined.append(line)
    if joined:
        yield b"\n".join((*joined, b""))


@contextmanager
def gather_lines(call_later: CallLater) -> Iterator[None]:
    """Write the lines of requests that end shortly after each other together, within the context. A request that comes
    alone is logged at once, any other within ``GATHER_SECONDS``."""
    outputs = [output for output in logging.getLogger("toolglot").handlers if isinstance(output, JsonLines)]
    for output in outputs:
        output.call_later = call_later
    try:
        yield
    finally:
        for output in outputs:
            output.call_later = None
            output.write_waiting()


def _only_output(log: logging.Logger) -> JsonLines | None:
    """The ``JsonLines`` handler of a logger, if there are no other handlers and filters."""
    parent = log.parent
    if log.handlers or log.filters or not log.propagate or parent is None or parent.propagate:
        return None
    match parent.handlers:
        case [JsonLines(filters=[], level=logging.NOTSET) as only]:
            return only
    return None


def log_to(stream: TextIO | None = None, level: str = "info") -> None:
    """Log to a stream (default: standard error) from this level on: short lines on a terminal, JSON anywhere else."""
    logger = logging.getLogger("toolglot")
    logger.handlers[:] = [JsonLines(stream or sys.stderr)]
    logger.setLevel(level.upper())
    logger.propagate = False
    # no line shows a thread or a process, and looking them up costs time for every line
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
