"""Kept values, learned failures, rollout settings, client keys, and the reports of changes, on both engines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.stores import Place, store_fails, until

from toolglot.store.interface import TOPICS, FailureRow, KeptValue, KeyRow, Store

FAILURE = FailureRow(address="http://x/v1", model="m", kind="leaked", evidence="…", learned=1.5, expires=9.5)


async def test_kept_values_belong_to_their_owner_and_expire(place: Place) -> None:
    now = place.now()
    async with place.opened() as store:
        late, over = now + 1000, now - 0.001
        await store.keep([KeptValue(owner=b"a", key=b"k", value=b"first", expires=late)])
        await store.keep(
            [
                KeptValue(owner=b"b", key=b"k", value=b"other", expires=late),
                KeptValue(owner=b"a", key=b"k", value=b"second", expires=late),
                KeptValue(owner=b"a", key=b"k", value=b"third" * 100_000, expires=late),
                KeptValue(owner=b"a", key=b"gone", value=b"x", expires=over),
                KeptValue(owner=b"", key=b"k", value=b"", expires=late),
            ]
        )
        assert await store.find_kept(b"a", [b"k", b"gone", b"no", b"k"]) == {b"k": b"third" * 100_000}
        assert await store.find_kept(b"b", [b"k"]) == {b"k": b"other"}
        assert await store.find_kept(b"", [b"k"]) == {b"k": b""}
        assert await store.find_kept(b"a", []) == {}
        await store.keep([])
    async with place.opened() as store:
        assert await store.find_kept(b"b", [b"k"]) == {b"k": b"other"}


async def test_failures_are_saved_by_address_and_model(place: Place) -> None:
    async with place.opened() as store:
        newer = FailureRow(address=FAILURE.address, model="m", kind="refused", evidence="", learned=2.0, expires=0.0)
        other = FailureRow(address="a", model="m2", kind="refused", evidence="", learned=2.0, expires=0.0)
        for failure in (FAILURE, newer, other):
            await store.save_failure(failure)
        assert await store.list_failures() == [other, newer]
        await store.forget_failure("a", "m")
        await store.forget_failure("a", "m2")
        assert await store.list_failures() == [newer]


async def test_the_version_of_rollout_settings_grows(place: Place) -> None:
    async with place.opened() as one, place.opened() as two:
        assert await one.load_rollout() is None
        assert await one.save_rollout(b"{}") == 1
        versions = await asyncio.gather(*((one, two)[at % 2].save_rollout(b"%d" % at) for at in range(10)))
        assert sorted(versions) == list(range(2, 12))
        assert await two.load_rollout() == (11, b"%d" % versions.index(11))


async def test_keys_by_name(place: Place) -> None:
    async with place.opened() as store:
        first = KeyRow(name="ci", hash="h1", created=1.0)
        second = KeyRow(name="ci", hash="h2", created=2.0, expires=3.0)
        await store.save_key(first)
        await store.save_key(second)
        await store.save_key(KeyRow(name="build", hash="h3", created=1.0))
        assert [key.name for key in await store.list_keys()] == ["build", "ci"]
        assert (await store.list_keys())[1] == second
        assert await store.delete_key("ci")
        assert not await store.delete_key("ci")


@asynccontextmanager
async def watching(store: Store) -> AsyncIterator[list[str]]:
    """The topics that are reported, after the first report of all of them."""
    seen: list[str] = []
    task = asyncio.create_task(store.watch(seen.append))
    await until(lambda: len(seen) >= len(TOPICS))
    assert seen == list(TOPICS)
    seen.clear()
    yield seen
    await store.close()
    await task


async def test_changes_of_another_process_are_reported(place: Place) -> None:
    async with place.opened() as here, place.opened() as there:
        await there.save_rollout(b"before")
        async with watching(here) as seen:
            changes = (
                there.save_rollout(b"{}"),
                there.save_key(KeyRow(name="ci", hash="h", created=1.0)),
                there.save_failure(FAILURE),
                there.forget_failure(FAILURE.address, "m"),
                there.delete_key("ci"),
            )
            for number, change in enumerate(changes, 1):
                await change
                while len(seen) < number:
                    await asyncio.sleep(0.02)
            assert seen == ["rollout", "keys", "failures", "failures", "keys"]
            seen.clear()
            await there.delete_key("ci")
            await there.forget_failure("no", "such")
            await there.check()
            await asyncio.sleep(0.6)
            assert seen == []


async def test_what_fails_is_not_reported(place: Place) -> None:
    async with place.opened() as here, place.opened() as there:
        async with watching(here) as seen:
            with store_fails():
                await there.save_key(KeyRow(name="ci", hash="h", created=None))  # type: ignore[arg-type]
            assert await there.list_keys() == []
            await asyncio.sleep(0.6)
            assert seen == []


async def test_watching_ends_when_its_task_is_cancelled(place: Place) -> None:
    async with place.opened() as store:
        task = asyncio.create_task(store.watch(lambda topic: None))
        await asyncio.sleep(0.1)
        task.cancel()
        assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
        await store.check()
