"""Schema types ("shapes"): what a compiled JSON Schema requires of a value, and descriptions for messages.

Strategy. A ``SchemaType`` keeps only what determines the type of a value; formats, lengths and ranges are left to the
tool. Kinds are the type names of JSON Schema. Numbers keep their source text and are rewritten only where a kind or
JSON itself requires it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice

from toolglot.core.lenient_json import Number, Value, to_json_number

TEXT = frozenset({"string"})
_DESCRIPTIONS = {
    "string": "text",
    "number": "a number such as 1.5",
    "integer": "an integer such as 10",
    "boolean": "true or false",
    "null": "null",
    "array": "a JSON list such as [{item}]",
    "object": "a JSON object such as {{{keys}}}",
}
_EXAMPLES = {"string": '"a", "b"', "number": "1.5, 2", "integer": "1, 2", "boolean": "true, false", "object": "{...}"}
_WIDER = {"integer": "number"}
KINDS = tuple(_DESCRIPTIONS)


def takes_kind(kinds: Collection[str], kind: str) -> bool:
    return kind in kinds or _WIDER.get(kind) in kinds


@dataclass(frozen=True, slots=True, eq=False)
class SchemaType:
    """One compiled schema node; ``order`` lists its kinds as declared, empty: any value."""

    order: tuple[str, ...] = ()
    enum: tuple[Value, ...] | None = None
    required: frozenset[str] = frozenset()
    branches: tuple[SchemaType, ...] = ()
    properties: dict[str, SchemaType] = field(default_factory=dict)
    links: dict[str, SchemaType] = field(default_factory=dict)
    closed: bool = False
    """The schema forbids members that it does not declare."""
    kinds: frozenset[str] = field(init=False)
    streams: bool = field(init=False)
    """Any text is valid, so it can be emitted before its end is known."""
    nullable_text: bool = field(init=False)
    """Any text is valid, but the literal null means null."""

    def __post_init__(self) -> None:
        kinds = frozenset(self.order)
        takes_any_text = any("string" in leaf.order and leaf.enum is None for leaf in self.leaves)
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "streams", takes_any_text and kinds == TEXT)
        object.__setattr__(self, "nullable_text", takes_any_text and kinds == {"string", "null"})

    @property
    def items(self) -> SchemaType:
        return self.links.get("items", UNTYPED)

    @property
    def leaves(self) -> tuple[SchemaType, ...]:
        return self.branches or (self,)

    @property
    def untyped(self) -> bool:
        return not self.order and self.enum is None and not self.branches

    def declares(self, key: str) -> bool:
        return key in self.properties

    def forbids(self, key: str) -> bool:
        """Whether the schema forbids a member of this name."""
        return self.closed and key not in self.properties and key not in self.required

    def property_type(self, key: str, undeclared: SchemaType | None = None) -> SchemaType:
        """The type of a member; ``undeclared`` applies to members that the schema does not mention."""
        return self.properties.get(key) or self.links.get("additionalProperties") or undeclared or ANY

    def admits(self, value: Value) -> bool:
        """Whether the value is of an accepted kind."""
        return not self.kinds or takes_kind(self.kinds, kind_of(value))

    def lists(self, value: Value) -> bool:
        """Whether the value is a member of the enum, if there is one."""
        return self.enum is None or any(are_equal(value, member) for member in self.enum)

    def describe(self) -> str:
        """Describe the expected value for an error message."""
        if self.enum is not None:
            members = ", ".join(dict.fromkeys(map(describe_value, self.enum)))
            return f"one of {members}" if members else "no value at all"
        wanted = map(SchemaType.describe, self.branches) if self.branches else map(self._describe_kind, self.order)
        return " or ".join(dict.fromkeys(wanted)) or "a value"

    def _describe_kind(self, kind: str) -> str:
        keys = ", ".join(f'"{key}": ...' for key in islice(self.properties or ("key",), 8))
        item = next(iter(self.items.order), "")
        return _DESCRIPTIONS[kind].format(keys=keys, item=_EXAMPLES.get(item, "..."))

    def list_missing(self, present: Collection[str]) -> list[str]:
        missing = self.required.difference(present)
        declared = [key for key in self.properties if key in missing]
        return declared + sorted(missing.difference(declared))


ANY = SchemaType()
"""Not declared: text stays text."""
UNTYPED = SchemaType()
"""Declared without a type: text that is a JSON literal becomes its value."""


# -- numbers -----------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"(?:\+|(-?))(?=\.?[0-9])0*+([0-9]*+)(\.[0-9]*+)?([eE][+-]?[0-9]+)?")
_LONGEST_EXPONENT = 4


def normalize_number(text: str, kinds: Collection[str]) -> Number | None:
    """Convert a number to JSON of one of the kinds, with as few changes as possible; None if it is none of them."""
    if "number" in kinds:
        return _normalize_real(text)
    return normalize_integer(text) if "integer" in kinds else None


def _normalize_real(text: str) -> Number | None:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    sign, digits, fraction, exponent = found.groups("")
    return Number(sign + (digits or "0") + (".0" if fraction == "." else fraction) + exponent)


def normalize_integer(text: str) -> Number | None:
    """Return the digits of an integer, however it was written; None if it is not one."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    sign, digits, fraction, exponent = found.groups("")
    if fraction or exponent:
        return _shift_point(sign, digits, fraction[1:], exponent)
    return Number(sign + (digits or "0"))


def _shift_point(sign: str, digits: str, fraction: str, exponent: str) -> Number | None:
    """Resolve the exponent; None if a fractional part remains."""
    if len(exponent) > _LONGEST_EXPONENT:
        return None
    point = max(0, len(digits) + int(exponent[1:] or 0))
    digits += fraction
    if digits[point:].strip("0"):
        return None
    return Number(sign + (digits[:point].ljust(point, "0").lstrip("0") or "0"))


# -- comparing and describing values -----------------------------------------------------------------------------------


def kind_of(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case Number():
            return "integer" if normalize_integer(value) == value else "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


def are_equal(one: Value, other: Value) -> bool:
    return type(one) is type(other) and _comparison_key(one) == _comparison_key(other)


def _comparison_key(value: Value) -> object:
    """Key for comparing two values: 1 and 1.0 are the same number."""
    if isinstance(value, Number):
        return normalize_integer(value) or float(to_json_number(value))
    return value


def describe_value(value: Value) -> str:
    """Describe a value briefly for an error message."""
    if isinstance(value, (list, dict)):
        return _shorten(_outline(value))
    if isinstance(value, Number):
        return _shorten(value)
    return json.dumps(_shorten(value) if isinstance(value, str) else value, ensure_ascii=False)


def _outline(value: list[Value] | dict[str, Value]) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)} values" if value else "an empty list"
    return "an object with the keys " + ", ".join(value) if value else "an empty object"


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
