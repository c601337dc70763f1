"""The API of KPIs, over a real gateway and a real store."""

from __future__ import annotations

from pathlib import Path

from support.console import opened_console
from support.gateway import run

from toolglot.sim import SimOptions
from toolglot.sim.answer import Answer
from toolglot.sim.script import ScriptedAnswer


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


def test_odd_parameters_are_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            for query in ("?seconds=0", "?seconds=x", "?seconds=1e9", "?unknown=1"):
                assert (await console.call(f"/kpis{query}")).status == 400, query

    run(test)
