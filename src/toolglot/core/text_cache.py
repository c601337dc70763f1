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
    """Holds at most ``max_characters``, each entry charged ``ENTRY_COST`` more; evicts the least recently used.
    Thread-safe."""

    def __init__(self, max_characters: int) -> None:
        self.max_characters = max_characters
        self.size = 0
        self._texts: OrderedDict[Key, str] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, key: Key) -> str | None:
        """Return the text under this key, or None."""
        with self._lock:
            found = self._texts.get(key)
            if found is not None:
                self._texts.move_to_end(key)
            return found

    def add(self, key: Key, text: str) -> None:
        """Add a text, unless it alone exceeds the limit."""
        if len(text) + ENTRY_COST > self.max_characters:
            return
        with self._lock:
            before = self._texts.pop(key, None)
            self.size += len(text) - len(before) if before is not None else len(text) + ENTRY_COST
            self._texts[key] = text
            while self.size > self.max_characters:
                self.size -= len(self._texts.popitem(last=False)[1]) + ENTRY_COST
