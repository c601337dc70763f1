"""Values that are buffered up to their end and then parsed.

Strategy. Brackets and strings are tracked only as far as needed to find the end of the value; ``lenient_json``
validates and parses it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct, field

from toolglot.core.lenient_json import JSON, Literals, NotJsonError, Parsed, Value, dump, parse
from toolglot.dialects.codecs.streamed_strings import Collector
from toolglot.dialects.patterns import Mark, MarkChoice
from toolglot.dialects.scanner import Source, Steps

QUOTES = ('"', "'")
BRACKETS = {"{": "}", "[": "]", "(": ")"}
_STRUCTURE = re.compile(r"""["'<\[\]{}(),]""")


class _ValueCollector(Struct):
    """The state of a scan over a nested value."""

    closers: list[str] = field(default_factory=list)
    last: str = ":"
    pieces: list[str] = field(default_factory=list)

    def take(self, piece: str) -> None:
        self.pieces.append(piece)
        self.last = piece.rstrip()[-1:] or self.last

    def take_bracket(self, token: str) -> None:
        if token in BRACKETS:
            self.closers.append(BRACKETS[token])
        elif self.closers and token == self.closers[-1]:
            self.closers.pop()
        self.take(token)


def collect_value(
    source: Source, ends: str, closing: MarkChoice, quotes: tuple[str, ...] = QUOTES
) -> Steps[str | None]:
    """The text up to one of ``ends`` outside brackets and strings (not consumed); None if the text ends first."""
    state = _ValueCollector()
    while head := (yield from source.scan(_STRUCTURE, state.take)):
        if not state.closers:
            over = head in ends or (yield from source.choose(closing)) is not None
            if over:
                return "".join(state.pieces)
        quote = (yield from find_quote(source, quotes)) if state.last in ":=,[{(" else ""
        if not quote:
            state.take_bracket(source.take(1))
        elif not (yield from _collect_string(source, quote, state)):
            return None
    return None


def collect_up_to(source: Source, close: Mark, head: str = "<", other: str = "") -> Steps[str | None]:
    """The text up to a mark, which is consumed and begins with ``head``.

    None if the text ends first, or ``other`` comes before the mark.
    """
    pieces: list[str] = []
    while (yield from source.scan(_compile_stop(head), pieces.append)):
        if (yield from source.match(close)) is not None:
            return "".join(pieces)
        if other and (yield from source.peek(len(other))) == other:
            return None
        pieces.append(source.take(1))
    return None


def find_quote(source: Source, quotes: tuple[str, ...]) -> Steps[str]:
    """The quote that opens a string here, or ""."""
    for quote in quotes:
        while (here := source.text[source.pos : source.pos + len(quote)]) != quote:
            if source.final or not quote.startswith(here):
                break
            yield
        else:
            return quote
    return ""


def may_be_null(source: Source) -> Steps[bool]:
    """Whether the value that follows begins like null."""
    gap = yield from source.find_nonblank()
    while len(source.text) - source.pos - gap < 4 and not source.final:
        yield
    return source.text[source.pos + gap : source.pos + gap + 4] in ("null", "None")


@lru_cache(maxsize=16)
def _compile_stop(head: str, also: str = "") -> re.Pattern[str]:
    return re.compile(f"[{re.escape(head + also)}]")


def _collect_string(source: Source, quote: str, state: _ValueCollector) -> Steps[bool]:
    """Collect one string with its quotes; False if the text ends inside it."""
    stops = _compile_stop(quote[0], "\\" if quote in QUOTES else "")
    state.take(source.take(len(quote)))
    while head := (yield from source.scan(stops, state.take)):
        size = 2 if head == "\\" else len(quote)
        here = yield from source.peek(size)
        if here == quote and (yield from _string_ends(source, size)):
            state.take(source.take(size))
            return True
        state.take(source.take(2 if head == "\\" else 1))
    return False


def _string_ends(source: Source, ahead: int) -> Steps[bool]:
    gap = yield from source.find_nonblank(ahead)
    return source.text[source.pos + gap : source.pos + gap + 1] in ("", ",", ":", "}", "]", ")", "=")


def parse_object(text: str, literals: Literals = JSON) -> Parsed | None:
    """Parse the text as an object, also if it is encoded twice; None if it is no object."""
    repairs: tuple[str, ...] = ()
    for _ in range(3):
        try:
            parsed = parse(text, literals)
        except NotJsonError:
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


def only_element(text: str) -> str:
    """The object in a list of one; any other text unchanged."""
    value = try_value(text) if text.startswith("[") else None
    return dump(value[0]) if isinstance(value, list) and len(value) == 1 else text


def try_value(text: str | None) -> Value:
    """The value of a text; None if it is none."""
    if text is None:
        return None
    try:
        return parse(text).value
    except NotJsonError:
        return None


def decode_string(out: Collector) -> str:
    """Decode a collected JSON string."""
    value = parse('"' + "".join(out.pieces) + '"').value
    return value if isinstance(value, str) else ""
