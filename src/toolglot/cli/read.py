"""``toolglot read``: parse one answer of a model and show its calls, text and reasoning."""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import to_builtins

import toolglot
from toolglot.cli.exit_codes import OK, ONLY_REJECTED, AddParser
from toolglot.cli.input_files import read_input
from toolglot.cli.terminal import BOLD, DIM, GREEN, RED, Paint, ProgressLine, add_color_option, wants_color
from toolglot.core.errors import UsageError
from toolglot.core.events import CallEnded, CallRejected, Event, ReasoningDelta, Span, merge_deltas
from toolglot.dialects.codecs.json_envelope_keys import ARGUMENT_KEYS, LIST_KEYS, LOOSE_NAME_KEYS, NAME_KEYS
from toolglot.reading.reader import Reading, collect, dialect_index

READ_EXAMPLES = """\
examples:
  toolglot read answer.txt --tools tools.json            show calls and text in colour
  toolglot read --tools tools.json < answer.txt          the same, from standard input
  toolglot read answer.txt --tools tools.json --json     one JSON document
  toolglot read answer.txt --tool read_file              give a tool by name, without its parameters
  toolglot read answer.txt --events --stream 4           one event per line, fed 4 characters at a time
  toolglot read answer.txt --dialect hermes --truncated  with a dialect hint, for an answer that was cut off

exit codes:
  0    the text was read, with or without calls
  2    usage error: an invalid option, file, tools array or dialect
  3    the text contains calls, but all of them were rejected
"""
LARGEST_CHUNK: Final = 1 << 16
"""Characters that are fed at a time, so that progress can be shown. The size of chunks does not change the events."""


def add(add_parser: AddParser) -> None:
    read = add_parser(
        description="Parse one answer of a model and show its calls, text, reasoning and rejected calls.",
        epilog=READ_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    read.add_argument("file", nargs="?", default="-", metavar="FILE", help="text to read (default: standard input)")
    read.add_argument("--tools", metavar="FILE", help="the offered tools as JSON: an OpenAI tools array")
    read.add_argument(
        "--tool", action="append", default=[], metavar="NAME", help="an offered tool, by name (repeatable)"
    )
    read.add_argument("--dialect", default="auto", metavar="D", help="a dialect or model id, used only to break ties")
    form = read.add_mutually_exclusive_group()
    form.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document; its 'unread' lists tools that were not offered",
    )
    form.add_argument("--events", action="store_true", help="print every event as one line of JSON")
    read.add_argument("--stream", type=_chunk_size, metavar="N", help="feed the text N characters at a time")
    read.add_argument("--truncated", action="store_true", help="the answer was cut off by a length limit")
    read.add_argument(
        "--unknown-tools",
        choices=("allow", "text", "reject"),
        default="allow",
        help="what to do with a call to a tool that was not offered: deliver it, leave it as text or reject it"
        " (default: allow)",
    )
    read.add_argument("--no-parallel", action="store_true", help="deliver the first call only")
    add_color_option(read)
    read.set_defaults(run=run)


