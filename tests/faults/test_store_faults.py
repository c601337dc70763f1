"""A store that fails while streams run: no request notices, health and log say so, and no secret is anywhere."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import resource
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.gateway import ASK, Answer, Gate, gateway
from support.postgres import PLAIN_PASSWORD, PostgresServer

from toolglot.gateway.telemetry.log import log_to
from toolglot.sim import SimOptions

SLOW = SimOptions(dialect="hermes", pace=30, chunk=6)
STREAM = {**ASK, "stream": True}
STREAMS, MORE = 8, 20
Repair = Callable[[], Awaitable[None]]


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(test(), 60)

    asyncio.run(limited())


async def wait_for_store(gate: Gate, state: str) -> dict[str, Any]:
    while True:
        health = await gate.get("/health/readiness")
        assert health.status == 200 and health.json["status"] == "ready"
        if health.json["store"] == state:
            found: dict[str, Any] = health.json
            return found
        await asyncio.sleep(0.05)


async def start_streams(gate: Gate) -> list[asyncio.Task[Answer]]:
    """Streams that have begun and not ended."""
    begun = asyncio.Semaphore(0)

    async def stream() -> Answer:
        async with gate.session.post(f"{gate.address}/v1/chat/completions", json=STREAM) as response:
            first = await response.content.readany()
            begun.release()
            return Answer(response.status, response.headers, first + await response.read())

    tasks = [asyncio.create_task(stream()) for _ in range(STREAMS)]
    for _ in tasks:
        await begun.acquire()
    return tasks


def check_stream(answer: Answer) -> None:
    _, calls, finish = answer.joined
    assert (answer.status, calls, finish) == (200, [("read", '{"filePath":"package.json"}')], "tool_calls")
    assert answer.body.endswith(b"data: [DONE]\n\n")


# -- faults of a file: each returns how to repair it --------------------------------------------------------------------


def move_away(folder: Path) -> Callable[[], None]:
    """Move the files of the store. Returns how to bring them back."""
    moved = [(path, path.rename(folder / f"moved-{path.name}")) for path in folder.glob("toolglot.db*")]

    def bring_back() -> None:
        for path, place in moved:
            place.rename(path)

    return bring_back


async def replace_by_folder(folder: Path) -> Repair:
    bring_back = move_away(folder)
    (folder / "toolglot.db").mkdir()

    async def repair() -> None:
        (folder / "toolglot.db").rmdir()
        bring_back()

    return repair


async def overwrite(folder: Path) -> Repair:
    bring_back = move_away(folder)
    (folder / "toolglot.db").write_bytes(b"this is not a database, and never was. " * 300)

    async def repair() -> None:
        for path in folder.glob("toolglot.db*"):
            path.unlink()
        bring_back()

    return repair


async def lock(folder: Path) -> Repair:
    other = sqlite3.connect(folder / "toolglot.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    async def repair() -> None:
        other.execute("ROLLBACK")
        other.close()

    return repair


async def fill_disk(_: Path) -> Repair:
    """No file may grow: the system refuses to write, as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))

    async def repair() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return repair


FILE_FAULTS = (replace_by_folder, overwrite, lock, fill_disk)


LASTING = ThreadPoolExecutor(1)
"""A server ends with the thread that started it."""


async def stop_server(server: PostgresServer) -> Repair:
    await asyncio.to_thread(server.stop)
    return partial(start_server, server)


async def kill_server(server: PostgresServer) -> Repair:
    await asyncio.to_thread(server.kill)
    return partial(start_server, server)


async def start_server(server: PostgresServer) -> None:
    await asyncio.get_running_loop().run_in_executor(LASTING, server.start)


async def freeze_server(server: PostgresServer) -> Repair:
    server.freeze(True)

    async def repair() -> None:
        server.freeze(False)

    return repair


async def check_fault(break_it: Callable[[], Awaitable[Repair]], settings: dict[str, Any], log: io.StringIO) -> None:
    async with gateway(SLOW, **settings) as gate:
        assert (await wait_for_store(gate, "ok"))["store"] == "ok"
        streams = await start_streams(gate)
        repair = await break_it()
        try:
            for answer in await asyncio.gather(*streams):
                check_stream(answer)
            more = await asyncio.gather(*(gate.ask(x_request_id=f"more{number}") for number in range(MORE)))
            assert [answer.status for answer in more] == [200] * MORE
            health = await wait_for_store(gate, "unavailable")
            assert health["store_problem"] and PLAIN_PASSWORD not in json.dumps(health)
            for path in ("/v1/records", "/v1/records/x", "/v1/sessions"):
                answer = await gate.get(path)
                assert (answer.status, answer.error["code"]) == (503, "store_unavailable")
            assert b"toolglot_store_available 0.0" in (await gate.get("/metrics")).body
        finally:
            await repair()
        await wait_for_store(gate, "ok")
        metrics = (await gate.get("/metrics")).body.decode()
        assert "toolglot_store_available 1.0" in metrics
        assert not [
            line
            for line in metrics.splitlines()
            if line.startswith("toolglot_records_dropped_total") and not line.endswith(" 0.0")
        ]
        found = (await gate.get("/v1/records?limit=500")).json["data"]
        assert len(found) == STREAMS + MORE
        assert {one["outcome"] for one in found} == {"ok"}
    messages = [line for line in log.getvalue().splitlines() if '"message":"the store' in line]
    assert len(messages) == 2, messages
    assert "the store is unavailable, requests are answered without it" in messages[0]
    assert "the store is available again" in messages[1]


@pytest.fixture
def log() -> Any:
    logger = logging.getLogger("toolglot")
    before = (logger.handlers[:], logger.level, logger.propagate)
    stream = io.StringIO()
    log_to(stream)
    yield stream
    logger.handlers[:], logger.level, logger.propagate = before


