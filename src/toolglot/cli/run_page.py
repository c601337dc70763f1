"""The session of ``toolglot run`` as one HTML file that opens in any browser, offline."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from toolglot.cli.store_options import opened
from toolglot.config import Settings
from toolglot.core.errors import ToolglotError, UsageError
from toolglot.store.interface import Store

MAX_SECONDS: Final = 60.0
PRIVATE: Final = 0o600
"""The file can hold texts of the session."""


async def export_page(store: Store, session: str, settings: Settings) -> AsyncIterator[bytes]:
    """The page of a session, in pieces. Raises: UsageError if there is none of this id, StoreError."""
    from toolglot.console.export import export_session
    from toolglot.console.sessions import list_turns

    row = await store.get_session(None, session)
    if row is None:
        raise UsageError(f"there is no session {session!r}; 'toolglot sessions list' shows the latest")
    return export_session(store, row, await list_turns(store, row.id), settings)


def write_page(settings: Settings, session: str, path: Path) -> str:
    """Write the page of a session. Returns: its path; empty if that failed, which is printed and never raised."""
    import asyncio

    async def export() -> None:
        async with asyncio.timeout(MAX_SECONDS), opened(settings) as store:
            pieces = await export_page(store, session, settings)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "wb") as file:
                async for piece in pieces:
                    file.write(piece)

    try:
        asyncio.run(export())
    except Exception as error:  # whatever it is, the run of the agent counts
        reason = error.message if isinstance(error, ToolglotError) else f"{type(error).__name__} {error}".strip()
        print(f"toolglot: the page of the session was not written: {reason}", file=sys.stderr)
        path.unlink(missing_ok=True)
        return ""
    return str(path)
