"""Splits a model's own text into coloured segments: prose, reasoning, calls, parameters, repairs, rejected, quoted.

*Strategy.* The text is read again with the tools of the recorded request, which costs nothing while it is recorded.
Segments carry their text, not positions, because Python and JavaScript count characters differently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import count, islice
from typing import Final, NamedTuple

from msgspec import Struct

from toolglot.core.conversation import Message, Tool
from toolglot.core.events import NearMiss, Reason, ReasoningDelta, Span, merge_deltas
from toolglot.core.options import Options
from toolglot.core.provenance import NO_QUOTATIONS, Quotations, find_quotations, list_quotable
from toolglot.core.schema.toolset import compile_tools
from toolglot.reading.plugins import list_call_marks
from toolglot.reading.reader import ParsedCall, Reader, Reading, RejectedCall, collect

PROSE: Final = "prose"
REASONING: Final = "reasoning"
CALL: Final = "call"
PARAMETER: Final = "parameter"
REPAIR: Final = "repair"
REJECTED: Final = "rejected"
QUOTED: Final = "quoted"
KINDS: Final = (PROSE, REASONING, CALL, PARAMETER, REPAIR, REJECTED, QUOTED)
MAX_READ: Final = 4 << 20
"""Characters above which a text is shown without colours."""
OPENING: Final = re.compile(r"[<\[{]")
"""How calls begin that are not mistaken for prose."""
MAX_SHOWN: Final = 20
"""Names of tools in prose around which a call is looked for."""
TRIED: Final = 8
SHOWN_HEAD: Final = 160
SHOWN_LENGTH: Final = 20_000


class Segment(NamedTuple):
    """A piece of text. ``note`` says more about it, such as the name of the tool or why a call was rejected."""

    kind: str
    text: str
    note: str = ""


class Region(Struct, frozen=True):
    start: int
    end: int
    kind: str
    note: str = ""


class TextReading(NamedTuple):
    segments: list[Segment]
    calls: list[ParsedCall]
    rejected: list[RejectedCall]
    missed: list[NearMiss]


def read_text(
    text: str, tools: Sequence[Tool], messages: Iterable[Message], dialect: str, options: Options
) -> TextReading:
    """Read a model's answer again. ``messages`` is the conversation, which the answer may quote."""
    if len(text) > MAX_READ:
        return TextReading([Segment(PROSE, text)], [], [], [])
    compiled = compile_tools(tuple(tools), options.supported_tools)
    quotations = find_quotations(list_quotable(messages), compiled.names, bool(options.shell), list_call_marks())

    def read(given: Quotations, piece: str) -> tuple[Reading, Reader]:
        numbers = count(1)
        reader = Reader.prepared(compiled, dialect or "auto", options, lambda: f"call_{next(numbers)}", given)
        return collect([*reader.feed(piece), *reader.close()], piece), reader

    reading, reader = read(quotations, text)
    regions = list(list_regions(text, reading))
    if any(reason is Reason.QUOTATION for _, reason in reader.left):
        known = {region.start for region in regions}
        unquoted, _ = read(NO_QUOTATIONS, text)
        regions += [
            Region(*call.span, QUOTED, f"{call.name}: quoted from the conversation, not executed")
            for call in unquoted.calls
            if call.span is not None and call.span[0] not in known
        ]
    regions += find_shown(text, regions, compiled.names, lambda piece: read(NO_QUOTATIONS, piece)[0])
    return TextReading(split(text, regions), reading.calls, reading.rejected, list(reader.missed))


def list_regions(text: str, reading: Reading) -> Iterator[Region]:
    for call in reading.calls:
        if call.span is not None:
            note = f"{call.name} · {call.dialect} · confidence {call.confidence:.2f}"
            note += f" · repaired: {', '.join(call.repairs)}" if call.repairs else ""
            yield Region(*call.span, REPAIR if call.repairs else CALL, note)
            yield from find_parameters(text, call.span, call.arguments)
    for rejected in reading.rejected:
        if rejected.span is not None:
            defects = "; ".join(map(str, rejected.defects))
            kind = QUOTED if rejected.reason is Reason.QUOTATION else REJECTED
            yield Region(*rejected.span, kind, f"{rejected.reason}{': ' if defects else ''}{defects}")
    at = 0
    for event in merge_deltas(reading.events):
        if isinstance(event, ReasoningDelta) and (wanted := event.text.strip()):
            found = text.find(wanted, at)
            if found >= 0:
                at = found + len(wanted)
                yield Region(found, at, REASONING)


def find_shown(
    text: str, regions: Sequence[Region], names: Iterable[str], read: Callable[[str], Reading]
) -> list[Region]:
    """Calls that stayed text because the model only shows them: they are read as calls if nothing is around them."""
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    if not known:
        return []
    found: list[Region] = []
    at = tried = 0
    for segment in split(text, regions):
        free, at = at, at + len(segment.text)
        if segment.kind != PROSE:
            continue
        for name in re.compile(known).finditer(text, free, at):
            if name.start() < free or tried >= MAX_SHOWN:
                continue
            tried += 1
            for opening in islice(OPENING.finditer(text, max(free, name.start() - SHOWN_HEAD), name.start()), TRIED):
                begin = opening.start()
                call = next(iter(read(text[begin : min(at, begin + SHOWN_LENGTH)]).calls), None)
                if call is not None and call.name == name[0] and call.span and not (call.span[0] or call.repairs):
                    free = begin + call.span[1]
                    found.append(Region(begin, free, QUOTED, f"{call.name}: only shown, not executed"))
                    break
    return found


def find_parameters(text: str, span: Span, arguments: str) -> Iterator[Region]:
    """The values of a call's arguments in its text, as far as they are written there in a usual form."""
    try:
        values = json.loads(arguments)
    except ValueError:
        return
    at = span[0]
    for name, value in values.items() if isinstance(values, dict) else ():
        for form in list_forms(value):
            found = text.find(form, at, span[1]) if form else -1
            if found >= 0:
                at = found + len(form)
                yield Region(found, at, PARAMETER, name)
                break


def list_forms(value: object) -> Iterator[str]:
    """How a value may be written."""
    encoded = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        yield value
        yield encoded[1:-1]
        yield json.dumps(value)[1:-1]
        yield escape(value, quote=False)
        yield value.strip()
    else:
        yield encoded
        yield json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        yield str(value)


def split(text: str, regions: Iterable[Region]) -> list[Segment]:
    """The text in segments. Regions inside of others, such as parameters, divide them."""
    segments: list[Segment] = []
    enclosing: list[Region] = []
    at = 0

    def emit(end: int) -> None:
        nonlocal at
        if end > at:
            kind, note = (enclosing[-1].kind, enclosing[-1].note) if enclosing else (PROSE, "")
            segments.append(Segment(kind, text[at:end], note))
            at = end

    def close_before(start: int) -> None:
        while enclosing and enclosing[-1].end <= start:
            emit(enclosing[-1].end)
            enclosing.pop()

    for region in sorted(regions, key=lambda region: (region.start, -region.end)):
        close_before(region.start)
        emit(region.start)
        if region.end > at:
            enclosing.append(region)
    close_before(len(text))
    emit(len(text))
    return segments
