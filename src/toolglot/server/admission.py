"""Admission control: who may ask the gateway, and how much at once.

Clients with a key may ask; without keys, this machine only. There are limits on concurrent requests, on queued requests
and on the request rate of each key.

Strategy. A request that finds a free slot costs two comparisons. Any other waits for a future in a FIFO queue; a
request that finishes hands its slot to the first in the queue. A client that disconnects while it waits cancels its
future, and with it its position in the queue. The limits hold per process.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import lru_cache
from math import ceil
from typing import Final
from urllib.parse import urlsplit

from toolglot.config import ClientKeys, LimitSettings, Settings, is_loopback, owner_of
from toolglot.config.keys import NO_OWNER
from toolglot.core.errors import (
    AuthenticationError,
    ForbiddenError,
    OriginError,
    OverloadError,
    RateLimitError,
    ToolglotError,
)
from toolglot.gateway.key_guesses import (
    ALL_CLIENT_GUESSES,
    ALL_LOGIN_GUESSES,
    CLIENT_GUESSES,
    LOGIN_GUESSES,
    GuessLimit,
)
from toolglot.gateway.mounting import HttpRequest
from toolglot.gateway.telemetry.metrics import Metrics

MINUTE: Final = 60.0
WRONG_KEY: Final = "The API key that was presented is not a client key of this gateway."
QUEUE_IS_FULL: Final = "Too many requests are waiting for the gateway."
NO_KEY: Final = "An API key of this gateway is needed, and none was presented."
SAFE_METHODS: Final = ("GET", "HEAD")
CONSOLE_PREFIX: Final = "/console/"
"""What the console serves itself decides itself what changes something."""
RETRY_SECONDS: Final = 5
"""The Retry-After of a request that was refused for lack of a slot."""
RATE_LIMIT: Final = "rate_limit"
QUEUE_FULL: Final = "queue_full"
QUEUE_TIMEOUT: Final = "queue_timeout"


class Access:
    """Checks requests, and names the owner of what they store. ``clock`` never goes back."""

    def __init__(self, keys: ClientKeys, clock: Callable[[], float], settings: Settings) -> None:
        workers = settings.server.workers
        self.keys = keys
        self.login_guesses = GuessLimit(clock, LOGIN_GUESSES, ALL_LOGIN_GUESSES, workers=workers)
        self._guesses = GuessLimit(clock, CLIENT_GUESSES, ALL_CLIENT_GUESSES, workers=workers)
        self._read_only = settings.console.read_only

    def check(self, request: HttpRequest) -> bytes:
        """The owner of what a request stores. Raises: AuthenticationError if the gateway has client keys and the
        request presents none of them, RateLimitError if its address has presented too many others, OriginError if the
        gateway has none and a web page may have sent the request, ForbiddenError if that is the console, which is
        read-only."""
        if not self.keys.required:
            given = request.headers.get
            check_origin(given("host", ""), given("origin", ""), given("sec-fetch-site", ""))
            if self._read_only and request.method not in SAFE_METHODS and not request.path.startswith(CONSOLE_PREFIX):
                check_own_page(given("host", ""), given("origin", ""), given("sec-fetch-site", ""))
            return NO_OWNER
        if not self._guesses.admit(request.peer, request.key, self.keys.admit):
            raise AuthenticationError(WRONG_KEY if request.key else NO_KEY)
        return owner_of(request.key)

    def check_origin(self, request: HttpRequest) -> None:
        """Raise OriginError if the gateway has no client keys and a web page may have sent the request."""
        if not self.keys.required:
            self.check(request)

    def visible_owner(self, request: HttpRequest) -> bytes | None:
        """The owner whose rows a request with access may see; None for all."""
        return owner_of(request.key) if self.keys.required else None


def make_access(settings: Settings, now: Callable[[], float], clock: Callable[[], float]) -> Access:
    server, admin = settings.server, settings.console.keys
    return Access(ClientKeys(server.keys, now, required=server.require_key, admin=admin), clock, settings)


@lru_cache(maxsize=256)
def check_origin(host: str, origin: str, site: str) -> None:
    """Refuse requests that a web page may have sent to a gateway without client keys.

    Parameters: ``host``, ``origin`` and ``site`` are the headers Host, Origin and Sec-Fetch-Site; each may be empty.
    For a page of another site the browser sends its ``origin`` or, for images, scripts, frames and links, a ``site`` of
    "cross-site"; for a name that resolves to this machine (DNS rebinding), that name as ``host``.
    Raises: OriginError if host or origin is not a loopback address, or a request without origin is cross-site.
    """
    foreign = not origin and site == "cross-site"
    for address in (f"//{host}" if host else "", origin):
        try:
            named = urlsplit(address).hostname or ""
        except ValueError:
            named = ""
        foreign |= bool(address) and not is_loopback(named)
    if foreign:
        raise OriginError(
            "This gateway has no client keys, so it serves only requests to a loopback address, and none from web pages"
            " of other sites."
        )


def check_own_page(host: str, origin: str, site: str) -> None:
    """Raise ForbiddenError if a page of this gateway has sent the request; the console is the only one."""
    if site == "same-origin" or (origin and urlsplit(origin).netloc.lower() == host.lower()):
        raise ForbiddenError("The console is read-only (console.read_only).")


class Admission:
    """Decides when a request is answered. ``keyed``: clients present gateway keys, and each has its own rate."""

    def __init__(self, limits: LimitSettings, metrics: Metrics, clock: Callable[[], float], *, keyed: bool) -> None:
        self._limits = limits
        self._clock = clock
        self._keyed = keyed
        self._open, self._queued = metrics.open, metrics.queued
        self._refused = {reason: metrics.refused[(reason,)] for reason in (RATE_LIMIT, QUEUE_FULL, QUEUE_TIMEOUT)}
        self._queue: OrderedDict[asyncio.Future[bool], None] = OrderedDict()
        self._times: dict[int, deque[float]] = {}  # by the hash of a key: keys themselves are not stored

    def check_rate(self, key: str) -> None:
        """Count a request of a key. Raises: RateLimitError if the key has exceeded its rate within the last minute."""
        limit = self._limits.requests_per_minute
        if not limit:
            return
        now = self._clock()
        times = self._times.setdefault(hash(key) if self._keyed else 0, deque(maxlen=limit))
        if len(times) == limit and (wait := times[0] + MINUTE - now) > 0:
            raise self._refuse(
                RATE_LIMIT, RateLimitError(f"More than {limit} requests in a minute were sent.", ceil(wait))
            )
        times.append(now)

    def try_enter(self) -> bool:
        """Take a slot if one is free."""
        if self._open.total >= self._limits.open_requests:
            return False
        self._open.total += 1
        return True

    async def enter(self) -> None:
        """Take a slot, or wait for one. Raises: OverloadError if the queue is full, or the wait times out."""
        if self.try_enter():
            return
        limits, loop = self._limits, asyncio.get_running_loop()
        if len(self._queue) >= limits.queued_requests:
            raise self._refuse(QUEUE_FULL, OverloadError(QUEUE_IS_FULL, RETRY_SECONDS))
        slot: asyncio.Future[bool] = loop.create_future()
        self._queue[slot] = None
        self._queued.total += 1
        timer = loop.call_later(limits.queue_seconds, _resolve, slot, False)
        try:
            entered = await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled() and slot.result():  # granted just as the client disconnected
                self.leave()
            raise
        finally:
            timer.cancel()
            self._queue.pop(slot, None)
            self._queued.total -= 1
        if not entered:
            message = f"No slot became free within {limits.queue_seconds:g} s."
            raise self._refuse(QUEUE_TIMEOUT, OverloadError(message, RETRY_SECONDS))

    def leave(self) -> None:
        """Release a slot, or hand it to the first request in the queue."""
        while self._queue:
            slot, _ = self._queue.popitem(last=False)
            if _resolve(slot, True):
                return
        self._open.total -= 1

    def _refuse(self, reason: str, error: ToolglotError) -> ToolglotError:
        self._refused[reason].total += 1
        return error


def _resolve(slot: asyncio.Future[bool], granted: bool) -> bool:
    """Resolve the future of a queued request. Returns whether it was still pending."""
    if slot.done():
        return False
    slot.set_result(granted)
    return True
