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
from datetime import UTC, datetime
from typing import Final, TextIO

from toolglot.events import Event
from toolglot.metrics import CONTENT_TYPE, Metrics
from toolglot.reading import gather
from toolglot.records import BODY_LENGTH, Clock, Record, Watch
from toolglot.redaction import clean, redact

__all__ = ["CONTENT_TYPE", "Telemetry", "Watch", "log_to", "redact"]

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

    def begin(self, request_id: str, wire: str) -> Watch:
        kept: list[bytes] | None = [] if self._log_bodies else None
        return Watch(request_id, wire, self._now(), self._clock(), self._clock, kept=kept)

    def stream(self, watch: Watch) -> None:
        """The answer is a stream, and it is under way."""
        if not watch.stream:
            watch.stream = True
            self.metrics.streams.total += 1

    def finish(self, watch: Watch, status: int) -> Record:
        """Tell and count the record; a request that is finished stays as it is."""
        if watch.record is None:
            watch.record = watch.conclude(status)
            if watch.stream:
                self.metrics.streams.total -= 1
            self.metrics.count(watch.record)
            self.body(watch, "answer", b"".join(watch.kept or ()))
            if watch.would is not None and watch.would.heard is not None:
                self.body(watch, "dry_run", _write(watch.would.heard))
            self._tell(watch.record)
        return watch.record

    def _tell(self, record: Record) -> None:
        log = self._requests
        if log.isEnabledFor(logging.INFO):
            # what a logger does by itself, but for looking up the place in the code, which is always this one
            log.handle(logging.LogRecord(log.name, logging.INFO, "", 0, record, (), None))

    def body(self, watch: Watch, what: str, data: bytes) -> None:
        """Log a body, ``what`` being request, answer or dry_run, if that was asked for; keys in it are blackened."""
        if self._log_bodies:
            text = redact(data[: 2 * BODY_LENGTH].decode("utf-8", "replace"), self._known_secrets)
            told = {"request_id": clean(watch.request_id), "what": what, "bytes": len(data), "body": text[:BODY_LENGTH]}
            self._bodies.info("%s", json.dumps(told, separators=(",", ":")))

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus, of type ``CONTENT_TYPE``."""
        return self.metrics.render()


def _write(heard: Iterable[Event]) -> bytes:
    """What a dry run would have delivered, in no wire's words."""
    reading = gather(heard)
    calls = [{"name": call.name, "arguments": call.arguments} for call in reading.calls]
    return json.dumps({"text": reading.text, "calls": calls}, ensure_ascii=False).encode("utf-8", "surrogatepass")


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
    # nothing that is told here names a thread or a process, and to find that out costs every line
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
