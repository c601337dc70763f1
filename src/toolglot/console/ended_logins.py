"""Logins that have ended although their cookies have not expired: people have logged out.

*Strategy.* A login that ends is noted in this process and, until its cookie expires, in the store: it has ended for all
processes of all gateways with this store. A process asks the store about a login at most once a second, and only for
requests to the API: pages and assets need no login. While the store fails, what a process knows itself counts.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from toolglot.console.query_cache import QueryCache
from toolglot.core.errors import StoreError
from toolglot.gateway.telemetry.record_writer import call_store
from toolglot.store.interface import KeptValue, Store

OWNER: Final = b"console logins"
"""The owner of the rows in the store; that of a client has another length."""
KNOWN_SECONDS: Final = 1.0
KNOWN_LOGINS: Final = 256
ENDED: Final = b"ended"


class EndedLogins:
    """``store`` gives the store, or None if there is none or it is unavailable."""

    def __init__(self, store: Callable[[], Store | None], now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._ended: dict[str, int] = {}
        """When the cookies expire of the logins that have ended, as far as this process knows."""
        self._asked: QueryCache[bool] = QueryCache(KNOWN_SECONDS, limit=KNOWN_LOGINS)

    async def has(self, login: str, expires: int) -> bool:
        """Whether a login has ended. ``login`` must be the id in a cookie that is genuine."""
        if login in self._ended:
            return True
        if (store := self._store()) is None:
            return False
        try:
            ended = await self._asked.find(login, lambda: self._ask(store, login))
        except StoreError:
            return login in self._ended
        if ended:
            self._note(login, expires)
        return ended

    async def end(self, login: str, expires: int) -> bool:
        """End a login. Returns whether all processes get to know it."""
        self._note(login, expires)
        if (store := self._store()) is None:
            return False
        try:
            row = KeptValue(owner=OWNER, key=name_row(login), value=ENDED, expires=float(expires))
            await call_store(store.keep([row]))
        except StoreError:
            return False
        return True

    async def _ask(self, store: Store, login: str) -> bool:
        key = name_row(login)
        return key in await call_store(store.find_kept(OWNER, [key]))

    def _note(self, login: str, expires: int) -> None:
        self._ended = {one: until for one, until in self._ended.items() if until > self._now()} | {login: expires}


def name_row(login: str) -> bytes:
    return sha256(login.encode()).digest()
