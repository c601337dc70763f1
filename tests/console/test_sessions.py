"""The API of sessions and turns, over a real gateway and a real store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.console import AGENT, opened_console
from support.gateway import run

from toolglot.console.turns import read_calls
from toolglot.core.events import CallArguments, CallStarted
from toolglot.gateway.telemetry.trace import Trace
from toolglot.sim import SimOptions

SECRET = "sk-ant-api03-aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789"


def test_a_session_is_listed_with_its_totals(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask()
            session = (await console.only_session())["session"]
            assert (session["client"], session["model"], session["outcome"]) == (AGENT, "sim", "ok")
            assert (session["turns"], session["calls"], session["failed"]) == (1, 1, 0)
            assert session["seconds"] > 0
            assert "owner" not in session

    run(test)


def test_a_turn_shows_what_the_model_wrote_and_what_the_client_got(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask()
            [summary] = (await console.only_session())["turns"]
            turn = await console.get(f"/turns/{summary['id']}")
            assert turn["recorded"]
            [attempt] = turn["attempts"]
            kinds = [kind for kind, _, _ in attempt["segments"]]
            assert "call" in kinds and "parameter" in kinds
            assert "".join(text for _, text, _ in attempt["segments"]) == attempt["text"]
            assert [text for kind, text, _ in attempt["segments"] if kind == "parameter"] == ["package.json"]
            assert [event["text"] for event in turn["events"] if event["kind"] == "call"] == ["read"]
            assert "".join(event["text"] for event in turn["events"] if event["kind"] == "arguments") == (
                '{"filePath":"package.json"}'
            )
            times: list[Any] = [event["time"] for event in turn["events"]]
            assert times == sorted(times) and all(time is not None for time in times)
            assert turn["pieces"]

    run(test)


def test_filters(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask("One")
            await console.ask("Two", model="other_model")
            await console.settle()
            for query, total in (
                ("", 2), ("?text=other_m", 1), ("?text=OTHER", 1), ("?text=othersm", 0), ("?text=%25", 0),
                ("?outcome=ok", 2), ("?outcome=failed", 0), ("?troubled=1", 0),
            ):  # fmt: skip
                assert (await console.get(f"/sessions{query}"))["total"] == total, query
            page = await console.get("/sessions?limit=1&offset=1")
            assert (page["total"], len(page["sessions"])) == (2, 1)
            for wrong in ("?limit=0", "?limit=x", "?outcome=odd", "?unknown=1", "?text=%00"):
                assert (await console.call(f"/sessions{wrong}")).status == 400, wrong

    run(test)


def test_refused_requests_that_belong_to_no_session(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask()
            await console.ask(messages="none")
            async with console.http.post(f"{console.address}/v1/chat/completions", data=b"{not json") as response:
                assert response.status == 400
            requests = (await console.get("/refused"))["requests"]
            assert [(one["error"], one["session"]) for one in requests] == 2 * [("invalid_request", "")]
            for one in requests:
                turn = await console.get(f"/turns/{one['id']}")
                assert "invalid_request" in turn["answer"]
                assert "curl" in (await console.get(f"/turns/{one['id']}/snippets"))["curl"]
                assert (await console.call(f"/turns/{one['id']}/replay", "POST", {})).status in (200, 400)

    run(test)


@pytest.mark.parametrize("stream", [True, False])
def test_native_calls_of_each_attempt(tmp_path: Path, stream: bool) -> None:
    """What the model called, and not only what was delivered in the end."""

    async def test() -> None:
        options = SimOptions(defects=1, classes=("misspelt_tool",))
        settings: dict[str, Any] = {"mode": "native", "recovery_retries": 1, "recovery_hold_calls": "always"}
        async with opened_console(tmp_path, options, **settings) as console:
            await console.ask(f'Read the file "{SECRET}.txt"', stream=stream)
            [summary] = (await console.only_session())["turns"]
            assert summary["mode"] == "native"
            first, second = (await console.get(f"/turns/{summary['id']}"))["attempts"]
            assert first["calls"][0]["name"] != "read" and second["calls"][0]["name"] == "read"
            assert all('"filePath"' in one["calls"][0]["arguments"] for one in (first, second))
            assert SECRET not in str([first["calls"], second["calls"]])

    run(test)


def test_long_native_calls_stay_a_document() -> None:
    trace = Trace(0.0, 8000)
    for index in range(3):
        trace.events.append((1.0, 0, [CallStarted(index, f"c{index}", "write")]))
        trace.events += [(1.0, 0, [CallArguments(index, '"\u0001"' * 50)])] * 5
    found = read_calls(trace.encode_calls().decode())
    assert len(trace.encode_calls()) < 8000
    assert [call.name for call in found] == ["write", "write"]
    assert len(found[0].arguments) == 750 and found[1].arguments == "(too long)"
