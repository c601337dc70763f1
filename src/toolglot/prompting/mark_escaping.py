"""Escape marks in quoted text, reversibly.

Strategy. A tool result or a user's text may contain marks that the reader would execute if the model repeated them, or
that a chat template takes for its own. The escaper inserts one invisible break character, which occurs nowhere in the
conversation, after the first character of every such mark. Reader and tokenizer then no longer see a mark, and the text
looks the same to the model. Deleting the character from what the model writes (after reading) restores the exact bytes.

All dialects are covered, because the reader reads all of them. Marks that are also ordinary text count only together
with a tool name (``named_calls``). One regular expression for all dialects finds the others, and a small one finds the
closing marks of the prompt's own dialect; none is compiled per tool name. Mark positions are cached per text, because
clients resend their history with every turn.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from itertools import pairwise
from sys import maxsize
from typing import NamedTuple

from toolglot.core.provenance import INVISIBLE
from toolglot.core.windowed_search import MAX_MATCH, WINDOW, find_all, search
from toolglot.dialects.codecs.tagged_parameters import TaggedParameters
from toolglot.dialects.mark_templates import template_regex
from toolglot.dialects.spec import Commitment, Dialect, Position
from toolglot.prompting.named_calls import NAME_LINE, NamedCallFinder, Span
from toolglot.reading.reader import dialect_index

_PRIVATE_USE = (*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE))
_MOST_TEXTS = 1 << 14
"""Texts in the cache of mark positions, over all clients."""
_MOST_POSITIONS = 1 << 19
"""Mark positions in that cache."""
_SHORT = 64
"""Shorter texts are not cached: searching them is as fast as a cache lookup."""

_CHAT_TEMPLATE_MARKS = (
    r"<[|｜](?=[\w/\"▁])",
    r"</?(?:s|bos|eos|start_of_turn|end_of_turn|start_of_image|tool_response|think|thinking)\b",
    r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|ARGS|CALL_ID|TOOL_CONTENT|THINK)\]",
    r"<</?SYS>>",
    r"<arg_key\b",
    r"\]~b\]",
    r"\[e~\[",
)
"""Marks of chat templates, for every dialect."""
_HEAD = re.compile(r"[^{} \n]*")
"""The text at the beginning of a template."""
_PIECE = re.compile(r"\{\{|\}\}|\{\w+\}|[ ]+|.", re.DOTALL)
"""What templates are compared by: a slot, blanks or a character."""
_NOT_LITERAL = "{} \n"

_ROUGH_SLOTS = {"key": r"[^<>\n]{1,128}"}
"""Slots that match more than they do for the reader: their own expressions take long to compile."""
_TOO_COMMON = ("{{", "[{before_object}", "[{before_pair}", "{command}", "<{name}>", "[")
"""Headers and wrappers that are too common to count as marks by themselves."""


def choose_break_character(texts: Iterable[str]) -> str:
    """Choose an invisible break character that occurs in none of the texts.

    If all are taken: a free private-use character, or else the first invisible one.
    """
    candidates = [text for text in texts if not text.isascii()]
    for char in INVISIBLE:
        if not any(char in text for text in candidates):
            return char
    present: set[str] = set().union(*candidates)
    return next((char for char in map(chr, _PRIVATE_USE) if char not in present), INVISIBLE[0])


_NO_POSITIONS = array("Q")
"""The positions in a text without marks, shared by all such texts."""


class PositionCache:
    """Mark positions by the digest of a text. The cache is cleared when it is full."""

    def __init__(self) -> None:
        self._known: dict[bytes, array[int]] = {}
        self._size = 0

    def get(self, digest: bytes) -> array[int] | None:
        return self._known.get(digest)

    def add(self, digest: bytes, found: Iterable[int]) -> array[int]:
        """Store the positions and return them."""
        positions = found if isinstance(found, array) else array("Q", found)
        self._size += len(positions)
        if len(self._known) >= _MOST_TEXTS or self._size > _MOST_POSITIONS:
            self._known, self._size = {}, len(positions)
        if len(positions) <= _MOST_POSITIONS:
            self._known[digest] = positions or _NO_POSITIONS
        return positions


_POSITION_CACHE = PositionCache()


class MarkEscaper:
    """Finds and escapes the marks of all dialects.

    Parameters: ``dialect`` is the dialect of the prompt, whose closing marks count too; ``names`` are the tool names.
    """

    def __init__(self, dialect: str, names: tuple[str, ...]) -> None:
        marks = _compile_marks()
        self._pattern, self._floating = marks.pattern, marks.floating
        self._own = _compile_own_marks(dialect)
        self._names = names
        self._named = NamedCallFinder(names, marks.named)
        self._digest = sha256("\0".join((dialect, *names)).encode("utf-8", "surrogatepass")).digest()

    def has_marks(self, text: str) -> bool:
        return len(self.find_positions(text)) > 0

    def find_positions(self, text: str) -> Sequence[int]:
        """Where the break character belongs: after the first character of every mark."""
        if len(text) < _SHORT:
            return self._search(text)
        digest = sha256(self._digest + text.encode("utf-8", "surrogatepass")).digest()[:16]
        positions = _POSITION_CACHE.get(digest)
        if positions is None:
            positions = self._search(text)
            _POSITION_CACHE.add(digest, positions)
        return positions

    def escape(self, text: str, break_character: str) -> str:
        """Insert the break character after the first character of every mark."""
        positions = self.find_positions(text)
        if not positions:
            return text
        return break_character.join([text[start:end] for start, end in pairwise((0, *positions, len(text)))])

    def _search(self, text: str) -> array[int]:
        """The positions of all marks, from left to right, without marks that begin inside another."""
        positions = array("Q")
        spans = sorted([*self._find_named(text), *self._find_floating(text), *self._find_own(text)])
        at, next_span = 0, 0
        found = self._pattern.search(text) if len(text) <= WINDOW else search(self._pattern, text)
        while True:
            while next_span < len(spans) and spans[next_span].last < at:
                next_span += 1
            span = spans[next_span] if next_span < len(spans) else _NO_SPAN
            start = max(at, span.first)
            rank = 0 if found is not None and found.lastindex is not None else 2
            if found is not None and (found.start(), rank) <= (start, span.rank):
                positions.append(found.start() + 1)
                at = found.end()
            elif span is not _NO_SPAN:
                positions.append(start + 1)
                at = span.end
            else:
                return positions
            if found is not None and found.start() < at:
                found = search(self._pattern, text, at)

    def _find_named(self, text: str) -> Iterable[Span]:
        """Calls that only the tool name gives away."""
        plain = text.replace("\\", "") if "\\" in text else text
        return self._named.find(text) if any([name in plain for name in self._names]) else ()

    def _find_floating(self, text: str) -> Iterator[Span]:
        """Marks that begin with optional whitespace."""
        for literal, pattern in self._floating:
            for found in find_all(pattern, text) if literal in text else ():
                at = found.start()
                before = text[max(0, at - MAX_MATCH) : at]
                yield Span(at - len(before) + len(before.rstrip()), at, 2, found.end())

    def _find_own(self, text: str) -> Iterable[Span]:
        """Marks that count only in the dialect of the prompt."""
        if self._own is None:
            return ()
        matches = self._own.finditer(text) if len(text) <= WINDOW else find_all(self._own, text)
        return (Span(found.start(), found.start(), 2, found.end()) for found in matches)


_NO_SPAN = Span(maxsize, maxsize, 9, maxsize)


@lru_cache(maxsize=64)
def get_mark_escaper(dialect: str, names: tuple[str, ...]) -> MarkEscaper:
    return MarkEscaper(dialect, names)


class _Marks(NamedTuple):
    """The marks of all dialects. In ``pattern`` a match with a group is the mark of a chat template; ``floating`` has a
    literal and a pattern for each mark that begins with whitespace, ``named`` the templates with a tool name."""

    pattern: re.Pattern[str]
    floating: tuple[tuple[str, re.Pattern[str]], ...]
    named: tuple[str, ...]


@cache
def _compile_marks() -> _Marks:
    templates = _list_marks()
    named = tuple(template for template in templates if "{name}" in template and template != NAME_LINE)
    floating = [template.lstrip() for template in templates if template[0].isspace()]
    plain = [template for template in templates if "{name}" not in template and not template[0].isspace()]
    shared = _share_prefixes(template for template in plain if not _is_covered(template))
    return _Marks(
        re.compile("|".join((*(f"{mark}()" for mark in _CHAT_TEMPLATE_MARKS), *shared))),
        tuple(
            (template.partition("{")[0], re.compile(template_regex(template, _ROUGH_SLOTS))) for template in floating
        ),
        named,
    )


@cache
def _compile_own_marks(dialect: str) -> re.Pattern[str] | None:
    """Compile the marks that count only in this dialect; None if it has none."""
    prompted = dialect_index().by_name[dialect]
    results = (result for result in prompted.results if result[0].isalpha())
    own = [template for template in dict.fromkeys((*results, *_closers(prompted))) if len(template.strip()) > 2]
    own = [template for template in own if template not in _list_marks() and not _is_covered(template)]
    return re.compile("|".join(_share_prefixes(own))) if own else None


def _is_covered(template: str) -> bool:
    """Whether each text that a template matches begins with a mark of chat templates, which is tried first. What comes
    after the text at its beginning may be a letter or not."""
    head = _HEAD.match(template)[0]  # type: ignore[index] # it matches every text
    following = (*"x ",) if head != template else ("",)
    return any(all(re.match(mark, head + one) for one in following) for mark in _CHAT_TEMPLATE_MARKS)


def _share_prefixes(templates: Iterable[str], slots: Mapping[str, str] | None = None) -> list[str]:
    """Alternatives with common prefixes factored out, so that the engine checks each piece once. ``slots`` replaces the
    expressions of slots; a slot at the beginning of a mark is matched exactly: it says where the mark begins."""
    groups: dict[str, list[str]] = {}
    for template in templates:
        if not template:
            return [""]
        piece = _PIECE.match(template)[0]  # type: ignore[index] # it matches every text
        groups.setdefault(piece, []).append(template[len(piece) :])
    literal_first = sorted(groups, key=lambda piece: piece[0] in _NOT_LITERAL)
    return [
        (template_regex(piece, slots) if piece[0] in _NOT_LITERAL else re.escape(piece))
        + _alternatives(_share_prefixes(groups[piece], _ROUGH_SLOTS))
        for piece in literal_first
    ]


def _alternatives(alternatives: list[str]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"


@cache
def _list_marks() -> tuple[str, ...]:
    """All marks that may open a call in any dialect, and those around results."""
    found: dict[str, None] = {}
    for spec in dialect_index().dialects:
        results = (result for result in spec.results if not result[0].isalpha())
        regions = (mark for region in spec.regions for mark in (*region.open, *region.close))
        found |= dict.fromkeys((*_wrappers(spec), *_headers(spec), *regions, *results))
    return tuple(template for template in found if len(template.strip()) > 2)


def _wrappers(spec: Dialect) -> Iterator[str]:
    for wrap in spec.wrap:
        if wrap.commitment is Commitment.MARKED or wrap.open[0].startswith("```tool"):
            yield from (opener for opener in wrap.open if not _has_chat_template_mark(opener))


def _headers(spec: Dialect) -> Iterator[str]:
    """The call headers that count outside a wrapper. After an unambiguous mark, any name counts."""
    for call in spec.calls:
        for header in call.header if call.position is not Position.WRAPPED else ():
            if header in _TOO_COMMON or _has_chat_template_mark(header) or spec.commitment is Commitment.ALONE:
                continue
            if spec.commitment is Commitment.MARKED and not header.startswith("{name"):
                header = header.replace("{name}", "{key}").replace("{name_id}", "{id}")
            yield header


def _has_chat_template_mark(header: str) -> bool:
    """Whether the header begins with ordinary text and is a mark only through a chat-template mark inside it, which is
    escaped anyway."""
    return header[0] not in "<[" and any(
        mark in header for mark in ("<|", "[ARGS]", "[TOOL_CALLS]", "{before_arg_key}")
    )


def _closers(spec: Dialect) -> Iterator[str]:
    """The marks that close calls, parameters and results, and those that open parameters."""
    for wrap in spec.wrap:
        yield from wrap.close if wrap.commitment is Commitment.MARKED else ()
    yield from (close for close in spec.call.close if "{key}" not in close and close != "```")
    body = spec.call.body
    if isinstance(body, TaggedParameters) and not body.parameters[0].is_element:
        yield body.parameters[0].open
        yield from (close for close in body.parameters[0].close if close != "</{key}>")
    yield from re.findall(r"<[^<>{}\n]{2,40}>", spec.returns)
