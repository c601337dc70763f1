"""Finds the store that the settings name."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from toolglot.config import Settings
from toolglot.gateway.capabilities.learned import find_folder
from toolglot.store import open_store
from toolglot.store.interface import Store


def make_store(
    settings: Settings, environ: Mapping[str, str], now: Callable[[], float] = time.time
) -> Store | None:
    """The store, not yet opened. None if the settings want none, or name a relative file and no state folder.

    Raises: UsageError if a package for it is not installed.
    """
    url = settings.store.url
    folder = find_folder(settings.server.state_dir, environ)
    if folder is None and url.sqlite_path and not Path(url.sqlite_path).expanduser().is_absolute():
        return None
    return open_store(url.reveal(), state_folder=folder or Path(), now=now)
