"""Marks, and three-valued matching of them: a mark stands here, or it does not, or more text is needed to know.

Strategy. The expression for every beginning of a mark is what makes the answer "need more" possible without looking at
earlier text again. Expressions take long to compile, and there is a mark for every tool and parameter, so letters are
compared as they are until an expression pays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property, lru_cache
from itertools import chain
from typing import Final, TypeAlias

from toolglot.dialects.mark_templates import TOKEN, Node, join_nodes, make_nodes, outline_regex, prefix_regex


class _More(Enum):
    MORE = "more"


MORE: Final = _More.MORE

_SLOT_FIRST_CHARACTERS = {"marker": r"\w\-", "ns": r"\w\-", "name": r"\w.\-/\\", "bar": "|｜‖"}
"""What a slot may begin with, for slots that follow the first character of a mark."""


@lru_cache(maxsize=1024)
def _nodes_behind(template: str) -> tuple[Node, ...]:
    """What follows the first character of a template."""
    return tuple(make_nodes(template, False)[1:])


_NEVER = re.compile("(?!)")
_FEW = 4
"""So many spellings are tried one by one."""
_MANY = 1 << 7
"""After so many looks it pays to compile an expression."""

Match: TypeAlias = re.Match[str]
MatchResult: TypeAlias = "Match | None | _More"

_MAX_MARK = 512
"""A mark, blanks included, is at most this long; more is never waited for."""


class Mark:
    """One or more spellings of a mark, tried in order.

    Expressions are compiled when they are first needed: most marks belong to dialects that an answer does not use.
    """

    def __init__(self, *templates: str, named: bool = True) -> None:
        self.templates = templates
        self.heads = frozenset(template.lstrip()[:1] for template in templates)
        self._named = named
        self._starts = _first_characters(templates)
        self._unmet = True
        """Nothing that begins like the mark has been seen yet, so there was no need for expressions."""
        self._looks = 0
        self._begins: Callable[[str, int], object] = self._try_each
        """Whether the text from a place on is a beginning of the mark, or all of it."""

    @cached_property
    def _fulls(self) -> tuple[re.Pattern[str], ...]:
        if self._named:
            return tuple(map(_compile_full, self.templates))
        return (_compile_unnamed(self.templates),)

    def at(self, text: str, pos: int, final: bool) -> MatchResult:
        """The match at ``pos``, or None, or MORE while the text is still a beginning of the mark."""
        if self._starts is not _ANYTHING and text[pos : pos + 1] not in self._starts:
            return None
        if self._unmet:
            self._looks += 1
            if self._looks < _MANY and not any(_letters_agree(template, text, pos) for template in self.templates):
                return None
            self._unmet = False
        if not final and len(text) - pos < _MAX_MARK and self._begins(text, pos):
            return MORE
        return self.match(text, pos)

    def _try_each(self, text: str, pos: int) -> object:
        """The same without an expression for this mark alone, until there were many looks."""
        self._looks += 1
        if self._looks > _MANY or len(self.templates) > _FEW:
            self._begins = _compile_prefixes(self.templates).match
            return self._begins(text, pos)
        return any(_is_prefix(template, text, pos) for template in self.templates)

    def match(self, text: str, pos: int) -> Match | None:
        """The match at ``pos``, whatever may follow."""
        for full in self._fulls:
            found = full.match(text, pos, pos + _MAX_MARK)
            if found is not None:
                return found
        return None

    @cached_property
    def stops(self) -> re.Pattern[str]:
        """Where the mark may begin, as its first characters tell."""
        return compile_stops(find_stops(self.templates, 2))

    def begins(self, text: str, pos: int) -> bool:
        """Whether the text from ``pos`` to its end is a beginning of the mark (at least two characters)."""
        return len(text) - pos >= 2 and bool(self._begins(text, pos))

    def __repr__(self) -> str:
        return f"Mark({', '.join(map(repr, self.templates))})"


class _IndexedMark(Mark):
    """A few spellings of an index. Until there were many looks its matches begin behind the letters of a name, so that
    all names share the expression of what follows them."""

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
    """A mark with many spellings, one for each of many names, found by the characters that they begin with.

    An expression of many names takes long to compile, so that spellings which begin alike have an index of their own.
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
        """The match at ``pos``, or None, or MORE while the text is still a beginning of the mark."""
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
    """Spellings that begin alike: one mark, or an index of what follows if they are many."""
    shortest = min(map(len, templates))
    alike = next((at for at in range(shortest) if len({template[at] for template in templates}) > 1), shortest)
    if len(templates) <= _FEW or not any(_index_key(template, alike + 1) for template in templates):
        return _IndexedMark(*templates, named=False)
    return MarkIndex(*templates, depth=alike + 1)


