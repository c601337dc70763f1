"""Arguments as marked-up parameters: ``<parameter=path>a.py</parameter>`` and all its relatives.

Strategy. The text of a value is raw, so the one hard question is where it ends. A closing mark counts only if what
follows it continues the structure: the next parameter, the end of the call, the end of the text. Openers of the same
parameter inside a value are counted, so a quoted example closes its own marks. When the closing mark is missing, the
value ends where the structure proves it: before a declared parameter that has not been given yet and stands at the
start of a line, or before the mark that closes the whole call. Values whose parameter takes any text leave while they
come in; the others are typed by the schema when they are complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from toolglot.codecs.elements import parse_elements
from toolglot.codecs.members import OBJECT, parse_object
from toolglot.codecs.trim import Trim, Trimmer
from toolglot.dialect import Call
from toolglot.draft import Draft, Frame
from toolglot.events import Reason
from toolglot.scanner import Choice, Mark, Match, Run, Steps
from toolglot.schema import UNTYPED, Shape, conform_text_leaves, read_text


@dataclass(frozen=True, slots=True)
class Parameter:
    """How one parameter is written. ``{key}`` in the closing mark is the key of the opening one.

    ``texts`` are type words in the opening mark that say "this is text"; any other word says "this is JSON".
    """

    open: str
    close: tuple[str, ...]
    trim: Trim = Trim.NONE
    verbatim: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ("string", "str", "true", "text")
    decode: Callable[[str], str] | None = None
    repair: str = ""

    def trim_for(self, key: str) -> Trim:
        return Trim.BREAK if key in self.verbatim else self.trim


@lru_cache(maxsize=4096)
def _mark(*templates: str) -> Mark:
    return Mark(*templates)


@lru_cache(maxsize=4096)
def _choice(*groups: tuple[str, ...]) -> Choice:
    return Choice(groups)


def _spell(template: str, key: str) -> str:
    return template.replace("{key}", key.replace("{", "{{").replace("}", "}}"))


_ENVELOPES = ("arguments", "parameters", "args", "params", "input")
"""Names of a parameter that holds all the others."""

_CDATA = Mark("<![CDATA[")
_FOREIGN_CLOSER = Mark("</{ns}{name}{junk}>", "</{ns}{name}\n")
_TRANSPARENT = Mark("<{slash}{ns}{name_group}>")
_TRANSPARENT_END = Mark("</{ns}{name_group}>")


@dataclass(frozen=True, slots=True)
class Markup:
    """The codec, given the spellings of its parameters, the usual one first."""

    parameters: tuple[Parameter, ...]
    heads: str = ""

    def accepts(self, head: str) -> bool:
        return head in self.heads if self.heads else head != "{"

    def read(self, frame: Frame, call: Call, found: Match) -> Steps[bool]:
        draft = frame.begin(found["name"], frame.source.here)
        if draft is None:
            return False
        frame.source.pos = found.end()
        if found[0].rstrip(">").endswith("/"):
            draft.sure()
            return True
        return (yield from _Reading(self, frame, call, draft).read())

    def openers(self) -> Choice:
        return _choice(*((parameter.open,) for parameter in self.parameters))


@dataclass(slots=True)
class _Reading:
    """One call while its parameters are read."""

    markup: Markup
    frame: Frame
    call: Call
    draft: Draft
    closer: Mark = field(init=False)
    header: Mark = field(init=False)
    openers: Choice = field(init=False)

    def __post_init__(self) -> None:
        closers = self.call.close or self.frame.wrap_close
        self.closer = _mark(*(_spell(close, self.draft.name) for close in closers))
        self.header = _mark(*(header if header != "<{name}>" else f"<{self.draft.name}>" for header in self.call.header))
        self.openers = self.markup.openers()

    def read(self) -> Steps[bool]:
        source = self.frame.source
        while True:
            head = yield from source.skip_blanks()
            opener = yield from self.parameter_here(0)
            if (yield from self.transparent(opener)):
                continue
            if opener is not None:
                parameter, found = opener
                source.pos = found.end()
                self.draft.sure()
                yield from self.parameter(parameter, found)
                if self.draft.cut:
                    return True
                continue
            closed = yield from source.look(self.closer)
            if closed is not None:
                # without a closing mark of its own the call ends where its wrapper does, and leaves that mark to it
                source.pos = closed.end() if self.call.close else source.pos
                self.draft.sure()
                return True
            if head == "{" and not self.draft.keys:
                source.pos += 1
                if not (yield from OBJECT.read(self.frame, self.draft)):
                    return False
                continue
            return (yield from self.irregular(head))

    def transparent(self, opener: tuple[Parameter, Match] | None) -> Steps[bool]:
        """Step over an element that only groups the parameters and is none itself."""
        source = self.frame.source
        found = yield from source.look(_TRANSPARENT)
        if found is None or (opener is not None and self.draft.declares(found["name"])):
            return False
        source.pos = found.end()
        return True

    def irregular(self, head: str) -> Steps[bool]:
        """Neither a parameter nor the end of the call: the end of the text, a stray mark, or loose text."""
        source, draft = self.frame.source, self.draft
        if source.final and (not head or self.closer.begins(source.text, source.pos)):
            if not draft.keys and draft.tool is None:
                return False
            source.pos = len(source.text)
            if not draft.keys or source.truncated:
                draft.truncate()
            draft.repair("missing_closer")
            return True
        closing = self.frame.closing
        if draft.keys and closing is not None and (yield from source.choose(closing)) is not None:
            draft.repair("missing_closer")
            return True
        sole = draft.tool.sole_text_parameter if draft.tool is not None else None
        if not draft.keys and sole and head != "<" and self.frame.marked and self.call.header[0].startswith("<"):
            draft.sure()
            draft.repair("missing_parameter_opener")
            yield from self.value(self.markup.parameters[0], sole, draft.shape(sole))
            return True
        if draft.keys and (yield from source.match(_FOREIGN_CLOSER)) is not None:
            draft.repair("stray_closer")
            return (yield from self.read())
        if not draft.live and (not self.frame.marked or not draft.keys):
            return False
        expected = self.call.close[0] if self.call.close else "the end of the call"
        draft.flaw(Reason.MALFORMED, "call", f"{head!r} after the parameters", f"a parameter or {expected}")
        return True

    # -- one parameter -----------------------------------------------------------------------------------------------

    def parameter_here(self, ahead: int) -> Steps[tuple[Parameter, Match] | None]:
        """The parameter that opens ``ahead`` characters from here and is one this tool can have."""
        source = self.frame.source
        index = yield from source.choose(self.openers, ahead)
        if index is None:
            return None
        parameter = self.markup.parameters[index]
        found = _mark(parameter.open).at(source.text, source.pos + ahead, True)
        if not isinstance(found, re.Match) or not self.admits(parameter, found["key"]):
            return None
        return parameter, found

    def admits(self, parameter: Parameter, key: str) -> bool:
        """A plain element is a parameter only when the tool declares it, and only once."""
        if not parameter.open.endswith("<{key}>"):
            return True
        tool = self.draft.tool
        if tool is None or not tool.parameters.properties:
            return key not in self.draft.keys
        return tool.declares(key) and key not in self.draft.keys

    def parameter(self, parameter: Parameter, found: Match) -> Steps[None]:
        key = found["key"].replace("\\", "")
        if parameter.repair:
            self.draft.repair(parameter.repair)
        shape = self.draft.shape(key)
        word = found.groupdict().get("type")
        if word and not shape.kinds and word.lower() not in parameter.texts:
            shape = UNTYPED
        if key in _ENVELOPES and not self.draft.declares(key) and self.draft.tool is not None:
            shape = UNTYPED
        yield from self.value(parameter, key, shape)

    def value(self, parameter: Parameter, key: str, shape: Shape) -> Steps[None]:
        source, draft = self.frame.source, self.draft
        if (yield from source.match(_CDATA)) is not None:
            parameter = Parameter(parameter.open, tuple(f"]]> {close}" for close in parameter.close))
        streams = shape.streams or (shape.nullable_text and not (yield from self.may_be_null()))
        pieces: list[str] = []
        if (streams or not shape.kinds and shape is not UNTYPED) and parameter.decode is None:
            draft.open_text(key)
            ended = yield from _Value(self, parameter, key, draft.text, True).read()
            if ended:
                draft.close_text()
        else:
            ended = yield from _Value(self, parameter, key, pieces.append, False).read()
            if ended:
                text = "".join(pieces)
                self.add(key, parameter.decode(text) if parameter.decode else text, shape)
        if not ended:
            draft.truncate()

    def may_be_null(self) -> Steps[bool]:
        gap = yield from self.frame.source.find_nonblank()
        source = self.frame.source
        while len(source.text) - source.pos - gap < 4 and not source.final:
            yield
        return source.text[source.pos + gap : source.pos + gap + 4].lower() in ("null", "none")

    def add(self, key: str, text: str, shape: Shape) -> None:
        where = f"argument {key}"
        if key in _ENVELOPES and not self.draft.declares(key):
            parsed = parse_object(text)
            if parsed is not None and isinstance(parsed.value, dict):
                self.draft.repair("unwrapped_arguments")
                for name, value in parsed.value.items():
                    self.draft.add_value(name, value)
                return
        if text.lstrip()[:1] in ("<", "]") and shape.kinds & {"array", "object"}:
            elements = parse_elements(text)
            if elements is not None:
                self.draft.add(key, conform_text_leaves(elements, shape, where))
                return
        if not text.strip() and shape.kinds and shape.kinds <= {"array", "object"}:
            self.draft.add(key, conform_text_leaves("", shape, where))
            return
        self.draft.add(key, read_text(text, shape, where))


@dataclass(slots=True)
class _Value:
    """One value while its end is looked for."""

    reading: _Reading
    parameter: Parameter
    key: str
    take: Callable[[str], None]
    streams: bool
    depth: int = 0
    calls: int = 0
    clean: bool = True
    line_start: bool = True

    def read(self) -> Steps[bool]:
        """Hand the value on up to its end, which is consumed; False when the text ends first."""
        source = self.reading.frame.source
        out = Trimmer(self.take, self.parameter.trim_for(self.key))
        closer = _mark(*(_spell(close, self.key) for close in self.parameter.close))
        again = _mark(self.parameter.open if "<{key}>" not in self.parameter.open else f"<{self.key}{{attributes}}>")
        heads = "".join(sorted(closer.heads | again.heads | {"<"}))
        stops = re.compile(f"[{re.escape(heads)}]")
        passing = self.reading.draft.passing_text if self.streams else None
        blanks = "\\s" if self.parameter.trim_for(self.key) is Trim.BLANKS else "\r\n"
        run = Run(re.compile(f"[{re.escape(heads)}{blanks}]").search, passing) if passing is not None else None
        while True:
            found = stops.search(source.text, source.pos)
            end = len(source.text) if found is None else found.start()
            if end > source.pos:
                piece = source.text[source.pos : end]
                self.line_start = piece.rstrip(" \t").endswith("\n") or (self.line_start and piece.isspace())
                out.take(piece)
                source.pos = end
            if found is None:
                if source.final:
                    return False
                offset = source.here
                source.run = run if out.idle else None
                yield
                source.run = None
                if source.offset > offset:
                    self.line_start = False
                continue
            if (yield from self.ends(closer, again)):
                out.end()
                return True
            self.clean = False
            self.line_start = False
            out.take(source.text[source.pos])
            source.pos += 1

    def ends(self, closer: Mark, again: Mark) -> Steps[bool]:
        """Whether the value ends here; its closing mark is consumed."""
        source, draft = self.reading.frame.source, self.reading.draft
        found = yield from source.look(closer)
        if found is not None:
            size = found.end() - source.pos
            if (yield from self.structure_follows(size, self.depth > 0)):
                source.pos += size
                return True
            self.depth = max(0, self.depth - 1)
            return False
        opened = yield from source.look(again)
        if opened is not None:
            key = opened.groupdict().get("key", self.key)
            if self.line_start and draft.declares(key) and key not in draft.keys:
                draft.repair("missing_parameter_closer")
                return True
            self.depth += 1
            return False
        if source.text[source.pos] != "<" and not self.reading.call.close:
            return False
        return (yield from self.ends_without_closer())

    def ends_without_closer(self) -> Steps[bool]:
        reading = self.reading
        source, draft = reading.frame.source, reading.draft
        found = yield from source.look(reading.closer)
        if found is not None:
            if (yield from self.call_is_over(found.end() - source.pos, self.depth + self.calls > 0)):
                draft.repair("missing_parameter_closer")
                return True
            self.calls = max(0, self.calls - 1)
            return False
        if (yield from source.look(reading.header)) is not None:
            self.calls += 1
            return False
        opener = yield from reading.parameter_here(0)
        if opener is not None and self.line_start and draft.declares(opener[1]["key"]):
            if opener[1]["key"] not in draft.keys:
                draft.repair("missing_parameter_closer")
                return True
        foreign = yield from source.look(_FOREIGN_CLOSER)
        if foreign is not None and self.clean:
            size = len(foreign[0].rstrip("\n")) if foreign[0].endswith("\n") else foreign.end() - source.pos
            if (yield from self.structure_follows(size, True)):
                source.pos += size
                draft.repair("wrong_closer")
                return True
        return False

    def structure_follows(self, ahead: int, strictly: bool) -> Steps[bool]:
        """Whether the structure goes on behind a mark that ends ``ahead`` characters from here.

        Strictly: inside a quoted example only the end of everything counts, or a parameter not given yet.
        """
        reading = self.reading
        source = reading.frame.source
        gap = yield from source.find_nonblank(ahead)
        if source.pos + gap >= len(source.text):
            return True
        opener = yield from reading.parameter_here(gap)
        if opener is not None:
            return not strictly or (self.clean and reading.draft.declares(opener[1]["key"]))
        found = yield from source.look(reading.closer, gap)
        if found is not None:
            return not strictly or (yield from self.call_is_over(found.end() - source.pos, True))
        if source.final and reading.closer.begins(source.text, source.pos + gap):
            return True
        if (yield from source.look(_TRANSPARENT_END, gap)) is not None and not strictly:
            return True
        closing = reading.frame.closing
        return not strictly and closing is not None and (yield from source.choose(closing, gap)) is not None

    def call_is_over(self, ahead: int, strictly: bool) -> Steps[bool]:
        """Whether behind the closing mark of the call comes what comes after calls, and not more of the value.

        Strictly: nothing but the end of the text.
        """
        frame = self.reading.frame
        source = frame.source
        gap = yield from source.find_nonblank(ahead)
        if source.pos + gap >= len(source.text):
            return True
        if frame.closing is None or (yield from source.choose(frame.closing, gap)) is None:
            return False
        if not strictly:
            return True
        gap = yield from source.find_nonblank(gap + frame.closing.size(source.text, source.pos + gap))
        return source.pos + gap >= len(source.text)
