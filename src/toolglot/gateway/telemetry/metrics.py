"""The records, counted for Prometheus. Labels come from sets that cannot grow without bound.

*Strategy.* Every request is counted and few ask for the sums. So to count is to add to a number that a dictionary leads
to; what Prometheus reads is made of these numbers when it asks.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from time import time
from typing import Final, TypeVar

from toolglot.config.rollout import NATIVE_CALLS, SUCCESS, UNTOUCHED, Arm
from toolglot.core.errors import ToolglotError
from toolglot.gateway.telemetry.records import Record

LABELS: Final = 100
KNOWN: Final = 1000
OTHER: Final = "other"
FIRST_CHUNK_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
DURATION_BUCKETS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
CONFIDENCE_BUCKETS: Final = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.99, 1.0)
ARM: Final = ("transformation", "arm")


def _list_codes(kind: type[ToolglotError]) -> Iterator[str]:
    yield kind.code
    for below in kind.__subclasses__():
        yield from _list_codes(below)


OWN_FAILURES: Final = (
    "rehearsal_failed refused_call content_filter empty_answer forbidden_call malformed_call truncated_call"
    " upstream_closed upstream_invalid malformed_function_call unexpected_tool_call too_many_tool_calls"
    " malformed_response"
)
UPSTREAM_FAILURES: Final = (
    "api_error authentication_error bad_request billing_error conflict_error content_filter context_length_exceeded"
    " insufficient_quota internal_error internal_server_error invalid_api_key invalid_prompt invalid_request_error"
    " model_not_found not_found_error overloaded overloaded_error permission_error rate_limit_error"
    " rate_limit_exceeded request_too_large server_error timeout_error unsupported_parameter unsupported_value"
    " ABORTED DEADLINE_EXCEEDED INTERNAL INVALID_ARGUMENT NOT_FOUND PERMISSION_DENIED RESOURCE_EXHAUSTED"
    " UNAUTHENTICATED UNAVAILABLE UNIMPLEMENTED API_KEY_INVALID RATE_LIMIT_EXCEEDED 400 401 403 404 429 500 503"
)
"""Codes that servers of all wires are known for."""

ALLOWED: Final[Mapping[str, Collection[str] | re.Pattern[str]]] = {
    "kind": frozenset((*_list_codes(ToolglotError), *OWN_FAILURES.split(), *UPSTREAM_FAILURES.split())),
    "status": frozenset(map(str, range(100, 600))),
    "tool": re.compile(r"[A-Za-z_][\w.:-]{0,63}", re.ASCII),
}
"""The values that a label can have, where others choose them."""

Numbers = Iterator[tuple[str, Mapping[str, str], float]]
"""How the name of each goes on, and a label that it has besides."""


class Labels:
    """Keeps the values of one label few: one that does not belong to it, or is one too many, is ``other``.

    ``allowed`` are all values that it can have, or an expression for them; without it, they come from our own code.
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
    """How often something happened, or how much of it there is."""

    __slots__ = ("ending", "total")

    def __init__(self, ending: str = "_total") -> None:
        self.ending = ending
        self.total = 0

    def tell(self) -> Numbers:
        yield self.ending, {}, self.total


class Spread:
    """How many amounts there were up to each bound."""

    __slots__ = ("bounds", "buckets", "sum")

    def __init__(self, *bounds: float) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, amount: float) -> None:
        self.sum += amount
        self.buckets[bisect_left(self.bounds, amount)] += 1

    def tell(self) -> Numbers:
        total = 0
        for bound, times in zip((*map(float, self.bounds), "+Inf"), self.buckets, strict=True):
            total += times
            yield "_bucket", {"le": str(bound)}, total
        yield "_count", {}, total
        yield "_sum", {}, self.sum


C = TypeVar("C", Count, Spread)


class Family(dict[tuple[object, ...], C]):
    """What is counted under one name, by the values of its labels as records tell them. Whatever is looked up is there.

    ``told`` has the same by the values as they are told, of which one may stand for many, and since when it is counted.
    """

    def __init__(self, kind: str, name: str, tells: str, make: Callable[[], C], labels: Mapping[str, Labels]) -> None:
        super().__init__()
        self.kind = kind
        self.name = name
        self.tells = tells
        self.make: Callable[[], C] = make
        self.labels = labels
        self.told: dict[tuple[str, ...], tuple[C, float]] = {}

    def __missing__(self, values: tuple[object, ...]) -> C:
        told = tuple(label(value) for label, value in zip(self.labels.values(), values, strict=True))
        if told not in self.told:
            self.told[told] = self.make(), time()
        counted, _ = self.told[told]
        if len(self) < KNOWN:
            self[values] = counted
        return counted


class Metrics:
    """The records, counted for Prometheus."""

    def __init__(self) -> None:
        self.labels: dict[str, Labels] = {}
        self.families: list[Family[Count] | Family[Spread]] = []
        counter, histogram = self._counter, self._histogram
        self.requests = counter("toolglot_requests", "Requests answered.", "status", "mode", "dialect")
        self.calls = counter("toolglot_calls", "Tool calls delivered.", "dialect")
        self.repairs = counter("toolglot_repairs", "Repairs made while calls were read.", "repair")
        self.rejections = counter("toolglot_rejections", "Calls that were not delivered.", "reason")
        self.errors = counter("toolglot_errors", "Requests that failed.", "kind")
        self.gone = counter("toolglot_clients_gone", "Requests whose client left before the end.")[()]
        self.streams = self._gauge("toolglot_streams_in_flight", "Streams under way.")[()]
        self.open = self._gauge("toolglot_requests_open", "Model requests being answered.")[()]
        self.queued = self._gauge("toolglot_requests_queued", "Model requests that wait for a place.")[()]
        self.refused = counter("toolglot_requests_refused", "Requests that found no place.", "reason")
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

    def _counter(self, name: str, tells: str, *labels: str) -> Family[Count]:
        return self._add(Family("counter", name, tells, Count, self._labels(labels)))

    def _gauge(self, name: str, tells: str, *labels: str) -> Family[Count]:
        return self._add(Family("gauge", name, tells, partial(Count, ""), self._labels(labels)))

    def _histogram(self, name: str, tells: str, bounds: tuple[float, ...], *labels: str) -> Family[Spread]:
        return self._add(Family("histogram", name, tells, partial(Spread, *bounds), self._labels(labels)))

    def _labels(self, names: tuple[str, ...]) -> dict[str, Labels]:
        """A label has the same few values wherever it is told."""
        return {name: self.labels.setdefault(name, Labels(allowed=ALLOWED.get(name))) for name in names}

    def _add(self, family: Family[C]) -> Family[C]:
        self.families.append(family)
        return family

    def count(self, record: Record) -> None:
        mode, dialect = record.mode or "none", record.dialect or "none"
        self.requests[record.status, mode, dialect].total += 1
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
        for transformation, arm in (record.arms or UNTOUCHED).items():
            self.compare(record, transformation, arm)
        if record.mode == NATIVE_CALLS or NATIVE_CALLS in record.outcomes:
            self.compare(record, NATIVE_CALLS, Arm.ON)

    def compare(self, record: Record, transformation: str, arm: str) -> None:
        """Count what one transformation did, or would have done in a dry run."""
        group = transformation, arm
        if record.answered:
            self.answers[group].total += 1
        for complaint in record.complaints:
            self.complaints[*group, complaint].total += 1
        would = record.would if arm == Arm.DRY_RUN else None
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
