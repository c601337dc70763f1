"""Rename argument keys while the arguments stream.

Strategy. Only keys of the outermost object are examined; everything else, values above all, passes unchanged, byte for
byte. A key is held until its closing quote, so at most one key is held back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolglot.clients.toolsets.operations import Untranslatable

_PLAIN = re.compile(r'[^"\\]*')
_UNSTRUCTURED = re.compile(r'[^"{}\[\],]*')


class ArgumentRenamer:
    """Renames the keys of one call. Raises ``Untranslatable`` at a key without a new name."""

    def __init__(self, keys: Mapping[str, str], tool: str) -> None:
        self.keys = keys
        self.tool = tool
        self.depth = 0
        self.expects_key = False
        self.key: list[str] | None = None
        self.quoted = False
        self.escaped = False

    def feed(self, fragment: str) -> str:
        out: list[str] = []
        pos = 0
        while pos < len(fragment):
            pos = self.feed_string(fragment, pos, out) if self.quoted else self.feed_structure(fragment, pos, out)
        return "".join(out)

    def feed_string(self, fragment: str, pos: int, out: list[str]) -> int:
        start = pos
        if self.escaped:
            self.escaped = False
            pos += 1
        pos = _skip(_PLAIN, fragment, pos)
        if pos < len(fragment):
            self.quoted = fragment[pos] == "\\"
            self.escaped = self.quoted
            pos += 1
        into = out if self.key is None else self.key
        into.append(fragment[start:pos])
        if not self.quoted and self.key is not None:
            out.append(f'"{self.rename("".join(self.key)[:-1])}"')
            self.key = None
        return pos

    def feed_structure(self, fragment: str, pos: int, out: list[str]) -> int:
        start = pos
        pos = _skip(_UNSTRUCTURED, fragment, pos)
        out.append(fragment[start:pos])
        if pos == len(fragment):
            return pos
        char = fragment[pos]
        if char == '"':
            self.quoted = True
            if self.expects_key:
                self.key, self.expects_key = [], False
                return pos + 1
        else:
            self.depth += (char in "{[") - (char in "}]")
            self.expects_key = self.depth == 1 and char in "{,"
        out.append(char)
        return pos + 1

    def rename(self, key: str) -> str:
        if key not in self.keys:
            raise Untranslatable(f"{key[:40]} of {self.tool} has no equivalent")
        return self.keys[key]


def _skip(pattern: re.Pattern[str], text: str, pos: int) -> int:
    """The position after a match."""
    found = pattern.match(text, pos)
    return found.end() if found else pos
