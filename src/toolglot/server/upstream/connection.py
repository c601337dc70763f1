"""One connection to an upstream: sends a request and streams its response.

Strategy. The event loop's ``data_received`` callback feeds the parser, which appends body chunks to a list. All chunks
of one read are then handed on at once: buffered for the next ``read_chunk`` or, during ``stream_to``, passed to a
callback. That wakes no task and touches no timer: the read timeout fires at the earliest moment it could have passed
and compares with the time of the last input. Every response has its own parser, so that no bytes of one response can
end up in the next.

Bytes are counted before they are kept: a response that exceeds a limit fails, and its connection is closed. A
compressed body is decompressed in steps; between two steps reading pauses, and the event loop serves others.
"""

from __future__ import annotations

import asyncio
import json
import socket
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from typing import Final, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from toolglot.config.settings import LimitSettings
from toolglot.core.errors import (
    AnswerHeadError,
    AnswerSizeError,
    CompressionError,
    ToolglotError,
    UpstreamEncodingError,
    UpstreamError,
    UpstreamTimeoutError,
    forget_frames,
)
from toolglot.server.compression import ENCODINGS, Decompressor

READ_AHEAD: Final = 1 << 16
"""Bytes of a response that are buffered for a slow client before reading from the upstream pauses (back-pressure)."""

HEAD_LIMIT: Final = 1 << 16
"""Bytes in a row that may contain no body, such as headers; a read beyond this limit fails the response."""

STEP_SIZE: Final = 1 << 17
"""Bytes that are decompressed before others are served."""

RATIO_FROM: Final = 1 << 20
"""Bytes of a decompressed body from which on its ratio is limited: short texts may well repeat themselves."""

SMALL_BODY: Final = 4 << 20
"""Bytes that a body may have which is no answer: an error, a list of models, what a server says about itself."""

TAIL_SECONDS: Final = 0.5
"""Seconds to wait for the end of a response whose last event has been received."""

QUICK_ACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)
"""The Linux socket option that acknowledges data at once. The kernel resets it after some segments."""
READS_PER_QUICK_ACK: Final = 8

TOO_LARGE: Final = "The upstream's answer is larger than {} bytes."
TOO_COMPRESSED: Final = "The upstream's answer is more than {} times larger than its compressed form."
HEAD_TOO_LARGE: Final = f"The head of the upstream's response is larger than {HEAD_LIMIT} bytes."
UNREADABLE: Final = "The upstream sent a response that cannot be parsed."
UNKNOWN_ENCODING: Final = (
    "The upstream compressed its response with '{}', which was not asked for and cannot be decoded."
)
SHOWN_ENCODING: Final = 40
FIRST_ERROR: Final = 400
STREAM_TYPE: Final = "text/event-stream"
EVENT_STARTS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")

Consumer = Callable[[bytes], bool | None]
"""Consumes a chunk. Returns whether reading should pause."""

Drain = Callable[[], Awaitable[None]]
"""Waits until the consumer can take more."""


class MissingText:
    """Stands for the text of an error that cannot be decoded: says why, in a form that all wires read."""

    is_complete = True
    has_more = False

    def __init__(self, reason: str) -> None:
        self._text = json.dumps({"error": {"message": reason}}).encode()

    def add(self, body: bytes) -> None:
        """Ignore the body."""

    def take(self, most: int) -> bytes:
        text, self._text = self._text, b""
        return text


