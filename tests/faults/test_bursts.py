"""Bursts of connections: with a signal in the middle, and connections that never send anything."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.cells import exchange, read_chunks
from faults.client_readers import read_answer
from faults.processes import allow_connections, running
from faults.scale import BURSTS, CONNECTIONS, SEED
from faults.wire_data import make_request
from support.gateway import ASK, gateway

from toolglot.server import http_connection, listener

STREAMS = 20
"""Connections of each burst that ask for a stream; of the others, half are idle and half send only a part."""
DRAIN = 15
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n"
HALF_HEAD, HALF_BODY = HEAD[:50].encode(), HEAD.format(1000).encode() + b'{"model": '


async def stream(port: int) -> str:
    """How a stream ended; ``refused`` if no answer began."""
    _, body = make_request("openai_chat", "sim", stream=True, tools=True)
    data = json.dumps(body).encode()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return "refused"
    try:
        writer.write(HEAD.format(len(data)).encode() + data)
        head = await reader.readuntil(b"\r\n\r\n")
    except (ConnectionError, asyncio.IncompleteReadError):
        return "refused"
    else:
        received, complete = await read_chunks(reader)
        return read_answer("openai_chat", int(head.split()[1]), received, stream=True, complete=complete).end
    finally:
        writer.close()


async def plan_response(port: int, words: bytes) -> asyncio.StreamWriter | None:
    """A connection that sends data and waits."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(words)
    except OSError:
        return None
    return writer


async def burst(
    port: int, streams: list[asyncio.Task[str]], in_the_middle: Callable[[], None]
) -> list[asyncio.StreamWriter]:
    """All at once; those that only wait."""
    streams += [asyncio.create_task(stream(port)) for _ in range(STREAMS // 2)]
    words = (b"", HALF_HEAD, b"", HALF_BODY)
    silent = [asyncio.create_task(plan_response(port, words[number % 4])) for number in range(CONNECTIONS - STREAMS)]
    await asyncio.wait(silent, return_when=asyncio.FIRST_COMPLETED)
    in_the_middle()
    streams += [asyncio.create_task(stream(port)) for _ in range(STREAMS // 2)]
    return [writer for writer in await asyncio.gather(*silent) if writer is not None]


def test_a_signal_in_the_middle_of_bursts_cuts_no_stream(tmp_path: Path) -> None:
    allow_connections(4 * CONNECTIONS)
    sim = ("-m", "toolglot", "sim", "--port", "0", "--pace", "100", "--chunk", "4", "--dialect", "hermes")
    with running(tmp_path / "sim", *sim) as upstream:
        base_url = f"http://127.0.0.1:{upstream.port}/v1"
        serve = (
            "-m",
            "toolglot",
            "serve",
            "--port",
            "0",
            "--base-url",
            base_url,
            "--mode",
            "text",
            "--dialect",
            "hermes",
        )
        with running(tmp_path / "serve", *serve, TOOLGLOT_DRAIN_SECONDS=str(DRAIN)) as server:

            async def run() -> tuple[list[str], float]:
                streams: list[asyncio.Task[str]] = []
                held: list[asyncio.StreamWriter] = []
                stopped = 0.0

                def stop() -> None:
                    nonlocal stopped
                    stopped = time.monotonic()
                    server.process.send_signal(signal.SIGTERM)

                for number in range(BURSTS):
                    waiting = await burst(server.port, streams, stop if number == BURSTS // 2 else lambda: None)
                    await asyncio.sleep(0.1)
                    if number == BURSTS // 2:
                        held = waiting
                        continue
                    for writer in waiting:
                        writer.close()
                ends = await asyncio.gather(*streams)
                for writer in held:
                    writer.close()
                return ends, stopped

            ends, stopped = asyncio.run(run())
            code = server.process.wait(2 * DRAIN)
            took = time.monotonic() - stopped
            assert code == 0, server.log.read_text()[-2000:]
            assert set(ends) <= {"ok", "refused"}
            assert ends.count("ok") >= STREAMS * (BURSTS // 2)
            assert took < DRAIN + 10
            assert "Traceback" not in server.log.read_text()


def test_silent_clients_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_connections(8 * CONNECTIONS)
    monkeypatch.setattr(http_connection, "IDLE_TIMEOUT", 1.0)
    monkeypatch.setattr(http_connection, "INPUT_TIMEOUT", 1.0)
    monkeypatch.setattr(listener, "SWEEP_SECONDS", 0.1)
    chance = random.Random(SEED)

    async def run() -> None:
        async with gateway() as gate:
            port = int(gate.address.rpartition(":")[2])
            left: list[asyncio.Task[None]] = []

            async def hold(words: bytes) -> None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(words)
                if chance.random() < 0.3:
                    writer.transport.abort()
                    return
                try:
                    await reader.read()
                except ConnectionError:
                    pass
                finally:
                    writer.close()

            for _ in range(BURSTS):
                left = [one for one in left if not one.done()]
                left += [
                    asyncio.create_task(hold(chance.choice((b"", HALF_HEAD, HALF_BODY)))) for _ in range(CONNECTIONS)
                ]
                await asyncio.sleep(0.05)
                while len(left) - sum(one.done() for one in left) > 2 * CONNECTIONS:
                    await asyncio.sleep(0.05)
            async with asyncio.timeout(20):
                await asyncio.gather(*left)
            status, _, complete = await exchange(port, "/v1/chat/completions", json.dumps(ASK).encode(), "x")
            assert (status, complete) == (200, True)

    asyncio.run(asyncio.wait_for(run(), 120))
