"""KPIs over time: buckets, groups, quantiles, and sums that agree with the report."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from toolglot.gateway.telemetry.kpis import BUCKETS, NEAR_MISSES, Kpis, choose_width, find_quantiles
from toolglot.gateway.telemetry.report import read_log

NOW = 1_790_000_000.0


def make_record(seconds: float = 0.0, **changes: Any) -> bytes:
    record = {
        "time": datetime.fromtimestamp(NOW + seconds, UTC).isoformat(),
        "arms": {"reading": "on"},
        "status": 200,
        "model": "coder",
        "dialect": "hermes",
        "outcome": "ok",
        "fault": "none",
        "calls": 1,
        "outcomes": {"reading": {"success": 1}},
        "transformed": ["read"],
        "duration": 2.0,
        "first_chunk": 0.5,
        "attempts": [{}, {}],
        **changes,
    }
    return json.dumps(record).encode()


def count(records: list[bytes], seconds: float = 3600.0) -> dict[str, Any]:
    kpis = Kpis(NOW, NOW + seconds)
    for record in records:
        assert kpis.add(record)
    described: dict[str, Any] = json.loads(json.dumps(kpis.describe()))
    return described


def test_records_are_counted_by_time_and_by_model() -> None:
    failed = make_record(1800, model="other", dialect="", outcome="failed", fault="upstream", outcomes={}, calls=0)
    found = count([make_record(), make_record(10), failed])
    assert found["requests"] == 3
    assert [sum(bucket["outcomes"].values()) for bucket in found["series"]] == [2, 1]
    assert found["series"][1]["faults"] == {"upstream": 1}
    first, second = found["models"]
    assert (first["model"], first["requests"], first["calls"], first["retries"]) == ("coder", 2, 2, 2)
    assert (second["model"], second["faults"]) == ("other", {"upstream": 1})
    assert first["transformations"]["reading/on"]["rates"]["success rate"] == 1.0


def test_the_totals_are_those_of_the_report() -> None:
    records = [
        make_record(number, outcomes={"reading": {"success" if number % 3 else "malformed": 1}}) for number in range(30)
    ]
    groups, _ = read_log(record.decode() for record in records)
    rates = count(records)["total"]["transformations"]["reading/on"]
    assert rates["rates"] == pytest.approx(groups["reading"]["on"].rates())
    assert rates["attempts"] == groups["reading"]["on"].attempts == 30


def test_near_misses_are_listed_up_to_a_limit() -> None:
    kpis = Kpis(NOW, NOW + 10)
    for number in range(NEAR_MISSES + 5):
        kpis.add(make_record(outcomes={"reading": {"near_miss": 1}}), f"rec_{number}")
    assert len(kpis.near_misses) == NEAR_MISSES
    assert kpis.near_misses[0]["record"] == "rec_0"


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"time": "x", "arms": {}, "status": 200}', b'{"arms": {}}'])
def test_what_is_no_record_is_not_counted(line: bytes) -> None:
    kpis = Kpis(NOW, NOW + 10)
    assert not kpis.add(line)
    assert kpis.describe()["requests"] == 0


@pytest.mark.parametrize("seconds", [-1.0, 11.0])
def test_records_of_another_time_are_not_counted(seconds: float) -> None:
    assert not Kpis(NOW, NOW + 10).add(make_record(seconds))


@pytest.mark.parametrize(
    ("seconds", "width"), [(0, 1), (60, 1), (61, 5), (3600, 60), (86_400, 1800), (1e9, 28 * 604_800)]
)
def test_at_most_sixty_buckets_cover_the_time(seconds: float, width: int) -> None:
    assert choose_width(seconds) == width
    assert seconds / width <= BUCKETS


def test_quantiles() -> None:
    assert find_quantiles([]) == {}
    assert find_quantiles([3.0]) == {"p50": 3.0, "p95": 3.0, "p99": 3.0}
    assert find_quantiles([float(number) for number in range(1, 101)]) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}


def test_the_rates_of_a_model_are_not_those_of_recovery() -> None:
    outcomes = {"recovery": {"success": 1, "same": 3}, "reading": {"success": 8}}
    [model] = count([make_record(outcomes=outcomes, arms={"recovery": "on", "reading": "on"})])["models"]
    assert model["rates"]["success rate"] == 1.0
