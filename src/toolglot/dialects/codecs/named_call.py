"""Calls whose header names the tool and whose arguments are a list of members.

[TOOL_CALLS]read[ARGS]{"path": "a.py"}        read(path="a.py")        call:read{path:<|"|>a.py<|"|>}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from toolglot.core.events import Reason
from toolglot.core.lenient_json import JSON, Parsed, Value, parse_calls
from toolglot.core.schema.toolset import coerce_text
from toolglot.dialects.codecs.attributes import take_attributes
from toolglot.dialects.codecs.buffered_values import collect_up_to, collect_value, decode_string, parse_object
from toolglot.dialects.codecs.header_names import read_name
from toolglot.dialects.codecs.object_members import KEYWORDS, OBJECT, ObjectMembers
from toolglot.dialects.codecs.sample_templates import write_by_sample
from toolglot.dialects.codecs.streamed_strings import Collector, read_string
from toolglot.dialects.partial_call import CallBlock, PartialCall
from toolglot.dialects.patterns import Mark, MarkChoice, Match, mark
from toolglot.dialects.scanner import Steps, at_once
from toolglot.dialects.spec import CallSyntax, Position

_FENCE_END = Mark("\n```{before_break}")
_FENCE = Mark("```{language}\n", "```{language} ", "json\n")
_COUNTER = re.compile(r"(?:functions[.:])?(?:call_?)?\d+(?::\d+)?")
"""The id of a call that lacks the name of its tool, as Kimi writes it."""
_MAX_QUOTES = 64
"""How many quotes are tried that may end a string of calls."""


@lru_cache(maxsize=64)
def _close_with(closing: MarkChoice, close: tuple[str, ...]) -> MarkChoice:
    """The marks that end a call without a wrapper, its own closing mark first."""
    return MarkChoice([close, *closing.marks])


@lru_cache(maxsize=256)
def _end_with_call(closing: MarkChoice, syntax: CallSyntax) -> MarkChoice:
    """The marks that end an object without its bracket: also the mark that closes the call, and the next header."""
    headers = tuple(header for header in syntax.header if not header.startswith("{name"))
    return MarkChoice([*closing.marks, *filter(None, (syntax.close, headers))])


class NamedCall(Struct, frozen=True):
    """The codec: the opener of the members follows the header, or is its last character."""

    members: tuple[ObjectMembers, ...] = (OBJECT,)

    def accepts(self, head: str) -> bool:
        return head in ("", '"', "`", "j") or any(head == members.opener for members in self.members)

    def read(self, block: CallBlock, syntax: CallSyntax, found: Match) -> Steps[bool]:
        source = block.source
        start = source.here
        source.pos = found.end()
        yield from source.skip_blanks()
        fenced = (yield from source.match(_FENCE)) is not None
        inside = source.here
        head = yield from source.skip_blanks()
        members = next((members for members in self.members if members.opener == head), None)
        if members is None:
            text = self._fenced(block, inside) if fenced else self._encoded(block) if head == '"' else at_once(None)
            return (yield from self._irregular(block, syntax, found, start, text))
        name = self.read_name(found)
        find_name = _find_name if members is KEYWORDS else _infer_name
        call = block.begin((yield from find_name(block, name)), start)
        if call is None or not take_attributes(call, found, certain=True):
            return False
        source.pos += 1
        if block.marked:
            self._begin_marked(block, syntax, call)
        if not (yield from self._members(block, syntax, call, members)) or not _may_count(block, call):
            return False
        if not call.is_truncated:
            yield from self._end(block, syntax, call, fenced)
        return True

    def read_name(self, found: Match) -> str:
        return read_name(found)

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        return write_by_sample(sample, name, arguments)

    def _begin_marked(self, block: CallBlock, syntax: CallSyntax, call: PartialCall) -> None:
        if syntax.close and not block.wrap_close:
            block.closing = _close_with(block.closing, syntax.close)
        if call.tool is not None:
            call.commit()

    def _members(self, block: CallBlock, syntax: CallSyntax, call: PartialCall, members: ObjectMembers) -> Steps[bool]:
        """Read the members; an object without its bracket ends with the call."""
        closing = block.closing
        if members is OBJECT:
            block.closing = _end_with_call(closing, syntax)
        taken = yield from members.read(block, call)
        block.closing = closing
        return taken

    def _end(self, block: CallBlock, syntax: CallSyntax, call: PartialCall, fenced: bool) -> Steps[None]:
        """End a call whose members are complete."""
        if fenced and block.wrap_close and "missing_bracket" in call.repairs:
            # a fence is closed behind complete JSON; what it lacks may be more than the bracket
            call.add_defect(Reason.MALFORMED, "arguments", "no closing bracket", "a complete JSON object")
        if block.marked or call.has_required:
            call.commit()
        yield from self._close(block, syntax, fenced)

    def _irregular(
        self, block: CallBlock, syntax: CallSyntax, found: Match, start: int, body: Steps[str | None]
    ) -> Steps[bool]:
        """Read a call without members: no arguments, arguments encoded as a string, or the tool's only text."""
        empty = bool(syntax.close) and (yield from block.source.look(mark(syntax.close))) is not None
        text = "{}" if empty else (yield from body)
        call = block.begin(self.read_name(found), start) if text is not None else None
        if call is None or text is None or not (empty or _fill(call, text)):
            return False
        yield from self._close(block, syntax, False)
        return True

    def _encoded(self, block: CallBlock) -> Steps[str | None]:
        """Read arguments encoded as a string."""
        source = block.source
        out = Collector()

        def confirm(ahead: int, uncertain: bool) -> Steps[bool]:
            gap = yield from source.find_nonblank(ahead)
            ends_line = not uncertain and "\n" in source.text[source.pos + ahead : source.pos + gap]
            return ends_line or source.text[source.pos + gap : source.pos + gap + 1] in ("", "<", "[", ")", "`")

        source.pos += 1
        return decode_string(out) if (yield from read_string(source, '"', JSON, out, confirm)) else None

    def _fenced(self, block: CallBlock, inside: int) -> Steps[str | None]:
        """Read the text of a fence, which must be closed."""
        block.source.rewind(inside)
        return (yield from collect_up_to(block.source, _FENCE_END, "\n"))

    def _close(self, block: CallBlock, syntax: CallSyntax, fenced: bool) -> Steps[None]:
        for closers in (syntax.close, ("```",) if fenced else ()):
            if closers:
                gap = yield from block.source.find_nonblank()
                found = yield from block.source.look(mark(closers), gap)
                if found is not None:
                    block.source.pos = found.end()


