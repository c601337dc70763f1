"""Values written as CDATA sections: ``<![CDATA[if (a < b)]]>``.

Strategy. The sections are unwrapped only if they are the whole value. So a value that begins with one is held until
that is known, and is read as plain text if it is not. Inside a section closing marks are text. Adjacent sections are
joined, because that is how ``]]>`` is written inside of them; models also leave it as it is.
"""

from __future__ import annotations

import re

from toolglot.codecs.trim import Trim
from toolglot.codecs.values import Value
from toolglot.pattern import Mark
from toolglot.scanner import Steps

_OPEN = Mark("<![CDATA[", named=False)
_CLOSE = Mark("]]>", named=False)
_STOPS = re.compile(r"[<\]]")


def read_sections(value: Value) -> Steps[str | None]:
    """The text of the sections that are the whole value; None, with nothing consumed, if they are not."""
    source = value.call.frame.source
    gap = 0 if value.marks.trim is Trim.NONE else (yield from source.find_nonblank())
    if (yield from source.look(_OPEN, gap)) is None:
        return None
    start = source.begin_trial()
    source.pos += gap
    yield from source.match(_OPEN)
    text = yield from _read(value)
    source.end_trial(start if text is None else source.here)
    return text


def _read(value: Value) -> Steps[str | None]:
    """The text up to the mark that closes the last section and the value."""
    source, closer = value.call.frame.source, value.marks.closer
    pieces: list[str] = []
    closed = outside = False
    while True:
        found = _STOPS.search(source.text, source.pos)
        end = len(source.text) if found is None else found.start()
        pieces.append(source.text[source.pos : end])
        source.pos = end
        if found is None:
            if source.final:
                return None
            yield
        elif (yield from source.look(_CLOSE)) is not None:
            if (yield from source.look(_OPEN, 3)) is not None:
                source.pos += 12
                continue
            gap = yield from source.find_nonblank(3)
            found = yield from source.look(closer, gap)
            if found is not None and (yield from value.structure_follows(found.end() - source.pos)):
                source.pos += gap
                yield from source.match(closer)
                return "".join(pieces)
            outside = True
            pieces.append("]]>")
            source.pos += 3
        elif (closed or outside) and (yield from source.look(_OPEN)) is not None:
            return None
        else:
            found = yield from source.look(closer)
            ends = found is not None and (yield from value.structure_follows(found.end() - source.pos))
            if ends and outside:
                return None
            closed = closed or ends
            pieces.append(source.text[source.pos])
            source.pos += 1
