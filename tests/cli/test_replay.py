"""``toolglot replay``: a recorded request is sent again, and the answers are compared."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.console import opened_console
from support.gateway import run

from toolglot.cli.main import main
from toolglot.config import KeyHash

KEY = "tg-admin-0123456789abcdef"


async def replay(folder: Path, *options: str, key: str = "", **settings: Any) -> int:
    async with opened_console(folder, **settings) as console:
        console.headers = {"authorization": f"Bearer {key}"} if key else {}
        await console.ask(key=key or "none")
        [turn] = (await console.only_session())["turns"]
        given = [turn["id"] if option == "RECORD" else option for option in options]
        key_options = ["--key", key] if key else []
        return await asyncio.to_thread(main, ["replay", *given, "--url", console.address, *key_options])


def test_another_dialect_gives_the_same_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        assert await replay(tmp_path, "RECORD", "--dialect", "qwen3_coder") == 0

    run(test)
    shown = capsys.readouterr().out
    assert "*  dialect" in shown and "qwen3_coder" in shown
    assert "the answers are the same" in shown


def test_an_answer_without_tools_is_another_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        assert await replay(tmp_path, "RECORD", "--mode", "off", "--retries", "0", "--json", key=KEY,
                            admin_keys=str(KeyHash.of(KEY))) == 0  # fmt: skip

    run(test)
    found = json.loads(capsys.readouterr().out)
    assert found["before"]["tools"] == ["read"]
    assert found["before"]["answer"][-1] == 'call read {"filePath":"package.json"}'
    assert found["after"]["tools"] == []


@pytest.mark.parametrize(
    ("options", "settings", "problem"),
    [
        (("rec_unknown",), {}, "There is no record"),
        (("RECORD",), {"store_bodies": "off"}, "was not recorded"),
        (("RECORD", "--dialect", "klingon"), {}, "no such dialect"),
        (("RECORD", "--retries", "99"), {}, "retries must be"),
        (("RECORD",), {"console_read_only": "true"}, "read-only"),
    ],
)
def test_what_cannot_be_replayed(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    settings: dict[str, str],
    problem: str,
) -> None:
    async def test() -> None:
        assert await replay(tmp_path, *options, **settings) == 2

    run(test)
    assert problem in capsys.readouterr().err
