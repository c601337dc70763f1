"""The shape of a call in a dialect: its sample, split into the text around the arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from toolglot.core.conversation import Tool
from toolglot.core.lenient_json import dump
from toolglot.core.schema.compile import compile_schema
from toolglot.core.schema.types import SchemaType
from toolglot.prompting.grammar.rules import GrammarRules, JsonRules, literal, order_keys
from toolglot.reading.reader import dialect_index

_NAME, _KEY, _VALUE = "get_weather", "city", "Oslo"
_OBJECT = f'{{"{_KEY}": "{_VALUE}"}}'
_TAGS = re.compile(
    rf"(?P<open><[^<>]*\b{_KEY}>\n?|<[^<>]* name=\"{_KEY}\">|<[^<>]+>{_KEY}</[^<>]+>\s*<[^<>]+>)"
    rf"{_VALUE}(?P<close>\n?</[^<>]+>)(?P<gap>\s*)"
)
_MARK = re.compile(r"</?[^\s<>=]+[>=\s]")
_LEAD = re.compile(r".[^\s{<\[]*")
_TAGGABLE = re.compile(r"[^\W\d][\w.-]*")
_NO_CALL_INSIDE = ("<![CDATA[",)


class UnwritableError(Exception):
    """The dialect cannot write a required parameter."""


class CallShape(Struct, frozen=True):
    """A dialect's sample, split into the text before and after the arguments."""

    head: str
    tail: str

    def lead(self, tool: Tool) -> str:
        """The prefix that identifies a call."""
        before, _, behind = self.head.partition(_NAME)
        found = _LEAD.match(before if len(before) > 1 else before + tool.name + behind[:1])
        return found[0] if found else before

    def begin(self, tool: Tool) -> str:
        """The text before the arguments of a call."""
        return self.head.replace(_NAME, tool.name)

    def end(self, tool: Tool) -> str:
        """The text after the arguments of a call."""
        return self.tail.replace(_NAME, tool.name)

    def write_arguments(self, tool: Tool, rules: GrammarRules) -> str:
        """The right side of a rule for the arguments: one JSON object. Adds the rules that it refers to.

        Raises: UnwritableError if the dialect cannot write a required parameter.
        """
        return JsonRules(rules).members(compile_schema(tool.parameters))


class TaggedCallShape(CallShape, frozen=True):
    """A sample in which each parameter has an opening and a closing tag."""

    open: str
    close: str
    gap: str

    def write_arguments(self, tool: Tool, rules: GrammarRules) -> str:
        shape = compile_schema(tool.parameters)
        if any(not _TAGGABLE.fullmatch(key) for key in shape.required):
            raise UnwritableError
        keys = [key for key in order_keys(shape) if _TAGGABLE.fullmatch(key)]
        marks = {*self._marks(tool, keys), *_NO_CALL_INSIDE}
        pairs = [
            f"{literal(self.open.replace(_KEY, key))} {self._value(shape.property_type(key), marks, rules)} "
            f"{literal(self.close.replace(_KEY, key) + self.gap)}"
            for key in keys
        ]
        return " ".join(pair if key in shape.required else f"({pair})?" for key, pair in zip(keys, pairs, strict=True))

    def _marks(self, tool: Tool, keys: Sequence[str]) -> set[str]:
        around = self.begin(tool) + self.end(tool)
        inside = "".join((self.open + self.close).replace(_KEY, key) for key in keys)
        return {found[0].rstrip() for found in _MARK.finditer(around + inside)}

    def _value(self, shape: SchemaType, marks: set[str], rules: GrammarRules) -> str:
        if shape.enum:
            raw = (member if isinstance(member, str) else dump(member) for member in shape.enum)
            return f"({' | '.join(map(literal, raw))})"
        if shape.untyped or any("string" in leaf.kinds and leaf.enum is None for leaf in shape.leaves):
            return rules.add_text(marks)
        return JsonRules(rules, "tagged-string").value(shape)


def find_call_shape(dialect: str) -> CallShape | None:
    """The shape of calls in a dialect, given by its name or a model id; None if the sample cannot be split."""
    return _split_sample(dialect_index().resolve_hint(dialect) or "")


@cache
def _split_sample(dialect: str) -> CallShape | None:
    spec = dialect_index().by_name.get(dialect)
    if spec is None:
        return None
    sample = spec.sample
    if sample.count(_OBJECT) == 1:
        head, _, tail = sample.partition(_OBJECT)
        return CallShape(head, tail)
    found = _TAGS.search(sample)
    if found is None:
        return None
    return TaggedCallShape(sample[: found.start()], sample[found.end() :], found["open"], found["close"], found["gap"])
