"""A gateway in front of a simulated web chat, and clients that count which facts the model sees.

Every text in a conversation holds a fact: a unique word such as ``F0012``. After each request the facts in what the
client sent are compared with the facts that the model saw.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

from toolglot.config import Settings, load
from toolglot.server.lifecycle import listening
from toolglot.sim.answer import Answer, SimCall
from toolglot.sim.qwen_web import ChatSimOptions, ChatSimulation, SeenMessage, make_app, running

FACT = re.compile(r"F\d{4}")
MODEL = "qwen3.7-plus"
TOKEN = "sim-token"


@dataclass
class Score:
    """Facts of the requests, facts that the model saw of them, and facts of other conversations that it saw."""

    sent: int = 0
    seen: int = 0
    foreign: int = 0

    def add(self, request: str, context: str) -> None:
        wanted, shown = set(FACT.findall(request)), set(FACT.findall(context))
        self.sent += len(wanted)
        self.seen += len(wanted & shown)
        self.foreign += len(shown - wanted)


@dataclass
class Lab:
    """``simulation`` is the web chat. ``answers`` are the next answers of the model; by default each has a new fact."""

    folder: Path
    semantics: str = "path"
    branch_mode: str = "reseed"
    chaining: str = "auto"
    store: str = ""
    stream: bool = True
    keys: str = ""
    upstream: dict[str, Any] = field(default_factory=dict)
    score: Score = field(default_factory=Score)
    answers: list[Answer] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(1))
    gateways: list[str] = field(default_factory=list)

    def fact(self) -> str:
        return f"F{next(self.numbers):04}"

    def think(self, messages: Any) -> Answer:
        assert all(isinstance(message, SeenMessage) for message in messages)
        return self.answers.pop(0) if self.answers else Answer(f"Answer {self.fact()}.")

    @property
    def settings(self) -> Settings:
        settings = load(
            {
                "port": 0,
                "state_dir": str(self.folder),
                "base_url": self.address,
                "api_key": TOKEN,
                **({"store_url": self.store} if self.store else {}),
                **({"client_keys": self.keys} if self.keys else {}),
            },
            {},
        )
        changed: dict[str, Any] = {
            "wire": "qwen_web",
            "accept_terms": True,
            "chaining": self.chaining,
            "branch_mode": self.branch_mode,
            **self.upstream,
        }
        return replace(settings, upstreams=tuple(replace(one, **changed) for one in settings.upstreams))

    @asynccontextmanager
    async def open(self, replicas: int = 1, **options: Any) -> AsyncIterator[Lab]:
        self.simulation = ChatSimulation(ChatSimOptions(brain=self.think, semantics=self.semantics, **options))
        async with running(make_app(self.simulation)) as self.address, aiohttp.ClientSession() as self.session:
            async with AsyncExitStack() as self.servers:
                await self.start(replicas)
                yield self
            assert self.simulation.violations == []

    async def start(self, replicas: int = 1) -> None:
        self.gateways = [await self.servers.enter_async_context(listening(self.settings)) for _ in range(replicas)]

    async def restart(self) -> None:
        """Stop the gateways, and start them again with the same store."""
        replicas = len(self.gateways)
        await self.servers.aclose()
        await self.start(replicas)

    async def age_store(self, seconds: float) -> None:
        """Make everything in the store older, as if the gateway had not been used for some time."""
        for table in ("chats", "sessions"):
            self.write_store(f"UPDATE {table} SET created = created - {seconds}, used = used - {seconds}")

    def write_store(self, statement: str) -> None:
        """Change the SQLite file from outside."""
        with closing(sqlite3.connect(self.folder / "toolglot.db", timeout=10)) as database, database:
            database.execute(statement)

    def read_store(self, statement: str) -> Any:
        with closing(sqlite3.connect(self.folder / "toolglot.db", timeout=10)) as database:
            return database.execute(statement).fetchone()[0]

    def check_continued(self, content: str = "") -> None:
        """Check that the last request went to a known chat: with the tail alone, which is ``content`` if given."""
        if self.chaining == "auto":
            assert "F0001" not in self.last_content, "the whole history was sent to a new chat"
            assert content in ("", self.last_content)

    @property
    def last_content(self) -> str:
        """The message that the upstream was sent last."""
        bodies = [body for body in self.simulation.record.bodies if isinstance(body, dict) and body.get("messages")]
        return str(bodies[-1]["messages"][0]["content"])


@dataclass
class Client:
    """A client that keeps its history, as agents do."""

    lab: Lab
    system: str = ""
    tools: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    key: str = ""
    replica: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    def say(self, text: str = "Question") -> None:
        self.messages.append({"role": "user", "content": f"{text} {self.lab.fact()}"})

    def add_result(self, call: Mapping[str, Any], text: str = "Result") -> None:
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": f"{text} {self.lab.fact()}"})

    @property
    def body(self) -> dict[str, Any]:
        system = [{"role": "system", "content": self.system}] if self.system else []
        tools = {"tools": self.tools} if self.tools else {}
        return {"model": MODEL, "messages": [*system, *self.messages], "stream": self.lab.stream, **tools, **self.extra}

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    async def post(self) -> tuple[int, dict[str, Any]]:
        """Send the history. Returns status and message, or the error."""
        address = self.lab.gateways[self.replica]
        async with self.lab.session.post(
            address + "/v1/chat/completions", json=self.body, headers=self.headers
        ) as response:
            raw = await response.text()
        if response.status != 200:
            return response.status, json.loads(raw)["error"]
        return read_stream(raw) if self.lab.stream else (200, json.loads(raw)["choices"][0]["message"])

    async def ask(self, scored: bool = True) -> list[Any]:
        """Send the history and append the answer. Returns its calls."""
        before, sent = len(self.lab.simulation.seen), json.dumps(self.body)
        status, message = await self.post()
        assert status == 200, message
        if scored:
            self.lab.score.add(sent, self.find_context(sent, before))
        self.messages.append({"role": "assistant", **message})
        calls: list[Any] = message.get("tool_calls") or []
        return calls

    def find_context(self, sent: str, since: int) -> str:
        """What the model saw of this request: the latest context that ends with the client's last message."""
        last = FACT.findall(json.dumps(self.messages[-1]))[-1]
        contexts = [seen for seen in self.lab.simulation.seen[since:] if last in seen.messages[-1].text]
        assert contexts, f"the model never saw {last}"
        return contexts[-1].text

    async def disconnect(self) -> None:
        """Send the history and leave when the first piece of the answer comes."""
        address = self.lab.gateways[self.replica]
        async with self.lab.session.post(
            address + "/v1/chat/completions", json=self.body, headers=self.headers
        ) as response:
            await response.content.readany()
            response.close()
        await asyncio.sleep(0.05)


def read_stream(raw: str) -> tuple[int, dict[str, Any]]:
    """The message that a stream makes; the error if it ends with one."""
    text = ""
    calls: dict[int, dict[str, Any]] = {}
    for line in raw.splitlines():
        if not line.startswith("data: {"):
            continue
        chunk = json.loads(line[6:])
        if "error" in chunk:
            return 0, chunk["error"]
        for choice in chunk["choices"]:
            delta = choice["delta"]
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(
                    piece["index"],
                    {"id": piece.get("id"), "type": "function", "function": {"name": "", "arguments": ""}},
                )
                for name in ("name", "arguments"):
                    call["function"][name] += piece["function"].get(name) or ""
    message: dict[str, Any] = {"content": text or None}
    return 200, message | ({"tool_calls": list(calls.values())} if calls else {})


def make_tool(name: str, description: str = "") -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def make_call(path: str, name: str = "read") -> SimCall:
    return SimCall(name, json.dumps({"path": path}))
