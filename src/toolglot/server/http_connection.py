"""One client's connection: requests come in over it, one after the other, and their answers go back.

Strategy. The parser is fed by the event loop's own callback. As soon as the head of a request is there, one task
answers it; the body is waited for only by who reads it, so that nobody uploads what is refused anyway. When the client
goes away before its answer is whole, the task is cancelled, and with it whatever it waits for. A client that is refused
before it has said everything is listened to a little longer, or it might never see the refusal. There are no timers:
whoever keeps the doors looks after all of them from time to time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from toolglot.core.errors import HeaderSizeError, RequestError, ToolglotError
from toolglot.server.http_request import Request, Response

KEEP_ALIVE: Final = 75.0
"""Seconds that a connection may be idle."""
PATIENCE: Final = 60.0
"""Seconds that a client may take for a head, or be silent inside of a body."""
LINGER: Final = 2.0
"""Seconds that a client is still listened to when it has been refused early."""
STALLED: Final = 300.0
"""Seconds that a client may take nothing of what waits for it."""
AHEAD: Final = 64
"""How many requests may come before the first is answered."""
TRICKLE: Final = 64
"""A piece of a body that is smaller than this is no sign of life."""


class ConnectionOwner(Protocol):
    """What a door leads into: who answers, and within which limits."""

    body_limit: int
    head_limit: int
    draining: bool

    def answer(self, request: Request) -> Awaitable[Response | None]:
        """The answer; nothing if it was written to the request itself."""
        ...

    def refuse(self, error: ToolglotError) -> Response:
        """The answer to what is no request."""
        ...

    def remember(self, door: HttpConnection) -> None:
        """A connection is open."""
        ...

    def forget(self, door: HttpConnection) -> None:
        """A connection is closed."""
        ...


class HttpConnection(asyncio.Protocol):
    """A client's connection. The ``on_`` members are what the parser calls."""

    __slots__ = (
        *(
            "_answering",
            "_coming",
            "_deaf",
            "_fields",
            "_head_size",
            "_heard",
            "_house",
            "_parser",
            "_queue",
            "_target",
            "_task",
        ),
        *("_moved", "_waiting", "blocked", "body_limit", "loop", "transport"),
    )

    transport: asyncio.Transport
    _answering: Request

    def __init__(self, house: ConnectionOwner, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.body_limit = house.body_limit
        self.blocked: asyncio.Future[None] | None = None
        self._house = house
        self._parser = HttpRequestParser(self)
        self._queue: list[Request] = []
        self._task: asyncio.Task[None] | None = None
        self._coming: Request | None = None
        self._target = b""
        self._fields: dict[str, str] = {}
        self._head_size = 0
        self._heard = self._moved = loop.time()
        self._waiting = 0
        self._deaf = False

    # -- for the request -----------------------------------------------------------------------------------------------

    @property
    def closing(self) -> bool:
        """Whether the next answer is the last."""
        return self._house.draining

    # -- for who keeps the doors ---------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        return self._task is not None

    def look(self, now: float) -> None:
        """Leave a client that has been silent for too long."""
        waiting = self.transport.get_write_buffer_size()
        if not waiting or waiting < self._waiting:
            self._moved = now
        self._waiting = waiting
        if now - self._moved > STALLED:
            self.transport.abort()
        if (self.busy and self._coming is None) or waiting:
            return
        usual = 0.0 if self._house.draining else PATIENCE if self._head_size else KEEP_ALIVE
        if now - self._heard > (LINGER if self._deaf else PATIENCE if self._coming is not None else usual):
            self.transport.abort()

    def interrupt(self, error: ToolglotError) -> None:
        """End the answer that is under way with an error; without one, close the connection."""
        if self._task is None:
            self.transport.close()
            return
        self._answering.interruption = error
        self._task.cancel()

    # -- what the event loop calls -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._house.remember(self)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        if self._coming is None:
            self._head_size += len(data)
        try:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                self._decline(data[upgrade.args[0] :])
            if len(self._queue) > AHEAD:
                raise RequestError("Too many requests came before the first was answered.")
            if self._coming is None and self._head_size > self._house.head_limit:
                raise self._too_long()
        except (HttpParserError, ToolglotError) as error:
            self._give_up(error.__context__ or error)
        if self._queue:
            self.transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._deaf = True
        self._queue.clear()
        if self._task is not None and not self._answering.answered:
            self._task.cancel()
        self.resume_writing()
        self._house.forget(self)

    def pause_writing(self) -> None:
        self.blocked = self.loop.create_future()

    def resume_writing(self) -> None:
        blocked, self.blocked = self.blocked, None
        if blocked is not None and not blocked.done():
            blocked.set_result(None)

    # -- what the parser calls -----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._heard = self.loop.time()
        self._target = b""
        self._fields = {}

    def on_url(self, piece: bytes) -> None:
        self._target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._coming is not None:  # a trailer
            return
        known, told = name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape")
        fields = self._fields
        fields[known] = f"{fields[known]}, {told}" if known in fields else told

    def on_headers_complete(self) -> None:
        if self._head_size > self._house.head_limit and not self._fits():
            raise self._too_long()
        parser = self._parser
        if parser.should_upgrade():
            if parser.get_method() == b"CONNECT":
                raise RequestError("This is no proxy.")
            return
        method, version = parser.get_method().decode("latin-1"), parser.get_http_version()
        request = self._coming = Request(self, method, self._target, self._fields, version)
        request.lasting = parser.should_keep_alive()
        self._head_size = 0
        if self._task is None:
            self._begin(request)
        else:
            self._queue.append(request)

    def on_body(self, piece: bytes) -> None:
        if len(piece) >= TRICKLE:
            self._heard = self.loop.time()
        if self._coming is not None:
            self._coming.take(piece)

    def on_message_complete(self) -> None:
        if self._coming is not None:
            self._coming.complete()
            self._coming = None

    def _decline(self, rest: bytes) -> None:
        """A client that would rather speak another protocol is heard in this one: its head again, without the wish."""
        fields = {name: value for name, value in self._fields.items() if name not in ("connection", "upgrade")}
        if "close" in self._fields["connection"].lower():
            fields["connection"] = "close"
        version = self._parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self._parser.get_method(), self._target, version)]
        lines += [f"{name}: {value}".encode("utf-8", "surrogateescape") for name, value in fields.items()]
        self._parser = HttpRequestParser(self)
        self._parser.feed_data(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def _fits(self) -> bool:
        """What came with the end of a head may be body."""
        size = sum(len(name) + len(value) + 4 for name, value in self._fields.items())
        return size + len(self._target) <= self._house.head_limit

    def _too_long(self) -> HeaderSizeError:
        return HeaderSizeError(f"The head is larger than {self._house.head_limit} bytes.")

    # -- answering -----------------------------------------------------------------------------------------------------

    def _begin(self, request: Request) -> None:
        self._answering = request
        self._task = self.loop.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._house.answer(request)
            if response is not None:
                request.send(response)
                await request.drain()
        finally:
            self._task = None
            self._leave(request)

    def _leave(self, request: Request) -> None:
        self._heard = self.loop.time()
        if self.transport.is_closing():
            return
        if not request.answered:  # it broke in the middle, and must not look as if it were whole
            self.transport.abort()
        elif not request.whole:
            self._linger()
        elif self._queue and request.lasting:
            self._begin(self._queue.pop(0))
            if not self._queue:  # the rest of its body may still be on the way
                self.transport.resume_reading()
        elif self._deaf or not request.lasting:
            self.transport.close()
        else:
            self.transport.resume_reading()

    def _give_up(self, error: BaseException) -> None:
        """What comes cannot be read. Who asked before is answered, and then it is over."""
        told = error if isinstance(error, ToolglotError) else RequestError("This cannot be read as HTTP.")
        self._deaf = True
        if self._coming is not None:
            self._coming.spoil(told)
        if self.busy or self.transport.is_closing():
            return
        request = Request(self, "GET", b"/", {}, "1.1")
        request.send(self._house.refuse(told))
        self._linger()

    def _linger(self) -> None:
        self._deaf = True
        self._heard = self.loop.time()
        with suppress(OSError, RuntimeError):
            self.transport.write_eof()
