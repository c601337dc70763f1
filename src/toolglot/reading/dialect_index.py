"""Index of all dialects: every mark that may open, close or follow a call, compiled for one lookup.

Strategy. The dialect records are split up here. Wrappers, headers, regions, results and noise become choices that the
state machine matches at one position of the text; ``select`` combines the wrapper and the header that were found and
returns their dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from toolglot.core.globs import matches_glob
from toolglot.dialects.patterns import Mark, MarkChoice, MarkIndex, compile_stops, find_stops
from toolglot.dialects.spec import CallSyntax, Commitment, Dialect, Position, Region, Wrap

Header: TypeAlias = str
Opening: TypeAlias = "Region | Wrap | Header"
T = TypeVar("T", bound=Opening)

ELEMENT: Header = "<{name}>"
CLOSED_ELEMENT: Header = "<{name}{attributes}/>{before_end}"
ELEMENTS: tuple[Header, ...] = (ELEMENT, CLOSED_ELEMENT)
"""Headers of dialects that use the tool's name as a tag; they open a call only for known tools."""

_SNAKE: Header = "<{snake}> <{key}>"
"""A tag that looks like a tool name, followed by what looks like its first parameter."""

COMMAND: Header = "{command}"
"""The header of a shell command: it matches any line, so it counts only in its own wrapper."""

_MAX_NAME = 160
"""The longest name that the placeholders for names match."""

_ROUGH_USES = 8
"""How many answers with the same tools are read before compiling expressions for these tools pays off. One request may
count several times: its examples are proved by reading them, and recovery reads further answers."""
_ANYTHING = re.compile(r"(?=\S)")
_NEAR, _FAR = 2, 4
"""How many characters after the first one are checked to rule out a mark."""

STRAY_THINKING = Mark(
    "</think{ing}>{before_break}",
    "</think{ing}>{before_mark}",
    "<|END_THINKING|>",
    "[/THINK]",
    "</seed:think>",
    "</mm:think>",
    "</ifm|think>",
    "<|inner_suffix|>",
    "<|plamo:end_think:plamo|>",
    named=False,
)
"""The end of thinking that began in the prompt. One that text may contain counts at the end of its line, or right
before a mark."""

BARE_JSON: tuple[Header, ...] = ("{{", "[{before_object}", "[{before_pair}")
"""Headers of calls that are nothing but JSON; such text is an example as often as a call."""

AMBIGUOUS: tuple[Header, ...] = (*BARE_JSON, CLOSED_ELEMENT)
"""Headers of text that is an example as often as a call: JSON, and elements that may be HTML."""


def _mark_names(names: tuple[str, ...]) -> MarkIndex | None:
    """Match the known tool names at the start of a line, also with other separators between their parts."""
    spelled = tuple(prefix + _respell(name) for name in _writable(names) for prefix in ("", "functions."))
    return MarkIndex(*spelled) if spelled else None


def _mark_elements(names: tuple[str, ...], unknown: bool) -> MarkIndex | None:
    """Match the tags of known tools; with ``unknown`` also tags that look like a tool."""
    spelled = [header.replace("{name}", _literal(name)) for name in _writable(names) for header in ELEMENTS]
    if unknown:
        spelled.append(_SNAKE)
    return MarkIndex(*spelled) if spelled else None


def _begin_names(names: tuple[str, ...], depth: int) -> Iterable[str]:
    """The first characters of the known names, as many as are checked."""
    spelled = (prefix + name.replace(" ", "") for name in _writable(names) for prefix in ("", "functions."))
    return dict.fromkeys(_respell(spelling[: depth + 1]) for spelling in spelled)


def _begin_elements(names: tuple[str, ...], unknown: bool, depth: int) -> Iterable[str]:
    """The first characters of the tags of known tools."""
    tags = dict.fromkeys(f"<{_literal(name)}"[: depth + 1] for name in _writable(names))
    return (*tags, _SNAKE) if unknown else tags


def _begin_lists(names: tuple[str, ...], depth: int) -> Iterable[str]:
    """The first characters of lists of calls to known tools."""
    return dict.fromkeys(f"[{_respell(name.replace(' ', '')[:depth])}" for name in _writable(names))


def _writable(names: tuple[str, ...]) -> Iterable[str]:
    """The names that a header can match."""
    return (name for name in names if len(name) <= _MAX_NAME)


def _literal(name: str) -> str:
    return name.replace("{", "{{").replace("}", "}}").replace(" ", "")


_NAME_SEPARATOR = re.compile(r"(?<=.)[._]")


def _respell(name: str) -> str:
    """A template for a name in which dots and underscores are interchangeable, as in qualified names."""
    return _NAME_SEPARATOR.sub("{sign}", _literal(name))


