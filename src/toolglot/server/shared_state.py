"""Keeps what all processes with the same store share up to date: client keys, the rollout, learned failures.

*Strategy.* The store reports changes (``Store.watch``), all topics at the start and after a failure. Each report makes
this process read the topic again. What this process changes itself is written at once and, while the store fails, again
and again. Until the store can be read, the settings count; when it fails later, what was read last counts.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import structs

from toolglot.config import ClientKeys, KeyHash, Settings
from toolglot.config.keys import StoredKey
from toolglot.config.rollout import Rollout
from toolglot.config.shared_rollout import SharedRollout, change_rollout, decode_rollout, fingerprint
from toolglot.core.errors import StoreError
from toolglot.gateway.capabilities.learned import LearnedFailure, LearnedFailures
from toolglot.gateway.telemetry.record_writer import call_store
from toolglot.store.interface import (
    ADMIN,
    FAILURES_CHANGED,
    KEYS_CHANGED,
    ROLLOUT_CHANGED,
    TOPICS,
    FailureRow,
    KeyRow,
    Store,
)

START_SECONDS: Final = 3.0
"""Seconds that a start waits for the store."""
RETRY_SECONDS: Final = 1.0
SAME_CHANGE_SECONDS: Final = 10.0
"""Several processes see the same change of one file, one after the other. It counts once."""
KEY_MARKER: Final = "client-keys-in-store"
MARKER_TEXT: Final = "The store has client keys. While this file exists, no request is served without one.\n"
LOG = logging.getLogger("toolglot.store")


class SharedState:
    """The task that reads and writes shared settings. ``state_folder`` is where a file marks that there are keys."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        keys: ClientKeys,
        failures: LearnedFailures,
        state_folder: Path | None,
        now: Callable[[], float],
    ) -> None:
        self.store = store
        self.keys = keys
        self.rollout = RolloutSync(store, settings)
        self.failures = FailureSync(store, failures, now, self._wake_from_thread)
        self._required = keys.required
        self._marker = None if state_folder is None else state_folder / KEY_MARKER
        keys.required |= self._marker is not None and self._marker.exists()
        self._loads: dict[str, Callable[[], Awaitable[None]]] = {
            KEYS_CHANGED: self._load_keys,
            ROLLOUT_CHANGED: self.rollout.load,
            FAILURES_CHANGED: self.failures.load,
        }
        self._stale = set(TOPICS)
        self._keys_read = False
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        settings.live.on_change = self._publish_rollout

    async def start(self, seconds: float = START_SECONDS) -> None:
        """Read everything, if the store answers in time, and keep it up to date from now on."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._refresh()
        self._tasks = [asyncio.create_task(self._run()), asyncio.create_task(self._watch())]

    async def close(self, seconds: float = START_SECONDS) -> None:
        """Write what waits, within some seconds, and end."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self.rollout.is_pending or self.failures.is_pending:
            self._stale.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._refresh()

    def _publish_rollout(self, rollout: Rollout) -> None:
        self.rollout.publish(rollout)
        self._wake.set()

    def _wake_from_thread(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._wake.set)

    def _note_change(self, topic: str) -> None:
        self._stale.add(topic)
        self._wake.set()

    async def _watch(self) -> None:
        while True:
            with suppress(StoreError):
                await self.store.watch(self._note_change)
            await asyncio.sleep(RETRY_SECONDS)

    async def _run(self) -> None:
        while True:
            if not self._stale:
                await self._wake.wait()
            self._wake.clear()
            await self._refresh()
            if self._stale:
                await asyncio.sleep(RETRY_SECONDS)

    async def _refresh(self) -> None:
        """Write what waits and read what has changed. What fails is tried again."""
        if self.rollout.is_pending:
            self._stale.add(ROLLOUT_CHANGED)
        if self.failures.is_pending:
            self._stale.add(FAILURES_CHANGED)
        for topic in TOPICS:
            if topic not in self._stale:
                continue
            self._stale.discard(topic)
            try:
                await self._loads[topic]()
            except StoreError as error:
                self._stale.add(topic)
                LOG.info("%s cannot be read from the store: %s", topic, error.message)
            except Exception:
                LOG.exception("%s of the store cannot be used", topic)

    # -- client keys ---------------------------------------------------------------------------------------------------

    async def _load_keys(self) -> None:
        rows = await call_store(self.store.list_keys())
        if not self._keys_read:
            self._keys_read = True
            self.keys.required = self._required
        self.keys.set_stored(read_keys(rows))
        self._mark(bool(rows))

    def _mark(self, has_keys: bool) -> None:
        """Remember that there are keys: if the store cannot be read at the next start, all requests are refused."""
        if self._marker is None or has_keys == self._marker.exists():
            return
        try:
            if has_keys:
                self._marker.parent.mkdir(parents=True, exist_ok=True)
                self._marker.write_text(MARKER_TEXT, "utf-8")
            else:
                self._marker.unlink(missing_ok=True)
        except OSError as error:
            LOG.warning("%s cannot be written or removed: %s", self._marker, error.strerror)


