"""The text of an answer that was emitted so far: its end, which may introduce a call, and more of it for the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from toolglot.reading.example_detection import TAIL_SIZE

TAIL_LIMIT = 450
"""The remembered end of the text is cut back to ``TAIL_SIZE`` when it reaches this size."""

MAX_PIECES = 8192
"""How many pieces of the text are kept."""


class VisibleText:
    """Collects text piece by piece; pieces are joined when the text is looked at."""

    __slots__ = ("_kept", "_pieces", "_tail", "add")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._kept: deque[str] = deque(maxlen=MAX_PIECES)
        self._tail = ""
        self.add: Callable[[str], None] = self._pieces.append
        """Add a piece of text."""

    @property
    def tail(self) -> str:
        """The end of the text, at least ``TAIL_SIZE`` characters if there are as many."""
        if self._pieces:
            self._join()
        return self._tail

    @tail.setter
    def tail(self, text: str) -> None:
        if self._pieces:
            self._join()
        self._tail = text

    def keep(self, text: str) -> None:
        """Add text that was taken for calls before; it introduces nothing."""
        if self._pieces:
            self._join()
        self._kept.append(text)

    def join(self) -> str:
        """The text, without its beginning if it consists of very many pieces."""
        if self._pieces:
            self._join()
        return "".join(self._kept)

    def _join(self) -> None:
        piece = "".join(self._pieces)
        self._pieces.clear()
        self._kept.append(piece)
        tail = self._tail + piece
        self._tail = tail if len(tail) <= TAIL_LIMIT else tail[-TAIL_SIZE:]
