"""Arguments like the flags of a command: ``{ --path "a.py" --limit 5 }``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolglot.core.events import Reason
from toolglot.core.lenient_json import NotJsonError, parse
from toolglot.core.schema.toolset import SchemaType, coerce_value
from toolglot.dialects.codecs.bare_values import add_unquoted
from toolglot.dialects.codecs.object_members import ObjectMembers
from toolglot.dialects.partial_call import CallBlock, PartialCall
from toolglot.dialects.patterns import Mark
from toolglot.dialects.scanner import Source, Steps

_FLAG = Mark("--{key}")
_BARE_END = re.compile(r"[\n}]")
_NEXT_FLAG = re.compile(r"\s--([\w.\-$]+)")
_MAX_BARE = 400


@dataclass(frozen=True, slots=True)
class CliFlags(ObjectMembers):
    """The codec: only whitespace separates the flags, and an unquoted value ends with its line."""

    assign: tuple[str, ...] = ("", ":", "=")

    def key(self, source: Source) -> Steps[str | None]:
        key = yield from ObjectMembers.key(self, source)
        return key.removeprefix("--") if key is not None else None

    def _ends_value(
        self, block: CallBlock, call: PartialCall, marked: bool, ahead: int, uncertain: bool
    ) -> Steps[bool]:
        source = block.source
        gap = yield from source.find_nonblank(ahead)
        following = yield from source.look(_FLAG, gap)
        if following is not None:
            return self._is_due(call, following, True)
        return (yield from ObjectMembers._ends_value(self, block, call, marked, ahead, uncertain))

    def _bare_value(self, block: CallBlock, call: PartialCall, key: str, shape: SchemaType) -> Steps[bool]:
        source = block.source
        while (end := _BARE_END.search(source.text, source.pos)) is None:
            if source.final or len(source.text) - source.pos > _MAX_BARE:
                call.truncate()
                return False
            yield
        text = source.text[source.pos : end.start()]
        # undeclared flags belong to the value: a command has flags too
        following = (found.start() for found in _NEXT_FLAG.finditer(text) if self._may_follow(call, key, found[1]))
        size = next(following, len(text))
        source.pos += size
        text = text[:size].strip()
        if text.startswith("--"):
            call.add_defect(Reason.INVALID_VALUE, f"argument {key}", "the next flag", "a value")
            return True
        try:
            call.add(key, coerce_value(parse(text).value, shape, f"argument {key}"))
        except NotJsonError:
            add_unquoted(call, key, text, shape, self.literals)
        return True

    def _may_follow(self, call: PartialCall, key: str, flag: str) -> bool:
        return call.declares(flag) and flag != key and flag not in call.keys
