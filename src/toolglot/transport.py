"""The way to the upstreams and back: one pool of connections, bytes in, bytes out.

Nothing here knows what the bytes mean. Every way in which a network fails comes out as one of the ``UpstreamError``s.
Redirects are not followed: they are answers like any other.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from toolglot.config import Upstream
from toolglot.connection import Connection, Reply
from toolglot.errors import SilenceError, UnreachableError, UpstreamError

KEEP_ALIVE: Final = 4.0
"""Seconds to keep an idle connection: less than the common servers do, so that none is used that is just closing."""

PORTS: Final = {"http": 80, "https": 443}
AS_WRITTEN: Final = "/?%:@!$&'()*+,;=~"

Place = tuple[str, str, int]
"""Scheme, host and port: what a connection can be used for."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address taken apart; ``headers`` are sent unless the request has its own."""

    place: Place
    target: str
    headers: Mapping[str, str]


@lru_cache(maxsize=256)
def locate(url: str) -> Address:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        place = (parts.scheme, host, parts.port or PORTS[parts.scheme])
    except (ValueError, KeyError):
        raise UnreachableError("The upstream's address cannot be understood.") from None
    target = quote(parts.path or "/", AS_WRITTEN) + (f"?{quote(parts.query, AS_WRITTEN)}" if parts.query else "")
    return Address(place, target, _usual_headers(parts, host))


def _usual_headers(parts: SplitResult, host: str) -> dict[str, str]:
    shown = f"[{host}]" if ":" in host else host
    headers = {"host": f"{shown}:{parts.port}" if parts.port else shown, "accept": "*/*"}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    return headers


def compose(method: str, address: Address, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """A request as it is sent."""
    given = set(map(str.lower, headers))
    lines = [f"{method} {address.target} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in address.headers.items() if name not in given]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"content-length: {len(body)}")
    head = "\r\n".join(lines)
    if not len(lines) - 1 == head.count("\r") == head.count("\n"):
        raise UpstreamError("A header for the upstream has a line break in it.")
    return f"{head}\r\n\r\n".encode("utf-8", "surrogateescape") + (body or b"")


class Transport:
    """The connections to all upstreams."""

    def __init__(self) -> None:
        self._idle: dict[Place, list[Connection]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def send(
        self, method: str, url: str, upstream: Upstream, headers: Mapping[str, str], body: bytes | None = None
    ) -> Errand:
        """Ask; the reply is there as soon as its head has come. Left before the end, it ends its connection."""
        address = locate(url)
        request = compose(method, address, headers, body)
        return Errand(self, address.place, upstream, request, bodiless=method == "HEAD")

    async def ask(
        self, place: Place, upstream: Upstream, request: bytes, *, bodiless: bool
    ) -> tuple[Connection, Reply]:
        """Until the head has come. A kept connection may have been closed in this moment: then it is asked again."""
        kept = self._kept(place)
        while True:
            connection = kept or await self._connect(place, upstream)
            reply = connection.ask(request, upstream.read_timeout, bodiless=bodiless)
            try:
                await reply.begin()
                return connection, reply
            except UpstreamError as error:
                if kept is None or not reply.unheard or isinstance(error, SilenceError):
                    raise
                kept = None
            finally:
                if not reply.status:
                    connection.release()

    async def _connect(self, place: Place, upstream: Upstream) -> Connection:
        scheme, host, port = place
        loop = asyncio.get_running_loop()
        tls = self._tls if scheme == "https" else None
        try:
            async with asyncio.timeout(upstream.connect_timeout):
                return (await loop.create_connection(partial(Connection, loop), host, port, ssl=tls))[1]
        except TimeoutError:
            raise SilenceError("The upstream was silent for too long before it answered.") from None
        except ssl.SSLCertVerificationError as error:
            raise UnreachableError(f"The certificate of the upstream was refused: {error.verify_message}.") from None
        except ssl.SSLError as error:
            raise UnreachableError(f"TLS with the upstream failed: {error.reason}.") from None
        except (OSError, UnicodeError):
            raise UnreachableError("The upstream could not be reached.") from None

    # -- idle connections ----------------------------------------------------------------------------------------------

    def keep(self, place: Place, connection: Connection) -> None:
        self._idle.setdefault(place, []).append(connection)
        if self._sweeping is None:
            self._sweeping = connection.loop.call_later(KEEP_ALIVE, self._sweep)

    def _kept(self, place: Place) -> Connection | None:
        """The connection that was used last, if one is left."""
        idle = self._idle.get(place)
        while idle:
            connection = idle.pop()
            if _is_usable(connection):
                return connection
            connection.abort()
        return None

    def _sweep(self) -> None:
        self._sweeping = None
        known, self._idle = self._idle, {}
        for place, idle in known.items():
            for connection in idle:
                if _is_usable(connection):
                    self.keep(place, connection)
                else:
                    connection.abort()

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in (one for idle in self._idle.values() for one in idle):
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)


class Errand:
    """A request, sent and answered inside of ``async with``."""

    __slots__ = ("_bodiless", "_connection", "_place", "_request", "_transport", "_upstream")

    _connection: Connection

    def __init__(
        self, transport: Transport, place: Place, upstream: Upstream, request: bytes, *, bodiless: bool
    ) -> None:
        self._transport = transport
        self._place = place
        self._upstream = upstream
        self._request = request
        self._bodiless = bodiless

    async def __aenter__(self) -> Reply:
        request, self._request = self._request, b""  # it may be large, and the answer long
        self._connection, reply = await self._transport.ask(
            self._place, self._upstream, request, bodiless=self._bodiless
        )
        return reply

    async def __aexit__(self, *_: object) -> None:
        if self._connection.release():
            self._transport.keep(self._place, self._connection)


def _is_usable(connection: Connection) -> bool:
    return not connection.closing and connection.loop.time() - connection.idle_since < KEEP_ALIVE
