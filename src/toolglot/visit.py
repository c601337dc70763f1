"""One client being answered: bytes from the upstream in, bytes to the client out.

Strategy. One write to the client for each read from the upstream. The head of the answer waits for the upstream's, so
that its status can be kept, but never longer than one heartbeat; from then on errors travel inside the stream. A timer
looks after silence for the whole life of a stream, because a task of its own would cost every stream more.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from secrets import token_hex

from aiohttp import HttpVersion11, web

from toolglot.connection import READ_AHEAD, Reply, Take
from toolglot.errors import ToolglotError, UpstreamError
from toolglot.exchange import Exchange
from toolglot.streams import Stream, Translation, open_stream
from toolglot.telemetry import redact

JSON_TYPE = "application/json"
REQUEST_ID = "x-request-id"
_ID = web.RequestKey("id", str)
KEPT_HEADERS = ("retry-after", "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests")


def request_id(request: web.Request) -> str:
    """The id that the client gave, or one that stays the same for the whole request."""
    known = request.get(_ID)
    if known is None:
        given = request.headers.get(REQUEST_ID, "")
        known = given if given.isprintable() and 0 < len(given) <= 200 else f"req_{token_hex(12)}"
        request[_ID] = known
    return known


class Visit:
    """One client being answered."""

    def __init__(self, request: web.Request, exchange: Exchange, heartbeat: float) -> None:
        self.request = request
        self.exchange = exchange
        self.watch = exchange.watch
        self.heartbeat = heartbeat
        self.loop = asyncio.get_running_loop()
        self.response: web.StreamResponse | None = None
        self.stream: Stream | None = None
        self.spoke = self.loop.time()
        self.beating: set[asyncio.Task[None]] = set()
        self.timer = self.loop.call_later(heartbeat, self.look) if exchange.streamed else None

    async def answer(self, reply: Reply) -> web.StreamResponse:
        if 300 <= reply.status < 400:
            raise UpstreamError(f"The upstream answered with status {reply.status}: it may have moved.")
        if reply.status >= 400:
            error = self.exchange.upstream_wire.decode_error(reply.status, await reply.whole())
            error.message = redact(error.message, self.exchange.route.upstream.secrets)
            error.headers = {name: reply.headers[name] for name in KEPT_HEADERS if name in reply.headers}
            raise error
        if not self.exchange.streamed:
            return await self.answer_whole(reply)
        if await reply.is_streamed(self.exchange.upstream_wire.STREAM_TYPE):
            return await self.pump(reply)
        return await self.answer_late_whole(reply)

    async def answer_whole(self, reply: Reply) -> web.Response:
        streamed = await reply.is_streamed(self.exchange.upstream_wire.STREAM_TYPE)
        body = self.exchange.reply(await reply.whole(), streamed)
        self.watch.sent(body)
        return web.Response(body=body, content_type=JSON_TYPE, headers=self.headers(whole=True))

    async def answer_late_whole(self, reply: Reply) -> web.StreamResponse:
        """A stream was asked for and the upstream answers in one piece."""
        stream = self.stream if isinstance(self.stream, Translation) else Translation(self.exchange)
        self.stream = stream
        out = stream.whole(await reply.whole())
        response = await self.begin()
        await self.write(response, out)
        return await self.end(response)

    async def pump(self, reply: Reply) -> web.StreamResponse:
        response = await self.begin()
        stream = self.open_stream()
        try:
            while not (self.watch.chunks or stream.over) and (piece := await reply.piece()):
                await self.write(response, stream.feed(piece))
            self.exchange.settle()
            if not stream.over:
                await reply.pour(self.pass_on(stream, reply), self.request.writer.drain)
        except ToolglotError as error:
            return await self.fail(error)
        await self.write(response, stream.close())
        await self.end(response)
        await reply.part()
        return response

    def pass_on(self, stream: Stream, reply: Reply) -> Take:
        """What is done with each piece once the head of the answer and its first words have left.

        It goes to the client's connection without a detour; only the framing, which aiohttp would do, is left to do.
        """
        transport, feed, sent, now = self.request.transport, stream.feed, self.watch.sent, self.loop.time
        framed = self.request.version >= HttpVersion11

        def take(piece: bytes) -> bool:
            out = feed(piece)
            if stream.over:
                reply.leave()
            if not out or transport is None or transport.is_closing():
                return False
            self.spoke = now()
            sent(out)
            transport.write(b"%x\r\n%b\r\n" % (len(out), out) if framed else out)
            return transport.get_write_buffer_size() > READ_AHEAD

        return take

    async def fail(self, error: ToolglotError) -> web.StreamResponse:
        """Tell the error: as a reply of its own, or inside the stream if that has begun."""
        if self.response is None or self.exchange.may_retreat(error):
            raise error
        stream = self.open_stream()
        if not stream.over:
            self.watch.error = error.code
        await self.write(self.response, stream.fail(error))
        return await self.end(self.response)

    def restart(self) -> None:
        """The upstream is asked again."""
        if isinstance(self.stream, Translation):
            self.stream.restart()

    def open_stream(self) -> Stream:
        if self.stream is None:
            self.stream = open_stream(self.exchange)
        return self.stream

    # -- writing -------------------------------------------------------------------------------------------------------

    def headers(self, whole: bool = False) -> dict[str, str]:
        route, watch = self.exchange.route, self.watch
        headers = {REQUEST_ID: request_id(self.request), "x-toolglot-mode": route.manner.value}
        if self.exchange.speech is not None:
            headers["x-toolglot-dialect"] = (watch.read_as or [route.dialect])[0]
        if whole:
            headers["x-toolglot-repairs"] = ",".join(watch.repairs)
        return headers

    async def begin(self) -> web.StreamResponse:
        if self.response is None:
            headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", **self.headers()}
            self.response = web.StreamResponse(headers=headers | {"Content-Type": self.exchange.stream_type})
        await self.response.prepare(self.request)
        return self.response

    async def write(self, response: web.StreamResponse, out: bytes) -> None:
        if out:
            self.spoke = self.loop.time()
            self.watch.sent(out)
            await response.write(out)

    async def end(self, response: web.StreamResponse) -> web.StreamResponse:
        self.over()
        await response.write_eof()
        return response

    def over(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        for task in self.beating:
            task.cancel()

    # -- silence -------------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Has the client been left without a word for too long?"""
        quiet = self.loop.time() - self.spoke
        if quiet >= self.heartbeat:
            self.spoke = self.loop.time()
            quiet = 0.0
            task = self.loop.create_task(self.beat())
            self.beating.add(task)
            task.add_done_callback(self.beating.discard)
        self.timer = self.loop.call_later(self.heartbeat - quiet, self.look)

    async def beat(self) -> None:
        with suppress(ConnectionError):
            response = await self.begin()
            sign = self.open_stream().beat()
            if sign:
                await response.write(sign)
