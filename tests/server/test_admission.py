"""Admission control over real connections: how many are answered, who waits, who is refused and in which words."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import pytest
from aiohttp import web
from support.gateway import ASK, Answer, Gate, gateway, run

from toolglot.config import LimitSettings
from toolglot.core.conversation import Conversation, Message, Text
from toolglot.core.errors import OverloadError, RateLimitError
from toolglot.gateway.telemetry.metrics import Metrics
from toolglot.server.admission import MINUTE, Admission
from toolglot.sim import SimOptions
from toolglot.wires import all_wires, client_wires

SLOW = SimOptions(latency=500)
STREAMED = ASK | {"stream": True}
ENOUGH = 10.0


def awaited(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def runs(*given: Any, **named: Any) -> None:
        run(lambda: test(*given, **named))

    return runs


async def measure(gate: Gate, **headers: str) -> dict[str, float]:
    """The metrics of admission."""
    told = (await gate.get("/metrics", **headers)).body.decode()
    pairs = (line.rsplit(" ", 1) for line in told.splitlines() if line.startswith("toolglot_requests_"))
    return {name.removeprefix("toolglot_requests_"): float(value) for name, value in pairs}


async def wait_for(gate: Gate, name: str, value: float) -> None:
    async with asyncio.timeout(ENOUGH):
        while (await measure(gate))[name] != value:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("body", [ASK, STREAMED], ids=["whole", "streamed"])
@awaited
async def test_no_more_are_answered_at_a_time_than_allowed(body: Any) -> None:
    async with gateway(SLOW, limit_open_requests=2) as gate:
        asked = [asyncio.create_task(gate.ask(body)) for _ in range(5)]
        await wait_for(gate, "open", 2)
        await wait_for(gate, "queued", 3)
        assert len(gate.record.bodies) <= 2
        assert [(await one).status for one in asked] == [200] * 5
        told = await measure(gate)
        assert (told["open"], told["queued"]) == (0, 0)


@awaited
async def test_who_came_first_is_answered_first() -> None:
    async with gateway(SimOptions(latency=60), limit_open_requests=1) as gate:
        asked = []
        for number in range(8):
            message = {"role": "user", "content": f"number {number}"}
            asked.append(asyncio.create_task(gate.ask(ASK | {"messages": [message]})))
            await asyncio.sleep(0.01)
        await asyncio.gather(*asked)
        came = [body["messages"][-1]["content"] for body in gate.record.bodies]
        assert [words for words in came if words.startswith("number")] == [f"number {number}" for number in range(8)]


def refused(answer: Answer, status: int, code: str) -> None:
    assert (answer.status, answer.error["code"]) == (status, code)
    assert int(answer.headers["retry-after"]) >= 1


@awaited
async def test_a_full_queue_and_a_long_wait_are_refused_and_counted() -> None:
    async with gateway(SLOW, limit_open_requests=1, limit_queued_requests=1, limit_queue_seconds=0.1) as gate:
        first = asyncio.create_task(gate.ask())
        await wait_for(gate, "open", 1)
        second = asyncio.create_task(gate.ask())
        await wait_for(gate, "queued", 1)
        refused(await gate.ask(), 503, "overloaded")
        refused(await second, 503, "overloaded")
        assert (await first).status == 200
        told = await measure(gate)
        assert told['refused_total{reason="queue_full"}'] == told['refused_total{reason="queue_timeout"}'] == 1
        assert told['refused_total{reason="rate_limit"}'] == 0
        assert (told["open"], told["queued"]) == (0, 0)
        assert (await gate.ask()).status == 200


@awaited
async def test_a_client_that_leaves_while_it_waits_frees_its_place() -> None:
    async with gateway(SLOW, limit_open_requests=1, limit_queued_requests=1) as gate:
        first = asyncio.create_task(gate.ask())
        await wait_for(gate, "open", 1)
        second = asyncio.create_task(gate.ask())
        await wait_for(gate, "queued", 1)
        second.cancel()
        await wait_for(gate, "queued", 0)
        third = asyncio.create_task(gate.ask())
        assert [(await one).status for one in (first, third)] == [200, 200]
        await wait_for(gate, "open", 0)


@awaited
async def test_a_client_that_leaves_while_it_is_answered_frees_its_place() -> None:
    async with gateway(SimOptions(latency=5000), limit_open_requests=1) as gate:
        first = asyncio.create_task(gate.ask())
        await wait_for(gate, "open", 1)
        second = asyncio.create_task(gate.ask())
        await wait_for(gate, "queued", 1)
        first.cancel()
        await wait_for(gate, "queued", 0)
        assert (await measure(gate))["open"] == 1
        second.cancel()
        await wait_for(gate, "open", 0)


@awaited
async def test_half_a_request_takes_no_place() -> None:
    async with gateway(limit_open_requests=1, limit_queued_requests=0) as gate:
        host, port = gate.address.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        await asyncio.sleep(0.05)
        assert (await gate.ask()).status == 200
        writer.close()


@awaited
async def test_health_and_metrics_are_not_limited() -> None:
    limits: dict[str, Any] = {"limit_open_requests": 1, "limit_queued_requests": 0, "limit_requests_per_minute": 1}
    async with gateway(SLOW, **limits) as gate:
        first = asyncio.create_task(gate.ask())
        await wait_for(gate, "open", 1)
        for path in ("/health", "/health/readiness", "/metrics", "/v1/models"):
            assert [(await gate.get(path)).status for _ in range(3)] == [200] * 3
        await first


@awaited
async def test_each_key_has_a_rate_of_its_own() -> None:
    async with gateway(client_keys="first-key-1,second-key-2", limit_requests_per_minute=2) as gate:

        async def ask(key: str) -> Answer:
            return await gate.ask(authorization=f"Bearer {key}")

        assert [(await ask("first-key-1")).status for _ in range(2)] == [200, 200]
        answer = await ask("first-key-1")
        refused(answer, 429, "rate_limit_exceeded")
        assert 55 <= int(answer.headers["retry-after"]) <= 60
        assert (await ask("second-key-2")).status == 200
        assert (await ask("third-key-3")).status == 401
        assert (await measure(gate, authorization="Bearer first-key-1"))['refused_total{reason="rate_limit"}'] == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", sorted(client_wires()))
@awaited
async def test_refusals_are_told_in_the_words_of_the_client(wire: str, stream: bool) -> None:
    spoken = all_wires()[wire]
    asked = Conversation("sim", (Message("user", (Text("Hello"),)),))
    body = spoken.encode_request(asked, stream=stream, wants_usage=True)
    path = spoken.base_path + spoken.locate("sim", stream=stream)
    async with gateway(limit_requests_per_minute=1) as gate:
        assert (await gate.ask(body, path)).status == 200
        answer = await gate.ask(body, path)
        assert answer.status == 429 and int(answer.headers["retry-after"]) >= 1
        assert answer.headers["content-type"] == "application/json"
        told = spoken.decode_error(answer.status, answer.body)
        assert "1 requests in a minute" in told.message


@awaited
async def test_a_client_that_reads_nothing_holds_little_and_keeps_its_place() -> None:
    """The upstream has 40 MB to say; what waits here for the client stays small."""
    sent = 0

    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        piece = b"data: %s\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": "x" * 8000}}]}).encode()
        for _ in range(5000):
            await response.write(piece)
            sent += len(piece)
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", flood)
    async with gateway(app=app, limit_open_requests=1, mode="native") as gate:
        host, port = gate.address.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=1024)
        body = json.dumps(STREAMED).encode()
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body))
        writer.write(body)
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.3)
        assert sent < 20_000_000
        assert (await measure(gate))["open"] == 1
        writer.transport.abort()
        await wait_for(gate, "open", 0)


# -- without a network -------------------------------------------------------------------------------------------------


def test_the_rate_holds_for_any_minute() -> None:
    now = 0.0
    admission = Admission(LimitSettings(requests_per_minute=3), Metrics(), lambda: now, keyed=True)
    passed = []
    for step in range(600):
        now = step * 0.5
        try:
            admission.check_rate("key")
            passed.append(now)
        except RateLimitError as error:
            assert passed[-3] + MINUTE <= now + error.retry_after < passed[-3] + MINUTE + 1
    assert len(passed) == 15
    assert all(later - earlier >= MINUTE for earlier, later in zip(passed, passed[3:], strict=False))


@awaited
async def test_places_are_neither_lost_nor_made() -> None:
    """Tasks come, are cancelled, time out and leave, in every order."""
    chance = random.Random(5)
    metrics = Metrics()
    admission = Admission(
        LimitSettings(open_requests=3, queued_requests=20, queue_seconds=0.01), metrics, lambda: 0.0, keyed=False
    )
    inside = most = 0

    async def visit() -> None:
        nonlocal inside, most
        await admission.enter()
        inside += 1
        most = max(most, inside)
        try:
            await asyncio.sleep(chance.random() / 200)
        finally:
            inside -= 1
            admission.leave()

    tasks = []
    for _ in range(2000):
        tasks.append(asyncio.create_task(visit()))
        if chance.random() < 0.4:
            chance.choice(tasks[-30:]).cancel()
        if chance.random() < 0.3:
            await asyncio.sleep(0.001)
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(end) for end in ends} <= {type(None), asyncio.CancelledError, OverloadError}
    assert (metrics.open.total, metrics.queued.total, most) == (0, 0, 3)
