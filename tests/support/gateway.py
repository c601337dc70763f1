"""A gateway and a simulated upstream on loopback, for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from aiohttp import web

from toolglot.config import Settings, Upstream, load
from toolglot.server.lifecycle import listening
from toolglot.sim import REQUEST_LOG, RequestLog, SimOptions, make_app, running

READ = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Read a file",
        "parameters": {"type": "object", "properties": {"filePath": {"type": "string"}}, "required": ["filePath"]},
    },
}
ASK = {"model": "sim", "messages": [{"role": "user", "content": 'Read the file "package.json"'}], "tools": [READ]}


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> Any:
        return self.json["choices"][0]["message"]

    @property
    def finish(self) -> str:
        return str(self.json["choices"][0]["finish_reason"])

    @property
    def error(self) -> Any:
        return self.json["error"]

    @property
    def chunks(self) -> list[Any]:
        frames = [frame for frame in self.body.decode().split("\n\n") if frame]
        return [json.loads(frame[6:]) for frame in frames if frame.startswith("data: {")]

    @property
    def joined(self) -> tuple[str, list[tuple[str, str]], str | None]:
        """Text, calls and finish reason of a streamed answer, as a client joins them."""
        text, finish = "", None
        calls: dict[int, list[str]] = {}
        for chunk in self.chunks:
            for choice in chunk.get("choices", ()):
                text += choice["delta"].get("content") or ""
                finish = choice["finish_reason"] or finish
                for call in choice["delta"].get("tool_calls") or ():
                    known = calls.setdefault(call["index"], ["", ""])
                    known[0] += call["function"].get("name", "")
                    known[1] += call["function"].get("arguments", "")
        return text, [(name, arguments) for name, arguments in calls.values()], finish


@dataclass
class Gate:
    """A running gateway. ``record`` has the requests to its upstream; ``upstream`` is the base URL of that."""

    address: str
    record: RequestLog
    session: aiohttp.ClientSession
    upstream: str = ""

    async def ask(self, body: Any = None, path: str = "/v1/chat/completions", **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(ASK if body is None else body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.post(self.address + path, data=data, headers=sent) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(method, self.address + path, headers=sent) as response:
            return Answer(response.status, response.headers, await response.read())


@asynccontextmanager
async def gateway(
    options: SimOptions | None = None,
    app: web.Application | None = None,
    upstream: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> AsyncIterator[Gate]:
    """A gateway in front of a simulated upstream, or of any app; settings are given as on the command line."""
    app = app or make_app(options)
    async with running(app) as address:
        settings = load(
            {"port": 0, "state_dir": "none", "recovery_retries": 0, "base_url": address + "/v1", **arguments}, {}
        )
        if upstream:
            settings = _with(settings, upstream)
        if model:
            settings = replace(settings, models=tuple(replace(one, **model) for one in settings.models))
        async with listening(settings) as own, aiohttp.ClientSession() as session:
            yield Gate(own, app.get(REQUEST_LOG, RequestLog()), session, address + "/v1")


def _with(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    upstreams: tuple[Upstream, ...] = tuple(replace(one, **changes) for one in settings.upstreams)
    return replace(settings, upstreams=upstreams)


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test that waits; nothing here may take longer than a minute."""
    asyncio.run(asyncio.wait_for(_await(test), 60))


async def _await(test: Callable[[], Awaitable[None]]) -> None:
    await test()
