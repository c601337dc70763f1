"""Finds the end of a raw value.

Strategy. A closing mark counts only if what follows it continues the structure: the next parameter, the end of the
call, the end of the text. Openers of the same parameter, and headers of calls, inside a value are counted, so a quoted
example closes its own marks. If an undeclared element follows, or quoted openers are still open, the rest of the call
is parsed ahead (``lookahead``): the earliest mark after which all of it parses ends the value. If the closing mark is
missing, the value ends where the structure proves it: before a declared parameter that is not given yet and begins a
line, if the rest parses from there, or before the mark that closes the whole call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct, field

from toolglot.core.events import CallArguments, Event, Reason
from toolglot.core.lenient_json import escape
from toolglot.core.made_up_values import LOOKS_MADE_UP
from toolglot.dialects.codecs.parameter_marks import (
    HTML,
    Parameter,
    ValueMarks,
    is_closed_by,
    read_key,
    value_marks,
)
from toolglot.dialects.codecs.whitespace import Trim, Trimmer, open_trimmer
from toolglot.dialects.damaged_marks import MAX_DAMAGED, RecentText, ends_damaged, find_similar, is_similar, is_spelled
from toolglot.dialects.patterns import MORE, Mark, Match
from toolglot.dialects.scanner import PassThrough, Source, Steps

if TYPE_CHECKING:
    from toolglot.dialects.codecs.tagged_parameters import ParameterReader

FOREIGN_CLOSER = Mark(
    "</{ns}{name}{eqkey}{junk}>",
    "</{ns}{name}\n",
    "<function>",
    "<parameter>{before_break}",
    "]<]minimax[>[</{name}>",
)
_ELEMENT = Mark("<{key}>", "<{key}{attributes}>", named=False)
_MENTIONING = ("`", '"', "'")
_GROUP_END = Mark("</{ns}{name_group}>")
_BLANK_LINE = re.compile(r"\n\r?\n\Z")
_ENDS_SECTION = re.compile(r"\](?:\]?.?>?|\s?>)\Z")
_CLOSING_TAG = re.compile(r"</([\w.\-]+)>$")
_TOKEN = re.compile(r"<[^<>]*>(?=.)|\]<\]\w+\[>\[(?=.)")
"""The first of several tokens in a mark."""
_ENDS_STRUCTURE = re.compile(r"</?[\w:]*$|(?:</?|/(?=\w+ ?>))(?:\w+:)?(?:param|arg|func|tool|invoke|value|call)\w*\W*$")
"""A tag that was meant for structure, or half a tag."""
_MAX_STRAYS = 4


def is_mentioned(source: Source, before: str, found: Match) -> Steps[bool]:
    """Whether a mark here is alone between quotes or backticks: it is only mentioned and opens or ends nothing."""
    if before not in _MENTIONING:
        return False
    size = len(found[0])
    while len(source.text) <= source.pos + size and not source.final:
        yield
    return source.text.startswith(before, source.pos + size)


class Goal(Enum):
    """What must follow a mark that may end a value."""

    DECLARED = "a declared parameter"
    CONTINUED = "a declared parameter, or the end of the call"
    CLOSED = "the end of the call, and after it no closing mark without its call"
    BALANCED = "the same, and each value behind the mark closes what it opens"
    UNCLOSED = "the same, if the mark that closes the value is missing: then each parameter is given only once"


def ignore(piece: str) -> None:
    """Ignore a fragment of a value that is read elsewhere."""


class RawValue(Struct, eq=False):
    """Reads one value and finds its end; ``open_value`` makes it."""

    reader: ParameterReader
    parameter: Parameter
    key: str
    take: Callable[[str], None]
    marks: ValueMarks
    trimmer: Trimmer
    passing: bool = False
    nested: bool = False
    depth: int = 0
    calls: int = 0
    call_begun: bool = False
    """Whether the last quoted call begins like a call."""
    has_stray_closer: bool = False
    """Whether a closing mark was taken for text although no opener precedes it."""
    refused: int = 1
    """How many characters here are text: no mark begins, or one that does not count."""
    blank: bool = True
    """Whether the value is only whitespace so far."""
    clean: bool = True
    has_stray_opener: bool = False
    held: set[str] = set()
    """Parameters that the call lacks and whose openers were taken for text."""
    quoted: int = 0
    """How many more opening marks than closing marks were taken for text."""
    stray: tuple[int, str] = (-1, "")
    """The end of the last closing mark that was taken for text and closes nothing in the value, and this mark."""
    ends_in_layout: bool = False
    """Whether the closing mark is missing and the value ends with whitespace that may be layout."""
    line_start: bool = True
    recent: RecentText = field(default_factory=RecentText)
    margin: str = ""
    """The whitespace before the current position, if nothing else is on its line."""

    def read(self) -> Steps[bool]:
        """Emit the value up to its end, which is consumed; False if the text ends first."""
        source = self.reader.block.source
        run: PassThrough | None = None
        while True:
            source.step()
            found = self.marks.stops.search(source.text, source.pos)
            end = len(source.text) if found is None else found.start()
            if end > source.pos:
                if free := self.trim(source.text[source.pos : end]):
                    self.take(free)
                source.pos = end
            if found is None:
                if source.final:
                    return False
                index = self.reader.call.passthrough_index if self.passing else None
                source.run = run = None if index is None else run or self.make_run(index)
                yield
                source.run = None
            elif (yield from self.ends()):
                self.reader.ends_in_break |= self.trimmer.ends_in_break
                if rest := self.trimmer.end():
                    self.take(rest)
                return True
            else:
                self.clean = False
                self.take(self.trim(source.text[source.pos : source.pos + self.refused]))
                source.pos += self.refused
                self.refused = 1

    def make_run(self, index: int) -> PassThrough:
        not_plain, stop, trimmer = self.marks.not_plain.search, self.marks.stops.search, self.trimmer
        refuses, note = self.reader.block.source.refuses_examples, self.recent.add

        def take(piece: str) -> list[Event] | None:
            if refuses and LOOKS_MADE_UP(piece) is not None:
                return None
            if not_plain(piece) is None and trimmer.idle:
                note(piece)
                if self.line_start:
                    self.line_start = not piece.strip(" \t")
                    self.margin += piece if self.line_start else ""
                    self.blank = self.blank and self.line_start
                return [CallArguments(index, piece)]
            if stop(piece) is not None:
                return None
            free = self.trim(piece)
            return [CallArguments(index, escape(free))] if free else []

        return take

    @property
    def tail(self) -> str:
        """The end of the value so far."""
        return self.recent.text

    def trim(self, piece: str) -> str:
        """The part of a chunk that may be emitted; updates the state that decides on marks after it."""
        if "<" in piece:
            self.clean = False
        if piece:
            self.recent.add(piece)
        blanks_apart = piece.rstrip(" \t")
        if blanks_apart:
            self.blank = self.blank and blanks_apart.isspace()
            self.line_start, self.margin = blanks_apart.endswith("\n"), ""
        self.margin += piece[len(blanks_apart) :]
        return self.trimmer.take(piece)

    def ends(self) -> Steps[bool]:
        """Whether the value ends here; its closing mark is consumed."""
        source = self.reader.block.source
        while (found := self.marks.closer.at(source.text, source.pos, source.final)) is MORE:
            yield
        if found is not None:
            size = found.end() - source.pos
            if (yield from self.mentions(found)):
                self.refused = size
                return False
            return (yield from self.ends_with_closer(size))
        if (yield from self.ends_twice()):
            return True
        opened = yield from source.look(self.marks.opener)
        if opened is None and (yield from self.quotes_parameter()):
            self.depth += 1
            self.quoted += 1
            return False
        if opened is None:
            return (yield from self.ends_with_call())
        if (yield from self.mentions(opened)):
            return False
        if (yield from self.is_next(opened.groupdict().get("key", self.key))):
            return True
        self.depth += 1
        self.quoted += 1
        return False

    def mentions(self, found: Match) -> Steps[bool]:
        return is_mentioned(self.reader.block.source, self.tail[-1:], found)

    def quotes_parameter(self) -> Steps[bool]:
        """Whether a parameter of another dialect opens here that our closing mark would close."""
        marks = self.marks
        found = None if marks.quoted is None else (yield from self.reader.block.source.look(marks.quoted))
        if found is None or not is_closed_by(found, marks.closer):
            return False
        return not (yield from self.mentions(found))

    def ends_with_closer(self, size: int) -> Steps[bool]:
        """Whether the closing mark here, of that size, ends the value."""
        source = self.reader.block.source
        if self.depth:
            # if the call began again in the value, only that one ends here
            ends = not self.call_begun and (yield from self.ends_unbalanced(size))
        else:
            ends = yield from self.structure_follows(size)
        if ends:
            if self.depth and not self.parameter.is_element:
                self.suspect(*self.held)
            self.check_end(source.take(size))
            return True
        if (yield from self.ends_twice()):
            return True
        if not self.depth:
            yield from self.keep_stray(size, source.text[source.pos : source.pos + size])
        self.quoted -= 1
        self.refused = size
        self.depth = max(0, self.depth - 1)
        return False

    def keep_stray(self, size: int, mark: str) -> Steps[None]:
        """Take a closing mark for text although no opener precedes it."""
        self.has_stray_closer = True
        if not self.has_stray_opener and is_spelled(mark, self.reader.due):
            yield from self.suspect_opener(size)
        if not (self.line_start and self.margin):  # an indented one belongs to a file
            self.stray = self.reader.block.source.here + size, mark

    def ends_unbalanced(self, size: int) -> Steps[bool]:
        """Whether the closing mark here ends the value although openers in it are not closed.

        If what follows is unbalanced as well, and all is balanced if the mark closes one of them, then it does.
        """
        if not (yield from self.parses(Goal.CLOSED, size, not self.calls)):
            return False
        if (yield from self.parses(Goal.BALANCED, size)):
            return True
        return not (yield from self.reader.balances_later(self.parameter, self.key, self.depth))

    def suspect(self, *keys: str) -> None:
        """Note parameters that this value may have swallowed."""
        self.reader.call.suspect(f"argument {self.key}", *(key for key in keys if key != self.key))

    def suspect_opener(self, ahead: int) -> Steps[None]:
        """Suspect that another opening mark is missing or damaged right after a closing mark of that size, or on the
        next line: then the value holds a further parameter."""
        source = self.reader.block.source
        gap = yield from source.find_nonblank(ahead)
        if gap == ahead or not self.reader.layout or "\n" in source.text[source.pos + ahead : source.pos + gap]:
            self.suspect(*self.reader.call.declared)

    def parses(self, goal: Goal, ahead: int, otherwise: bool = False) -> Steps[bool]:
        """Whether the rest of the call parses ``ahead`` characters from here."""
        return self.reader.rest_parses(goal, ahead, self.key, self.parameter.is_element, otherwise)

    def ends_twice(self) -> Steps[bool]:
        """Whether a repeated closing mark is here, right before the one that counts; both are consumed.

        Not in a value without any other text: then the mark is the value, as in a search for it.
        Not in a value that contains an opener of that name: it may close that one. Nor if it is indented more than the
        one that counts, or an empty line is between them: then it is part of a file.
        """
        marks, source = self.marks, self.reader.block.source
        if self.has_stray_opener or marks.stray_openers is None:
            return False
        self.has_stray_opener = (yield from source.look(marks.stray_openers)) is not None
        if self.blank or marks.stray is None:
            return False
        ahead, margin = 0, ""
        for strays in range(_MAX_STRAYS):
            found = yield from source.look(marks.stray, ahead)
            if self.has_stray_opener or found is None:
                return False
            end = found.end() - source.pos
            closes = strays > 0 and (yield from source.look(marks.closer, ahead)) is not None
            if closes and self.is_indented_more(margin):
                return False
            if closes and (yield from self.structure_follows(end)):
                self.accept_second(source.text[source.pos + ahead - 1].isspace())
                source.pos += end
                return True
            ahead = yield from source.find_nonblank(end)
            line, _, margin = source.text[source.pos + end : source.pos + ahead].rpartition("\n")
            if "\n" in line:
                return False
        return False

    def is_indented_more(self, margin: str) -> bool:
        """Whether a mark here begins a line and has more space before it than another one."""
        return self.line_start and len(self.margin) > len(margin)

    def accept_second(self, apart: bool) -> None:
        """Accept a second closing mark, perhaps ``apart`` from the first one, as surplus."""
        if apart or not self.reader.layout:  # it may close an empty value without its opening mark
            self.suspect(*self.reader.call.declared)
        if self.reader.begins_section:
            self.add_defect("a CDATA section and two closing marks")
        self.reader.call.repair("stray_closer")

    def is_next(self, key: str) -> Steps[bool]:
        """Whether an opener here must be the next parameter: declared, not given yet, at the start of a line.

        Not inside a quoted call; and a plain element only right after text without any mark, because files are full of
        elements that happen to have the name of a parameter.
        """
        call = self.reader.call
        if not call.declares(key) or key in call.keys:
            return False
        beginning = self.line_start and (self.clean or not self.parameter.is_element)
        if self.nested or self.calls or not beginning or not (yield from self.parses(Goal.UNCLOSED, 0)):
            self.held.add(key)
            return False
        self.miss_closer()
        return True

    def miss_closer(self) -> None:
        """Record the missing closing mark; an opener without a value is no parameter.

        A value that holds a parameter may end before it, so what the value is remains unknown.
        """
        call = self.reader.call
        call.repair("missing_parameter_closer")
        self.note_layout()
        if self.blank:
            self.add_defect("neither a value nor a closing mark")
        self.check_end("")
        if self.reader.begins_section:
            self.add_defect("a CDATA section without its end, and no closing mark")
        elif self.depth or self.held - {self.key}:
            self.add_defect("another parameter and no closing mark")

    def note_layout(self) -> None:
        """Note whether whitespace at the end of a value without its closing mark may be layout."""
        self.ends_in_layout = self.line_start and (
            self.marks.trim is Trim.NONE
            or (self.marks.trim is Trim.BREAK and (self.margin != "" or _BLANK_LINE.search(self.tail) is not None))
        )

    def check_end(self, found: str) -> None:
        """Check that nothing in the value belongs to its marks, of which the closing one was found as ``found``."""
        if found and found == self.stray[1] and not self.has_stray_opener and self.follows_stray(len(found)):
            self.add_defect("two closing marks")
        elif self.reader.begins_twice and self.quoted >= (self.reader.begins_twice == 1):
            self.add_defect("two opening marks")
        elif ends_damaged(self.tail, found, self.reader.due) or self.ends_in_structure(self.tail.rstrip(), found):
            self.add_defect("a damaged closing mark")

    def follows_stray(self, size: int) -> bool:
        """Whether only whitespace is between the closing mark of that size before here and one taken for text."""
        gap = self.reader.block.source.here - size - self.stray[0]
        return gap <= MAX_DAMAGED and not self.tail[len(self.tail) - gap :].strip()

    def ends_in_structure(self, text: str, found: str) -> bool:
        """Whether this text, before the closing mark ``found``, ends with a part of a mark or with one for calls."""
        token = _TOKEN.match(found)
        if token is not None and text.endswith(token[0]):
            return True
        if self.reader.begins_section and self.ends_in_section(text, found):
            return True
        return not is_similar(found, self.reader.due) and self.ends_in_other_mark(text)

    def ends_in_section(self, text: str, found: str) -> bool:
        """Whether this text ends with the damaged end of a CDATA section, or with a second closing mark after one."""
        if found and text.endswith(found):
            return True
        return _ENDS_SECTION.search(text) is not None and not text.endswith("]]>")

    def ends_in_other_mark(self, text: str) -> bool:
        """Whether this text, without its closing mark after it, ends with what may be meant as one."""
        tag = _CLOSING_TAG.search(text)
        if tag is not None and find_similar(tag[1], ("content", "parameter", *self.reader.call.declared)):
            return True
        return _ENDS_STRUCTURE.search(text) is not None or ends_damaged(text, "", self.reader.due)

    def add_defect(self, found: str) -> None:
        where = f"argument {self.key}"
        self.reader.call.add_defect(Reason.MALFORMED, where, found, "a value and its closing mark")

    def ends_with_call(self) -> Steps[bool]:
        """Whether the whole call ends here although the closing mark of the value is missing."""
        reader, source = self.reader, self.reader.block.source
        found = yield from source.look(reader.closer)
        if found is not None:
            ahead = found.end() - source.pos
            return not (yield from self.mentions(found)) and (yield from self.ends_unclosed(ahead))
        if (found := (yield from reader.find_header())) is not None:
            if (yield from self.mentions(found)):
                return False
            self.call_begun = self.call_begun or (yield from self.opens_call(len(found[0])))
            self.calls += 1
            return False
        opener = yield from reader.parameter_here(0)
        if opener is not None and opener[0].is_element == self.parameter.is_element:
            return (yield from self.is_next(read_key(opener[1])))
        return self.clean and not self.nested and (yield from self.wrong_closer())

    def ends_unclosed(self, ahead: int) -> Steps[bool]:
        """Whether the closing mark of the call, which ends ``ahead`` characters from here, ends the value with it."""
        source = self.reader.block.source
        over = yield from self.call_is_over(ahead, self.depth + self.calls > 0)
        if over and not self.call_begun and not self.has_stray_closer:
            if (yield from self.reader.closes_later(self.parameter, self.key, ahead)):
                return False
            if source.truncated and (yield from source.find_nonblank(ahead)) == len(source.text) - source.pos:
                return False  # the answer was cut here: the mark may be a part of the value
            self.miss_closer()
            return True
        self.calls = max(0, self.calls - 1)
        self.call_begun = self.call_begun and (over or bool(self.calls))
        return False

    def opens_call(self, ahead: int) -> Steps[bool]:
        """Whether a parameter follows the header of a call, as in a real call."""
        gap = yield from self.reader.block.source.find_nonblank(ahead)
        opener = yield from self.reader.find_opener(gap)
        return opener is not None and (not opener[0].is_element or self.reader.call.declares(read_key(opener[1])))

    def wrong_closer(self) -> Steps[bool]:
        """Whether a closing mark of another name is here, right after a value without any mark in it."""
        source = self.reader.block.source
        found = yield from source.look(FOREIGN_CLOSER)
        if found is None:
            return False
        mark = found[0].rstrip("\n")
        if not self.is_structure(mark):
            return False
        size = len(mark)
        gap = yield from source.find_nonblank(size)
        if (
            source.text.count("\n", source.pos + size, source.pos + gap) > 1
        ):  # more than layout: it ends a line of a file
            return False
        if not (yield from self.parses(Goal.UNCLOSED, size)):
            return False
        self.check_end(source.take(size))
        if _GROUP_END.match(mark, 0) is not None:
            self.note_layout()
        self.reader.call.repair("wrong_closer")
        return True

    def is_structure(self, mark: str) -> bool:
        """Whether a closing mark is made for calls; that of another element may belong to a file with several lines."""
        if _ENDS_STRUCTURE.search(mark) or is_similar(mark, self.reader.due):
            return True
        name = mark.rpartition("/")[2].rstrip(">")
        known = name == self.reader.call.name or self.reader.call.declares(name)
        return known or not (name in HTML or "\n" in self.tail.strip())

    # -- what follows --------------------------------------------------------------------------------------------------

    def structure_follows(self, ahead: int) -> Steps[bool]:
        """Whether the structure continues after a mark that ends ``ahead`` characters from here."""
        reader, source = self.reader, self.reader.block.source
        gap = yield from source.find_nonblank(ahead)
        if source.pos + gap >= len(source.text):
            return not self.has_stray_opener  # else the mark may close that one
        if (yield from reader.parameter_here(gap)) is not None:
            return True
        while (found := reader.closer.at(source.text, source.pos + gap, source.final)) is MORE:
            yield
        if found is not None:
            return True
        if source.final and reader.closer.begins(source.text, source.pos + gap):
            return not self.has_stray_opener
        return (yield from self.wrapper_follows(gap))

    def wrapper_follows(self, gap: int) -> Steps[bool]:
        """Whether something other than a parameter continues the structure: a group, a wrapper, a foreign mark."""
        source = self.reader.block.source
        if (yield from source.look(_GROUP_END, gap)) is not None:
            return True
        if (yield from source.choose(self.reader.block.closing, gap)) is not None:
            return True
        if self.parameter.is_element and (yield from source.look(_ELEMENT, gap)) is not None:
            return (yield from self.parses(Goal.CONTINUED, gap, True))
        found = yield from source.look(FOREIGN_CLOSER, gap)
        is_quoting = self.blank or self.has_stray_opener  # then a second closing mark is the one that counts
        if found is None or (is_quoting and (yield from source.look(self.marks.closer, gap)) is not None):
            return False
        return (yield from self.call_is_over(len(found[0]) + gap, False))

    def call_is_over(self, ahead: int, strictly: bool) -> Steps[bool]:
        """Whether the call ends after its closing mark, and no more of the value follows.

        Strictly: only the closing mark of its wrapper, if it has one, and the end of the text may follow.
        """
        source, closing = self.reader.block.source, self.reader.block.closing
        gap = yield from source.find_nonblank(ahead)
        if source.pos + gap >= len(source.text):
            return not strictly or not self.reader.block.wrap_close
        if (yield from source.choose(closing, gap)) is None:
            return False
        if not strictly:
            return True
        gap = yield from source.find_nonblank(gap + closing.size(source.text, source.pos + gap))
        return source.pos + gap >= len(source.text)


def open_value(
    reader: ParameterReader,
    parameter: Parameter,
    key: str,
    take: Callable[[str], None],
    passing: bool = False,
    nested: bool = False,
) -> RawValue:
    """The reader of the value that begins here.

    Parameters: ``take`` receives the text; ``passing``: the arguments may bypass the parser;
    ``nested``: the value is a structure.
    """
    marks = value_marks(parameter, key)
    return RawValue(reader, parameter, key, take, marks, open_trimmer(marks.trim), passing, nested)
