"""Every query that lists or deletes finds its rows by an index, however large the table is. SQLite only: PostgreSQL chooses
by the size of its tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from toolglot.store import operations, record_operations
from toolglot.store.interface import RecordQuery, SessionQuery
from toolglot.store.migrations import migrate
from toolglot.store.sql import Query, Steps
from toolglot.store.sqlite import ENGINE, _run_steps

OWNER = b"0123456789abcdef"


def list_records(owner: bytes | None = None, **fields: Any) -> Callable[[], Steps[Any]]:
    return lambda: record_operations.list_records(owner, RecordQuery(**fields))


FOUND_BY: dict[str, tuple[Callable[[], Steps[Any]], str]] = {
    "records of a client": (list_records(OWNER), "records_by_owner"),
    "records without keys": (list_records(b""), "sqlite_autoindex_records_1"),
    "records that failed": (list_records(outcome="failed"), "records_by_outcome"),
    "records that succeeded": (list_records(outcome="ok"), "sqlite_autoindex_records_1"),
    "records of a model": (list_records(model="sim"), "records_by_model"),
    "records of a session": (list_records(session="s1"), "records_by_session"),
    "one record": (lambda: record_operations.get_record(None, "q1"), "records_by_request"),
    "sessions of a client": (lambda: operations.list_sessions(OWNER, 10, ""), "sessions_by_owner"),
    "sessions of a client, by use": (lambda: operations.find_sessions(OWNER, SessionQuery()), "sessions_by_owner"),
    "nodes": (lambda: operations.find_nodes([b"k"]), "nodes_by_key"),
    "nodes of failed requests": (lambda: operations.find_nodes([], [b"k"]), "nodes_by_failure"),
    "old records": (
        lambda: operations.delete_batch(operations.DELETE_RECORDS, 1.0),
        "SCAN records USING INDEX sqlite_autoindex_records_1",
    ),
    "oldest records": (
        lambda: operations.delete_oldest_records(1),
        "SCAN records USING INDEX sqlite_autoindex_records_1",
    ),
    "old sessions": (lambda: operations.delete_batch(operations.DELETE_SESSIONS, 1.0), "sessions_by_use"),
}
FEW_ROWS = frozenset({"one record", "old records", "sessions of a client, by use"})
"""What is found may be sorted afterwards."""


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as made:
        _run_steps(made, migrate(ENGINE))
        yield made


def read_plan(connection: sqlite3.Connection, query: Query) -> str:
    rows = connection.execute(f"EXPLAIN QUERY PLAN {ENGINE.adapt(query.sql)}", query.values)
    return "\n".join(row[3] for row in rows)


@pytest.mark.parametrize("name", FOUND_BY)
def test_rows_are_found_by_an_index(connection: sqlite3.Connection, name: str) -> None:
    steps, index = FOUND_BY[name]
    plan = read_plan(connection, next(steps()))
    assert index in plan
    assert "TEMP B-TREE FOR ORDER BY" not in plan or name in FEW_ROWS


def test_the_nodes_of_a_chat_are_found_by_an_index(connection: sqlite3.Connection) -> None:
    """The index holds only nodes with a chat, and a test for a chat implies that."""
    assert "nodes_by_chat" in read_plan(connection, Query("SELECT number FROM nodes WHERE chat = $1", ("c1",)))
