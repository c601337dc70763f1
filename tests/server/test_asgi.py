"""The gateway as an ASGI application, driven by the events of the protocol."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.gateway import ASK, Answer, run

from toolglot.config import make_settings
from toolglot.core.errors import UsageError
from toolglot.server import AsgiGateway
from toolglot.server.asgi import HIGH_WATER, Event, Scope
from toolglot.sim import Answer as Written
from toolglot.sim import ScriptedAnswer, SimOptions, make_app, running

QUIET: dict[str, Any] = {"state_dir": "none", "recovery_retries": 0}
LONG = SimOptions(script=(ScriptedAnswer(Written("a word " * 100_000), times=0),), chunk=4000)
SLOW = SimOptions(script=(ScriptedAnswer(Written("a word " * 1000), times=0),), chunk=10, pace=50)


@asynccontextmanager
async def started(options: SimOptions | None = None, **arguments: Any) -> AsyncIterator[AsgiGateway]:
    async with running(make_app(options)) as address:
        async with AsgiGateway(make_settings(**QUIET, base_url=f"{address}/v1", **arguments)) as app:
            yield app


class Exchange:
    """One request as an ASGI server hands it on. ``slow`` stops taking the response until it is cleared."""

    def __init__(self, app: AsgiGateway, body: bytes | None = None, **scope: Any) -> None:
        self.scope: Scope = {
            **{"type": "http", "method": "POST", "path": "/v1/chat/completions", "query_string": b""},
            **{"headers": [(b"host", b"127.0.0.1:80")], "client": ("127.0.0.1", 1234), "root_path": ""},
            **scope,
        }
        self.body = json.dumps(ASK).encode() if body is None else body
        self.events: list[Event] = []
        self.gone = asyncio.Event()
        self.takes = asyncio.Event()
        self.takes.set()
        self.started = asyncio.Event()
        self._sent = False
        self.task = asyncio.create_task(app(self.scope, self._receive, self._send))

    async def _receive(self) -> Event:
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": self.body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, event: Event) -> None:
        self.events.append(event)
        self.started.set()
        await self.takes.wait()

    @property
    def answer(self) -> Answer:
        start, *rest = self.events
        assert [event.get("more_body", False) for event in rest] == [True] * (len(rest) - 1) + [False]
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(event["body"] for event in rest))


async def ask(app: AsgiGateway, body: Any = None, **scope: Any) -> Answer:
    exchange = Exchange(app, None if body is None else json.dumps(body).encode(), **scope)
    await exchange.task
    return exchange.answer


def test_a_call_is_answered_whole_and_streamed() -> None:
    async def test() -> None:
        async with started() as app:
            whole = await ask(app)
            assert [call["function"]["name"] for call in whole.message["tool_calls"]] == ["read"]
            assert whole.headers["content-length"] == str(len(whole.body))
            assert whole.headers["content-type"] == "application/json"
            streamed = await ask(app, {**ASK, "stream": True})
            assert streamed.joined == (
                "I'll use the read tool.",
                [("read", '{"filePath":"package.json"}')],
                "tool_calls",
            )
            assert streamed.headers["content-type"].startswith("text/event-stream")
            assert "content-length" not in streamed.headers

    run(test)


def test_a_client_library_uses_it_without_a_port() -> None:
    async def test() -> None:
        async with started() as app:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                listed = await client.get("/v1/models")
                assert listed.status_code == 200 and listed.json()["data"][0]["id"] == "sim"
                assert (await client.get("/nowhere")).status_code == 404

    run(test)


@pytest.mark.parametrize(
    ("root", "path", "raw"),
    [
        ("/llm", "/llm/v1/chat/completions", b"/llm/v1/chat/completions"),
        ("/llm", "/v1/chat/completions", None),
        ("/a/b", "/a/b/v1/chat/completions", None),
    ],
)
def test_it_answers_below_the_place_where_it_is_mounted(root: str, path: str, raw: bytes | None) -> None:
    async def test() -> None:
        async with started() as app:
            assert (await ask(app, root_path=root, path=path, raw_path=raw)).status == 200

    run(test)


def test_without_keys_only_this_machine_is_served() -> None:
    async def test() -> None:
        async with started() as app:
            assert (await ask(app, client=("192.0.2.7", 1))).status == 403
            assert (await ask(app, headers=[(b"host", b"example.com")])).status == 403
            assert (await ask(app, client=None)).status == 200
        async with started(client_keys="secret-key-of-a-client") as app:
            assert (await ask(app, client=("192.0.2.7", 1))).status == 401
            headers = [(b"host", b"example.com"), (b"authorization", b"Bearer secret-key-of-a-client")]
            assert (await ask(app, client=("192.0.2.7", 1), headers=headers)).status == 200

    run(test)


def test_a_slow_client_stops_the_upstream() -> None:
    """What waits for the client stays small, however long the answer is; then all of it arrives."""

    async def test() -> None:
        async with started(LONG) as app:
            exchange = Exchange(app, json.dumps({**ASK, "stream": True}).encode())
            exchange.takes.clear()
            await exchange.started.wait()
            await asyncio.sleep(0.3)
            [request] = app._open
            assert request.is_blocked and HIGH_WATER < request._waiting < 4 * HIGH_WATER
            exchange.takes.set()
            await exchange.task
            assert exchange.answer.joined[0] == "a word " * 100_000

    run(test)


def test_a_client_that_disconnects_ends_its_request() -> None:
    async def test() -> None:
        async with started(SLOW) as app:
            exchange = Exchange(app, json.dumps({**ASK, "stream": True}).encode())
            await exchange.started.wait()
            exchange.gone.set()
            await asyncio.wait_for(exchange.task, 5)
            assert not app._open
            assert all(event.get("more_body", True) for event in exchange.events), "it does not look complete"

    run(test)


def test_at_shutdown_open_streams_end_with_an_error() -> None:
    async def test() -> None:
        async with started(SLOW, drain_seconds=0.01) as app:
            exchange = Exchange(app, json.dumps({**ASK, "stream": True}).encode())
            await exchange.started.wait()
        await asyncio.wait_for(exchange.task, 5)
        assert b"shutting down" in exchange.answer.body

    run(test)


def test_a_body_that_is_too_large_is_refused() -> None:
    async def test() -> None:
        async with started(limit_body_bytes=1024) as app:
            assert (await ask(app, {**ASK, "user": "x" * 2000})).status == 413

    run(test)


async def live(app: AsgiGateway) -> list[Event]:
    """Start and stop it as an ASGI server does."""
    incoming = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent: list[Event] = []

    async def receive() -> Event:
        return next(incoming)

    async def send(event: Event) -> None:
        sent.append(event)
        if event["type"] == "lifespan.startup.complete":
            assert (await ask(app, method="GET", path="/health")).status == 200

    await app({"type": "lifespan"}, receive, send)
    return sent


def test_an_asgi_server_starts_and_stops_it() -> None:
    async def test() -> None:
        app = AsgiGateway(make_settings(**QUIET, base_url="http://127.0.0.1:9/v1"))
        for _ in range(2):
            complete = ["lifespan.startup.complete", "lifespan.shutdown.complete"]
            assert [event["type"] for event in await live(app)] == complete
        [failed] = await live(AsgiGateway(make_settings(**QUIET)))
        assert failed["type"] == "lifespan.startup.failed" and "there is no upstream" in failed["message"]

    run(test)


def test_misuse_gets_a_clear_error() -> None:
    async def test() -> None:
        app = AsgiGateway(make_settings(**QUIET, base_url="http://127.0.0.1:9/v1"))
        with pytest.raises(UsageError, match="must enter it in its own lifespan"):
            await ask(app)
        async with app:
            with pytest.raises(UsageError, match="has been started already"):
                await app.__aenter__()
            with pytest.raises(UsageError, match="scopes of type 'smoke'"):
                await Exchange(app, type="smoke").task
            exchange = Exchange(app, type="websocket")
            await exchange.task
            assert exchange.events == [{"type": "websocket.close", "code": 1008}]

    run(test)


def test_the_documented_programs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of docs/embedding.md; a program's ``main`` is run, too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolglot.toml").write_text('[[upstream]]\nname = "a"\nbase_url = "http://127.0.0.1:9/v1"\n', "utf-8")
    page = Path(__file__).resolve().parents[2] / "docs/embedding.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    for block in blocks:
        program: dict[str, Any] = {}
        exec(block, program)
        if "main" in program:
            asyncio.run(program["main"]())
    assert len(blocks) == 3
