"""JSON Schemas compiled into shapes, and the words for what a shape wants.

Strategy. A schema is compiled once: ``$ref`` and ``allOf`` are merged away, alternatives become branches, and children
are linked afterwards from a work list, so recursive types are plain cycles. Only what types a value is kept; formats,
lengths and ranges are the tool's own business. A schema that cannot be used raises ``ToolSchemaError``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, islice
from typing import Any, NoReturn, TypeAlias
from urllib.parse import unquote

from toolglot.errors import ToolSchemaError
from toolglot.jsontext import MAX_DEPTH, Number, Value, legal_number, parse

Node: TypeAlias = Mapping[str, Any]

TEXT = frozenset({"string"})
_WORDS = {
    "string": "text",
    "number": "a number such as 1.5",
    "integer": "an integer such as 10",
    "boolean": "true or false",
    "null": "null",
    "array": "a JSON list",
    "object": "a JSON object",
}
_EXAMPLES = {"string": '"a", "b"', "number": "1.5, 2", "integer": "1, 2", "boolean": "true, false", "object": "{...}"}


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """One compiled schema node; ``order`` holds its kinds as declared, none of them means anything goes."""

    order: tuple[str, ...] = ()
    enum: tuple[Value, ...] | None = None
    required: frozenset[str] = frozenset()
    branches: tuple[Shape, ...] = ()
    properties: dict[str, Shape] = field(default_factory=dict)
    links: dict[str, Shape] = field(default_factory=dict)
    kinds: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", frozenset(self.order))

    @property
    def items(self) -> Shape:
        return self.links.get("items", UNTYPED)

    @property
    def untyped(self) -> bool:
        return not self.order and self.enum is None and not self.branches

    @property
    def streams(self) -> bool:
        """Any text is right, so it can leave before its end is known."""
        return self.kinds == TEXT and self._takes_any_text

    @property
    def nullable_text(self) -> bool:
        """Any text is right, but the literal null is no text."""
        return self.kinds == {"string", "null"} and self._takes_any_text

    @property
    def _takes_any_text(self) -> bool:
        return any("string" in branch.kinds and branch.enum is None for branch in self.branches or (self,))

    def declares(self, key: str) -> bool:
        return key in self.properties

    def property_shape(self, key: str) -> Shape:
        return self.properties.get(key) or self.links.get("additional", ANY)

    def admits(self, value: Value) -> bool:
        kind = kind_of(value)
        return not self.kinds or kind in self.kinds or (kind == "integer" and "number" in self.kinds)

    def describe(self) -> str:
        """What the shape wants, in words for whoever has to write it."""
        if self.enum is not None:
            return "one of " + ", ".join(dict.fromkeys(map(show, self.enum))) if self.enum else "no value at all"
        if self.branches:
            return " or ".join(dict.fromkeys(branch.describe() for branch in self.branches))
        return " or ".join(_WORDS[kind] + self._example(kind) for kind in self.order) or "a value"

    def _example(self, kind: str) -> str:
        if kind == "object":
            keys = ", ".join(f'"{key}": ...' for key in islice(self.properties or ("key",), 8))
            return f" such as {{{keys}}}"
        if kind == "array":
            inner = next(iter(self.items.order), "")
            return f" such as [{_EXAMPLES.get(inner, '...')}]"
        return ""

    def list_missing(self, present: Collection[str]) -> list[str]:
        declared = [key for key in self.properties if key in self.required]
        return [key for key in (*declared, *sorted(self.required.difference(declared))) if key not in present]


ANY = Shape()
"""Nothing was declared: text stays text."""
UNTYPED = Shape()
"""Declared without a type: text that is a JSON literal becomes its value."""


# -- values and their words --------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?([eE][+-]?[0-9]+)?")


def spell_number(text: str, whole_only: bool) -> Number | None:
    """The number as JSON writes it, changed as little as that and the kind demand; None if it is not one."""
    found = _NUMBER.fullmatch(text)
    if found is None or not (found[2] or found[4]):
        return None
    sign, digits, dot, fraction, exponent = found.groups("")
    sign = sign.strip("+")
    if not whole_only:
        return Number(sign + (digits.lstrip("0") or "0") + dot + (fraction or "0" if dot else "") + exponent)
    if len(exponent) > 4:
        return None
    shift = int(exponent[1:] or 0) - len(fraction)
    digits += fraction
    if shift < 0 and digits[shift:].strip("0"):
        return None
    digits = digits[:shift] if shift < 0 else digits + "0" * shift
    return Number(sign + (digits.lstrip("0") or "0"))


def kind_of(value: Value) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case Number():
            return "integer" if spell_number(value, True) == value else "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


def same(one: Value, other: Value) -> bool:
    if isinstance(one, Number) and isinstance(other, Number):
        whole = spell_number(one, True)
        if whole or spell_number(other, True):
            return whole == spell_number(other, True)
        return float(legal_number(one)) == float(legal_number(other))
    return type(one) is type(other) and one == other


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def show(value: Value) -> str:
    """The value in words short enough for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Number():
            return _shorten(value)
        case str():
            return json.dumps(_shorten(value), ensure_ascii=False)
        case list():
            return f"a list of {len(value)} values" if value else "an empty list"
    return _shorten("an object with the keys " + ", ".join(value)) if value else "an empty object"


