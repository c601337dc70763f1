"""Dialects of other packages, found through entry points.

Strategy. A package names its dialect records in the entry point group ``toolglot.dialects``. Each record is checked
before it is used: its fields, its marks, and its sample, which must be read as the call that it shows; in ordinary text
it must find none. A record that fails is left out with a warning that names the package and the defect; all others are
used. Importing ``importlib.metadata`` takes 40 times as long as searching the files of entry points for the name of the
group, so it is imported only if one has it.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from toolglot.core.events import CallArguments, CallEnded, CallStarted, Event
from toolglot.core.options import Options
from toolglot.core.provenance import find_quotations
from toolglot.core.schema.toolset import compile_declared
from toolglot.dialects.mark_templates import SLOTS, TOKEN, template_regex
from toolglot.dialects.partial_call import AnswerState
from toolglot.dialects.records import all_dialects, loosen_dialect
from toolglot.dialects.spec import CallSyntax, Dialect, Region, Wrap
from toolglot.reading.dialect_index import DialectIndex
from toolglot.reading.state_machine import StateMachine

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "toolglot.dialects"
LOG = logging.getLogger("toolglot.dialects")

_METADATA: Final = (".dist-info", ".egg-info")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED: Final = ("auto", "native", "none", "off", "text")
_SAMPLE_TOOL: Final = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
_SAMPLE_CALL: Final = ("get_weather", '{"city":"Oslo"}')

_ORDINARY_TEXT: Final = """\
config {"city": "Oslo"} is what

The settings are in config {"city": "Oslo"} and end here; see [the docs](a.md), <b>bold</b> and "quotes".

> a quotation: name {"a": 1}
- item: value {x: 1} (city="Oslo")
* f(x=1), a.b(c) => {"d": 2}; x -> y; [1, {"e": 3}]; `code {"f": 4}`

config {"city": "Oslo"}

def main(city="Oslo"):
    return {"name": "main", "arguments": {"city": city}}

<div class="city"><p>Oslo</p></div>
"""
"""Text in which no dialect may find a call."""


@cache
def known_dialects() -> tuple[Dialect, ...]:
    """Return all dialects: those of toolglot, followed by those of other packages that are installed."""
    built_in = all_dialects()
    return (*built_in, *load_plugins(built_in)) if _has_plugins(sys.path) else built_in


@cache
def list_call_marks() -> tuple[str, ...]:
    """Return substrings, in lower case, of calls in dialects that ``core.provenance`` does not recognise by itself."""
    return tuple(dict.fromkeys(mark for dialect in known_dialects() for mark in _find_call_marks(dialect)))


def _find_call_marks(dialect: Dialect) -> list[str]:
    """The longest word of each opening mark, if a quoted call of the dialect is not recognised otherwise."""
    if find_quotations((dialect.sample,), (_SAMPLE_CALL[0],)):
        return []
    marks = [TOKEN.sub(_read_token, mark).lower().split() for call in dialect.calls for mark in call.header]
    return [max(words, key=len) for words in marks if words]


def _read_token(token: re.Match[str]) -> str:
    """A part of a mark as it is written; a slot separates words."""
    return " " if token[1] else {"{{": "{", "}}": "}"}.get(token[0], token[0])


def load_plugins(known: Sequence[Dialect]) -> Iterator[Dialect]:
    """Yield the dialects of other packages that can be used beside the known ones; warn about the others."""
    from importlib.metadata import entry_points

    taken = {dialect.name: "toolglot itself" for dialect in known}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        origin = _describe_origin(point)
        try:
            records = _list_records(point.load())
        except (Exception, SystemExit) as error:  # the code of the package may raise anything
            LOG.warning("%s is not used: it cannot be loaded: %s: %s", origin, type(error).__name__, error)
            continue
        for record in records:
            try:
                dialect = _check_record(record, taken, known)
            except (Exception, SystemExit) as error:
                name = getattr(record, "name", type(record).__name__)
                LOG.warning("dialect %r of %s is not used: %s", name, origin, _describe_error(error))
                continue
            taken[dialect.name] = origin
            yield replace(dialect, family=point.name, file=point.value)


def _has_plugins(folders: Iterable[str]) -> bool:
    """Whether a package in one of the folders of ``sys.path`` has entry points of the group."""
    return any(_mentions_group(folder or os.curdir) for folder in folders)


def _mentions_group(folder: str) -> bool:
    if os.path.isfile(folder):  # an archive: only importlib.metadata can look inside
        return True
    try:
        names = [name for name in os.listdir(folder) if name.endswith(_METADATA)]
    except OSError:
        return False
    return any(_reads_group(os.path.join(folder, name, "entry_points.txt")) for name in names)


def _reads_group(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return GROUP.encode() in file.read()
    except OSError:
        return False


def _describe_origin(point: EntryPoint) -> str:
    package = f"package {point.dist.name} {point.dist.version}" if point.dist is not None else "a package"
    return f"the entry point {point.name} = {point.value} of {package}"


def _describe_error(error: BaseException) -> str:
    return str(error) if isinstance(error, _RecordError) else f"{type(error).__name__}: {error}"


class _RecordError(Exception):
    """A dialect record that cannot be used, and why."""


def _list_records(loaded: object) -> list[object]:
    """The records of an entry point, which names one dialect or a list of them."""
    if isinstance(loaded, Dialect):
        return [loaded]
    if isinstance(loaded, list | tuple):
        return list(loaded)
    raise TypeError(f"it names {type(loaded).__name__}, where a Dialect or a tuple of Dialects was expected")


def _check_record(record: object, taken: dict[str, str], known: Sequence[Dialect]) -> Dialect:
    """Return the dialect as the reader uses it. Raises: _RecordError, or whatever the record's codec raises."""
    if not isinstance(record, Dialect):
        raise _RecordError(f"it is {type(record).__name__}, where a Dialect was expected")
    if not isinstance(record.name, str) or not _NAME.fullmatch(record.name):
        raise _RecordError("the name must consist of lower-case letters, digits and underscores")
    if record.name in taken or record.name in _RESERVED:
        raise _RecordError(f"the name is taken by {taken.get(record.name, 'a setting')}; choose another")
    for place, template in _list_marks(record):
        _check_mark(place, template)
    dialect = loosen_dialect(record)
    _check_sample(dialect, known)
    return dialect


