"""What is kept for clients between their requests: a little, for a while, and for nobody else.

    kept = Keepsakes(time, most_bytes=64 << 20, seconds=14400)
    drawer = kept.open("the client's key")
    drawer.keep(("response", "resp_1"), value, size)
    drawer.find(("response", "resp_1"))             None if it was put out, or never was there

Everything lives in memory. What was not used for the longest time is put out first, as soon as room is needed or its
time is over, so whoever keeps something here must get along without it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any, Final, TypeAlias

Key: TypeAlias = tuple[Hashable, ...]
MOST_BYTES: Final = 64 << 20
SECONDS: Final = 14400.0
OVERHEAD: Final = 400
"""Bytes that an entry takes besides what it holds."""


def digest(*words: str) -> bytes:
    """Words that need not be told, only known again."""
    made = blake2b(digest_size=16)
    for word in words:
        told = word.encode(errors="surrogatepass")
        made.update(b"%d:%b" % (len(told), told))
    return made.digest()


@dataclass(slots=True)
class _Kept:
    value: Any
    size: int
    until: float


class TtlStore:
    """All that is kept, within one size and one age."""

    def __init__(self, now: Callable[[], float], *, most_bytes: int = MOST_BYTES, seconds: float = SECONDS) -> None:
        self.now = now
        self.most_bytes = most_bytes
        self.seconds = seconds
        self.bytes = 0
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self._lock = Lock()  # large requests are worked on in threads

    def __len__(self) -> int:
        return len(self._kept)

    def open(self, *owner: str) -> Drawer:
        """What belongs to this owner; of the words that name him only a digest is held."""
        return Drawer(self, digest(*owner))

    def keep(self, key: Key, value: Any, size: int) -> bool:
        """Keep it if there can be room for it; whether there is."""
        with self._lock:
            self._drop(key)
            size += OVERHEAD
            if size > self.most_bytes:
                return False
            now = self.now()
            while self._kept:
                oldest = next(iter(self._kept))
                if self.bytes + size <= self.most_bytes and now < self._kept[oldest].until:
                    break
                self._drop(oldest)
            self._kept[key] = _Kept(value, size, now + self.seconds)
            self.bytes += size
            return True

    def find(self, key: Key) -> Any | None:
        """What was kept, which is as good as new from now on."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            now = self.now()
            if now >= kept.until:
                self._drop(key)
                return None
            kept.until = now + self.seconds
            self._kept.move_to_end(key)
            return kept.value

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.bytes -= kept.size


@dataclass(frozen=True, slots=True)
class Drawer:
    """The part of it that one owner can reach."""

    kept: TtlStore
    owner: bytes

    def keep(self, key: Key, value: Any, size: int) -> bool:
        return self.kept.keep((self.owner, *key), value, size)

    def find(self, key: Key) -> Any | None:
        return self.kept.find((self.owner, *key))