def read_keys(rows: Sequence[KeyRow]) -> list[StoredKey]:
    """The hashes of client keys. A row that is not valid admits no request."""
    keys: list[StoredKey] = []
    for row in rows:
        try:
            keys.append(StoredKey(KeyHash.read(row.hash), row.expires, row.scope == ADMIN))
        except ValueError:
            LOG.error("client key %r in the store is not a hash", row.name)
            keys.append(StoredKey(KeyHash(b""), row.expires))
    return keys


class RolloutSync:
    """The rollout of this process, and that of the store."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._pending: Rollout | None = None
        self._file = settings.rollout.as_rollout()
        self._gateway = f"{socket.gethostname()}:{settings.server.port}"
        self._has_started = False
        self._seen: dict[str, float] = {}
        """When rollouts of the store were read, by their fingerprints."""

    @property
    def is_pending(self) -> bool:
        return self._pending is not None

    def publish(self, rollout: Rollout) -> None:
        """The settings file has changed the rollout."""
        self._file = rollout
        seen = self._seen.get(fingerprint(rollout))
        if seen is None or time.monotonic() - seen > SAME_CHANGE_SECONDS:
            self._pending = rollout

    async def load(self) -> None:
        """Write the pending rollout, or read that of the store. Raises: StoreError."""
        found = await call_store(self._store.load_rollout())
        current = stored = decode_rollout(found[1]) if found is not None else None
        if not self._has_started and self._pending is None and self._is_changed(stored):
            self._pending = self._file
        pending = self._pending
        if pending is not None and (stored is None or fingerprint(pending) != fingerprint(stored.rollout)):
            current = change_rollout(stored, pending)
        if current is not None and (pending is not None or not self._has_started):
            current = current.add_file(self._gateway, self._file)
        if current is not None and current != stored:
            await call_store(self._store.save_rollout(current.encode()))
        self._has_started = True
        if self._pending is pending:
            self._pending = None
        if current is not None:
            self._apply(current.rollout)

    def _is_changed(self, stored: SharedRollout | None) -> bool:
        if stored is None:
            return fingerprint(self._file) != fingerprint(Rollout())
        return stored.is_changed(self._gateway, self._file)

    def _apply(self, rollout: Rollout) -> None:
        self._seen = {**self._seen, fingerprint(rollout): time.monotonic()}
        for old in list(self._seen)[:-10]:
            del self._seen[old]
        for change in self._settings.rollout_now.compare(rollout):
            LOG.warning("rollout of %s (from the store)", change)
        self._settings.live.rollout = rollout


class FailureSync:
    """Learned failures: those of the store, and those that this process has learned and not stored yet."""

    def __init__(
        self, store: Store, failures: LearnedFailures, now: Callable[[], float], wake: Callable[[], None]
    ) -> None:
        self._store = store
        self._failures = failures
        self._now = now
        self._wake = wake
        self._file = failures.use_store(self._note, self._note_forgotten)
        self._pending = dict(failures.failures)
        self._forgotten: set[tuple[str, str]] = set()

    @property
    def is_pending(self) -> bool:
        return bool(self._pending or self._forgotten)

    def _note(self, failure: LearnedFailure) -> None:
        self._pending[failure.address, failure.model] = failure
        self._forgotten.discard((failure.address, failure.model))
        self._wake()

    def _note_forgotten(self, key: tuple[str, str]) -> None:
        self._pending.pop(key, None)
        self._forgotten.add(key)
        self._wake()

    async def load(self) -> None:
        """Write and forget what waits, and read all. Raises: StoreError."""
        rows = {(row.address, row.model): row for row in await call_store(self._store.list_failures())}
        for key in list(self._forgotten):
            await call_store(self._store.forget_failure(*key))
            rows.pop(key, None)
            self._forgotten.discard(key)
        for key, failure in list(self._pending.items()):
            known = rows.get(key)
            if failure.expires > self._now() and (known is None or known.learned < failure.learned):
                rows[key] = FailureRow(**{name: getattr(failure, name) for name in FailureRow.__struct_fields__})
                await call_store(self._store.save_failure(rows[key]))
            if self._pending.get(key) is failure:
                del self._pending[key]
        for key, row in list(rows.items()):
            if row.expires <= self._now():
                await call_store(self._store.forget_failure(*key))
                del rows[key]
        # one may have been forgotten while it was written
        learned = [LearnedFailure(**structs.asdict(row)) for key, row in rows.items() if key not in self._forgotten]
        self._failures.replace_all([*learned, *self._pending.values()])
        if self._file is not None:  # its content is in the store now
            with suppress(OSError):
                self._file.unlink(missing_ok=True)
            self._file = None
