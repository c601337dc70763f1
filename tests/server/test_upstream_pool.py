"""The client for upstreams, against small servers that send exactly the given bytes."""

from __future__ import annotations

import asyncio
import functools
import gzip
import json
import ssl
import subprocess
import sys
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from toolglot.config import Upstream
from toolglot.core.errors import (
    AnswerHeadError,
    UnreachableError,
    UpstreamEncodingError,
    UpstreamError,
    UpstreamTimeoutError,
)
from toolglot.server.upstream import connection as connections
from toolglot.server.upstream import pool as pools
from toolglot.server.upstream.connection import HEAD_LIMIT, READ_AHEAD, UpstreamResponse
from toolglot.server.upstream.pool import ConnectionPool, parse_url

OK = b"HTTP/1.1 200 OK\r\n"
FRAMES = {
    "length": OK + b"Content-Length: 11\r\n\r\nhello world",
    "chunked": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;note=x\r\n world\r\n0\r\n\r\n",
    "trailers": OK + b"Transfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\nContent-Type: late\r\n\r\n",
    "bare newlines": b"HTTP/1.1 200 OK\nContent-Length: 11\n\nhello world",
    "words before": b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 103 Early Hints\r\nX: z\r\n\r\n" + OK + b"Content-Length: 11\r\n\r\nhello world",
    "close": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 11\r\n\r\nhello world",
    "until the end": OK + b"\r\nhello world",
    "old": b"HTTP/1.0 200 OK\r\n\r\nhello world",
}  # fmt: skip
ENDLESS = ("until the end", "old")


def awaited(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Runs it on both event loops that the server knows."""

    @functools.wraps(test)
    def runs(**arguments: Any) -> None:
        asyncio.run(_within_limit(test(**arguments)))
        if sys.platform != "win32":
            import uvloop

            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(_within_limit(test(**arguments)))

    return runs


async def _within_limit(test: Awaitable[None]) -> None:
    async with asyncio.timeout(20):
        await test


@dataclass
class Call:
    """One connection, seen from the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    requests: list[bytes] = field(default_factory=list)

    async def receive_request(self) -> bytes:
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next((line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"0")
        self.requests.append(head + await self.reader.readexactly(int(length)))
        return self.requests[-1]

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0.001 if len(pieces) > 1 else 0)

    async def is_left(self) -> bool:
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True


Serve = Callable[[Call], Awaitable[None]]


@dataclass
class Small:
    """A small server, and a client for it."""

    url: str
    calls: list[Call]
    pool: ConnectionPool
    connect_timeout: float = 5.0
    read_timeout: float = 5.0

    def send(self, method: str = "POST", path: str = "/", body: bytes | None = b"ask", **headers: str) -> Any:
        upstream = Upstream(base_url=self.url, connect_timeout=self.connect_timeout, read_timeout=self.read_timeout)
        return self.pool.send(method, self.url + path, upstream, headers, body)

    async def ask(self, method: str = "POST") -> bytes:
        async with self.send(method) as reply:
            answer: bytes = await reply.read()
            return answer


@asynccontextmanager
async def small(
    serve: Serve, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None, **timeouts: float
) -> AsyncIterator[Small]:
    calls: list[Call] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(Call(reader, writer))
        try:
            await serve(calls[-1])
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, host, 0, ssl=tls)
    shown = f"[{host}]" if ":" in host else host
    url = f"{'https' if tls else 'http'}://{shown}:{server.sockets[0].getsockname()[1]}"
    transport = ConnectionPool()
    try:
        yield Small(url, calls, transport, **timeouts)
    finally:
        await transport.close()
        server.close()
        for call in calls:
            call.writer.transport.abort()
        await asyncio.sleep(0.01)


def responds(*pieces: bytes) -> Serve:
    async def serve(call: Call) -> None:
        await call.receive_request()
        await call.send(*pieces)

    return serve


async def serve_always(call: Call) -> None:
    while True:
        await call.receive_request()
        await call.send(FRAMES["length"])


async def in_pieces(reply: UpstreamResponse) -> bytes:
    pieces = []
    while piece := await reply.read_chunk():
        pieces.append(piece)
    return b"".join(pieces)


