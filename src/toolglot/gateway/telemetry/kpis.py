"""The measures of ``report`` over time, by model and dialect, with outcomes, faults and latencies.

    kpis = Kpis(begin, end)
    kpis.add(encoded_record)
    kpis.describe()

*Strategy.* The time is divided into at most 60 buckets of equal length. Each record is counted once in its bucket and
once in the group of its model and dialect. Latencies are kept up to a limit per bucket, which bounds the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from math import ceil
from typing import Final

import msgspec
from msgspec import Struct, field

from toolglot.config.rollout import NEAR_MISS, RECOVERY
from toolglot.gateway.telemetry.report import CountedRecord, Groups, Tally, add_record

BUCKETS: Final = 60
WIDTHS: Final = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 86_400, 604_800)
"""Lengths of a bucket, in seconds; longer ones are whole weeks."""
LATENCIES: Final = 10_000
NEAR_MISSES: Final = 100
QUANTILES: Final = (0.5, 0.95, 0.99)


class TimedRecord(CountedRecord, kw_only=True):
    """The fields of a record that are counted here."""

    time: str
    request_id: str = ""
    model: str = ""
    dialect: str = ""
    outcome: str = ""
    fault: str = "none"
    calls: int = 0
    repairs: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    first_chunk: float | None = None
    overhead: float | None = None
    duration: float = 0.0
    attempts: tuple[msgspec.Raw, ...] = ()


_decoder = msgspec.json.Decoder(TimedRecord)


class Bucket(Struct):
    """What happened in one span of time."""

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    groups: Groups = field(default_factory=dict)
    first_chunks: list[float] = field(default_factory=list)
    durations: list[float] = field(default_factory=list)
    overheads: list[float] = field(default_factory=list)

    def add(self, record: TimedRecord) -> None:
        self.outcomes[record.outcome] += 1
        self.faults[record.fault] += 1
        add_record(self.groups, record)
        if len(self.durations) < LATENCIES:
            self.durations.append(record.duration)
            if record.first_chunk is not None:
                self.first_chunks.append(record.first_chunk)
            if record.overhead is not None:
                self.overheads.append(record.overhead)

    def describe(self, time: float) -> dict[str, object]:
        return {
            "time": time,
            "outcomes": dict(self.outcomes),
            "faults": dict(self.faults),
            "transformations": describe_rates(self.groups),
            "first_chunk": find_quantiles(self.first_chunks),
            "duration": find_quantiles(self.durations),
            "overhead": find_quantiles(self.overheads),
        }


class ModelGroup(Struct):
    """The requests of one model and dialect."""

    requests: int = 0
    calls: int = 0
    retries: int = 0
    repairs: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    groups: Groups = field(default_factory=dict)

    def add(self, record: TimedRecord) -> None:
        self.requests += 1
        self.calls += record.calls
        self.retries += max(0, len(record.attempts) - 1)
        self.repairs.update(record.repairs)
        self.rejected.update(record.rejected)
        self.faults[record.fault] += 1
        add_record(self.groups, record)

    def describe(self, model: str, dialect: str) -> dict[str, object]:
        main = find_main(self.groups)
        return {
            "model": model,
            "dialect": dialect,
            "requests": self.requests,
            "calls": self.calls,
            "retries": self.retries,
            "repairs": dict(self.repairs),
            "rejected": dict(self.rejected),
            "faults": dict(self.faults),
            "transformations": describe_rates(self.groups),
            "rates": main.rates() if main is not None else {},
        }


class Kpis:
    """Counts the records from ``begin`` to ``end``, in seconds since 1970; replays are not counted. ``model`` and
    ``dialect`` choose the requests whose measures are wanted; None stands for all. ``models`` has all of them."""

    def __init__(self, begin: float, end: float, model: str | None = None, dialect: str | None = None) -> None:
        self.model = model
        self.dialect = dialect
        self.begin = begin
        self.end = max(end, begin)
        self.width = choose_width(self.end - begin)
        self.buckets: dict[int, Bucket] = {}
        self.models: dict[tuple[str, str], ModelGroup] = {}
        self.total = Bucket()
        self.requests = 0
        self.near_misses: list[dict[str, str]] = []

    def add(self, encoded: bytes, record_id: str = "") -> bool:
        """Count a record as JSON. Returns False if it is none, of another time, or a replay."""
        try:
            record = _decoder.decode(encoded)
            time = datetime.fromisoformat(record.time).timestamp()
        except (ValueError, RecursionError):
            return False
        if not self.begin <= time <= self.end or record.replay_of:
            return False
        self.models.setdefault((record.model, record.dialect), ModelGroup()).add(record)
        if self.model not in (None, record.model) or self.dialect not in (None, record.dialect):
            return True
        self.requests += 1
        self.total.add(record)
        self.buckets.setdefault(int(time // self.width), Bucket()).add(record)
        if len(self.near_misses) < NEAR_MISSES and any(NEAR_MISS in ends for ends in record.outcomes.values()):
            self.near_misses.append(
                {
                    "record": record_id or record.request_id,
                    "time": record.time,
                    "model": record.model,
                    "dialect": record.dialect,
                }
            )
        return True

    def describe(self) -> dict[str, object]:
        """All counts and rates, for JSON output. Buckets without requests are left out."""
        ranked = sorted(self.models.items(), key=lambda item: -item[1].requests)
        return {
            "begin": self.begin,
            "end": self.end,
            "bucket_seconds": self.width,
            "requests": self.requests,
            "total": self.total.describe(self.begin),
            "series": [self.buckets[at].describe(at * self.width) for at in sorted(self.buckets)],
            "models": [group.describe(*key) for key, group in ranked],
            "near_misses": self.near_misses,
        }


def find_span(encoded: Iterable[bytes]) -> tuple[float, float]:
    """The times of the first and the last record among lines; zeros if there is none."""
    times: list[float] = []
    for line in encoded:
        with suppress(ValueError, RecursionError):
            times.append(datetime.fromisoformat(_decoder.decode(line).time).timestamp())
    return min(times, default=0.0), max(times, default=0.0)


def describe_rates(groups: Groups) -> dict[str, dict[str, object]]:
    """Attempts and rates by transformation and arm, as ``transformation/arm``."""
    return {
        f"{name}/{arm}": {"answers": tally.answers, "attempts": tally.attempts, "rates": tally.rates()}
        for name, arms in groups.items()
        for arm, tally in arms.items()
    }


def find_main(groups: Groups) -> Tally | None:
    """The tally that says most about a model: that of the most attempts, and not of recovery, which begins where
    another transformation has failed."""
    tallies = [tally for name, arms in groups.items() if name != RECOVERY for tally in arms.values()]
    return max(tallies, key=lambda tally: tally.attempts, default=None)


def choose_width(seconds: float) -> int:
    """The length of a bucket: the smallest usual one of which at most 60 cover the time."""
    least = seconds / BUCKETS
    return next((width for width in WIDTHS if width >= least), WIDTHS[-1] * ceil(least / WIDTHS[-1]))


def find_quantiles(amounts: Sequence[float]) -> dict[str, float]:
    """The median and high percentiles; empty without amounts."""
    ranked = sorted(amounts)
    return {f"p{round(100 * share)}": ranked[ceil(share * len(ranked)) - 1] for share in QUANTILES} if ranked else {}
