"""Connection pool for all upstreams: sends HTTP requests and reuses idle connections.

The pool does not interpret bodies. Every network failure is raised as an ``UpstreamError``. Redirects are not
followed: they are responses like any other.
"""

from __future__ import annotations

import asyncio
import encodings.idna  # noqa: F401 - else the first request would import it
import os
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Mapping
from functools import lru_cache, partial
from socket import gaierror
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from msgspec import Struct

from toolglot.config import Upstream
from toolglot.config.settings import LimitSettings
from toolglot.core import offload
from toolglot.core.errors import UnreachableError, UpstreamError, UpstreamTimeoutError
from toolglot.server.upstream.connection import UpstreamConnection, UpstreamResponse

KEEP_ALIVE: Final = 4.0
"""Seconds to keep an idle connection: shorter than in common servers, so that none is reused while it is closing."""

LARGE_BODY: Final = 1 << 16
DEFAULT_LIMITS: Final = LimitSettings()

PORTS: Final = {"http": 80, "https": 443}
ADDRESS: Final = "correct its base_url: it begins with http:// or https://, and names a host."
HEADER: Final = "let the operator correct the headers of the upstream; the client's key may have the line break, too."
TRUST: Final = "use the name of its certificate in base_url, or set SSL_CERT_FILE to the authority that signed it."
TLS: Final = "see whether the server uses plain http: then base_url begins with http://."
UNQUOTED: Final = "/?%:@!$&'()*+,;=~"

Origin = tuple[str, str, int]
"""Scheme, host and port: connections to the same origin are interchangeable."""


class UpstreamAddress(Struct, frozen=True):
    """A parsed URL; ``headers`` are defaults that a request may override."""

    origin: Origin
    target: str
    headers: Mapping[str, str]


