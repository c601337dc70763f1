"""Text that arrives in pieces, or as ever longer snapshots.

Strategy. The upstream is asked for pieces, but at times it repeats the whole text so far. A piece that does not begin
with all the text before it settles that these are pieces. While every piece does, both readings are possible, and only
what they have in common is returned. Two pieces that are longer than the text before them settle that these are
snapshots, unless the text is one character repeated. At the end of the text one is enough, even if it is not longer,
where the text before it is not short.
"""

from __future__ import annotations

SNAPSHOTS_TO_SETTLE = 2
LONG = 8
"""A text of so many characters does not begin the next piece by chance."""


class DeltaReader:
    """Returns the new text of each piece."""

    __slots__ = ("_growths", "_joined", "_last", "_reading", "_repeated", "_sent")

    def __init__(self) -> None:
        self._reading = ""
        self._joined = ""
        self._last = ""
        self._sent = 0
        self._growths = 0
        self._repeated = 0
        """The length of the text with which the last piece began."""

    def feed(self, piece: str) -> str:
        """The text that is new for certain."""
        if not piece or self._reading == "pieces":
            return piece
        if self._reading == "snapshots":
            return self._take_snapshot(piece)
        if not self._last:
            self._joined = self._last = piece
            self._sent = len(piece)
            return piece
        self._joined += piece
        if not piece.startswith(self._last):
            return self._settle("pieces")
        self._growths += len(piece) > len(self._last)
        self._repeated, self._last = len(self._last), piece
        if self._growths >= SNAPSHOTS_TO_SETTLE and len(set(piece)) > 1:
            return self._settle("snapshots")
        return self._release(_find_common(self._joined, piece))

    def close(self) -> str:
        """The end of the text: what was held back."""
        if self._reading or not self._last:
            return ""
        is_snapshot = self._repeated >= LONG and len(set(self._last)) > 1
        return self._settle("snapshots" if is_snapshot else "pieces")

    def _settle(self, reading: str) -> str:
        self._reading = reading
        released = self._release(self._joined if reading == "pieces" else self._last)
        self._joined = ""
        return released

    def _release(self, text: str) -> str:
        sent, self._sent = self._sent, max(self._sent, len(text))
        return text[sent:]

    def _take_snapshot(self, piece: str) -> str:
        """The new part of a snapshot; a piece that is none is new as a whole."""
        if piece.startswith(self._last):
            self._last = piece
            return self._release(piece)
        if self._last.startswith(piece):
            return ""
        self._last += piece
        self._sent = len(self._last)
        return piece


def _find_common(one: str, other: str) -> str:
    """The text with which both begin."""
    length = next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), len(other))
    return other[:length]