def _chunk_size(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of characters; give 1 or more")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    reader = make_reader(arguments)
    text = read_input(arguments.file).decode("utf-8", "replace")
    size = arguments.stream or LARGEST_CHUNK
    progress = ProgressLine("reading", len(text), shown=not arguments.events)
    events = feed(reader, text, size, arguments.truncated, progress)
    if arguments.events:
        rejected = calls = 0
        for event in events:
            print(json.dumps({"event": type(event).__name__, **to_builtins(event)}, ensure_ascii=False))
            rejected += isinstance(event, CallRejected)
            calls += isinstance(event, CallEnded)
        return ONLY_REJECTED if rejected and not calls else OK
    reading = collect(merge_deltas(events), text)
    named = bool(arguments.tools or arguments.tool)
    unread = [] if named or reading.calls else find_unread(text, arguments.truncated)
    if arguments.json:
        print(json.dumps(_as_document(reading, unread), ensure_ascii=False, indent=2))
    else:
        paint = Paint(wants_color(arguments.color, sys.stdout))
        sys.stdout.writelines(format_reading(text, reading, paint))
        sys.stdout.writelines(_show_unread(unread))
    return ONLY_REJECTED if reading.rejected and not reading.calls else OK


def make_reader(arguments: argparse.Namespace) -> toolglot.Reader:
    check_dialect(arguments.dialect)
    return toolglot.Reader(
        tools=load_tools(arguments.tools) if arguments.tools else [],
        supported_tools=arguments.tool,
        dialect=arguments.dialect,
        unknown_tools=arguments.unknown_tools,
        parallel=not arguments.no_parallel,
    )


def feed(reader: toolglot.Reader, text: str, size: int, truncated: bool, progress: ProgressLine) -> Iterator[Event]:
    """Feed the text in chunks of this size and yield the events as they occur."""
    with progress:
        last = max(len(text) - 1, 0) // size * size
        for start in range(0, last, size):
            yield from reader.feed(text[start : start + size])
            progress.advance(size)
        yield from reader.feed_last(text[last:], truncated)


def load_tools(name: str) -> list[Any]:
    """Load a tools array, or the ``tools`` of a whole request body, from a file. Raises: ``UsageError``."""
    try:
        data = json.loads(Path(name).read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read the tools file {name}: {error.strerror}") from error
    except json.JSONDecodeError as error:
        place = f"{name}:{error.lineno}:{error.colno}"
        raise UsageError(f"{place}: the tools file is not JSON: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the tools file {name} is not UTF-8 text (byte {error.start})") from error
    except RecursionError:
        raise UsageError(f"the tools file {name} is nested too deeply") from None
    tools = data.get("tools") if isinstance(data, dict) else data
    if not isinstance(tools, list):
        raise UsageError(f'{name}: expected an array of tools, or an object with the array under "tools"')
    return tools


def check_dialect(name: str) -> None:
    """Check a hint. Raises: ``UsageError`` with the closest names if it is neither a dialect nor a known model."""
    if dialect_index().resolve_hint(name) is not None:
        return
    near = difflib.get_close_matches(name, [dialect.name for dialect in toolglot.list_dialects()])
    hint = f"did you mean {' or '.join(near)}?" if near else "'toolglot dialects' lists them all"
    raise UsageError(f"there is no dialect or model {name!r}; {hint}")


def _as_document(reading: Reading, unread: list[str]) -> dict[str, Any]:
    document: dict[str, Any] = to_builtins(reading)
    del document["events"]
    document["unread"] = unread
    return document


# Calls that need the tool name to be recognised

_KEYS = "|".join(sorted(NAME_KEYS | LOOSE_NAME_KEYS | LIST_KEYS))
_NAMES = re.compile(
    rf"""["'](?:{_KEYS})["']\s*:\s*["']([\w.\-]{{1,128}})["']"""
    rf"""(?=\s*,\s*["'](?:{"|".join(sorted(ARGUMENT_KEYS))})["'])"""
    r"""|["'](\w{1,64}[._\-][\w.\-]{1,64})["']\s*[:,]\s*(?=[{"'])"""
    r"|\bto=(?:functions\.)?([\w.\-]{1,128})"
    r"|<(\w{1,64}_\w{1,64})>"
    r"|\bAction:[ \t]*`?([\w.\-]{1,128})"
    r"""|(?:^|[\[;,:])[ \t]*["']?([A-Za-z_][\w.]{0,127})\("""
    r"|^([A-Za-z_][\w.\-]{0,127})[ \t]*\n\s*\{",
    re.MULTILINE,
)
"""Positions of a tool name in calls that could also be ordinary text."""

_ARGUMENTS = re.compile(r"""([A-Za-z_]\w{0,127})["']?\s*[:=]""")
"""Positions of an argument name."""

_MOST_NAMES = 64


def find_unread(text: str, truncated: bool = False) -> list[str]:
    """Find the names that would be read as calls if tools of these names had been offered.

    Parameters: ``text`` is the whole answer; ``truncated`` means that it was cut off.

    Returns: the names in the order of their calls, without duplicates.
    """
    names = list(dict.fromkeys(found[found.lastindex or 0] for found in _NAMES.finditer(text)))[:_MOST_NAMES]
    if not names:
        return []
    reading = toolglot.read(text, supported_tools=names, truncated=truncated)
    if not reading.calls:  # an answer that is nothing but a call is read only with declared arguments
        keys = dict.fromkeys(_ARGUMENTS.findall(text)[:_MOST_NAMES], True)
        tools = [{"name": name, "parameters": {"type": "object", "properties": keys}} for name in names]
        reading = toolglot.read(text, tools, truncated=truncated)
    return list(dict.fromkeys(call.name for call in reading.calls))


# Terminal output


def format_reading(text: str, reading: Reading, paint: Paint) -> Iterator[str]:
    """The answer with its calls and reasoning in colour, then a summary."""
    marks = sorted(_marks(text, reading.events))
    position = 0
    for (start, end), style in marks:
        if start < position:
            continue
        yield text[position:start]
        yield paint(text[start:end], style)
        position = end
    yield text[position:]
    yield "" if text.endswith("\n") or not text else "\n"
    yield "\n"
    yield from _show_calls(reading, paint)
    yield from _show_rejected(reading, paint)


def _marks(text: str, events: Iterable[Event]) -> Iterator[tuple[Span, str]]:
    """The spans of calls (green), rejected calls (red) and reasoning (dim)."""
    position = 0
    for event in events:
        match event:
            case CallEnded(span=(_, end) as span):
                position = end
                yield span, GREEN
            case CallRejected(span=(_, end) as span):
                position = end
                yield span, RED
            case ReasoningDelta(text=thought) if (start := text.find(thought, position)) >= 0:
                position = start + len(thought)
                yield (start, position), DIM


def _show_calls(reading: Reading, paint: Paint) -> Iterator[str]:
    count = len(reading.calls)
    yield paint(f"{count} call{'' if count == 1 else 's'}" if count else "no calls", BOLD) + "\n"
    for call in reading.calls:
        how = f"{call.dialect}, confidence {call.confidence:.2f}"
        if call.repairs:
            how += ", repaired: " + ", ".join(call.repairs)
        yield f"  {paint(call.name, GREEN)} {call.arguments}\n"
        yield f"    {paint(how, DIM)}\n"


def _show_unread(names: list[str]) -> Iterator[str]:
    if names:
        options = " ".join(f"--tool {name}" for name in names)
        yield (
            f"  text that looks like a call to {', '.join(names)} was left as text because no tools were named: "
            f"try --tools FILE (or, where the names suffice, {options})\n"
        )


def _show_rejected(reading: Reading, paint: Paint) -> Iterator[str]:
    if not reading.rejected:
        return
    yield paint(f"{len(reading.rejected)} rejected", BOLD) + "\n"
    for rejected in reading.rejected:
        name = rejected.tool or "unknown tool"
        yield f"  {paint(name, RED)} {rejected.reason}\n"
        for defect in rejected.defects:
            yield f"    {defect.where}: found {defect.found}\n"
            yield f"      right: {defect.expected}\n"
