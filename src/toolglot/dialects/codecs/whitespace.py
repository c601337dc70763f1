"""Trims the whitespace around a raw value that belongs to the dialect and not to the value."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum

from msgspec import Struct


class Trim(Enum):
    NONE = "every character belongs to the value"
    BREAK = "one line break on each side is layout"
    BLANKS = "all blanks on both sides are layout"


def _strip_break(piece: str) -> str:
    if piece[-1:] not in ("\n", "\r"):
        return piece
    return piece[:-2] if piece.endswith("\r\n") else piece[:-1]


_LEAD = re.compile(r"\r?\n")


class Trimmer(Struct, eq=False):
    """Trims a value chunk by chunk. ``idle``: nothing is held, so that a chunk without whitespace passes unchanged."""

    _trim: Trim
    _strip: Callable[[str], str]
    _started: bool
    idle: bool
    _held: str = ""
    _led: bool = False

    @property
    def ends_in_break(self) -> bool:
        """Whether a line break is dropped at the end although none was dropped at the beginning."""
        return self._trim is Trim.BREAK and "\n" in self._held and not self._led

    def take(self, piece: str) -> str:
        """The text that may be emitted now."""
        if not self.idle:
            piece = self._held + piece
            self._held = ""
            if not self._started:
                piece = self._begin(piece)
        free = self._strip(piece)
        self._held += piece[len(free) :]
        self.idle = self._started and not self._held
        return free

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
                self._started = self._led = True
                return piece
        self._started = bool(piece)
        return piece

    def end(self) -> str:
        """End the value: held whitespace is dropped, except a lone carriage return."""
        return self._held if self._trim is Trim.BREAK and self._held == "\r" else ""


def open_trimmer(trim: Trim) -> Trimmer:
    """A trimmer for one value."""
    if trim is Trim.NONE:
        return Trimmer(trim, str, True, True)
    return Trimmer(trim, _strip_break if trim is Trim.BREAK else str.rstrip, False, False)