def parse_url(url: str) -> UpstreamAddress:
    """Parse an upstream's URL. Raises: UnreachableError if it is malformed."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        origin = (parts.scheme, host, parts.port or PORTS[parts.scheme])
    except (ValueError, KeyError):
        raise UnreachableError("The upstream's address cannot be understood.", step=ADDRESS) from None
    target = quote(parts.path or "/", UNQUOTED) + (f"?{quote(parts.query, UNQUOTED)}" if parts.query else "")
    return UpstreamAddress(origin, target, _default_headers(parts, host))


def _default_headers(parts: SplitResult, host: str) -> dict[str, str]:
    shown = f"[{host}]" if ":" in host else host
    headers = {"host": f"{shown}:{parts.port}" if parts.port else shown, "accept": "*/*"}
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    return headers


@lru_cache(maxsize=64)
def format_head_start(method: str, url: str, names: tuple[str, ...]) -> tuple[Origin, str]:
    """The origin of a URL, and the start of the head of requests to it that set headers of these names."""
    address = parse_url(url)
    overridden = set(map(str.lower, names))
    defaults = [f"{name}: {value}\r\n" for name, value in address.headers.items() if name not in overridden]
    return address.origin, f"{method} {address.target} HTTP/1.1\r\n{''.join(defaults)}"


def encode_request(start: str, headers: Mapping[str, str], body: bytes | None) -> tuple[bytes, ...]:
    """The bytes of a request. A large body stays a buffer of its own, so that it is not copied.

    Raises: UpstreamError if a header contains a line break.
    """
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if not len(headers) == lines.count("\r") == lines.count("\n"):
        raise UpstreamError("A header for the upstream has a line break in it.", step=HEADER)
    length = "" if body is None else f"content-length: {len(body)}\r\n"
    head = f"{start}{lines}{length}\r\n".encode("utf-8", "surrogateescape")
    return (head, body) if body and len(body) >= LARGE_BODY else (head + (body or b""),)


class ConnectionPool:
    """The connections to all upstreams; ``limits`` are those of what they send."""

    def __init__(self, limits: LimitSettings = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._idle: dict[Origin, list[UpstreamConnection]] = {}
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._tls: ssl.SSLContext | None = None

    async def _make_tls(self) -> ssl.SSLContext:
        """The TLS settings of all connections. The certificates of the system are read once, which takes a while."""
        if self._tls is None:
            self._tls = await offload.run(True, ssl.create_default_context)
        return self._tls

    def send(
        self, method: str, url: str, upstream: Upstream, headers: Mapping[str, str], body: bytes | None = None
    ) -> PendingRequest:
        """Send a request with ``async with``, which yields the response as soon as its head has been received.

        Leaving the block before the end of the response closes the connection.
        Raises: UpstreamError if a header is invalid or, inside ``async with``, the network fails.
        """
        origin, start = format_head_start(method, url, tuple(headers))
        return PendingRequest(self, origin, upstream, encode_request(start, headers, body), bodiless=method == "HEAD")

    async def open(self, pending: PendingRequest) -> UpstreamResponse:
        """Send a request and wait for the response head. Retry on a new connection if a reused one is closed."""
        request, pending.request = pending.request, ()  # free a large body before a long response
        upstream, reused = pending.upstream, self._reuse(pending.origin)
        while True:
            connection = pending.connection = reused or await self._connect(pending.origin, upstream)
            response = connection.send(request, upstream.read_timeout, bodiless=pending.bodiless)
            try:
                await response.wait_for_head()
                return response
            except UpstreamError as error:
                connection.release()
                if reused is None or not response.nothing_received or isinstance(error, UpstreamTimeoutError):
                    raise
                reused = None
            except asyncio.CancelledError:  # __aexit__ will not run, even if the head has just been received
                pending.release()
                raise

    async def _connect(self, origin: Origin, upstream: Upstream) -> UpstreamConnection:
        scheme, host, port = origin
        loop = asyncio.get_running_loop()
        make = partial(UpstreamConnection, loop, self.limits)
        tls = await self._make_tls() if scheme == "https" else None
        name = f"Upstream {upstream.name!r} at {upstream.address}"
        try:
            async with asyncio.timeout(upstream.connect_timeout):
                return (await loop.create_connection(make, host, port, ssl=tls))[1]
        except TimeoutError:
            problem = f"did not accept a connection within {upstream.connect_timeout:g} s"
            raise UpstreamTimeoutError(f"{name} {problem}.") from None
        except ssl.SSLCertVerificationError as error:
            raise UnreachableError(
                f"The certificate of u{name[1:]} was refused: {error.verify_message}.", step=TRUST
            ) from None
        except ssl.SSLError as error:
            raise UnreachableError(f"TLS with u{name[1:]} failed: {error.reason}.", step=TLS) from None
        except (OSError, UnicodeError) as error:
            problem = _describe(error)
            raise UnreachableError(f"{name} cannot be reached ({problem}).") from None

    # -- idle connections ----------------------------------------------------------------------------------------------

    def add_idle(self, origin: Origin, connection: UpstreamConnection) -> None:
        self._idle.setdefault(origin, []).append(connection)
        if self._sweep_timer is None:
            self._sweep_timer = connection.loop.call_later(KEEP_ALIVE, self._sweep)

    def _reuse(self, origin: Origin) -> UpstreamConnection | None:
        """The most recently used idle connection, if any."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if _is_usable(connection):
                return connection
            connection.abort()
        return None

    def _sweep(self) -> None:
        """Close connections that have been idle for too long."""
        self._sweep_timer = None
        known, self._idle = self._idle, {}
        for origin, idle in known.items():
            for connection in idle:
                if _is_usable(connection):
                    self.add_idle(origin, connection)
                else:
                    connection.abort()

    async def close(self) -> None:
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in (one for idle in self._idle.values() for one in idle):
            connection.abort()
        self._idle.clear()
        await asyncio.sleep(0)


def _describe(error: OSError | UnicodeError) -> str:
    """Why no connection could be made: the system's message, because event loops add text of their own to the error."""
    if isinstance(error, gaierror) or not isinstance(error, OSError):
        return "its name cannot be resolved"
    return os.strerror(error.errno) if error.errno else "connection failed"


class PendingRequest:
    """A request; ``async with`` sends it and yields the response."""

    __slots__ = ("bodiless", "connection", "origin", "pool", "request", "upstream")

    connection: UpstreamConnection

    def __init__(
        self,
        pool: ConnectionPool,
        origin: Origin,
        upstream: Upstream,
        request: tuple[bytes, ...],
        *,
        bodiless: bool,
    ) -> None:
        self.pool = pool
        self.origin = origin
        self.upstream = upstream
        self.request = request
        self.bodiless = bodiless

    def __aenter__(self) -> Awaitable[UpstreamResponse]:
        return self.pool.open(self)

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Return the connection to the pool if it can be reused."""
        if self.connection.release():
            self.pool.add_idle(self.origin, self.connection)


def _is_usable(connection: UpstreamConnection) -> bool:
    return not connection.is_closing and connection.loop.time() - connection.idle_since < KEEP_ALIVE
