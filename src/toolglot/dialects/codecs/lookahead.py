"""Lookahead: whether the rest of a call parses after a mark that may end a value.

Strategy. What follows a mark does not always prove that it ends the value: an undeclared element follows, or the value
contains quoted openers. Then the rest of the call is parsed ahead. Each parameter is tried with its earliest closing
mark first, up to the closing mark of the call. If the value contains quoted openers, the text after the call counts
too: a closing mark without its call there shows that the mark belongs to a quotation. The lookahead has no effect on
the call; the text is held meanwhile and read again afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec import Struct

from toolglot.dialects.codecs.parameter_marks import Parameter, ValueMarks, read_key, read_spelling, value_marks
from toolglot.dialects.codecs.raw_values import Goal, is_mentioned
from toolglot.dialects.patterns import Mark, Match
from toolglot.dialects.scanner import Source, Steps

if TYPE_CHECKING:
    from toolglot.dialects.codecs.tagged_parameters import ParameterReader

MAX_LOOKAHEAD = 1 << 16
"""The length of a lookahead, in characters."""

_MAX_NEAR_LOOKAHEAD = 1 << 11
"""The length of a lookahead whose goal is near."""

_RESCANS = 8
"""How many times a lookahead may scan the text that it has reached, a short one somewhat more often."""

_MAX_PARAMETERS = 64
_MAX_FURTHER_CALLS = 8
"""How many calls after this one are parsed ahead."""

_LINE_END = Mark("{before_break}", "{before_mark}", named=False)

_EARLY = (Goal.CONTINUED, Goal.DECLARED)
"""Goals that are reached before the end of the call."""

_QUOTING = (Goal.CLOSED, Goal.BALANCED)
"""Goals of values that contain quoted openers."""

_FIRST = (Goal.UNCLOSED, Goal.BALANCED)
"""Goals for which each value ends with the first mark that closes it."""


class _LimitReached(Exception):
    """The lookahead reached its limit."""


class LookaheadResult(Struct, eq=False):
    """What the lookaheads in one call have found."""

    unopened: int = -1
    """The position of a closing mark without a call, or -1."""
    openers: set[int] = set()
    """Start positions of parameters that parsed."""


@dataclass(slots=True)
class Lookahead:
    """One lookahead, starting at the mark in question.

    ``key`` names the value in question; ``elements``: whether an undeclared element may be a parameter.
    """

    reader: ParameterReader
    goal: Goal
    key: str
    elements: bool
    source: Source = field(init=False)
    end: int = 0
    failed: set[int] = field(default_factory=set)
    work: int = 0
    """How many characters were scanned, rescans included."""
    start: int = 0
    furthest: int = 0
    """The last position that was reached so far."""
    openers: list[int] = field(default_factory=list)
    """Start positions of parameters if the lookahead succeeds."""
    before: str = ""
    """The character before the last match."""
    further: int = 0
    """How many calls after this one are being parsed; their values end at the first closing mark."""

    def __post_init__(self) -> None:
        self.source = self.reader.block.source

    def read(self, ahead: int, otherwise: bool, marks: ValueMarks | None = None, depth: int = 0) -> Steps[bool]:
        """Whether the goal is reached ``ahead`` characters from here; with marks, after one that closes the value.

        ``depth``: how many elements in the value must be closed first.
        Returns ``otherwise`` if the limit is reached first.
        """
        source, answer = self.source, self.reader.block.answer
        if answer.lookahead_characters > 4 * (4096 + max(source.here, answer.lookahead_reach)):
            return otherwise
        start = self.start = self.furthest = source.begin_lookahead()
        self.end = start + (_MAX_NEAR_LOOKAHEAD if self.goal is Goal.DECLARED else MAX_LOOKAHEAD)
        source.pos += ahead
        try:
            given = (*self.reader.call.keys, self.key)
            if marks is None:
                reached = yield from self.parses(given)
            elif depth:
                reached = (yield from self.find_closer(marks, 0, True, depth)) >= 0 and (yield from self.parses(given))
            else:
                reached = yield from self.closes_later(marks, given)
            if reached:
                self.reader.tried.openers.update(self.openers)
            return reached
        except _LimitReached:
            return otherwise
        finally:
            answer.lookahead_characters += self.work
            answer.lookahead_reach = max(answer.lookahead_reach, self.furthest)
            source.end_lookahead(start)

    def check(self) -> None:
        self.furthest = max(self.furthest, here := self.source.here)
        if here >= self.end or self.work > min(2 * MAX_LOOKAHEAD, _RESCANS * (self.furthest - self.start + 1024)):
            raise _LimitReached

    # -- the call ------------------------------------------------------------------------------------------------------

    def parses(self, given: tuple[str, ...]) -> Steps[bool]:
        """Whether the call goes on here, and up to its end."""
        place = self.source.here
        if place in self.failed:
            return False
        if len(given) - len(self.reader.call.keys) > _MAX_PARAMETERS:
            raise _LimitReached
        if (yield from self.goes_on(given)):
            return True
        self.failed.add(place)
        return False

    def goes_on(self, given: tuple[str, ...]) -> Steps[bool]:
        source, reader = self.source, self.reader
        head = yield from source.skip_blanks()
        while head and (size := (yield from reader.find_group())):
            source.pos += size
            head = yield from source.skip_blanks()
        self.check()
        if not head:
            return self.goal is Goal.CONTINUED
        if (found := (yield from source.look(reader.closer))) is not None:
            source.pos = found.end()
            return (yield from self.is_over())
        opener = yield from reader.find_opener(0)
        if opener is None or opener[0].is_element:
            if (yield from source.choose(reader.block.closing)) is not None:
                return (yield from self.is_over())
            opener = yield from reader.find_opener(0)  # more may have arrived meanwhile
        if opener is None or not self.admits(*opener, given):
            return False
        return (yield from self.parameter_parses(*opener, given))

    def admits(self, parameter: Parameter, found: Match, given: Collection[str]) -> bool:
        """Whether this can be a parameter; a repeated one is an error, but no part of a value either.

        If the value contains quoted openers, one in another spelling than its own belongs to the quotation.
        """
        if self.goal in _QUOTING and read_spelling(found) != self.reader.spelling:
            return False
        key = read_key(found)
        known = key in given
        if self.goal is Goal.UNCLOSED and known:
            return False
        if not parameter.is_element or self.elements:
            return True
        return not known and self.reader.call.declares(key)

    def parameter_parses(self, parameter: Parameter, found: Match, given: tuple[str, ...]) -> Steps[bool]:
        key, source = read_key(found), self.source
        declared = self.reader.call.declares(key)
        if self.goal in _EARLY and declared and key not in given:
            return True
        start = source.here
        source.pos = found.end()
        if not parameter.close:
            return (yield from self.parses((*given, key)))
        first = self.goal in _FIRST or self.further > 0 or (parameter.is_element and not declared)
        marks = value_marks(parameter, key)
        calls = 0
        while True:
            calls = yield from self.find_closer(marks, calls, first)
            if calls < 0:
                return False
            place = source.here
            if (yield from self.parses((*given, key))):
                self.openers.append(start)
                return True
            if first:
                return False
            source.return_to(place)

    def closes_later(self, marks: ValueMarks, given: tuple[str, ...]) -> Steps[bool]:
        """Whether the value is closed before the next call begins, and the call goes on from there."""
        source = self.source
        while (yield from self.find_mark(marks.stops)):
            if (found := (yield from source.look(marks.closer))) is not None:
                size = len(found[0])
                talked_about = yield from self.mentions(found)
                source.pos += size
                place = source.here
                if not talked_about and (yield from self.parses(given)):
                    return True
                source.return_to(place)
                continue
            if (found := (yield from self.reader.find_header())) is not None and not (yield from self.mentions(found)):
                return False
            source.pos += 1
        return False

    def find_closer(self, marks: ValueMarks, calls: int, balanced: bool, depth: int = 0) -> Steps[int]:
        """Move past the next closing mark of a value that has ``depth`` open elements.

        ``calls`` counts quoted headers of calls in the value that are not closed yet. ``balanced``: find the mark that
        closes as many elements as were opened. Returns the new count, or -1 if the call or the text ends first.
        """
        source, reader = self.source, self.reader
        while (yield from self.find_mark(marks.stops)):
            if (found := (yield from source.look(marks.closer))) is not None:
                size = len(found[0])
                talked_about = yield from self.mentions(found)
                source.pos += size
                if not talked_about and not depth:
                    return calls
                depth -= not talked_about
                continue
            if balanced and (found := (yield from source.look(marks.opener))) is not None:
                depth += not (yield from self.mentions(found))
            elif (found := (yield from source.look(reader.closer))) is not None:
                size = len(found[0])
                if not (yield from self.mentions(found)):
                    if not calls and (yield from self.ends_text(size)):
                        return -1
                    calls = max(0, calls - 1)
            elif (found := (yield from reader.find_header())) is not None:
                calls += not (yield from self.mentions(found))
            source.pos += 1
        return -1

    # -- the text ------------------------------------------------------------------------------------------------------

    def find_mark(self, stops: re.Pattern[str]) -> Steps[bool]:
        """Move to where the next mark may begin; False if the text ends first."""
        source = self.source
        while True:
            source.step()
            found = stops.search(source.text, source.pos)
            end = len(source.text) if found is None else found.start()
            self.work += end - source.pos + 1
            source.pos = end
            self.before = source.text[max(0, end - 1) : end] or self.before
            self.check()
            if found is not None:
                return True
            if source.final:
                return False
            yield

    def mentions(self, found: Match) -> Steps[bool]:
        return is_mentioned(self.source, self.before, found)

    def ends_text(self, ahead: int) -> Steps[bool]:
        """Whether the text, or the wrapper of the call, ends after its closing mark."""
        source = self.source
        gap = yield from source.find_nonblank(ahead)
        return source.pos + gap >= len(source.text) or (
            (yield from source.choose(self.reader.block.closing, gap)) is not None
        )

    def is_over(self) -> Steps[bool]:
        """Whether the call ends here; for some goals no closing mark without its call may follow."""
        source, tried = self.source, self.reader.tried
        if self.goal in _EARLY:
            return self.goal is Goal.CONTINUED
        if source.here <= tried.unopened:
            return False
        calls = 0
        while (yield from self.find_mark(self.reader.stops)):
            found = yield from source.look(self.reader.closer)
            if found is not None:
                size = len(found[0])
                if not calls and (yield from source.look(_LINE_END, size)) is not None:
                    tried.unopened = source.here
                    return False
                calls = max(0, calls - (not (yield from self.mentions(found))))
                source.pos += size
                continue
            if (found := (yield from self.reader.find_header())) is not None:
                size = len(found[0])
                if not (yield from self.mentions(found)):
                    if (yield from self.next_parses(size)):
                        return True
                    calls += 1
            source.pos += 1
        return not source.truncated

    def next_parses(self, size: int) -> Steps[bool]:
        """Whether a call with a header of that size begins here, and all parses from there on."""
        if self.further >= _MAX_FURTHER_CALLS:
            return False
        source = self.source
        place = source.here
        source.pos += size
        self.further += 1
        if (yield from self.parses(())):
            return True
        self.further -= 1
        source.return_to(place)
        return False
