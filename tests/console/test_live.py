"""Live updates: what ends and what is in progress, for as many consoles as there are; none of it costs a request."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.console import OpenedConsole, opened_console
from support.gateway import run

from toolglot.config import KeyHash
from toolglot.console import live
from toolglot.store import open_store
from toolglot.store.interface import ADMIN, KeyRow, RecordQuery, RecordRow
from toolglot.store.sql_store import SqlStore


class Listener:
    """The events of one open console."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.latest: dict[str, Any] = {}

    async def wait_for(self, name: str) -> Any:
        """The next event of a name; ``latest`` has the last one of each."""
        current = ""
        async with asyncio.timeout(20):
            async for raw in self.response.content:
                line = raw.decode().rstrip("\n")
                if line.startswith("event: "):
                    current = line[7:]
                elif line.startswith("data: "):
                    self.latest[current] = json.loads(line[6:])
                    if current == name:
                        return self.latest[current]
        raise AssertionError(f"the stream ended before {name}")


@asynccontextmanager
async def listening_to(console: OpenedConsole) -> AsyncIterator[Listener]:
    async with console.http.get(f"{console.address}/console/api/live", headers=console.headers) as response:
        assert response.status == 200 and response.headers["content-type"] == "text/event-stream"
        yield Listener(response)


def make_slow(release: asyncio.Event) -> web.Application:
    """An upstream that begins an answer and ends it on demand."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in ("Hello", None, " again"):
            if piece is None:
                await release.wait()
                continue
            chunk = {"id": "x", "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
            await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        end = {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        await response.write(b"data: " + json.dumps(end).encode() + b"\n\ndata: [DONE]\n\n")
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    return app


def test_a_request_is_seen_in_progress_and_when_it_has_ended(tmp_path: Path) -> None:
    async def test() -> None:
        release = asyncio.Event()
        async with opened_console(tmp_path, app=make_slow(release)) as console, listening_to(console) as listener:
            asking = asyncio.create_task(console.ask("Hello", model="slow-1"))
            [progress] = await listener.wait_for("progress")
            assert progress["client"].startswith("demo-agent") and "key" not in progress
            release.set()
            await asking
            [session] = await listener.wait_for("sessions")
            assert (session["model"], session["turns"], session["outcome"]) == ("slow-1", 1, "ok")
            assert listener.latest["progress"] == [] or await listener.wait_for("progress") == []

    run(test)


def test_records_of_another_process_are_seen(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console, opened_console(tmp_path) as other:
            async with listening_to(console) as listener:
                await other.ask()
                [session] = await listener.wait_for("sessions")
                assert session["turns"] == 1

    run(test)


def test_consoles_share_the_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many open consoles ask the store as often as one, and all get the same sessions."""
    asked: list[float] = []
    list_records = SqlStore.list_records

    async def note(store: SqlStore, owner: bytes | None, query: RecordQuery) -> list[RecordRow]:
        asked.append(time.monotonic())
        return await list_records(store, owner, query)

    async def test() -> None:
        async with opened_console(tmp_path) as console, AsyncExitStack() as stack:
            monkeypatch.setattr(SqlStore, "list_records", note)
            listeners = [await stack.enter_async_context(listening_to(console)) for _ in range(10)]
            for number in range(3):
                await console.ask(f"Question {number}")
                sent = await asyncio.gather(*(listener.wait_for("sessions") for listener in listeners))
                assert all(one == sent[0] for one in sent)
            pauses = [after - before for before, after in pairwise(asked)]
            assert min(pauses) >= live.SHARED_SECONDS

    run(test)


def test_of_many_changes_only_some_are_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A console that is open must not cost more the more requests there are; the page loads what it shows."""

    async def test() -> None:
        monkeypatch.setattr(live, "MAX_DESCRIBED", 2)
        async with opened_console(tmp_path) as console:
            await asyncio.gather(*(console.ask(f"Question {number}") for number in range(6)))
            await console.settle()
            async with listening_to(console) as listener:
                sessions = await listener.wait_for("sessions")
                assert len({one["id"] for one in sessions}) == 6
                assert sum("turns" in one for one in sessions) == 2

    run(test)


def test_without_a_store_requests_in_progress_are_shown(tmp_path: Path) -> None:
    async def test() -> None:
        release = asyncio.Event()
        async with opened_console(tmp_path, app=make_slow(release), state_dir="none") as console:
            async with listening_to(console) as listener:
                asking = asyncio.create_task(console.ask("Hello"))
                assert len(await listener.wait_for("progress")) == 1
                release.set()
                await asking
                assert await listener.wait_for("progress") == []

    run(test)


def test_updates_end_with_the_login(tmp_path: Path) -> None:
    """The first key closes a gateway that was open."""

    async def test() -> None:
        async with opened_console(tmp_path) as console, listening_to(console) as listener:
            store = open_store("sqlite:toolglot.db", state_folder=tmp_path, now=time.time)
            assert store is not None
            await store.open()
            await store.save_key(KeyRow(name="root", hash=str(KeyHash.of("sk-any")), created=1.0, scope=ADMIN))
            async with asyncio.timeout(20):
                while await listener.response.content.readline():
                    pass
            await store.close()

    run(test)


def test_an_open_console_does_not_delay_the_end_of_the_gateway(tmp_path: Path) -> None:
    async def test() -> None:
        async with aiohttp.ClientSession() as http:
            async with opened_console(tmp_path) as console:
                response = await http.get(f"{console.address}/console/api/live")
                assert await response.content.readline() == b"retry: 2000\n"
                began = time.monotonic()
            assert time.monotonic() - began < 15  # drain_seconds is 30
            response.close()

    run(test)


def test_the_number_of_consoles_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        monkeypatch.setattr(live, "MAX_CONSOLES", 1)
        async with opened_console(tmp_path) as console:
            async with listening_to(console):
                assert (await console.call("/live")).status == 503
            end = time.monotonic() + 10
            while time.monotonic() < end:
                async with console.http.get(f"{console.address}/console/api/live") as response:
                    if response.status == 200:
                        return
                await asyncio.sleep(0.1)
            raise AssertionError("the place of a console that was closed is not free")

    run(test)
