"""Reads quoted strings chunk by chunk and emits them as the inside of a JSON string.

Strategy. A quote ends the string only if the caller confirms that what follows continues the structure; so values with
unescaped quotes survive. Characters between stops pass through unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Protocol

from msgspec import Struct, field

from toolglot.core.events import CallArguments, Event
from toolglot.core.lenient_json import ESCAPED_CHARACTERS, Literals, escape
from toolglot.core.made_up_values import LOOKS_MADE_UP
from toolglot.dialects.damaged_marks import RecentText
from toolglot.dialects.patterns import Mark, MarkChoice
from toolglot.dialects.scanner import PassThrough, Source, Steps


class Receiver(Protocol):
    """Takes the fragments. ``passthrough_index`` is the index of the call if chunks may take the fast path."""

    repairs: dict[str, None]

    @property
    def passthrough_index(self) -> int | None: ...

    def write(self, fragment: str) -> None: ...

    def repair(self, name: str) -> None: ...


class Collector:
    """A receiver that collects the fragments."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.repairs: dict[str, None] = {}

    @property
    def passthrough_index(self) -> None:
        return None

    def write(self, fragment: str) -> None:
        self.pieces.append(fragment)

    def repair(self, name: str) -> None:
        self.repairs[name] = None


_QUOTES = ('"', "'")
_DRIVE = re.compile(r"[A-Za-z]:\\[^\\\"/]")
"""A Windows path with unescaped backslashes: what looks like an escaped line break or tab is part of it."""

_PATH_SIGNS = ("", ":")
_JSON_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_JSON_ESCAPES = '"\\\\/bfnrt'
_SHARED_ESCAPES = '"\\\\bfnrt'
"""Python escapes that have the same meaning in JSON."""
_LONG_ESCAPES = ("u", "x")
_PYTHON_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)


class _Plain(Struct, frozen=True):
    """Fast path for text that has none of the ``stops``, or matches ``text`` and holds nothing that an example may have
    made up; ``encode`` converts it to JSON."""

    stops: re.Pattern[str]
    text: re.Pattern[str]
    encode: Callable[[str], str]

    def renew(
        self, run: PassThrough | None, source: Source, out: Receiver, outer: EnclosingMarks | None
    ) -> PassThrough | None:
        """The shortcut for the next chunk; it changes only where arguments may have to be held back."""
        if run is not None and not source.refuses_examples:
            return run
        return self.run(source, out.passthrough_index, None if outer is None else outer.recent.add)

    def run(self, source: Source, index: int | None, note: Callable[[str], None] | None) -> PassThrough | None:
        """The shortcut; ``note`` is called with each piece that it takes."""
        if index is None:
            return None
        stop, fit, encode, refuses = self.stops.search, self.text.match, self.encode, source.refuses_examples

        def take(piece: str) -> list[Event] | None:
            if refuses and LOOKS_MADE_UP(piece) is not None:
                return None
            if stop(piece) is None:
                if note is not None:
                    note(piece)
                return [CallArguments(index, piece)]
            found = fit(piece)
            size = 0 if found is None else found.end()
            if piece[size:] == "\\":
                source.left, source.run = "\\", partial(_take_behind, source, source.run)
            elif size < len(piece):
                return None
            if note is not None:
                note(piece)
            return [CallArguments(index, encode(piece[:size]))] if size else []

        return take


def _take_behind(source: Source, take: PassThrough | None, piece: str) -> list[Event] | None:
    """Take the chunk after one that ended in the middle of an escape."""
    source.left, source.run = "", take
    events = take("\\" + piece) if take is not None else None
    if events is None:
        source.left = "\\"
    return events


@lru_cache(maxsize=32)
def _plain(quote: str, unescape: Callable[[str], str] | None, path: bool) -> _Plain:
    """Between quotes: text and escapes with the same meaning in JSON; between marks: all that begins no mark."""
    escapes = "" if path or unescape is str else _JSON_ESCAPES if unescape is None else _SHARED_ESCAPES
    stops = re.escape(quote[0]) + ESCAPED_CHARACTERS
    if quote[0] not in _QUOTES:
        return _Plain(re.compile(f"[{stops}]"), re.compile(f"[^{re.escape(quote[0])}]*+"), escape)
    same = f"(?:[^{stops}]++|\\\\[{escapes}])" if escapes else f"[^{stops}]"
    return _Plain(re.compile(f"[{stops}]"), re.compile(f"{same}*+"), str)


_NEXT_MEMBER = re.compile(r"""(?<!>),\s*+["']?([\w.\-][\w.\- ]{0,63}+)["']?\s{0,3}:\s{0,3}(?:[\[{][^<>]{0,80}+)?\Z""")
"""The key of a member, at the end of a string that lost its closing mark."""


class Confirm(Protocol):
    """Whether a quote ``ahead`` characters from here ends the string; ``uncertain``: an earlier one did not end it."""

    def __call__(self, ahead: int, uncertain: bool) -> Steps[bool]: ...


