"""Coerces values to the types of a schema.

Strategy. Bare text has no type: ``_list_readings`` lists what it can mean under a schema type, most likely first, and
the first reading that fits wins. ``_Coercion`` walks typed JSON values and makes only lossless changes, each one a
named repair. Nothing is guessed: what does not fit is a defect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import TypeAlias

from msgspec import Struct, field

from toolglot.core.events import Defect, Reason
from toolglot.core.lenient_json import MAX_DEPTH, Number, Parsed, Value, parse, to_json_number
from toolglot.core.schema.types import ANY, TEXT, SchemaType, describe_value, kind_of, normalize_number

Reading: TypeAlias = tuple[Value, tuple[str, ...]]

UNKNOWN_NAME = "an unknown name"
"""What is found where an argument is one that the tool does not have."""
_CONTAINERS = frozenset({"array", "object"})
_NUMBERS = frozenset({"integer", "number"})
_OPENERS = ("[", "{")
_JSON_STARTS = (*_OPENERS, "-", *"0123456789", "true", "false", "null")
_LABELS = {"number": "the number ", "integer": "the number ", "string": "the text "}


class Typed(Struct, frozen=True):
    """A coerced value, the repairs made, and the remaining defects."""

    value: Value
    repairs: tuple[str, ...] = ()
    defects: tuple[Defect, ...] = ()


class AttributedText(str):
    """The text of an element with attributes, or whose siblings of the same name have some (``names``)."""

    __slots__ = ("attributes", "names")
    attributes: dict[str, str]
    names: frozenset[str]

    def __new__(cls, text: str, attributes: dict[str, str], names: frozenset[str]) -> AttributedText:
        made = super().__new__(cls, text)
        made.attributes, made.names = attributes, names
        return made


_DROPPED_ATTRIBUTES = "dropped_attributes"
_LITERAL = SchemaType()
"""A member of an object without declared members: as an element, text that is a JSON literal is its value."""


def describe_mismatch(value: Value, shape: SchemaType, where: str) -> Defect:
    """The defect of a value that is not of the type."""
    found = _LABELS.get(kind_of(value), "") + describe_value(value)
    return Defect(reason=Reason.INVALID_VALUE, where=where, found=found, expected=shape.describe())


def _mismatch(value: Value, shape: SchemaType, where: str) -> Typed:
    return Typed(value, (), (describe_mismatch(value, shape, where),))


def list_missing_defects(shape: SchemaType, present: Collection[str], prefix: str) -> tuple[Defect, ...]:
    """Return a defect for every missing required key."""
    return tuple(
        Defect(
            reason=Reason.MISSING_ARGUMENT,
            where=prefix + key,
            found="nothing",
            expected=shape.property_type(key).describe(),
        )
        for key in shape.list_missing(present)
    )


def describe_unknown_key(shape: SchemaType, where: str) -> Defect:
    """Return the defect of a key that the schema does not declare."""
    known = ", ".join(shape.properties) or "no argument at all"
    return Defect(reason=Reason.MALFORMED, where=where, found=UNKNOWN_NAME, expected=known)


def coerce_text(text: str, shape: SchemaType, where: str) -> Typed:
    """Coerce the bare text of a parameter."""
    return _coerce_text(text, shape, where, 0)


def coerce_value(value: Value, shape: SchemaType, where: str) -> Typed:
    """Coerce a typed JSON value; only lossless changes are made."""
    return _Coercion(bare=False).fit(value, shape, where, 0)


def coerce_text_leaves(value: Value, shape: SchemaType, where: str) -> Typed:
    """Coerce nested elements, whose leaves are bare text; typing a leaf is not a repair."""
    typed = _Coercion(bare=True).fit(value, shape, where, 0)
    return Typed(typed.value, tuple(name for name in typed.repairs if name == _DROPPED_ATTRIBUTES), typed.defects)


# -- bare text ---------------------------------------------------------------------------------------------------------

_BOOLEANS = {"true": True, "false": False}
_LOOSE_BOOLEANS = {"yes": True, "on": True, "1": True, "no": False, "off": False, "0": False}
_NULLS = ("null", "None")


def _coerce_text(text: str, shape: SchemaType, where: str, depth: int) -> Typed:
    if shape is ANY or shape.streams:
        return Typed(text)
    return _Coercion(bare=False).fit_first(text, _list_readings(text, shape), shape, where, depth, (list, dict))


def _list_readings(text: str, shape: SchemaType) -> Iterator[Reading]:
    yield from _read_as_written(text, shape)
    quoted = _try_parse(text, ('"', "'"))
    if quoted and isinstance(quoted.value, str):
        inside = quoted.value
        for value, repairs in chain(_read_as_written(inside, shape), _read_as_item(inside, shape)):
            yield value, ("unquoted_value", *repairs)
    yield from _read_as_item(text, shape)
    if '\\"' in text and _opens_json(text) and not _CONTAINERS.isdisjoint(shape.kinds):
        inside = _unescape(text)
        yield from ((value, ("double_encoded", *repairs)) for value, repairs in _read_as_written(inside, shape))


def _unescape(text: str) -> str:
    """The text that was written like the inside of a JSON string; "" if it is none."""
    try:
        inside = json.loads(f'"{text.strip()}"', strict=False)
    except ValueError:
        return ""
    return inside if isinstance(inside, str) else ""


def _read_as_written(text: str, shape: SchemaType) -> Iterator[Reading]:
    """Yield what the text can mean under the schema type, most likely first."""
    if not shape.kinds:
        return _read_untyped(text)
    return _read_beside_text(text, shape) if "string" in shape.kinds else _read_typed(text.strip(), shape)


def _read_untyped(text: str) -> Iterator[Reading]:
    if parsed := _try_parse(text, _JSON_STARTS, strict=True):
        yield parsed.value, ()
    yield text, ()


def _read_typed(text: str, shape: SchemaType) -> Iterator[Reading]:
    yield from _read_null(text, shape.kinds)
    yield from _read_literal(text, shape.order)
    yield from _read_container(text, shape.kinds, strict=False)
    yield from _read_loosely(text, shape.kinds)


def _read_beside_text(text: str, shape: SchemaType) -> Iterator[Reading]:
    """Where text is valid too, another kind needs its exact spelling, and takes precedence only if declared first."""
    bare, rank = text.strip(), shape.order.index("string")
    yield from _read_null(text, shape.kinds)
    yield from _read_literal(text, shape.order[:rank])
    yield from _read_container(bare, shape.kinds, strict=True)
    yield text, ()
    yield from _read_literal(bare, shape.order[rank:])
    yield bare, ("trimmed_value",)
    yield from _read_loosely(bare, shape.kinds)


def _read_null(text: str, kinds: Collection[str]) -> Iterator[Reading]:
    if "null" in kinds and (text in _NULLS or (not text and len(kinds) == 1)):
        yield None, ()


def _read_literal(text: str, kinds: Collection[str]) -> Iterator[Reading]:
    if "boolean" in kinds and text.lower() in _BOOLEANS:
        yield _BOOLEANS[text.lower()], ()
    if (number := normalize_number(text, kinds)) == text:
        yield number, ()


def _read_container(text: str, kinds: Collection[str], strict: bool) -> Iterator[Reading]:
    if not _CONTAINERS.isdisjoint(kinds) and (parsed := _try_parse(text, _OPENERS, strict)):
        yield parsed.value, parsed.repairs


def _read_loosely(text: str, kinds: Collection[str]) -> Iterator[Reading]:
    if "boolean" in kinds and text.lower() in _LOOSE_BOOLEANS:
        yield _LOOSE_BOOLEANS[text.lower()], ("coerced_boolean",)
    if number := normalize_number(text, kinds):
        yield number, ("normalized_number",)


def _read_as_item(text: str, shape: SchemaType) -> Iterator[Reading]:
    """Yield a single value as a list of one, where a list is expected."""
    if _takes_single(shape) and text.strip() and not _opens_json(text):
        item = coerce_text(text, shape.items, "")
        if not item.defects:
            yield [item.value], (*item.repairs, "wrapped_in_list")


def _takes_single(shape: SchemaType) -> bool:
    """Whether a single value may be wrapped in a list; in lists of lists the depth would be ambiguous."""
    return "array" in shape.kinds and "array" not in shape.items.kinds


def _opens_json(value: Value) -> bool:
    """Whether the value is text that begins like JSON; such text is not wrapped in a list."""
    return isinstance(value, str) and value.lstrip().startswith(_OPENERS)


def _try_parse(text: str, openers: tuple[str, ...], strict: bool = False) -> Parsed | None:
    """Parse the text; ``strict``, where it could be plain text, requires valid JSON. None if it is no value."""
    if not text.lstrip().startswith(openers):
        return None
    try:
        if strict:
            json.loads(text, parse_int=str, parse_float=str)
        return parse(text)
    except (ValueError, RecursionError):
        return None


# -- typed JSON values -------------------------------------------------------------------------------------------------

_MARKDOWN_ESCAPE = re.compile(r"\\([^\w\s]|_)")
_EMPTY: dict[frozenset[str], Callable[[], Value]] = {frozenset({"array"}): list, frozenset({"object"}): dict}


class _Coercion(Struct):
    """One walk over one value; results are memoized, otherwise nested unions would take exponential time."""

    bare: bool
    seen: dict[tuple[int, int], tuple[Value, Typed]] = field(default_factory=dict)

    def fit(self, value: Value, shape: SchemaType, where: str, depth: int) -> Typed:
        if shape.untyped:
            return self.fit_untyped(value, shape, where, depth) if self.bare else Typed(value)
        if depth > MAX_DEPTH:
            deep = Defect(
                reason=Reason.INVALID_VALUE,
                where=where,
                found=f"more than {MAX_DEPTH} levels",
                expected="a value nested less deeply",
            )
            return Typed(value, (), (deep,))
        if self.bare and isinstance(value, str) and not isinstance(value, Number):
            return self.fit_leaf(value, shape, where, depth)
        key = (id(value), id(shape))
        if key in self.seen:
            return self.seen[key][1]
        typed = (self.fit_union if shape.branches else self.fit_single)(value, shape, where, depth)
        if isinstance(value, (list, dict)):
            self.seen[key] = (value, typed)
        return typed

    def fit_untyped(self, value: Value, shape: SchemaType, where: str, depth: int) -> Typed:
        """Coerce nested elements without a declared type; those that are all called ``item`` are a list."""
        if isinstance(value, dict) and value.keys() == {"item"}:
            items = value["item"]
            value = items if isinstance(items, list) else [items]
        if isinstance(value, dict) and depth <= MAX_DEPTH:
            members = {name: self.fit(part, shape, where, depth + 1) for name, part in value.items()}
            return _assemble({name: part.value for name, part in members.items()}, members.values(), ())
        if isinstance(value, list) and depth <= MAX_DEPTH:
            parts = [self.fit(part, shape, where, depth + 1) for part in value]
            return _assemble([part.value for part in parts], parts, ())
        if not isinstance(value, str):
            return Typed(value)
        text = str.__str__(value)
        lost = (_DROPPED_ATTRIBUTES,) if _attributes_of(value) else ()
        return Typed(next(_read_untyped(text))[0] if shape is _LITERAL else text, lost)

    def fit_leaf(self, leaf: str, shape: SchemaType, where: str, depth: int) -> Typed:
        """Coerce the text of an element, which may be a member of an object whose other members are the attributes."""
        text, attributes = str.__str__(leaf), _attributes_of(leaf)
        make_empty = _EMPTY.get(shape.kinds - {"null"})
        if make_empty is None or text.strip():
            plain = _coerce_text(text, shape, where, depth)
        else:
            plain = self.fit(make_empty(), shape, where, depth)
        if not attributes and not plain.defects:
            return plain
        for branch in shape.leaves:
            members = _name_text(leaf, branch)
            typed = self.fit(members, branch, where, depth + 1) if members else None
            if typed is not None and not typed.defects:
                return typed
        return Typed(plain.value, (*plain.repairs, _DROPPED_ATTRIBUTES), plain.defects) if attributes else plain

    def fit_single(self, value: Value, shape: SchemaType, where: str, depth: int) -> Typed:
        if not shape.admits(value):
            return self.fit_first(value, self.list_changes(value, shape), shape, where, depth + 1)
        if not shape.lists(value):
            plain = _unescape_markdown(value)
            listed = plain != value and shape.lists(plain)
            return Typed(plain, ("removed_markdown_escape",)) if listed else _mismatch(value, shape, where)
        if isinstance(value, dict):
            return self.fit_members(value, shape, where, depth)
        return self.fit_items(value, shape, where, depth) if isinstance(value, list) else Typed(value)

    def fit_members(self, value: dict[str, Value], shape: SchemaType, where: str, depth: int) -> Typed:
        fitted: dict[str, Typed] = {}
        for name, part in value.items():
            member = shape.property_type(name, _LITERAL if self.bare and not shape.properties else ANY)
            fitted[name] = self.fit(part, member, f"{where}.{name}", depth + 1)
        whole: Value = {name: typed.value for name, typed in fitted.items()}
        return _assemble(whole, fitted.values(), list_missing_defects(shape, value, f"{where}."))

    def fit_items(self, value: list[Value], shape: SchemaType, where: str, depth: int) -> Typed:
        items, fitted = shape.items, []
        for i, part in enumerate(value):
            fitted.append(self.fit(part, items, f"{where}[{i}]", depth + 1))
        return _assemble([typed.value for typed in fitted], fitted, ())

    def fit_union(self, value: Value, shape: SchemaType, where: str, depth: int) -> Typed:
        """Take the first branch that needs no change, else the first without a defect, else the one with the fewest."""
        near = [branch for branch in shape.branches if branch.admits(value)]
        tried: list[Typed] = []
        for branch in dict.fromkeys((*near, *shape.branches)):
            typed = self.fit(value, branch, where, depth)
            if not (typed.repairs or typed.defects):
                return typed
            tried.append(typed)
        best = min(tried, key=_count_defects)
        if best.defects and near and isinstance(value, (list, dict)):
            return min(tried[: len(near)], key=_count_defects)
        return _mismatch(value, shape, where) if best.defects else best

    def fit_first(
        self,
        given: Value,
        readings: Iterable[Reading],
        shape: SchemaType,
        where: str,
        depth: int,
        reported: tuple[type, ...] = (object,),
    ) -> Typed:
        """Take the first reading that fits, else report the defects of the first one of a ``reported`` type."""
        failed: list[Typed] = []
        for value, repairs in readings:
            typed = self.fit(value, shape, where, depth)
            if not typed.defects:
                return Typed(typed.value, repairs + typed.repairs)
            if isinstance(value, reported):
                failed.append(typed)
        return Typed(given, (), failed[0].defects) if failed else _mismatch(given, shape, where)

    def list_changes(self, value: Value, shape: SchemaType) -> Iterator[Reading]:
        """Yield the same content as a value of an accepted kind."""
        if self.bare and isinstance(value, dict):
            yield from _list_children(value, shape)
        if isinstance(value, bool) and shape.enum is not None:
            yield str(value), ("coerced_type",)  # Python's spelling; it fits only if the enum lists it
        yield from _change_scalar(value, shape.kinds - {"null"})
        declared = shape.items.properties
        if self.bare and isinstance(value, dict) and declared and declared.keys().isdisjoint(value):
            return  # not an item but a wrapper of items
        if value is not None and _takes_single(shape) and shape.items.admits(value) and not _opens_json(value):
            yield [value], ("wrapped_in_list",)


def _attributes_of(leaf: Value) -> dict[str, str]:
    return leaf.attributes if isinstance(leaf, AttributedText) else {}


def _name_text(leaf: str, shape: SchemaType) -> dict[str, Value] | None:
    """Return the attributes and the text of an element as an object; None if the member of the text is ambiguous."""
    attributes: dict[str, Value] = {**_attributes_of(leaf)}
    names = leaf.names if isinstance(leaf, AttributedText) else frozenset()
    if "object" not in shape.kinds or not shape.properties:
        return None
    if not leaf.strip():
        return attributes or None
    rest = {name: part for name, part in shape.properties.items() if name not in names}
    texts = [name for name, part in rest.items() if part.streams]
    choices = (texts, [name for name in texts if name in shape.required], list(rest))
    sole = next((names[0] for names in choices if len(names) == 1), None)
    return None if sole is None else {**attributes, sole: str.__str__(leaf)}


def _unescape_markdown(value: Value) -> Value:
    """Remove Markdown escapes from a text; other values are returned unchanged."""
    return _MARKDOWN_ESCAPE.sub(r"\1", value) if isinstance(value, str) and "\\" in value else value


def _assemble(whole: Value, parts: Collection[Typed], absent: tuple[Defect, ...]) -> Typed:
    repairs = dict.fromkeys(chain.from_iterable(part.repairs for part in parts))
    return Typed(whole, tuple(repairs), (*chain.from_iterable(part.defects for part in parts), *absent))


def _count_defects(typed: Typed) -> int:
    return len(typed.defects)


def _change_scalar(value: Value, kinds: Collection[str]) -> Iterator[Reading]:
    if isinstance(value, (bool, Number)) and kinds == TEXT:
        yield str(value) if isinstance(value, Number) else str(value).lower(), ("coerced_type",)
    elif isinstance(value, Number):
        yield from _convert_number(to_json_number(value), kinds)
    elif isinstance(value, str):
        yield from _parse_string(value, kinds)


def _convert_number(text: str, kinds: Collection[str]) -> Iterator[Reading]:
    if number := normalize_number(text, kinds):
        yield number, ("coerced_type",)


def _parse_string(text: str, kinds: Collection[str]) -> Iterator[Reading]:
    """Yield the value of a string that contains the JSON text of an expected value."""
    if kinds == {"boolean"} and text.lower() in _BOOLEANS:
        yield _BOOLEANS[text.lower()], ("coerced_type",)
    if _NUMBERS.issuperset(kinds) and normalize_number(text, _NUMBERS) == text:
        yield from _convert_number(text, kinds)
    for value, repairs in _read_container(text, kinds, strict=False):
        yield value, ("double_encoded", *repairs)


def _list_children(value: dict[str, Value], shape: SchemaType) -> Iterator[Reading]:
    """Yield the children of an element that represents a list."""
    if "array" not in shape.kinds or len(value) != 1:
        return
    ((key, child),) = value.items()
    if shape.items.declares(key) and "array" not in shape.items.property_type(key).kinds:
        yield [_make_item(key, part) for part in (child if isinstance(child, list) else [child])], ()
    elif isinstance(child, list) and not shape.items.declares(key):
        yield child, ()
    elif _holds_item(value, key, shape.items) or (shape.items.untyped and isinstance(child, str)):
        yield [child], ()


def _make_item(key: str, part: Value) -> Value:
    """Make an object of an element: its text is the member of the same name, its attributes are the others."""
    attributes = _attributes_of(part)
    return {**attributes, key: str.__str__(part) if attributes and isinstance(part, str) else part}


def _holds_item(value: dict[str, Value], key: str, items: SchemaType) -> bool:
    """Whether an element wraps an item instead of being the item."""
    return not items.declares(key) and bool(key == "item" or items.properties or not items.admits(value))
