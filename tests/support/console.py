"""A gateway with the console before a simulated model, and a real browser that opens it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from support.gateway import READ, Answer
from toolglot.config import load
from toolglot.console.app import open_console
from toolglot.server.lifecycle import listening
from toolglot.sim import SimOptions, make_app, running

CHANGE = {"x-toolglot-console": "1"}
"""The header that every change needs."""
AGENT = "demo-agent/1.2"


@dataclass
class OpenedConsole:
    """A gateway with its console. ``headers`` are sent with every request to the API."""

    address: str
    http: aiohttp.ClientSession
    headers: dict[str, str] = field(default_factory=dict)

    async def call(self, path: str, method: str = "GET", body: object = None, **headers: str) -> Answer:
        """A request to the console's API, or to another path if it begins with ``/console``."""
        sent = {**self.headers, **(CHANGE if method != "GET" else {})}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        target = self.address + (path if path.startswith("/console") else f"/console/api{path}")
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.http.request(method, target, data=data, headers=sent, allow_redirects=False) as response:
            return Answer(response.status, response.headers, await response.read())

    async def get(self, path: str) -> Any:
        """What the API answers, which must succeed."""
        answer = await self.call(path)
        assert answer.status == 200, answer.body
        return answer.json

    async def ask(
        self,
        text: str = 'Read the file "package.json"',
        *,
        history: Sequence[Mapping[str, Any]] = (),
        key: str = "none",
        **fields: Any,
    ) -> Answer:
        """A turn of a client."""
        messages = [*history, {"role": "user", "content": text}]
        body = {"model": "sim", "messages": messages, "tools": [READ], "stream": True, **fields}
        headers = {"user-agent": f"{AGENT} (tests)", "authorization": f"Bearer {key}"}
        async with self.http.post(f"{self.address}/v1/chat/completions", json=body, headers=headers) as response:
            return Answer(response.status, response.headers, await response.read())

    async def settle(self) -> None:
        """Wait until the records of all requests that have ended are stored."""
        (await self.http.get(f"{self.address}/v1/sessions", headers=self.headers)).release()

    async def only_session(self) -> dict[str, Any]:
        """The session that there is, with its turns; waits until it is stored."""
        await self.settle()
        [session] = (await self.get("/sessions"))["sessions"]
        found: dict[str, Any] = await self.get(f"/sessions/{session['id']}")
        return found


@asynccontextmanager
async def opened_console(
    folder: Path, options: SimOptions | None = None, app: web.Application | None = None, **arguments: Any
) -> AsyncIterator[OpenedConsole]:
    """A gateway with the console. Bodies are recorded, and tools are text, unless the arguments say otherwise."""
    async with running(app or make_app(options)) as upstream:
        given = {
            "port": 0,
            "state_dir": str(folder),
            "base_url": f"{upstream}/v1",
            "store_bodies": "all",
            "mode": "text",
            "dialect": "hermes",
            "recovery_retries": 0,
            **arguments,
        }
        async with listening(load(given, {}), open_console) as address, aiohttp.ClientSession() as http:
            yield OpenedConsole(address, http)
