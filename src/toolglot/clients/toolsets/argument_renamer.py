"""Names of arguments changed while the arguments stream.

Strategy. Only the keys of the outermost object are looked at; everything else, values above all, passes as it is, byte
for byte. A key is held until its closing quote, so at most one key is ever held back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolglot.clients.toolsets.operations import Untranslatable

_PLAIN = re.compile(r'[^"\\]*')
_UNSTRUCTURED = re.compile(r'[^"{}\[\],]*')


class ArgumentRenamer:
    """The arguments of one call on their way. Raises ``Untranslatable`` at a key that has no new name."""

    def __init__(self, keys: Mapping[str, str], tool: str) -> None:
        self.keys = keys
        self.tool = tool
        self.depth = 0
        self.key_is_due = False
        self.key: list[str] | None = None
        self.quoted = False
        self.escaped = False

    def feed(self, fragment: str) -> str:
        out: list[str] = []
        pos = 0
        while pos < len(fragment):
            pos = self.pass_string(fragment, pos, out) if self.quoted else self.pass_structure(fragment, pos, out)
        return "".join(out)

    def pass_string(self, fragment: str, pos: int, out: list[str]) -> int:
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

    def pass_structure(self, fragment: str, pos: int, out: list[str]) -> int:
        start = pos
        pos = _skip(_UNSTRUCTURED, fragment, pos)
        out.append(fragment[start:pos])
        if pos == len(fragment):
            return pos
        char = fragment[pos]
        if char == '"':
            self.quoted = True
            if self.key_is_due:
                self.key, self.key_is_due = [], False
                return pos + 1
        else:
            self.depth += (char in "{[") - (char in "}]")
            self.key_is_due = self.depth == 1 and char in "{,"
        out.append(char)
        return pos + 1

    def rename(self, key: str) -> str:
        if key not in self.keys:
            raise Untranslatable(f"{key[:40]} of {self.tool} has no twin")
        return self.keys[key]


def _skip(pattern: re.Pattern[str], text: str, pos: int) -> int:
    """The place behind what fits there."""
    found = pattern.match(text, pos)
    return found.end() if found else pos
