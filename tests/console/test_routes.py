"""The API of routes, rollout and settings, over a real gateway and a real store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.console import opened_console
from support.gateway import run

from toolglot.gateway.capabilities.learned import LearnedFailure, LearnedFailures
from toolglot.store.interface import FailureRow
from toolglot.store.sql_store import SqlStore

UPSTREAM_KEY = "sk-upstream-0123456789abcdef"


def test_a_model_is_pinned_to_text_and_unpinned(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, mode="auto") as console:
            await console.ask()
            [route] = (await console.get("/routes"))["routes"]
            assert (route["model"], route["requests"], route["mode"]) == ("sim", 1, "auto")
            answer = await console.call("/routes/pin", "POST", {"model": "sim"})
            [pinned] = answer.json["routes"]
            assert pinned["learned"]["pinned"] is True
            assert pinned["decided"] == "text"
            assert "pinned" in (await console.get("/routes"))["routes"][0]["learned"]["kind"]
            [free] = (await console.call("/routes/forget", "POST", {"model": "sim"})).json["routes"]
            assert free["learned"] is None
            await asyncio.sleep(1.5)  # the store has been read again
            assert (await console.get("/routes"))["routes"][0]["learned"] is None

    run(test)


def test_what_is_forgotten_while_it_is_written_stays_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[list[str]] = []
    save, replace_all = SqlStore.save_failure, LearnedFailures.replace_all

    async def test() -> None:
        began, released = asyncio.Event(), asyncio.Event()

        async def hold(store: SqlStore, failure: FailureRow) -> None:
            began.set()
            await released.wait()
            await save(store, failure)

        def note(failures: LearnedFailures, all_of_them: Iterable[LearnedFailure]) -> None:
            listed = list(all_of_them)
            known.append([one.model for one in listed])
            replace_all(failures, listed)

        async with opened_console(tmp_path, mode="auto") as console:
            await console.ask()
            monkeypatch.setattr(SqlStore, "save_failure", hold)
            monkeypatch.setattr(LearnedFailures, "replace_all", note)
            await console.call("/routes/pin", "POST", {"model": "sim"})
            await began.wait()
            await console.call("/routes/forget", "POST", {"model": "sim"})
            released.set()
            async with asyncio.timeout(20):
                while len(known) < 2:  # that it was written, that it was deleted
                    await asyncio.sleep(0.05)
            assert not any(known)

    run(test)


def test_the_rollout_is_changed_for_all_gateways_with_the_store(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            for number in range(20):
                await console.ask(f"Question {number}")
            preview = await console.call("/rollout/preview", "POST", {"name": "reading", "plan": "canary-50"})
            found = preview.json
            assert found["conversations"] == 20
            assert 0 < found["changed"] < 20
            assert found["arms"] == {"on": 20 - found["changed"], "control": found["changed"]}
            assert sum(one["conversations"] for one in found["clients"]) == found["changed"]
            changed = (await console.call("/rollout", "POST", {"name": "reading", "plan": "canary-50"})).json
            plans = {one["name"]: one for one in changed["plans"]}
            assert (plans["reading"]["stage"], plans["rescue"]["stage"]) == ("canary-50", "full")
        async with opened_console(tmp_path) as console:  # another gateway with the same store
            plans = {one["name"]: one for one in (await console.get("/rollout"))["plans"]}
            assert plans["reading"]["percent"] == 50

    run(test)


def test_settings_have_their_sources_and_no_secrets(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, api_key=UPSTREAM_KEY) as console:
            found = await console.get("/settings")
            assert found["settings"]["server.state_dir"]["value"] == str(tmp_path)
            assert found["settings"]["server.host"]["source"] == "default"
            assert UPSTREAM_KEY not in json.dumps(found)

    run(test)


def test_read_only_mode_changes_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, console_read_only=True) as console:
            for path, body in (
                ("/routes/pin", {"model": "sim"}),
                ("/routes/forget", {"model": "sim"}),
                ("/rollout", {"name": "reading", "plan": "off"}),
            ):
                assert (await console.call(path, "POST", body)).status == 403, path
            plans = {one["name"]: one["stage"] for one in (await console.get("/rollout"))["plans"]}
            assert plans["reading"] == "full"

    run(test)


def test_odd_changes_are_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            for path, body in (
                ("/rollout", {"name": "reading", "plan": "sometimes"}),
                ("/rollout", {"name": "reading", "plan": "canary-101"}),
                ("/rollout", {"name": "nothing", "plan": "off"}),
                ("/rollout/preview", {"name": "reading"}),
                ("/routes/pin", {}),
                ("/routes/pin", b"["),
            ):
                assert (await console.call(path, "POST", body)).status == 400, (path, body)

    run(test)


def test_the_api_is_described_beside_the_console(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console, console.http.get(f"{console.address}/openapi.json") as response:
            assert response.status == 200
            paths = (await response.json())["paths"]
            assert "/v1/chat/completions" in paths
            assert not [path for path in paths if path.startswith("/console")]

    run(test)
