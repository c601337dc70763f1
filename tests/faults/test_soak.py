"""A soak: all faults at random for a while; afterwards memory, descriptors and tasks are what they were."""

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
from faults.wire_data import WIRES

CLIENTS = 12
GROWTH = 1.02 if SOAK_SECONDS >= 120 else 1.06
"""How much more memory may be held at the end than after the warm-up: what is cached comes in the first minutes."""
FOLDER = Path(__file__).resolve().parent


def count(server: Running) -> dict[str, int]:
    assert server.process.stdin is not None and server.process.stdout is not None
    server.process.stdin.write("count\n")
    server.process.stdin.flush()
    told: dict[str, int] = json.loads(server.process.stdout.readline())
    return told


async def load(port: int, seconds: float, chance: random.Random) -> int:
    """Random cells for some seconds; how many."""
    loop = asyncio.get_running_loop()
    end, done = loop.time() + seconds, 0

    async def work() -> None:
        nonlocal done
        while loop.time() < end:
            made: Callable[[Any], Any] = chance.choice
            cell = Cell(made(tuple(FAULTS)), made(WIRES), made(WIRES), made(MODES), chance.random() < 0.7, number=done)
            await run_cell(cell, port)
            done += 1

    await asyncio.gather(*(work() for _ in range(CLIENTS)))
    return done


async def settle_down(server: Running, start: dict[str, int]) -> dict[str, int]:
    """The counts when idle connections have been closed."""
    for _ in range(60):
        told = await asyncio.to_thread(count, server)
        if told["descriptors"] <= start["descriptors"] and told["tasks"] <= start["tasks"]:
            break
        await asyncio.sleep(0.25)
    return told


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the process table of Linux")
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    async def run() -> None:
        async with faulty_upstream(lambda model: list(play(model))) as upstream:
            command = (str(FOLDER / "soak_server.py"), str(upstream), str(closed_port()))
            path = f"{FOLDER.parent}:{FOLDER.parent.parent / 'src'}"
            with running(tmp_path / "log", *command, PYTHONPATH=path) as server:
                chance = random.Random(SEED)
                start = count(server)
                done = await load(server.port, SOAK_SECONDS / 2, chance)
                warm = await settle_down(server, start)
                done += await load(server.port, SOAK_SECONDS / 2, chance)
                end = await settle_down(server, start)
                told = f"after {done} requests: {start} {warm} {end}"
                print(told)
                assert (end["descriptors"], end["tasks"]) == (start["descriptors"], start["tasks"]), told
                assert end["memory"] <= warm["memory"] * GROWTH, told
                assert not (tmp_path / "log").read_text()

    asyncio.run(run())
