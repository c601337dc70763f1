"""Compiles JSON Schemas into ``SchemaType`` ("shape") objects.

Strategy. A schema is compiled once: ``$ref`` and ``allOf`` are merged, alternatives become branches, and children are
linked afterwards from a work list, so recursive types are plain cycles. An unusable schema raises ``ToolSchemaError``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, reduce
from itertools import chain
from typing import Any, NoReturn, TypeAlias
from urllib.parse import unquote

from msgspec import Struct, field

from toolglot.core.errors import ToolSchemaError
from toolglot.core.json_numbers import ExactNumber
from toolglot.core.lenient_json import MAX_DEPTH, Number, Value, parse
from toolglot.core.schema.types import KINDS, UNTYPED, SchemaType, kind_of, takes_kind

Node: TypeAlias = Mapping[str, Any]
Form: TypeAlias = tuple[tuple[type, ...], str]

_FORMS: dict[str, Form] = {
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
_ANY_FORM: Form = ((object,), "anything")
_COMBINERS = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_LINKED_UNLESS = {"items": list, "additionalProperties": bool}
_IMPLIED_KINDS = {"properties": "object", "additionalProperties": "object", "required": "object", "items": "array"}
_DETAILS = frozenset({*_IMPLIED_KINDS, "anyOf", "enum", "const"})
_ALLOWS_ALL: Node = {}
_ALLOWS_NONE: Node = {"enum": []}
_MAX_ALTERNATIVES = 256


def compile_schema(schema: Node, tool: str, path: str) -> SchemaType:
    """Compile a schema. Errors (``ToolSchemaError``) name the tool and the path."""
    return _Compiler(tool, schema, path).compile()


class _Compiler(Struct):
    """Compiles the schema of one tool; results are memoized by node, so shared nodes and cycles cost nothing."""

    tool: str
    root: Node
    path: str
    flat: dict[int, Node] = field(default_factory=dict)
    unfinished: set[int] = field(default_factory=set)
    shapes: dict[int, SchemaType] = field(default_factory=dict)
    pending: list[tuple[SchemaType, Sequence[Node], str]] = field(default_factory=list)

    def compile(self) -> SchemaType:
        shape = self.shape(self.root, self.path)
        for entry in self.pending:  # grows during the loop
            self.link(*entry)
        return shape

    def fail(self, path: str, problem: str) -> NoReturn:
        raise ToolSchemaError(self.tool, path, problem)

    # -- flat nodes into shapes ----------------------------------------------------------------------------------------

    def shape(self, node: object, path: str) -> SchemaType:
        return self.shape_flat(self.flatten(node, path), path)

    def shape_flat(self, node: Node, path: str) -> SchemaType:
        shape = self.shapes.get(id(node))
        if shape is None:
            shape = self.shapes[id(node)] = self.build(node, path)
        return shape

    def build(self, node: Node, path: str) -> SchemaType:
        if _DETAILS.isdisjoint(node):
            return _share_plain(_list_kinds(node))
        node = _lower_enum(node)
        alternatives: Sequence[Node] = node.get("anyOf", ())
        branches = [self.shape_flat(each, f"{path}.anyOf[{i}]") for i, each in enumerate(alternatives)]
        shape = _join(branches) if branches else self.build_leaf(node, path)
        self.pending.append((shape, alternatives or (node,), path))
        return shape

    def build_leaf(self, node: Node, path: str) -> SchemaType:
        enum = self.read_members(node, path)
        order = _list_kinds(node, enum)
        if enum is not None and "null" in order and None not in enum:
            enum = (*enum, None)
        closed = node.get("additionalProperties") is False and "patternProperties" not in node
        return SchemaType(order, enum, required=frozenset(node.get("required", ())), closed=closed)

    def read_members(self, node: Node, path: str) -> tuple[Value, ...] | None:
        members = [node["const"]] if "const" in node else node.get("enum")
        if members is None:
            return None
        if members and "const" not in node and "default" in node:
            members = [*members, node["default"]]  # a declared default is valid even where the enum omits it
        try:
            return tuple(map(_read_member, members))
        except (TypeError, ValueError, RecursionError):
            self.fail(f"{path}.enum", "has a member that is not JSON")

    def link(self, shape: SchemaType, nodes: Sequence[Node], path: str) -> None:
        """Link the children of a shape."""
        for node in nodes:
            if "properties" in node:
                self.link_properties(shape, node["properties"], path)
            for word, unlinked in _LINKED_UNLESS.items():
                if word in node and not isinstance(node[word], unlinked):
                    shape.links.setdefault(word, self.shape(node[word], f"{path}.{word}"))

    def link_properties(self, shape: SchemaType, properties: Node, path: str) -> None:
        """Link properties; alternatives that declare one key differently are joined."""
        for key, child in properties.items():
            made = self.shape(child, f"{path}.properties.{key}")
            known = shape.properties.setdefault(key, made)
            if known is not made:
                shape.properties[key] = _join([known, made])

    # -- nodes into flat nodes -----------------------------------------------------------------------------------------

    def flatten(self, node: object, path: str) -> Node:
        """Merge everything the node refers to into it; a remaining ``anyOf`` lists flat alternatives."""
        if isinstance(node, bool):
            return _ALLOWS_ALL if node else _ALLOWS_NONE
        if not isinstance(node, (dict, Mapping)):
            self.fail(path, "must be a mapping or a boolean")
        flat = self.flat.get(id(node))
        if flat is None:
            flat = self.flat[id(node)] = self.unfold(node, path)
        return flat

    def unfold(self, node: Node, path: str) -> Node:
        if id(node) in self.unfinished:
            self.fail(path, "refers to itself without an end")
        self.check(node, path)
        if _COMBINERS.isdisjoint(node):
            return node
        self.unfinished.add(id(node))
        if len(self.unfinished) > MAX_DEPTH:
            self.fail(path, f"more than {MAX_DEPTH} references deep")
        flat = self.combine(node, path)
        self.unfinished.remove(id(node))
        return flat

    def combine(self, node: Node, path: str) -> Node:
        own = {key: value for key, value in node.items() if key not in _COMBINERS}
        merged: dict[str, Any] = reduce(_merge, [*self.list_parts(node, path), own], {})
        inherited = merged.pop("anyOf", [])
        alternatives = self.list_alternatives(node, path) or inherited
        if alternatives:
            merged["anyOf"] = _narrow(alternatives, merged)
        return merged

    def list_parts(self, node: Node, path: str) -> Iterator[Node]:
        """Yield the nodes that all apply: ``$ref`` and ``allOf``."""
        if "$ref" in node:
            target = self.resolve(node["$ref"], path)
            yield self.flatten(target, self.path + node["$ref"][1:].replace("/", "."))
        for i, part in enumerate(node.get("allOf", ())):
            yield self.flatten(part, f"{path}.allOf[{i}]")

    def list_alternatives(self, node: Node, path: str) -> list[Node]:
        """List the nodes of which one applies: ``anyOf`` and ``oneOf``."""
        alternatives: list[Node] = []
        for word in ("anyOf", "oneOf"):
            for i, branch in enumerate(node.get(word, ())):
                flat = self.flatten(branch, f"{path}.{word}[{i}]")
                alternatives += _split(flat)
                if len(alternatives) > _MAX_ALTERNATIVES:
                    self.fail(path, f"has more than {_MAX_ALTERNATIVES} alternatives")
        return alternatives

    def resolve(self, reference: str, path: str) -> object:
        found: object = self.root
        if not reference.startswith("#"):
            self.fail(f"{path}.$ref", f"{reference!r} is not inside this schema")
        for step in unquote(reference[1:]).split("/")[1:]:
            members, name = _members_of(found), step.replace("~1", "/").replace("~0", "~")
            if name not in members:
                self.fail(f"{path}.$ref", f"{reference!r} leads nowhere")
            found = members[name]
        return found

    def check(self, node: Node, path: str) -> None:
        for key, value in node.items():
            types, wanted = _FORMS.get(key, _ANY_FORM)
            if not isinstance(value, types):
                self.fail(f"{path}.{key}", f"must be {wanted}")
        for name in node.get("required", ()):
            if not isinstance(name, str):
                self.fail(f"{path}.required", "must be a list of strings")
        for kind in _list_types(node.get("type", [])):
            if kind not in KINDS:
                self.fail(f"{path}.type", f"unknown type {kind!r}, use one of {', '.join(KINDS)}")


# -- properties of nodes and shapes ------------------------------------------------------------------------------------


def _list_types(types: str | list[Any]) -> list[Any]:
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