async def streamed(reply: UpstreamResponse) -> bytes:
    pieces: list[bytes] = []
    await reply.stream_to(pieces.append, nothing)
    return b"".join(pieces)


async def nothing() -> None:
    pass


# framing


@pytest.mark.parametrize("read", [UpstreamResponse.read, in_pieces, streamed])
@pytest.mark.parametrize("frame", FRAMES)
@awaited
async def test_every_kind_of_framing_is_read(frame: str, read: Callable[[UpstreamResponse], Awaitable[bytes]]) -> None:
    sent = FRAMES[frame]
    async with small(responds(sent)) as server, server.send() as reply:
        assert reply.status == 200 and "x" not in reply.headers and "content-type" not in reply.headers
        assert await read(reply) == b"hello world"


@pytest.mark.parametrize("read", [UpstreamResponse.read, streamed])
@pytest.mark.parametrize("frame", FRAMES)
@awaited
async def test_answers_may_be_cut_anywhere(frame: str, read: Callable[[UpstreamResponse], Awaitable[bytes]]) -> None:
    sent = FRAMES[frame]
    async with small(responds(*(sent[at : at + 1] for at in range(len(sent))))) as server, server.send() as reply:
        assert await read(reply) == b"hello world"


@pytest.mark.parametrize("frame", [name for name in FRAMES if name not in ENDLESS])
@awaited
async def test_an_answer_that_breaks_off_anywhere_is_an_error(frame: str) -> None:
    sent = FRAMES[frame]
    ends = len(sent) - 1 if frame != "trailers" else sent.index(b"\r\nContent-Type: late")
    for at in range(0, ends, 3):
        async with small(responds(sent[:at])) as server:
            with pytest.raises(UpstreamError, match="connection to the upstream broke"):
                await server.ask()
            assert len(server.calls) == 1


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
@awaited
async def test_some_answers_have_no_body(status: bytes) -> None:
    async def serve(call: Call) -> None:
        while True:
            await call.receive_request()
            await call.send(b"HTTP/1.1 " + status + b"\r\nETag: x\r\n\r\n")

    async with small(serve) as server:
        assert await server.ask() == await server.ask() == b""
        assert len(server.calls) == 1


@awaited
async def test_the_answer_to_head_has_no_body() -> None:
    async with small(responds(OK + b"Content-Length: 11\r\n\r\n")) as server, server.send("HEAD", body=None) as reply:
        assert reply.headers["content-length"] == "11" and await reply.read() == b""


@awaited
async def test_redirects_are_answers() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 4\r\n\r\ngone"
    async with small(responds(moved)) as server, server.send() as reply:
        assert (reply.status, reply.headers["location"], await reply.read()) == (302, "/elsewhere", b"gone")


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nxxxx",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        OK + b"Content-Length: 3\r\nContent-Encoding: gzip\r\n\r\nabc",
        OK + b"Content-Length: 9\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello world", mtime=0)[:9],
        OK + b"".join(b"X-%d: %b\r\n" % (at, b"x" * 1000) for at in range(1000)),
        OK + b"X: " + b"x" * 1_000_000,
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * 1_000_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000,
    ],
    ids=range(11),
)
@awaited
async def test_what_is_not_http_is_an_error(garbage: bytes) -> None:
    async def serve(call: Call) -> None:
        await call.receive_request()
        await call.send(garbage)
        await call.is_left()

    async with small(serve) as server:
        head = len(garbage) > HEAD_LIMIT
        with pytest.raises(
            AnswerHeadError if head else UpstreamError, match="The head" if head else "cannot be parsed"
        ):
            await server.ask()
        assert len(server.calls) == 1


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, br", "gzip,gzip", "x" * 500])
@awaited
async def test_an_encoding_that_cannot_be_decoded_is_named(encoding: str) -> None:
    head = b"Content-Length: 3\r\nContent-Encoding: %b\r\n\r\n" % encoding.encode()
    async with small(responds(OK + head + b"abc")) as server:
        with pytest.raises(UpstreamEncodingError, match=encoding.replace(",", ", ").replace("  ", " ")[:40]) as raised:
            await server.ask()
        assert len(raised.value.message) < 200
    async with small(responds(b"HTTP/1.1 429 Slow down\r\n" + head + b"a", b"bc")) as server, server.send() as reply:
        assert reply.status == 429 and "cannot be decoded" in json.loads(await reply.read())["error"]["message"]


