"""Messages addressed to a tool, and the one address that stands for several of them."""

from __future__ import annotations

from dataclasses import dataclass

from toolglot.dialects.codecs.json_envelope import Envelope
from toolglot.dialects.codecs.named_call import Named
from toolglot.dialects.partial_call import Frame
from toolglot.dialects.patterns import Mark, Match
from toolglot.dialects.scanner import Steps
from toolglot.dialects.spec import Call

_PARALLEL = frozenset(("multi_tool_use.parallel", "functions.multi_tool_use.parallel"))
_OPENER = Mark("{{")


@dataclass(frozen=True, slots=True)
class Addressed(Named):
    """The codec: the members of a call, or an envelope with a list of calls."""

    def read(self, frame: Frame, call: Call, found: Match) -> Steps[bool]:
        if found["name"] not in _PARALLEL or frame.toolbox.find(found["name"]) is not None:
            return (yield from Named.read(self, frame, call, found))
        source = frame.source
        source.pos = found.end()
        yield from source.skip_blanks()
        opener = yield from source.match(_OPENER)
        return opener is not None and (yield from Envelope().read(frame, call, opener))
