"""A server that refuses, stops, restarts, freezes or is read-only: StoreError within seconds, and recovery."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from support.postgres import PASSWORD, PLAIN_PASSWORD, PostgresServer, free_port
from support.stores import Place, chat, node, record, session, store_fails, until

from toolglot.core.errors import StoreError
from toolglot.store import postgres
from toolglot.store.interface import TOPICS, RecordQuery, Store

VALUE = "planted-" + "value"
SECRETS = (PASSWORD, PLAIN_PASSWORD, "tester", VALUE)


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that these tests may damage."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def place(own_server: PostgresServer, tmp_path: Path) -> Iterator[Place]:
    with own_server.lend_database() as url:
        yield Place(url, tmp_path)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(postgres, "OPERATION_SECONDS", 1.0)
    monkeypatch.setattr(postgres, "RETRY_SECONDS", 0.2)
    monkeypatch.setattr(postgres, "PING_SECONDS", 0.2)
    monkeypatch.setattr(postgres, "STATEMENT_SECONDS", 0.5)
    monkeypatch.setattr(
        postgres, "SERVER_SETTINGS", postgres.SERVER_SETTINGS | {"statement_timeout": "500", "lock_timeout": "300"}
    )


async def recovered(store: Store) -> None:
    """Wait until the store works again, as it does by itself."""
    while True:
        try:
            return await store.check()
        except StoreError:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((PASSWORD, "planted-value"), "refuses the user or the password"),
        (("/db", "/planted-value"), "the database does not exist"),
        (("127.0.0.1", "planted-value.invalid"), "no connection to the server"),
        (("/db", "/db?sslmode=planted-value&x="), "the URL is not valid"),
        (("/db", "/db?sslmode=require&application_name="), "no connection|lost"),
    ],
)
async def test_a_wrong_url(
    place: Place, change: tuple[str, str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    store = Place(place.url.replace(*change), place.folder).make()
    for _ in range(2):
        with store_fails(reason, without=SECRETS):
            await store.open()
    with store_fails(without=SECRETS):
        await store.check()
    await store.close()
    assert [secret for secret in SECRETS if secret in caplog.text + repr(store)] == []


async def test_a_server_that_is_not_there(place: Place) -> None:
    store = Place(f"postgresql://tester:{PASSWORD}@127.0.0.1:{free_port()}/db", place.folder).make()
    with store_fails("no connection to the server", without=SECRETS):
        await store.open()
    with store_fails("no connection", without=SECRETS):
        await store.load_rollout()
    with store_fails("there is no connection to the server", without=SECRETS):
        await store.load_rollout()
    await store.close()


async def test_values_are_not_in_errors(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [])
        await store.add_chat(chat(VALUE), "me", 60)
        with store_fails("exists already", without=SECRETS):
            await store.add_chat(chat(VALUE), "me", 60)
        with store_fails("does not exist", without=SECRETS):
            await store.add_chat(chat("c2", session=VALUE), "me", 60)
        with store_fails("not valid", without=SECRETS):
            await store.add_records([record(VALUE, status=1 << 70)])


async def test_the_store_recovers_when_the_server_is_restarted(place: Place, own_server: PostgresServer) -> None:
    reports: list[str] = []
    written: list[str] = []
    stopped = False

    async def write(store: Store, name: str) -> None:
        number = 0
        while not stopped:
            number += 1
            try:
                await store.add_records([record(f"{name}-{number}")])
                written.append(f"{name}-{number}")
            except StoreError as error:
                assert "postgres: " in str(error)
                await asyncio.sleep(0.01)

    async def written_more(count: int) -> None:
        before = len(written)
        await until(lambda: len(written) > before + count)

    async with place.opened() as store:
        watching = asyncio.create_task(store.watch(reports.append))
        await until(lambda: len(reports) == len(TOPICS))
        tasks = [asyncio.create_task(write(store, f"{at}")) for at in range(8)]
        for restart in (own_server.kill, own_server.stop):
            await written_more(50)
            reports.clear()
            await asyncio.to_thread(restart)
            with store_fails():
                await store.check()
            await asyncio.to_thread(own_server.start)
            await recovered(store)
            await until(lambda: reports == list(TOPICS))
        await written_more(50)
        stopped = True
        await asyncio.gather(*tasks)
        reports.clear()
        await store.save_rollout(b"{}")
        await until(lambda: reports == ["rollout"])
        found = {row.id for row in await store.list_records(None, RecordQuery(limit=100_000))}
        assert set(written) <= found
    await watching


async def test_a_store_that_is_opened_before_its_server(place: Place, own_server: PostgresServer) -> None:
    await asyncio.to_thread(own_server.stop)
    store = place.make()
    with store_fails("no connection to the server"):
        await store.open()
    await asyncio.to_thread(own_server.start)
    await recovered(store)
    await store.add_session(session(), [])
    await store.close()


async def test_a_frozen_server_holds_up_no_request(place: Place, own_server: PostgresServer) -> None:
    async with place.opened() as store:
        reports: list[str] = []
        watching = asyncio.create_task(store.watch(reports.append))
        await until(lambda: len(reports) == len(TOPICS))
        await store.add_session(session(), [node(b"k")])
        await asyncio.gather(*(store.list_keys() for _ in range(postgres.POOL_SIZE)))
        own_server.freeze(True)
        try:
            work: list[Coroutine[Any, Any, Any]] = [store.find_nodes([b"k"]) for _ in range(10)]
            work += [store.acquire_lease("c", "me", 1), store.add_session(session("s2"), [])]
            tasks = [asyncio.create_task(one) for one in work]
            await asyncio.sleep(0.05)
            for task in tasks[:2]:
                task.cancel()
            async with asyncio.timeout(20):
                done = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(one) for one in done[:2]} == {asyncio.CancelledError}
            assert {type(one) for one in done[2:]} == {StoreError}
            reports.clear()
            fresh = place.make()
            async with asyncio.timeout(20):
                with store_fails("the server does not respond"):
                    await fresh.open()
                await fresh.close()
        finally:
            own_server.freeze(False)
        await recovered(store)
        await until(lambda: reports[-3:] == list(TOPICS))
        assert len(await store.find_nodes([b"k"])) == 1
    await watching


async def test_a_frozen_server_does_not_hold_up_closing(place: Place, own_server: PostgresServer) -> None:
    store = place.make()
    await store.open()
    await store.check()
    watching = asyncio.create_task(store.watch(lambda topic: None))
    await asyncio.sleep(0.1)
    own_server.freeze(True)
    try:
        reading = asyncio.create_task(store.list_keys())
        await asyncio.sleep(0.05)
        async with asyncio.timeout(20):
            await store.close()
            await watching
        with store_fails():
            await reading
    finally:
        own_server.freeze(False)


async def test_closing_while_watching_begins(place: Place) -> None:
    for delay in (0.0, 0.001, 0.005, 0.01, 0.02, 0.05):
        store = place.make()
        watching = asyncio.create_task(store.watch(lambda topic: None))
        await asyncio.sleep(delay)
        await store.close()
        async with asyncio.timeout(20):
            await watching


async def test_a_lock_of_another_session(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [node(b"k")])
        token = await store.add_chat(chat(), "me", 60)
        other = await asyncpg.connect(place.url)
        transaction = other.transaction()
        await transaction.start()
        await other.execute("SELECT 1 FROM chats FOR UPDATE")
        with store_fails("in the way|took too long"):
            await store.commit_turn([], "c1", "m", token)
        assert len(await store.find_nodes([b"k"])) == 1
        await transaction.rollback()
        await other.close()
        assert await store.commit_turn([], "c1", "m", token)


async def test_connections_that_the_server_ends(place: Place) -> None:
    async with place.opened() as store:
        other = await asyncpg.connect(place.url)
        for _ in range(5):
            await asyncio.gather(*(store.list_keys() for _ in range(10)))
            ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
            await other.execute(ended)
            await asyncio.gather(*(store.list_keys() for _ in range(10)), return_exceptions=True)
            await recovered(store)
        count = await other.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'toolglot'")
        assert count <= postgres.POOL_SIZE
        await other.close()


async def test_a_read_only_database(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [])
    name = place.url.rpartition("/")[2]
    other = await asyncpg.connect(place.url)
    await other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        async with place.opened() as store:
            assert await store.get_session(None, "s1") is not None
            with store_fails("read-only"):
                await store.check()
            with store_fails("read-only"):
                await store.add_session(session("s2"), [])
    finally:
        await other.execute("SET default_transaction_read_only = off")
        await other.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await other.close()


async def test_tables_that_disappear_are_made_again(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [])
        other = await asyncpg.connect(place.url)
        await other.execute("DROP SCHEMA public CASCADE")
        await other.execute("CREATE SCHEMA public")
        await other.close()
        with store_fails("a table is missing"):
            await store.add_session(session(), [])
        await recovered(store)
        await store.add_session(session(), [])


async def test_leases_use_the_clock_of_the_server(place: Place) -> None:
    """One host is an hour behind, one an hour ahead."""
    slow = Place(place.url, place.folder, now=lambda: 0.0)
    fast = Place(place.url, place.folder, now=lambda: 1e11)
    async with slow.opened() as one, fast.opened() as two:
        await one.add_session(session(), [])
        token = await one.add_chat(chat(), "one", 60)
        assert await two.acquire_lease("c1", "two", 60) is None
        await one.release_lease("c1", token)
        assert await two.acquire_lease("c1", "two", 60) is not None
        assert await one.acquire_lease("c1", "one", 60) is None
