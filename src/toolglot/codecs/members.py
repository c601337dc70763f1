"""Arguments as a list of members: a JSON object, Python keyword arguments, a bare ``key:value`` object.

    {"path": "a.py", "limit": 5}        (path="a.py", limit=5)        {path:<|"|>a.py<|"|>,limit:5}

Strategy. The three differ only in brackets, in the sign between key and value and in how strings are quoted, so one
reader serves them all. A string whose parameter takes any text leaves while it comes in; every other value is
gathered up to the comma or bracket that ends it, parsed once, and typed by the schema.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache, partial

from toolglot.codecs.strings import Collector, read_string
from toolglot.draft import Draft, Frame
from toolglot.events import Reason
from toolglot.jsontext import JSON, PYTHON, Literals, NotJson, Parsed, Value, parse
from toolglot.pattern import MORE, Choice, Mark
from toolglot.scanner import Source, Steps
from toolglot.schema import Shape, conform, read_text

ENVELOPES = ("arguments", "parameters", "args", "params", "input")
"""Names of an argument that holds all the others."""

_DEFINITION = ("type", "properties", "$schema")
"""First keys of a tool's definition, where a call has its arguments."""

_CLOSING_BRACKETS = ("}", "]", ")")
_BEHIND_CALLS = ("<", "`", ",", ";")
_NOT_PLAIN = re.compile(r"[\"<>{}\[\]\n]")
_KEY = Mark('"{quoted}"', "'{quoted_once}'", '<|"|>{key}<|"|>', "<escape>{key}<escape>", "{key}")
_QUOTES_PAIR = ('"', "'")


@lru_cache(maxsize=64)
def _next_key(assign: tuple[str, ...], closer: str, quotes: tuple[str, ...]) -> Mark:
    """What may stand behind a comma: the next key, or the closer (a comma too many)."""
    closing = "}}" if closer == "}" else closer
    keys = ["{key}", *(f"{quote}{{key}}{quote}" for quote in quotes), '"{quoted}"']
    return Mark(*(f" {key} {sign}" for sign in assign for key in keys), f" {closing}")


def is_cut_in_key(source: Source) -> bool:
    """Whether the text ended inside a key, or right behind it."""
    return source.at_end or (source.final and _KEY.at(source.text, source.pos, False) is MORE)


