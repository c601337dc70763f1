"""A reader of GBNF grammars that writes random texts of their language, as the property tests need them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

_TOKEN = re.compile(
    r"""\s*(?:(?P<literal>"(?:[^"\\]|\\.)*")|(?P<set>\[(?:[^\]\\]|\\.)*\]|\.)|(?P<rule>[a-z][a-z0-9-]*)"""
    r"""|(?P<many>[*+?]|\{\d+(?:,\d*)?\})|(?P<sign>[()|]))"""
)
_CHAR = re.compile(r"\\U([0-9A-F]{8})|\\x([0-9A-F]{2})|\\(.)|(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_ALPHABET = [*map(chr, range(32, 127)), "\n", "é", "中", "😀"]
_TIMES = {"*": (0, 6), "+": (1, 6), "?": (0, 1)}

Write: TypeAlias = Callable[[int], str]


def _chars(text: str) -> list[str]:
    def one(found: re.Match[str]) -> str:
        wide, narrow, escaped, plain = found.groups()
        return chr(int(wide or narrow, 16)) if wide or narrow else _ESCAPED.get(escaped, escaped) if escaped else plain

    return [one(found) for found in _CHAR.finditer(text)]


@dataclass
class Grammar:
    """One grammar; ``write`` gives a text of its language."""

    source: str
    random: random.Random
    rules: dict[str, Write] = field(default_factory=dict)

    def __post_init__(self) -> None:
        bodies = dict(line.split(" ::= ", 1) for line in self.source.splitlines())
        for name, body in bodies.items():
            self.rules[name] = self.parse(body)
        used = {found["rule"] for body in bodies.values() for found in _TOKEN.finditer(body) if found["rule"]}
        assert used | {"root"} == set(bodies), "every rule is used, and every used rule is there"

    def write(self) -> str:
        return self.rules["root"](0)

    def parse(self, body: str) -> Write:
        tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(body.rstrip()):
            found = _TOKEN.match(body, at)
            assert found and found.lastgroup, f"no GBNF at {body[at : at + 30]!r}"
            tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()
        written = self.alternatives(tokens)
        assert not tokens
        return written

    def alternatives(self, tokens: list[tuple[str, str]]) -> Write:
        options = [self.sequence(tokens)]
        while tokens and tokens[0] == ("sign", "|"):
            tokens.pop(0)
            options.append(self.sequence(tokens))

        def write(depth: int) -> str:
            # deep down the last way out is taken, which for text is its end
            return (options[-1] if depth > 60 else self.random.choice(options))(depth + 1)

        return write

    def sequence(self, tokens: list[tuple[str, str]]) -> Write:
        items: list[tuple[Write, int, int]] = []
        while tokens and tokens[0] not in (("sign", "|"), ("sign", ")")):
            kind, text = tokens.pop(0)
            item, least, most = self.item(kind, text, tokens), 1, 1
            if tokens and tokens[0][0] == "many":
                least, most = self.times(tokens.pop(0)[1])
            items.append((item, least, most))

        def write(depth: int) -> str:
            counts = (least if depth > 60 else self.random.randint(least, most) for _, least, most in items)
            return "".join(item(depth) for (item, *_), count in zip(items, counts, strict=True) for _ in range(count))

        return write

    def times(self, many: str) -> tuple[int, int]:
        if many in _TIMES:
            return _TIMES[many]
        least, _, most = many[1:-1].partition(",")
        return int(least), min(int(most or least), int(least) + 6)

    def item(self, kind: str, text: str, tokens: list[tuple[str, str]]) -> Write:
        if kind == "rule":
            return lambda depth: self.rules[text](depth + 1)
        if kind == "literal":
            literal = "".join(_chars(text[1:-1]))
            return lambda depth: literal
        if kind == "set":
            members = self.members(text)
            return lambda depth: self.random.choice(members)
        assert (kind, text) == ("sign", "(")
        inside = self.alternatives(tokens)
        assert tokens.pop(0) == ("sign", ")")
        return inside

    def members(self, text: str) -> list[str]:
        if text == ".":
            return _ALPHABET
        inverted = text.startswith("[^")
        chars = _chars(text[1 + inverted : -1])
        named: set[str] = set()
        while chars:
            first = chars.pop(0)
            last = first
            if len(chars) > 1 and chars[0] == "-":
                last = chars.pop(1)
                chars.pop(0)
            named |= set(map(chr, range(ord(first), ord(last) + 1)))
        return [char for char in _ALPHABET if char not in named] if inverted else sorted(named)