def _may_count(block: CallBlock, call: PartialCall) -> bool:
    """Whether arguments in ordinary text fit the tool well enough for a call."""
    return block.marked or (call.is_exact if block.alone else call.is_plausible)


def _fill(call: PartialCall, text: str) -> bool:
    """Add the arguments in a text, or the text itself as the tool's only text parameter."""
    parsed = parse_object(text)
    if parsed is not None:
        call.repair("double_encoded")
        call.add_members(parsed.value)
        return True
    key = call.tool.sole_text_parameter if call.tool is not None else None
    if key is None or text.lstrip().startswith(("{", "[")):
        return False
    call.repair("free_text_argument")
    call.add(key, coerce_text(text, call.parameter_type(key), f"argument {key}"))
    return True


class QuotedCalls(Struct, frozen=True):
    """The codec for Python calls as strings in a list; nothing is emitted before the string is complete.

    A quote ends the string if the text up to it is calls: strings in the calls may have the same quotes.
    """

    def accepts(self, head: str) -> bool:
        return True

    def read(self, block: CallBlock, syntax: CallSyntax, found: Match) -> Steps[bool]:
        source = block.source
        start = source.here
        source.pos = found.start("name") - 1
        quote, out, tries = source.text[source.pos], Collector(), iter(range(_MAX_QUOTES))
        calls: list[tuple[str, Parsed]] = []

        def confirm(ahead: int, uncertain: bool) -> Steps[bool]:
            gap = yield from source.find_nonblank(ahead)
            may_end = source.text[source.pos + gap : source.pos + gap + 1] in ("", ",", "]")
            calls[:] = parse_calls(decode_string(out)) if may_end and next(tries, None) is not None else ()
            return bool(calls)

        source.pos += 1
        if not block.require_alone() or not (yield from read_string(source, quote, JSON, out, confirm)):
            return False
        for name, arguments in calls:
            call = block.begin(_strip_module(block, name), start)
            if call is not None:
                call.add_members(arguments.value)
            if call is None or not call.is_exact:
                block.clear()
                return False
        return True

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        return write_by_sample(sample, name, arguments)


def _infer_name(block: CallBlock, written: str) -> Steps[str]:
    """The name as written. A counter means the only tool that has all arguments that follow and requires no others."""
    if _COUNTER.fullmatch(written) is None or block.tools.find(written) is not None:
        return written
    source = block.source
    here = source.here
    text = yield from collect_value(source, "<", block.closing)
    source.rewind(here)
    given = parse_object(text) if text is not None else None
    keys = given.value if given is not None and isinstance(given.value, dict) else {}
    return (block.tools.find_by_keys(keys) if keys else None) or written


def _strip_module(block: CallBlock, written: str) -> str:
    """The tool name without its module prefix, if only the short name is known."""
    short = written.rpartition(".")[2]
    return short if block.tools.find(written) is None and block.tools.find(short) is not None else written


def _find_name(block: CallBlock, written: str) -> Steps[str]:
    return at_once(_strip_module(block, written))


QUOTED_CALL = CallSyntax(
    tuple(f"{mark}{{name}}{{before_parenthesis}}" for mark in ('"', "'", '[ "', "[ '")),
    QuotedCalls(),
    position=Position.WRAPPED,
)
PYTHON_CALL = CallSyntax(
    ("print({name}{before_parenthesis}", "{name}{before_parenthesis}", "[ {name}{before_parenthesis}"),
    NamedCall((KEYWORDS,)),
    position=Position.WRAPPED,
)
SOLE_CALL = CallSyntax(
    ("{name}{before_parenthesis}", "Action: {name}{before_parenthesis}"), NamedCall((KEYWORDS,)), position=Position.LINE
)
"""A Python call that is the whole answer."""
SHOWN_CALL = CallSyntax(
    ("{name}{before_parenthesis}", "[ {name}{before_parenthesis}", "{item}{name}{before_parenthesis}"),
    SOLE_CALL.body,
    position=Position.WRAPPED,
)
"""Such a call inside marks."""