@pytest.mark.parametrize("fault", FILE_FAULTS, ids=lambda fault: fault.__name__)
def test_a_file_that_fails(tmp_path: Path, log: io.StringIO, fault: Callable[[Path], Awaitable[Repair]]) -> None:
    if fault is fill_disk and sys.platform != "linux":
        pytest.skip("needs RLIMIT_FSIZE")
    run(lambda: check_fault(lambda: fault(tmp_path), {"state_dir": str(tmp_path)}, log))


@pytest.mark.parametrize("fault", [stop_server, kill_server, freeze_server], ids=lambda fault: fault.__name__)
def test_a_server_that_fails(
    postgres_server: PostgresServer, log: io.StringIO, fault: Callable[[PostgresServer], Awaitable[Repair]]
) -> None:
    with postgres_server.lend_database() as url:
        run(lambda: check_fault(lambda: fault(postgres_server), {"store_url": url}, log))
    assert PLAIN_PASSWORD not in log.getvalue()


def test_a_file_that_is_deleted_is_made_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with gateway(SLOW, state_dir=str(tmp_path)) as gate:
            await gate.ask(x_request_id="lost")
            assert len((await gate.get("/v1/records")).json["data"]) == 1
            streams = await start_streams(gate)
            for path in tmp_path.glob("toolglot.db*"):
                path.unlink()
            for answer in await asyncio.gather(*streams):
                check_stream(answer)
            found = (await gate.get("/v1/records")).json["data"]
            assert len(found) == STREAMS
            assert "lost" not in {one["request_id"] for one in found}

    run(test)


@pytest.mark.parametrize(
    "url", ["sqlite:/proc/toolglot/toolglot.db", "postgresql://me:hunter2hunter2@127.0.0.1:1/none"]
)
def test_a_store_that_never_works(log: io.StringIO, url: str) -> None:
    async def test() -> None:
        async with gateway(store_url=url) as gate:
            assert [one.status for one in await asyncio.gather(*(gate.ask(STREAM) for _ in range(5)))] == [200] * 5
            health = await wait_for_store(gate, "unavailable")
            assert health["store_problem"]
            answers = [
                (await gate.get(path)).body.decode() for path in ("/v1/records", "/metrics", "/health/readiness")
            ]
            assert "hunter2" not in "".join(answers) + log.getvalue()
        assert "5 records were dropped (shutdown)" in log.getvalue()

    run(test)


# -- secrets -------------------------------------------------------------------------------------------------------------

UPSTREAM_KEY = "planted-upstream-key-4d1f"
CLIENT_KEY = "planted-client-key-9a2b"
HEADER = "planted-header-77aa"
SHAPED = "sk-planted0123456789abcdef"


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_planted_secrets_are_nowhere(
    tmp_path: Path, log: io.StringIO, engine: str, request: pytest.FixtureRequest
) -> None:
    server: PostgresServer | None = request.getfixturevalue("postgres_server") if engine == "postgres" else None
    url = request.getfixturevalue("postgres_url") if server else "sqlite:toolglot.db"
    seen: list[bytes] = []

    async def test() -> None:
        settings: dict[str, Any] = {
            "state_dir": str(tmp_path),
            "store_url": url,
            "store_bodies": "all",
            "log_bodies": "true",
        }
        upstream = {"headers": {"x-extra": HEADER}}
        async with gateway(
            SLOW, upstream=upstream, api_key=UPSTREAM_KEY, client_keys=CLIENT_KEY, **settings
        ) as gate:  # fmt: skip
            key = {"authorization": f"Bearer {CLIENT_KEY}"}
            planted = f'My keys: {UPSTREAM_KEY}, {CLIENT_KEY} {HEADER} {SHAPED}. Read "{SHAPED}.json"'
            messages = [{"role": "system", "content": planted}, {"role": "user", "content": planted}]
            for stream in (True, False):
                answer = await gate.ask({**ASK, "messages": messages, "stream": stream}, **key)
                assert answer.status == 200
            await gate.ask({**ASK, "model": CLIENT_KEY, "messages": [{"role": "user", "content": "Hi"}]}, **key)
            await gate.ask(f"not JSON: {planted}".encode(), x_request_id=CLIENT_KEY, **key)
            await gate.ask({**ASK, "key": SHAPED}, authorization=f"Bearer {SHAPED}", x_request_id=f"x-{SHAPED}")
            listed = await gate.get("/v1/records", **key)
            assert len(listed.json["data"]) == 4
            seen.extend(
                [listed.body, (await gate.get("/metrics", **key)).body, (await gate.get("/health/readiness")).body]
            )
            for one in listed.json["data"]:
                shown = await gate.get(f"/v1/records/{one['id']}", **key)
                assert shown.json["bodies"]
                seen.append(shown.body)
            for path in tmp_path.iterdir():  # the log of SQLite too, which goes when the store is closed
                seen.append(path.read_bytes())

    run(test)
    seen += [path.read_bytes() for path in tmp_path.iterdir()]
    seen.append(log.getvalue().encode())
    if server:
        name = url.rpartition("/")[2]
        for table in server.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", name):
            seen += [str(tuple(row)).encode() for row in server.execute(f"SELECT * FROM {table[0]}", name)]
    planted = (UPSTREAM_KEY, CLIENT_KEY, HEADER, SHAPED, PLAIN_PASSWORD)
    assert len(seen) > 8
    for secret in planted:
        for text in seen:
            assert secret.encode() not in text, (secret, text[max(0, text.find(secret.encode()) - 200) :][:400])
