"""State that outlives requests, processes and hosts: records, sessions, chats, kept values, shared settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from toolglot.core.errors import UsageError
from toolglot.store.interface import Store

SQLITE: Final = "sqlite:"
NO_STORE: Final = "none"
_FORMS: Final = "sqlite:PATH or none"


def open_store(url: str, *, state_folder: Path, now: Callable[[], float]) -> Store | None:
    """Make the store of a URL; ``Store.open`` connects it. None for ``none``.

    ``state_folder`` is where a relative path of ``sqlite:`` begins; ``now`` is the clock, seconds since 1970.
    Raises: UsageError for another URL.
    """
    if url == NO_STORE:
        return None
    if url.startswith(SQLITE):
        from toolglot.store.sqlite import SqliteStore

        return SqliteStore(_read_path(url.removeprefix(SQLITE), state_folder), now)
    raise UsageError(f"the store URL is {_FORMS}")


def _read_path(path: str, state_folder: Path) -> Path:
    if path.startswith("//") and not path.startswith("///"):
        raise UsageError("a store URL for SQLite names no host: write sqlite:PATH")
    if not path.strip("/") or path == ":memory:" or "\0" in path:
        raise UsageError("the store URL sqlite:PATH needs the path of a file")
    return state_folder / Path("/" + path.lstrip("/") if path.startswith("/") else path).expanduser()