@pytest.mark.parametrize("encoding", [b"", b"identity", b"Identity , "])
@awaited
async def test_a_body_without_an_encoding_is_read(encoding: bytes) -> None:
    head = b"Content-Length: 3\r\nContent-Encoding: %b\r\n\r\n" % encoding
    async with small(responds(OK + head + b"abc")) as server:
        assert await server.ask() == b"abc"


@awaited
async def test_headers_up_to_the_limit_are_read() -> None:
    long = b"x" * (HEAD_LIMIT - 1000)
    async with (
        small(responds(OK + b"X: " + long, b"\r\nContent-Length: 2\r\n\r\n", b"ok")) as server,
        server.send() as reply,
    ):
        assert len(reply.headers["x"]) == len(long) and await reply.read() == b"ok"


def test_only_what_is_not_body_counts_towards_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_LIMIT", 100)

    @awaited
    async def test() -> None:
        pieces = [piece for _ in range(50) for piece in (b"1\r\n", b"x", b"\r\n")]
        head = OK + b"Transfer-Encoding: chunked\r\n\r\n"
        async with small(responds(head, *pieces, b"0\r\n\r\n")) as server:
            assert await server.ask() == b"x" * 50

    test()


@awaited
async def test_a_server_that_sends_before_the_request_is_an_error() -> None:
    async def serve(call: Call) -> None:
        await call.send(b"220 mail ESMTP\r\n")
        await call.is_left()

    async with small(serve) as server:
        with pytest.raises(UpstreamError):
            await server.ask()


def bare(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(text) + packer.flush()


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("gzip", gzip.compress(b"hello world", mtime=0)),
        ("GZip", gzip.compress(b"hello ", mtime=0) + gzip.compress(b"world", mtime=0)),
        ("deflate", zlib.compress(b"hello world")),
        ("deflate", bare(b"hello world")),
        ("identity", b"hello world"),
    ],
    ids=["gzip", "gzip twice", "deflate", "deflate, bare", "identity"],
)
@awaited
async def test_packed_answers_are_unpacked(name: str, packed: bytes) -> None:
    head = OK + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n" % (name.encode(), len(packed))
    for pieces in ([head + packed], [head, *(packed[at : at + 1] for at in range(len(packed)))]):
        async with small(responds(*pieces)) as server, server.send() as reply:
            assert await streamed(reply) == b"hello world"


@pytest.mark.parametrize(
    ("head", "pieces", "streamed"),
    [
        (b"Content-Type: text/event-stream; charset=utf-8\r\nContent-Length: 2\r\n", [b"{}"], False),
        (b"Content-Type: text/event-stream\r\nContent-Length: 8\r\n", [b"data: {}"], True),
        (b"Content-Type: text/event-stream\r\nContent-Length: 10\r\n", [b"error: {}\n"], True),
        (b"Content-Type: text/event-stream\r\nContent-Length: 0\r\n", [b""], True),
        (b"Content-Type: application/json\r\n", [b"data: {}"], True),
        (b"Content-Type: application/json\r\n", [b"re", b"try: 5\n"], True),
        (b"Content-Type: application/json\r\n", [b'{"data": 1}'], False),
        (b"Content-Type: text/plain\r\n", [b"\n", b"d", b"ata", b": {}"], True),
        (b"", [b":"], True),
        (b"", [b"da", b"te"], False),
        (b"", [b'{"a"', b":1}"], False),
        (b"", [b"  "], False),
        (b"", [b""], False),
    ],
)
@awaited
async def test_streams_are_known_by_type_or_beginning(head: bytes, pieces: Sequence[bytes], streamed: bool) -> None:
    async with small(responds(OK + head + b"\r\n", *pieces)) as server, server.send() as reply:
        assert await reply.is_streamed() is streamed
        assert await reply.read() == b"".join(pieces)


# requests


