"""Texts that took work to make, kept for the next time, within a bound of characters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
ENTRY: Final = 300
"""What a text costs beside its characters."""


class TextCache(Generic[Key]):
    """At most ``most`` characters, with a charge for each text; the one not asked for the longest goes first. Safe for
    threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self._texts: OrderedDict[Key, str] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, key: Key) -> str | None:
        """The text that was kept under this key, if it still is."""
        with self._lock:
            found = self._texts.get(key)
            if found is not None:
                self._texts.move_to_end(key)
            return found

    def add(self, key: Key, text: str) -> None:
        """Keep a text, unless it alone is too long."""
        if len(text) + ENTRY > self.most:
            return
        with self._lock:
            before = self._texts.pop(key, None)
            self.size += len(text) - len(before) if before is not None else len(text) + ENTRY
            self._texts[key] = text
            while self.size > self.most:
                self.size -= len(self._texts.popitem(last=False)[1]) + ENTRY
