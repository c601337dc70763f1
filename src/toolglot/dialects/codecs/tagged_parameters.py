"""Arguments as tagged parameters: ``<parameter=path>a.py</parameter>`` and its variants.

Strategy. Between header and closing mark are parameters, and whatever models put there by mistake. The reader tries one
construct after the other (a parameter, the closing mark, a JSON body, the end of the text, a stray mark, loose text)
and continues or stops; ``raw_values`` finds the end of a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import msgspec

from toolglot.core.events import Reason
from toolglot.core.lenient_json import Value as Json
from toolglot.core.schema.toolset import UNTYPED, SchemaType, coerce_text, coerce_text_leaves
from toolglot.dialects.codecs.attributes import read_pairs, take_attributes
from toolglot.dialects.codecs.buffered_values import may_be_null, parse_object
from toolglot.dialects.codecs.cdata import read_sections
from toolglot.dialects.codecs.elements import read_elements
from toolglot.dialects.codecs.freetext import BEFORE_STRUCTURE
from toolglot.dialects.codecs.header_names import read_name
from toolglot.dialects.codecs.lookahead import Lookahead, LookaheadResult
from toolglot.dialects.codecs.object_members import ENVELOPES, OBJECT
from toolglot.dialects.codecs.parameter_marks import (
    HTML,
    MAX_OPENER,
    Parameter,
    fill_key,
    is_closed_by,
    list_spellings,
    quoted_headers,
    read_key,
    read_spelling,
    value_marks,
)
from toolglot.dialects.codecs.parameter_templates import write_parameters
from toolglot.dialects.codecs.raw_values import FOREIGN_CLOSER, Goal, ignore, open_value
from toolglot.dialects.codecs.whitespace import Trim
from toolglot.dialects.damaged_marks import (
    QUOTES,
    begins_damaged,
    ends_in_blanks,
    ends_tag,
    find_similar,
    has_stray_quote,
    is_sound_tag,
    spell_closer,
)
from toolglot.dialects.partial_call import CallBlock, PartialCall
from toolglot.dialects.patterns import MORE, Mark, MarkChoice, Match, compile_stops, mark
from toolglot.dialects.scanner import Steps, at_once
from toolglot.dialects.spec import CallSyntax

__all__ = ["Parameter", "TaggedParameters", "Trim"]

_MAX_PAIRS = 2048
_NO_TEXT = ("", "<")
_GROUP = Mark("<{slash}{ns}{name_group}>")


class _CallMarks(NamedTuple):
    """The marks that close a call of one name, and the headers of calls that they would close too."""

    closer: Mark
    header: Mark
    quoted: tuple[Mark, ...]
    stops: re.Pattern[str]
    """Where one of them may begin."""


@lru_cache(maxsize=256)
def _headers(headers: tuple[str, ...], wrap_open: tuple[str, ...]) -> tuple[str, ...]:
    """The headers of a call inside a value: one that begins with a name is recognised by its wrapper.

    The wrapper counts without the name too, because other calls may have the same wrapper.
    """
    marked = tuple(header for header in headers if not header.startswith("{name"))
    openers = tuple(opener for opener in wrap_open if "{before" not in opener)
    nameless = tuple(opener for opener in openers if "{name" not in opener)
    return marked or (*(f"{opener} {header}" for opener in nameless for header in headers), *openers)


@lru_cache(maxsize=1024)
def _call_marks(close: tuple[str, ...], header: tuple[str, ...], name: str) -> _CallMarks:
    closer = Mark(*(fill_key(template, name) for template in close))
    own = Mark(*(f"<{name}>" if template == "<{name}>" else template for template in header))
    heads = (closer.heads | own.heads | {"<"}) - {"{"}
    stops = compile_stops({head: r"(?![\s=]|<<<)" if head == "<" else "" for head in sorted(heads)})
    return _CallMarks(closer, own, quoted_headers(closer), stops)


@dataclass(frozen=True, slots=True)
class TaggedParameters:
    """The codec, given the spellings of its parameters, the usual one first.

    ``heads`` are the characters such a body may begin with; "" means anything but JSON.
    """

    parameters: tuple[Parameter, ...]
    heads: str = ""
    spellings: tuple[Parameter, ...] = field(init=False)
    openers: MarkChoice = field(init=False)

    def __post_init__(self) -> None:
        spellings = list_spellings(self.parameters)
        object.__setattr__(self, "spellings", spellings)
        object.__setattr__(self, "openers", MarkChoice([(parameter.open,) for parameter in spellings]))

    def accepts(self, head: str) -> bool:
        return head in self.heads if self.heads else head != "{"

    def read(self, block: CallBlock, syntax: CallSyntax, found: Match) -> Steps[bool]:
        call = block.begin(read_name(found), block.source.here)
        if call is None:
            return at_once(False)
        block.source.pos = found.end()
        closed = found[0].endswith("/>")
        if not take_attributes(call, found, certain=block.marked or not closed):
            return at_once(False)
        if closed:
            call.commit()
            return at_once(True)
        marks = _call_marks(syntax.close or block.wrap_close, _headers(syntax.header, block.wrap_open), call.name)
        return ParameterReader(self, block, syntax, call, *marks).read(found[0])

    def write(self, sample: str, name: str, arguments: Mapping[str, Json]) -> Iterator[str]:
        return write_parameters(sample, name, arguments, self.parameters)


class _Next(Enum):
    GO_ON = "the construct was read, more may follow"
    DONE = "the call is over"
    REFUSED = "this is no call after all"


class ParameterReader(msgspec.Struct, eq=False):
    """Reads the parameters of one call."""

    markup: TaggedParameters
    block: CallBlock
    syntax: CallSyntax
    call: PartialCall
    closer: Mark
    header: Mark
    quoted: tuple[Mark, ...]
    stops: re.Pattern[str]
    behind_parameter: bool = False
    looked: tuple[str, int, tuple[Parameter, Match] | None] = ("", -1, None)
    """Cache of ``find_opener``: text, position and result."""
    tried: LookaheadResult = msgspec.field(default_factory=LookaheadResult)
    given: dict[str, tuple[int, int]] = {}
    """The positions of the values that were read, by key."""
    spelling: str = ""
    """The spelling of the current parameter."""
    due: str = ""
    """The closing mark of the current value."""
    ends_in_break: bool = False
    """Whether a value ended with a line break, dropped as layout, and began without one."""
    begins_twice: int = 0
    """Whether the current value begins with its opening mark (1), or with the last tag of it (2)."""
    layout: str = ""
    """The whitespace after the header."""
    begins_section: bool = False
    """Whether the current value begins with a CDATA section and is more than that."""

    def read(self, header: str) -> Steps[bool]:
        yield from self.skip_second(header)
        constructs: tuple[Callable[[str], Steps[_Next | None]], ...] = (
            self.group,
            self.parameter,
            self.end,
            self.json_body,
            self.bare_pairs,
            self.end_of_text,
            self.end_of_wrapper,
            self.loose_text,
            self.stray_closer,
        )
        while True:
            head = yield from self.block.source.skip_blanks()
            self.behind_parameter = self.call.live and bool(self.call.keys)
            for read_construct in constructs:
                outcome = yield from read_construct(head)
                if outcome is not None:
                    break
            else:
                outcome = self.broken(head)
            if outcome is not _Next.GO_ON:
                break
        return outcome is _Next.DONE

    def skip_second(self, header: str) -> Steps[None]:
        """Skip a second header right after the first one, unless it is a parameter of the same name."""
        source = self.block.source
        gap = yield from source.find_nonblank()
        self.layout = source.text[source.pos : source.pos + gap]
        is_tag = header[0] == "<" and not self.call.declares(self.call.name)
        if is_tag and (yield from source.begins_with(header, gap)):
            source.pos += gap + len(header)
            self.call.repair("doubled_mark")

    # -- constructs between header and closing mark --------------------------------------------------------------------

    def group(self, head: str) -> Steps[_Next | None]:
        """Skip an element that only groups the parameters."""
        size = yield from self.find_group()
        self.block.source.pos += size
        return _Next.GO_ON if size else None

    def find_group(self) -> Steps[int]:
        """The length of the mark of such an element here; 0 if there is none."""
        source = self.block.source
        opener = yield from self.find_opener(0)
        if opener is not None and not opener[0].is_element:
            return 0
        while (found := _GROUP.at(source.text, source.pos, source.final)) is MORE:
            yield
        if found is None:
            return 0
        size, name = found.end() - source.pos, found["name"]
        own = any(parameter.is_element for parameter in self.markup.parameters)
        return 0 if own and self.call.declares(name) and name not in self.call.keys else size

    def parameter(self, head: str) -> Steps[_Next | None]:
        opener = yield from self.parameter_here(0)
        if opener is None:
            opener = yield from self.undeclared_first()
        if opener is None:
            return None
        parameter, found = opener
        self.block.source.pos = found.end()
        self.behind_parameter = False
        self.spelling = read_spelling(found)
        self.call.commit_on(read_key(found))
        if parameter.repair:
            self.call.repair(parameter.repair)
        key, start = read_key(found), self.block.source.here
        if not parameter.close:
            return (yield from self.no_value(key, start - len(found[0])))
        self.due = spell_closer(parameter.close[0], found[0], key)
        yield from self.check_opener(parameter, found, key)
        yield from self.look_for_second(parameter, found[0], key)
        if key in self.given:
            yield from self.repeated(parameter, key, self.given[key])
        else:
            word = found["type"] if "{type}" in parameter.open else None
            yield from self.value(parameter, key, self.shape_of(parameter, key, word))
            self.given[key] = (start, self.block.source.here)
        return _Next.DONE if self.call.is_truncated else _Next.GO_ON

    def check_opener(self, parameter: Parameter, found: Match, key: str) -> Steps[None]:
        """Check the opening mark of a parameter for damage: in its key, its quotation marks, its attributes."""
        if not self.call.admits(key):
            self.suspect_similar(key)
        after = yield from self.block.source.peek()
        damaged = has_stray_quote(found, after) and (after in QUOTES or not self.call.declares(key))
        if not damaged and not is_sound_tag(found):
            damaged = ends_tag((yield from self.block.source.peek(MAX_OPENER)), found)
        if not damaged and parameter.repair:
            damaged = yield from self.lacks_value_opener(found[0], key)
        if damaged:
            expected = "an undamaged opening mark"
            self.call.add_defect(Reason.MALFORMED, f"argument {key}", found[0], expected)

    def suspect_similar(self, key: str) -> None:
        """Suspect that an undeclared key is a declared one with a slip, or its beginning, unless it is its alias."""
        if self.call.may_mean(key):
            return
        longer = [name for name in self.call.declared if name.startswith(key)]
        self.call.suspect(f"argument {key}", *longer, *find_similar(key, self.call.declared))

    def lacks_value_opener(self, mark: str, key: str) -> Steps[bool]:
        """Whether a damaged part of an opening mark may begin the value."""
        due = spell_closer("<" + self.markup.parameters[0].open.rpartition("<")[2], mark, key)
        text = yield from self.block.source.peek(len(due) + 4)
        return begins_damaged(text, due) or ends_in_blanks(mark)

    def look_for_second(self, parameter: Parameter, mark: str, key: str) -> Steps[None]:
        """Look for the same opening mark, or the last tag in it, at the beginning of the value."""
        source = self.block.source
        gap = yield from source.find_nonblank()
        head, _, last = mark.rpartition("<")
        self.begins_twice = 0
        if (yield from source.begins_with(mark, gap)):  # a value without outer blanks begins with none
            ahead = gap + len(mark)
            self.begins_twice = (
                parameter.trim_for(key) is not Trim.BLANKS or (yield from source.find_nonblank(ahead)) == ahead
            )
        elif head and not head.endswith("[") and (yield from source.begins_with(f"<{last}", gap)):
            self.begins_twice = 2

    def repeated(self, parameter: Parameter, key: str, before: tuple[int, int]) -> Steps[None]:
        """Read a repeated parameter: dropped if the tool does not declare it or the value is the same."""
        source, call = self.block.source, self.call
        start = source.here
        if not (yield from open_value(self, parameter, key, ignore).read()):
            call.truncate()
        elif not call.declares(key) or source.repeats(start, before):
            call.repair("dropped_repeated_argument")
        else:
            call.add_defect(Reason.DUPLICATE_ARGUMENT, f"argument {key}", "a second value", "one value")

    def no_value(self, key: str, start: int) -> Steps[_Next]:
        """Handle a key without a value; the value may have been cut off."""
        source = self.block.source
        yield from source.find_nonblank()
        if source.final and (">" not in source.text[source.pos :] or self.is_cut_opener(start)):
            source.pos = len(source.text)
            self.call.truncate()
            return _Next.DONE
        self.call.add_defect(Reason.MALFORMED, f"argument {key}", "no value", "a value between two marks")
        return _Next.GO_ON

    def is_cut_opener(self, start: int) -> bool:
        """Whether the text ends inside the opening mark that begins at ``start``, behind its key."""
        source = self.block.source
        openers = (parameter.opener for parameter in self.markup.parameters if parameter.close)
        return start >= source.offset and any(opener.begins(source.text, start - source.offset) for opener in openers)

    def undeclared_first(self) -> Steps[tuple[Parameter, Match] | None]:
        """Find an undeclared element before the first declared one; another call that begins here is none."""
        opener, call = (yield from self.find_opener(0)), self.call
        if opener is None or call.keys or call.tool is None or not self.markup.parameters[0].is_element:
            return None
        if self.block.tools.find(read_key(opener[1])) is not None:
            source = self.block.source
            gap = yield from source.find_nonblank(len(opener[1][0]))
            if source.text[source.pos + gap : source.pos + gap + 1] in _NO_TEXT:
                return None
        if not (yield from self.rest_parses(Goal.DECLARED, 0, "", True, False)):
            return None
        return (yield from self.find_opener(0))  # more may have arrived meanwhile

    def end(self, head: str) -> Steps[_Next | None]:
        source = self.block.source
        while (found := self.closer.at(source.text, source.pos, source.final)) is MORE:
            yield
        if found is None:
            return None
        # without a closing mark of its own the call ends where its wrapper does, and leaves that mark to it
        if self.is_unknown and "{name}" in self.syntax.header:
            return _Next.REFUSED
        source.pos = found.end() if self.syntax.close else source.pos
        if self.ends_in_break and not self.block.wrap_open and (yield from self.lacks_wrapper()):
            self.call.add_defect(Reason.MALFORMED, "call", "the end of a wrapper", "its beginning before the call")
        self.call.commit()
        return _Next.DONE

    def lacks_wrapper(self) -> Steps[bool]:
        """Whether a wrapper that was not opened is closed here: what is layout in this call is unknown."""
        gap = yield from self.block.source.find_nonblank()
        return (yield from self.block.source.look(FOREIGN_CLOSER, gap)) is not None

    def json_body(self, head: str) -> Steps[_Next | None]:
        if head != "{" or self.call.keys:
            return None
        self.block.source.pos += 1
        if not (yield from OBJECT.read(self.block, self.call)):
            return _Next.REFUSED
        if (yield from self.closes_value()):
            self.call.add_defect(Reason.MALFORMED, "call", "an object and a closing mark", "a parameter")
        return _Next.DONE if self.call.is_truncated else _Next.GO_ON

    def closes_value(self) -> Steps[bool]:
        """Whether the closing mark of a parameter follows."""
        gap = yield from self.block.source.find_nonblank()
        for parameter in self.markup.parameters:
            closers = tuple(fill_key(closer, "") for closer in parameter.close)
            if closers and (yield from self.block.source.look(mark(closers), gap)) is not None:
                return True
        return False

    @property
    def is_unknown(self) -> bool:
        """Whether neither a known tool nor an argument shows that this is a call."""
        return self.call.tool is None and not self.call.keys

    def may_lack_marks(self) -> bool:
        """Whether arguments without marks may follow the header: of a known tool, in marks of a call, and none yet."""
        return self.block.marked and self.call.tool is not None and not self.call.keys

    def bare_pairs(self, head: str) -> Steps[_Next | None]:
        """Read a call that holds nothing but pairs of key and value, all of them declared."""
        source, call = self.block.source, self.call
        if not head.isalpha() or not self.may_lack_marks():
            return None
        while (end := source.text.find("<", source.pos)) < 0 and not source.final:
            if len(source.text) - source.pos > _MAX_PAIRS:
                return None
            yield
        pairs = read_pairs(source.text[source.pos : end]) if end >= 0 else None
        if not pairs or not all(map(call.declares, pairs)):
            return None
        size = end - source.pos
        if not (yield from self.is_closed(size)):
            return None
        source.pos += size
        call.commit()
        call.repair("bare_pairs")
        for key, text in pairs.items():
            self.add(key, text, call.parameter_type(key))
        return _Next.GO_ON

    def is_closed(self, ahead: int) -> Steps[bool]:
        """Whether the call or its wrapper is closed ``ahead`` characters from here."""
        source = self.block.source
        closed = (yield from source.look(self.closer, ahead)) is not None
        return closed or (yield from source.choose(self.block.closing, ahead)) is not None

    def end_of_text(self, head: str) -> Steps[_Next | None]:
        """Handle the end of the text, perhaps inside the closing mark: harmless if only that mark is missing."""
        yield from ()
        source, call = self.block.source, self.call
        if not source.final or not (not head or self.closer.begins(source.text, source.pos)):
            return None
        if self.is_unknown:
            return _Next.REFUSED
        source.pos = len(source.text)
        unfinished = not call.keys and "stray_closer" not in call.repairs
        if unfinished or source.truncated or (not head and not self.block.marked):
            call.truncate()
        call.repair("missing_closer")
        return _Next.DONE

    def end_of_wrapper(self, head: str) -> Steps[_Next | None]:
        if not self.call.keys or (yield from self.block.source.choose(self.block.closing)) is None:
            return None
        self.call.repair("missing_closer")
        return _Next.DONE

    def loose_text(self, head: str) -> Steps[_Next | None]:
        """Read text without a parameter around it: accepted if the tool takes one text and nothing else."""
        call = self.call
        tagged = self.syntax.header[0].startswith("<")
        if call.tool is None or not tagged or head == "<" or not self.block.at_line or not self.may_lack_marks():
            return None
        text = yield from self.block.source.peek(MAX_OPENER)
        if self.begins_with_mark(text):
            call.commit()
            return self.broken(head)
        if not (key := call.tool.sole_text_parameter):
            return None
        call.commit()
        parameter = next(parameter for parameter in self.markup.parameters if parameter.decode is None)
        if self.is_damaged_opener(parameter, key, text):
            return self.broken(head)
        self.due, self.begins_twice = spell_closer(parameter.close[0], "", key), 1
        call.repair("missing_parameter_opener")
        yield from self.value(parameter, key, call.parameter_type(key))
        return _Next.DONE if call.is_truncated else _Next.GO_ON

    def begins_with_mark(self, text: str) -> bool:
        """Whether text after the header begins with an opening mark without its beginning, or with other marks."""
        openers = (parameter for parameter in self.markup.parameters if parameter.close)
        return any(parameter.words.search(text) for parameter in openers) or bool(BEFORE_STRUCTURE.match(text))

    def is_damaged_opener(self, parameter: Parameter, key: str, text: str) -> bool:
        """Whether text after the header is a damaged opening mark, or its first blanks may be part of the value."""
        blanks = ends_in_blanks(self.layout) and parameter.trim_for(key) is not Trim.BLANKS
        return blanks or begins_damaged(text, spell_closer(parameter.open, "", key))

    def stray_closer(self, head: str) -> Steps[_Next | None]:
        call, source = self.call, self.block.source
        found = yield from source.look(FOREIGN_CLOSER)
        harmless = call.keys or (call.tool is not None and not call.tool.required)
        if found is None or not (harmless or found[0] == "</think>"):
            return None
        source.pos = found.end()
        name = found.groupdict().get("name") or ""
        call.suspect(f"the closing mark of {name}", name)
        call.repair("stray_closer")
        return _Next.GO_ON

    def broken(self, head: str) -> _Next:
        call = self.call
        if not call.live and (not self.block.marked or not call.keys):
            return _Next.REFUSED
        expected = self.syntax.close[0] if self.syntax.close else "the end of the call"
        call.add_defect(Reason.MALFORMED, "call", f"{head!r} after the parameters", f"a parameter or {expected}")
        return _Next.DONE

    # -- one parameter -------------------------------------------------------------------------------------------------

    def parameter_here(self, ahead: int) -> Steps[tuple[Parameter, Match] | None]:
        """The parameter that opens ``ahead`` characters from here and is one this tool can have."""
        opener = yield from self.find_opener(ahead)
        if opener is None or self.block.source.here + ahead in self.tried.openers:
            return opener
        if not self.admits(opener[0], read_key(opener[1])):
            return None
        if not opener[0].is_element or self.call.declares(read_key(opener[1])):
            return opener
        if (yield from self.block.source.choose(self.block.closing, ahead)) is not None:
            return None
        return (yield from self.find_opener(ahead))  # more may have arrived meanwhile

    def rest_parses(self, goal: Goal, ahead: int, key: str, elements: bool, otherwise: bool) -> Steps[bool]:
        """Whether the rest of the call parses ``ahead`` characters from here, where the value of ``key`` may end."""
        return Lookahead(self, goal, key, elements).read(ahead, otherwise)

    def closes_later(self, parameter: Parameter, key: str, ahead: int) -> Steps[bool]:
        """Whether the value of ``key`` is closed further on, and the rest of the call parses from there."""
        lookahead = Lookahead(self, Goal.CLOSED, key, parameter.is_element)
        return lookahead.read(ahead, False, value_marks(parameter, key))

    def balances_later(self, parameter: Parameter, key: str, depth: int) -> Steps[bool]:
        """Whether the value of ``key`` closes its ``depth`` open elements, itself after them, and the rest parses."""
        lookahead = Lookahead(self, Goal.BALANCED, key, parameter.is_element)
        return lookahead.read(0, False, value_marks(parameter, key), depth)

    def find_header(self) -> Steps[Match | None]:
        """The header of a further call here that the closing mark of this one would close."""
        source = self.block.source
        found = yield from source.look(self.header)
        for header in self.quoted if found is None else ():
            quoted = yield from source.look(header)
            if quoted is not None and is_closed_by(quoted, self.closer):
                return quoted
        return found

    def find_opener(self, ahead: int) -> Steps[tuple[Parameter, Match] | None]:
        """The opener of a parameter there; cached, because several callers ask for it."""
        source, markup = self.block.source, self.markup
        text, at, seen = self.looked
        if text is source.text and at == source.pos + ahead:
            return seen
        while (index := markup.openers.at(source.text, source.pos + ahead, source.final)) is MORE:
            yield
        opener = None
        if index is not None:
            parameter = markup.spellings[index]
            found = parameter.opener.match(source.text, source.pos + ahead)
            opener = (parameter, found) if found is not None else None
        self.looked = (source.text, source.pos + ahead, opener)
        return opener

    def admits(self, parameter: Parameter, key: str) -> bool:
        """Whether this may be a parameter: a plain element only once, and the first one only if declared."""
        call = self.call
        if call.admits(key):
            return not parameter.is_element or key not in call.keys
        if parameter.is_element:
            page = (key in HTML or not parameter.open.endswith("<{key}>")) and not self.block.marked
            return (call.is_open_ended or self.behind_parameter) and key not in call.keys and not page
        return self.block.marked or call.live or call.is_open_ended

    def shape_of(self, parameter: Parameter, key: str, word: str | None) -> SchemaType:
        """The type of a parameter, from the schema, else from the mark."""
        shape = self.call.parameter_type(key)
        if shape.kinds or self.call.declares(key):
            return shape
        if key in ENVELOPES and self.call.tool is not None:
            return UNTYPED
        return UNTYPED if word and word.lower() not in parameter.texts else shape

    def value(self, parameter: Parameter, key: str, shape: SchemaType) -> Steps[None]:
        """Read one value; it is streamed if it takes any text."""
        self.behind_parameter = False
        sections = yield from read_sections(self, parameter, key)
        if sections is not None:
            self.add(key, sections, shape)
            return
        streams = shape.streams or not (shape.kinds or shape is UNTYPED)
        if shape.nullable_text:
            streams = not (yield from may_be_null(self.block.source))
        if not streams or parameter.decode is not None:
            yield from self.collect(parameter, key, shape)
            return
        call = self.call
        call.open_text(key)
        raw = open_value(self, parameter, key, call.text, passing=True)
        if (yield from raw.read()):
            call.close_text()
        else:
            call.truncate()
        if raw.ends_in_layout:  # it was sent with the value
            raw.add_defect("a line break and no closing mark")

    def collect(self, parameter: Parameter, key: str, shape: SchemaType) -> Steps[None]:
        """Read a value that is typed when it is complete."""
        pieces: list[str] = []
        raw = open_value(self, parameter, key, pieces.append, nested=bool(shape.kinds & {"array", "object"}))
        if (yield from raw.read()):
            text = "".join(pieces)
            text = text.rstrip() if raw.ends_in_layout else text
            self.add(key, parameter.decode(text) if parameter.decode else text, shape)
        else:
            self.call.truncate()

    def add(self, key: str, text: str, shape: SchemaType) -> None:
        """Add one complete value."""
        call, where = self.call, f"argument {key}"
        if key in ENVELOPES and not call.declares(key) and (parsed := parse_object(text)) is not None:
            call.repair("unwrapped_arguments")
            call.add_members(parsed.value)
            return
        if shape.kinds & {"array", "object"}:
            readings = read_elements(text) if text.lstrip()[:1] in ("<", "]", "") else ()
            typed = [coerce_text_leaves(elements or "", shape, where) for elements in readings]
            if typed:
                call.add(key, next((value for value in typed if not value.defects), typed[0]))
                return
        call.add(key, coerce_text(text, shape, where))