# -- schemas into shapes -----------------------------------------------------------------------------------------------

_FORMS: dict[str, tuple[tuple[type, ...], str]] = {
    "$ref": ((str,), "a string"),
    "type": ((str, list), "a string or a list of strings"),
    "properties": ((dict, Mapping), "a mapping"),
    "additionalProperties": ((bool, dict, Mapping), "a mapping or a boolean"),
    "items": ((bool, dict, Mapping, list), "a mapping or a boolean"),
    "required": ((list, tuple), "a list of strings"),
    "enum": ((list, tuple), "a list"),
    "allOf": ((list, tuple), "a list"),
    "anyOf": ((list, tuple), "a list"),
    "oneOf": ((list, tuple), "a list"),
}
_COMBINERS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_DETAILS = frozenset({*_FORMS, "const", "nullable"} - {"type"})
_PLAIN = {kind: Shape((kind,)) for kind in _WORDS}
_ALLOWS_ALL: Node = {}
_ALLOWS_NONE: Node = {"enum": []}
_MOST_ALTERNATIVES = 256


@dataclass(slots=True)
class _Compiler:
    """Makes the shapes of one tool; everything is remembered by node, so sharing and cycles cost nothing."""

    tool: str
    root: Node
    path: str
    flat: dict[int, Node | None] = field(default_factory=dict)
    shapes: dict[int, Shape] = field(default_factory=dict)
    pending: list[tuple[Shape, Sequence[Node], str]] = field(default_factory=list)
    depth: int = 0

    def compile(self) -> Shape:
        shape = self.shape(self.root, self.path)
        for entry in self.pending:  # which grows meanwhile
            self.link(*entry)
        return shape

    def fail(self, path: str, problem: str) -> NoReturn:
        raise ToolSchemaError(self.tool, path, problem)

    def shape(self, node: object, path: str) -> Shape:
        return self.shape_flat(self.flatten(node, path), path)

    def shape_flat(self, node: Node, path: str) -> Shape:
        shape = self.shapes.get(id(node))
        if shape is None:
            shape = self.shapes[id(node)] = self.build(node, path)
        return shape

    def build(self, node: Node, path: str) -> Shape:
        if _DETAILS.isdisjoint(node) and isinstance(node.get("type"), str):
            return _PLAIN[node["type"]]
        alternatives: Sequence[Node] = node.get("anyOf", ())
        if alternatives:
            shape = _join([self.shape_flat(each, f"{path}.anyOf[{i}]") for i, each in enumerate(alternatives)])
        else:
            enum = self.read_members(node, path)
            order = _list_kinds(node, enum)
            if not order and enum is None:
                return UNTYPED
            if enum is not None and "null" in order and None not in enum:
                enum = (*enum, None)
            shape = Shape(order, enum, frozenset(node.get("required", ())))
        self.pending.append((shape, alternatives or (node,), path))
        return shape

    def link(self, shape: Shape, nodes: Sequence[Node], path: str) -> None:
        """Give a shape its children; alternatives that declare one key differently are joined under it."""
        for node in nodes:
            for key, child in node.get("properties", {}).items():
                made, known = self.shape(child, f"{path}.properties.{key}"), shape.properties.get(key)
                shape.properties[key] = made if known is None or known is made else _join([known, made])
            items, rest = node.get("items"), node.get("additionalProperties")
            if items is not None and not isinstance(items, (list, tuple)):
                shape.links.setdefault("items", self.shape(items, f"{path}.items"))
            if rest is not None and not isinstance(rest, bool):
                shape.links.setdefault("additional", self.shape(rest, f"{path}.additionalProperties"))

    def flatten(self, node: object, path: str) -> Node:
        """The node with everything it refers to merged in; its ``anyOf``, if left, lists flat alternatives."""
        if isinstance(node, bool):
            return _ALLOWS_ALL if node else _ALLOWS_NONE
        if not isinstance(node, Mapping):
            self.fail(path, "must be a mapping or a boolean")
        if id(node) in self.flat:
            known = self.flat[id(node)]
            return self.fail(path, "refers to itself without an end") if known is None else known
        self.check(node, path)
        if _COMBINERS.isdisjoint(node):
            self.flat[id(node)] = node
            return node
        self.flat[id(node)] = None
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(path, f"more than {MAX_DEPTH} references deep")
        flat = self.flat[id(node)] = self.combine(node, path)
        self.depth -= 1
        return flat

    def combine(self, node: Node, path: str) -> Node:
        parts: list[Node] = []
        if "$ref" in node:
            target = self.resolve(node["$ref"], path)
            parts.append(self.flatten(target, self.path + node["$ref"][1:].replace("/", ".")))
        parts += [self.flatten(part, f"{path}.allOf[{i}]") for i, part in enumerate(node.get("allOf", ()))]
        own = {key: value for key, value in node.items() if key not in _COMBINERS}
        merged: dict[str, Any] = reduce(_merge, [*parts, own], {})
        inherited = merged.pop("anyOf", [])
        alternatives: list[Node] = []
        for word in ("anyOf", "oneOf"):
            for i, branch in enumerate(node.get(word, ())):
                flat = self.flatten(branch, f"{path}.{word}[{i}]")
                alternatives += flat.get("anyOf") or ([flat] if flat is not _ALLOWS_NONE else [])
                if len(alternatives) > _MOST_ALTERNATIVES:
                    self.fail(path, f"has more than {_MOST_ALTERNATIVES} alternatives")
        if alternatives or inherited:
            merged["anyOf"] = [_merge(merged, each) if merged else each for each in alternatives or inherited]
        return merged

    def check(self, node: Node, path: str) -> None:
        for key, value in node.items():
            form = _FORMS.get(key)
            if form and not isinstance(value, form[0]):
                self.fail(f"{path}.{key}", f"must be {form[1]}")
        if not all(isinstance(name, str) for name in node.get("required", ())):
            self.fail(f"{path}.required", "must be a list of strings")
        for kind in _list_types(node):
            if not isinstance(kind, str) or kind not in _WORDS:
                self.fail(f"{path}.type", f"unknown type {kind!r}, use one of {', '.join(_WORDS)}")

    def resolve(self, reference: str, path: str) -> object:
        found: object = self.root
        if not reference.startswith("#"):
            self.fail(f"{path}.$ref", f"{reference!r} is not inside this schema")
        for step in unquote(reference[1:]).split("/")[1:] if reference != "#" else ():
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and step in map(str, range(len(found))):
                found = found[int(step)]
            elif isinstance(found, Mapping) and step in found:
                found = found[step]
            else:
                self.fail(f"{path}.$ref", f"{reference!r} leads nowhere")
        return found

    def read_members(self, node: Node, path: str) -> tuple[Value, ...] | None:
        members = [node["const"]] if "const" in node else node.get("enum")
        if members is None:
            return None
        try:
            return tuple(member if isinstance(member, str) else parse(json.dumps(member)).value for member in members)
        except (TypeError, ValueError, RecursionError):
            self.fail(f"{path}.enum", "has a member that is not JSON")


