"""A soak: all faults at random for a while; afterwards memory, descriptors and tasks are what they were.

No request is like another: half of them have tools, models, keys and texts that are new each time, and some clients disconnect early. What
is kept of names is bounded; the bounds are reached before memory is measured for the first time. Whatever grows after that is a leak.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults.cells import FAULTS, MODES, Cell, closed_port, play, run_cell
from faults.faulty_upstream import faulty_upstream
from faults.processes import Running, running
from faults.scale import SEED, SOAK_SECONDS
from faults.wire_data import WIRES, make_request

CLIENTS = 12
GROWTH = 1.02
"""How much more memory may be held at the end than after the warm-up."""
WARM_NAMES = 1100
"""More than any cache of names keeps (``tests/project/test_caches.py``): all are full before memory is measured."""
WARM_REQUESTS = 2500
"""Random requests before memory is measured, however slow the machine is: what is kept by size is full by then."""
FIRST_WARM = 10_000_000
FOLDER = Path(__file__).resolve().parent


def count(server: Running) -> dict[str, int]:
    assert server.process.stdin is not None and server.process.stdout is not None
    server.process.stdin.write("count\n")
    server.process.stdin.flush()
    payload: dict[str, int] = json.loads(server.process.stdout.readline())
    return payload


def rename(listed: list[dict[str, Any]], number: int) -> None:
    """Give the tools of a request, in the words of any wire, names, keys and words that no other has."""
    for entry in listed:
        for tool in entry.get("functionDeclarations", [entry.get("function", entry)]):
            schema = {"type": "object", "properties": {f"key_{number}": {"type": "string", "description": "Which."}}}
            tool["name"], tool["description"] = f"t{number:x}_read", f"Read {number}. " * 20
            tool["input_schema" if "input_schema" in tool else "parameters"] = schema


def make_distinct(client: str, upstream: str, mode: str, number: int) -> tuple[str, bytes]:
    """Path and body of a request that has its own text, model and tools."""
    cell = Cell("usual_chunked", client, upstream, mode, bool(number % 2), number=number)
    model = f"{cell.kind}.{mode}.{upstream}.{cell.name}"
    path, body = make_request(client, model, stream=cell.stream, tools=mode != "relay")
    text = f"Request {number}: <tool_call> is a mark, t{number:x}_read( is a call. " + f"{number} " * 100
    if "contents" in body:
        body["contents"][0]["parts"][0]["text"] = text
    else:
        body["input" if "input" in body else "messages"][0]["content"] = text
    rename(body.get("tools", []), number)
    return path, json.dumps(body).encode()


async def ask(port: int, path: str, body: bytes, number: int, *, leave: float | None) -> None:
    """Send a request, and take its answer; or leave after some seconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer key-{number}\r\nconnection: close\r\n"
    writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    try:
        if leave is None:
            await reader.read()
        else:
            await asyncio.sleep(leave)
    except ConnectionError:
        pass
    finally:
        writer.close()


async def ask_distinct(port: int, number: int, chance: random.Random) -> None:
    made: Callable[[Any], Any] = chance.choice
    path, body = make_distinct(made(WIRES), made(WIRES), made(MODES), number)
    leave = chance.uniform(0, 0.02) if chance.random() < 0.3 else None
    await ask(port, path, body, number, leave=leave)


async def warm_up(port: int) -> None:
    """Fill what is kept of names of tools, parameters and models. The address of ``gemini`` has the model in it."""
    numbers = iter(range(FIRST_WARM, FIRST_WARM + WARM_NAMES))

    async def work() -> None:
        for number in numbers:
            path, body = make_distinct("openai_chat", "gemini", "text", number)
            await ask(port, path, body, number, leave=None)

    await asyncio.gather(*(work() for _ in range(CLIENTS)))


async def load(port: int, seconds: float, chance: random.Random, first: int = 0, least: int = 0) -> int:
    """Random cells and requests that are new, for some seconds and at least so many; the number of the next."""
    loop = asyncio.get_running_loop()
    end, done = loop.time() + seconds, first

    async def work() -> None:
        nonlocal done
        while loop.time() < end or done < least:
            done += 1
            if chance.random() < 0.5:
                await ask_distinct(port, done, chance)
                continue
            made: Callable[[Any], Any] = chance.choice
            cell = Cell(made(tuple(FAULTS)), made(WIRES), made(WIRES), made(MODES), chance.random() < 0.7, number=done)
            await run_cell(cell, port)

    await asyncio.gather(*(work() for _ in range(CLIENTS)))
    return done


async def settle_down(server: Running, start: dict[str, int]) -> dict[str, int]:
    """The counts when idle connections have been closed."""
    for _ in range(60):
        received = await asyncio.to_thread(count, server)
        if received["descriptors"] <= start["descriptors"] and received["tasks"] <= start["tasks"]:
            break
        await asyncio.sleep(0.25)
    return received


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the process table of Linux")
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    async def run() -> None:
        async with faulty_upstream(lambda model: list(play(model))) as upstream:
            command = (str(FOLDER / "soak_server.py"), str(upstream), str(closed_port()))
            path = f"{FOLDER.parent}:{FOLDER.parent.parent / 'src'}"
            with running(tmp_path / "log", *command, PYTHONPATH=path) as server:
                chance = random.Random(SEED)
                start = count(server)
                await warm_up(server.port)
                done = await load(server.port, SOAK_SECONDS * 2 / 3, chance, least=WARM_REQUESTS)
                warm = await settle_down(server, start)
                done = await load(server.port, SOAK_SECONDS / 3, chance, done)
                end = await settle_down(server, start)
                received = f"after {done} requests: {start} {warm} {end}"
                print(received)
                assert (end["descriptors"], end["tasks"]) == (start["descriptors"], start["tasks"]), received
                assert end["memory"] <= warm["memory"] * GROWTH, received
                assert not (tmp_path / "log").read_text()

    asyncio.run(run())
