"""One HTTP request: reads its body and writes its response."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from typing import Final, Protocol
from urllib.parse import parse_qsl, unquote

from toolglot.core import offload
from toolglot.core.errors import RequestError, RequestSizeError, ToolglotError
from toolglot.gateway.context import Source
from toolglot.gateway.mounting import JSON_TYPE, Response
from toolglot.server.compression import ENCODINGS, Decompressor

__all__ = ["JSON_TYPE", "Request", "Response"]

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
CHUNK: Final = b"%x\r\n%b\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
CONNECTION: Final = {True: "connection: keep-alive\r\n", False: "connection: close\r\n"}
"""The Connection header, by whether the connection is kept open."""
REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


def make_request_id(source: Source) -> str:
    """Ids sort by time, so that the index of a store has those of neighbouring requests side by side."""
    return f"req_{int(source.now() * 1000):012x}{source.token()[:12]}"


class ConnectionLimits(Protocol):
    """What holds for all connections. ``draining``: each closes after its next response."""

    body_limit: int
    draining: bool


class ClientConnection(Protocol):
    """What a request needs of its connection.

    ``drained`` is set while writing is paused for a slow client, and done once the client has caught up.
    """

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    drained: asyncio.Future[None] | None

    @property
    def owner(self) -> ConnectionLimits: ...


class Request:
    """A client's request and the response to it. Header names are lower case."""

    __slots__ = (
        *(
            "_body",
            "_pending_head",
            "_allowance",
            "_connection",
            "_body_error",
            "_waiter",
            "response_complete",
            "response_started",
            "chunked",
            "headers",
            "id",
            "interruption",
            "key",
        ),
        *("keep_alive", "loop", "path_params", "method", "path", "query", "body_complete"),
    )

    def __init__(
        self, connection: ClientConnection, method: str, target: bytes, headers: Mapping[str, str], version: str
    ) -> None:
        self.method = method
        self.path, self.query = split_target(target)
        self.headers = headers
        self.path_params: Mapping[str, str] = {}
        self.id = self.key = ""
        self.chunked = version == "1.1"
        self.keep_alive = False
        self.body_complete = False
        self.response_started = False
        self.response_complete = False
        self.interruption: ToolglotError | None = None
        """Why the response is cancelled although the client is still connected."""
        self.loop = connection.loop
        self._connection = connection
        self._pending_head = b""
        self._allowance = connection.owner.body_limit
        self._body: bytes | BytesIO = b""
        self._body_error: ToolglotError | None = None
        self._waiter: asyncio.Future[None] | None = None

    @property
    def peer(self) -> str:
        """The address of the client, or of the proxy before the gateway; empty if it has none."""
        name = self._connection.transport.get_extra_info("peername")
        return str(name[0]) if isinstance(name, list | tuple) and name else ""

    # -- request body --------------------------------------------------------------------------------------------------

    async def read(self) -> bytes:
        """Wait for the complete body and decompress it.

        Raises: SizeError if it is too large, RequestError if its encoding is unknown or the data are malformed.
        """
        limit = self._connection.owner.body_limit
        if not self.body_complete:
            await self._wait()
        if self._body_error is not None:
            raise self._body_error
        if self._allowance < 0:
            raise RequestSizeError(f"The body is larger than {limit} bytes.")
        body, self._body = self._body if isinstance(self._body, bytes) else self._body.getvalue(), b""
        encoding = self.headers["content-encoding"].lower() if "content-encoding" in self.headers else ""
        if encoding in ("identity", ""):
            return body
        return await offload.run(len(body) >= offload.LARGE_REQUEST, decompress, body, encoding, limit)

    async def _wait(self) -> None:
        """Wait until the body is complete or known to be unusable."""
        length = self.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._connection.owner.body_limit:
            self._allowance = -1
        if self._allowance >= 0 and self._body_error is None:
            if self.headers.get("expect", "").lower() == "100-continue":
                self._connection.transport.write(CONTINUE)
            self._waiter = self.loop.create_future()
            await self._waiter

    def add_body(self, chunk: bytes) -> None:
        """Append a chunk of the body."""
        self._allowance -= len(chunk)
        if self._allowance < 0:
            self._body = b""
            self._wake()
        elif not self._body:
            self._body = chunk
        else:
            if isinstance(self._body, bytes):  # most bodies arrive in one chunk
                first, self._body = self._body, BytesIO()
                self._body.write(first)
            self._body.write(chunk)

    def fail_body(self, error: ToolglotError) -> None:
        """Make ``read`` raise an error: the body cannot be parsed."""
        self._body_error = error
        self._wake()

    def complete_body(self) -> None:
        self.body_complete = True
        if self._waiter is not None:
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- response ------------------------------------------------------------------------------------------------------

    def send(self, response: Response) -> None:
        """Write a complete response."""
        self.response_started = self.response_complete = True
        if self._connection.transport.is_closing():
            return
        length = f"content-length: {len(response.body)}\r\n"
        head = self._head(response.status, response.headers, response.content_type, length)
        if len(response.body) >= offload.LARGE_ANSWER and self.method != "HEAD":
            self._connection.transport.writelines((head, response.body))  # without a copy
        else:
            self._connection.transport.write(head if self.method == "HEAD" else head + response.body)

    def begin(self, headers: Mapping[str, str], content_type: str) -> None:
        """Start a streamed response. Its head is sent together with the first chunk if that is written within the same
        loop iteration, because each write wakes the client; otherwise it is sent alone."""
        self.response_started = True
        self.keep_alive = self.keep_alive and self.chunked
        length = "transfer-encoding: chunked\r\n" if self.chunked else ""
        self._pending_head = self._head(200, headers, content_type, length)
        self.loop.call_soon(self._send_pending_head)

    def _send_pending_head(self) -> None:
        if self._pending_head:
            self._send(b"")

    def _send(self, data: bytes) -> None:
        head, self._pending_head = self._pending_head, b""
        if not self._connection.transport.is_closing():
            self._connection.transport.write(head + data)

    def write(self, data: bytes) -> bool:
        """Send a chunk. Returns whether the caller should await ``drain`` before writing more."""
        connection = self._connection
        chunk = CHUNK % (len(data), data) if self.chunked else data
        if self._pending_head:
            self._send(chunk)
        elif not connection.transport.is_closing():
            connection.transport.write(chunk)
        return connection.drained is not None

    def end(self, data: bytes = b"") -> None:
        """Send the last chunk, if any, and end the stream."""
        self.response_complete = True
        chunk = CHUNK % (len(data), data) if self.chunked and data else data
        self._send(chunk + LAST_CHUNK if self.chunked else chunk)

    @property
    def is_blocked(self) -> bool:
        """Whether writing is paused: the client reads too slowly."""
        return self._connection.drained is not None

    async def drain(self) -> None:
        """Wait until the client has read what was written."""
        if self._connection.drained is not None:
            await self._connection.drained

    def _head(self, status: int, headers: Mapping[str, str], content_type: str, length: str) -> bytes:
        self.keep_alive = self.keep_alive and self.body_complete and not self._connection.owner.draining
        connection = "" if self.keep_alive and self.chunked else CONNECTION[self.keep_alive]
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items() if value.isprintable()])
        start = format_head_start(int(time.time()), status, content_type)
        return f"{start}{length}{connection}{lines}\r\n".encode("utf-8", "surrogateescape")


