"""The store that the settings name, and its rows as JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from toolglot.config import Settings
from toolglot.gateway.capabilities.learned import LearnedFailure, find_folder
from toolglot.store import open_store
from toolglot.store.interface import RecordRow, SessionRow, Store


def make_store(settings: Settings, environ: Mapping[str, str], now: Callable[[], float] = time.time) -> Store | None:
    """The store, not yet opened. None if the settings want none, or name a relative file and no state folder.

    Raises: UsageError if a package for it is not installed.
    """
    url = settings.store.url
    folder = find_folder(settings.server.state_dir, environ)
    if folder is None and url.sqlite_path and not Path(url.sqlite_path).expanduser().is_absolute():
        return None
    return open_store(url.reveal(), state_folder=folder or Path(), now=now)


async def list_failures(settings: Settings, environ: Mapping[str, str]) -> list[LearnedFailure]:
    """The learned failures in the store; none if there is no store yet. Raises: StoreError."""
    store = make_store(settings, environ)
    folder = find_folder(settings.server.state_dir, environ) or Path()
    file = settings.store.url.sqlite_path
    if store is None or (file and not (folder / Path(file).expanduser()).exists()):
        return []
    try:
        await store.open()
        return [LearnedFailure(**msgspec.structs.asdict(row)) for row in await store.list_failures()]
    finally:
        await store.close()


def describe_record(row: RecordRow) -> dict[str, object]:
    """A record as JSON; with its bodies as texts, if it was read with them."""
    described = {"id": row.id, "object": "record", **msgspec.json.decode(row.data)}
    if row.bodies:
        described["bodies"] = {kind: body.decode("utf-8", "replace") for kind, body in row.bodies.items()}
    return described


def describe_session(row: SessionRow) -> dict[str, object]:
    """A session as JSON."""
    described = {name: getattr(row, name) for name in SessionRow.__struct_fields__ if name != "owner"}
    return {"id": row.id, "object": "session", **described}
