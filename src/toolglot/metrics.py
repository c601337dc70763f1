"""The records, counted for Prometheus. Labels come from sets that cannot grow without bound."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from toolglot.records import Record

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
LABELS: Final = 100
KNOWN: Final = 1000
OTHER: Final = "other"
FIRST_CHUNK_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
DURATION_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)

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

    def render(self) -> bytes:
        """All of them in the text format of Prometheus, of type ``CONTENT_TYPE``."""
        return generate_latest(self.registry)
