"""One connection to an upstream: a request goes out, its reply is read off the network as it comes.

Strategy. The parser is fed by the event loop's own callback and appends the pieces of a body to a list. What one read
brought is then handed on in one go: kept for whoever asks for the next piece or, while the reply is *poured*, given to
a callback at once. No task is woken for that, and no timer is touched: the watch over silence wakes up at the earliest
moment that could matter and looks when something was heard last. Every reply has a parser of its own, so that nothing
of one reply can end up in the next.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from typing import Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from toolglot.core.errors import UpstreamError, UpstreamTimeoutError
from toolglot.server.compression import PACKED, Decompressor

READ_AHEAD: Final = 1 << 16
"""How much of an answer may wait here for a slow client before the upstream is held up."""

HEAD_LIMIT: Final = 1 << 16
"""How much may come in a row that is not body, such as headers; the read that goes beyond it is the last."""

PARTING: Final = 0.5
"""Seconds to wait for the end of an answer that has said that it is over."""

QUICK_ACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
"""The socket option of Linux that acknowledges data at once. The kernel forgets it after some segments."""
READS_PER_QUICK_ACK: Final = 8

UNREADABLE: Final = "The upstream gave an answer that cannot be read."
STREAM_TYPE: Final = "text/event-stream"
EVENT_STARTS: Final = (b"data:", b"event:", b"id:", b":")

Take = Callable[[bytes], bool | None]
"""Takes a piece; whether it is enough for now."""

Drain = Callable[[], Awaitable[None]]
"""Waits until more can be taken."""


class UpstreamResponse:
    """An answer of an upstream, as it comes. The ``on_`` members are what the parser calls."""

    def __init__(self, connection: UpstreamConnection, *, bodiless: bool) -> None:
        self.status = 0
        self.over = False
        self.lasting = False
        self.unheard = True
        self._connection = connection
        self._bodiless = bodiless
        self._barren = 0
        self._complete = False
        self._error: Exception | None = None
        self._kept: list[bytes] = []
        self._kept_size = 0
        self._take: Take | None = None
        self._left = False
        self._unpacking: Decompressor | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._fields: dict[bytes, bytes] = {}
        self._came: list[bytes] = []
        self.on_body = self._came.append
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True)

    # -- for those who want to know ------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Wait for the head."""
        while not self.status:
            await self._wait()

    @property
    def headers(self) -> dict[str, str]:
        """What the head says; names are written small."""
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self._fields.items()}

    async def is_streamed(self, stream_type: str = STREAM_TYPE) -> bool:
        """Whether it comes as events. A server that does not tell gives itself away by how it begins."""
        told = _name_type(self._fields.get(b"content-type", b""))
        if told in (STREAM_TYPE, stream_type) or told.endswith("json"):
            return told in (STREAM_TYPE, stream_type)
        while True:
            beginning = b"".join(self._kept).lstrip()
            if beginning.startswith(EVENT_STARTS):
                return True
            if self.over or not any(start.startswith(beginning) for start in EVENT_STARTS):
                return False
            await self._wait()

    async def piece(self) -> bytes:
        """What has come since the last time; empty at the end."""
        while not self._kept and not self.over:
            await self._wait()
        return self._take_kept()

    def _take_kept(self) -> bytes:
        piece = b"".join(self._kept)
        self._kept.clear()
        self._kept_size = 0
        return piece

    async def whole(self) -> bytes:
        pieces: list[bytes] = []
        await self.pour(pieces.append)
        return b"".join(pieces)

    async def pour(self, take: Take, drain: Drain | None = None) -> None:
        """Hand on every piece in the moment it comes, until the end."""
        self._left = False
        while self._kept and not self._left:
            if take(self._take_kept()) and drain:
                await drain()
        self._take = take
        try:
            while not (self.over or self._left):
                await self._wait()
                if self._connection.paused and drain:
                    await drain()
        finally:
            self._take = None

    def leave(self) -> None:
        """Enough was heard: pouring ends here."""
        self._left = True
        self._wake()

    async def part(self) -> None:
        """All has been said: wait a moment for the end, so that the connection can be used again."""
        with suppress(UpstreamError, TimeoutError):
            async with asyncio.timeout(PARTING):
                await self.whole()

    async def _wait(self) -> None:
        """Until something is new: the head, a piece, the end or, while it is poured, that it is too much."""
        if self._error is not None:
            raise self._error
        if self._connection.paused:
            self._connection.resume()
        self._waiter = self._connection.loop.create_future()
        await self._waiter

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # -- for the connection --------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """What one read from the network brought."""
        self.unheard = False
        parser, came = self._parser, self._came
        if parser is None:
            self.lasting = False
            return
        readable = True
        try:
            parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            readable = self.lasting = False
        if came:
            self._barren = 0
            piece = b"".join(came)
            came.clear()
            try:
                if self._unpacking is not None:
                    piece = self._unpacking.feed(piece)
                enough = piece and (self._take or self._keep)(piece)
            except Exception as error:
                enough = False
                self.fail(UpstreamError(UNREADABLE) if isinstance(error, zlib.error) else error)
            if enough:
                self._connection.pause()
                self._wake()
        else:
            self._barren += len(data)
        if self._complete:
            self._end()
        elif not readable or self._barren > HEAD_LIMIT:
            self.fail(UpstreamError(UNREADABLE))
        elif self._take is None:
            self._wake()

    def _keep(self, piece: bytes) -> bool:
        """Until somebody asks for it."""
        self._kept.append(piece)
        self._kept_size += len(piece)
        return self._kept_size > READ_AHEAD

    def _end(self) -> None:
        if self._error is None and self._unpacking is not None and not self._unpacking.over:
            self.fail(UpstreamError(UNREADABLE))
        self.over = self._error is None
        self._parser = None
        self._wake()

    def lose(self, *, broken: bool) -> None:
        """The connection is gone, which is how an answer of unknown length ends."""
        fields = self._fields
        measured = b"content-length" in fields or b"chunked" in fields.get(b"transfer-encoding", b"").lower()
        if self.status and not measured and not broken:
            self._end()
        else:
            self.fail(UpstreamError(f"The connection to the upstream broke {self._when()}."))

    def give_up(self) -> None:
        self.fail(UpstreamTimeoutError(f"The upstream was silent for too long {self._when()}."))

    def _when(self) -> str:
        return "while it was answering" if self.status else "before it answered"

    def fail(self, error: Exception) -> None:
        if not self.over and self._error is None:
            self._error = error
            self._parser = None
            self._connection.abort()
            self._wake()

    # -- for the parser ------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._complete:
            raise ValueError("a second answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if not self.status and name not in self._fields:  # what comes later is a trailer
            self._fields[name] = value

    def on_headers_complete(self) -> None:
        assert self._parser is not None  # it is calling
        status = self._parser.get_status_code()
        if status < 200:  # only a word in between, and a sign of life
            self._fields.clear()
            self._connection.hear()
            return
        if b"content-encoding" in self._fields:
            self._unpack(self.headers["content-encoding"].strip().lower())
        self.status = status
        self._complete = self._bodiless

    def _unpack(self, packed: str) -> None:
        if packed in PACKED:
            self._unpacking = Decompressor()
        elif packed not in ("", "identity"):
            raise ValueError(f"packed as {packed}")

    def on_message_complete(self) -> None:
        if self.status:
            assert self._parser is not None
            self._complete = True
            self.lasting = not self._bodiless and self._parser.should_keep_alive()


class UpstreamConnection(asyncio.Protocol):
    """A connection, and the one reply that comes over it at a time."""

    __slots__ = (
        *("_heard", "_patience", "_reads", "_reply", "_socket", "_timer", "_transport"),
        *("idle_since", "loop", "paused"),
    )

    _transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._reply: UpstreamResponse | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._patience = 0.0
        self._heard = 0.0
        self._reads = 0
        self._socket: socket.socket | None = None
        self.idle_since = 0.0
        self.paused = False

    def ask(self, request: tuple[bytes, ...], patience: float, *, bodiless: bool = False) -> UpstreamResponse:
        """Send a request. Silence for longer than ``patience`` seconds is the end of it."""
        reply = self._reply = UpstreamResponse(self, bodiless=bodiless)
        self._reads = 0
        if self._transport.is_closing():
            reply.lose(broken=True)
            return reply
        self._transport.writelines(request)
        self._heard = self.loop.time()
        self._patience = patience
        self._watch()
        return reply

    def release(self) -> bool:
        """Done with the reply; whether another can follow it. If not, the connection ends with it."""
        reply, self._reply = self._reply, None
        whole = reply is not None and reply.over and reply.lasting
        if not whole or self._transport.is_closing() or self._transport.get_write_buffer_size():
            self.abort()
            return False
        if self.paused:
            self.resume()
        self.idle_since = self.loop.time()
        return True

    @property
    def closing(self) -> bool:
        return self._transport.is_closing()

    def hear(self) -> None:
        """Wait for silence from now on."""
        self._heard = self.loop.time()

    def abort(self) -> None:
        self.paused = False
        self._transport.abort()

    def pause(self) -> None:
        self.paused = True
        self._transport.pause_reading()

    def resume(self) -> None:
        self.paused = False
        self._heard = self.loop.time()
        self._transport.resume_reading()

    # -- silence -------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        due = self._heard + self._patience
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self.loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer = None
        reply, now = self._reply, self.loop.time()
        if reply is None or reply.over:
            return
        if self.paused:  # it is we who do not listen
            self._heard = now
        if now - self._heard >= self._patience:
            reply.give_up()
        else:
            self._watch()

    # -- what the event loop calls -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._socket = transport.get_extra_info("socket") if QUICK_ACK is not None else None

    def data_received(self, data: bytes) -> None:
        if self._reply is None:  # nobody asked
            self.abort()
            return
        if self._reply.status:  # until then time runs: a head must come whole, however many bytes of it trickle in
            self._heard = self.loop.time()
        if self._reads % READS_PER_QUICK_ACK == 0:
            self._acknowledge()
        self._reads += 1
        self._reply.feed(data)

    def _acknowledge(self) -> None:
        """Acknowledge what has come at once. A server that does not set TCP_NODELAY waits for that before it sends the
        next small piece, up to 40 ms."""
        if self._socket is not None and QUICK_ACK is not None:
            with suppress(OSError):
                self._socket.setsockopt(socket.IPPROTO_TCP, QUICK_ACK, 1)

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._reply is not None:
            self._reply.lose(broken=error is not None)


@lru_cache(maxsize=64)
def _name_type(told: bytes) -> str:
    """The type of a body, without what is said about it besides."""
    return told.decode("latin-1").partition(";")[0].strip().lower()