class UpstreamResponse:
    """A response of an upstream, streamed. The parser calls the ``on_`` methods."""

    def __init__(self, connection: UpstreamConnection, *, bodiless: bool) -> None:
        self.status = 0
        self.ended = False
        self.keep_alive = False
        self.nothing_received = True
        self._connection = connection
        self._bodiless = bodiless
        self._bytes_without_body = 0
        self._complete = False
        self._error: Exception | None = None
        self._fault = ""
        self._buffer: list[bytes] = []
        self._buffer_size = 0
        self._consume: Consumer | None = None
        self._stopped = False
        self._decompressor: Decompressor | MissingText | None = None
        self._limits = connection.limits
        self._most = self._limits.answer_bytes
        self._size = self._compressed_size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._fields: dict[bytes, bytes] = {}
        self._chunks: list[bytes] = []
        self.on_body = self._chunks.append
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True)

    # -- used by the caller --------------------------------------------------------------------------------------------

    async def wait_for_head(self) -> None:
        while not self.status:
            await self._wait()

    @property
    def headers(self) -> dict[str, str]:
        """The response headers; names are lower case."""
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in self._fields.items()}

    async def is_streamed(self, stream_type: str = STREAM_TYPE) -> bool:
        """Whether the body is an event stream. The start of the body decides, because proxies send streams as JSON and
        JSON as streams; but a stream that has not begun is not waited for."""
        content_type = _media_type(self._fields.get(b"content-type", b""))
        declared = content_type in (STREAM_TYPE, stream_type)
        if declared and (content_type != STREAM_TYPE or not (self._buffer or b"content-length" in self._fields)):
            return True
        while True:
            beginning = b"".join(self._buffer).lstrip()
            if beginning.startswith(EVENT_STARTS):
                return True
            undecided = self._buffer_size <= READ_AHEAD and any(start.startswith(beginning) for start in EVENT_STARTS)
            if self.ended or not undecided:
                return declared and not beginning.startswith(b"{")
            await self._wait()

    async def read_chunk(self) -> bytes:
        """All that was received since the last call; empty at the end."""
        while not self._buffer and not self.ended:
            await self._wait()
        return self._take_buffer()

    def _take_buffer(self) -> bytes:
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._buffer_size = 0
        return data

    async def read(self, most: int = 0) -> bytes:
        """The complete body. Raises: AnswerSizeError if it has more than ``most`` bytes (0: than an answer may)."""
        self._most = min(most or self._most, self._most)
        body = bytearray()  # many small chunks would take more memory by themselves
        await self.stream_to(body.extend)
        return bytes(body)

    async def stream_to(self, consume: Consumer, drain: Drain | None = None) -> None:
        """Pass each chunk to ``consume`` as soon as it arrives, until the end or ``stop``."""
        self._stopped = False
        self._check_size()
        while self._buffer and not self._stopped:
            if consume(self._take_buffer()) and drain:
                await drain()
        self._consume = consume
        try:
            while not (self.ended or self._stopped):
                await self._wait()
                if self._connection.paused and drain:
                    await drain()
        finally:
            self._consume = None

    def stop(self) -> None:
        """End ``stream_to``: the consumer needs no more."""
        self._stopped = True
        self._wake()

    async def drain_tail(self) -> None:
        """Wait briefly for the end of a response that needs no more reading, so that the connection can be reused."""
        with suppress(UpstreamError, TimeoutError):
            async with asyncio.timeout(TAIL_SECONDS):
                await self.stream_to(lambda _: None)

    async def _wait(self) -> None:
        """Wait for the head, a chunk or the end; during ``stream_to``, for the end or back-pressure."""
        if self._error is not None:
            raise self._error
        if self._decompressor is not None and self._decompressor.has_more:
            await asyncio.sleep(0)
            self._decompress(b"")
            return
        if self._connection.paused:
            self._connection.resume()
        self._waiter = self._connection.loop.create_future()
        await self._waiter

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # -- called by the connection --------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Parse the bytes of one read from the network (hot path)."""
        self.nothing_received = False
        parser, chunks = self._parser, self._chunks
        if parser is None:
            self.keep_alive = False
            return
        valid = True
        try:
            parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            valid = self.keep_alive = False
        if chunks:
            self._bytes_without_body = 0
            body = b"".join(chunks)
            chunks.clear()
            if self._decompressor is None:
                self._hand_on(body)
            else:
                self._decompress(body)
        else:
            self._bytes_without_body += len(data)
        if self._complete:
            self._end()
        elif self._bytes_without_body > HEAD_LIMIT:
            self.fail(AnswerHeadError(HEAD_TOO_LARGE))
        elif not valid:
            self.fail(UpstreamEncodingError(self._fault) if self._fault else UpstreamError(UNREADABLE))
        elif self._consume is None:
            self._wake()

    def _hand_on(self, body: bytes) -> None:
        """Hand on bytes of the body, if they are within the limits (hot path)."""
        self._size += len(body)
        try:
            if self._size > self._most:
                self._check_size()
            if body and (self._consume or self._store)(body):
                self._connection.pause()
                self._wake()
        except Exception as error:
            self.fail(error)

    def _check_size(self) -> None:
        """Raise AnswerSizeError if the body has more bytes than it may, or says so in advance."""
        given = self._fields.get(b"content-length", b"0")
        announced = 0 if self._bodiless or self._decompressor is not None or not given.isdigit() else int(given)
        if max(self._size, announced) > self._most:
            raise AnswerSizeError(TOO_LARGE.format(self._most))

    def _decompress(self, compressed: bytes) -> None:
        """Decompress a step of what has come, and hand it on. Reading pauses while there is more."""
        decompressor = self._decompressor
        assert decompressor is not None
        self._compressed_size += len(compressed)
        decompressor.add(compressed)
        try:
            body = decompressor.take(min(STEP_SIZE, self._most + 1 - self._size))
        except zlib.error:
            self.fail(UpstreamError(UNREADABLE))
            return
        ratio, size = self._limits.compression_ratio, self._size + len(body)
        if size > max(RATIO_FROM, ratio * self._compressed_size):
            self.fail(CompressionError(TOO_COMPRESSED.format(ratio)))
            return
        self._hand_on(body)
        if decompressor.has_more and self._error is None:
            self._connection.pause()
            self._wake()
        elif not compressed and self._complete:
            self._end()

    def _store(self, chunk: bytes) -> bool:
        """Buffer a chunk until it is read. Returns whether the buffer is full."""
        self._buffer.append(chunk)
        self._buffer_size += len(chunk)
        return self._buffer_size > READ_AHEAD

    def _end(self) -> None:
        if self._decompressor is not None and self._decompressor.has_more and self._error is None:
            self._complete = True  # the rest is decompressed first
            return
        if self._error is None and self._decompressor is not None and not self._decompressor.is_complete:
            self.fail(UpstreamError(UNREADABLE))
        self.ended = self._error is None
        self._parser = None
        self._wake()

    def disconnect(self, *, broken: bool) -> None:
        """The connection is closed, which is the normal end of a response without length or chunked encoding."""
        fields = self._fields
        framed = b"content-length" in fields or b"chunked" in fields.get(b"transfer-encoding", b"").lower()
        if self.status and not framed and not broken:
            self._end()
        else:
            self.fail(UpstreamError(f"The connection to the upstream broke {self._when()}."))

    def time_out(self) -> None:
        seconds = f"{self._connection.timeout:g} s"
        self.fail(UpstreamTimeoutError(f"The upstream was silent for {seconds}, its read_timeout, {self._when()}."))

    def _when(self) -> str:
        return "while it was answering" if self.status else "before it answered"

    def fail(self, error: Exception) -> None:
        if not self.ended and self._error is None:
            if isinstance(error, ToolglotError):  # any other error is a bug, whose frames are logged
                forget_frames(error)
            self._error = error
            self._parser = None
            self._connection.abort()
            self._wake()

    # -- called by the parser ------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._complete:
            raise ValueError("a second response")

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if not self.status and name not in self._fields:  # later ones are trailers
            self._fields[name] = value

    def on_headers_complete(self) -> None:
        assert self._parser is not None  # it is the caller
        status = self._parser.get_status_code()
        if status < 200:  # an interim response: only resets the timeout
            self._fields.clear()
            self._connection.reset_timeout()
            return
        if b"content-encoding" in self._fields and not self._bodiless:
            self._set_encoding(self.headers["content-encoding"], status)
        self.status = status
        self._complete = self._bodiless

    def _set_encoding(self, field: str, status: int) -> None:
        """Decode the body by its content encoding. An error with a text that cannot be decoded keeps its status."""
        names = [name for part in field.lower().split(",") if (name := part.strip()) not in ("", "identity")]
        if len(names) == 1 and names[0] in ENCODINGS:
            self._decompressor = Decompressor()
        elif names:
            shown = ", ".join(names)[:SHOWN_ENCODING].encode("ascii", "replace").decode()
            self._fault = UNKNOWN_ENCODING.format(shown)
            if status < FIRST_ERROR:
                raise ValueError(self._fault)
            self._decompressor = MissingText(self._fault)

    def on_message_complete(self) -> None:
        if self.status:
            assert self._parser is not None
            self._complete = True
            self.keep_alive = not self._bodiless and self._parser.should_keep_alive()