@dataclass(frozen=True, slots=True)
class Members:
    """The notation of one such list."""

    opener: str = "{"
    closer: str = "}"
    assign: tuple[str, ...] = (":",)
    literals: Literals = JSON
    separator: str = ","
    usual_key: re.Pattern[str] = field(init=False)
    """A key in quotes and the sign behind it, plainly written, with what comes next."""

    def __post_init__(self) -> None:
        signs = "|".join(re.escape(sign) for sign in sorted(self.assign, key=len, reverse=True) if sign) or "(?!)"
        usual = rf'\s{{0,8}}+"([^"\\\n]{{0,256}}+)"\s{{0,8}}+(?:{signs})\s{{0,8}}+(?=\S)'
        object.__setattr__(self, "usual_key", re.compile(usual))

    def read(self, frame: Frame, draft: Draft) -> Steps[bool]:
        """Read the members up to the closer (the opener is consumed); False when this is not such a list."""
        source = frame.source
        while True:
            head = yield from source.skip_blanks()
            if head == self.separator and draft.keys:
                source.pos += 1
                head = yield from source.skip_blanks()
                if head == self.closer:
                    draft.repair("trailing_comma")
            if head == self.closer:
                source.pos += 1
                return True
            if head in frame.closing.starts and (yield from self._is_over(frame, draft, head)):
                return True
            if self.closer == ")" and not draft.keys and (yield from self._unkeyed(frame, draft, head)):
                continue
            key = yield from self.key(source)
            if key is None:
                return self._broken(draft, head)
            if key in ENVELOPES and (yield from self._is_wrapped(source, draft, key)):
                draft.repair("unwrapped_arguments")
                source.pos += 1
                if not (yield from self.read(frame, draft)) or draft.cut:
                    return True
            elif not self._admit(frame, draft, key):
                return False
            elif not (yield from self.value(frame, draft, key)):
                return True

    def _is_over(self, frame: Frame, draft: Draft, head: str) -> Steps[bool]:
        """The text ends here, or the mark that closes the whole call stands here and only our closer is missing."""
        if not head:
            draft.truncate()
            return True
        if (yield from frame.source.choose(frame.closing)) is None:
            return False
        draft.repair("missing_bracket")
        return True

    def _unkeyed(self, frame: Frame, draft: Draft, head: str) -> Steps[bool]:
        """Arguments of a function call without a name: a whole object of them, or the only text the tool takes."""
        source = frame.source
        if head == "*" and (yield from source.peek(3)) == "**{":
            source.pos, head = source.pos + 2, "{"
        if head == "{":
            source.pos += 1
            return (yield from OBJECT.read(frame, draft))
        sole = draft.tool.sole_text_parameter if draft.tool is not None else None
        if head not in _QUOTES_PAIR or sole is None:
            return False
        draft.repair("positional_argument")
        draft.sure()
        yield from self.value(frame, draft, sole)
        return True

    def _is_wrapped(self, source: Source, draft: Draft, key: str) -> Steps[bool]:
        """The arguments are wrapped once more, under a name that is none of them."""
        if draft.keys or draft.is_open_ended or draft.declares(key):
            return False
        return (yield from source.skip_blanks()) == self.opener

    def _broken(self, draft: Draft, head: str) -> bool:
        if is_cut_in_key(draft.frame.source):
            draft.truncate()
            return True
        if not draft.live and (not draft.frame.marked or draft.tool is None):
            return False
        draft.flaw(Reason.MALFORMED, "arguments", f"{head!r} where a key was due", f"a key or {self.closer!r}")
        return True

    def _admit(self, frame: Frame, draft: Draft, key: str) -> bool:
        """Whether the call may go on with this key; the first right one makes a tentative call sure."""
        if not frame.marked and not draft.keys and key in _DEFINITION and not draft.declares(key):
            return False
        if frame.marked or draft.declares(key) or draft.is_open_ended:
            draft.sure()
            return True
        return draft.live

    # -- keys --------------------------------------------------------------------------------------------------------

    def key(self, source: Source) -> Steps[str | None]:
        """The key that stands here, and the sign behind it."""
        usual = self.usual_key.match(source.text, source.pos)
        if usual is not None:
            source.pos = usual.end()
            return usual[1]
        found = yield from source.match(_KEY)
        if found is None:
            return None
        key = _decode_key(next((text for text in found.groups() if text is not None), ""))
        yield from source.skip_blanks()
        here = yield from source.peek(2)
        for sign in sorted(self.assign, key=len, reverse=True):
            if here.startswith(sign):
                source.pos += len(sign)
                return key if sign else key.lstrip("-")
        return None

    # -- values ------------------------------------------------------------------------------------------------------

    def value(self, frame: Frame, draft: Draft, key: str) -> Steps[bool]:
        """Read the value of one member into the draft; False when the text ended inside it."""
        source = frame.source
        yield from source.skip_blanks()
        quote = yield from _string_here(source, self.literals.quotes)
        shape = draft.shape(key)
        if not quote:
            return (yield from self._bare_value(frame, draft, key, shape))
        source.pos += len(quote)
        if quote == "'" and "single_quotes" not in self.literals.native:
            draft.repair("single_quotes")
        confirm = partial(self._ends_value, frame, draft)
        if shape.streams or shape.nullable_text or not shape.kinds:
            draft.open_text(key)
            if not (yield from read_string(source, quote, self.literals, draft, confirm, frame.closing)):
                draft.truncate()
                return False
            draft.close_text()
            return True
        out = Collector()
        if not (yield from read_string(source, quote, self.literals, out, confirm, frame.closing)):
            draft.truncate()
            return False
        for name in out.repairs:
            draft.repair(name)
        draft.add(key, conform(decode(out), shape, f"argument {key}"))
        return True

    def _ends_value(self, frame: Frame, draft: Draft, ahead: int, doubted: bool) -> Steps[bool]:
        """Whether a quote that ends ``ahead`` characters from here ends its value.

        Once a quote turned out to be part of the value, the next one must be followed by a declared key, or by the
        brackets that close the call.
        """
        source = frame.source
        gap = yield from source.find_nonblank(ahead)
        head = source.text[source.pos + gap : source.pos + gap + 1]
        if not head:
            return not doubted
        if head == self.separator:
            if not doubted and self.usual_key.match(source.text, source.pos + gap + 1) is not None:
                return True
            return (yield from self._key_follows(source, draft, gap + 1, doubted))
        if head == self.closer:
            return (yield from self._end_follows(frame, gap + 1, doubted))
        if head in _QUOTES_PAIR and "\n" in source.text[source.pos + ahead : source.pos + gap]:
            # a new line that begins with a key: only the comma is missing
            return (yield from self._key_follows(source, draft, gap, True))
        if head in _QUOTES_PAIR and self.literals is PYTHON:
            return True
        return head in frame.closing.starts and (yield from source.choose(frame.closing, gap)) is not None

    def _key_follows(self, source: Source, draft: Draft, ahead: int, declared: bool) -> Steps[bool]:
        found = yield from source.look(_next_key(self.assign, self.closer, self.literals.quotes), ahead)
        if found is None:
            return False
        key = found.groupdict().get("key")
        return not declared or key is None or draft.declares(key) or draft.is_open_ended

    def _end_follows(self, frame: Frame, ahead: int, doubted: bool) -> Steps[bool]:
        source = frame.source
        if doubted:
            return (yield from self._all_closes(source, ahead))
        while len(source.text) <= source.pos + ahead and not source.final:
            yield
        behind = source.text[source.pos + ahead : source.pos + ahead + 1]
        return not (behind.isalnum() or behind in ('"', "'", "\\", "$"))

    def _all_closes(self, source: Source, ahead: int) -> Steps[bool]:
        """Whether nothing but closing brackets follows, up to what comes after calls."""
        brackets = 1
        while True:
            ahead = yield from source.find_nonblank(ahead)
            head = source.text[source.pos + ahead : source.pos + ahead + 1]
            if head not in _CLOSING_BRACKETS:
                return head in _BEHIND_CALLS or (not head and brackets > 1)
            ahead, brackets = ahead + 1, brackets + 1

    def _bare_value(self, frame: Frame, draft: Draft, key: str, shape: Shape) -> Steps[bool]:
        text = yield from gather(frame.source, self.separator + self.closer, frame.closing, self.literals.quotes)
        if text is None:
            draft.truncate()
            return False
        where = f"argument {key}"
        try:
            parsed = parse(text, self.literals)
        except NotJson:
            self._unquoted(draft, key, text.strip(), shape)
            return True
        for name in parsed.repairs:
            draft.repair(name)
        draft.add(key, conform(parsed.value, shape, where))
        return True

    def _unquoted(self, draft: Draft, key: str, text: str, shape: Shape) -> None:
        """Text without quotes: clear if it is one plain line."""
        if not text or _NOT_PLAIN.search(text):
            draft.flaw(Reason.INVALID_VALUE, f"argument {key}", text[:80] or "nothing", "a value in quotes")
            return
        draft.add(key, read_text(text, shape, f"argument {key}"))
        draft.repair("unquoted_value")


