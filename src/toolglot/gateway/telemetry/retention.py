"""Deletes what is too old or too much from the store, now and then.

Nothing waits for it: not the start of the gateway, whose first seconds belong to requests, and not the records that are
to be written, since each step of it is a small transaction.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from toolglot.config import StoreSettings
from toolglot.core.errors import StoreError
from toolglot.store.interface import Store

FIRST_SECONDS: Final = 10.0
"""Seconds from the start, or from a failure, to the next time."""
PRUNE_SECONDS: Final = 600.0
DAY_SECONDS: Final = 86_400.0
LOG = logging.getLogger("toolglot.store")


async def prune_regularly(store: Store, settings: StoreSettings, now: Callable[[], float]) -> None:
    """Prune the store again and again. Ends when it is cancelled."""
    pause = FIRST_SECONDS
    while True:
        await asyncio.sleep(pause)
        pause = FIRST_SECONDS
        try:
            async with asyncio.timeout(PRUNE_SECONDS):
                await prune(store, settings, now())
            pause = PRUNE_SECONDS
        except (StoreError, TimeoutError):  # the task that writes records reports a store that fails
            pass
        except Exception:
            LOG.exception("the store could not be pruned")


async def prune(store: Store, settings: StoreSettings, now: float) -> None:
    """Delete what the settings do not keep. Raises: StoreError."""
    records, sessions = (
        now - days * DAY_SECONDS if days else 0.0 for days in (settings.keep_records_days, settings.keep_sessions_days)
    )
    await store.prune(records_before=records, sessions_before=sessions, max_bytes=settings.max_bytes)