def compile_schema(schema: Node, tool: str, path: str) -> Shape:
    """The shape of a whole schema; the tool and the path are what an error will name."""
    return _Compiler(tool, schema, path).compile()


def _list_types(node: Node) -> list[Any]:
    types = node.get("type", [])
    return types if isinstance(types, list) else [types]


def _list_kinds(node: Node, enum: Sequence[Value] | None) -> tuple[str, ...]:
    kinds = _list_types(node)
    if not kinds and enum is not None:
        kinds = [kind_of(member) for member in enum]
    elif not kinds and not {"properties", "additionalProperties", "required"}.isdisjoint(node):
        kinds = ["object"]
    elif not kinds and "items" in node:
        kinds = ["array"]
    return tuple(dict.fromkeys([*kinds, "null"] if kinds and node.get("nullable") is True else kinds))


def _join(shapes: Sequence[Shape]) -> Shape:
    """A shape that takes what one of the shapes takes."""
    leaves = tuple(dict.fromkeys(leaf for shape in shapes for leaf in shape.branches or (shape,)))
    order = dict.fromkeys(chain.from_iterable(leaf.order for leaf in leaves))
    enums = [leaf.enum for leaf in leaves if leaf.enum is not None]
    return Shape(
        tuple(order) if all(leaf.order for leaf in leaves) else (),
        tuple(chain.from_iterable(enums)) if len(enums) == len(leaves) else None,
        frozenset.intersection(*(leaf.required for leaf in leaves)),
        leaves,
    )


def _merge(one: Node, other: Node) -> dict[str, Any]:
    """What both nodes say; where they disagree the later one counts."""
    merged = {**one, **other}
    shared = one.keys() & other.keys()
    if "properties" in shared:
        known = one["properties"]
        merged["properties"] = dict(known)
        for key, node in other["properties"].items():
            merged["properties"][key] = _merge_property(known[key], node) if key in known else node
    if "required" in shared:
        merged["required"] = [*one["required"], *other["required"]]
    if "enum" in shared:
        merged["enum"] = [member for member in one["enum"] if member in other["enum"]]
    if "type" in shared:
        merged["type"] = _intersect_types(_list_types(one), _list_types(other))
    return merged


def _intersect_types(one: list[str], other: list[str]) -> list[str]:
    return [kind for kind in one if kind in other or (kind == "integer" and "number" in other)] or other


def _merge_property(one: object, other: object) -> object:
    # Nodes that refer elsewhere are not merged any deeper: with recursive types that would have no end.
    if not isinstance(one, Mapping) or not isinstance(other, Mapping) or not _COMBINERS.isdisjoint(other):
        return other
    return {**one, **other} if _COMBINERS.isdisjoint(one) else one
