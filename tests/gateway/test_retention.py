"""Old records are deleted, the store stays below its size, and nothing waits for either."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest
from support.gateway import run
from support.record_writing import finish, make_store, stored, until, writing

from toolglot.config import StoreSettings
from toolglot.core.errors import StoreError
from toolglot.gateway.telemetry import retention
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.gateway.telemetry.retention import prune, prune_regularly
from toolglot.store.sqlite import SqliteStore


async def prune_now(telemetry: Telemetry, settings: StoreSettings) -> None:
    assert telemetry.writer is not None
    await prune(telemetry.writer.store, settings, time.time())


def test_old_records_are_deleted(tmp_path: Path) -> None:
    async def test() -> None:
        async with writing(tmp_path) as telemetry:
            finish(telemetry, "old", time=time.time() - 3 * 86_400)
            finish(telemetry, "new")
            await stored(telemetry)
            for days, left in ((5.0, {"old", "new"}), (0.0, {"old", "new"}), (2.0, {"new"})):
                await prune_now(telemetry, StoreSettings(keep_records_days=days))
                assert {row.request_id for row in await stored(telemetry)} == left

    run(test)


def test_the_store_stays_below_its_size(tmp_path: Path) -> None:
    async def test() -> None:
        chance = random.Random(1)
        async with writing(tmp_path, bodies="all") as telemetry:
            for number in range(60):
                finish(telemetry, f"r{number}", bodies={"request": chance.randbytes(50_000).hex().encode()})
            await stored(telemetry)
            await prune_now(telemetry, StoreSettings(max_bytes=2 << 20))
            names = [row.request_id for row in await stored(telemetry)]
        assert (tmp_path / "toolglot.db").stat().st_size <= 2 << 20
        assert 10 < len(names) < 60
        assert names == [f"r{number}" for number in range(59, 59 - len(names), -1)]

    run(test)


def test_neither_the_start_nor_a_record_waits_for_retention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()

    async def never_end(*_: object, **__: object) -> int:
        begun.set()
        await asyncio.Event().wait()
        return 0

    async def test() -> None:
        monkeypatch.setattr(SqliteStore, "prune", never_end)
        async with writing(tmp_path) as telemetry:
            assert telemetry.writer is not None
            assert not telemetry.writer.problem  # it has started
            assert not begun.is_set()
        monkeypatch.setattr(retention, "FIRST_SECONDS", 0.0)
        async with writing(tmp_path) as telemetry:
            await begun.wait()
            finish(telemetry, "meanwhile")
            assert [row.request_id for row in await stored(telemetry)] == ["meanwhile"]

    run(test)


@pytest.mark.parametrize("error", [StoreError("gone"), TimeoutError(), ValueError("a defect")])
def test_retention_goes_on_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def test() -> None:
        store, calls = make_store(tmp_path), list[float]()

        async def fail_once(*, records_before: float, **_: object) -> int:
            calls.append(records_before)
            if len(calls) == 1:
                raise error
            return 0

        monkeypatch.setattr(store, "prune", fail_once)
        monkeypatch.setattr(retention, "FIRST_SECONDS", 0.0)
        task = asyncio.create_task(prune_regularly(store, StoreSettings(keep_records_days=1.0), lambda: 86_401.0))
        await until(lambda: len(calls) > 1)
        task.cancel()
        assert calls == [1.0, 1.0]  # after a success there is a long pause

    run(test)
