"""Values written as CDATA sections: ``<![CDATA[if (a < b)]]>``.

Strategy. The sections are unwrapped only if they are the whole value. So a value that begins with one is held until
that is known, and is read as plain text otherwise. Inside a section closing marks are text. Adjacent sections are
joined, because that is how ``]]>`` is escaped inside them; models also write it unescaped. A line without markup that
is all of a file needs no section: the section is what the file contains.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolglot.dialects.codecs.parameter_marks import Parameter, value_marks
from toolglot.dialects.codecs.raw_values import RawValue, ignore, open_value
from toolglot.dialects.codecs.whitespace import Trim
from toolglot.dialects.patterns import Mark
from toolglot.dialects.scanner import Steps

if TYPE_CHECKING:
    from toolglot.dialects.codecs.tagged_parameters import ParameterReader

_OPEN = Mark("<![CDATA[", named=False)
_CLOSE = Mark("]]>", named=False)
_NEEDS_SECTION = re.compile(r"[<&\n]|\]\]>")
_STOPS = re.compile(r"[<\]]")


def read_sections(reader: ParameterReader, parameter: Parameter, key: str) -> Steps[str | None]:
    """The text of the sections that are the whole value; None, with nothing consumed, if they are not."""
    source = reader.block.source
    reader.begins_section = False
    gap = 0 if value_marks(parameter, key).trim is Trim.NONE else (yield from source.find_nonblank())
    if (yield from source.look(_OPEN, gap)) is None:
        return None
    value = open_value(reader, parameter, key, ignore)
    start = source.begin_lookahead()
    source.pos += gap
    yield from source.match(_OPEN)
    text = yield from _read(value)
    if text is not None and _may_be_content(parameter, key, text):
        text = None
    reader.begins_section = text is None
    source.end_lookahead(start if text is None else source.here)
    return text


def _may_be_content(parameter: Parameter, key: str, text: str) -> bool:
    """Whether a section with this text may itself be the value."""
    return parameter.keeps_sections(key) and _NEEDS_SECTION.search(text) is None


def _read(value: RawValue) -> Steps[str | None]:
    """The text up to the mark that closes the last section and the value.

    A section that opens inside another one, after a mark that could close the value, must be closed by an escaped mark
    too: otherwise the first one was never closed, and they belong to different values.
    """
    source = value.reader.block.source
    pieces: list[str] = []
    closed = outside = False
    nested = 0
    while (yield from source.scan(_STOPS, pieces.append)):
        if (yield from source.look(_CLOSE)) is not None:
            if (yield from source.look(_OPEN, 3)) is not None:
                source.pos += 12
                nested -= 1
                continue
            gap = yield from source.find_nonblank(3)
            size = (yield from _find_end(value, gap)) or (yield from _find_call_end(value, gap))
            if size:
                source.pos += size
                return "".join(pieces) if nested <= 0 else None
            outside = True
            pieces.append("]]>")
            source.pos += 3
            continue
        opens = (yield from source.look(_OPEN)) is not None
        closed = bool((yield from _find_end(value, 0))) or closed
        if outside and (opens or closed):
            return None
        nested += opens and closed
        pieces.append(source.take(1))
    return None


def _find_end(value: RawValue, ahead: int) -> Steps[int]:
    """The distance to the end of the value's closing mark that begins ``ahead`` characters from here; 0 if none."""
    found = yield from value.reader.block.source.look(value.marks.closer, ahead)
    if found is None:
        return 0
    size = found.end() - value.reader.block.source.pos
    return size if (yield from value.structure_follows(size)) else 0


def _find_call_end(value: RawValue, ahead: int) -> Steps[int]:
    """The distance to the mark that closes the call, if it is ``ahead`` characters from here and the value has none."""
    reader = value.reader
    found = yield from reader.block.source.look(reader.closer, ahead)
    if found is None:
        return 0
    behind = found.end() - reader.block.source.pos
    if not (yield from value.call_is_over(behind, False)):
        return 0
    if (yield from reader.closes_later(value.parameter, value.key, behind)):
        return 0
    reader.call.repair("missing_parameter_closer")
    return ahead
