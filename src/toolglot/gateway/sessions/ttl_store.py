"""In-memory LRU store with a size limit and a time to live, partitioned by owner.

    store = TtlStore(time, most_bytes=64 << 20, seconds=14400)
    own = store.open("the client's key")
    own.keep(("response", "resp_1"), value, size)
    own.find(("response", "resp_1"))                None if it was evicted or never stored

Entries expire when they are not used for some time; the least recently used are evicted when the store is full. So
callers must work without them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Final, TypeAlias

Key: TypeAlias = tuple[Hashable, ...]
MOST_BYTES: Final = 64 << 20
SECONDS: Final = 14400.0
OVERHEAD: Final = 400
"""Estimated bytes of an entry besides its value."""


def digest(*texts: str) -> bytes:
    """A hash of texts that only have to be recognised."""
    made = blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode(errors="surrogatepass")
        made.update(b"%d:%b" % (len(encoded), encoded))
    return made.digest()


@dataclass(slots=True)
class _Entry:
    value: object
    size: int
    expires: float


class TtlStore:
    """The entries of all owners, within one size limit and one time to live. Thread-safe."""

    def __init__(self, now: Callable[[], float], *, most_bytes: int = MOST_BYTES, seconds: float = SECONDS) -> None:
        self.now = now
        self.most_bytes = most_bytes
        self.seconds = seconds
        self.bytes = 0
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._lock = Lock()  # large requests are processed in threads

    def __len__(self) -> int:
        return len(self._entries)

    def open(self, *owner: str) -> OwnedStore:
        """The part of the store that belongs to an owner; only a hash of the owner's name is stored."""
        return OwnedStore(self, digest(*owner))

    def keep(self, key: Key, value: object, size: int) -> bool:
        """Store a value of ``size`` bytes. Returns False if it is larger than the store."""
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
            self._entries[key] = _Entry(value, size, now + self.seconds)
            self.bytes += size
            return True

    def find(self, key: Key) -> object:
        """The stored value, or None; its time to live starts again."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            now = self.now()
            if now >= entry.expires:
                self._drop(key)
                return None
            entry.expires = now + self.seconds
            self._entries.move_to_end(key)
            return entry.value

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry.size


@dataclass(frozen=True, slots=True)
class OwnedStore:
    """The part of a store that one owner can reach."""

    store: TtlStore
    owner: bytes

    def keep(self, key: Key, value: object, size: int) -> bool:
        return self.store.keep((self.owner, *key), value, size)

    def find(self, key: Key) -> object:
        return self.store.find((self.owner, *key))
