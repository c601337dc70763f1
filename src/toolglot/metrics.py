"""The records, counted for Prometheus. Labels come from sets that cannot grow without bound."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from toolglot.records import Record
from toolglot.rollout import SUCCESS, UNTOUCHED, Arm

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
LABELS: Final = 100
KNOWN: Final = 1000
OTHER: Final = "other"
FIRST_CHUNK_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
DURATION_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
CONFIDENCE_BUCKETS: Final = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99, 1.0)
ARM: Final = ("transformation", "arm")

M = TypeVar("M", Counter, Histogram)


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
        self.first_chunk = histogram(
            "toolglot_first_chunk_seconds", "Time to the first chunk.", FIRST_CHUNK_BUCKETS, "mode"
        )
        self.duration = histogram(
            "toolglot_request_seconds", "Time to the end of the answer.", DURATION_BUCKETS, "mode"
        )
        self.answers = counter("toolglot_answers", "Answers that a transformation met.", *ARM)
        self.transformed = counter("toolglot_answers_transformed", "Answers in which it made a call.", *ARM)
        self.attempts = counter("toolglot_attempts", "Calls it tried to make, by how that ended.", *ARM, "outcome")
        self.tools = counter("toolglot_tools_transformed", "Calls it made, by tool.", *ARM, "tool")
        self.complaints = counter("toolglot_complaints", "What clients said of the answer before.", *ARM, "complaint")
        self.confidence = histogram("toolglot_confidence", "Confidence of calls it made.", CONFIDENCE_BUCKETS, *ARM)

    def _counter(self, name: str, tells: str, *labels: str) -> Counter:
        return Counter(name, tells, labels, registry=self.registry)

    def _histogram(self, name: str, tells: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, tells, labels, buckets=buckets, registry=self.registry)

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
        for transformation, arm in (record.arms or UNTOUCHED).items():
            self.compare(record, transformation, arm)

    def compare(self, record: Record, transformation: str, arm: str) -> None:
        """Count what one transformation did, or would have done in a dry run."""
        group = {"transformation": transformation, "arm": arm}
        if record.answered:
            self._of(self.answers, **group).inc()
        for complaint in record.complaints:
            self._of(self.complaints, **group, complaint=complaint).inc()
        would = record.would if arm == Arm.DRY_RUN else None
        ends = (would or record).outcomes.get(transformation, {})
        for outcome, times in ends.items():
            self._of(self.attempts, **group, outcome=outcome).inc(times)
        if SUCCESS in ends:
            self._of(self.transformed, **group).inc()
            for confidence in (would or record).confidences:
                self._of(self.confidence, **group).observe(confidence)
            for tool in would.tools if would else record.transformed:
                self._of(self.tools, **group, tool=tool).inc()

    def render(self) -> bytes:
        """All of them in the text format of Prometheus, of type ``CONTENT_TYPE``."""
        return generate_latest(self.registry)
