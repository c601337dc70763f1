"""Workers that are killed under load: they are replaced, and their clients see at worst a truncated answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest
from faults.cells import exchange
from faults.client_readers import read_answer
from faults.processes import find_workers, running
from faults.scrapes import scrape
from faults.wire_data import make_request

from toolglot.gateway.telemetry.worker_metrics import WRITE_SECONDS

WORKERS = 3
KILLS = 3
CLIENTS = 12


async def ask(port: int, *, stream: bool) -> str:
    path, body = make_request("openai_chat", "sim", stream=stream, tools=True)
    try:
        status, encoded, complete = await exchange(port, path, json.dumps(body).encode(), "x")
    except (OSError, asyncio.IncompleteReadError):
        return "cut"
    return read_answer("openai_chat", status, encoded, stream=stream, complete=complete).end


async def load(server: int, port: int) -> list[str]:
    """Requests of all clients while workers are killed, and how each of them ended."""
    ends: list[str] = []
    going = True

    async def work(number: int) -> None:
        while going:
            ends.append(await ask(port, stream=number % 2 == 0))

    clients = [asyncio.create_task(work(number)) for number in range(CLIENTS)]
    enough = 2 * CLIENTS
    killed: list[int] = []  # a process that was killed may be listed a little longer
    while len(killed) < KILLS:
        workers = [worker for worker in find_workers(server) if worker not in killed]
        if len(workers) == WORKERS and ends.count("ok") >= enough:
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])
            enough = ends.count("ok") + 2 * CLIENTS
        await asyncio.sleep(0.1)
    going = False
    await asyncio.gather(*clients)
    return ends


async def check_metrics(port: int) -> None:
    """Scrapes, each by any of the workers: their counters add up, and once all have written they are the same."""
    await scrape(port)
    await asyncio.sleep(2 * WRITE_SECONDS)
    shown = [await scrape(port) for _ in range(10)]
    assert {one.requests for one in shown} == {shown[0].requests}
    assert shown[-1].totals["toolglot_streams_in_flight"] == 0


async def ask_often(port: int) -> set[str]:
    return {await ask(port, stream=number % 2 == 0) for number in range(12)}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the process table of Linux")
def test_killed_workers_are_replaced_under_load(tmp_path: Path) -> None:
    sim = ("-m", "toolglot", "sim", "--port", "0", "--pace", "10", "--chunk", "4", "--dialect", "hermes")
    with running(tmp_path / "sim", *sim) as upstream:
        serve = ("-m", "toolglot", "serve", "--port", "0", "--base-url", f"http://127.0.0.1:{upstream.port}/v1")
        with running(tmp_path / "serve", *serve, TOOLGLOT_WORKERS=str(WORKERS)) as server:
            ends = asyncio.run(asyncio.wait_for(load(server.process.pid, server.port), 90))
            assert set(ends) <= {"ok", "cut"}
            deadline = time.monotonic() + 20
            while len(find_workers(server.process.pid)) < WORKERS and time.monotonic() < deadline:
                time.sleep(0.1)
            while asyncio.run(ask_often(server.port)) != {"ok"}:  # the last one starts to listen
                assert time.monotonic() < deadline
            asyncio.run(check_metrics(server.port))
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(40) == 0
            assert server.log.read_text().count("was killed by signal 9") == KILLS
