"""Counters of two gateways that share a store, with failures and while workers and a whole gateway are killed.

A gateway counts what its own workers answered; Prometheus adds up gateways, and so do the tests. In every scrape each
request has one outcome, and no counter of a gateway decreases. What a killed process counted in its last half second,
and the records that it had not stored, are lost; what is counted afterwards is also in the store, and the other way
round.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest
from faults.cells import exchange
from faults.processes import Running, find_workers, running
from faults.scrapes import Scrape, scrape
from faults.wire_data import make_request
from support.stores import Place

from toolglot.gateway.telemetry.worker_metrics import WRITE_SECONDS
from toolglot.store.interface import OK, OUTCOMES, RecordQuery, Store

WORKERS = 2
CLIENTS = 6
REQUESTS = 60
"""Requests without a kill; and those that must have been answered between two kills."""
SECONDS = 60.0
MODELS = ("sim:hermes", "sim:hermes+http_500", "sim:hermes+cut_mid_call", "sim:hermes", "sim:hermes+no_done")
ABANDONED = "sim:hermes+pace=200"

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the process table of Linux")


async def ask(port: int, number: int) -> bool:
    """One request: answered, failed, refused, or left by its client. Returns whether its connection held."""
    model = MODELS[number % len(MODELS)]
    path, fields = make_request("openai_chat", model, stream=number % 2 == 0, tools=True, question=f"Read {number}.")
    body = b'{"model": "sim", "messages"' if number % 7 == 3 else json.dumps(fields).encode()
    try:
        if number % 11 == 5:
            await leave(port, path, json.dumps({**fields, "model": ABANDONED, "stream": True}).encode())
        else:
            await exchange(port, path, body, "")
    except (OSError, asyncio.IncompleteReadError):
        return False
    return True


async def leave(port: int, path: str, body: bytes) -> None:
    """Disconnect as soon as the answer begins."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await reader.readuntil(b"\r\n\r\n")
    finally:  # also if the worker was killed
        writer.transport.abort()


class Load:
    """Clients of some gateways, and scrapes of each while they work."""

    def __init__(self, gateways: Sequence[Running]) -> None:
        self.gateways = gateways
        self.answered = 0
        self.latest: dict[int, Scrape] = {}
        self.going = True

    async def run(self, disturb: asyncio.Future[None] | asyncio.Task[None] | None = None) -> None:
        """Work until enough is answered and ``disturb`` has ended."""
        numbers = count()
        clients = [asyncio.create_task(self.work(numbers)) for _ in range(CLIENTS)]
        scrapes = [asyncio.create_task(self.watch(gateway.port)) for gateway in self.gateways]
        while self.answered < REQUESTS:
            await asyncio.sleep(0.02)
        if disturb is not None:
            await disturb
        self.going = False
        await asyncio.gather(*clients, *scrapes)

    async def work(self, numbers: Iterator[int]) -> None:
        while self.going:
            number = next(numbers)
            if await ask(self.gateways[number % len(self.gateways)].port, number):
                self.answered += 1
            else:
                await asyncio.sleep(0.05)

    async def watch(self, port: int) -> None:
        while self.going:
            with suppress(OSError):
                found = await scrape(port)
                if port in self.latest:
                    assert not self.latest[port].outcomes - found.outcomes, "a counter decreased"
                self.latest[port] = found
            await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """A worker of each gateway, then all processes of the last one, each after some more answers."""
        for gateway in self.gateways:
            await self.wait_for_more()
            os.kill(find_workers(gateway.process.pid)[0], signal.SIGKILL)
        await self.wait_for_more()
        last = self.gateways[-1].process.pid
        for process in (last, *find_workers(last)):
            os.kill(process, signal.SIGKILL)
        await self.wait_for_more()

    async def wait_for_more(self) -> None:
        enough = self.answered + REQUESTS // 2
        while self.answered < enough:
            await asyncio.sleep(0.02)


async def list_stored(store: Store) -> list[tuple[str, str]]:
    """The session and the outcome of every record."""
    listed = [await store.list_records(None, RecordQuery(limit=100_000, outcome=outcome)) for outcome in OUTCOMES]
    return sorted((row.session, row.outcome) for rows in listed for row in rows)


async def check_sessions(store: Store, stored: Sequence[tuple[str, str]]) -> None:
    """Each session has counted the records that belong to it."""
    turns = Counter(session for session, _ in stored if session)
    failed = Counter(session for session, outcome in stored if outcome != OK)
    for name, number in turns.items():
        row = await store.get_session(None, name)
        assert row is not None and (row.turns, row.failed) == (number, failed[name])


async def settle(gateways: Sequence[Running], store: Store) -> tuple[Counter[str], Counter[str]]:
    """What the gateways have counted, all together, and what is stored, when neither changes any more."""
    before = None
    async with asyncio.timeout(SECONDS):
        while True:
            scrapes = [await scrape(gateway.port) for gateway in gateways]
            found = sum((one.outcomes for one in scrapes), Counter()), await list_stored(store)
            if found == before and not any(one.queued for one in scrapes):
                await check_sessions(store, found[1])
                return found[0], Counter(outcome for _, outcome in found[1])
            before = found
            await asyncio.sleep(2 * WRITE_SECONDS)


@contextmanager
def started(place: Place, name: str, upstream: int) -> Iterator[Running]:
    url = f"sqlite:{place.file}" if place.is_sqlite else place.url
    environ = {
        "TOOLGLOT_STORE_URL": url,
        "TOOLGLOT_STATE_DIR": str(place.folder / "state"),
        "TOOLGLOT_WORKERS": str(WORKERS),
        "TOOLGLOT_RECOVERY_RETRIES": "0",
        "TMPDIR": str(place.folder),
    }
    serve = ("-m", "toolglot", "serve", "--port", "0", "--base-url", f"http://127.0.0.1:{upstream}/v1")
    with running(place.folder / name, *serve, **environ) as server:
        yield server


async def test_counters_of_replicas_add_up(place: Place) -> None:
    sim = ("-m", "toolglot", "sim", "--port", "0", "--dialect", "hermes")
    with ExitStack() as stack:
        upstream = stack.enter_context(running(place.folder / "sim", *sim)).port
        one, other = (stack.enter_context(started(place, name, upstream)) for name in ("one", "other"))
        async with place.opened() as store:
            await Load([one, other]).run()
            counted, stored = await settle([one, other], store)
            assert counted == stored and set(counted) == set(OUTCOMES), "nothing was killed"
            load = Load([one, other])
            await load.run(asyncio.create_task(load.kill()))
            third = stack.enter_context(started(place, "third", upstream))
            before, stored_before = await settle([one, third], store)
            assert stored_before >= stored
            await Load([one, third]).run()
            after, stored_after = await settle([one, third], store)
            assert after - before == stored_after - stored_before
            assert (after - before).total() >= REQUESTS
