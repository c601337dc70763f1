"""Raw control characters in the arguments of native calls: models write line breaks into strings, servers pass them on,
and strict JSON parsers of clients refuse them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_TOKEN = re.compile(r'\\(?:.|\Z)|"|[\x00-\x1f]', re.DOTALL)


class ControlEscaper:
    """Escapes control characters inside the strings of arguments that arrive in pieces; between values they are blanks.

    Nearly all pieces have none, so the earlier ones are followed only when one comes."""

    __slots__ = ("_after_backslash", "_followed", "_inside")

    def __init__(self) -> None:
        self._followed = 0
        self._inside = False
        self._after_backslash = False

    def escape(self, pieces: Sequence[str], fragment: str) -> str:
        """The fragment that follows these pieces, escaped. It becomes one of them."""
        for piece in pieces[self._followed :]:
            self._follow(piece)
        self._followed = len(pieces) + 1
        return self._follow(fragment)

    def _follow(self, text: str) -> str:
        start = int(self._after_backslash and bool(text))
        self._after_backslash = self._after_backslash and not text
        return text[:start] + _TOKEN.sub(self._replace, text[start:])

    def _replace(self, found: re.Match[str]) -> str:
        token = found[0]
        if token == '"':
            self._inside = not self._inside
        elif token == "\\":
            self._after_backslash = True
        elif token[0] != "\\" and self._inside:
            return json.dumps(token)[1:-1]
        return token
