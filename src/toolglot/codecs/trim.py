"""Layout around a raw value: which blanks on either side are the dialect's and not the value's."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum


class Trim(Enum):
    NONE = "every character belongs to the value"
    BREAK = "one line break on each side is layout"
    BLANKS = "all blanks on both sides are layout"


_TAIL = {Trim.BREAK: re.compile(r"\r?\n\Z|\r\Z"), Trim.BLANKS: re.compile(r"\s+\Z")}
_LEAD = re.compile(r"\r?\n")


class Trimmer:
    """Passes a value on piece by piece without its layout."""

    __slots__ = ("_held", "_out", "_started", "_trim")

    def __init__(self, out: Callable[[str], None], trim: Trim) -> None:
        self._out = out
        self._trim = trim
        self._started = trim is Trim.NONE
        self._held = ""

    @property
    def idle(self) -> bool:
        """Nothing is held, so a piece without blanks would pass unchanged."""
        return self._started and not self._held

    def take(self, piece: str) -> None:
        if self._trim is Trim.NONE:
            self._out(piece)
            return
        if self._held:
            piece = self._held + piece
            self._held = ""
        if not self._started:
            piece = self._begin(piece)
            if not piece:
                return
        tail = _TAIL[self._trim].search(piece) if piece[-1].isspace() else None
        if tail is not None:
            self._held = tail[0]
            piece = piece[: tail.start()]
        if piece:
            self._out(piece)

    def _begin(self, piece: str) -> str:
        if self._trim is Trim.BLANKS:
            piece = piece.lstrip()
        elif piece == "\r":
            self._held = piece
            return ""
        else:
            found = _LEAD.match(piece)
            if found is not None:
                piece = piece[found.end() :]
                self._started = True
                return piece
        self._started = bool(piece)
        return piece

    def end(self) -> None:
        """The value is over: what is held was layout."""
        if self._trim is Trim.BREAK and self._held == "\r":
            self._out(self._held)
        self._held = ""
