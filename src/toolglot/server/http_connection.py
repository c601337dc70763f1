"""One client connection: parses HTTP/1.1 requests and answers them in order.

Strategy. The event loop's ``data_received`` callback feeds the parser. As soon as the head of a request is complete,
one task answers it; only reading the body waits for the body, so a request that is refused need not be uploaded. When
the client disconnects before its response is complete, the task is cancelled, and with it everything it awaits. After
an early refusal the connection stays open a little longer (lingering close), or the client might never see the
response. A connection has no timers of its own: the listener checks the timeouts of all connections periodically.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from toolglot.core.errors import HeaderSizeError, RequestError, ToolglotError
from toolglot.server.http_request import ConnectionLimits, Request, Response

IDLE_TIMEOUT: Final = 75.0
"""Seconds that a connection may be idle between requests."""
INPUT_TIMEOUT: Final = 60.0
"""Seconds that a client may take for a head, or pause within a body."""
LINGER_SECONDS: Final = 2.0
"""Seconds that a connection stays open after an early refusal."""
STALL_TIMEOUT: Final = 300.0
"""Seconds that a client may read nothing of a pending response."""
MAX_PIPELINED: Final = 64
"""How many pipelined requests may wait for the first response."""
MIN_PROGRESS: Final = 64
"""Bytes. A smaller body chunk does not reset the input timeout."""


class ConnectionOwner(ConnectionLimits, Protocol):
    """What a connection needs of its listener: answers and limits. ``connections`` are those that are open."""

    head_limit: int
    connections: set[HttpConnection]

    def answer(self, request: Request) -> Awaitable[Response | None]:
        """The response; None if it was already written to the request."""
        ...

    def refuse(self, error: ToolglotError) -> Response:
        """The response to input that is not a valid request."""
        ...


class HttpConnection(asyncio.Protocol):
    """A client connection. The parser calls the ``on_`` methods."""

    __slots__ = (
        *(
            "_answering",
            "_incoming",
            "_ignoring_input",
            "_headers",
            "_head_size",
            "_last_input",
            "_parser",
            "_queue",
            "_target",
            "_task",
        ),
        *("_last_progress", "_unsent", "drained", "loop", "owner", "transport"),
    )

    transport: asyncio.Transport
    _answering: Request

    def __init__(self, owner: ConnectionOwner, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.drained: asyncio.Future[None] | None = None
        self.owner = owner
        self._parser = HttpRequestParser(self)
        self._queue: list[Request] = []
        self._task: asyncio.Task[None] | None = None
        self._incoming: Request | None = None
        self._target = b""
        self._headers: dict[str, str] = {}
        self._head_size = 0
        self._last_input = self._last_progress = loop.time()
        self._unsent = 0
        self._ignoring_input = False

    # -- used by the listener ------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    def check_timeouts(self, now: float) -> None:
        """Idle and slow-client timeouts: abort the connection if one has passed."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._last_progress = now
        self._unsent = unsent
        if now - self._last_progress > STALL_TIMEOUT:
            self.transport.abort()
        if (self.is_busy and self._incoming is None) or unsent:
            return
        if self._ignoring_input:
            timeout = LINGER_SECONDS
        elif self._incoming is not None:
            timeout = INPUT_TIMEOUT
        else:
            timeout = 0.0 if self.owner.draining else INPUT_TIMEOUT if self._head_size else IDLE_TIMEOUT
        if now - self._last_input > timeout:
            self.transport.abort()

    def interrupt(self, error: ToolglotError) -> None:
        """End the current response with an error; if there is none, close the connection."""
        if self._task is None:
            self.transport.close()
            return
        self._answering.interruption = error
        self._task.cancel()

    # -- called by the event loop --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.owner.connections.add(self)

    def data_received(self, data: bytes) -> None:
        if self._ignoring_input:
            return
        if self._incoming is None:
            self._head_size += len(data)
        try:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                self._ignore_upgrade(data[upgrade.args[0] :])
            if len(self._queue) > MAX_PIPELINED:
                raise RequestError("Too many pipelined requests: more came before the first was answered.")
            if self._incoming is None and self._head_size > self.owner.head_limit:
                raise self._head_too_large()
        except (HttpParserError, ToolglotError) as error:
            self._reject_input(error.__context__ or error)
        if self._queue:
            self.transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._ignoring_input = True
        self._queue.clear()
        if self._task is not None and not self._answering.response_complete:
            self._task.cancel()
        self.resume_writing()
        self.owner.connections.discard(self)

    def pause_writing(self) -> None:
        self.drained = self.loop.create_future()

    def resume_writing(self) -> None:
        drained, self.drained = self.drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    # -- called by the parser ------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._last_input = self.loop.time()
        self._target = b""
        self._headers = {}

    def on_url(self, chunk: bytes) -> None:
        self._target += chunk

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._incoming is not None:  # a trailer
            return
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape")
        headers = self._headers
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        if self._head_size > self.owner.head_limit and not self._head_fits():
            raise self._head_too_large()
        parser = self._parser
        if parser.should_upgrade():
            if parser.get_method() == b"CONNECT":
                raise RequestError("CONNECT is not supported: this is not a proxy.")
            return
        method, version = parser.get_method().decode("latin-1"), parser.get_http_version()
        request = self._incoming = Request(self, method, self._target, self._headers, version)
        request.keep_alive = parser.should_keep_alive()
        self._head_size = 0
        if self._task is None:
            self._start_answer(request)
        else:
            self._queue.append(request)

    def on_body(self, chunk: bytes) -> None:
        if len(chunk) >= MIN_PROGRESS:
            self._last_input = self.loop.time()
        if self._incoming is not None:
            self._incoming.add_body(chunk)

    def on_message_complete(self) -> None:
        if self._incoming is not None:
            self._incoming.complete_body()
            self._incoming = None

    def _ignore_upgrade(self, rest: bytes) -> None:
        """Ignore Upgrade: parse the head again without the upgrade headers."""
        headers = {name: value for name, value in self._headers.items() if name not in ("connection", "upgrade")}
        if "close" in self._headers["connection"].lower():
            headers["connection"] = "close"
        version = self._parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (self._parser.get_method(), self._target, version)]
        lines += [f"{name}: {value}".encode("utf-8", "surrogateescape") for name, value in headers.items()]
        self._parser = HttpRequestParser(self)
        self._parser.feed_data(b"\r\n".join(lines) + b"\r\n\r\n" + rest)

    def _head_fits(self) -> bool:
        """Whether the head alone is within the limit; ``_head_size`` may include the start of the body."""
        size = sum(len(name) + len(value) + 4 for name, value in self._headers.items())
        return size + len(self._target) <= self.owner.head_limit

    def _head_too_large(self) -> HeaderSizeError:
        return HeaderSizeError(f"The head is larger than {self.owner.head_limit} bytes.")

    # -- answering -----------------------------------------------------------------------------------------------------

    def _start_answer(self, request: Request) -> None:
        self._answering = request
        self._task = self.loop.create_task(self._answer(request))

    async def _answer(self, request: Request) -> None:
        try:
            response = await self.owner.answer(request)
            if response is not None:
                request.send(response)
                await request.drain()
        finally:
            self._task = None
            self._finish(request)

    def _finish(self, request: Request) -> None:
        self._last_input = self.loop.time()
        if self.transport.is_closing():
            return
        if not request.response_complete:  # a truncated response must not look complete
            self.transport.abort()
        elif not request.body_complete:
            self._linger()
        elif self._queue and request.keep_alive:
            self._start_answer(self._queue.pop(0))
            if not self._queue:  # the rest of its body may not have arrived yet
                self.transport.resume_reading()
        elif self._ignoring_input or not request.keep_alive:
            self.transport.close()
        else:
            self.transport.resume_reading()

    def _reject_input(self, error: BaseException) -> None:
        """Stop parsing: earlier requests are still answered, then the connection closes with an error."""
        reason = error if isinstance(error, ToolglotError) else RequestError("The input is not valid HTTP.")
        self._ignoring_input = True
        if self._incoming is not None:
            self._incoming.fail_body(reason)
        if self.is_busy or self.transport.is_closing():
            return
        request = Request(self, "GET", b"/", {}, "1.1")
        request.send(self.owner.refuse(reason))
        self._linger()

    def _linger(self) -> None:
        """Close the write side and ignore further input; the linger timeout closes the rest."""
        self._ignoring_input = True
        self._last_input = self.loop.time()
        with suppress(OSError, RuntimeError):
            self.transport.write_eof()
