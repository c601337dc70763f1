"""The way to the upstreams and back: one pool of connections, bytes in, bytes out.

Nothing here knows what the bytes mean. Every way in which a network fails comes out as one of the ``UpstreamError``s.
Redirects are not followed: they are answers like any other.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from socket import gaierror
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from toolglot.config import Upstream
from toolglot.core.errors import UnreachableError, UpstreamError, UpstreamTimeoutError
from toolglot.server.upstream.connection import UpstreamConnection, UpstreamResponse

KEEP_ALIVE: Final = 4.0
"""Seconds to keep an idle connection: less than the common servers do, so that none is used that is just closing."""

LARGE_BODY: Final = 1 << 16

PORTS: Final = {"http": 80, "https": 443}
AS_WRITTEN: Final = "/?%:@!$&'()*+,;=~"

Origin = tuple[str, str, int]
"""Scheme, host and port: what a connection can be used for."""


@dataclass(frozen=True, slots=True)
class UpstreamAddress:
    """An address taken apart; ``headers`` are sent unless the request has its own."""

    place: Origin
    target: str
    headers: Mapping[str, str]


def locate(url: str) -> UpstreamAddress:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        place = (parts.scheme, host, parts.port or PORTS[parts.scheme])
    except (ValueError, KeyError):
        raise UnreachableError("The upstream's address cannot be understood.") from None
    target = quote(parts.path or "/", AS_WRITTEN) + (f"?{quote(parts.query, AS_WRITTEN)}" if parts.query else "")
    return UpstreamAddress(place, target, _usual_headers(parts, host))


def _usual_headers(parts: SplitResult, host: str) -> dict[str, str]:
    shown = f"[{host}]" if ":" in host else host
    headers = {"host": f"{shown}:{parts.port}" if parts.port else shown, "accept": "*/*"}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    return headers


@lru_cache(maxsize=64)
def open_head(method: str, url: str, given: tuple[str, ...]) -> tuple[Origin, str]:
    """Who is asked, and how every request to him begins that brings headers of these names."""
    address = locate(url)
    known = set(map(str.lower, given))
    usual = [f"{name}: {value}\r\n" for name, value in address.headers.items() if name not in known]
    return address.place, f"{method} {address.target} HTTP/1.1\r\n{''.join(usual)}"


def compose(opening: str, headers: Mapping[str, str], body: bytes | None) -> tuple[bytes, ...]:
    """A request as it is sent. A large body is not copied behind its head."""
    told = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if not len(headers) == told.count("\r") == told.count("\n"):
        raise UpstreamError("A header for the upstream has a line break in it.")
    length = "" if body is None else f"content-length: {len(body)}\r\n"
    head = f"{opening}{told}{length}\r\n".encode("utf-8", "surrogateescape")
    return (head, body) if body and len(body) >= LARGE_BODY else (head + (body or b""),)


class ConnectionPool:
    """The connections to all upstreams."""

    def __init__(self) -> None:
        self._idle: dict[Origin, list[UpstreamConnection]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def send(
        self, method: str, url: str, upstream: Upstream, headers: Mapping[str, str], body: bytes | None = None
    ) -> PendingRequest:
        """Ask; the reply is there as soon as its head has come. Left before the end, it ends its connection."""
        place, opening = open_head(method, url, tuple(headers))
        return PendingRequest(self, place, upstream, compose(opening, headers, body), bodiless=method == "HEAD")

    async def ask(self, errand: PendingRequest) -> UpstreamResponse:
        """Until the head has come. A kept connection may have been closed in this moment: then it is asked again."""
        request, errand.request = errand.request, ()  # it may be large, and the answer long
        upstream, kept = errand.upstream, self._kept(errand.place)
        while True:
            connection = errand.connection = kept or await self._connect(errand.place, upstream)
            reply = connection.ask(request, upstream.read_timeout, bodiless=errand.bodiless)
            try:
                await reply.begin()
                return reply
            except UpstreamError as error:
                connection.release()
                if kept is None or not reply.unheard or isinstance(error, UpstreamTimeoutError):
                    raise
                kept = None
            except asyncio.CancelledError:  # perhaps in the moment in which the head came; nobody else will leave
                errand.leave()
                raise

    async def _connect(self, place: Origin, upstream: Upstream) -> UpstreamConnection:
        scheme, host, port = place
        loop = asyncio.get_running_loop()
        tls = self._tls if scheme == "https" else None
        who = f"Upstream {upstream.name!r} at {scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        try:
            async with asyncio.timeout(upstream.connect_timeout):
                return (await loop.create_connection(partial(UpstreamConnection, loop), host, port, ssl=tls))[1]
        except TimeoutError:
            problem = f"did not accept a connection within {upstream.connect_timeout:g} s"
            raise UpstreamTimeoutError(f"{who} {problem}. Check that it is running.") from None
        except ssl.SSLCertVerificationError as error:
            raise UnreachableError(f"The certificate of {who} was refused: {error.verify_message}.") from None
        except ssl.SSLError as error:
            raise UnreachableError(f"TLS with {who} failed: {error.reason}. Is it an http address?") from None
        except (OSError, UnicodeError) as error:
            problem = _describe(error)
            raise UnreachableError(
                f"{who} cannot be reached ({problem}). Check that the server is running and its base_url is right."
            ) from None

    # -- idle connections ----------------------------------------------------------------------------------------------

    def keep(self, place: Origin, connection: UpstreamConnection) -> None:
        self._idle.setdefault(place, []).append(connection)
        if self._sweeping is None:
            self._sweeping = connection.loop.call_later(KEEP_ALIVE, self._sweep)

    def _kept(self, place: Origin) -> UpstreamConnection | None:
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


def _describe(error: OSError | UnicodeError) -> str:
    """Why no connection could be made, in the system's words; event loops put words of their own into the error."""
    if isinstance(error, gaierror) or not isinstance(error, OSError):
        return "its name cannot be resolved"
    return os.strerror(error.errno) if error.errno else "connection failed"


class PendingRequest:
    """A request, sent and answered inside of ``async with``."""

    __slots__ = ("bodiless", "connection", "place", "request", "transport", "upstream")

    connection: UpstreamConnection

    def __init__(
        self,
        transport: ConnectionPool,
        place: Origin,
        upstream: Upstream,
        request: tuple[bytes, ...],
        *,
        bodiless: bool,
    ) -> None:
        self.transport = transport
        self.place = place
        self.upstream = upstream
        self.request = request
        self.bodiless = bodiless

    def __aenter__(self) -> Awaitable[UpstreamResponse]:
        return self.transport.ask(self)

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        if self.connection.release():
            self.transport.keep(self.place, self.connection)


def _is_usable(connection: UpstreamConnection) -> bool:
    return not connection.closing and connection.loop.time() - connection.idle_since < KEEP_ALIVE
