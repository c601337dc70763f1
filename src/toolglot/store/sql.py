"""What the engines have in common: operations as generators of queries, and where the SQL of the engines differs.

An operation yields queries, receives their rows and returns its result. It does no input or output itself, so that both
engines run the same operations: SQLite in a thread, PostgreSQL on the event loop, each in one transaction.

Queries are written in SQL that both engines understand, with parameters ``$1``, ``$2``, ... ``CLOCK()`` is the
engine's clock in seconds since 1970. ``FOR UPDATE`` and ``FOR KEY SHARE`` have no effect in SQLite, where only one
process writes at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

MAX_ROWS: Final = 256
"""Rows in one query; both engines limit the number of parameters."""

UNINDEXED: Final = {"owner =": (b"", "length(owner) > 0"), "outcome =": ("ok", "outcome <> 'ok'")}
"""The frequent value that the index of a column leaves out, and the condition of that index. A query for another value
has to state the condition, or the index is not used."""

PARAMETER: Final = re.compile(r"\$(\d+)")
Value: TypeAlias = str | bytes | int | float | None
Row: TypeAlias = Sequence[Any]
Result = TypeVar("Result")
Made = TypeVar("Made")


class Query(NamedTuple):
    sql: str
    values: Sequence[Value] = ()


Steps: TypeAlias = Generator[Query, Sequence[Row], Result]


class Engine(Struct, frozen=True, eq=False):
    """The differences between the engines. What ``pattern`` finds in SQL is replaced, by nothing if there is no
    replacement."""

    name: str
    pattern: re.Pattern[str]
    replacements: Mapping[str, str]
    find_table: str
    lock_schema: str
    report_change: str
    count_bytes: str
    writes_alone: bool = False
    """Whether nothing else writes during a transaction."""
    has_plain_parameters: bool = False
    """Whether parameters that are used once and in their order may be written as ``?``, which is faster to prepare."""

    def adapt(self, sql: str) -> str:
        return _adapt(self, sql)


@lru_cache(maxsize=512)
def _adapt(engine: Engine, sql: str) -> str:
    if engine.has_plain_parameters:
        numbers = PARAMETER.findall(sql)
        if numbers == [str(number) for number in range(1, len(numbers) + 1)]:
            sql = PARAMETER.sub("?", sql)
    return engine.pattern.sub(lambda found: engine.replacements.get(found[0], ""), sql)


def clean(value: Value) -> Value:
    """The value as both engines can store it: PostgreSQL has no NUL in text, neither has lone surrogates."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def clean_all(values: Sequence[Value]) -> Sequence[Value]:
    """The values as both engines can store them; all are looked at at once, because few have to be changed."""
    texts = "".join([value for value in values if type(value) is str])
    return values if texts.isascii() and "\0" not in texts else [clean(value) for value in values]


def fill(count: int, first: int = 1) -> str:
    """``$1, $2, ...``"""
    return ", ".join(f"${number}" for number in range(first, first + count))


def insert(table: str, columns: Sequence[str], rows: Sequence[Sequence[Value]], ending: str = "") -> Steps[list[Row]]:
    """Insert rows, many in one query. ``ending`` says what to do on a conflict, and what to return.

    The number of rows in a query is a power of two, so that few statements are written and prepared.
    """
    returned: list[Row] = []
    start, size = 0, MAX_ROWS
    while start < len(rows):
        while size > len(rows) - start:
            size //= 2
        sql = _write_insert(table, tuple(columns), size, ending)
        returned += yield Query(sql, list(chain.from_iterable(rows[start : start + size])))
        start += size
    return returned


@lru_cache(maxsize=256)
def _write_insert(table: str, columns: tuple[str, ...], rows: int, ending: str) -> str:
    places = ", ".join(f"({fill(len(columns), 1 + at * len(columns))})" for at in range(rows))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {places} {ending}"


def select_in(sql: str, values: Iterable[Value], ending: str = "", first: Sequence[Value] = ()) -> Steps[list[Row]]:
    """Run ``sql IN (values) ending``; ``first`` are the parameters in ``sql``.

    The list has few different lengths, so that few statements are prepared.
    """
    wanted, found = list(dict.fromkeys(values)), list[Row]()
    for start in range(0, len(wanted), MAX_ROWS):
        part = wanted[start : start + MAX_ROWS]
        part += part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))
        found += yield Query(f"{sql} IN ({fill(len(part), len(first) + 1)}) {ending}", (*first, *part))
    return found


def make(kind: Callable[..., Made], columns: Sequence[str], row: Row) -> Made:
    return kind(**dict(zip(columns, row, strict=True)))


def read_columns(row: object, columns: tuple[str, ...]) -> tuple[Value, ...]:
    """The fields of a row in the order of its columns."""
    values: tuple[Value, ...] = _find_reader(columns)(row)
    return values


@lru_cache(maxsize=64)
def _find_reader(columns: tuple[str, ...]) -> attrgetter[Any]:
    return attrgetter(*columns)


def write_test(test: str, value: Value, number: int) -> str:
    """The test with its value, which is parameter ``number``, so that the index of the column is used."""
    frequent, condition = UNINDEXED.get(test, (value, ""))
    return f"{test} ${number}" if value == frequent else f"{test} ${number} AND {condition}"


def select_latest(table: str, columns: Sequence[str], filters: Mapping[str, Value], limit: int) -> Query:
    """The rows that match the filters which have a value, the largest ids first."""
    given = {test: value for test, value in filters.items() if value is not None}
    tests = " AND ".join(write_test(*chosen, number) for number, chosen in enumerate(given.items(), 1)) or "1 = 1"
    sql = f"SELECT {', '.join(columns)} FROM {table} WHERE {tests} ORDER BY id DESC LIMIT ${len(given) + 1}"
    return Query(sql, (*given.values(), limit))