def _decode_key(written: str) -> str:
    """A key without its escapes; those that are none in JSON are markdown's and mean nothing."""
    if "\\" not in written:
        return written
    try:
        key = parse(f'"{written}"').value if "\\_" not in written else None
    except NotJson:
        key = None
    return key if isinstance(key, str) else written.replace("\\", "")


def decode(out: Collector) -> str:
    """The text that a collected JSON string stands for."""
    value = parse('"' + "".join(out.pieces) + '"').value
    return value if isinstance(value, str) else ""


_OPENING = {"{": "}", "[": "]", "(": ")"}
_STRUCTURE = re.compile(r"""["'<\[\]{}(),]""")


@dataclass(slots=True)
class _Gathering:
    """Where a scan over a nested value stands."""

    closers: list[str] = field(default_factory=list)
    last: str = ":"
    pieces: list[str] = field(default_factory=list)

    def take(self, source: Source, end: int) -> None:
        piece = source.text[source.pos : end]
        self.pieces.append(piece)
        self.last = piece.rstrip()[-1:] or self.last
        source.pos = end

    def take_bracket(self, source: Source, token: str) -> None:
        if token in _OPENING:
            self.closers.append(_OPENING[token])
        elif self.closers and token == self.closers[-1]:
            self.closers.pop()
        self.take(source, source.pos + 1)


