"""Marks and their three-valued matching: match, no match, or more text needed.

Strategy. The regex of every prefix of a mark makes the result ``MORE`` possible without scanning earlier text again.
Regexes are slow to compile, and there is a mark for every tool and parameter, so the fixed letters of a mark are
compared as strings until a regex pays off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property, lru_cache
from itertools import chain
from typing import Final, TypeAlias

from toolglot.core.uncached_regex import compile_uncached
from toolglot.dialects.mark_templates import TOKEN, Node, join_nodes, make_nodes, outline_regex, prefix_regex


class _More(Enum):
    MORE = "more"


MORE: Final = _More.MORE

_SLOT_FIRST_CHARACTERS = {"marker": r"\w\-", "ns": r"\w\-", "name": r"\w.\-/\\", "bar": "|｜‖"}
"""First characters of slots that follow the first character of a mark, as the inside of a class."""


@lru_cache(maxsize=1024)
def _nodes_behind(template: str) -> tuple[Node, ...]:
    """What follows the first character of a template."""
    return tuple(make_nodes(template, False)[1:])


_NEVER = re.compile("(?!)")
_EVERYTHING = re.compile("(?s:.*)")
_FEW = 4
"""Up to this number, spellings are tried one by one."""
_MANY = 1 << 7
"""After this number of attempts, compiling a regex pays off."""

Match: TypeAlias = re.Match[str]
MatchResult: TypeAlias = "Match | None | _More"

_MAX_MARK = 512
"""Maximum length of a mark, whitespace included; no more text is awaited."""


class Mark:
    """One or more spellings of a mark, tried in order.

    Regexes are compiled on first use: most marks belong to dialects that an answer does not use.
    """

    def __init__(self, *templates: str, named: bool = True) -> None:
        self.templates = templates
        self.heads = frozenset(template.lstrip()[:1] for template in templates)
        self._named = named
        self._starts = _first_characters(templates)
        self._never_seen = True
        """Nothing that begins like the mark has been seen yet, so no regex was needed."""
        self._looks = 0
        self._begins: Callable[[str, int], object] = self._try_each
        """Whether the text from an offset on is a prefix of the mark, or all of it."""

    @cached_property
    def _fulls(self) -> tuple[re.Pattern[str], ...]:
        if self._named:
            return tuple(map(_compile_full, self.templates))
        return (_compile_unnamed(self.templates),)

    def at(self, text: str, pos: int, final: bool) -> MatchResult:
        """Return the match at ``pos``, None, or MORE while the text is still a prefix of the mark."""
        if self._starts is not _ANYTHING and text[pos : pos + 1] not in self._starts:
            return None
        if self._never_seen:
            self._looks += 1
            if self._looks < _MANY and not any(_letters_agree(template, text, pos) for template in self.templates):
                return None
            self._never_seen = False
        if not final and len(text) - pos < _MAX_MARK and self._begins(text, pos):
            return MORE
        return self.match(text, pos)

    def _try_each(self, text: str, pos: int) -> object:
        """The same without a regex for this mark alone, for the first attempts."""
        self._looks += 1
        if self._looks > _MANY or len(self.templates) > _FEW:
            self._begins = _compile_prefixes(self.templates).match
            return self._begins(text, pos)
        return any(_is_prefix(template, text, pos) for template in self.templates)

    @cached_property
    def _letters(self) -> Sequence[tuple[str, ...]]:
        """The letters of every spelling, if none has anything else."""
        split = [_split(template) for template in self.templates]
        return () if any(rest for _, rest in split) else [letters for letters, _ in split]

    def match(self, text: str, pos: int) -> Match | None:
        """Return the match at ``pos``, whatever may follow."""
        if self._looks < _MANY and self._letters:
            self._looks += 1
            for letters in self._letters:
                end = _match_all_letters(letters, text, pos)
                if end is not None and end - pos <= _MAX_MARK:
                    return _EVERYTHING.match(text, pos, end)
            return None
        for full in self._fulls:
            found = full.match(text, pos, pos + _MAX_MARK)
            if found is not None:
                return found
        return None

    @cached_property
    def stops(self) -> re.Pattern[str]:
        """Regex of where the mark may begin, from its first characters."""
        return compile_stops(find_stops(self.templates, 2))

    def begins(self, text: str, pos: int) -> bool:
        """Whether the text from ``pos`` to its end is a prefix of the mark (at least two characters)."""
        return len(text) - pos >= 2 and bool(self._begins(text, pos))

    def __repr__(self) -> str:
        return f"Mark({', '.join(map(repr, self.templates))})"


class _IndexedMark(Mark):
    """A few spellings of an index. For the first attempts its matches begin after the letters of a name, so that all
    names share the regex of what follows them."""

    def match(self, text: str, pos: int) -> Match | None:
        if self._looks >= _MANY:
            return super().match(text, pos)
        for template in self.templates:
            letters, rest = _split(template)
            end = _match_all_letters(letters, text, pos)
            found = _compile_unnamed((rest,)).match(text, end, pos + _MAX_MARK) if end is not None else None
            if found is not None:
                return found
        return None


class MarkIndex:
    """A mark with many spellings, one per name, indexed by their first characters.

    A regex of many names is slow to compile, so spellings with a common prefix have an index of their own.
    """

    __slots__ = ("_depth", "_heads", "_loose", "_marks")

    def __init__(self, *templates: str, depth: int = 2) -> None:
        filed: dict[str, list[str]] = {}
        for template in templates:
            filed.setdefault(_index_key(template, depth), []).append(template)
        loose = filed.pop("", ())
        self._depth = depth
        self._marks: dict[str, Mark | MarkIndex] = {key: _index(group) for key, group in filed.items()}
        self._heads = frozenset(key[:size] for key in filed for size in range(depth))
        self._loose = _IndexedMark(*loose, named=False) if loose else None

    def at(self, text: str, pos: int, final: bool) -> MatchResult:
        """Return the match at ``pos``, None, or MORE while the text is still a prefix of the mark."""
        key = text[pos : pos + self._depth]
        if len(key) < self._depth and not final and key in self._heads:
            return MORE
        mark = self._marks.get(key)
        found = mark.at(text, pos, final) if mark is not None else None
        if found is MORE or self._loose is None:
            return found
        other = self._loose.at(text, pos, final)
        return other if found is None or other is MORE else found


def _index(templates: Sequence[str]) -> Mark | MarkIndex:
    """Index spellings with a common prefix: one mark, or a nested index if they are many."""
    shortest = min(map(len, templates))
    alike = next((at for at in range(shortest) if len({template[at] for template in templates}) > 1), shortest)
    if len(templates) <= _FEW or not any(_index_key(template, alike + 1) for template in templates):
        return _IndexedMark(*templates, named=False)
    return MarkIndex(*templates, depth=alike + 1)


def _is_prefix(template: str, text: str, pos: int) -> bool:
    """Whether the text from ``pos`` to its end is a prefix of the template that can go on.

    Only what follows its leading letters is compiled: these contain most names of tools and parameters.
    """
    letters, rest = _split(template)
    end = _match_letters(letters, text, pos)
    if end is None or end is MORE:
        return end is MORE and (rest != "" or _match_all_letters(letters, text, pos) is None)
    return rest != "" and _compile_prefixes((rest,)).match(text, end) is not None


def _letters_agree(template: str, text: str, pos: int) -> bool:
    """Whether the text at ``pos`` matches the leading letters of the template."""
    return _match_letters(_split(template)[0], text, pos) is not None


def _match_letters(letters: tuple[str, ...], text: str, pos: int) -> int | None | _More:
    """Return the end of the letters at ``pos``, blanks between them allowed; MORE if the text ends first."""
    size = len(text)
    for number, piece in enumerate(letters):
        if number:
            while pos < size and text[pos].isspace():
                pos += 1
        end = pos + len(piece)
        if end >= size:
            return MORE if piece.startswith(text[pos:]) else None
        if not text.startswith(piece, pos):
            return None
        pos = end
    return pos


def _match_all_letters(letters: tuple[str, ...], text: str, pos: int) -> int | None:
    """Return the end of the letters, if all of them are at ``pos``."""
    for number, piece in enumerate(letters):
        if number:
            while text[pos : pos + 1].isspace():
                pos += 1
        if not text.startswith(piece, pos):
            return None
        pos += len(piece)
    return pos


_LETTERS = re.compile(r"[^{}\n]*[^{}\n ]|")


@lru_cache(maxsize=1024)
def _split(template: str) -> tuple[tuple[str, ...], str]:
    """Split a template into its leading letters (up to the first slot or line break, split at blanks) and the rest."""
    found = _LETTERS.match(template)
    letters = found[0] if found is not None else ""
    return tuple(re.split(" +", letters)) if letters else (), template[len(letters) :]


@lru_cache(maxsize=1024)
def _compile_full(template: str) -> re.Pattern[str]:
    return compile_uncached(join_nodes(make_nodes(template, True)))


@lru_cache(maxsize=1024)
def _compile_unnamed(templates: tuple[str, ...]) -> re.Pattern[str]:
    return compile_uncached("|".join(join_nodes(make_nodes(template, False)) for template in templates))


@lru_cache(maxsize=1024)
def _compile_prefixes(templates: tuple[str, ...]) -> re.Pattern[str]:
    if not templates:
        return _NEVER
    return compile_uncached(prefix_regex([make_nodes(template, False) for template in templates]))


@lru_cache(maxsize=1024)
def mark(templates: tuple[str, ...]) -> Mark:
    """Return the mark of these spellings; cached."""
    return Mark(*templates)


class _MarkGroup:
    """The spellings of a choice that share their first characters, as one regex.

    It is compiled as soon as some text begins like one of them, or after many lookups.
    """

    __slots__ = ("_looks", "full", "groups", "prefixes", "spellings")

    def __init__(self, entries: Sequence[tuple[int, str]]) -> None:
        self.groups = tuple(group for group, _ in entries)
        self.spellings = tuple(spelling for _, spelling in entries)
        self.full: re.Pattern[str] | None = None
        """For the marks."""
        self.prefixes: re.Pattern[str] | None = None
        """For their prefixes; compiled when one is looked for, which a whole answer does not need."""
        self._looks = 0

    def compile(self, text: str, pos: int) -> re.Pattern[str] | None:
        """Compile the regex of the marks, if one of the spellings may be at ``pos``; else None."""
        self._looks += 1
        if self._looks < _MANY and not any(_letters_agree(spelling, text, pos) for spelling in self.spellings):
            return None
        marks = [make_nodes(spelling, False) for spelling in self.spellings]
        # an empty group after each mark identifies it without hiding its first characters from the regex engine
        self.full = compile_uncached("|".join(f"{join_nodes(nodes)}()" for nodes in marks))
        return self.full

    def compile_prefixes(self) -> re.Pattern[str]:
        self.prefixes = compile_uncached(prefix_regex([make_nodes(spelling, False) for spelling in self.spellings]))
        return self.prefixes


class MarkChoice:
    """Matches many marks at once; the result is the index of the one found.

    Only templates that fit the first two characters are tried, so text that merely resembles a mark is cheap.
    """

    __slots__ = ("_filed", "_files", "_made", "heads", "marks", "starts")

    def __init__(self, groups: Sequence[tuple[str, ...]]) -> None:
        self.marks = groups
        self.heads = frozenset(spelling.lstrip()[:1] for group in groups for spelling in group)
        self.starts = _first_characters(chain.from_iterable(groups))
        """The characters that a mark can begin with, and the end of the text."""
        self._filed: dict[str, list[tuple[int, str]]] = {}
        for index, group in enumerate(groups):
            for spelling in group:
                self._filed.setdefault(_index_key(spelling), []).append((index, spelling))
        self._files: dict[str, tuple[_MarkGroup, ...]] = {}
        self._made: dict[tuple[tuple[int, str], ...], _MarkGroup] = {}

    def _find_files(self, key: str) -> tuple[_MarkGroup, ...]:
        """Return the templates that fit the two characters: those that begin with them, and those that may, which are
        the same for many other characters."""
        fixed = tuple(self._filed.get(key, ()) if key else ())
        loose = tuple(entry for entry in self._filed.get("", ()) if not key or _may_begin_with(entry[1], key))
        return tuple(self._made.setdefault(entries, _MarkGroup(entries)) for entries in (fixed, loose) if entries)

    def _look_up(self, key: str) -> tuple[_MarkGroup, ...]:
        if key not in self._filed and (len(key) < 2 or not key.isascii()):
            key = ""  # too many keys to cache
        found = self._files.get(key)
        if found is None:
            found = self._files[key] = self._find_files(key)
        return found

    def at(self, text: str, pos: int, final: bool) -> int | None | _More:
        """Return the index of the group at ``pos``, None, or MORE."""
        if self.starts is not _ANYTHING and text[pos : pos + 1] not in self.starts:
            return None
        rest = len(text) - pos
        if rest < 2 and not final:
            return MORE if rest < 1 or text[pos] in self.heads or "" in self._filed else None
        return self._find(text, pos, not final and rest < _MAX_MARK)[0]

    def _find(self, text: str, pos: int, may_go_on: bool) -> tuple[int | None | _More, int]:
        """Return the index of the first group at ``pos``, and its end."""
        first, end = None, pos
        key = text[pos : pos + 2]
        for file in self._files.get(key) or self._look_up(key):
            full = file.full or file.compile(text, pos)
            if full is None:
                continue
            if may_go_on and (file.prefixes or file.compile_prefixes()).match(text, pos) is not None:
                return MORE, pos
            found = full.match(text, pos, pos + _MAX_MARK)
            if found is not None and found.lastindex:
                group = file.groups[found.lastindex - 1]
                if first is None or group < first:
                    first, end = group, found.end()
        return first, end

    def size(self, text: str, pos: int) -> int:
        """Return the length of the mark at ``pos``, 0 if there is none."""
        return self._find(text, pos, False)[1] - pos


def find_stops(spellings: Iterable[str], depth: int) -> dict[str, str]:
    """Map the first characters of marks to the regex of what must follow, ``depth`` pieces deep."""
    following: dict[str, list[str]] = {}
    for spelling in spellings:
        following.setdefault(spelling[:1], []).append(spelling)
    return {head: _outline_behind(tuple(group), depth) for head, group in following.items()}


@lru_cache(maxsize=1024)
def _outline_behind(spellings: tuple[str, ...], depth: int) -> str:
    """Outline what follows the first character. Cached: most marks do not depend on the tools."""
    return outline_regex([_nodes_behind(spelling) for spelling in spellings], depth)


def compile_stops(stops: Mapping[str, str]) -> re.Pattern[str]:
    """Compile one regex for characters that count only before certain text; text without any is skipped fast."""
    conditions = "|".join(f"(?<={re.escape(head)}){following}" for head, following in stops.items())
    return compile_uncached(f"[{re.escape(''.join(stops))}](?:{conditions})")


class _Everything(frozenset[str]):
    def __contains__(self, item: object) -> bool:
        return True


_ANYTHING = _Everything()


def _first_characters(spellings: Iterable[str]) -> frozenset[str]:
    """First characters of the spellings, and "" for the end of the text; anything, unless all begin with a fixed
    one."""
    heads = [spelling[:2] for spelling in spellings]
    if any(head[:1] in ("", "{", " ", "\n") and head != "{{" for head in heads):
        return _ANYTHING
    return frozenset(("", *(head[0] for head in heads)))


def _second_character(spelling: str) -> str:
    """The possible second characters of a spelling, as the inside of a class; "" if unknown."""
    token = TOKEN.match(spelling, 2 if spelling[:2] in ("{{", "}}") else 1)
    if token is None or token[0].isspace():
        return ""
    return _SLOT_FIRST_CHARACTERS.get(token[1], "") if token[1] else re.escape(token[0][0])


def _may_begin_with(spelling: str, key: str) -> bool:
    """Whether a spelling without two fixed first characters may begin with the two of ``key``."""
    if spelling[0] in "{ \n":
        return True
    second = _second_character(spelling)
    return key[0] == spelling[0] and (not second or re.match(f"[{second}]", key[1]) is not None)


def _index_key(spelling: str, depth: int = 2) -> str:
    """The fixed first characters of a spelling as its index key; "" if it has fewer than ``depth``."""
    head = spelling[:depth]
    return "" if len(head) < depth or "{" in head or " " in head or "\n" in head else head
