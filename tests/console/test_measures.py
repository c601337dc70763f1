"""The API of KPIs, over a real gateway and a real store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.console import opened_console
from support.gateway import run

from toolglot.console import measures
from toolglot.sim import SimOptions
from toolglot.sim.answer import Answer
from toolglot.sim.script import ScriptedAnswer
from toolglot.store.interface import RecordQuery, RecordRow
from toolglot.store.sql_store import SqlStore


def test_kpis_count_requests_by_model_and_time(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            for _ in range(3):
                await console.ask()
            await console.ask(messages="none")
            found = await console.get("/kpis?seconds=3600")
            assert found["requests"] == 4
            assert found["complete"] is True
            assert found["total"]["outcomes"] == {"ok": 3, "refused": 1}
            assert found["total"]["faults"] == {"none": 3, "client": 1}
            assert found["total"]["transformations"]["reading/on"]["rates"]["success rate"] == 1.0
            assert sum(sum(one["outcomes"].values()) for one in found["series"]) == 4
            assert [one["model"] for one in found["models"]] == ["sim", ""]
            assert found["near_misses"] == []

    run(test)


def test_measures_of_one_model_and_dialect(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask()
            await console.ask(model="other")
            await console.ask(messages="none")
            for query, requests in (("", 3), ("&model=other&dialect=hermes", 1), ("&model=-&dialect=-", 1)):
                found = await console.get(f"/kpis?seconds=3600{query}")
                assert found["requests"] == sum(sum(one["outcomes"].values()) for one in found["series"]) == requests
                assert {one["model"] for one in found["models"]} == {"sim", "other", ""}
            assert (await console.get("/kpis?model=other&dialect=glm45"))["requests"] == 0

    run(test)


@pytest.mark.parametrize("stream", [True, False])
def test_overhead_is_a_part_of_the_time(tmp_path: Path, stream: bool) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, SimOptions(latency=200)) as console:
            await console.ask(stream=stream)
            total = (await console.get("/kpis?seconds=3600"))["total"]
            assert 0 < total["overhead"]["p50"] < total["duration"]["p50"] - 0.15

    run(test)


def test_replays_are_not_measured(tmp_path: Path) -> None:
    """They say nothing about what clients got."""

    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask()
            [turn] = (await console.only_session())["turns"]
            assert (await console.call(f"/turns/{turn['id']}/replay", "POST", {})).status == 200
            found = await console.get("/kpis?seconds=3600")
            assert found["requests"] == 1 and [one["requests"] for one in found["models"]] == [1]
            async with console.http.get(f"{console.address}/metrics") as response:
                lines = (await response.text()).splitlines()
            assert 'toolglot_outcomes_total{fault="none",outcome="ok"} 2.0' in lines
            assert 'toolglot_attempts_total{arm="on",outcome="success",transformation="reading"} 1.0' in lines

    run(test)


def test_near_misses_have_their_texts(tmp_path: Path) -> None:
    async def test() -> None:
        script = (ScriptedAnswer(Answer(text='read(filePath="a.py", mode=open("x"))')),)
        async with opened_console(tmp_path, SimOptions(script=script)) as console:
            await console.ask()
            found = await console.get("/kpis")
            [miss] = found["near_misses"]
            assert "filePath" in miss["text"]
            assert miss["session"]

    run(test)


def test_pages_that_ask_the_same_share_one_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the same time, and again within a moment; later everything is counted again."""
    asked = 0
    list_records = SqlStore.list_records

    async def count(store: SqlStore, owner: bytes | None, query: RecordQuery) -> list[RecordRow]:
        nonlocal asked
        asked += 1
        return await list_records(store, owner, query)

    async def test() -> None:
        monkeypatch.setattr(measures, "KNOWN_SECONDS", 3600.0)
        async with opened_console(tmp_path) as console:
            await console.ask()
            monkeypatch.setattr(SqlStore, "list_records", count)
            found = await asyncio.gather(*(console.get("/kpis?seconds=3600") for _ in range(10)))
            assert asked == 1 and all(one == found[0] for one in found) and found[0]["requests"] == 1
            await console.ask()
            assert (await console.get("/kpis?seconds=3600"))["requests"] == 1
            assert (await console.get("/kpis?seconds=3601"))["requests"] == 2
            assert asked == 2

    run(test)


def test_measures_are_known_for_a_moment(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            for number in range(2):
                await console.ask()
                async with asyncio.timeout(20):
                    while (await console.get("/kpis"))["requests"] != number + 1:
                        await asyncio.sleep(0.1)

    run(test)


def test_odd_parameters_are_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            for query in ("?seconds=0", "?seconds=x", "?seconds=1e9", "?unknown=1"):
                assert (await console.call(f"/kpis{query}")).status == 400, query

    run(test)
