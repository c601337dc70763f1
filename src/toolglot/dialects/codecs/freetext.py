"""Free text as the only argument, as ReAct agents write it for tools that take one string."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from toolglot.core.events import Reason
from toolglot.core.lenient_json import Value
from toolglot.core.schema.toolset import coerce_text
from toolglot.dialects.codecs.buffered_values import collect_up_to
from toolglot.dialects.codecs.header_names import read_recipient
from toolglot.dialects.partial_call import CallBlock
from toolglot.dialects.patterns import Mark, MarkChoice, Match, mark
from toolglot.dialects.scanner import Steps
from toolglot.dialects.spec import CallSyntax

_LINE_BREAK = re.compile("\n")
_ELEMENT_END = re.compile(r"</(?:\w{1,32}:)?parameter>\s?\Z")
_NOTHING = Mark(*(f"{word}{{before_break}}" for word in ("None", "none", "null", "N/A", "n/a")), named=False)

BEFORE_STRUCTURE = re.compile(r"[^\w\s(]{1,3}\s*(?:\{\s*[\"']|<\w)")
"""Stray characters before arguments in a notation of their own: all of it together is no text that was meant."""


@lru_cache(maxsize=16)
def _choose(ends: tuple[str, ...]) -> MarkChoice:
    return MarkChoice([ends])


class FreeText(Struct, frozen=True):
    """The codec: the text extends to a line that begins with one of ``ends``, or to the end."""

    ends: tuple[str, ...]

    def accepts(self, head: str) -> bool:
        return head not in ("", "{", "`")

    def read(self, block: CallBlock, syntax: CallSyntax, found: Match) -> Steps[bool]:
        source = block.source
        start = source.here
        source.pos = found.end()
        tool = block.tools.find(found["name"])
        if tool is None:
            return False
        yield from source.skip_blanks()
        if not tool.required and (yield from source.match(_NOTHING)) is not None:
            return block.begin(found["name"], start) is not None
        key = tool.sole_text_parameter
        if BEFORE_STRUCTURE.match((yield from source.peek(16))):
            return False
        call = block.begin(found["name"], start) if key else None
        if call is None or key is None:
            return False
        call.repair("free_text_argument")
        shape = call.parameter_type(key)
        if shape.streams or not shape.kinds:
            call.commit()
            call.open_text(key)
            yield from self._text(block, call.text)
            call.close_text()
        else:
            pieces: list[str] = []
            yield from self._text(block, pieces.append)
            call.add(key, coerce_text("".join(pieces), shape, f"argument {key}"))
        if source.truncated:
            call.truncate()
        return True

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        """None: the same dialects write an object, which can express more."""
        return iter(())

    def _text(self, block: CallBlock, emit: Callable[[str], None]) -> Steps[None]:
        source = block.source
        ends = _choose(self.ends)
        while (yield from source.scan(_LINE_BREAK, emit)):
            gap = yield from source.find_nonblank()
            if source.pos + gap >= len(source.text) or (yield from source.choose(ends, gap)) is not None:
                return
            emit(source.take(gap))


class Enclosed(Struct, frozen=True):
    """The codec: the text extends to the mark ``close``; if another token comes first, this is no call.

    ``kind`` matches the content type in the header: without one, or with JSON, the arguments must be an object.
    """

    close: str
    kind: re.Pattern[str]

    def accepts(self, head: str) -> bool:
        return head not in ("", "{", "<")

    def read(self, block: CallBlock, syntax: CallSyntax, found: Match) -> Steps[bool]:
        source = block.source
        start = source.here
        source.pos = found.end()
        name = read_recipient(found)
        tool = block.tools.find(name) if self.kind.search(found[0]) else None
        key = tool.sole_text_parameter if tool is not None else None
        text = (yield from collect_up_to(source, mark((self.close,)), other="<|")) if key else None
        call = block.begin(name, start) if text is not None else None
        if call is None or key is None or text is None:
            return False
        call.repair("free_text_argument")
        if _ELEMENT_END.search(text):
            call.add_defect(Reason.MALFORMED, f"argument {key}", "the end of an element", "its beginning")
        call.add(key, coerce_text(text, call.parameter_type(key), f"argument {key}"))
        return True

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        """None: a text may contain the mark that ends it."""
        return iter(())
