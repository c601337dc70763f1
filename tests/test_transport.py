"""Answers that are poured."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web

from toolglot.config import Upstream
from toolglot.errors import UpstreamError
from toolglot.transport import _POURED, Transport

Serve = Callable[[web.StreamResponse, asyncio.Event], Awaitable[None]]


async def nothing() -> None:
    pass


async def pour(serve: Serve, drain: Callable[[], Awaitable[None]] = nothing, enough: bool = False) -> list[bytes]:
    """What is poured of an answer that a small server gives; it goes on after every piece that was taken."""
    taken: list[bytes] = []
    go_on = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await serve(response, go_on)
        return response

    def take(piece: bytes) -> bool:
        taken.append(piece)
        go_on.set()
        return enough

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    upstream = Upstream(name="small", base_url=f"http://127.0.0.1:{runner.addresses[0][1]}")
    transport = Transport()
    try:
        async with transport.send("GET", upstream.base_url, upstream, {}) as reply:
            taken.append(await reply.piece())
            go_on.set()
            await reply.pour(take, drain)
            return taken
    finally:
        assert _POURED == {}
        await transport.close()
        await runner.cleanup()


async def speak(response: web.StreamResponse, go_on: asyncio.Event) -> None:
    for word in (b"one ", b"two ", b"three"):
        await response.write(word)
        await go_on.wait()
        go_on.clear()


async def break_off(response: web.StreamResponse, go_on: asyncio.Event) -> None:
    await response.write(b"one ")
    await go_on.wait()
    await response.write(b"two")
    assert response._req is not None and response._req.transport is not None
    response._req.transport.close()


def test_every_piece_is_handed_on_when_it_comes() -> None:
    assert asyncio.run(pour(speak)) == [b"one ", b"two ", b"three"]


def test_a_slow_taker_is_waited_for() -> None:
    drained: list[None] = []

    async def drain() -> None:
        await asyncio.sleep(0.01)
        drained.append(None)

    assert asyncio.run(pour(speak, drain, enough=True)) == [b"one ", b"two ", b"three"]
    assert drained


def test_an_answer_that_breaks_off_is_an_error() -> None:
    with pytest.raises(UpstreamError):
        asyncio.run(pour(break_off))


def test_a_taker_that_fails_ends_the_pouring() -> None:
    async def fail() -> None:
        raise ConnectionResetError

    with pytest.raises(UpstreamError):
        asyncio.run(pour(speak, fail, enough=True))


def test_the_reader_of_aiohttp_can_become_a_tap() -> None:
    """Should a version of aiohttp not allow it, pieces are read instead: that works, but this is to be known."""
    from toolglot.transport import _Tap

    assert _Tap.__slots__ == () and _Tap.__base__ is aiohttp.StreamReader
    assert _Tap.__basicsize__ == aiohttp.StreamReader.__basicsize__
