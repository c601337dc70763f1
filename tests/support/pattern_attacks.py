"""Texts that make a regular expression slow, derived from the expression itself.

Strategy. Backtracking grows where a repeated piece can match the same text in several ways and the match fails after it. So for each
repetition in an expression the attack is: a text for what comes before it, many times a text for what it repeats, and a character that
fits nothing. The same text is also repeated as a whole, for searches that begin anew at each position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

sre: Any = import_module("re._constants")
parser: Any = import_module("re._parser")

MISFIT = "\x00"
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
MAX_ATTACKS = 60
"""Attacks on one expression: some are made of many thousand pieces of the same kind."""

CATEGORIES = {
    sre.CATEGORY_DIGIT: "7",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_WORD: "-",
}


def _spell_set(items: Sequence[tuple[Any, Any]]) -> str:
    """A character of a set."""
    if items[0][0] is sre.NEGATE:
        return next(char for char in "a 7-<\n\u00e9\u4e2d" if not any(_holds(item, char) for item in items[1:]))
    for kind, value in items:
        if kind is sre.LITERAL:
            return chr(value)
        if kind is sre.RANGE:
            return chr(value[0])
        if kind is sre.CATEGORY:
            return CATEGORIES[value]
    return MISFIT


def _holds(item: tuple[Any, Any], char: str) -> bool:
    kind, value = item
    if kind is sre.LITERAL:
        return ord(char) == int(value)
    if kind is sre.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    return kind is sre.CATEGORY and re.match({sre.CATEGORY_SPACE: r"\s", sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_WORD: r"\w"}.get(value, r"\W"), char) is not None  # fmt: skip


def spell(nodes: Any) -> str:
    """A short text that the nodes match, as far as single characters decide."""
    return "".join(map(_spell_node, nodes))


def _spell_node(node: tuple[Any, Any]) -> str:
    kind, value = node
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    if kind is sre.ANY:
        return "a"
    if kind is sre.IN:
        return _spell_set(value)
    if kind in REPEATS:
        return spell(value[2]) * int(max(1, min(value[0], 8)))
    if kind is sre.BRANCH:
        return spell(value[1][0])
    if kind in (sre.SUBPATTERN, sre.ATOMIC_GROUP):
        return spell(value[-1] if kind is sre.SUBPATTERN else value)
    return ""


def _find_pumps(nodes: Any, before: str) -> Iterator[tuple[str, str]]:
    """The text before each repetition, and the text that it repeats."""
    for node in nodes:
        kind, value = node
        if kind in REPEATS:
            if value[1] > 16:
                yield before, spell(value[2])
            yield from _find_pumps(value[2], before)
        elif kind is sre.BRANCH:
            for branch in value[1]:
                yield from _find_pumps(branch, before)
        elif kind in (sre.SUBPATTERN, sre.ASSERT, sre.ASSERT_NOT):
            yield from _find_pumps(value[-1], before)
        elif kind is sre.ATOMIC_GROUP:
            yield from _find_pumps(value, before)
        before += _spell_node(node)


def find_attacks(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """The text before, and the text to repeat, of each attack."""
    parsed = parser.parse(pattern.pattern, pattern.flags)
    found: dict[tuple[str, str], None] = {}
    for before, pump in _find_pumps(parsed, ""):
        for attack in ((before, pump), ("", pump), ("", before + pump), (before, pump + before)):
            if attack[1]:
                found[attack] = None
    return list(found)[:MAX_ATTACKS]
