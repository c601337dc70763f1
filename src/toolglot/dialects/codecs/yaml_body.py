"""Arguments as YAML between the tags of a call.

    <query_db>
    sql: SELECT 1
    limit: 5
    </query_db>

YAML can be parsed only when the body is complete, so nothing streams. Scalars are read as text and typed by the schema,
because YAML's own guesses (no, 0123, 1_000) are not what the model means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from toolglot.core.events import Reason
from toolglot.core.lenient_json import Value
from toolglot.core.schema.toolset import coerce_text_leaves
from toolglot.dialects.codecs.buffered_values import collect_up_to
from toolglot.dialects.codecs.sample_templates import HARD_JSON, JSON, KEY, TOOL, VALUE
from toolglot.dialects.partial_call import CallBlock, PartialCall
from toolglot.dialects.patterns import Mark, Match, mark
from toolglot.dialects.scanner import Steps
from toolglot.dialects.spec import CallSyntax

_KEY = Mark(" {key} :")


class YamlBody(Struct, frozen=True):
    def accepts(self, head: str) -> bool:
        return head.isalpha() or head == "_"

    def read(self, block: CallBlock, syntax: CallSyntax, found: Match) -> Steps[bool]:
        source = block.source
        call = block.begin(found["name"], source.here)
        if call is None:
            return False
        source.pos = found.end()
        first = yield from source.look(_KEY)
        if first is None or not call.declares(first["key"]):
            return False
        close = mark(tuple(close.replace("{key}", found["name"]) for close in syntax.close))
        text = yield from collect_up_to(source, close)
        if text is None:
            call.truncate()
            return True
        return self._fill(call, text)

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        before, _, after = sample.replace(TOOL, name).partition(f"{KEY}: {VALUE}\n")
        from toolglot.dialects.codecs.yaml_text import write_yaml

        yield before + (write_yaml(arguments) if arguments else "") + after
        for notation in (JSON, HARD_JSON):
            yield f"{before}{notation.write(dict(arguments))}\n{after}"

    def _fill(self, call: PartialCall, text: str) -> bool:
        from toolglot.dialects.codecs.yaml_text import read_yaml

        values = read_yaml(text)
        if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
            call.add_defect(Reason.MALFORMED, "arguments", "text that is not YAML", "key: value, one per line")
            return call.block.marked
        for key, value in values.items():
            call.add(key, coerce_text_leaves(value, call.parameter_type(key), f"argument {key}"))
        return True
