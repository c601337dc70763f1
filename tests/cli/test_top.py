"""``toolglot top``: the state of a real gateway, frames, and foreign texts."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.gateway import gateway, run

from toolglot.cli.main import main
from toolglot.cli.terminal import Paint
from toolglot.cli.top import State, cut_line, describe, draw, format_row


async def ask_and_show(folder: Path, *options: str) -> int:
    async with gateway(mode="text", dialect="hermes", state_dir=str(folder)) as gate:
        assert (await gate.ask()).status == 200
        assert (await gate.ask(b"{")).status == 400
        await asyncio.sleep(0.5)  # records are stored a little later
        return await asyncio.to_thread(main, ["top", "--url", gate.address, *options])


def test_the_state_of_a_gateway(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def show() -> None:
        assert await ask_and_show(tmp_path, "--once") == 0

    run(show)
    shown = capsys.readouterr().out
    assert "requests 2" in shown
    assert "ends     ok 1   refused 1" in shown
    assert "faults   client 1" in shown
    refused, ok = shown.splitlines()[-2:]
    assert "invalid_request" in refused
    assert "text/hermes" in ok and "read" in ok


def test_the_state_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def show() -> None:
        assert await ask_and_show(tmp_path, "--json") == 0

    run(show)
    found = json.loads(capsys.readouterr().out)
    assert sum(found["totals"]["toolglot_requests_total"].values()) == 2
    assert [record["outcome"] for record in found["records"]] == ["refused", "ok"]


def test_a_gateway_without_a_store_has_no_list(capsys: pytest.CaptureFixture[str]) -> None:
    async def show() -> None:
        async with gateway() as gate:
            assert await asyncio.to_thread(main, ["top", "--url", gate.address, "--once"]) == 0

    run(show)
    assert "no store" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--url", "http://127.0.0.1:9"], ["--url", "127.0.0.1:9", "--json"]])
def test_no_gateway_is_a_usage_error(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", *options]) == 2
    assert "toolglot serve" in capsys.readouterr().err


def make_record(**changes: Any) -> dict[str, Any]:
    return {"time": "2026-01-02T03:04:05.000+00:00", "outcome": "ok", "duration": 1.5, "model": "m", **changes}


def test_foreign_texts_cannot_change_the_screen() -> None:
    record = make_record(model="\x1b[2J\nevil", tools=["\x1b]0;title\x07"], notes=["\u202eabc"], error="a\tb")
    line = format_row(describe(record))
    assert line.isprintable()


def test_rates_are_those_since_the_frame_before() -> None:
    def state(seconds: float, requests: int) -> State:
        return State(seconds, {"toolglot_requests_total": Counter({"": requests})}, [make_record()], True)

    lines = list(draw("http://x", state(12.0, 30), state(10.0, 10), Paint(False), 5))
    assert "requests 30  10.0/s" in lines[1]
    assert "/s" not in list(draw("http://x", state(10.0, 10), None, Paint(False), 5))[1]


def test_a_short_terminal_shows_the_newest() -> None:
    state = State(1.0, {}, [make_record(model=f"m{number}") for number in range(9)], True)
    lines = list(draw("http://x", state, None, Paint(False), 3))
    assert "m0" in lines[-3] and "m2" in lines[-1]


def test_coloured_lines_are_cut_at_the_width_of_the_terminal() -> None:
    red, reset = "\x1b[31m", "\x1b[0m"
    assert cut_line("plain text", 5) == "plain"
    assert cut_line(f"ab{red}cdef{reset}gh", 4) == f"ab{red}cd{reset}"
    assert cut_line(f"{red}ab{reset}", 80) == f"{red}ab{reset}"