class UpstreamConnection(asyncio.Protocol):
    """A connection, with at most one response at a time."""

    __slots__ = (
        *("_last_input", "_reads_left", "_response", "_socket", "timeout", "_timer", "_transport"),
        *("idle_since", "limits", "loop", "paused"),
    )

    _transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: LimitSettings) -> None:
        self.loop = loop
        self.limits = limits
        self._response: UpstreamResponse | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.timeout = 0.0
        self._last_input = 0.0
        self._reads_left = 0
        self._socket: socket.socket | None = None
        self.idle_since = 0.0
        self.paused = False

    def send(self, request: tuple[bytes, ...], timeout: float, *, bodiless: bool = False) -> UpstreamResponse:
        """Send a request. The response fails when nothing is received for ``timeout`` seconds."""
        response = self._response = UpstreamResponse(self, bodiless=bodiless)
        self._reads_left = 0
        if self._transport.is_closing():
            response.disconnect(broken=True)
            return response
        self._transport.writelines(request)
        self._last_input = self.loop.time()
        self.timeout = timeout
        self._schedule_timeout()
        return response

    def release(self) -> bool:
        """Detach the response. Returns whether the connection can be reused; if not, it is closed."""
        response, self._response = self._response, None
        reusable = response is not None and response.ended and response.keep_alive
        if not reusable or self._transport.is_closing() or self._transport.get_write_buffer_size():
            self.abort()
            return False
        if self.paused:
            self.resume()
        self.idle_since = self.loop.time()
        return True

    @property
    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def reset_timeout(self) -> None:
        self._last_input = self.loop.time()

    def abort(self) -> None:
        self.paused = False
        self._transport.abort()

    def pause(self) -> None:
        self.paused = True
        self._transport.pause_reading()

    def resume(self) -> None:
        self.paused = False
        self._last_input = self.loop.time()
        self._transport.resume_reading()

    # -- read timeout --------------------------------------------------------------------------------------------------

    def _schedule_timeout(self) -> None:
        due = self._last_input + self.timeout
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self.loop.call_at(due, self._check_timeout)

    def _check_timeout(self) -> None:
        self._timer = None
        response, now = self._response, self.loop.time()
        if response is None or response.ended:
            return
        if self.paused:  # back-pressure: this side has stopped reading
            self._last_input = now
        if now - self._last_input >= self.timeout:
            response.time_out()
        else:
            self._schedule_timeout()

    # -- called by the event loop --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._socket = transport.get_extra_info("socket") if QUICK_ACK is not None else None

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None:  # unsolicited data
            self.abort()
            return
        if response.status:  # before that, the timeout is for the complete head, even if bytes trickle in
            self._last_input = self.loop.time()
        response.feed(data)
        if self._reads_left:
            self._reads_left -= 1
        elif not response.ended:
            self._acknowledge()

    def _acknowledge(self) -> None:
        """Send a TCP acknowledgement at once, because more is to come. A server that does not set TCP_NODELAY waits for
        it before it sends the next small segment, up to 40 ms."""
        self._reads_left = READS_PER_QUICK_ACK - 1
        if self._socket is not None and QUICK_ACK is not None:
            try:
                self._socket.setsockopt(socket.IPPROTO_TCP, QUICK_ACK, 1)
            except OSError:  # the connection is closed
                self._socket = None

    def connection_lost(self, error: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._response is not None:
            self._response.disconnect(broken=error is not None)


@lru_cache(maxsize=64)
def _media_type(content_type: bytes) -> str:
    """The media type of a Content-Type header, without its parameters."""
    return content_type.decode("latin-1").partition(";")[0].strip().lower()
