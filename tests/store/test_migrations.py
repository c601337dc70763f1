"""The schema goes forward from every earlier version, with the rows in it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from support.stores import Place, chat, node, record, session, store_fails

from toolglot.store import migrations, postgres, sqlite
from toolglot.store.interface import RecordQuery
from toolglot.store.migrations import list_migrations, migrate
from toolglot.store.sql import Engine, Query, Steps

ENGINES = (sqlite.ENGINE, postgres.ENGINE)
LATEST = max(list_migrations(sqlite.ENGINE))

SESSION = """
    INSERT INTO sessions (id, owner, created, used, turns, model, upstream, client_session)
    VALUES ('s1', $1, 1.0, 2.0, 3, 'sim', 'here', '')
"""
RECORD = "INSERT INTO records VALUES ('r1', 'q1', $1, 's1', 4.0, 'openai_chat', 'sim', 'here', 200, 'ok', $2, 9)"
CHAT = "INSERT INTO chats VALUES ('c1', 'acc', 's1', $1, 'm1', 1.0, 2.0, 7, 'me', 0.0)"
NODE = """
    INSERT INTO nodes (key, session, chat, message, context, answer, size) VALUES ($1, 's1', 'c1', 'm1', $2, $2, 5)
"""
ROWS: dict[int, Sequence[Query]] = {
    1: (Query(SESSION, (b"anna",)), Query(RECORD, (b"anna", b"{}"))),
    2: (Query(CHAT, (b"anna",)), Query(NODE, (b"k", b""))),
    3: (),
    4: (),
    5: (),
    6: (),
}
"""Rows as each version had them, beside those of the versions before: literally, so that they never change."""


async def run(place: Place, steps: Steps[Any]) -> Any:
    """Run steps on a bare connection."""
    if place.is_sqlite:
        connection = sqlite3.connect(place.file)
        try:
            with connection:
                return sqlite._run_steps(connection, steps)
        finally:
            connection.close()
    server = await asyncpg.connect(place.url)
    try:
        async with server.transaction():
            return await postgres._run_steps(server, steps)
    finally:
        await server.close()


def ask(*queries: Query) -> Steps[Any]:
    rows: Any = ()
    for query in queries:
        rows = yield query
    return [tuple(row) for row in rows]


def engine_of(place: Place) -> Engine:
    return sqlite.ENGINE if place.is_sqlite else postgres.ENGINE


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_versions_have_no_gap(engine: Engine) -> None:
    assert list(list_migrations(engine)) == list(range(1, LATEST + 1))
    assert all(list_migrations(engine).values())


def test_every_version_has_rows_to_migrate() -> None:
    assert list(ROWS) == list(range(1, LATEST + 1))


@pytest.mark.parametrize("version", range(1, LATEST + 1))
async def test_rows_of_every_earlier_version_stay(place: Place, version: int) -> None:
    await run(place, migrate(engine_of(place), version))
    for number in range(1, version + 1):
        await run(place, ask(*ROWS[number]))
    async with place.opened() as store:
        found = await store.get_session(b"anna", "s1")
        assert found is not None
        assert (found.turns, found.used, found.model) == (3, 2.0, "sim")
        read = await store.get_record(b"anna", "q1")
        assert read is not None
        assert (read.id, read.time, read.data, read.bodies) == ("r1", 4.0, b"{}", {})
        await store.add_records([record("r2", bodies={"answer": b"x"})])
        assert [row.id for row in await store.list_records(None, RecordQuery())] == ["r2", "r1"]
        if version >= 2:
            [position] = await store.find_nodes([b"k"])
            assert position.is_head
            assert position.node.size == 5
            assert await store.acquire_lease("c1", "me", 1) == 8
        token = await store.add_chat(chat("c2"), "me", 60)
        assert await store.commit_turn([node(b"new", chat="c2", message="m")], "c2", "m", token)
    assert await run(place, ask(Query("SELECT version FROM schema_version"))) == [(LATEST,)]


async def test_many_may_open_a_new_store_at_once(place: Place) -> None:
    stores = [place.make() for _ in range(8)]
    await asyncio.gather(*(store.open() for store in stores))
    await stores[0].add_session(session(), [])
    assert await stores[-1].get_session(None, "s1") is not None
    await asyncio.gather(*(store.close() for store in stores))


async def test_a_newer_schema_is_refused_and_left_alone(place: Place) -> None:
    async with place.opened():
        pass
    await run(place, ask(Query("UPDATE schema_version SET version = $1", (LATEST + 1,))))
    store = place.make()
    with store_fails(f"schema version {LATEST + 1}, this toolglot knows versions up to {LATEST}"):
        await store.open()
    with store_fails():
        await store.list_keys()
    await store.close()
    assert await run(place, ask(Query("SELECT version FROM schema_version"))) == [(LATEST + 1,)]


async def test_a_migration_that_fails_changes_nothing(place: Place) -> None:
    """A foreign table is in the way of the second version."""
    await run(place, migrate(engine_of(place), 1))
    await run(place, ask(Query("CREATE TABLE kept (id INTEGER)")))
    store = place.make()
    with store_fails():
        await store.open()
    assert await run(place, ask(Query("SELECT version FROM schema_version"))) == [(1,)]
    assert await run(place, ask(Query(engine_of(place).find_table, ("chats",)))) == []
    await run(place, ask(Query("DROP TABLE kept")))
    await asyncio.sleep(1.1)
    await store.check()
    await store.close()


def test_other_files_beside_the_migrations_do_not_count() -> None:
    """Python puts its compiled modules there."""
    folder = Path(migrations.__file__).parent
    before = {engine.name: list_migrations(engine) for engine in ENGINES}
    (folder / "__pycache__").mkdir(exist_ok=True)
    migrations._load.cache_clear()
    assert {engine.name: list_migrations(engine) for engine in ENGINES} == before
