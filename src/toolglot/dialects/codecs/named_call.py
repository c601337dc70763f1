"""Calls whose header names the tool and whose arguments are a list of members.

[TOOL_CALLS]read[ARGS]{"path": "a.py"}        read(path="a.py")        call:read{path:<|"|>a.py<|"|>}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from toolglot.core.lenient_json import JSON, Value, parse_call
from toolglot.core.schema.toolset import coerce_text
from toolglot.dialects.codecs.buffered_values import decode, gather_up_to, parse_object
from toolglot.dialects.codecs.object_members import KEYWORDS, OBJECT, ObjectMembers
from toolglot.dialects.codecs.sample_templates import write_by_sample
from toolglot.dialects.codecs.streamed_strings import Collector, read_string
from toolglot.dialects.partial_call import CallBlock, PartialCall
from toolglot.dialects.patterns import Mark, MarkChoice, Match, mark
from toolglot.dialects.scanner import Steps, at_once
from toolglot.dialects.spec import CallSyntax, Position

_FENCE_END = Mark("\n```{before_break}")
_FENCE = Mark("```{language}\n", "```{language} ", "json\n")


@lru_cache(maxsize=64)
def _close_with(closing: MarkChoice, close: tuple[str, ...]) -> MarkChoice:
    """What ends a call without a wrapper: its own closing mark too."""
    return MarkChoice([close, *closing.marks])


@dataclass(frozen=True, slots=True)
class NamedCall:
    """The codec: the opener of the members follows the header, or is its last character."""

    members: tuple[ObjectMembers, ...] = (OBJECT,)

    def accepts(self, head: str) -> bool:
        return head in ("", '"', "`", "j") or any(head == members.opener for members in self.members)

    def read(self, frame: CallBlock, call: CallSyntax, found: Match) -> Steps[bool]:
        source = frame.source
        start = source.here
        source.pos = found.end()
        yield from source.skip_blanks()
        fenced = (yield from source.match(_FENCE)) is not None
        inside = source.here
        head = yield from source.skip_blanks()
        members = next((members for members in self.members if members.opener == head), None)
        if members is None:
            text = self._shown(frame, inside) if fenced else self._encoded(frame) if head == '"' else at_once(None)
            return (yield from self._irregular(frame, call, found, start, text))
        draft = frame.begin(_find_name(frame, found["name"]) if members is KEYWORDS else found["name"], start)
        if draft is None:
            return False
        source.pos += 1
        if frame.marked:
            self._begin_marked(frame, call, draft)
        if not (yield from members.read(frame, draft)) or not _may_count(frame, draft):
            return False
        if not draft.is_truncated:
            if frame.marked or draft.has_required:
                draft.commit()
            yield from self._close(frame, call, fenced)
        return True

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        return write_by_sample(sample, name, arguments)

    def _begin_marked(self, frame: CallBlock, call: CallSyntax, draft: PartialCall) -> None:
        if call.close and not frame.wrap_close:
            frame.closing = _close_with(frame.closing, call.close)
        if draft.tool is not None:
            draft.commit()

    def _irregular(
        self, frame: CallBlock, call: CallSyntax, found: Match, start: int, body: Steps[str | None]
    ) -> Steps[bool]:
        """No members follow: no arguments at all, arguments encoded as a string, or the one text the tool takes."""
        empty = bool(call.close) and (yield from frame.source.look(mark(call.close))) is not None
        text = "{}" if empty else (yield from body)
        draft = frame.begin(found["name"], start) if text is not None else None
        if draft is None or text is None or not (empty or _fill(draft, text)):
            return False
        yield from self._close(frame, call, False)
        return True

    def _encoded(self, frame: CallBlock) -> Steps[str | None]:
        """Arguments that were encoded once more, as a string."""
        source = frame.source
        out = Collector()

        def confirm(ahead: int, doubted: bool) -> Steps[bool]:
            gap = yield from source.find_nonblank(ahead)
            ends_line = not doubted and "\n" in source.text[source.pos + ahead : source.pos + gap]
            return ends_line or source.text[source.pos + gap : source.pos + gap + 1] in ("", "<", "[", ")", "`")

        source.pos += 1
        return decode(out) if (yield from read_string(source, '"', JSON, out, confirm)) else None

    def _shown(self, frame: CallBlock, inside: int) -> Steps[str | None]:
        """A text in a fence, which must be closed."""
        frame.source.rewind(inside)
        return (yield from gather_up_to(frame.source, _FENCE_END, "\n"))

    def _close(self, frame: CallBlock, call: CallSyntax, fenced: bool) -> Steps[None]:
        for closers in (call.close, ("```",) if fenced else ()):
            if closers:
                gap = yield from frame.source.find_nonblank()
                found = yield from frame.source.look(mark(closers), gap)
                if found is not None:
                    frame.source.pos = found.end()


def _may_count(frame: CallBlock, draft: PartialCall) -> bool:
    """Whether arguments in ordinary text may be meant for the tool."""
    return frame.marked or (draft.is_exact if frame.alone else draft.is_plausible)


def _fill(draft: PartialCall, text: str) -> bool:
    """Take the arguments out of a text, or the text as the only one that the tool can mean."""
    parsed = parse_object(text)
    if parsed is not None:
        draft.repair("double_encoded")
        draft.add_members(parsed.value)
        return True
    key = draft.tool.sole_text_parameter if draft.tool is not None else None
    if key is None or text.lstrip().startswith(("{", "[")):
        return False
    draft.repair("free_text_argument")
    draft.add(key, coerce_text(text, draft.parameter_type(key), f"argument {key}"))
    return True


@dataclass(frozen=True, slots=True)
class QuotedName:
    """The codec for Python calls as strings of a list; nothing leaves before the string is read."""

    def accepts(self, head: str) -> bool:
        return True

    def read(self, frame: CallBlock, call: CallSyntax, found: Match) -> Steps[bool]:
        source = frame.source
        start = source.here
        source.pos = found.start("name") - 1
        quote, out = source.text[source.pos], Collector()

        def confirm(ahead: int, doubted: bool) -> Steps[bool]:
            gap = yield from source.find_nonblank(ahead)
            return source.text[source.pos + gap : source.pos + gap + 1] in ("", ",", "]")

        source.pos += 1
        if not frame.require_alone() or not (yield from read_string(source, quote, JSON, out, confirm)):
            return False
        parsed = parse_call(decode(out))
        draft = frame.begin(_find_name(frame, parsed[0]), start) if parsed is not None else None
        if parsed is None or draft is None:
            return False
        draft.add_members(parsed[1].value)
        return draft.is_exact

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        return write_by_sample(sample, name, arguments)


def _find_name(frame: CallBlock, written: str) -> str:
    """The name of a tool without the module that stands before it, where only that one is offered."""
    short = written.rpartition(".")[2]
    return short if frame.tools.find(written) is None and frame.tools.find(short) is not None else written


QUOTED_CALL = CallSyntax(
    tuple(f"{mark}{{name}}{{before_parenthesis}}" for mark in ('"', "'", '[ "', "[ '")),
    QuotedName(),
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
"""A Python call that is all an answer says."""
SHOWN_CALL = CallSyntax(
    ("{name}{before_parenthesis}", "[ {name}{before_parenthesis}", "{item}{name}{before_parenthesis}"),
    SOLE_CALL.body,
    position=Position.WRAPPED,
)
"""The same, inside marks."""