class Openings(Generic[T], Struct):
    """What may open at one kind of position, and the choice that matches it."""

    entries: list[T]
    choice: MarkChoice

    @classmethod
    def of(cls, entries: Iterable[T]) -> Openings[T]:
        unique = list(dict.fromkeys(entries))
        return cls(unique, MarkChoice([(entry,) if isinstance(entry, str) else entry.open for entry in unique]))


class FrameMarks(NamedTuple):
    """What may open in a frame: in a message to the user ``openings``, otherwise of all regions only ``regions``."""

    openings: Openings[Opening]
    regions: tuple[Region, ...]


def _is_token(opening: Opening) -> bool:
    """Whether special tokens open this."""
    spellings = (opening,) if isinstance(opening, str) else opening.open
    return all("<|" in spelling for spelling in spellings)


class ToolMarks(NamedTuple):
    """The marks of one set of tools, and where to stop in an answer."""

    names: MarkIndex | None
    elements: MarkIndex | None
    heads: re.Pattern[str]
    """What may begin a line; a quick check that can match too much."""
    stops: re.Pattern[str]
    line_stops: re.Pattern[str]
    """Stops where every line break matters."""


class Selection(NamedTuple):
    """The dialect that was recognised at one position."""

    dialect: Dialect
    syntax: CallSyntax
    marked: bool
    repairs: tuple[str, ...]


def _belongs(dialect: Dialect, wrap: Wrap | None) -> bool:
    return wrap in dialect.wrap if wrap is not None else not dialect.wrap


def _is_marked(dialect: Dialect, call: CallSyntax, header: Header) -> bool:
    """Whether a header is never ordinary text: at the start of a line, if it holds special tokens."""
    return dialect.commitment is Commitment.MARKED and (call.position is Position.ANYWHERE or "<|" in header)


def _list_repairs(wrap: Wrap | None, call: CallSyntax) -> tuple[str, ...]:
    return tuple(filter(None, (wrap.repair if wrap is not None else "", call.repair)))


class ToolSetMarks(Struct):
    """The marks for a set of tools, and how often they were asked for: rough marks at first, exact ones later."""

    marks: ToolMarks
    uses: int = 0


def _run_now(work: Callable[[], object]) -> None:
    work()