def _is_prefix(template: str, text: str, pos: int) -> bool:
    """Whether the text from ``pos`` to its end is a beginning of the template, or all of it.

    Only what follows the letters that it begins with is compiled: most names of tools and parameters stand in those.
    """
    letters, rest = _split(template)
    end = _match_letters(letters, text, pos)
    if end is None or end is MORE:
        return end is MORE
    return rest != "" and _compile_prefixes((rest,)).match(text, end) is not None


def _letters_agree(template: str, text: str, pos: int) -> bool:
    """Whether the text at ``pos`` is like the template, as far as that is letters."""
    return _match_letters(_split(template)[0], text, pos) is not None


def _match_letters(letters: tuple[str, ...], text: str, pos: int) -> int | None | _More:
    """Where the letters end that stand at ``pos``, perhaps with blanks between them; MORE if the text ends there."""
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
    """Where the letters end, if all of them stand at ``pos``."""
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
    """The letters that a template begins with, before its first slot or line break, split at blanks; and the rest."""
    found = _LETTERS.match(template)
    letters = found[0] if found is not None else ""
    return tuple(re.split(" +", letters)) if letters else (), template[len(letters) :]


@lru_cache(maxsize=1024)
def _compile_full(template: str) -> re.Pattern[str]:
    return re.compile(join_nodes(make_nodes(template, True)))


@lru_cache(maxsize=1024)
def _compile_unnamed(templates: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(join_nodes(make_nodes(template, False)) for template in templates))


