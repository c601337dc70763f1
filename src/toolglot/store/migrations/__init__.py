"""The versions of the schema: one SQL file for each step, ``NNN_name.sql``.

``NNN_name.sqlite.sql`` holds what only one engine needs. Types are written as SQLite has them and replaced for
PostgreSQL. A published file never changes; the next version is a new file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from toolglot.core.errors import StoreError
from toolglot.store.sql import Engine, Query, Steps


def list_migrations(engine: Engine) -> dict[int, list[str]]:
    """The statements of each version, oldest first."""
    return _load(engine.name)


@cache
def _load(engine_name: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for file in sorted(files(__name__).iterdir(), key=lambda file: file.name):
        name, *only = file.name.removesuffix(".sql").split(".")
        if file.name.endswith(".sql") and only in ([], [engine_name]):
            found.setdefault(int(name.partition("_")[0]), []).extend(_split(file.read_text("utf-8")))
    return found


def _split(text: str) -> Iterator[str]:
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return (statement for statement in map(str.strip, code.split(";")) if statement)


def is_current(engine: Engine) -> Steps[bool]:
    """Whether the schema has the latest version.

    Raises: StoreError if a newer toolglot made the database.
    """
    return (yield from _read_version(engine)) == max(list_migrations(engine))


def migrate(engine: Engine, target: int | None = None) -> Steps[None]:
    """Bring the schema to the latest version. Runs in one transaction, so that a failure changes nothing.

    Raises: StoreError if a newer toolglot made the database.
    """
    yield Query(engine.lock_schema)
    migrations, version = list_migrations(engine), (yield from _read_version(engine))
    if not version:
        yield Query("CREATE TABLE schema_version (version INTEGER NOT NULL, checked REAL NOT NULL)")
        yield Query("INSERT INTO schema_version (version, checked) VALUES (0, 0)")
    for number in range(version + 1, (target or max(migrations)) + 1):
        for statement in migrations[number]:
            yield Query(statement)
        yield Query("UPDATE schema_version SET version = $1", (number,))


def _read_version(engine: Engine) -> Steps[int]:
    """The version of the schema, 0 if there is none."""
    if not (yield Query(engine.find_table, ("schema_version",))):
        return 0
    [(version, *_)] = yield Query("SELECT version FROM schema_version")
    latest = max(list_migrations(engine))
    if version > latest:
        raise StoreError(
            f"the store has schema version {version}, this toolglot knows versions up to {latest}: "
            "use the newer toolglot or another store"
        )
    return int(version)