async def received_lines(
    method: str = "POST", url: str = "{url}", body: bytes | None = b"ask", **headers: str
) -> list[str]:
    """The lines of the request that a server receives."""
    async with small(responds(FRAMES["length"])) as server:
        upstream = Upstream(base_url=server.url)
        place = url.format(url=server.url, port=server.url.rpartition(":")[2])
        async with server.pool.send(method, place, upstream, headers, body) as reply:
            await reply.read()
        return server.calls[0].requests[0].decode().replace(server.url[7:], "HERE").split("\r\n")


@awaited
async def test_a_request_is_sent_exactly() -> None:
    assert await received_lines("POST", "{url}/v1/a b/ü%20?k=1 2&x=%2F", Accept="text/event-stream", Id="7") == [
        "POST /v1/a%20b/%C3%BC%20?k=1%202&x=%2F HTTP/1.1", "host: HERE", "Accept: text/event-stream", "Id: 7", "content-length: 3", "", "ask",
    ]  # fmt: skip
    assert await received_lines("GET", body=None) == ["GET / HTTP/1.1", "host: HERE", "accept: */*", "", ""]
    assert "content-length: 0" in await received_lines(body=b"")
    assert await received_lines("GET", body=None, Host="other") == [
        "GET / HTTP/1.1",
        "accept: */*",
        "Host: other",
        "",
        "",
    ]


@awaited
async def test_a_login_in_the_address_is_presented_unless_there_is_another() -> None:
    login = "http://me:s%40cret@127.0.0.1:{port}/"
    assert f"authorization: Basic {b64encode(b'me:s@cret').decode()}" in await received_lines(url=login)
    received = await received_lines(url=login, Authorization="Bearer x")
    assert "Authorization: Bearer x" in received and not any("Basic" in line for line in received)
    assert "host: HERE" in received


@awaited
async def test_headers_cannot_break_out_of_their_line() -> None:
    for value in ("a\r\nX: y", "a\nX: y", "a\rb"):
        with pytest.raises(UpstreamError, match="line break"):
            await received_lines(X=value)


def test_addresses_are_taken_apart() -> None:
    assert parse_url("https://Example.com/v1").origin == ("https", "example.com", 443)
    assert parse_url("https://example.com/v1").headers["host"] == "example.com"
    assert parse_url("http://[::1]:8080").headers["host"] == "[::1]:8080"
    assert parse_url("http://[::1]:8080").origin == ("http", "::1", 8080)
    assert parse_url("http://bücher.example").origin == ("http", "xn--bcher-kva.example", 80)
    for wrong in ("ftp://example.com", "http://example.com:x", "http://[::1", "no address"):
        with pytest.raises(UnreachableError):
            parse_url(wrong)


@awaited
async def test_ipv6_is_supported() -> None:
    try:
        async with small(serve_always, host="::1") as server:
            assert await server.ask() == b"hello world"
    except OSError:
        pytest.skip("no IPv6 here")


@awaited
async def test_an_answer_may_come_before_the_request_has_gone() -> None:
    """Then the rest of the request is still under way, and the connection is of no more use."""

    async def serve(call: Call) -> None:
        await call.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")
        await asyncio.sleep(0.2)

    async with small(serve) as server:
        async with server.send(body=b"x" * 50_000_000) as reply:
            assert (reply.status, await reply.read()) == (413, b"big")
        assert server.pool._idle == {}


# connections


@awaited
async def test_a_connection_is_used_again() -> None:
    async with small(serve_always) as server:
        for _ in range(3):
            assert await server.ask() == b"hello world"
        assert len(server.calls) == 1 and len(server.calls[0].requests) == 3
        async with server.send(), server.send() as reply:
            assert await reply.read() == b"hello world"
        assert len(server.calls) == 2


@pytest.mark.parametrize("frame", ["close", "until the end", "old"])
@awaited
async def test_a_connection_that_will_close_is_not_used_again(frame: str) -> None:
    async with small(responds(FRAMES[frame])) as server:
        assert await server.ask() == await server.ask() == b"hello world"
        assert len(server.calls) == 2


@pytest.mark.parametrize("surplus", [FRAMES["length"], b"x"])
@pytest.mark.parametrize("later", [False, True])
@awaited
async def test_a_connection_with_unexpected_data_is_not_reused(surplus: bytes, later: bool) -> None:
    async def serve(call: Call) -> None:
        await call.receive_request()
        await call.send(*([FRAMES["length"], surplus] if later else [FRAMES["length"] + surplus]))
        await call.is_left()

    async with small(serve) as server:
        for held in (True, False):
            async with server.send() as reply:
                assert await reply.read() == b"hello world"
                await asyncio.sleep(0.05 if held else 0)
            await asyncio.sleep(0 if held else 0.05)
        assert await server.ask() == b"hello world"
        assert len(server.calls) == 3


