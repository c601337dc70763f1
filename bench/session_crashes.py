"""Kill gateways while they continue chats, and check that the model never sees a wrong history.

    python bench/session_crashes.py [--kills 200] [--engine sqlite|postgres] [--seed 1]

Clients talk through two gateway processes that share one store, to a simulated web chat in this process. One of the
processes is killed (SIGKILL) at a random moment, over and over, and started again. Every text of a conversation holds a
unique fact; for each request that was answered, the facts that the model saw are compared with those of the request.
Clients whose request dies repeat it. With SQLite, the file is checked after each kill.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from toolglot.sim.answer import Answer
from toolglot.sim.qwen_web import ChatSimOptions, ChatSimulation, make_app, running

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

FACT = re.compile(r"F\d{7}")
CLIENTS = 6
TURNS = 8
SETTINGS = """\
[server]
port = {port}
state_dir = "{folder}"
log_level = "error"
[store]
url = "{store}"
[[upstream]]
name = "qwen"
wire = "qwen_web"
base_url = "{upstream}"
api_key = "sim-token"
accept_terms = true
[[model]]
name = "*"
upstream = "qwen"
"""


class Gateways:
    """Two gateway processes on one store."""

    def __init__(self, folder: Path, upstream: str, store: str) -> None:
        self.folder, self.upstream, self.store = folder, upstream, store
        self.ports = [free_port(), free_port()]
        self.processes: list[subprocess.Popen[bytes]] = [self.start(port) for port in self.ports]

    def start(self, port: int) -> subprocess.Popen[bytes]:
        path = self.folder / f"{port}.toml"
        path.write_text(SETTINGS.format(port=port, folder=self.folder, store=self.store, upstream=self.upstream))
        command = [sys.executable, "-m", "toolglot", "serve", "--config", str(path)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=(self.folder / "log").open("ab"))

    def kill(self, at: int) -> None:
        self.processes[at].send_signal(signal.SIGKILL)
        self.processes[at].wait()
        self.processes[at] = self.start(self.ports[at])

    async def wait(self, at: int) -> None:
        """Wait until a process listens."""
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.ports[at])
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


class Load:
    """Clients that keep their histories, and the count of what the model saw."""

    def __init__(self, seed: int) -> None:
        self.ports: list[int] = []
        self.contexts: dict[str, tuple[str, int]] = {}
        self.chance = random.Random(seed)
        self.facts = count(1)
        self.counts: Counter[str] = Counter()

    def fact(self) -> str:
        return f"F{next(self.facts):07}"

    async def talk(self, session: aiohttp.ClientSession) -> None:
        while True:
            messages: list[dict[str, Any]] = []
            for _ in range(TURNS):
                messages.append({"role": "user", "content": f"Question {self.fact()}"})
                while (answer := await self.ask(session, messages)) is None:
                    self.counts["requests without an answer"] += 1
                    await asyncio.sleep(0.05)
                messages.append({"role": "assistant", "content": answer})

    async def ask(self, session: aiohttp.ClientSession, messages: list[dict[str, Any]]) -> str | None:
        port = self.chance.choice(self.ports)
        body = {"model": "qwen3.7-plus", "messages": messages, "stream": True}
        text, done = "", False
        try:
            async with session.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as response:
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        chunk = json.loads(line[6:])
                        if "error" in chunk:
                            return None
                        text += "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])
                    done = done or line.startswith(b"data: [DONE]")
        except (aiohttp.ClientError, OSError, TimeoutError):
            return None
        if response.status != 200 or not done:
            return None
        self.check(messages, text)
        return text

    def think(self, messages: Any) -> Answer:
        """The model: each answer has a fact of its own, by which the context that it was made from is found."""
        fact = self.fact()
        self.contexts[fact] = "\n".join(message.text for message in messages), len(messages)
        return Answer(f"Answer {fact}. " + "And so on. " * 20)

    def check(self, messages: list[dict[str, Any]], answer: str) -> None:
        """Compare the facts that the model saw with those of the request."""
        sent = set(FACT.findall(json.dumps(messages)))
        context, size = self.contexts.pop(FACT.findall(answer)[0])
        seen = set(FACT.findall(context))
        self.counts["requests answered"] += 1
        self.counts["turns continued in their chat"] += size > 1
        self.counts["facts missing"] += len(sent - seen)
        self.counts["foreign facts"] += len(seen - sent)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def check_file(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "toolglot.db", timeout=10)) as database:
        return str(database.execute("PRAGMA integrity_check").fetchone()[0])


async def run(store: str, kills: int, seed: int) -> Counter[str]:
    load = Load(seed)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        simulation = ChatSimulation(ChatSimOptions(brain=load.think, pace=0.002, lock=0.5))
        address = await stack.enter_async_context(running(make_app(simulation)))
        gateways = Gateways(folder, address, store)
        stack.callback(gateways.close)
        load.ports = gateways.ports
        session = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30)))
        tasks = [asyncio.create_task(load.talk(session)) for _ in range(CLIENTS)]
        for number in range(kills):
            await gateways.wait(number % 2)
            await asyncio.sleep(load.chance.uniform(0.0, 1.0))
            gateways.kill(number % 2)
            load.counts["kills"] += 1
            if store.startswith("sqlite"):
                load.counts["damaged files"] += check_file(folder) != "ok"
            for task in tasks:
                if task.done():
                    task.result()
        await asyncio.sleep(3)
        for task in tasks:
            task.cancel()
        load.counts["rules of the upstream broken"] = len(simulation.violations)
    return load.counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--engine", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ.pop("TOOLGLOT_CONFIG", None)
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # it reports every client that dies
    with open_store(arguments.engine) as store:
        counts = asyncio.run(run(store, arguments.kills, arguments.seed))
    for name, number in counts.items():
        print(f"{name:<32} {number:>8,}")


@contextmanager
def open_store(engine: str) -> Iterator[str]:
    """The URL of a fresh store."""
    if engine == "sqlite":
        yield "sqlite:toolglot.db"
        return
    from support.postgres import PostgresServer

    server = PostgresServer()
    try:
        server.start()
        with server.lend_database() as url:
            yield url
    finally:
        server.remove()


if __name__ == "__main__":
    main()
