"""State that outlives requests, processes and hosts: records, sessions, chats, kept values, shared settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from toolglot.core.errors import UsageError
from toolglot.core.installation import name_install_command
from toolglot.store.interface import Store

SQLITE: Final = "sqlite:"
POSTGRES: Final = ("postgresql://", "postgres://")
NO_STORE: Final = "none"
_FORMS: Final = "sqlite:PATH, postgresql://USER:PASSWORD@HOST/DATABASE or none"

_HOST: Final = re.compile(r"(?:\[[^\]]+\]|[^:\[\]]*)(?::[0-9]+)?")


def open_store(url: str, *, state_folder: Path, now: Callable[[], float]) -> Store | None:
    """Make the store of a URL; ``Store.open`` connects it. None for ``none``.

    ``state_folder`` is where a relative path of ``sqlite:`` begins; ``now`` is the clock, seconds since 1970.
    Raises: UsageError for another URL, and if a package is not installed.
    """
    if url == NO_STORE:
        return None
    if url.startswith(SQLITE):
        from toolglot.store.sqlite import SqliteStore

        return SqliteStore(_read_path(url.removeprefix(SQLITE), state_folder), now)
    if url.startswith(POSTGRES):
        _check_postgres(url)
        from toolglot.store.postgres import PostgresStore

        return PostgresStore(url, now)
    raise UsageError(f"the store URL is {_FORMS}")


def _read_path(path: str, state_folder: Path) -> Path:
    if path.startswith("//") and not path.startswith("///"):
        raise UsageError("a store URL for SQLite names no host: write sqlite:PATH")
    if not path.strip("/") or path == ":memory:" or "\0" in path:
        raise UsageError("the store URL sqlite:PATH needs the path of a file")
    return state_folder / Path("/" + path.lstrip("/") if path.startswith("/") else path).expanduser()


def _check_postgres(url: str) -> None:
    """The URL may hold a password, so no message quotes it."""
    try:
        hosts = urlsplit(url).netloc.rpartition("@")[2].split(",")
        valid = all(map(_HOST.fullmatch, hosts))
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(f"the store URL is not valid: it is {_FORMS}; encode special characters of the password")
    if find_spec("asyncpg") is None:
        raise UsageError(f"a PostgreSQL store needs asyncpg: {name_install_command('postgres')}")