def gather(
    source: Source, ends: str, closing: Choice, quotes: tuple[str, ...] = _QUOTES_PAIR
) -> Steps[str | None]:
    """The text up to one of ``ends`` outside brackets and strings (not consumed); None when the text ends first."""
    state = _Gathering()
    while True:
        found = _STRUCTURE.search(source.text, source.pos)
        state.take(source, len(source.text) if found is None else found.start())
        if found is None:
            if source.final:
                return None
            yield
            continue
        if not state.closers:
            over = found[0] in ends or (yield from source.choose(closing)) is not None
            if over:
                return "".join(state.pieces)
        quote = (yield from _string_here(source, quotes)) if state.last in ":=,[{(" else ""
        if not quote:
            state.take_bracket(source, source.text[source.pos])
        elif not (yield from _gather_string(source, quote, state)):
            return None


def _string_here(source: Source, quotes: tuple[str, ...]) -> Steps[str]:
    """The quote that opens a string here, if one does."""
    for quote in quotes:
        while (here := source.text[source.pos : source.pos + len(quote)]) != quote:
            if source.final or not quote.startswith(here):
                break
            yield
        else:
            return quote
    return ""


@lru_cache(maxsize=16)
def _string_stops(quote: str) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(quote[0])}\\\\]" if quote in _QUOTES_PAIR else re.escape(quote[0]))


def _gather_string(source: Source, quote: str, state: _Gathering) -> Steps[bool]:
    """Move one string, quotes and all, from the source to the pieces; False when the text ends inside it."""
    stops = _string_stops(quote)
    state.take(source, source.pos + len(quote))
    while True:
        found = stops.search(source.text, source.pos)
        state.take(source, len(source.text) if found is None else found.start())
        if found is None:
            if source.final:
                return False
            yield
            continue
        size = 2 if found[0] == "\\" else len(quote)
        here = yield from source.peek(size)
        if here == quote and (yield from _string_ends(source, size)):
            state.take(source, source.pos + size)
            return True
        state.take(source, source.pos + (2 if found[0] == "\\" else 1))


def _string_ends(source: Source, ahead: int) -> Steps[bool]:
    gap = yield from source.find_nonblank(ahead)
    return source.text[source.pos + gap : source.pos + gap + 1] in ("", ",", ":", "}", "]", ")", "=")


def parse_object(text: str, literals: Literals = JSON) -> Parsed | None:
    """The text as an object, unwrapped if it was encoded once more; None when it is no object."""
    repairs: tuple[str, ...] = ()
    for _ in range(3):
        try:
            parsed = parse(text, literals)
        except NotJson:
            return None
        repairs = (*repairs, *parsed.repairs)
        value: Value = parsed.value
        if isinstance(value, dict):
            return Parsed(value, repairs)
        if not isinstance(value, str):
            return None
        repairs = (*repairs, "double_encoded")
        text = value
    return None


OBJECT = Members()
KEYWORDS = Members("(", ")", ("=", ":"), PYTHON)
