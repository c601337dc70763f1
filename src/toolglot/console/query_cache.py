"""Results that are kept for a moment; equal queries at the same time are one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from time import monotonic
from typing import Final, Generic, TypeVar

MAX_RESULTS: Final = 16

Result = TypeVar("Result")


class QueryCache(Generic[Result]):
    """Results by the keys of queries. Each is used for some seconds after it was loaded; failures are not kept."""

    def __init__(self, seconds: float, *, limit: int = MAX_RESULTS, clock: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._limit = limit
        self._clock = clock
        self._loading: dict[Hashable, asyncio.Task[Result]] = {}
        self._results: dict[Hashable, tuple[float, Result]] = {}
        """The time at which each was loaded, and the result; the oldest first."""

    async def find(self, key: Hashable, load: Callable[[], Awaitable[Result]]) -> Result:
        """The result of a query; ``load`` is called if it is not known. Raises: what ``load`` raises."""
        self._drop_old()
        if key in self._results:
            return self._results[key][1]
        if key not in self._loading:
            self._loading[key] = task = asyncio.create_task(self._load(key, load))
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # those who wait get it
        return await asyncio.shield(self._loading[key])  # the client that asked first may leave

    async def _load(self, key: Hashable, load: Callable[[], Awaitable[Result]]) -> Result:
        try:
            result = await load()
            self._results[key] = self._clock(), result
            return result
        finally:
            del self._loading[key]

    def _drop_old(self) -> None:
        since = self._clock() - self._seconds
        for key, (time, _) in list(self._results.items()):
            if time > since and len(self._results) <= self._limit:
                break
            del self._results[key]
