"""Compiles JSON Schemas into ``SchemaType`` ("shape") objects.

Strategy. A schema is compiled once: ``$ref`` and ``allOf`` are merged, alternatives become branches, and children are
linked afterwards from a work list, so recursive types are plain cycles. No schema is refused: servers take almost any,
so a part that is not JSON Schema says nothing about the value. Types of programming languages mean their JSON types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, reduce
from itertools import chain
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from msgspec import Struct, field

from toolglot.core.json_numbers import ExactNumber
from toolglot.core.lenient_json import MAX_DEPTH, Number, Value, parse
from toolglot.core.schema.types import KINDS, UNTYPED, SchemaType, kind_of, takes_kind

Node: TypeAlias = Mapping[str, Any]

_FORMS: Final[Mapping[str, tuple[type, ...]]] = {
    "$ref": (str,),
    "properties": (dict, Mapping),
    "additionalProperties": (bool, dict, Mapping),
    "items": (bool, dict, Mapping, list),
    "required": (list, tuple),
    "enum": (list, tuple),
    "allOf": (list, tuple),
    "anyOf": (list, tuple),
    "oneOf": (list, tuple),
}
"""The Python types of the values of keywords."""
_TYPES: Final = {
    **{kind: kind for kind in KINDS},
    **dict.fromkeys(("str", "text", "char", "varchar"), "string"),
    **dict.fromkeys(("int", "long", "short", "byte", "int32", "int64", "bigint"), "integer"),
    **dict.fromkeys(("float", "double", "decimal", "num", "float32", "float64"), "number"),
    **dict.fromkeys(("list", "tuple", "set", "arraylist"), "array"),
    **dict.fromkeys(("dict", "map", "hashmap", "mapping"), "object"),
    **dict.fromkeys(("none", "nonetype"), "null"),
    "bool": "boolean",
}
"""The kinds that the names of types mean, in lower case; any other name means any value."""
_TYPE = re.compile(r"\s*(\w+)(?:\s*\[.*\])?(?:,\s*optional)?\s*", re.IGNORECASE | re.DOTALL)
"""The name of a type with parameters and a remark: ``List[int], optional``."""
_COMBINERS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_LINKED_UNLESS = {"items": list, "additionalProperties": bool}
_IMPLIED_KINDS = {"properties": "object", "additionalProperties": "object", "required": "object", "items": "array"}
_DETAILS = frozenset({*_IMPLIED_KINDS, "anyOf", "enum", "const"})
_ALLOWS_ALL: Node = {}
_ALLOWS_NONE: Node = {"enum": []}
_MAX_ALTERNATIVES = 256


def compile_schema(schema: Node) -> SchemaType:
    """Compile a schema; what is not JSON Schema in it allows any value."""
    return _Compiler(schema).compile()


class _Compiler(Struct):
    """Compiles one schema; results are memoized by node, so shared nodes and cycles cost nothing."""

    root: Node
    flat: dict[int, Node] = field(default_factory=dict)
    unfinished: set[int] = field(default_factory=set)
    shapes: dict[int, SchemaType] = field(default_factory=dict)
    pending: list[tuple[SchemaType, Sequence[Node]]] = field(default_factory=list)

    def compile(self) -> SchemaType:
        shape = self.shape(self.root)
        for entry in self.pending:  # grows during the loop
            self.link(*entry)
        return shape

    # -- flat nodes into shapes ----------------------------------------------------------------------------------------

    def shape(self, node: object) -> SchemaType:
        return self.shape_flat(self.flatten(node))

    def shape_flat(self, node: Node) -> SchemaType:
        shape = self.shapes.get(id(node))
        if shape is None:
            shape = self.shapes[id(node)] = self.build(node)
        return shape

    def build(self, node: Node) -> SchemaType:
        if _DETAILS.isdisjoint(node):
            return _share_plain(_list_kinds(node))
        node = _lower_enum(node)
        alternatives: Sequence[Node] = node.get("anyOf", ())
        branches = [self.shape_flat(each) for each in alternatives]
        shape = _join(branches) if branches else self.build_leaf(node)
        self.pending.append((shape, alternatives or (node,)))
        return shape

    def build_leaf(self, node: Node) -> SchemaType:
        enum = self.read_members(node)
        order = _list_kinds(node, enum)
        if enum is not None and "null" in order and None not in enum:
            enum = (*enum, None)
        closed = node.get("additionalProperties") is False and "patternProperties" not in node
        return SchemaType(order, enum, required=frozenset(node.get("required", ())), closed=closed)

    def read_members(self, node: Node) -> tuple[Value, ...] | None:
        members = [node["const"]] if "const" in node else node.get("enum")
        if members is None:
            return None
        if members and "const" not in node and "default" in node:
            members = [*members, node["default"]]  # a declared default is valid even where the enum omits it
        try:
            return tuple(map(_read_member, members))
        except (TypeError, ValueError, RecursionError):
            return None

    def link(self, shape: SchemaType, nodes: Sequence[Node]) -> None:
        """Link the children of a shape."""
        for node in nodes:
            if "properties" in node:
                self.link_properties(shape, node["properties"])
            for word, unlinked in _LINKED_UNLESS.items():
                if word in node and not isinstance(node[word], unlinked):
                    shape.links.setdefault(word, self.shape(node[word]))

    def link_properties(self, shape: SchemaType, properties: Node) -> None:
        """Link properties; alternatives that declare one key differently are joined."""
        for key, child in properties.items():
            made = self.shape(child)
            known = shape.properties.setdefault(key, made)
            if known is not made:
                shape.properties[key] = _join([known, made])

    # -- nodes into flat nodes -----------------------------------------------------------------------------------------

    def flatten(self, node: object) -> Node:
        """Merge everything the node refers to into it; a remaining ``anyOf`` lists flat alternatives."""
        if not isinstance(node, (dict, Mapping)):
            return _ALLOWS_NONE if node is False else _ALLOWS_ALL
        flat = self.flat.get(id(node))
        if flat is None:
            flat = self.flat[id(node)] = self.unfold(node)
        return flat

    def unfold(self, node: Node) -> Node:
        if id(node) in self.unfinished or len(self.unfinished) >= MAX_DEPTH:
            return _ALLOWS_ALL  # it refers to itself without an end, or through too many others
        clean = _clean(node)
        if _COMBINERS.isdisjoint(clean):
            return clean
        self.unfinished.add(id(node))
        flat = self.combine(clean)
        self.unfinished.remove(id(node))
        return flat

    def combine(self, node: Node) -> Node:
        own = {key: value for key, value in node.items() if key not in _COMBINERS}
        merged: dict[str, Any] = reduce(_merge, [*self.list_parts(node), own], {})
        inherited = merged.pop("anyOf", [])
        alternatives = self.list_alternatives(node) or inherited
        if alternatives:
            merged["anyOf"] = _narrow(alternatives, merged)
        return merged

    def list_parts(self, node: Node) -> Iterator[Node]:
        """Yield the nodes that all apply: ``$ref`` and ``allOf``."""
        if "$ref" in node:
            yield self.flatten(self.resolve(node["$ref"]))
        for part in node.get("allOf", ()):
            yield self.flatten(part)

    def list_alternatives(self, node: Node) -> list[Node]:
        """List the nodes of which one applies: ``anyOf`` and ``oneOf``; none if they are too many."""
        alternatives: list[Node] = []
        for branch in chain(node.get("anyOf", ()), node.get("oneOf", ())):
            alternatives += _split(self.flatten(branch))
            if len(alternatives) > _MAX_ALTERNATIVES:
                return []
        return alternatives

    def resolve(self, reference: str) -> object:
        """Find what a reference means; a reference to another document, or to nothing, allows any value."""
        found: object = self.root if reference.startswith("#") else None
        for step in unquote(reference[1:]).split("/")[1:]:
            found = _members_of(found).get(step.replace("~1", "/").replace("~0", "~"))
        return found


# -- properties of nodes and shapes ------------------------------------------------------------------------------------


def _clean(node: Node) -> Node:
    """Return the node without the keywords whose values are not JSON Schema, and with its types as kinds."""
    odd = {word for word, types in _FORMS.items() if word in node and not isinstance(node[word], types)}
    if "required" not in odd and not all(isinstance(name, str) for name in node.get("required", ())):
        odd.add("required")
    kinds = read_types(node["type"]) if "type" in node else []
    if not odd and kinds == _list_types(node.get("type", [])):
        return node
    clean = {word: value for word, value in node.items() if word not in odd and word != "type"}
    return {**clean, "type": kinds} if kinds else clean


def read_types(types: object) -> list[str]:
    """Return the kinds of declared types; none if one of the types is unknown, so that any value is allowed."""
    names = types.split("|") if isinstance(types, str) else types
    kinds: list[str] = []
    for name in names if isinstance(names, (list, tuple)) else ():
        found = _TYPE.fullmatch("null" if name is None else name) if isinstance(name, (str, type(None))) else None
        kind = _TYPES.get(found[1].lower()) if found is not None else None
        if kind is None:
            return []
        kinds.append(kind)
    return kinds


def _list_types(types: str | list[str]) -> list[str]:
    return types if isinstance(types, list) else [types]


def _lower_enum(node: Node) -> Node:
    """Move the enum of an array, declared one level too high, to its items."""
    enum, items = node.get("enum"), node.get("items", {})
    if enum is None or node.get("type") != "array" or not isinstance(items, Mapping) or "enum" in items:
        return node
    if not enum or any(isinstance(member, (list, tuple)) for member in enum):
        return node
    return {**{word: part for word, part in node.items() if word != "enum"}, "items": {**items, "enum": enum}}


def _list_kinds(node: Node, enum: Sequence[Value] | None = None) -> tuple[str, ...]:
    kinds = _list_types(node.get("type", [])) or _imply_kinds(node, enum)
    if node.get("nullable") is True and kinds:
        kinds = [*kinds, "null"]
    return tuple(dict.fromkeys(kinds))


def _imply_kinds(node: Node, enum: Sequence[Value] | None) -> list[str]:
    """Infer the kinds of a node without ``type``."""
    if enum is not None:
        return list(map(kind_of, enum))
    return [kind for word, kind in _IMPLIED_KINDS.items() if word in node][:1]


@cache
def _share_plain(order: tuple[str, ...]) -> SchemaType:
    """Return the shared shape that has only kinds."""
    return SchemaType(order) if order else UNTYPED


def _read_member(member: object) -> Value:
    if isinstance(member, ExactNumber):
        return Number(member.written)
    return member if isinstance(member, str) else parse(json.dumps(member)).value


def _members_of(place: object) -> Mapping[str, object]:
    """Members that a step of a reference can select."""
    if isinstance(place, list):
        return {str(i): member for i, member in enumerate(place)}
    return place if isinstance(place, Mapping) else {}


def _join(shapes: Sequence[SchemaType]) -> SchemaType:
    """Return the union of the shapes."""
    leaves = tuple(dict.fromkeys(chain.from_iterable(shape.leaves for shape in shapes)))
    required = frozenset.intersection(*(leaf.required for leaf in leaves))
    closed = all(leaf.closed for leaf in leaves)
    return SchemaType(
        order=_join_kinds(leaves), enum=_join_members(leaves), required=required, branches=leaves, closed=closed
    )


def _join_kinds(leaves: Sequence[SchemaType]) -> tuple[str, ...]:
    orders = [leaf.order for leaf in leaves]
    return tuple(dict.fromkeys(chain.from_iterable(orders))) if all(orders) else ()


def _join_members(leaves: Sequence[SchemaType]) -> tuple[Value, ...] | None:
    enums = [leaf.enum for leaf in leaves if leaf.enum is not None]
    return tuple(chain.from_iterable(enums)) if len(enums) == len(leaves) else None


def _split(node: Node) -> Sequence[Node]:
    """The alternatives of a flat node."""
    if node is _ALLOWS_NONE:
        return ()
    alternatives: Sequence[Node] = node.get("anyOf", (node,))
    return alternatives


# -- nodes merged ------------------------------------------------------------------------------------------------------


def _merge(one: Node, other: Node) -> dict[str, Any]:
    """Merge two nodes; on conflict the later one wins."""
    merged = {**one, **other}
    for word in _MERGERS.keys() & one.keys() & other.keys():
        merged[word] = _MERGERS[word](one[word], other[word])
    return merged


def _narrow(alternatives: list[Node], common: Node) -> list[Node]:
    """Merge what all alternatives have in common into each of them."""
    return [_merge(common, each) for each in alternatives] if common else alternatives


def _merge_properties(one: Node, other: Node) -> Node:
    merged = {**one, **other}
    for key in one.keys() & other.keys():
        merged[key] = _merge_property(one[key], other[key])
    return merged


def _merge_property(one: object, other: object) -> object:
    # Nodes with references are not merged any deeper: recursive types would never end.
    if not isinstance(one, Mapping) or not isinstance(other, Mapping) or not _COMBINERS.isdisjoint(other):
        return other
    return {**one, **other} if _COMBINERS.isdisjoint(one) else one


def _merge_required(one: Sequence[str], other: Sequence[str]) -> list[str]:
    return [*one, *other]


def _merge_enums(one: Sequence[object], other: Sequence[object]) -> list[object]:
    return [member for member in one if member in other]


def _merge_types(one: str | list[str], other: str | list[str]) -> list[str]:
    allowed = _list_types(other)
    return [kind for kind in _list_types(one) if takes_kind(allowed, kind)] or allowed


_MERGERS: dict[str, Callable[[Any, Any], object]] = {
    "properties": _merge_properties,
    "required": _merge_required,
    "enum": _merge_enums,
    "type": _merge_types,
}
