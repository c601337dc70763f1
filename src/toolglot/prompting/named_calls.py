r"""Find calls in text that only the tool name gives away, without an unambiguous mark.

Strategy. Every client offers other tools, and a regular expression with their names would have to be compiled for each
client. So the expressions here match any name, are compiled once, and the matched name is looked up. Models escape
underscores in names as in Markdown (``read\_file``) and put package names in front (``functions.read_file``).
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
_ESCAPED: Final = re.compile(r"(?<!\\)\\++(?=_)")
_OPENED: Final = re.compile(r"\{(?=\s*[\"'}])")
_BLANKS: Final = " \t\r"
NAME_LINE: Final = "{name}\n{before_quoted}"
"""The only mark that begins with the name: a line with the name, then an object."""


class Span(NamedTuple):
    """A mark that begins anywhere from ``first`` to ``last``. At the same position, the lower rank wins."""

    first: int
    last: int
    rank: int
    end: int


class _Rule(NamedTuple):
    """A pattern that begins with ``head`` and captures a name. ``whole``: the capture must be a tool name, not only
    begin with one. ``qualified``: package names may precede the tool name."""

    head: str
    pattern: re.Pattern[str]
    rank: int = 1
    whole: bool = True
    qualified: bool = True


def _compile_rule(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("NAME", f"({_NAME})"))


_GENERAL: Final = (
    # a tag named like a tool, a list of Python calls, JSON with the name as a value, and "Call:" before the name
    _Rule("<", _compile_rule("</?NAME>"), qualified=False),
    _Rule("<", _compile_rule("<NAME>"), qualified=False),
    _Rule("[", _compile_rule(r"\[\s*print\(NAME\s?\(")),
    _Rule("[", _compile_rule(r"\[\s*NAME\s?\(")),
    _Rule(":", _compile_rule(r":\s*[\"']\s*NAME"), whole=False),
    _Rule("C", _compile_rule(r"Call:\s*NAME"), whole=False),
)
_PYTHON: Final = _Rule("\n", _compile_rule(r"\nNAME ?\("), 3, qualified=False)
"""A Python call at the start of a line; the line break before it is not part of the mark."""


@lru_cache(maxsize=16)
def _compile(templates: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, list[_Rule]]]:
    """The rules by their first character, and a pattern for the positions where one of them may match."""
    slots = {"name": f"({_NAME})"}
    rules = [*_GENERAL, _PYTHON, *(_Rule(one[0], re.compile(template_regex(one, slots)), 2) for one in templates)]
    by_head: dict[str, list[_Rule]] = {}
    for rule in rules:
        by_head.setdefault(rule.head, []).append(rule)
    heads = [
        f"{re.escape(head)}(?<=(?={'|'.join(map(_without_group, group))}){re.escape(head)})"
        for head, group in by_head.items()
    ]
    return re.compile("|".join(heads)), by_head


def _without_group(rule: _Rule) -> str:
    return rule.pattern.pattern.replace(f"({_NAME})", _NAME)


class NamedCallFinder:
    """Finds calls to tools with these names. ``templates`` are the mark templates of dialects that contain a name."""

    def __init__(self, names: Iterable[str], templates: tuple[str, ...]) -> None:
        self.names = frozenset(names)
        self._sizes = sorted(set(map(len, self.names)))
        self._firsts = frozenset(name[0] for name in self.names)
        self._candidates, self._rules = _compile(templates)

    def find(self, text: str) -> list[Span]:
        """Every call by name, in order."""
        found = list(self._find_name_lines(text))
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

    def _find_name_lines(self, text: str) -> Iterator[Span]:
        """Names at the end of a line, followed by an object on the next."""
        for brace in find_all(_OPENED, text):
            start = max(0, brace.start() - MAX_MATCH)
            before = text[start : brace.start()]
            line = before.rstrip()
            gap = before[len(line) :].lstrip(_BLANKS)
            if not gap.startswith("\n"):
                continue
            # only a line feed ends the line here, not other whitespace
            end = brace.start() - len(gap) + 1
            for first in self._list_endings(line[-MAX_MATCH:]):
                at = start + len(line) - first
                yield Span(at, at, 3, end)

    def _list_endings(self, line: str) -> set[int]:
        """The distance from the end of the line to the start of each name that ends it; digits may follow the name."""
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
        """Whether this is a tool name, optionally qualified by packages."""
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
        """The end of the optionally qualified tool name at this position, or -1."""
        starts = [at]
        while len(starts) <= _MOST_SEGMENTS and (segment := _SEGMENT.match(text, starts[-1])) is not None:
            starts.append(segment.end())
        ends = (self._end_of_name(text, start) for start in reversed(starts))
        return next((end for end in ends if end >= 0), -1)

    def _end_of_name(self, text: str, at: int) -> int:
        """The end of the shortest tool name at this position, or -1."""
        if text[at : at + 1] not in self._firsts and text[at : at + 1] != "\\":
            return -1
        written = _WRITTEN.match(text, at, at + MAX_MATCH)
        plain, places = _unescape(written[0]) if written is not None else ("", range(1))
        return next(
            (at + places[size] for size in self._sizes if plain[:size] in self.names and size <= len(plain)), -1
        )


def _unescape(written: str) -> tuple[str, range | list[int]]:
    """The text without backslashes before underscores, and the original position of each character."""
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
