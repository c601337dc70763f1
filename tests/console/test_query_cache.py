"""Results that are kept for a moment: shared, bounded, and not lost when a client leaves."""

from __future__ import annotations

import asyncio

import pytest
from support.gateway import run

from toolglot.console.query_cache import QueryCache
from toolglot.core.errors import StoreError


class Source:
    """Queries that can be counted, held up and made to fail."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked = 0
        self.released = asyncio.Event()
        self.fails = False

    async def load(self) -> int:
        self.asked += 1
        await self.released.wait()
        if self.fails:
            raise StoreError("no")
        return self.asked


def test_equal_queries_are_one_until_some_seconds_have_passed() -> None:
    async def test() -> None:
        source = Source()
        cache: QueryCache[int] = QueryCache(2.0, clock=lambda: source.now)
        waiting = [asyncio.create_task(cache.find("a", source.load)) for _ in range(5)]
        await asyncio.sleep(0)
        source.released.set()
        assert await asyncio.gather(*waiting) == [1] * 5
        source.now = 1.9
        assert await cache.find("a", source.load) == 1
        assert await cache.find("b", source.load) == 2
        source.now = 2.0
        assert await cache.find("a", source.load) == 3

    run(test)


def test_a_client_that_leaves_does_not_end_the_query_of_others() -> None:
    async def test() -> None:
        source = Source()
        cache: QueryCache[int] = QueryCache(2.0, clock=lambda: source.now)
        first, second = [asyncio.create_task(cache.find("a", source.load)) for _ in range(2)]
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        source.released.set()
        assert await second == 1

    run(test)


def test_all_get_a_failure_and_it_is_not_kept() -> None:
    async def test() -> None:
        source = Source()
        source.fails = True
        source.released.set()
        cache: QueryCache[int] = QueryCache(2.0, clock=lambda: source.now)
        found = await asyncio.gather(*(cache.find("a", source.load) for _ in range(3)), return_exceptions=True)
        assert [type(one) for one in found] == [StoreError] * 3 and source.asked == 1
        source.fails = False
        assert await cache.find("a", source.load) == 2
        with pytest.raises(StoreError):
            source.fails = True
            await cache.find("b", source.load)

    run(test)


def test_only_so_many_results_are_kept() -> None:
    async def test() -> None:
        source = Source()
        source.released.set()
        cache: QueryCache[int] = QueryCache(2.0, limit=2, clock=lambda: source.now)
        for key in "abcd":
            await cache.find(key, source.load)
        assert await cache.find("d", source.load) == 4
        assert await cache.find("a", source.load) == 5

    run(test)
