"""An answered request leaves nothing behind that only the garbage collector can free."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import pytest
from aiohttp import web
from support.gateway import ASK, run

from toolglot.config import make_settings
from toolglot.server import AsgiGateway
from toolglot.server.lifecycle import listening
from toolglot.sim import make_app, running


def list_left_objects() -> list[str]:
    """The types of this package whose objects the garbage collector finds now."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        names = {f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    return sorted(name for name in names if name.startswith("toolglot."))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", ["off", "native", "text"])
def test_an_answer_leaves_no_reference_cycles(mode: str, stream: bool) -> None:
    """The exchange and all that it holds would stay in memory, and the next request would use other memory."""

    async def test() -> None:
        async with running(make_app()) as address:
            settings = make_settings(state_dir="none", base_url=f"{address}/v1", mode=mode)
            async with AsgiGateway(settings) as app:
                transport = httpx.ASGITransport(app)
                async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                    for last in (
                        *[False] * 10,
                        True,
                    ):  # what the first and the ninth request compile is no concern here
                        if last:
                            await asyncio.sleep(0.3)
                            gc.collect()
                            gc.disable()
                        answer = await client.post("/v1/chat/completions", json=ASK | {"stream": stream})
                        assert answer.status_code == 200
                    await asyncio.sleep(0)
                    assert not list_left_objects()

    try:
        run(test)
    finally:
        gc.enable()


def cut_body(request: web.Request) -> web.Response:
    return web.Response(body=b'{"choices": [' + b" " * 100_000, content_type="application/json")


def refuse(request: web.Request) -> web.Response:
    return web.Response(status=500, body=b"x" * 100_000)


def send_large_event(request: web.Request) -> web.Response:
    return web.Response(body=b"data: " + b"x" * 200_000, content_type="text/event-stream")


WHOLE, STREAMED = json.dumps(ASK).encode(), json.dumps(ASK | {"stream": True}).encode()


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        *((answer, body) for answer in (cut_body, refuse) for body in (WHOLE, WHOLE[:-3])),
        (send_large_event, STREAMED),
    ],
)
def test_a_failed_request_leaves_no_reference_cycles(
    answer: Callable[[web.Request], web.Response], body: bytes
) -> None:
    """The bodies of a request and of an answer that fail would stay in memory: many of them would fill it."""

    async def respond(request: web.Request) -> web.Response:
        return answer(request)

    async def test() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", respond)
        async with running(app) as address:
            limits: dict[str, Any] = (
                {"limit_answer_bytes": 50_000} if body != STREAMED else {"limit_event_bytes": 150_000}
            )
            settings = make_settings(port=0, state_dir="none", base_url=f"{address}/v1", mode="text", **limits)
            async with listening(settings) as own, aiohttp.ClientSession() as session:
                for _ in range(2):
                    gc.collect()
                    gc.disable()
                    async with session.post(f"{own}/v1/chat/completions", data=body) as received:
                        text = await received.read()
                        assert received.status >= 400 or b"event_too_large" in text
                await asyncio.sleep(0.05)
                assert not list_left_objects()

    try:
        run(test)
    finally:
        gc.enable()
