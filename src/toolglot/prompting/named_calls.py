r"""Where a text calls a tool by its name, without a mark that says so.

Strategy. Which tools there are changes from client to client, and an expression with all their names would have to be
compiled for each of them. So the expressions here take any name, are compiled once, and the name that they find is
looked up. Models escape the underscores of a name as Markdown wants it (``read\_file``), and put the names of packages
before it (``functions.read_file``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from toolglot.core.windowed_search import MAX_MATCH, WINDOW, find_all
from toolglot.dialects.mark_templates import template_regex

_NAME: Final = r"[\w.\-/:\\]+"
_SEGMENT: Final = re.compile(r"\w{1,64}[.:]")
_MOST_SEGMENTS: Final = 4
_WRITTEN: Final = re.compile(_NAME)
_ESCAPED: Final = re.compile(r"\\+(?=_)")
_OPENED: Final = re.compile(r"\{(?=\s*[\"'}])")
_BLANKS: Final = " \t\r"
LED: Final = "{name}\n{before_quoted}"
"""The one mark that begins with the name."""


class Span(NamedTuple):
    """A mark: it may begin anywhere from ``first`` to ``last``. The lower the rank, the sooner it counts."""

    first: int
    last: int
    rank: int
    end: int


class _Rule(NamedTuple):
    """An expression that begins with ``head`` and holds a name. ``whole``: the name ends where its group does; else
    it may be a beginning of that. ``qualified``: names of packages may stand before it."""

    head: str
    pattern: re.Pattern[str]
    rank: int = 1
    whole: bool = True
    qualified: bool = True


def _compile_rule(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("NAME", f"({_NAME})"))


_GENERAL: Final = (
    # the tag of a tool, a list of Python calls, JSON that has the name for a value, and a word before it
    _Rule("<", _compile_rule("</?NAME>"), qualified=False),
    _Rule("<", _compile_rule("<NAME>"), qualified=False),
    _Rule("[", _compile_rule(r"\[\s*print\(NAME\s?\(")),
    _Rule("[", _compile_rule(r"\[\s*NAME\s?\(")),
    _Rule(":", _compile_rule(r":\s*[\"']\s*NAME"), whole=False),
    _Rule("C", _compile_rule(r"Call:\s*NAME"), whole=False),
)
_PYTHON: Final = _Rule("\n", _compile_rule(r"\nNAME ?\("), 3, qualified=False)
"""A Python call at the start of a line; the break before it is no part of the mark."""


@lru_cache(maxsize=16)
def _compile(templates: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, list[_Rule]]]:
    """The rules by the character that they begin with, and an expression for where one of them may hold."""
    slots = {"name": f"({_NAME})"}
    rules = [*_GENERAL, _PYTHON, *(_Rule(one[0], re.compile(template_regex(one, slots)), 2) for one in templates)]
    by_head: dict[str, list[_Rule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head, []).append(rule)
    heads = [
        f"{re.escape(head)}(?<=(?={'|'.join(map(_look, group))}){re.escape(head)})" for head, group in by_head.items()
    ]
    return re.compile("|".join(heads)), by_head


def _look(rule: _Rule) -> str:
    return rule.pattern.pattern.replace(f"({_NAME})", _NAME)


class NamedCalls:
    """Finds calls of tools with certain names. ``templates`` are the marks that hold a name, as dialects write them."""

    def __init__(self, names: Iterable[str], templates: tuple[str, ...]) -> None:
        self.names = frozenset(names)
        self._sizes = sorted(set(map(len, self.names)))
        self._firsts = frozenset(name[0] for name in self.names)
        self._candidates, self._rules = _compile(templates)

    def find(self, text: str) -> list[Span]:
        """Every place where a tool is called by its name, in order."""
        plain = text.replace("\\", "") if "\\" in text else text
        if not any(name in plain for name in self.names):
            return []
        found = list(self._find_led(text))
        if (span := self._match([_PYTHON], "\n" + text[:MAX_MATCH], 0)) is not None:
            found.append(Span(0, 0, span.rank, span.end - 1))
        for candidate in find_all(self._candidates, text):
            at = candidate.start()
            if (span := self._match(self._rules[text[at]], text, at)) is not None:
                found.append(span)
        return sorted(found)

    def _match(self, rules: list[_Rule], text: str, at: int) -> Span | None:
        for rule in rules:
            match = rule.pattern.match(text, at, at + MAX_MATCH + WINDOW)
            if match is None:
                continue
            if rule.whole:
                known = self._is_called(match[1]) if rule.qualified else self._is_known(match[1])
                end = match.end() if known else -1
            else:
                end = self._end_of_call(text, match.start(1))
            if end >= 0:
                start = at + 1 if rule is _PYTHON else at
                return Span(start, start, rule.rank, end)
        return None

    def _find_led(self, text: str) -> Iterator[Span]:
        """A name alone at the end of a line, and an object below it."""
        for brace in find_all(_OPENED, text):
            start = max(0, brace.start() - MAX_MATCH)
            before = text[start : brace.start()]
            line = before.rstrip()
            gap = before[len(line) :].lstrip(_BLANKS)
            if not gap.startswith("\n"):
                continue
            # a break ends a line here, and nothing else that counts as white space
            end = brace.start() - len(gap) + 1
            for first in self._list_endings(line[-MAX_MATCH:]):
                at = start + len(line) - first
                yield Span(at, at, 3, end)

    def _list_endings(self, line: str) -> set[int]:
        """How many characters before the end of a line each name begins that ends it; digits may stand behind it."""
        found: set[int] = set()
        least = len(line)
        while least and (line[least - 1] == ":" or line[least - 1].isdecimal()):
            least -= 1
        plain, places = _unescape(line)
        for end in range(len(plain), -1, -1):
            if places[end] < least:
                break
            found.update(
                len(line) - places[end - size]
                for size in self._sizes
                if size <= end and plain[end - size : end] in self.names
            )
        return found

    def _is_known(self, written: str) -> bool:
        return (_ESCAPED.sub("", written) if "\\" in written else written) in self.names

    def _is_called(self, written: str) -> bool:
        """Whether this is a name, perhaps with packages before it."""
        at = 0
        for _ in range(_MOST_SEGMENTS + 1):
            if self._is_known(written[at:]):
                return True
            segment = _SEGMENT.match(written, at)
            if segment is None:
                return False
            at = segment.end()
        return False

    def _end_of_call(self, text: str, at: int) -> int:
        """Where a name that begins here ends, perhaps with packages before it; -1 if none does."""
        starts = [at]
        while len(starts) <= _MOST_SEGMENTS and (segment := _SEGMENT.match(text, starts[-1])) is not None:
            starts.append(segment.end())
        ends = (self._end_of_name(text, start) for start in reversed(starts))
        return next((end for end in ends if end >= 0), -1)

    def _end_of_name(self, text: str, at: int) -> int:
        """Where the shortest name that begins here ends."""
        if text[at : at + 1] not in self._firsts and text[at : at + 1] != "\\":
            return -1
        written = _WRITTEN.match(text, at, at + MAX_MATCH)
        plain, places = _unescape(written[0]) if written is not None else ("", range(1))
        return next(
            (at + places[size] for size in self._sizes if plain[:size] in self.names and size <= len(plain)), -1
        )


def _unescape(written: str) -> tuple[str, range | list[int]]:
    """What was written without the backslashes before underscores, and the place of each character in it."""
    if "\\" not in written:
        return written, range(len(written) + 1)
    plain: list[str] = []
    places: list[int] = []
    at = 0
    for found in _ESCAPED.finditer(written):
        plain.append(written[at : found.start()])
        places += range(at, found.start())
        places.append(found.start())  # the underscore, with its backslashes
        plain.append("_")
        at = found.end() + 1
    plain.append(written[at:])
    return "".join(plain), [*places, *range(at, len(written) + 1)]
