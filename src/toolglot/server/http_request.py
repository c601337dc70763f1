"""What a client asks over HTTP, and the way its answer takes."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from typing import Final, Protocol
from urllib.parse import parse_qsl, unquote

from toolglot.core import offload
from toolglot.core.errors import RequestError, RequestSizeError, ToolglotError
from toolglot.server.compression import PACKED, Decompressor

JSON_TYPE: Final = "application/json"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
PIECE: Final = b"%x\r\n%b\r\n"
END: Final = b"0\r\n\r\n"
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
CONNECTION: Final = {True: "connection: keep-alive\r\n", False: "connection: close\r\n"}
"""What becomes of the connection, where that has to be said."""
REASONS: Final = {status.value: status.phrase for status in HTTPStatus}


@dataclass(frozen=True, slots=True)
class Response:
    """An answer that is given whole."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON_TYPE


class ClientLine(Protocol):
    """The connection that a request came over. ``blocked`` is what ends when a slow client has caught up; ``closing``:
    whether the next answer is the last."""

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    blocked: asyncio.Future[None] | None
    body_limit: int

    @property
    def closing(self) -> bool: ...


class Request:
    """What a client asks. The names of its headers are written small."""

    __slots__ = (
        *(
            "_body",
            "_lead",
            "_left",
            "_line",
            "_spoiled",
            "_waiter",
            "answered",
            "begun",
            "framed",
            "headers",
            "id",
            "interruption",
            "key",
        ),
        *("lasting", "loop", "match", "method", "path", "query", "whole"),
    )

    def __init__(self, line: ClientLine, method: str, target: bytes, headers: Mapping[str, str], version: str) -> None:
        self.method = method
        self.path, self.query = take_apart(target)
        self.headers = headers
        self.match: Mapping[str, str] = {}
        self.id = self.key = ""
        self.framed = version == "1.1"
        self.lasting = False
        self.whole = False
        self.begun = False
        self.answered = False
        self.interruption: ToolglotError | None = None
        """Why the answer is cancelled although the client is still there."""
        self.loop = line.loop
        self._line = line
        self._lead = b""
        self._left = line.body_limit
        self._body: bytes | BytesIO = b""
        self._spoiled: ToolglotError | None = None
        self._waiter: asyncio.Future[None] | None = None

    # -- what is asked -------------------------------------------------------------------------------------------------

    async def read(self) -> bytes:
        """The body. Raises if it is too large, or packed in a way that is not understood."""
        limit = self._line.body_limit
        if not self.whole:
            await self._wait()
        if self._spoiled is not None:
            raise self._spoiled
        if self._left < 0:
            raise RequestSizeError(f"The body is larger than {limit} bytes.")
        body, self._body = self._body if isinstance(self._body, bytes) else self._body.getvalue(), b""
        packed = self.headers["content-encoding"].lower() if "content-encoding" in self.headers else ""
        if packed in ("identity", ""):
            return body
        return await offload.run(len(body) >= offload.LARGE_REQUEST, unpack, body, packed, limit)

    async def _wait(self) -> None:
        """Until all of the body has come, or it is clear that it will be of no use."""
        length = self.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._line.body_limit:
            self._left = -1
        if self._left >= 0 and self._spoiled is None:
            if self.headers.get("expect", "").lower() == "100-continue":
                self._line.transport.write(CONTINUE)
            self._waiter = self.loop.create_future()
            await self._waiter

    def take(self, piece: bytes) -> None:
        """A piece of the body has come."""
        self._left -= len(piece)
        if self._left < 0:
            self._body = b""
            self._wake()
        elif not self._body:
            self._body = piece
        else:
            if isinstance(self._body, bytes):  # most bodies are one piece
                first, self._body = self._body, BytesIO()
                self._body.write(first)
            self._body.write(piece)

    def spoil(self, error: ToolglotError) -> None:
        """What comes is no body; who waits for it is told so."""
        self._spoiled = error
        self._wake()

    def complete(self) -> None:
        self.whole = True
        if self._waiter is not None:
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- what is answered ----------------------------------------------------------------------------------------------

    def send(self, response: Response) -> None:
        """Answer with all of it at once."""
        self.begun = self.answered = True
        if self._line.transport.is_closing():
            return
        length = f"content-length: {len(response.body)}\r\n"
        head = self._head(response.status, response.headers, response.content_type, length)
        self._line.transport.write(head if self.method == "HEAD" else head + response.body)

    def begin(self, headers: Mapping[str, str], content_type: str) -> None:
        """Answer with what is going to be written. Its head leaves together with the first of it if that is here at
        once, for every write costs the client a look, and alone if it is not."""
        self.begun = True
        self.lasting = self.lasting and self.framed
        length = "transfer-encoding: chunked\r\n" if self.framed else ""
        self._lead = self._head(200, headers, content_type, length)
        self.loop.call_soon(self._send_lead)

    def _send_lead(self) -> None:
        if self._lead:
            self._send(b"")

    def _send(self, data: bytes) -> None:
        lead, self._lead = self._lead, b""
        if not self._line.transport.is_closing():
            self._line.transport.write(lead + data)

    def write(self, data: bytes) -> bool:
        """Send a piece; whether that is enough until ``drain`` is over."""
        line = self._line
        piece = PIECE % (len(data), data) if self.framed else data
        if self._lead:
            self._send(piece)
        elif not line.transport.is_closing():
            line.transport.write(piece)
        return line.blocked is not None

    def end(self, data: bytes = b"") -> None:
        """Send the last piece, if there is one: that was all."""
        self.answered = True
        piece = PIECE % (len(data), data) if self.framed and data else data
        self._send(piece + END if self.framed else piece)

    @property
    def blocked(self) -> bool:
        return self._line.blocked is not None

    async def drain(self) -> None:
        """Until the client has taken what was written."""
        if self._line.blocked is not None:
            await self._line.blocked

    def _head(self, status: int, headers: Mapping[str, str], content_type: str, length: str) -> bytes:
        self.lasting = self.lasting and self.whole and not self._line.closing
        connection = "" if self.lasting and self.framed else CONNECTION[self.lasting]
        told = "".join([f"{name}: {value}\r\n" for name, value in headers.items() if value.isprintable()])
        opening = open_head(int(time.time()), status, content_type)
        return f"{opening}{length}{connection}{told}\r\n".encode("utf-8", "surrogateescape")


