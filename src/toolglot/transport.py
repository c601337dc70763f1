"""The way to the upstreams and back: one pool of connections, bytes in, bytes out.

Nothing here knows what the bytes mean. Every way in which a network fails comes out as one of the ``UpstreamError``s.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp

from toolglot.config import Upstream
from toolglot.errors import SilenceError, UnreachableError, UpstreamError

READ_AHEAD = 1 << 16
"""How much of an answer may wait here for a slow client before the upstream is held up."""

KEEP_ALIVE = 4.0
"""Seconds to keep an idle connection: less than the common servers do, so that none is used that is just closing."""

STREAM_TYPE = "text/event-stream"
EVENT_STARTS = (b"data:", b"event:", b"id:", b":")


class Reply:
    """An answer of an upstream, as it comes."""

    __slots__ = ("_ahead", "_content", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
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
