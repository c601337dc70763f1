"""What became of each request: one record, told as one line of log and counted in metrics.

    telemetry = Telemetry()
    watch = telemetry.begin(request_id, "openai_chat")
    watch.mode, watch.dialect = "text", "hermes"
    watch.see(event); watch.sent(data)
    telemetry.finish(watch, 200)

What a watch gathers and a record tells stands in ``records``, what is counted in ``metrics``, and what may be told at
all in ``redaction``.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Final, TextIO

from toolglot.core.events import Event
from toolglot.core.redaction import make_printable, redact, redact_stream
from toolglot.gateway.telemetry.metrics import Metrics
from toolglot.gateway.telemetry.records import BODY_LENGTH, Clock, Record, RequestRecorder
from toolglot.reading.reader import collect

__all__ = ["RequestRecorder", "Telemetry", "log_to", "redact"]

REQUESTS: Final = "toolglot.requests"
BODIES: Final = "toolglot.bodies"


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

    def begin(self, request_id: str, wire: str) -> RequestRecorder:
        kept: list[bytes] | None = [] if self._log_bodies else None
        said: list[str] | None = [] if self._log_bodies else None
        return RequestRecorder(request_id, wire, self._now(), self._clock(), self._clock, kept=kept, said=said)

    def stream(self, watch: RequestRecorder) -> None:
        """The answer is a stream, and it is under way."""
        if not watch.stream:
            watch.stream = True
            self.metrics.streams.total += 1

    def finish(self, watch: RequestRecorder, status: int) -> Record:
        """Tell and count the record; a request that is finished stays as it is."""
        if watch.record is None:
            watch.record = watch.conclude(status)
            if watch.stream:
                self.metrics.streams.total -= 1
            self.metrics.count(watch.record)
            if watch.said:
                self.body(watch, "model", _encode("".join(watch.said)))
            if watch.kept is not None:
                self.body(watch, "answer", b"".join(watch.kept), watch.bytes)
            if watch.would is not None and watch.would.heard is not None:
                self.body(watch, "dry_run", self.describe_dry_run(watch.would.said or (), watch.would.heard))
            self._tell(watch.record)
        return watch.record

    def _tell(self, record: Record) -> None:
        if self._requests.isEnabledFor(logging.INFO):
            lines = _listening_alone(self._requests)
            if lines is None:
                self._requests.handle(_make_message(record))
            else:
                lines.tell(record)

    def body(self, watch: RequestRecorder, what: str, data: bytes, size: int | None = None) -> None:
        """Log a body if that was asked for; keys in it are blackened.

        ``what`` is ``request`` (of the client), ``upstream_request``, ``model`` (the model's own text), ``answer``
        (what the client got) or ``dry_run`` (the model's own text, and what the client would have got). ``size`` is
        that of the whole body, if ``data`` is only its beginning.
        """
        if self._log_bodies:
            blacken = redact_stream if watch.stream and what == "answer" else redact
            text = blacken(data[: 2 * BODY_LENGTH].decode("utf-8", "replace"), self._known_secrets)[:BODY_LENGTH]
            size = len(data) if size is None else size
            told = {"request_id": make_printable(watch.request_id), "what": what, "bytes": size, "body": text}
            self._bodies.info("%s", json.dumps(told, separators=(",", ":")))

    def describe_dry_run(self, said: Iterable[str], heard: Iterable[Event]) -> bytes:
        """The text that a dry run read and what it would have delivered, in no wire's words; each has a share of a
        body."""
        reading = collect(heard)
        calls = [{"name": call.name, "arguments": self.share(call.arguments)} for call in reading.calls]
        told = {"original": self.share("".join(said)), "text": self.share(reading.text), "calls": calls}
        return _encode(json.dumps(told, ensure_ascii=False))

    def share(self, text: str) -> str:
        """The beginning of a text; what is half of a key where it is cut was blackened before."""
        return redact(text[: 2 * BODY_LENGTH], self._known_secrets)[: BODY_LENGTH // 3]


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _make_message(record: Record) -> logging.LogRecord:
    """What a logger makes by itself, but for looking up the place in the code, which is always this one."""
    return logging.LogRecord(REQUESTS, logging.INFO, "", 0, record, (), None)


class JsonLines(logging.StreamHandler[TextIO]):
    """One line per message: JSON, or short for a person. A last look takes out what looks like a key."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.short = stream.isatty()

    def tell(self, record: Record) -> None:
        """Write it without the detour of a message."""
        with self.lock or nullcontext():
            try:
                self.stream.write(self.shape(record) + "\n")
                self.stream.flush()
            except Exception:
                self.handleError(_make_message(record))

    def shape(self, record: Record) -> str:
        return record.as_line() if self.short else str(record)

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.msg, Record):
            return self.shape(record.msg)
        message = redact(super().format(record))
        if self.short or message.startswith("{"):
            return message
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": when, "level": record.levelname.lower(), "message": message}, separators=(",", ":"))


def _listening_alone(log: logging.Logger) -> JsonLines | None:
    """The lines that all messages to this logger end in, if nobody else wants to see them."""
    above = log.parent
    if log.handlers or log.filters or not log.propagate or above is None or above.propagate:
        return None
    match above.handlers:
        case [JsonLines(filters=[], level=logging.NOTSET) as only]:
            return only
    return None


def log_to(stream: TextIO | None = None, level: str = "info") -> None:
    """Send the log of toolglot to a stream (standard error), from this level on: short lines on a terminal, JSON
    anywhere else."""
    logger = logging.getLogger("toolglot")
    logger.handlers[:] = [JsonLines(stream or sys.stderr)]
    logger.setLevel(level.upper())
    logger.propagate = False
    # nothing that is told here names a thread or a process, and to find that out costs every line
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