class DialectIndex:
    """The compiled dialect records."""

    def __init__(self, dialects: Sequence[Dialect]) -> None:
        self.dialects = tuple(dialects)
        self.by_name = {dialect.name: dialect for dialect in dialects}
        self._by_header: dict[Header, list[tuple[Dialect, CallSyntax]]] = {}
        for dialect in dialects:
            for call in dialect.calls:
                for header in call.header:
                    self._by_header.setdefault(header, []).append((dialect, call))
        self._inside: dict[Wrap | None, Openings[Header]] = {}
        self._closing: dict[Wrap | None, MarkChoice] = {}
        self._tool_sets = lru_cache(maxsize=64)(self._begin_tool_set)
        self.run_aside: Callable[[Callable[[], object]], object] = _run_now
        """Does work for which no answer need wait. A server sets it, so that its event loop does not wait either."""
        self.commitment = lru_cache(maxsize=1024)(self._find_commitment)
        self.select = lru_cache(maxsize=4096)(self._select)

    def _regions(self, place: Position) -> list[Region]:
        return [region for dialect in self.dialects for region in dialect.regions if region.position is place]

    def _wraps(self, place: Position) -> list[Wrap]:
        wraps = [wrap for dialect in self.dialects for wrap in dialect.wrap if wrap.position is place]
        return sorted(wraps, key=lambda wrap: bool(wrap.repair))

    def _headers(self, *places: Position) -> list[Header]:
        calls = [call for dialect in self.dialects for call in dialect.calls]
        headers = [
            header for call in calls if call.position in places for header in call.header if header not in ELEMENTS
        ]
        return sorted(headers, key=self._is_damaged)

    @cached_property
    def anywhere(self) -> Openings[Opening]:
        place = Position.ANYWHERE
        return Openings.of([*self._regions(place), *self._headers(place), *self._wraps(place)])

    @cached_property
    def at_line(self) -> Openings[Opening]:
        place = Position.LINE
        named = [header for header in self._headers(place) if not header.startswith("{name")]
        return Openings.of([*self._regions(place), *named, *self._wraps(place)])

    @cached_property
    def at_start(self) -> Openings[Wrap]:
        return Openings.of(self._wraps(Position.START))

    @cached_property
    def named(self) -> Openings[Header]:
        """Headers that begin with the tool's name."""
        return Openings.of(header for header in self._headers(Position.LINE) if header.startswith("{name"))

    @cached_property
    def frames(self) -> dict[Region, FrameMarks]:
        """The frames of all dialects, with what may open in each of them."""
        return {
            region: FrameMarks(
                Openings.of(filter(_is_token, DialectIndex((dialect,)).anywhere.entries)), dialect.regions
            )
            for dialect in self.dialects
            for region in dialect.regions
            if region.is_frame
        }

    def inside(self, wrap: Wrap) -> Openings[Header]:
        """Headers inside a wrapper, the loosest last. A wrapper that may be ordinary text allows only its own."""
        owner = wrap if wrap.commitment is not Commitment.MARKED else None
        found = self._inside.get(owner)
        if found is None:
            calls = [call for dialect in self.dialects if owner in (None, *dialect.wrap) for call in dialect.calls]
            headers = [header for call in calls for header in call.header]
            headers = [header for header in headers if header not in (*ELEMENTS, COMMAND) or owner is not None]
            headers.sort(key=lambda header: (header.startswith("{name"), self._is_damaged(header), -len(header)))
            found = self._inside[owner] = Openings.of(headers)
        return found

    @cached_property
    def wraps(self) -> Openings[Wrap]:
        return Openings.of(wrap for wrap in self._wraps(Position.ANYWHERE) if wrap.commitment is Commitment.MARKED)

    @cached_property
    def leftovers(self) -> MarkChoice:
        """What may follow a call and is dropped: closing marks without an opener, ends of turns.

        A closing mark of one dialect that opens calls in another is none before a call.
        """
        found: dict[str, None] = {}
        openers = {opener for wrap in self.wraps.entries for opener in wrap.open}
        for dialect in self.dialects:
            for close in (
                *dialect.turns,
                *dialect.noise,
                *dialect.call.close,
                *(c for wrap in dialect.wrap for c in wrap.close),
            ):
                if len(close.strip()) > 1 and "{key}" not in close and close[0] not in "`＜":
                    found[f"{close}{{before_no_json}}" if close in openers else close] = None
        return MarkChoice([tuple(found)])

    @cached_property
    def turns(self) -> MarkChoice:
        """Marks that end a turn, or begin one of the model's own."""
        return MarkChoice([tuple(dict.fromkeys(turn for dialect in self.dialects for turn in dialect.turns))])

    @cached_property
    def lone_heads(self) -> re.Pattern[str]:
        """The first characters of marks that open nothing: turn marks and the end of thinking."""
        return compile_stops(find_stops((*self.turns.marks[0], *STRAY_THINKING.templates), _FAR))

    @cached_property
    def results(self) -> MarkChoice:
        """Marks of a tool result: after a call, the model has fabricated it."""
        return MarkChoice([tuple(dict.fromkeys(result for dialect in self.dialects for result in dialect.results))])

    def marks_for_tools(self, tools: tuple[str, ...], unknown: bool) -> ToolMarks:
        """The marks for these tool names; ``unknown``: tags that only look like a tool are reported.

        Compiling them takes as long as reading many answers, so the first answers get rough marks, with more stops.
        """
        known = self._tool_sets(tools, unknown)
        known.uses += 1
        if known.uses == _ROUGH_USES + 1:
            self.run_aside(partial(self._refine, known, tools, unknown))
        return known.marks

    def _begin_tool_set(self, tools: tuple[str, ...], unknown: bool) -> ToolSetMarks:
        return ToolSetMarks(self._compile_marks(tools, unknown, rough=True))

    def _refine(self, known: ToolSetMarks, tools: tuple[str, ...], unknown: bool) -> None:
        known.marks = self._compile_marks(tools, unknown, rough=False)

    def _compile_marks(self, tools: tuple[str, ...], unknown: bool, rough: bool) -> ToolMarks:
        """A line that begins like no mark is text, and so is the line break before it."""
        names, elements = _mark_names(tools), _mark_elements(tools, unknown)
        if rough:
            return ToolMarks(names, elements, _ANYTHING, self._rough_stops, self._line_stops)
        marks = (*self._at_lines, *_begin_names(tools, _NEAR), *_begin_elements(tools, unknown, _NEAR))
        heads = compile_stops(find_stops(marks, _NEAR))
        known = (*_begin_elements(tools, unknown, _FAR), *_begin_lists(tools, _FAR))
        stops = find_stops((*self._within_lines, *known), _FAR)
        in_text = compile_stops({"\n": rf"(?!\s{{0,16}}+(?!{heads.pattern})\S)", **stops, "`": ""})
        return ToolMarks(names, elements, heads, in_text, self._line_stops)

    @cached_property
    def _rough_stops(self) -> re.Pattern[str]:
        return compile_stops({"\n": "", **find_stops((*self._within_lines, *ELEMENTS, "[{name}"), _NEAR), "`": ""})

    @cached_property
    def _line_stops(self) -> re.Pattern[str]:
        return compile_stops({"\n": "", **find_stops((*self._within_lines, *ELEMENTS), _NEAR), "`": ""})

    @cached_property
    def _at_lines(self) -> tuple[str, ...]:
        """What may begin at the start of a line, besides the names and tags of tools."""
        opening = (spelling for entry in self.at_line.entries for spelling in self._spell_out(entry))
        return ("`", "~", *self._within_lines, *opening, *self.leftovers.marks[0], *self.results.marks[0])

    def _spell_out(self, opening: Opening) -> Iterable[str]:
        """The spellings of an opening; a wrapper that may be ordinary text is combined with its own headers."""
        if isinstance(opening, str):
            return (opening,)
        if not isinstance(opening, Wrap) or opening.commitment is Commitment.MARKED:
            return opening.open
        return (f"{mark} {header}" for mark in opening.open for header in self.inside(opening).entries)

    @cached_property
    def _within_lines(self) -> tuple[str, ...]:
        """What may begin, or end, in the middle of a line, besides the tags of tools."""
        opening = (spelling for group in self.anywhere.choice.marks for spelling in group)
        closing = (close for dialect in self.dialects for region in dialect.regions for close in region.close)
        return (*opening, *closing, *self.turns.marks[0])

    def closing(self, wrap: Wrap | None) -> MarkChoice:
        """What ends the calls in a wrapper: its closing marks, or the opener of the next wrapper."""
        found = self._closing.get(wrap)
        if found is None:
            closers = wrap.close if wrap is not None and wrap.close else self.all_closers
            openers = [entry.open for entry in self.wraps.entries]
            found = self._closing[wrap] = MarkChoice([tuple(dict.fromkeys(closers)), *openers])
        return found

    @cached_property
    def all_closers(self) -> tuple[str, ...]:
        """The closing marks of all wrappers that are never ordinary text."""
        wraps = (wrap for dialect in self.dialects for wrap in dialect.wrap if wrap.commitment is Commitment.MARKED)
        return tuple(close for wrap in wraps for close in wrap.close if len(close.strip()) > 1)

    def _is_damaged(self, header: Header) -> bool:
        return all(call.repair for _, call in self._by_header[header])

    def _find_commitment(self, header: Header) -> Commitment:
        """A header is tentative if one of its dialects is, or if it counts only at the start of a line."""
        users = self._by_header.get(header, ())
        if any(dialect.commitment is Commitment.ALONE and call.position is Position.LINE for dialect, call in users):
            return Commitment.ALONE
        tentative = any(
            dialect.commitment is Commitment.TENTATIVE or call.position is Position.LINE for dialect, call in users
        )
        return Commitment.TENTATIVE if tentative else Commitment.MARKED

    def _select(self, wrap: Wrap | None, header: Header, head: str, hint: str) -> Selection | None:
        """The dialect identified by wrapper, header and the first character of the body.

        It is marked, and so may call tools that were not offered, if wrapper and header belong together or if the
        header alone is never ordinary text.
        """
        sharing = self._by_header.get(header, [])
        fitting = [pair for pair in sharing if pair[1].body.accepts(head)] or sharing
        own = [pair for pair in fitting if _belongs(pair[0], wrap)]
        any_header = wrap is None or wrap.commitment is Commitment.MARKED
        candidates = own or (fitting if any_header else [])
        if not candidates:
            return None
        dialect, call = next((pair for pair in candidates if pair[0].name == hint), candidates[0])
        wrapped = wrap is not None and any_header and bool(own)
        return Selection(dialect, call, wrapped or _is_marked(dialect, call, header), _list_repairs(wrap, call))

    def resolve_hint(self, hint: str) -> str | None:
        """The dialect name for a dialect name or a model id; "" for "auto", None if the hint is unknown."""
        if hint in ("", "auto"):
            return ""
        return hint if hint in self.by_name else self._find_by_model(hint)

    @lru_cache(maxsize=256)  # noqa: B019 - there is one index, and it exists as long as the process
    def _find_by_model(self, model: str) -> str | None:
        """The dialect that a model of this name is known to write.

        The first glob that matches wins, unless a later one is narrower: ``claude-2*`` is narrower than ``claude*``.
        """
        name = model.lower().rsplit("/", 1)[-1]
        known = "*"
        found: str | None = None
        for dialect in self.dialects:
            for glob in dialect.models:
                if matches_glob(name, glob) and (found is None or (glob != known and matches_glob(glob, known))):
                    known, found = glob, dialect.name
        return found