def _list_marks(dialect: Dialect) -> Iterator[tuple[str, object]]:
    """Every mark of a record with its place. Raises: _RecordError if a field is of the wrong type."""
    groups: list[tuple[str, object]] = [(f"{name}", getattr(dialect, name)) for name in ("results", "turns", "noise")]
    for name, kind in (("wrap", Wrap), ("regions", Region), ("calls", CallSyntax)):
        for part in getattr(dialect, name):
            if not isinstance(part, kind):
                raise _RecordError(f"{name} holds {type(part).__name__}, where {kind.__name__} was expected")
            opening = part.header if isinstance(part, CallSyntax) else part.open
            groups += [(f"an opening mark in {name}", opening), (f"a closing mark in {name}", part.close)]
    for place, marks in groups:
        if not isinstance(marks, tuple):
            raise _RecordError(f"{place} is {type(marks).__name__}, where a tuple of marks was expected")
        yield from ((place, mark) for mark in marks)


def _check_mark(place: str, template: object) -> None:
    if not isinstance(template, str) or not template.strip():
        raise _RecordError(f"{place} is {template!r}, where a text was expected")
    unknown = [found[1] for found in TOKEN.finditer(template) if found[1] and found[1] not in SLOTS]
    if unknown:
        raise _RecordError(f"{place} is {template!r}, and there is no slot {{{unknown[0]}}}; write {{{{ for a brace")
    re.compile(template_regex(template))


def _check_sample(dialect: Dialect, known: Sequence[Dialect]) -> None:
    """Read the sample beside all known dialects. Raises: _RecordError if that does not give the call of all samples."""
    if not isinstance(dialect.sample, str):
        raise _RecordError(f"the sample is {type(dialect.sample).__name__}, where a text was expected")
    index = DialectIndex((*known, dialect))
    calls = _read_calls(dialect.sample, index)
    if [(name, arguments) for name, arguments, _, _ in calls] != [_SAMPLE_CALL]:
        read = ", ".join(f"{name} {arguments}" for name, arguments, _, _ in calls) or "no call"
        raise _RecordError(f"its sample {dialect.sample!r} is read as {read}, not as get_weather {_SAMPLE_CALL[1]}")
    [(_, _, name, repairs)] = calls
    if name != dialect.name:
        raise _RecordError(f"its sample {dialect.sample!r} is read as the dialect {name}")
    if repairs:
        raise _RecordError(f"its sample {dialect.sample!r} is read with the repairs {', '.join(repairs)}")
    for name, arguments, found, _ in _read_calls(_ORDINARY_TEXT, index):
        if found == dialect.name:
            raise _RecordError(f"it takes ordinary text for the call {name} {arguments}: its marks must be rarer")


def _read_calls(text: str, index: DialectIndex) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """The calls in a text: name, arguments, dialect and repairs of each."""
    machine = StateMachine(index, compile_declared([_SAMPLE_TOOL], ()), Options(), AnswerState(lambda: "call_1"), "")
    machine.source.push(text)
    steps = machine.run()
    next(steps, None)
    machine.source.end(False)
    next(steps, None)
    return _collect_calls(machine.buffer.drain())


def _collect_calls(events: Iterable[Event]) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """The name, arguments, dialect and repairs of each complete call."""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    calls = []
    for event in events:
        if isinstance(event, CallStarted):
            names[event.index], arguments[event.index] = event.name, ""
        elif isinstance(event, CallArguments):
            arguments[event.index] += event.fragment
        elif isinstance(event, CallEnded):
            calls.append((names[event.index], arguments[event.index], event.dialect, event.repairs))
    return calls