class EnclosingMarks(Struct, eq=False):
    """The marks of the call around a string, which may also occur in it.

    ``closing`` ends the whole call, its own closing marks first: at the very end of the text they end the string too.
    ``header`` begins a call; the quotes of a call that is quoted inside the string end nothing. ``declares`` tells
    whether the call has a parameter of this name.
    """

    closing: MarkChoice
    header: Mark | None = None
    declares: Callable[[str], bool] = bool
    quoted: int = 0
    recent: RecentText = field(default_factory=RecentText)
    """The end of the string so far."""
    is_damaged: bool = False
    """Whether the string lost its closing mark before the next member or the closing bracket."""

    def keep(self, piece: str) -> None:
        """Keep a mark, or one character, and note whether the mark opens the value of the next member."""
        found = _NEXT_MEMBER.search(self.recent.text) if len(piece) > 1 and not self.quoted else None
        self.is_damaged |= found is not None and self.declares(found[1].rstrip())
        self.recent.add(piece)

    def look(self, source: Source) -> Steps[None]:
        """Count a quoted call that begins or ends here."""
        if self.header is None:
            return
        begins = self.header.stops.match(source.text, source.pos)
        if begins and (yield from source.look(self.header)) is not None:
            self.quoted += 1
        elif self.quoted and (yield from source.choose(self.closing)) == 0:
            self.quoted -= 1


def read_string(
    source: Source, quote: str, literals: Literals, out: Receiver, confirm: Confirm, outer: EnclosingMarks | None = None
) -> Steps[bool]:
    """Read up to the closing quote (the opening one is consumed); False if the text ends first."""
    uncertain = False
    path = _may_be_path(source, quote, literals) and (yield from _is_path(source, out))
    plain = _plain(quote, literals.unescape, path)
    run: PassThrough | None = None
    while True:
        source.step()
        found = plain.text.match(source.text, source.pos)
        if found is not None and (piece := found[0]):
            out.write(plain.encode(piece))
            source.pos += len(piece)
            if outer is not None:
                outer.recent.add(piece)
        if source.pos == len(source.text):
            if source.final:
                return False
            source.run = run = plain.renew(run, source, out, outer)
            yield
            source.run = None
            continue
        head = source.text[source.pos]
        if head == "\\" and path:
            yield from _path_separator(source, out)
        elif head != quote[0]:
            yield from _special(source, head, literals, out)
        elif len(quote) > 1:
            ends = yield from _at_mark(source, quote, out, confirm, uncertain, outer)
            if ends:
                return True
            uncertain |= ends is False
        elif (yield from confirm(1, uncertain)):
            source.pos += 1
            return True
        else:
            out.repair("unescaped_quote")
            _keep(source, quote, out)
            uncertain = True


def _may_be_path(source: Source, quote: str, literals: Literals) -> bool:
    """Whether the string may be a Windows path; the second character nearly always decides."""
    second = source.text[source.pos + 1 : source.pos + 2]
    return quote == '"' and literals.unescape is None and second in _PATH_SIGNS


def _is_path(source: Source, out: Receiver) -> Steps[bool]:
    while len(source.text) - source.pos < 4 and not source.final:
        yield
    if source.text[source.pos + 1 : source.pos + 2] != ":" or _DRIVE.match(source.text, source.pos) is None:
        return False
    out.repair("unescaped_backslash")
    return True


def _path_separator(source: Source, out: Receiver) -> Steps[None]:
    source.pos += 2 if (yield from source.peek(2)) == "\\\\" else 1
    out.write("\\\\")


def _at_mark(
    source: Source, quote: str, out: Receiver, confirm: Confirm, uncertain: bool, outer: EnclosingMarks | None
) -> Steps[bool | None]:
    """Consume the first character of a longer quote, or the quote.

    Returns whether a quote ends the string here, or None if no quote of this string is here.
    """
    while (here := source.text[source.pos : source.pos + len(quote)]) != quote and quote.startswith(here):
        if source.final:
            break
        yield
    quoted = outer is not None and outer.quoted > 0
    if here == quote and not quoted and (yield from confirm(len(quote), uncertain)):
        source.pos += len(quote)
        return True
    if here != quote and outer is not None:
        if (yield from _is_over(source, outer.closing)):
            out.repair("missing_quote")
            outer.is_damaged |= outer.recent.text.rstrip()[-1:] == "}"
            return True
        yield from outer.look(source)
    kept = quote if here == quote else here[0]
    if outer is not None:
        outer.keep(kept)
    _keep(source, kept, out)
    return False if here == quote and not quoted else None


def _keep(source: Source, piece: str, out: Receiver) -> None:
    """Emit what looked like the end as part of the string."""
    out.write(escape(piece))
    source.pos += len(piece)


def _is_over(source: Source, outer: MarkChoice) -> Steps[bool]:
    """Whether the mark that closes the whole call is here, and nothing follows it."""
    if (yield from source.choose(outer)) is None:
        return False
    size = outer.size(source.text, source.pos)
    gap = yield from source.find_nonblank(size)
    return source.pos + gap >= len(source.text)


def _special(source: Source, head: str, literals: Literals, out: Receiver) -> Steps[None]:
    if head == "\\":
        yield from _escape(source, literals, out)
        return
    if head < " " and "raw_control_characters" not in literals.native:
        out.repair("raw_control_characters")
    out.write(escape(head))
    source.pos += 1


def _escape(source: Source, literals: Literals, out: Receiver) -> Steps[None]:
    piece = yield from source.peek(2)
    if piece[1:] in _LONG_ESCAPES:
        piece = yield from source.peek(6)
    if literals.unescape is not None:
        found = _PYTHON_ESCAPE.match(piece)
        if found is not None:
            out.write(escape(literals.unescape(found[0])))
            source.pos += found.end()
            return
    elif (found := _JSON_ESCAPE.match(piece)) is not None:
        out.write(found[0])
        source.pos += found.end()
        return
    if len(piece) > 1 and piece[1] == "'":
        out.write("'")
        source.pos += 2
        return
    out.repair("invalid_escape")
    out.write("\\\\")
    source.pos += 1
