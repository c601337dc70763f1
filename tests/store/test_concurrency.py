"""Many tasks, several users and several processes on one store."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support import lease_process
from support.stores import Place, chat, node, record, session

from toolglot.core.errors import StoreError
from toolglot.store import postgres, record_operations
from toolglot.store.interface import RecordQuery


async def test_many_tasks_lose_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "CONNECT_SECONDS", 60.0)  # for busy machines: all wait for few
    async with place.opened() as one, place.opened() as two:
        await one.add_session(session(), [])
        stores = (one, two)
        await asyncio.gather(*(stores[at % 2].add_records([record(f"{at:04}", time=float(at))]) for at in range(200)))
        found = await two.get_session(None, "s1")
        assert found is not None
        assert (found.turns, found.used) == (200, 199.0)
        assert len(await one.list_records(None, RecordQuery(limit=500))) == 200


async def test_one_failure_does_not_reach_the_others(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [])

        async def add(at: int) -> bool:
            try:
                await store.add_chat(chat(f"c{at}", session="s1" if at % 3 else "missing"), "me", 60)
            except StoreError:
                return False
            return True

        assert await asyncio.gather(*map(add, range(30))) == [bool(at % 3) for at in range(30)]


async def test_cancelled_callers_leave_the_store_usable(place: Place) -> None:
    choose, keys = random.Random(1), [b"%d" % at for at in range(20)]
    async with place.opened() as store:
        await store.add_session(session(), [])
        for _ in range(10):
            tasks = [
                asyncio.create_task(store.add_session(session(f"x{at}"), [node(b"%d" % at, f"x{at}")]))
                for at in range(20)
            ]
            tasks += [asyncio.create_task(store.find_nodes(keys)) for _ in range(20)]  # type: ignore[arg-type]
            await asyncio.sleep(choose.random() * 0.01)
            for task in choose.sample(tasks, 30):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await store.check()
        found = {one.node.session for one in await store.find_nodes(keys)}
        assert found == {row.id for row in await store.list_sessions(None, 100)} - {"s1"}


async def test_sessions_are_deleted_while_turns_are_committed(place: Place) -> None:
    """Whatever happens first: no chat and no node of a deleted session stays, and no operation waits for another."""
    async with place.opened() as one, place.opened() as two:
        for turn in range(15):
            await one.add_session(session(), [])
            token = await one.add_chat(chat(), "me", 60)

            async def commit(turn: int = turn, token: int = token) -> None:
                for at in range(5):
                    added = node(b"k%d" % at, chat="c1", message=f"{turn}-{at}")
                    if not await one.commit_turn([added], "c1", f"{turn}-{at}", token):
                        return

            async def extend() -> list[str]:
                added = []
                for at in range(3):
                    try:
                        await two.add_chat(chat(f"more{at}"), "me", 60)
                    except StoreError:
                        break
                    added.append(f"more{at}")
                    await two.add_nodes([node(b"n", chat=f"more{at}", message="m")])
                return added

            async def delete(turn: int = turn) -> list[str]:
                await asyncio.sleep(0.001 * turn)
                deleted = await two.delete_session(None, "s1")
                assert deleted is not None
                return [found.id for found in deleted]

            _, added, deleted = await asyncio.gather(commit(), extend(), delete())
            assert sorted(deleted) == sorted(["c1", *added])
            assert await one.find_nodes([b"n", *(b"k%d" % at for at in range(5))]) == []


async def test_large_bodies_are_packed_in_threads(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with place.opened() as store:
        used: list[threading.Thread] = []

        def observed(work: Callable[[Any], Any], rows: Any) -> Any:
            used.append(threading.current_thread())
            return work(rows)

        for name in ("pack", "unpack"):
            monkeypatch.setattr(record_operations, name, partial(observed, getattr(record_operations, name)))
        written = record(bodies={"request": random.Random(1).randbytes(1_000_000)})
        await store.add_records([written])
        assert await store.get_record(None, "r1") == written
        assert len(used) == 2
        assert threading.main_thread() not in used


async def test_processes_never_hold_the_same_lease(place: Place) -> None:
    rounds, count = 8, 4
    async with place.opened() as store:
        await store.add_session(session(), [])
        await store.release_lease("c1", await store.add_chat(chat(), "start", 60))
    log = place.folder / "log"
    command = [sys.executable, lease_process.__file__, place.url, str(place.folder), str(log), str(rounds)]
    started = [subprocess.Popen([*command, f"{at}"], stderr=subprocess.PIPE) for at in range(count)]
    errors = await asyncio.gather(*(asyncio.to_thread(process.communicate) for process in started))
    assert [(process.returncode, error) for process, (_, error) in zip(started, errors, strict=True)] == [
        (0, b"")
    ] * count
    check_log(log, rounds * count)
    async with place.opened() as store:
        found = await store.find_nodes([b"turn %d" % at for at in range(rounds * count)])
        assert [one.node.key for one in found] == [b"turn %d" % at for at in range(rounds * count)]
        assert [one.is_head for one in found] == [False] * (rounds * count - 1) + [True]


def check_log(log: Path, turns: int) -> None:
    """Each lease ends before the next begins, with growing tokens, and no turn is lost or made twice."""
    lines = [line.split() for line in log.read_text().splitlines()]
    assert len(lines) == 2 * turns
    tokens = []
    for at, (begin, end) in enumerate(zip(lines[::2], lines[1::2], strict=True)):
        assert [*begin, *end] == ["begin", begin[1], begin[2], f"{at}", "end", begin[1], begin[2], f"{at}"]
        tokens.append(int(begin[2]))
    assert tokens == sorted(set(tokens))
