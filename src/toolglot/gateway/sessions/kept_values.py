"""Kept values in the store: their form, the queue that writes them, and the query that reads them.

*Strategy.* Memory is a cache (``ttl_store``). What is kept there is also queued here, and one task writes what has
gathered in one transaction; no request waits for it, unless another process may be asked for the value next
(``KeptValues.flush``). The queue is bounded; what does not fit is in memory only, and counted. A request that misses
values in memory asks for all of them in one query. If the store fails, they are missing, and nothing else happens.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from threading import Lock
from typing import ClassVar, Final, TypeAlias

import msgspec
from msgspec import Struct

from toolglot.core import offload
from toolglot.core.conversation import Reasoning
from toolglot.core.errors import StoreError
from toolglot.gateway.sessions.ttl_store import Key, Lookup, TtlStore
from toolglot.gateway.telemetry.metrics import Count
from toolglot.gateway.telemetry.record_writer import call_store
from toolglot.store.interface import KeptValue, Store

MAX_QUEUED: Final = 20_000
MAX_QUEUED_BYTES: Final = 32 << 20
MAX_VALUE: Final = 4 << 20
"""Bytes of a value above which it is in memory only."""
BATCH: Final = 500
BATCH_BYTES: Final = 4 << 20
MAX_KEYS: Final = 4000
"""How many keys one request asks the store for; the last ones, as these are of the latest turns."""
LOAD_SECONDS: Final = 1.0
FLUSH_SECONDS: Final = 1.0
WRITE_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 1.0
COMPRESSED_FROM: Final = 512
PLAIN: Final = b"\x01"
COMPRESSED: Final = b"\x02"
"""The first byte of a stored value is its form. A form that is not known (of a later version) counts as missing."""

LOG = logging.getLogger("toolglot.store")

Thoughts: TypeAlias = tuple[tuple[Reasoning, bool], ...]
"""Reasoning; for each, whether it precedes the text (before the call or, without a call, all text)."""


class KeptAnswer(Struct, frozen=True, array_like=True, tag="answer"):
    """A request and the items of its answer, as JSON."""

    request: bytes
    items: bytes


class AnswerReference(Struct, frozen=True, array_like=True, tag="reference"):
    """An item belongs to this answer."""

    answer_id: str


class StoredUpstream(Struct, frozen=True, array_like=True, tag="stored"):
    """The upstream stores what has this id; the client may refer to it for as long as upstreams usually keep it."""

    lifetime: ClassVar[float] = 30 * 86_400.0


class KeptReasoning(Struct, frozen=True, array_like=True, tag="reasoning"):
    """The hash by which a step is recognised, and the reasoning before it."""

    step: bytes
    thoughts: Thoughts


Value: TypeAlias = KeptAnswer | AnswerReference | KeptReasoning | StoredUpstream
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Value)


def pack(encoded: bytes) -> bytes:
    """An encoded value as it is stored: compressed if it is large."""
    if len(encoded) < COMPRESSED_FROM:
        return PLAIN + encoded
    return COMPRESSED + zlib.compress(encoded, 1)


def decode_value(stored: bytes) -> tuple[Value, int] | None:
    """A value and its size; None if it is damaged or of a later version."""
    form, encoded = stored[:1], stored[1:]
    try:
        if form == COMPRESSED:
            encoded = zlib.decompressobj().decompress(encoded, 2 * MAX_VALUE)
        elif form != PLAIN:
            return None
        return _DECODER.decode(encoded), len(encoded)
    except (zlib.error, msgspec.DecodeError):
        return None


def encode_key(key: Key) -> bytes:
    """The key in the store, for a key without its owner."""
    return blake2b(_ENCODER.encode(key), digest_size=20).digest()


class KeptValues:
    """Connects the memory with the store. ``shared``: other processes have to find a value as soon as a client may
    refer to it."""

    def __init__(
        self, memory: TtlStore, store: Store, dropped: Count, *, shared: bool, secrets: Iterable[str] = ()
    ) -> None:
        self.memory = memory
        self.store = store
        self.shared = shared
        self._dropped = dropped
        self._secrets = [secret.encode() for secret in secrets]
        self._queue: deque[tuple[Key, object, int, float]] = deque()
        self._bytes = 0
        self._lock = Lock()  # large requests are processed in threads
        self._added = self._settled = 0
        self._failing = False
        self._closing = False
        self._loop = asyncio.get_running_loop()
        self._wake, self._progress = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._run())
        memory.on_keep = self.enqueue

    # -- writing -------------------------------------------------------------------------------------------------------

    def enqueue(self, key: Key, value: object, size: int, expires: float) -> bool:
        """Queue a value for the store. Returns False, and counts it, if it does not fit. Thread-safe."""
        with self._lock:
            full = len(self._queue) >= MAX_QUEUED or self._bytes + size > MAX_QUEUED_BYTES
            if full or size > MAX_VALUE or self._closing:
                self._dropped.total += 1
                return False
            self._queue.append((key, value, size, expires))
            self._bytes += size
            self._added += 1
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._wake.set)
        return True

    async def flush(self, seconds: float = FLUSH_SECONDS) -> None:
        """Wait until what is queued now is stored; not if the store fails, and not long."""
        target = self._added
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._settled < target and not self._failing:
                    await self._progress.wait()

    async def close(self, seconds: float) -> None:
        """Store what is queued, within some seconds, and end."""
        self._closing = True
        self._wake.set()
        await asyncio.wait([self._task], timeout=seconds)
        self._task.cancel()
        await asyncio.wait([self._task])
        self._dropped.total += self._added - self._settled

    async def _run(self) -> None:
        while not self._closing or self._queue:
            await self._wake.wait()
            if not self._closing:
                self._wake.clear()
            while batch := self._take():
                rows = await offload.run(True, make_rows, batch, self._secrets)
                await self._write(rows)
                self._settled += len(batch)
                self._note_progress()

    def _take(self) -> list[tuple[Key, object, int, float]]:
        taken: list[tuple[Key, object, int, float]] = []
        size = 0
        with self._lock:
            while self._queue and len(taken) < BATCH and size < BATCH_BYTES:
                taken.append(self._queue.popleft())
                size += taken[-1][2]
            self._bytes -= size
        return taken

    async def _write(self, rows: Sequence[KeptValue]) -> None:
        """Write rows; while the store fails, try again. Rows that a working store does not take are dropped."""
        while True:
            try:
                await call_store(self.store.keep(rows), WRITE_SECONDS)
            except StoreError as error:
                if not self._failing:
                    LOG.warning("kept values are in memory only: %s", error.message)
                self._failing = True
                self._note_progress()
            else:
                self._failing = False
                return
            if self._closing:
                self._dropped.total += len(rows)
                return
            await asyncio.sleep(RETRY_SECONDS)
            with suppress(StoreError):
                await call_store(self.store.check(), WRITE_SECONDS)
                await self._write_each(rows)
                return

    async def _write_each(self, rows: Sequence[KeptValue]) -> None:
        """The store works again. Raises: StoreError if it does not."""
        for row in rows:
            try:
                await call_store(self.store.keep([row]), WRITE_SECONDS)
            except StoreError:
                await call_store(self.store.check(), WRITE_SECONDS)
                self._dropped.total += 1
        self._failing = False

    def _note_progress(self) -> None:
        self._progress.set()
        self._progress = asyncio.Event()

    # -- reading -------------------------------------------------------------------------------------------------------

    async def load(self, lookup: Lookup) -> None:
        """Load the values that a request misses. What the store does not have, or not in time, stays missing."""
        keys, lookup.missing = list(lookup.missing), {}
        lookup.found |= dict.fromkeys(keys)
        by_owner: dict[bytes, dict[bytes, Key]] = {}
        for key in keys[-MAX_KEYS:]:
            owner, *rest = key
            assert isinstance(owner, bytes)
            by_owner.setdefault(owner, {})[encode_key(tuple(rest))] = key
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                for owner, wanted in by_owner.items():
                    stored = await self.store.find_kept(owner, list(wanted))
                    large = sum(map(len, stored.values())) > offload.LARGE_REQUEST
                    decoded = await offload.run(large, decode_all, stored)
                    for name, (value, size) in decoded.items():
                        lookup.found[wanted[name]] = value
                        self.memory.add(wanted[name], value, size, stored_until=self.memory.now() + 1)
        except (StoreError, TimeoutError) as error:
            LOG.info("kept values cannot be loaded: %s", getattr(error, "message", "timeout"))


def make_rows(batch: Iterable[tuple[Key, object, int, float]], secrets: Iterable[bytes] = ()) -> list[KeptValue]:
    """The rows of a batch. A value that contains a secret of an upstream stays in memory only."""
    rows: dict[tuple[bytes, bytes], KeptValue] = {}
    for (owner, *rest), value, _, expires in batch:
        assert isinstance(owner, bytes)
        encoded = _ENCODER.encode(value)
        if not any(secret in encoded for secret in secrets):
            key = encode_key(tuple(rest))
            rows[owner, key] = KeptValue(owner=owner, key=key, value=pack(encoded), expires=expires)
    return list(rows.values())


def decode_all(stored: dict[bytes, bytes]) -> dict[bytes, tuple[Value, int]]:
    decoded = ((name, decode_value(value)) for name, value in stored.items())
    return {name: value for name, value in decoded if value is not None}
