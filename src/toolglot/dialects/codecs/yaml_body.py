"""Arguments as YAML between the tags of a call, or the text of a tool that requires one text and nothing else.

    <query_db>                    <execute_bash>
    sql: SELECT 1                 git status
    limit: 5                      </execute_bash>
    </query_db>

A text in such tags is as common in prose, so the tags must begin and end a line. YAML can be parsed only when the body
is complete, so nothing streams. Scalars are read as text and typed by the schema, because YAML's own guesses (no, 0123,
1_000) are not what the model means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher

from msgspec import Struct

from toolglot.core.events import Reason
from toolglot.core.lenient_json import Value
from toolglot.core.schema.toolset import CompiledTool, coerce_text, coerce_text_leaves
from toolglot.dialects.codecs.buffered_values import collect_up_to
from toolglot.dialects.codecs.sample_templates import HARD_JSON, JSON, KEY, TOOL, VALUE
from toolglot.dialects.codecs.whitespace import Trim, open_trimmer
from toolglot.dialects.partial_call import CallBlock, PartialCall
from toolglot.dialects.patterns import Mark, Match, mark
from toolglot.dialects.scanner import Steps
from toolglot.dialects.spec import CallSyntax

_KEY = Mark(" {key} :")
_END = Mark("{before_end}", named=False)
_HEADS = "_./~$#-(@!*%+`\\"
"""What else a text may begin with."""
_PAIR = re.compile(r"\W*\w+\W*[:=>]")


def _is_structured(text: str, tool: CompiledTool, sole: str) -> bool:
    """Whether a text has marks of its tool or around its parameters, damaged or in another notation, or a misspelt key.

    ``sole`` is the key of the text.
    """
    keys = tool.parameters.properties
    any_key = f"(?:{'|'.join(map(re.escape, keys))})[\"']?\\s{{0,4}}"
    of_tool = rf"</\s?{re.escape(tool.name[:3])}|{re.escape(tool.name[-4:])}\s?>"
    marks = rf"(?:\A.{{0,2}}|\n)[^\w\n]{{0,16}}{any_key}[:=<>]|[=<>/\"']{any_key}[<>]|{of_tool}"
    if re.search(marks, text.lstrip()) is not None:
        return True
    head, key = text.lstrip().lower(), sole.lower()
    alike = max(SequenceMatcher(None, key, head[: len(key) + more]).ratio() for more in (0, 1))
    pair = _PAIR.match(head)
    return alike >= 0.7 or (pair is not None and (alike >= 0.5 or (len(keys) > 1 and pair[0][-1] == ":")))


class YamlBody(Struct, frozen=True):
    def accepts(self, head: str) -> bool:
        return bool(head) and (head.isalnum() or head in _HEADS)

    def read(self, block: CallBlock, syntax: CallSyntax, found: Match) -> Steps[bool]:
        source = block.source
        call = block.begin(found["name"], source.here)
        if call is None:
            return False
        source.pos = found.end()
        first = yield from source.look(_KEY)
        close = mark(tuple(close.replace("{key}", found["name"]) for close in syntax.close))
        if first is None or not call.declares(first["key"]):
            return (yield from self._read_text(call, found[0], close))
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

    def _read_text(self, call: PartialCall, opener: str, close: Mark) -> Steps[bool]:
        """Read the tool's only text; an element that is part of a line is no call, and neither is one that is opened
        again before it is closed."""
        block, key = call.block, call.tool.sole_text_parameter if call.tool is not None else None
        if key is None or call.tool is None or call.tool.required != {key} or not block.at_line:
            return False
        text, shape = (yield from collect_up_to(block.source, close, other=opener)), call.parameter_type(key)
        if text is None or (yield from block.source.look(_END)) is None:
            return False
        if not any(map(str.isalnum, text)) or _is_structured(text, call.tool, key):
            return False
        trimmer = open_trimmer(Trim.BREAK)
        text = trimmer.take(text) + trimmer.end()
        call.repair("free_text_argument")
        call.add(key, coerce_text(text if "\n" in text else text.strip(), shape, f"argument {key}"))
        return True

    def _fill(self, call: PartialCall, text: str) -> bool:
        from toolglot.dialects.codecs.yaml_text import read_yaml

        values = read_yaml(text)
        if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
            call.add_defect(Reason.MALFORMED, "arguments", "text that is not YAML", "key: value, one per line")
            return call.block.marked
        for key, value in values.items():
            call.add(key, coerce_text_leaves(value, call.parameter_type(key), f"argument {key}"))
        return True
