"""HTTP connections of clients, byte for byte: valid and invalid requests, timeouts and disconnects."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from email.utils import formatdate
from functools import wraps
from typing import Any

import pytest
from aiohttp import web
from support.gateway import ASK, Gate, gateway, run

from toolglot.server import http_connection, listener
from toolglot.server.http_request import format_date, split_target
from toolglot.server.router import ANY_METHOD, Router
from toolglot.sim import SimOptions
from toolglot.sim.script import parse_script

BODY = json.dumps(ASK).encode()
STREAMED = json.dumps(ASK | {"stream": True}).encode()
ENOUGH = 30.0


def awaited(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def runs(*given: Any, **named: Any) -> None:
        run(lambda: test(*given, **named))

    return runs


def post(body: bytes = BODY, *lines: str, version: str = "1.1", length: bool = True) -> bytes:
    received = ["POST /v1/chat/completions HTTP/" + version, "Host: localhost", *lines]
    received += [f"Content-Length: {len(body)}"] if length else []
    return "\r\n".join(received).encode() + b"\r\n\r\n" + body


class Wire:
    """A client that sends any bytes, and reads everything."""

    def __init__(self, gate: Gate, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.gate = gate
        self.reader = reader
        self.writer = writer

    async def head(self) -> tuple[int, dict[str, str]]:
        received = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), ENOUGH)).decode()
        first, *lines = received[:-4].split("\r\n")
        return int(first.split()[1]), {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        status, headers = await self.head()
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await self.reader.readline(), 16):
                body += await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            await self.reader.readexactly(2)
        elif "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        else:
            body = await self.reader.read()
        return status, headers, body

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        self.writer.write(request)
        return await asyncio.wait_for(self.answer(), ENOUGH)

    async def is_left(self) -> bool:
        with suppress(ConnectionError):
            return not await asyncio.wait_for(self.reader.read(1), ENOUGH)
        return True


@asynccontextmanager
async def called(**given: Any) -> AsyncIterator[Wire]:
    """A connection to a gateway of these settings."""
    async with gateway(**given) as gate:
        host, port = gate.address.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            yield Wire(gate, reader, writer)
        finally:
            writer.close()


def calls_in(body: bytes) -> list[str]:
    return [one["function"]["name"] for one in json.loads(body)["choices"][0]["message"]["tool_calls"]]


# -- requests ----------------------------------------------------------------------------------------------------------

PACKED = {
    "gzip": gzip.compress(BODY, mtime=0),
    "x-gzip": gzip.compress(BODY[:50], mtime=0) + gzip.compress(BODY[50:], mtime=0),
    "deflate": zlib.compress(BODY),
}
UNUSUAL = {
    "as usual": post(),
    "with an empty header": post(BODY, "X-Empty:"),
    "in chunks": post(
        b"5\r\n" + BODY[:5] + b"\r\n%x\r\n" % len(BODY[5:]) + BODY[5:] + b"\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked",
        length=False,
    ),
    "with a trailer": post(
        b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\nX-Toolglot-Mode: magic\r\n\r\n",
        "Transfer-Encoding: chunked",
        length=False,
    ),
    "as to a proxy": post().replace(b"POST /v1", b"POST http://other:1/v1"),
    "with a query": post().replace(b"completions HTTP", b"completions?beta=true HTTP"),
    "that asks for HTTP/2": post(BODY, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"),
    "with words of its own": post(BODY, "X-Note: caf\u00e9 \u2615"),
    "after an empty line": b"\r\n" + post(),
    **{f"packed, {how}": post(body, f"Content-Encoding: {how}") for how, body in PACKED.items()},
}


@pytest.mark.parametrize("request_", UNUSUAL.values(), ids=UNUSUAL)
@pytest.mark.parametrize("step", [1 << 20, 1], ids=["at once", "byte by byte"])
@awaited
async def test_requests_come_in_many_ways(request_: bytes, step: int) -> None:
    async with called() as wire:
        for at in range(0, len(request_) - 1, step):
            wire.writer.write(request_[at : min(at + step, len(request_) - 1)])
            if step == 1 and at % 50 == 0:
                await asyncio.sleep(0)
        status, headers, body = await wire.ask(request_[-1:])
        assert (status, calls_in(body)) == (200, ["read"])
        assert headers["content-type"] == "application/json" and headers["date"].endswith(" GMT")


REFUSED: dict[str, tuple[bytes, int, str]] = {
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, "invalid_request"),
    "two lengths": (post(BODY, "Content-Length: 3"), 400, "invalid_request"),
    "a length and chunks": (post(BODY, "Transfer-Encoding: chunked"), 400, "invalid_request"),
    "a blank before the colon": (post(BODY, "X-Blank : 1"), 400, "invalid_request"),
    "a long head": (post(BODY, "X-Long: " + "x" * 70_000), 431, "head_too_large"),
    "a head of many lines": (post(BODY, *(f"X-{at}: {'x' * 90}" for at in range(800))), 431, "head_too_large"),
    "a head without an end": (b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 70_000, 431, "head_too_large"),
    "packed in another way": (post(BODY, "Content-Encoding: br"), 400, "invalid_request"),
    "not packed at all": (post(BODY, "Content-Encoding: gzip"), 400, "invalid_request"),
    "packed and cut": (post(PACKED["gzip"][:60], "Content-Encoding: gzip"), 400, "invalid_request"),
    "a body that grows": (post(gzip.compress(b" " * (1 << 20)), "Content-Encoding: gzip"), 400, "invalid_request"),
}


@pytest.mark.parametrize(("request_", "status", "code"), REFUSED.values(), ids=REFUSED)
@awaited
async def test_an_unreadable_request_is_refused_with_a_message(request_: bytes, status: int, code: str) -> None:
    async with called(limit_body_bytes=1 << 19) as wire:
        found, _, body = await wire.ask(request_)
        assert (found, json.loads(body)["error"]["code"]) == (status, code)
        assert (await wire.gate.ask()).status == 200


@pytest.mark.parametrize("framing", ["sized", "chunked"])
@awaited
async def test_a_body_that_is_too_large_is_refused_while_it_comes(framing: str) -> None:
    async with called(limit_body_bytes=1000) as wire:
        if framing == "sized":
            wire.writer.write(post(b"", "Content-Length: 5000", length=False))
        else:
            piece = b"3e8\r\n" + b" " * 1000 + b"\r\n"
            wire.writer.write(post(piece * 3, "Transfer-Encoding: chunked", length=False))
        status, headers, body = await wire.answer()
        assert (status, json.loads(body)["error"]["code"]) == (413, "request_too_large")
        assert headers["connection"] == "close"
        wire.writer.write(b" " * 3000)  # it has not seen the answer yet, and is not cut off
        assert await wire.is_left()


@awaited
async def test_expect_100_continue_is_answered() -> None:
    async with called() as wire:
        wire.writer.write(post(b"", f"Content-Length: {len(BODY)}", "Expect: 100-continue", length=False))
        assert await wire.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert (await wire.ask(BODY))[0] == 200


@awaited
async def test_a_client_without_a_key_need_not_send_its_body() -> None:
    async with called(client_keys="sk-one") as wire:
        wire.writer.write(post(b"", f"Content-Length: {len(BODY)}", "Expect: 100-continue", length=False))
        status, headers, _ = await wire.answer()
        assert (status, headers["www-authenticate"], headers["connection"]) == (401, "Bearer", "close")


@awaited
async def test_head_has_the_length_and_no_body() -> None:
    async with called() as wire:
        wire.writer.write(b"HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, headers = await wire.head()
        assert status == 200 and int(headers["content-length"]) > 10
        assert (await wire.ask(post()))[0] == 200


# -- connections -------------------------------------------------------------------------------------------------------


@awaited
async def test_a_connection_is_used_again() -> None:
    async with called() as wire:
        for body in (BODY, STREAMED, b"{", BODY, STREAMED):
            status, headers, answer = await wire.ask(post(body))
            assert status == (400 if body == b"{" else 200) and "connection" not in headers
            assert body != STREAMED or answer.endswith(b"data: [DONE]\n\n")


@awaited
async def test_requests_that_come_together_are_answered_in_order() -> None:
    async with called() as wire:
        health = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        wire.writer.write(post(STREAMED) + health + post() + health * 20 + post(b"nonsense"))
        answers = [await wire.answer() for _ in range(24)]
        assert [status for status, _, _ in answers] == [200] * 23 + [400]
        assert b"[DONE]" in answers[0][2] and calls_in(answers[2][2]) == ["read"]
        assert all(b'"ok"' in body for _, _, body in (answers[1], *answers[3:23]))
        assert (await wire.ask(post()))[0] == 200


@awaited
async def test_a_request_that_comes_early_may_bring_its_body_later() -> None:
    async with called() as wire:
        assert (await wire.ask(post() + post()[:-20]))[0] == 200
        assert (await wire.ask(post()[-20:]))[0] == 200
        cautious = post(b"", f"Content-Length: {len(BODY)}", "Expect: 100-continue", length=False)
        assert (await wire.ask(post() + cautious))[0] == 200
        assert (await wire.head())[0] == 100
        assert (await wire.ask(BODY))[0] == 200


@pytest.mark.parametrize(
    ("request_", "lasting"),
    [
        (post(version="1.0"), False),
        (post(BODY, "Connection: keep-alive", version="1.0"), True),
        (post(BODY, "Connection: close"), False),
        (post(STREAMED, version="1.0"), False),
        (post(STREAMED, "Connection: keep-alive", version="1.0"), False),
        (post(STREAMED, "Connection: close"), False),
    ],
)
@awaited
async def test_http_1_0_and_connection_close(request_: bytes, lasting: bool) -> None:
    async with called() as wire:
        status, headers, body = await wire.ask(request_)
        assert status == 200 and headers["connection"] == ("keep-alive" if lasting else "close")
        assert body.endswith(b"data: [DONE]\n\n") if b'"stream"' in request_ else calls_in(body) == ["read"]
        if lasting:
            assert (await wire.ask(request_))[0] == 200
        else:
            assert await wire.is_left()


@pytest.mark.parametrize(
    ("beginning", "limit"),
    [(b"", "IDLE_TIMEOUT"), (b"POST /v1/chat", "INPUT_TIMEOUT"), (post()[:-5], "INPUT_TIMEOUT")],
    ids=["idle", "in a head", "in a body"],
)
@awaited
async def test_a_silent_client_times_out(beginning: bytes, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, limit, 0.2)
    async with called() as wire:
        wire.writer.write(beginning)
        assert await wire.is_left()
        assert (await wire.gate.ask()).status == 200


@awaited
async def test_a_client_that_is_answered_slowly_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "IDLE_TIMEOUT", 0.1)
    monkeypatch.setattr(http_connection, "INPUT_TIMEOUT", 0.1)
    async with called(options=SimOptions(latency=2.5)) as wire:
        status, _, body = await wire.ask(post())
        assert (status, calls_in(body)) == (200, ["read"])


@awaited
async def test_an_answer_that_cannot_be_finished_does_not_look_whole() -> None:
    async with called(options=SimOptions(faults=("cut_mid_call",))) as wire:
        status, _, body = await wire.ask(post(STREAMED))
        assert (status == 200 and b'"error"' in body) or b'"finish_reason":"length"' in body


# -- paths -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/a/b?x=1&y=&x=2", "/a/b", {"x": "1", "y": ""}),
        (b"/a%20b/%C3%A9", "/a b/\u00e9", {}),
        (b"http://host:1/a?q=%26", "/a", {"q": "&"}),
        (b"http://host", "/", {}),
        (b"*", "/", {}),
        (b"//double//slash", "//double//slash", {}),
    ],
)
def test_targets_are_taken_apart(target: bytes, path: str, query: dict[str, str]) -> None:
    assert split_target(target) == (path, query)


def test_paths_lead_somewhere() -> None:
    paths: Router[str] = Router()
    paths.add("GET", "/a", "plain")
    paths.add("GET", "/a/{name}", "named")
    paths.add("POST", "/m/{model:.+}:{verb:go|stay}", "verbs")
    paths.add(ANY_METHOD, "{path:.*}", "rest")
    assert paths["GET", "/a"] == ("plain", {})
    assert paths["GET", "/a/b.c"] == ("named", {"name": "b.c"})
    assert paths["GET", "/a/b/c"][0] == "rest"
    assert paths["POST", "/m/x/y:1:stay"] == ("verbs", {"model": "x/y:1", "verb": "stay"})
    assert paths["POST", "/m/x:run"][0] == "rest"
    with pytest.raises(LookupError):
        Router[str]()["GET", "/"]


@awaited
async def test_a_client_that_leaves_with_its_answer_has_had_it() -> None:
    async def answer_at_once(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n')
        await response.write(b"data: [DONE]\n\n")
        await asyncio.sleep(0.3)  # everything was sent, but the connection does not know yet
        return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer_at_once)
    async with called(app=app) as wire:
        status, _, body = await wire.ask(post(STREAMED))
        assert status == 200 and body.endswith(b"[DONE]\n\n")
        wire.writer.close()
        await asyncio.sleep(0.6)
        metrics = (await wire.gate.get("/metrics")).body.decode()
        assert 'status="200"' in metrics and 'status="499"' not in metrics


# -- hostile clients ----------------------------------------------------------------------------------------------------

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@awaited
async def test_many_requests_at_once_are_too_many() -> None:
    async with called() as wire:
        wire.writer.write(HEALTH * 5000)
        answers = 0
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                assert (await wire.answer())[0] == 200
                answers += 1
        assert 0 < answers < 5000
        assert (await wire.gate.ask()).status == 200


BROKEN = {
    "a chunk without a size": (post(b"zz\r\n", "Transfer-Encoding: chunked", length=False), [400]),
    "an unknown coding": (post(b"", "Transfer-Encoding: xchunked", length=False), [400]),
    "a request behind the last": (post(BODY, "Connection: close") + HEALTH, [200]),
    "garbage behind two requests": (HEALTH * 2 + b"\x00\x01garbage\r\n\r\n", [200, 200]),
    "to a proxy": (b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", [400]),
}


@pytest.mark.parametrize(("request_", "statuses"), BROKEN.values(), ids=BROKEN)
@awaited
async def test_what_breaks_off_takes_no_answer_with_it(request_: bytes, statuses: list[int]) -> None:
    async with called() as wire:
        wire.writer.write(request_)
        assert [(await wire.answer())[0] for _ in statuses] == statuses
        assert await wire.is_left()


@awaited
async def test_a_trickle_is_no_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "INPUT_TIMEOUT", 0.3)
    async with called() as wire:
        wire.writer.write(post()[:-30])
        for at in range(30):
            wire.writer.write(post()[-30 + at : -29 + at or None])
            await asyncio.sleep(0.1)
            if wire.reader.at_eof() or wire.reader.exception() is not None:
                return
        raise AssertionError("still listened to")


@awaited
async def test_a_client_that_takes_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_connection, "STALL_TIMEOUT", 0.5)
    async with called(
        options=SimOptions(script=parse_script({"answer": [{"text": "lorem ipsum " * 400_000}]}))
    ) as wire:
        wire.writer.write(post(STREAMED))
        for _ in range(200):
            await asyncio.sleep(0.1)
            if wire.gate.record.requests and wire.gate.record.last.ended is not None:
                break
        assert wire.gate.record.last.outcome == "abandoned"


@pytest.mark.parametrize("line", ["Connection: Upgrade, close", "Connection: Upgrade"])
@awaited
async def test_an_upgrade_header_keeps_the_other_headers(line: str) -> None:
    async with called() as wire:
        _, headers, _ = await wire.ask(post(BODY, line, "Upgrade: h2c"))
        assert headers.get("connection") == ("close" if "close" in line else None)
        _, headers, _ = (
            await wire.ask(post(STREAMED, line, "Upgrade: h2c", version="1.0")) if "close" not in line else (0, {}, b"")
        )
        assert "transfer-encoding" not in headers


@pytest.mark.parametrize("now", [0, 951_782_400, 1_700_000_000, 4_102_444_799])
def test_the_date_is_written_as_http_wants_it(now: int) -> None:
    assert format_date(now) == f"date: {formatdate(now, usegmt=True)}"


@awaited
async def test_bursts_of_connections_do_not_end_the_care_for_idle_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between accepting a connection and its first callback the timer may run: it must not see half a connection."""
    monkeypatch.setattr(http_connection, "IDLE_TIMEOUT", 1.0)
    monkeypatch.setattr(listener, "SWEEP_SECONDS", 0.001)
    async with gateway() as gate:
        host, port = gate.address.removeprefix("http://").split(":")
        for _ in range(4):
            opened = await asyncio.gather(*(asyncio.open_connection(host, int(port)) for _ in range(150)))
            for _, writer in opened:
                writer.close()
        reader, writer = await asyncio.open_connection(host, int(port))
        assert not await asyncio.wait_for(reader.read(1), ENOUGH)
        writer.close()
        assert (await gate.ask()).status == 200
