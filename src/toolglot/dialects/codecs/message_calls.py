"""Messages addressed to a tool, and the recipient that means several calls."""

from __future__ import annotations

from toolglot.dialects.codecs.header_names import read_recipient
from toolglot.dialects.codecs.json_envelope import JsonEnvelope
from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.partial_call import CallBlock
from toolglot.dialects.patterns import Mark, Match
from toolglot.dialects.scanner import Steps
from toolglot.dialects.spec import CallSyntax

_PARALLEL = frozenset(("multi_tool_use.parallel", "functions.multi_tool_use.parallel"))
_OPENER = Mark("{{")


class MessageCalls(NamedCall, frozen=True):
    """The codec: the members of a call, or an envelope with a list of calls."""

    def read(self, block: CallBlock, syntax: CallSyntax, found: Match) -> Steps[bool]:
        if found["name"] not in _PARALLEL or block.tools.find(found["name"]) is not None:
            return (yield from NamedCall.read(self, block, syntax, found))
        source = block.source
        source.pos = found.end()
        yield from source.skip_blanks()
        opener = yield from source.match(_OPENER)
        return opener is not None and (yield from JsonEnvelope().read(block, syntax, opener))

    def read_name(self, found: Match) -> str:
        return read_recipient(found)
