"""An LRU cache of texts, bounded by their total length."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
ENTRY_COST: Final = 300
"""What an entry costs beside its characters."""


class TextCache(Generic[Key]):
    """Holds at most ``max_characters``, each entry charged ``ENTRY_COST`` and the length of the texts in its key more;
    evicts the least recently used. Keys must not hold other large objects. Thread-safe."""

    def __init__(self, max_characters: int) -> None:
        self.max_characters = max_characters
        self.size = 0
        self._texts: OrderedDict[Key, tuple[str, int]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, key: Key) -> str | None:
        """Return the text under this key, or None."""
        with self._lock:
            found = self._texts.get(key)
            if found is None:
                return None
            self._texts.move_to_end(key)
            return found[0]

    def add(self, key: Key, text: str, key_length: int = 0) -> None:
        """Add a text, unless it alone exceeds the limit. ``key_length``: the length of the texts in the key."""
        cost = len(text) + key_length + ENTRY_COST
        if cost > self.max_characters:
            return
        with self._lock:
            self.size += cost - self._texts.pop(key, ("", 0))[1]
            self._texts[key] = text, cost
            while self.size > self.max_characters:
                self.size -= self._texts.popitem(last=False)[1][1]