@lru_cache(maxsize=64)
def open_head(now: int, status: int, content_type: str) -> str:
    """How the heads of all answers begin that are given in the same second."""
    return f"HTTP/1.1 {status} {REASONS.get(status, '')}\r\n{tell_date(now)}\r\ncontent-type: {content_type}\r\n"


def tell_date(now: int) -> str:
    at = time.gmtime(now)
    day, month = DAYS[at.tm_wday], MONTHS[at.tm_mon - 1]
    return f"date: {day}, {at.tm_mday:02} {month} {at.tm_year} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT"


@lru_cache(maxsize=256)
def take_apart(target: bytes) -> tuple[str, Mapping[str, str]]:
    """The path and the query of what was asked for. Of a name that is given twice the first counts."""
    told = target.decode("utf-8", "surrogateescape")
    if not told.startswith("/"):  # as a proxy is asked
        told = "/" + told.partition("://")[2].partition("/")[2]
    path, _, query = told.partition("?")
    return unquote(path), dict(reversed(parse_qsl(query, keep_blank_values=True)))


def unpack(body: bytes, packed: str, limit: int) -> bytes:
    if packed not in PACKED:
        raise RequestError(f"A body that is packed as {packed!a} cannot be read; {', '.join(PACKED)} can.")
    unpacking = Decompressor()
    try:
        told = unpacking.feed(body, limit)
    except zlib.error:
        told = b""
    if not told or not unpacking.over:
        raise RequestError("The body cannot be unpacked, or is too large.")
    return told
