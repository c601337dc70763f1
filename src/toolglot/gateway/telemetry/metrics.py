"""Counts records for Prometheus. The values of every label are bounded.

*Strategy.* Requests are frequent, scrapes are rare. So counting is one dictionary lookup and one addition; the samples
for Prometheus are made from these numbers when it scrapes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from time import time
from typing import Final, TypeVar

from toolglot.config.rollout import DRY_RUN, NATIVE_CALLS, ON, SUCCESS, UNTOUCHED
from toolglot.core.errors import ToolglotError
from toolglot.gateway.telemetry.faults import MODEL_FAILURES
from toolglot.gateway.telemetry.record import Record

LABELS: Final = 100
KNOWN: Final = 1000
OTHER: Final = "other"
FIRST_CHUNK_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
DURATION_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
OVERHEAD_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1)
CONFIDENCE_BUCKETS: Final = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99, 1.0)
ARM: Final = ("transformation", "arm")
FIRST_ERROR: Final = 400
"""The lowest status with which the client got an error instead of an answer."""


def _list_codes(kind: type[ToolglotError]) -> Iterator[str]:
    yield kind.code
    for below in kind.__subclasses__():
        yield from _list_codes(below)


OWN_FAILURES: Final = MODEL_FAILURES | {
    "rehearsal_failed",
    "upstream_closed",
    "upstream_invalid",
    "upstream_key_refused",
    "upstream_key_missing",
    "client_key_refused",
}
UPSTREAM_FAILURES: Final = (
    "api_error authentication_error bad_request billing_error conflict_error content_filter context_length_exceeded"
    " insufficient_quota internal_error internal_server_error invalid_api_key invalid_prompt invalid_request_error"
    " model_not_found not_found_error overloaded overloaded_error permission_error rate_limit_error"
    " rate_limit_exceeded request_too_large server_error timeout_error unsupported_parameter unsupported_value"
    " ABORTED DEADLINE_EXCEEDED INTERNAL INVALID_ARGUMENT NOT_FOUND PERMISSION_DENIED RESOURCE_EXHAUSTED"
    " UNAUTHENTICATED UNAVAILABLE UNIMPLEMENTED API_KEY_INVALID RATE_LIMIT_EXCEEDED 400 401 403 404 429 500 503"
)
"""Known error codes of the servers of all wires."""

ALLOWED: Final[Mapping[str, Collection[str] | re.Pattern[str]]] = {
    "kind": frozenset((*_list_codes(ToolglotError), *OWN_FAILURES, *UPSTREAM_FAILURES.split())),
    "status": frozenset(map(str, range(100, 600))),
    "tool": re.compile(r"[A-Za-z_][\w.:-]{0,63}", re.ASCII),
}
"""The values that a label can have, where clients, models or upstreams choose them."""

Samples = Iterator[tuple[str, Mapping[str, str], float]]
"""Suffix of the metric name, additional labels, value."""


class Labels:
    """Bounds the values of one label: a value that is not allowed, or exceeds the limit, becomes ``other``.

    ``allowed`` are all possible values, or a pattern for them; None if they come from toolglot's own code.
    """

    def __init__(self, limit: int = LABELS, allowed: Collection[str] | re.Pattern[str] | None = None) -> None:
        self.limit = limit
        self.allowed = allowed
        self.known: set[str] = set()

    def __call__(self, value: object) -> str:
        label = str(value)
        if label not in self.known:
            if len(self.known) >= self.limit or not self.allows(label):
                return OTHER
            self.known.add(label)
        return label

    def allows(self, label: str) -> bool:
        if isinstance(self.allowed, re.Pattern):
            return self.allowed.fullmatch(label) is not None
        return self.allowed is None or label in self.allowed


class Count:
    """A counter, or a gauge with an empty suffix."""

    __slots__ = ("ending", "total")

    def __init__(self, ending: str = "_total") -> None:
        self.ending = ending
        self.total = 0

    def samples(self) -> Samples:
        yield self.ending, {}, self.total


class Histogram:
    """How many amounts there were up to each bound, and their sum."""

    __slots__ = ("bounds", "buckets", "sum")

    def __init__(self, *bounds: float) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, amount: float) -> None:
        self.sum += amount
        self.buckets[bisect_left(self.bounds, amount)] += 1

    def samples(self) -> Samples:
        total = 0
        for bound, times in zip((*map(float, self.bounds), "+Inf"), self.buckets, strict=True):
            total += times
            yield "_bucket", {"le": str(bound)}, total
        yield "_count", {}, total
        yield "_sum", {}, self.sum


C = TypeVar("C", Count, Histogram)


class Family(dict[tuple[object, ...], C]):
    """One metric: its counters by the raw label values of records; a missing counter is created on lookup.

    ``children`` has the counters by their bounded label values (many values share ``other``), with their start times.
    """

    def __init__(self, kind: str, name: str, help_: str, make: Callable[[], C], labels: Mapping[str, Labels]) -> None:
        super().__init__()
        self.kind = kind
        self.name = name
        self.help = help_
        self.make: Callable[[], C] = make
        self.labels = labels
        self.children: dict[tuple[str, ...], tuple[C, float]] = {}

    def __missing__(self, values: tuple[object, ...]) -> C:
        counted = self.find(tuple(label(value) for label, value in zip(self.labels.values(), values, strict=True)))
        if len(self) < KNOWN:
            self[values] = counted
        return counted

    def find(self, bounded: tuple[str, ...], since: float | None = None) -> C:
        """The counter with these bounded label values; it is created if there is none, with its start time."""
        if bounded not in self.children:
            self.children[bounded] = self.make(), time() if since is None else since
        return self.children[bounded][0]


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        self.labels: dict[str, Labels] = {}
        self.families: list[Family[Count] | Family[Histogram]] = []
        counter, histogram = self._counter, self._histogram
        self.requests = counter("toolglot_requests", "Requests answered.", "status", "mode", "dialect")
        self.outcomes = counter("toolglot_outcomes", "Requests by their end and who was at fault.", "outcome", "fault")
        self.calls = counter("toolglot_calls", "Tool calls delivered.", "dialect")
        self.repairs = counter("toolglot_repairs", "Repairs made while parsing calls.", "repair")
        self.rejections = counter("toolglot_rejections", "Calls that were not delivered.", "reason")
        self.errors = counter("toolglot_errors", "Requests that failed.", "kind")
        self.gone = counter("toolglot_clients_gone", "Requests whose client disconnected before the end.")[()]
        self.streams = self._gauge("toolglot_streams_in_flight", "Streams in flight.")[()]
        self.open = self._gauge("toolglot_requests_open", "Model requests being answered.")[()]
        self.queued = self._gauge("toolglot_requests_queued", "Model requests waiting for a free slot.")[()]
        self.refused = counter("toolglot_requests_refused", "Requests refused by admission control.", "reason")
        self.records_queued = self._gauge("toolglot_records_queued", "Records waiting to be stored.")[()]
        self.records_dropped = counter("toolglot_records_dropped", "Records that were not stored.", "reason")
        self.kept_dropped = counter("toolglot_kept_values_dropped", "Kept values that were not stored.")[()]
        self.store_available = self._gauge("toolglot_store_available", "Processes in which the store works.")[()]
        self.first_chunk = histogram(
            "toolglot_first_chunk_seconds", "Time to the first chunk.", FIRST_CHUNK_BUCKETS, "mode"
        )
        self.duration = histogram(
            "toolglot_request_seconds", "Time to the end of the answer.", DURATION_BUCKETS, "mode"
        )
        self.overhead = histogram(
            "toolglot_overhead_seconds", "Time that the gateway itself took.", OVERHEAD_BUCKETS, "mode"
        )
        self.answers = counter("toolglot_answers", "Answers subject to a transformation.", *ARM)
        self.transformed = counter("toolglot_answers_transformed", "Answers with at least one transformed call.", *ARM)
        self.attempts = counter("toolglot_attempts", "Attempts to transform a call, by outcome.", *ARM, "outcome")
        self.tools = counter("toolglot_tools_transformed", "Transformed calls, by tool.", *ARM, "tool")
        self.complaints = counter(
            "toolglot_complaints", "Complaints of clients about the previous answer.", *ARM, "complaint"
        )
        self.confidence = histogram("toolglot_confidence", "Confidence of transformed calls.", CONFIDENCE_BUCKETS, *ARM)

    def _counter(self, name: str, help_: str, *labels: str) -> Family[Count]:
        return self._add(Family("counter", name, help_, Count, self._labels(labels)))

    def _gauge(self, name: str, help_: str, *labels: str) -> Family[Count]:
        return self._add(Family("gauge", name, help_, partial(Count, ""), self._labels(labels)))

    def _histogram(self, name: str, help_: str, bounds: tuple[float, ...], *labels: str) -> Family[Histogram]:
        return self._add(Family("histogram", name, help_, partial(Histogram, *bounds), self._labels(labels)))

    def _labels(self, names: tuple[str, ...]) -> dict[str, Labels]:
        """The labels of a metric; metrics share the bounds of a label of the same name."""
        return {name: self.labels.setdefault(name, Labels(allowed=ALLOWED.get(name))) for name in names}

    def _add(self, family: Family[C]) -> Family[C]:
        self.families.append(family)
        return family

    def count(self, record: Record) -> None:
        """Count one record (once per request)."""
        mode, dialect = record.mode or "none", record.dialect or "none"
        self.requests[record.status, mode, dialect].total += 1
        self.outcomes[record.outcome, record.fault].total += 1
        if record.calls:
            self.calls[(dialect,)].total += record.calls
        for repair in record.repairs:
            self.repairs[(repair,)].total += 1
        for reason in record.rejected:
            self.rejections[(reason,)].total += 1
        if record.error:
            self.errors[(record.error,)].total += 1
        if record.client_gone:
            self.gone.total += 1
        if record.first_chunk is not None:
            self.first_chunk[(mode,)].add(record.first_chunk)
        self.duration[(mode,)].add(record.duration)
        if record.overhead is not None:
            self.overhead[(mode,)].add(record.overhead)
        if record.replay_of:  # it says nothing about what clients got
            return
        for transformation, arm in (record.arms or UNTOUCHED).items():
            self.compare(record, transformation, arm)
        if record.mode == NATIVE_CALLS or NATIVE_CALLS in record.outcomes:
            self.compare(record, NATIVE_CALLS, ON)

    def compare(self, record: Record, transformation: str, arm: str) -> None:
        """Count what one transformation did, or would have done in a dry run."""
        group = transformation, arm
        if record.status < FIRST_ERROR:
            self.answers[group].total += 1
        for complaint in record.complaints:
            self.complaints[*group, complaint].total += 1
        would = record.would if arm == DRY_RUN else None
        outcomes = (would or record).outcomes
        if transformation not in outcomes:
            return
        ends = outcomes[transformation]
        for outcome, times in ends.items():
            self.attempts[*group, outcome].total += times
        if SUCCESS in ends:
            self.transformed[group].total += 1
            for confidence in (would or record).confidences:
                self.confidence[group].add(confidence)
            made = record.tools if transformation == NATIVE_CALLS else record.transformed
            for tool in would.tools if would else made:
                self.tools[*group, tool].total += 1
