"""The way to the upstreams and back: one pool of connections, bytes in, bytes out.

Nothing here knows what the bytes mean. Every way in which a network fails comes out as one of the ``UpstreamError``s.

Strategy. An answer can be read piece by piece, or *poured*: what one read from the network brought is handed on by a
callback. No task is woken for it, which was most of what an event cost. aiohttp makes the reader of a body itself and
has no place for a callback, so its reader is turned into a ``_Tap`` when pouring begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import aiohttp
from aiohttp.client_proto import ResponseHandler

from toolglot.config import Upstream
from toolglot.errors import SilenceError, UnreachableError, UpstreamError

READ_AHEAD = 1 << 16
"""How much of an answer may wait here for a slow client before the upstream is held up."""

KEEP_ALIVE = 4.0
"""Seconds to keep an idle connection: less than the common servers do, so that none is used that is just closing."""

PARTING = 0.5
"""Seconds to wait for the end of an answer that has said that it is over."""

STREAM_TYPE = "text/event-stream"
EVENT_STARTS = (b"data:", b"event:", b"id:", b":")

Take = Callable[[bytes], bool]
"""Takes a piece; whether it is enough for now."""

Drain = Callable[[], Awaitable[None]]
"""Waits until more can be taken."""


class _Pouring:
    """A body on its way through: who takes the pieces, and the pause when that is too slow."""

    __slots__ = ("_call_soon", "_content", "_drain", "_pause", "_pieces", "_protocol", "_take")

    def __init__(self, content: aiohttp.StreamReader, protocol: ResponseHandler, take: Take, drain: Drain) -> None:
        self._content = content
        self._protocol = protocol
        self._take = take
        self._drain = drain
        self._pieces: list[bytes] = []
        self._pause: asyncio.Task[None] | None = None
        self._call_soon = asyncio.get_running_loop().call_soon

    def add(self, piece: bytes) -> None:
        """A piece has come. Others of the same read follow at once, and are handed on together with it."""
        if not self._pieces:
            self._call_soon(self.flush)
        self._pieces.append(piece)

    def flush(self) -> None:
        pieces = self._pieces
        if not pieces:
            return
        piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        try:
            if self._take(piece) and self._pause is None:
                self._protocol.pause_reading()
                self._pause = asyncio.get_running_loop().create_task(self._wait())
        except Exception as error:
            self._content.set_exception(error)

    async def _wait(self) -> None:
        try:
            await self._drain()
        except OSError as error:
            self._content.set_exception(error)
            return
        self._pause = None
        self._protocol.resume_reading()

    def stop(self) -> None:
        self.flush()
        if self._pause is not None:
            self._pause.cancel()


_POURED: dict[aiohttp.StreamReader, _Pouring] = {}


class _Tap(aiohttp.StreamReader):
    """A reader that keeps nothing."""

    __slots__ = ()

    def feed_data(self, data: bytes, size: int = 0) -> bool:
        _POURED[self].add(data)
        return False

    def begin_http_chunk_receiving(self) -> None:
        pass

    def end_http_chunk_receiving(self) -> None:
        pass


class Reply:
    """An answer of an upstream, as it comes."""

    __slots__ = ("_ahead", "_content", "_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._content = response.content
        self._ahead = b""
        self.status = response.status
        self.headers = response.headers

    async def is_streamed(self, stream_type: str = STREAM_TYPE) -> bool:
        """Whether it comes as events. A server that does not tell gives itself away by how it begins."""
        told = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if told in (STREAM_TYPE, stream_type) or told.endswith("json"):
            return told in (STREAM_TYPE, stream_type)
        self._ahead = self._ahead or await self.piece()
        return self._ahead.lstrip().startswith(EVENT_STARTS)

    async def piece(self) -> bytes:
        """What has come since the last time; empty at the end."""
        if self._ahead:
            ahead, self._ahead = self._ahead, b""
            return ahead
        try:
            return await self._content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _explain(error, "while it was answering") from None

    async def pour(self, take: Take, drain: Drain) -> None:
        """Hand on every piece in the moment it comes, until the end."""
        content, connection = self._content, self._response.connection
        if type(content) is not aiohttp.StreamReader or connection is None or connection.protocol is None:
            while piece := await self.piece():
                if take(piece):
                    await drain()
            return
        try:
            ready, self._ahead = self._ahead + content.read_nowait(), b""
            if ready:
                take(ready)
            pouring = _POURED[content] = _Pouring(content, connection.protocol, take, drain)
            content.__class__ = _Tap
            if not content.exception():
                await content.wait_eof()
            pouring.flush()
            if error := content.exception():
                raise error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _explain(error, "while it was answering") from None
        finally:
            if content in _POURED:
                _POURED.pop(content).stop()
                content.__class__ = aiohttp.StreamReader

    async def part(self) -> None:
        """All has been said: wait a moment for the end, so that the connection can be used again."""
        if not self._content.at_eof():
            with suppress(aiohttp.ClientError, TimeoutError, OSError):
                async with asyncio.timeout(PARTING):
                    await self._content.read()

    async def whole(self) -> bytes:
        try:
            return self._ahead + await self._content.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _explain(error, "while it was answering") from None


class Transport:
    """The connections to all upstreams."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE),
                read_bufsize=READ_AHEAD,
                auto_decompress=True,
                skip_auto_headers=("User-Agent",),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def send(
        self, method: str, url: str, upstream: Upstream, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[Reply]:
        """Ask; the reply is there as soon as its head has come."""
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=upstream.connect_timeout, sock_read=upstream.read_timeout
        )
        try:
            response = await self.session.request(
                method, url, data=body, headers=headers, timeout=timeout, allow_redirects=False
            )
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise _explain(error, "before it answered") from None
        try:
            yield Reply(response)
        finally:
            # a reply that was read to its end gives its connection back; any other ends with it
            response.close() if not response.content.at_eof() else response.release()


def _explain(error: BaseException, when: str) -> UpstreamError:
    if isinstance(error, TimeoutError):
        return SilenceError(f"The upstream was silent for too long {when}.")
    if isinstance(error, aiohttp.ClientConnectorError):
        return UnreachableError("The upstream could not be reached.")
    return UpstreamError(f"The connection to the upstream broke {when}.")
