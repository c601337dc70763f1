"""Calls whose header names the tool and whose arguments are a list of members.

[TOOL_CALLS]read[ARGS]{"path": "a.py"}        read(path="a.py")        call:read{path:<|"|>a.py<|"|>}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolglot.codecs.forms import write_by_sample
from toolglot.codecs.gathering import decode, parse_object
from toolglot.codecs.members import KEYWORDS, OBJECT, Members
from toolglot.codecs.strings import Collector, read_string
from toolglot.dialect import Call, Place
from toolglot.draft import Frame
from toolglot.jsontext import JSON, Parsed, Value
from toolglot.pattern import Mark, Match, mark
from toolglot.scanner import Steps

_FENCE = Mark("```{language}\n", "```{language} ", "json\n")


@dataclass(frozen=True, slots=True)
class Named:
    """The codec: the opener of the members follows the header, or is its last character."""

    members: tuple[Members, ...] = (OBJECT,)

    def accepts(self, head: str) -> bool:
        return head in ("", '"', "`", "j") or any(head == members.opener for members in self.members)

    def read(self, frame: Frame, call: Call, found: Match) -> Steps[bool]:
        source = frame.source
        start = source.here
        source.pos = found.end()
        yield from source.skip_blanks()
        fenced = (yield from source.match(_FENCE)) is not None
        head = yield from source.skip_blanks()
        members = next((members for members in self.members if members.opener == head), None)
        if members is None:
            return (yield from self._irregular(frame, call, found, start, head))
        draft = frame.begin(found["name"], start)
        if draft is None:
            return False
        source.pos += 1
        if frame.marked and draft.tool is not None:
            draft.sure()
        if not (yield from members.read(frame, draft)):
            return False
        if not draft.cut:
            draft.sure()
            yield from self._close(frame, call, fenced)
        return True

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        return write_by_sample(sample, name, arguments)

    def _irregular(self, frame: Frame, call: Call, found: Match, start: int, head: str) -> Steps[bool]:
        """No members follow: no arguments at all, or arguments encoded as a string."""
        empty = bool(call.close) and (yield from frame.source.look(mark(call.close))) is not None
        if head != '"' and not empty:
            return False
        draft = frame.begin(found["name"], start)
        if draft is None:
            return False
        if not empty:
            parsed = yield from self._encoded(frame)
            if parsed is None or not isinstance(parsed.value, dict):
                return False
            draft.repair("double_encoded")
            for key, value in parsed.value.items():
                draft.add_value(key, value)
        yield from self._close(frame, call, False)
        return True

    def _encoded(self, frame: Frame) -> Steps[Parsed | None]:
        """Arguments that were encoded once more, as a string."""
        source = frame.source
        out = Collector()

        def confirm(ahead: int, doubted: bool) -> Steps[bool]:
            gap = yield from source.find_nonblank(ahead)
            return source.text[source.pos + gap : source.pos + gap + 1] in ("", "<", "[", ")", "`")

        source.pos += 1
        if not (yield from read_string(source, '"', JSON, out, confirm)):
            return None
        return parse_object(decode(out))

    def _close(self, frame: Frame, call: Call, fenced: bool) -> Steps[None]:
        for closers in (call.close, ("```",) if fenced else ()):
            if closers:
                gap = yield from frame.source.find_nonblank()
                found = yield from frame.source.look(mark(closers), gap)
                if found is not None:
                    frame.source.pos = found.end()


PYTHON_CALL = Call(
    ("print({name}{before_parenthesis}", "{name}{before_parenthesis}", "[ {name}{before_parenthesis}"),
    Named((KEYWORDS,)),
    place=Place.WRAPPED,
)
