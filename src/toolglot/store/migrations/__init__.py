"""The versions of the schema: one SQL file for each step, ``NNN_name.sql``.

``NNN_name.sqlite.sql`` holds what only one engine needs. Types are written as SQLite has them and replaced for
PostgreSQL. A published file never changes; the next version is a new file.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

from toolglot.core.errors import StoreError
from toolglot.store.sql import Engine, Query, Steps


def list_migrations(engine: Engine) -> dict[int, list[str]]:
    """The statements of each version, oldest first."""
    found: dict[int, list[str]] = {}
    for file in sorted(files(__name__).iterdir(), key=lambda file: file.name):
        name, *only, ending = file.name.split(".")
        if ending == "sql" and only in ([], [engine.name]):
            found.setdefault(int(name.partition("_")[0]), []).extend(_split(file.read_text("utf-8")))
    return found


def _split(text: str) -> Iterator[str]:
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return (statement for statement in map(str.strip, code.split(";")) if statement)


def migrate(engine: Engine, target: int | None = None) -> Steps[None]:
    """Bring the schema to the latest version. Runs in one transaction, so that a failure changes nothing.

    Raises: StoreError if a newer toolglot made the database.
    """
    migrations = list_migrations(engine)
    latest = max(migrations)
    yield Query(engine.lock_schema)
    if not (yield Query(engine.find_table, ("schema_version",))):
        yield Query("CREATE TABLE schema_version (version INTEGER NOT NULL, checked REAL NOT NULL)")
        yield Query("INSERT INTO schema_version (version, checked) VALUES (0, 0)")
    [(version, *_)] = yield Query("SELECT version FROM schema_version")
    if version > latest:
        raise StoreError(
            f"the store has schema version {version}, this toolglot knows versions up to {latest}: "
            "use the newer toolglot or another store"
        )
    for number in range(version + 1, (target or latest) + 1):
        for statement in migrations[number]:
            yield Query(statement)
        yield Query("UPDATE schema_version SET version = $1", (number,))
