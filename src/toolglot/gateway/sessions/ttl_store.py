"""In-memory LRU store with a size limit and a time to live, partitioned by owner; a cache of the store, if any.

    store = TtlStore(time, most_bytes=64 << 20, seconds=14400)
    own = store.open("the client's key")
    own.keep(("response", "resp_1"), value, size)
    own.find(("response", "resp_1"))                None if it was evicted or never stored

Entries expire when they are not used for some time; the least recently used are evicted when the store is full. So
callers must work without them.

With a store, ``on_keep`` writes what is kept there too. A value that is not in memory may then be in the store: a
``Lookup`` notes the keys that one request misses, and holds what the store had for them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from hashlib import blake2b
from threading import Lock
from typing import Final, TypeAlias

from msgspec import Struct

from toolglot.core.identity import encode_text, frame

Key: TypeAlias = tuple[Hashable, ...]
MOST_BYTES: Final = 64 << 20
SECONDS: Final = 14400.0
OVERHEAD: Final = 400
"""Estimated bytes of an entry besides its value."""

OnKeep: TypeAlias = Callable[[Key, object, int, float], bool]
"""Called with the key, the value, its size and the time at which it expires; returns whether it will be stored."""


class _Entry(Struct):
    value: object
    size: int
    expires: float
    stored_until: float = 0.0
    """When the value expires in the store; 0 if it is in memory only."""


class Lookup:
    """The values that one request misses in memory, and what the store has for them. A key is missed once."""

    __slots__ = ("found", "missing")

    def __init__(self) -> None:
        self.missing: dict[Key, None] = {}
        self.found: dict[Key, object] = {}

    def find(self, key: Key) -> object:
        if key not in self.found:
            self.missing[key] = None
        return self.found.get(key)


def _hash_owner(names: Iterable[str]) -> bytes:
    """What is stored of an owner. It must not change, or clients can no longer refer to what was stored before."""
    return blake2b(b"".join([frame(encode_text(name)) for name in names]), digest_size=16).digest()


class TtlStore:
    """The entries of all owners, within one size limit and one time to live. Thread-safe."""

    def __init__(self, now: Callable[[], float], *, most_bytes: int = MOST_BYTES, seconds: float = SECONDS) -> None:
        self.now = now
        self.most_bytes = most_bytes
        self.seconds = seconds
        self.bytes = 0
        self.on_keep: OnKeep | None = None
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._lock = Lock()  # large requests are processed in threads

    def __len__(self) -> int:
        return len(self._entries)

    def open(self, *owner: str, lookup: Lookup | None = None) -> OwnedStore:
        """The part of the store that belongs to an owner; only a hash of the owner's name is stored."""
        return OwnedStore(self, _hash_owner(owner), lookup)

    def keep(self, key: Key, value: object, size: int, *, durable: bool = True) -> bool:
        """Store a value of ``size`` bytes; not only in memory, if it is ``durable``. Returns False if it is larger than
        the memory for all values."""
        expires = self.now() + self.lifetime_of(value)
        stored = durable and self.on_keep is not None and self.on_keep(key, value, size, expires)
        return self.add(key, value, size, expires if stored else 0.0)

    def add(self, key: Key, value: object, size: int, stored_until: float = 0.0) -> bool:
        """Add a value to the memory."""
        with self._lock:
            self._drop(key)
            size += OVERHEAD
            if size > self.most_bytes:
                return False
            now = self.now()
            while self._entries:
                oldest = next(iter(self._entries))
                if self.bytes + size <= self.most_bytes and now < self._entries[oldest].expires:
                    break
                self._drop(oldest)
            self._entries[key] = _Entry(value, size, now + self.lifetime_of(value), stored_until)
            self.bytes += size
            return True

    def find(self, key: Key, *, durable: bool = False) -> object:
        """The kept value, or None; its time to live starts again, in the store as well. ``durable``: it goes to the
        store now, if it was in memory only."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            now = self.now()
            if now >= entry.expires:
                self._drop(key)
                return None
            seconds = self.lifetime_of(entry.value)
            entry.expires = now + seconds
            self._entries.move_to_end(key)
            refreshes = entry.stored_until - now < seconds / 2 and (durable or entry.stored_until > 0)
            if refreshes and self.on_keep is not None:
                entry.stored_until = entry.expires
                self.on_keep(key, entry.value, entry.size - OVERHEAD, entry.expires)
            return entry.value

    def lifetime_of(self, value: object) -> float:
        """Seconds without use after which a value expires: its own ``lifetime``, or that of all values."""
        return float(getattr(value, "lifetime", self.seconds))

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry.size


class OwnedStore(Struct, frozen=True):
    """The part of a store that one owner can reach."""

    store: TtlStore
    owner: bytes
    lookup: Lookup | None = None

    def keep(self, key: Key, value: object, size: int, *, durable: bool = True) -> bool:
        return self.store.keep((self.owner, *key), value, size, durable=durable)

    def find(self, key: Key, *, durable: bool = False) -> object:
        value = self.store.find((self.owner, *key), durable=durable)
        return self.lookup.find((self.owner, *key)) if value is None and self.lookup is not None else value
