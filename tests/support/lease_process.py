"""A process that competes for the lease of the chat ``c1``; each time that it gets it, it adds a turn.

What it does is appended to a log: ``begin HOLDER TOKEN TURN`` and ``end HOLDER TOKEN TURN``.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from pathlib import Path

from toolglot.store import open_store
from toolglot.store.interface import ChainNode


async def compete(url: str, folder: Path, log: int, rounds: int, holder: str) -> None:
    store = open_store(url, state_folder=folder, now=time.time)
    assert store is not None
    await store.open()
    done = 0
    while done < rounds:
        token = await store.acquire_lease("c1", holder, 30)
        if token is None:
            await asyncio.sleep(random.random() * 0.01)
            continue
        turn = 0
        while await store.find_nodes([b"turn %d" % turn]):
            turn += 1
        os.write(log, f"begin {holder} {token} {turn}\n".encode())
        assert await store.interrupt_chat("c1", token)
        await asyncio.sleep(random.random() * 0.005)
        added = ChainNode(key=b"turn %d" % turn, session="s1", chat="c1", message=f"m{turn}")
        assert await store.commit_turn([added], "c1", f"m{turn}", token)
        os.write(log, f"end {holder} {token} {turn}\n".encode())
        await store.release_lease("c1", token)
        done += 1
    await store.close()


if __name__ == "__main__":
    opened = os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    asyncio.run(compete(sys.argv[1], Path(sys.argv[2]), opened, int(sys.argv[4]), sys.argv[5]))