@awaited
async def test_of_a_header_that_is_given_twice_the_first_counts() -> None:
    async def serve(call: Call) -> None:
        await call.receive_request()
        await call.send(b"HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 0\r\n\r\n")

    async with small(serve) as server, server.send() as reply:
        assert reply.headers == {"x-a": "1", "content-length": "0"}


@awaited
async def test_a_trailer_is_no_header_of_the_next_answer() -> None:
    async def serve(call: Call) -> None:
        await call.receive_request()
        await call.send(FRAMES["trailers"])
        await call.receive_request()
        await call.send(FRAMES["length"])

    async with small(serve) as server:
        assert await server.ask() == b"hello world"
        async with server.send() as reply:
            assert list(reply.headers) == ["content-length"]
        assert len(server.calls) == 1


@pytest.mark.parametrize("seen", [False, True])
@awaited
async def test_a_connection_that_was_closed_meanwhile_is_made_anew(seen: bool) -> None:
    async def serve(call: Call) -> None:
        await call.receive_request()
        await call.send(FRAMES["length"])
        if not seen:
            await call.receive_request()  # it closes with the second request

    async with small(serve) as server:
        assert await server.ask() == b"hello world"
        await asyncio.sleep(0.05 if seen else 0)
        assert await server.ask() == b"hello world"
        assert len(server.calls) == 2


@awaited
async def test_no_request_is_repeated_after_the_first_byte_of_a_response() -> None:
    async def serve(call: Call) -> None:
        await call.receive_request()
        await call.send(FRAMES["length"])
        await call.receive_request()
        await call.send(b"HTTP/1.1 200")

    async with small(serve) as server:
        await server.ask()
        with pytest.raises(UpstreamError, match="before it answered"):
            await server.ask()
        assert len(server.calls) == 1


@awaited
async def test_a_new_connection_that_closes_is_not_tried_again() -> None:
    async with small(responds()) as server:
        with pytest.raises(UpstreamError, match="before it answered"):
            await server.ask()
        assert len(server.calls) == 1


@awaited
async def test_of_the_kept_connections_one_is_used_that_still_stands() -> None:
    async with small(serve_always) as server:
        async with server.send(), server.send() as reply:
            await reply.read()
        await server.ask()  # the first one was left in the middle, so this makes another
        async with server.send() as first:
            async with server.send() as second:
                await second.read()
            await first.read()
        kept = server.pool._idle[parse_url(server.url).origin]
        assert len(kept) == 2
        kept[-1].abort()
        made = len(server.calls)
        assert await server.ask() == b"hello world"
        assert len(server.calls) == made


@awaited
async def test_a_connection_that_was_lost_before_it_was_used_is_an_error() -> None:
    async def serve(call: Call) -> None:
        pass

    async with small(serve) as server:
        upstream = Upstream(base_url=server.url)
        connection = await server.pool._connect(parse_url(server.url).origin, upstream)
        await asyncio.sleep(0.05)
        with pytest.raises(UpstreamError, match="before it answered"):
            await connection.send((b"GET / HTTP/1.1\r\n\r\n",), 60).wait_for_head()


@awaited
async def test_silence_is_not_asked_again() -> None:
    async def serve(call: Call) -> None:
        await call.receive_request()
        await call.send(FRAMES["length"])
        await call.is_left()

    async with small(serve, read_timeout=0.1) as server:
        await server.ask()
        with pytest.raises(UpstreamTimeoutError):
            await server.ask()
        assert len(server.calls) == 1


@pytest.mark.parametrize("pool", [True, False])
def test_idle_connections_are_given_up(pool: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "KEEP_ALIVE", 0.05)

    @awaited
    async def test() -> None:
        async with small(serve_always) as server:
            if not pool:  # old as it is, it was not swept away yet
                server.pool._sweep_timer = asyncio.get_running_loop().call_later(60, print)
            await server.ask()
            await asyncio.sleep(0.15)
            assert bool(server.pool._idle) is not pool
            await server.ask()
            assert len(server.calls) == 2

    test()


