"""Line numbers of the tables and keys of a TOML document, which ``tomllib`` does not tell.

Strategy. The text is known to be valid, so its structure shows in few tokens: headers of tables, keys, and the end of
each value, which is the first line break outside strings and brackets.
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.config.problems import Place

_NAME: Final = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\w-]+)"""
_DOTTED: Final = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"
_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_HEADER: Final = re.compile(rf"(\[\[?)[ \t]*({_DOTTED})[ \t]*\]\]?")
_KEY: Final = re.compile(rf"({_DOTTED})[ \t]*=")
_NAMES: Final = re.compile(_NAME)
_TOKEN: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""+'
    r"|'''.*?'''+"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[{]|[\]}]|\n|[^\"'#\[\]{}\n]+",
    re.DOTALL,
)


class LineIndex:
    """Finds the line of a place in a valid TOML document."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: dict[Place, int] = {}
        self._rows: dict[Place, int] = {}
        """The number of tables so far in each array of tables."""
        self._scan()

    def line_of(self, place: Place) -> int:
        """The line of the place or of the nearest table around it; 0 if there is none."""
        while place and place not in self._lines:
            place = place[:-1]
        return self._lines.get(place, 0)

    def _scan(self) -> None:
        table: Place = ()
        position = _end(_BLANK.match(self._text, 0), 0)
        while position < len(self._text):
            line = self._text.count("\n", 0, position) + 1
            if header := _HEADER.match(self._text, position):
                table = self._open_table(_split(header[2]), is_row=header[1] == "[[")
                self._lines.setdefault(table, line)
                position = header.end()
            elif key := _KEY.match(self._text, position):
                self._add((*table, *_split(key[1])), len(table), line)
                position = self._skip_value(key.end())
            else:  # not TOML
                return
            position = _end(_BLANK.match(self._text, position), position)

    def _add(self, place: Place, outer: int, line: int) -> None:
        """Add a key, and the tables that a dotted key opens."""
        for length in range(outer + 1, len(place) + 1):
            self._lines.setdefault(place[:length], line)

    def _open_table(self, names: list[str], is_row: bool) -> Place:
        place: Place = ()
        for at, name in enumerate(names):
            place = (*place, name)
            if is_row and at == len(names) - 1:
                self._rows[place] = self._rows.get(place, 0) + 1
            if place in self._rows:
                place = (*place, self._rows[place] - 1)
        return place

    def _skip_value(self, position: int) -> int:
        depth = 0
        while token := _TOKEN.match(self._text, position):
            if token[0] == "\n" and not depth:
                break
            depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
            position = token.end()
        return position


def _end(found: re.Match[str] | None, otherwise: int) -> int:
    return found.end() if found else otherwise


def _split(dotted: str) -> list[str]:
    return [name.strip("\"'") for name in _NAMES.findall(dotted)]