@lru_cache(maxsize=64)
def format_head_start(now: int, status: int, content_type: str) -> str:
    """The start of a response head; the same for all responses of one second, status and type."""
    return f"HTTP/1.1 {status} {REASONS.get(status, '')}\r\n{format_date(now)}\r\ncontent-type: {content_type}\r\n"


def format_date(now: int) -> str:
    """The Date header, in English whatever the locale."""
    at = time.gmtime(now)
    day, month = DAYS[at.tm_wday], MONTHS[at.tm_mon - 1]
    return f"date: {day}, {at.tm_mday:02} {month} {at.tm_year} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT"


@lru_cache(maxsize=256)
def split_target(target: bytes) -> tuple[str, Mapping[str, str]]:
    """The path and the query of a request target. The first of duplicate query parameters counts."""
    text = target.decode("utf-8", "surrogateescape")
    if not text.startswith("/"):  # absolute form, as sent to a proxy
        text = "/" + text.partition("://")[2].partition("/")[2]
    path, _, query = text.partition("?")
    return unquote(path), dict(reversed(parse_qsl(query, keep_blank_values=True)))


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """Decompress a body. Raises: RequestError if that fails or the result is larger than ``limit`` bytes."""
    if encoding not in ENCODINGS:
        raise RequestError(f"The content encoding {encoding!a} is not supported; use {', '.join(ENCODINGS)}.")
    decompressor = Decompressor()
    try:
        plain = decompressor.feed(body, limit)
    except zlib.error:
        plain = b""
    if not plain or not decompressor.is_complete:
        raise RequestError("The body cannot be decompressed, or is too large.")
    return plain