@lru_cache(maxsize=1024)
def _compile_prefixes(templates: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(prefix_regex([make_nodes(template, False) for template in templates])) if templates else _NEVER


@lru_cache(maxsize=1024)
def mark(templates: tuple[str, ...]) -> Mark:
    """The mark of these spellings, compiled once."""
    return Mark(*templates)


class _MarkGroup:
    """Spellings of a choice that may stand where a text begins with certain characters, as one expression.

    It is compiled as soon as something begins like one of them, or was looked up often.
    """

    __slots__ = ("_looks", "expressions", "groups", "spellings")

    def __init__(self, entries: Sequence[tuple[int, str]]) -> None:
        self.groups = tuple(group for group, _ in entries)
        self.spellings = tuple(spelling for _, spelling in entries)
        self.expressions: tuple[re.Pattern[str], re.Pattern[str]] | None = None
        """For the marks and for their beginnings."""
        self._looks = 0

    def compile(self, text: str, pos: int) -> tuple[re.Pattern[str], re.Pattern[str]] | None:
        """The expressions, if one of the spellings can stand at ``pos``."""
        self._looks += 1
        if self._looks < _MANY and not any(_letters_agree(spelling, text, pos) for spelling in self.spellings):
            return None
        marks = [make_nodes(spelling, False) for spelling in self.spellings]
        # an empty group behind each mark tells which one it was, and does not hide its beginning from the engine
        full = "|".join(f"{join_nodes(nodes)}()" for nodes in marks)
        self.expressions = re.compile(full), re.compile(prefix_regex(marks))
        return self.expressions


class MarkChoice:
    """Many marks at once; the answer says which one it was.

    Only templates that fit the first two characters are tried, so that text which only looks like a mark costs little.
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
        """The templates that fit the two characters: those that begin with them, and those that may, which are the same
        for many other characters."""
        fixed = tuple(self._filed.get(key, ()) if key else ())
        loose = tuple(entry for entry in self._filed.get("", ()) if not key or _may_begin_with(entry[1], key))
        return tuple(self._made.setdefault(entries, _MarkGroup(entries)) for entries in (fixed, loose) if entries)

    def _look_up(self, key: str) -> tuple[_MarkGroup, ...]:
        if key not in self._filed and (len(key) < 2 or not key.isascii()):
            key = ""  # there are too many of them
        found = self._files.get(key)
        if found is None:
            found = self._files[key] = self._find_files(key)
        return found

    def at(self, text: str, pos: int, final: bool) -> int | None | _More:
        """The index of the group that stands at ``pos``, None, or MORE."""
        if self.starts is not _ANYTHING and text[pos : pos + 1] not in self.starts:
            return None
        rest = len(text) - pos
        if rest < 2 and not final:
            return MORE if rest < 1 or text[pos] in self.heads or "" in self._filed else None
        return self._find(text, pos, not final and rest < _MAX_MARK)[0]

    def _find(self, text: str, pos: int, may_go_on: bool) -> tuple[int | None | _More, int]:
        """The index of the first group that stands at ``pos``, and where it ends."""
        first, end = None, pos
        key = text[pos : pos + 2]
        for file in self._files.get(key) or self._look_up(key):
            expressions = file.expressions or file.compile(text, pos)
            if expressions is None:
                continue
            if may_go_on and expressions[1].match(text, pos) is not None:
                return MORE, pos
            found = expressions[0].match(text, pos, pos + _MAX_MARK)
            if found is not None and found.lastindex:
                group = file.groups[found.lastindex - 1]
                if first is None or group < first:
                    first, end = group, found.end()
        return first, end

    def size(self, text: str, pos: int) -> int:
        """How long the mark at ``pos`` is; 0 when there is none."""
        return self._find(text, pos, False)[1] - pos


def find_stops(spellings: Iterable[str], depth: int) -> dict[str, str]:
    """The characters where some marks may begin, and the expression of what must follow, that many pieces deep."""
    following: dict[str, list[str]] = {}
    for spelling in spellings:
        following.setdefault(spelling[:1], []).append(spelling)
    return {head: _outline_behind(tuple(group), depth) for head, group in following.items()}


@lru_cache(maxsize=1024)
def _outline_behind(spellings: tuple[str, ...], depth: int) -> str:
    """The outline of what follows the first character; most characters begin the same marks whatever the tools are."""
    return outline_regex([_nodes_behind(spelling) for spelling in spellings], depth)


def compile_stops(stops: Mapping[str, str]) -> re.Pattern[str]:
    """One expression for characters that count only before what follows them; text without any is passed quickly."""
    conditions = "|".join(f"(?<={re.escape(head)}){following}" for head, following in stops.items())
    return re.compile(f"[{re.escape(''.join(stops))}](?:{conditions})")


class _Everything(frozenset[str]):
    def __contains__(self, item: object) -> bool:
        return True


_ANYTHING = _Everything()


def _first_characters(spellings: Iterable[str]) -> frozenset[str]:
    """What some spellings can begin with, and the end of the text: anything, unless all begin with a character."""
    heads = [spelling[:2] for spelling in spellings]
    if any(head[:1] in ("", "{", " ", "\n") and head != "{{" for head in heads):
        return _ANYTHING
    return frozenset(("", *(head[0] for head in heads)))


def _second_character(spelling: str) -> str:
    """What the second character of a spelling may be, as the inside of a class; nothing when that is not known."""
    token = TOKEN.match(spelling, 2 if spelling[:2] in ("{{", "}}") else 1)
    if token is None or token[0].isspace():
        return ""
    return _SLOT_FIRST_CHARACTERS.get(token[1], "") if token[1] else re.escape(token[0][0])


def _may_begin_with(spelling: str, key: str) -> bool:
    """Whether a spelling that does not begin with two fixed characters may begin with the two of ``key``."""
    if spelling[0] in "{ \n":
        return True
    second = _second_character(spelling)
    return key[0] == spelling[0] and (not second or re.match(f"[{second}]", key[1]) is not None)


def _index_key(spelling: str, depth: int = 2) -> str:
    """The characters under which a spelling is filed; none when it does not begin with so many fixed ones."""
    head = spelling[:depth]
    return "" if len(head) < depth or "{" in head or " " in head or "\n" in head else head
