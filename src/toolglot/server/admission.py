"""Admission control: how many requests are answered at a time, how many wait for that, and how often a key may ask.

Strategy. A request that finds room costs two comparisons. One that does not waits in a queue for a future, in the order
of arrival; whoever leaves hands its place to the first that waits. A client that goes away while it waits cancels its
future, and with it its place in the queue. The limits hold for one process.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from math import ceil
from typing import Final

from toolglot.config import LimitSettings
from toolglot.core.errors import OverloadError, RateLimitError, ToolglotError
from toolglot.gateway.telemetry.metrics import Metrics

MINUTE: Final = 60.0
RETRY_SECONDS: Final = 5
"""When a client may try again that found no room."""
RATE_LIMIT: Final = "rate_limit"
QUEUE_FULL: Final = "queue_full"
QUEUE_TIMEOUT: Final = "queue_timeout"


class Admission:
    """Decides when a request is answered. ``keyed``: clients present keys of ours, and each has a rate of its own."""

    def __init__(self, limits: LimitSettings, metrics: Metrics, clock: Callable[[], float], *, keyed: bool) -> None:
        self._limits = limits
        self._clock = clock
        self._keyed = keyed
        self._open, self._queued = metrics.open, metrics.queued
        self._refused = {reason: metrics.refused[(reason,)] for reason in (RATE_LIMIT, QUEUE_FULL, QUEUE_TIMEOUT)}
        self._queue: OrderedDict[asyncio.Future[bool], None] = OrderedDict()
        self._asked: dict[int, deque[float]] = {}  # by the hash of a key: keys are not kept

    def check_rate(self, key: str) -> None:
        """Count a request of a key. Raises: RateLimitError if it has asked too often within the last minute."""
        limit = self._limits.requests_per_minute
        if not limit:
            return
        now = self._clock()
        asked = self._asked.setdefault(hash(key) if self._keyed else 0, deque(maxlen=limit))
        if len(asked) == limit and (wait := asked[0] + MINUTE - now) > 0:
            raise self._refuse(
                RATE_LIMIT, RateLimitError(f"More than {limit} requests in a minute were sent.", ceil(wait))
            )
        asked.append(now)

    def try_enter(self) -> bool:
        """Take a place if one is free."""
        if self._open.total >= self._limits.open_requests:
            return False
        self._open.total += 1
        return True

    async def enter(self) -> None:
        """Take a place, or wait for one. Raises: OverloadError if too many wait already, or it takes too long."""
        if self.try_enter():
            return
        limits, loop = self._limits, asyncio.get_running_loop()
        if len(self._queue) >= limits.queued_requests:
            raise self._refuse(QUEUE_FULL, OverloadError("Too many requests are waiting here.", RETRY_SECONDS))
        place: asyncio.Future[bool] = loop.create_future()
        self._queue[place] = None
        self._queued.total += 1
        timer = loop.call_later(limits.queue_seconds, _settle, place, False)
        try:
            entered = await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.result():  # granted in the moment the client left
                self.leave()
            raise
        finally:
            timer.cancel()
            self._queue.pop(place, None)
            self._queued.total -= 1
        if not entered:
            told = f"No place became free within {limits.queue_seconds:g} s."
            raise self._refuse(QUEUE_TIMEOUT, OverloadError(told, RETRY_SECONDS))

    def leave(self) -> None:
        """Give a place back; the first that waits gets it."""
        while self._queue:
            place, _ = self._queue.popitem(last=False)
            if _settle(place, True):
                return
        self._open.total -= 1

    def _refuse(self, reason: str, error: ToolglotError) -> ToolglotError:
        self._refused[reason].total += 1
        return error


def _settle(place: asyncio.Future[bool], granted: bool) -> bool:
    """Whether the future was still waited for."""
    if place.done():
        return False
    place.set_result(granted)
    return True