@awaited
async def test_many_are_asked_at_once() -> None:
    async def serve(call: Call) -> None:
        while True:
            await call.receive_request()
            await call.send(OK, b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", b"0\r\n\r\n")

    async with small(serve) as server:
        assert await asyncio.gather(*(server.ask() for _ in range(50))) == [b"hello"] * 50
        assert len(server.calls) == 50
        await asyncio.gather(*(server.ask() for _ in range(50)))
        assert len(server.calls) == 50


@pytest.mark.parametrize("when", ["before", "in the middle", "streaming"])
@awaited
async def test_leaving_a_response_early_closes_the_connection(when: str) -> None:
    left = asyncio.Event()

    async def serve(call: Call) -> None:
        await call.receive_request()
        if when != "before":
            await call.send(OK + b"Content-Length: 11\r\n\r\nhello")
        if await call.is_left():
            left.set()

    async with small(serve) as server:

        async def ask() -> None:
            async with server.send() as reply:
                if when == "in the middle":
                    await reply.read_chunk()
                    return
                await reply.stream_to(lambda piece: False, nothing)

        task = asyncio.create_task(ask())
        await asyncio.sleep(0.05)
        task.cancel()
        async with asyncio.timeout(1):
            await left.wait()
        assert server.pool._idle == {}


@pytest.mark.parametrize("body", [b"hello world", b"hello"], ids=["whole", "begun"])
def test_leaving_in_the_moment_in_which_the_head_comes_leaves_no_connection(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task is cancelled after the head was read and before it could continue: no task owns the response."""
    head_came = UpstreamResponse.on_headers_complete

    async def test() -> None:
        left = asyncio.Event()

        async def serve(call: Call) -> None:
            await call.receive_request()
            await call.send(OK + b"Content-Length: 11\r\n\r\n" + body)
            if await call.is_left():
                left.set()

        async with small(serve) as server:

            async def ask() -> None:
                async with server.send():
                    raise AssertionError("it was left before")

            task = asyncio.create_task(ask())

            def leave(reply: UpstreamResponse) -> None:
                head_came(reply)
                task.cancel()

            monkeypatch.setattr(UpstreamResponse, "on_headers_complete", leave)
            with pytest.raises(asyncio.CancelledError):
                await task
            kept = [one for idle in server.pool._idle.values() for one in idle]
            assert len(kept) == (body == b"hello world"), "only what can be used again"
            for one in kept:
                one.abort()
            async with asyncio.timeout(1):
                await left.wait()

    awaited(test)()


# failures


@awaited
async def test_connection_errors_are_distinguished() -> None:
    async with small(serve_always) as server:
        pass
    for url in (server.url, "http://nowhere.invalid"):
        with pytest.raises(UnreachableError):
            server.url = url
            await server.ask()


@pytest.mark.parametrize("sent", [b"", OK, OK + b"Content-Length: 11\r\n\r\nhello"])
@awaited
async def test_silence_is_given_up(sent: bytes) -> None:
    async def serve(call: Call) -> None:
        await call.receive_request()
        await call.send(sent)
        await call.is_left()

    async with small(serve, read_timeout=0.1) as server:
        with pytest.raises(UpstreamTimeoutError):
            await server.ask()


@awaited
async def test_slow_is_not_silent() -> None:
    async def serve(call: Call) -> None:
        await call.receive_request()
        head, end, body = FRAMES["length"].partition(b"\r\n\r\n")
        await call.send(head + end)
        for at in range(len(body)):
            await asyncio.sleep(0.05)
            await call.send(body[at : at + 1])

    async with small(serve, read_timeout=0.3) as server:
        assert await server.ask() == b"hello world"


@awaited
async def test_a_head_must_come_whole_in_time() -> None:
    async def serve(call: Call) -> None:
        await call.receive_request()
        with suppress(ConnectionError):
            for at in range(len(FRAMES["length"])):
                await call.send(FRAMES["length"][at : at + 1])
                await asyncio.sleep(0.05)

    async with small(serve, read_timeout=0.2) as server:
        with pytest.raises(UpstreamTimeoutError):
            await server.ask()


@awaited
async def test_a_shorter_patience_counts_on_a_kept_connection() -> None:
    async def serve(call: Call) -> None:
        await call.receive_request()
        await call.send(FRAMES["length"])
        await call.is_left()

    async with small(serve, read_timeout=60) as server:
        await server.ask()
        server.read_timeout = 0.05
        with pytest.raises(UpstreamTimeoutError):
            await server.ask()


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate for ``localhost``, self-signed."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(path), "-out", f"{path}.crt"]
    try:
        subprocess.run([*command, *names], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("openssl cannot make a certificate here")
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


def server_side(certificate: Path) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    return tls


@awaited
async def test_tls_connects_to_trusted_servers(certificate: Path) -> None:
    async with small(serve_always, tls=server_side(certificate)) as server:
        (await server.pool._make_tls()).load_verify_locations(certificate)
        server.url = server.url.replace("127.0.0.1", "localhost")
        assert await server.ask() == await server.ask() == b"hello world"
        assert len(server.calls) == 1
        server.url = server.url.replace("localhost", "127.0.0.1")
        with pytest.raises(UnreachableError, match=r"certificate of .* was refused.*127.0.0.1"):
            await server.ask()


@awaited
async def test_a_self_signed_certificate_is_refused(certificate: Path) -> None:
    async with small(serve_always, tls=server_side(certificate)) as server:
        server.url = server.url.replace("127.0.0.1", "localhost")
        with pytest.raises(UnreachableError, match=r"certificate of .* was refused: self.signed"):
            await server.ask()
        assert not any(call.requests for call in server.calls)


@awaited
async def test_tls_fails_with_a_plain_server() -> None:
    async def serve(call: Call) -> None:
        await call.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with small(serve) as server:
        server.url = server.url.replace("http:", "https:")
        with pytest.raises(UnreachableError, match="TLS"):
            await server.ask()


@awaited
async def test_an_upstream_that_never_shakes_hands_is_silent() -> None:
    async def serve(call: Call) -> None:
        await call.is_left()

    async with small(serve, connect_timeout=0.1) as server:
        server.url = server.url.replace("http:", "https:")
        with pytest.raises(UpstreamTimeoutError):
            await server.ask()


# streaming


async def serve_tls(call: Call, words: Sequence[bytes], go_on: asyncio.Event) -> None:
    """Every word in a read of its own, in several chunks."""
    await call.receive_request()
    await call.send(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    for word in words:
        await go_on.wait()
        go_on.clear()
        await call.send(b"".join(b"1\r\n%c\r\n" % char for char in word))
    await call.send(b"0\r\n\r\n")


async def pour_words(
    words: Sequence[bytes], drain: Callable[[], Awaitable[None]] = nothing, enough: bool = False
) -> list[bytes]:
    go_on = asyncio.Event()
    taken: list[bytes] = []

    def take(piece: bytes) -> bool:
        taken.append(piece)
        go_on.set()
        return enough

    async with small(lambda call: serve_tls(call, words, go_on)) as server, server.send() as reply:
        go_on.set()
        taken.append(await reply.read_chunk())
        go_on.set()
        await reply.stream_to(take, drain)
        return taken


@awaited
async def test_every_read_is_handed_on_in_one_piece() -> None:
    assert await pour_words([b"one ", b"two ", b"three"]) == [b"one ", b"two ", b"three"]


@awaited
async def test_a_slow_taker_is_waited_for() -> None:
    drained: list[None] = []

    async def drain() -> None:
        await asyncio.sleep(0.01)
        drained.append(None)

    assert await pour_words([b"one ", b"two ", b"three"], drain, enough=True) == [b"one ", b"two ", b"three"]
    assert len(drained) == 2


@awaited
async def test_a_drain_that_fails_ends_the_pouring() -> None:
    async def fail() -> None:
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError, match="gone"):
        await pour_words([b"one ", b"two ", b"three"], fail, enough=True)


@awaited
async def test_nothing_is_handed_on_once_the_pouring_has_ended() -> None:
    taken: list[bytes] = []

    def take(piece: bytes) -> bool:
        taken.append(piece)
        return True

    async def fail() -> None:
        raise ConnectionResetError

    async with small(responds(OK + b"\r\n", b"one", b"two", b"three")) as server, server.send() as reply:
        with pytest.raises(ConnectionResetError):
            await reply.stream_to(take, fail)
        seen = len(taken)
        assert b"".join(taken) + await in_pieces(reply) == b"onetwothree" and len(taken) == seen


@pytest.mark.parametrize("kept", [False, True])
@awaited
async def test_a_taker_that_fails_ends_the_pouring(kept: bool) -> None:
    def take(piece: bytes) -> bool:
        raise KeyError("mine")

    left = asyncio.Event()

    async def serve(call: Call) -> None:
        await call.receive_request()
        await call.send(OK + b"Content-Length: 11\r\n\r\n", b"hello")
        await call.is_left()
        left.set()

    async with small(serve) as server:
        with pytest.raises(KeyError, match="mine"):
            async with server.send() as reply:
                await asyncio.sleep(0.05 if kept else 0)
                await reply.stream_to(take, nothing)
        await left.wait()


@awaited
async def test_what_came_before_the_end_is_handed_on_before_the_error() -> None:
    for sent in (OK + b"Content-Length: 11\r\n\r\nhello", OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz"):
        taken: list[bytes] = []
        async with small(responds(sent)) as server:
            with pytest.raises(UpstreamError):
                async with server.send() as reply:
                    await reply.stream_to(taken.append, nothing)
        assert taken == [b"hello"]


async def give(call: Call, size: int, given: list[int]) -> None:
    await call.receive_request()
    await call.send(OK + b"Content-Length: %d\r\n\r\n" % size)
    for _ in range(size // 10_000):
        await call.send(b"x" * 10_000)
        given[0] += 10_000


SIZE = 40_000_000


@awaited
async def test_a_slow_consumer_causes_back_pressure() -> None:
    given, taken, gate = [0], [0], asyncio.Event()

    async def drain() -> None:
        await gate.wait()

    def take(piece: bytes) -> bool:
        taken[0] += len(piece)
        return True

    async with small(lambda call: give(call, SIZE, given), read_timeout=0.1) as server, server.send() as reply:
        streaming = asyncio.create_task(reply.stream_to(take, drain))
        await asyncio.sleep(0.4)
        assert taken[0] < 2_000_000 and given[0] < SIZE // 2
        gate.set()
        await streaming
        assert taken[0] == SIZE


@awaited
async def test_a_stream_that_has_not_begun_is_not_waited_for() -> None:
    head = OK + b"Content-Type: text/event-stream\r\n\r\n"

    async def begin(call: Call) -> None:
        await call.receive_request()
        await call.send(head)
        await asyncio.sleep(30)

    async with small(begin) as server, server.send() as reply, asyncio.timeout(5):
        assert await reply.is_streamed()


@awaited
async def test_a_slow_reader_causes_back_pressure() -> None:
    given = [0]
    async with small(lambda call: give(call, SIZE, given), read_timeout=0.1) as server, server.send() as reply:
        assert not await reply.is_streamed()
        await asyncio.sleep(0.4)
        assert given[0] < SIZE // 2
        longest = taken = 0
        while piece := await reply.read_chunk():
            taken += len(piece)
            longest = max(longest, len(piece))
        assert taken == SIZE and longest <= READ_AHEAD + (1 << 18)


@awaited
async def test_a_long_answer_is_read_whole() -> None:
    given = [0]
    async with small(lambda call: give(call, SIZE, given)) as server:
        assert len(await server.ask()) == SIZE


@awaited
async def test_a_connection_that_was_held_up_is_used_again() -> None:
    async def serve(call: Call) -> None:
        while True:
            await call.receive_request()
            await call.send(OK + b"Content-Length: 200000\r\n\r\n" + b"x" * 200_000)

    async with small(serve) as server:
        for _ in range(3):
            async with server.send() as reply:
                taken = 0

                async def drain() -> None:
                    await asyncio.sleep(0.001)

                def take(piece: bytes) -> bool:
                    nonlocal taken
                    taken += len(piece)
                    return True

                await reply.stream_to(take, drain)
                assert taken == 200_000
            assert not server.pool._idle[parse_url(server.url).origin][0].paused
        assert len(server.calls) == 1
