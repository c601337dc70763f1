"""The tools a model may call, and the types their schemas give to arguments.

Strategy. Bare text has no type of its own: ``_readings`` lists what it can mean under a shape, the likeliest first,
and the first meaning that fits wins. ``_Fitting`` walks values that have JSON types and makes only changes that lose
nothing, each one a named repair. Nothing here guesses: what does not fit is a defect.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from toolglot.errors import ToolSchemaError
from toolglot.events import Defect, Reason
from toolglot.jsontext import MAX_DEPTH, Number, Parsed, Value, legal_number, parse
from toolglot.shapes import ANY, TEXT, UNTYPED, Shape, compile_schema, same, show, spell_number

__all__ = ["ANY", "UNTYPED", "Shape", "Tool", "Toolbox", "Typed", "conform", "conform_text_leaves", "read_text"]

Reading: TypeAlias = tuple[Value, tuple[str, ...]]

_CONTAINERS = frozenset({"array", "object"})
_NUMBERS = frozenset({"integer", "number"})
_OPENERS = ("[", "{")
_JSON_STARTS = (*_OPENERS, "-", *"0123456789", "true", "false", "null")


@dataclass(frozen=True, slots=True)
class Typed:
    """A value as its schema wants it, what was done to it, and what is still wrong with it."""

    value: Value
    repairs: tuple[str, ...] = ()
    defects: tuple[Defect, ...] = ()


def _mismatch(value: Value, shape: Shape, where: str) -> Typed:
    label = "the number " if isinstance(value, Number) else "the text " if isinstance(value, str) else ""
    return Typed(value, (), (Defect(Reason.INVALID_VALUE, where, label + show(value), shape.describe()),))


def _absent(key: str, shape: Shape, where: str) -> Defect:
    return Defect(Reason.MISSING_ARGUMENT, where, "nothing", shape.property_shape(key).describe())


# -- bare text ---------------------------------------------------------------------------------------------------------

_BOOLEANS = {"yes": True, "on": True, "1": True, "no": False, "off": False, "0": False}


def read_text(text: str, shape: Shape, where: str) -> Typed:
    """Type the bare text of a parameter."""
    return _read_text(text, shape, where, 0)


def _read_text(text: str, shape: Shape, where: str, depth: int) -> Typed:
    if shape is ANY or shape.streams:
        return Typed(text)
    defects: tuple[Defect, ...] = ()
    for value, repairs in _all_readings(text, shape):
        typed = _Fitting(bare=False).fit(value, shape, where, depth)
        if not typed.defects:
            return Typed(typed.value, repairs + typed.repairs)
        if isinstance(value, (list, dict)):
            defects = defects or typed.defects
    return Typed(text, (), defects) if defects else _mismatch(text, shape, where)


def _all_readings(text: str, shape: Shape) -> Iterator[Reading]:
    yield from _readings(text, shape)
    quoted = _try_parse(text, ('"', "'"))
    if quoted and isinstance(quoted.value, str):
        inside = quoted.value
        for value, repairs in chain(_readings(inside, shape), _wrap(inside, shape)):
            yield value, ("unquoted_value", *repairs)
    yield from _wrap(text, shape)


def _readings(text: str, shape: Shape) -> Iterator[Reading]:
    """What the text can mean under the shape, the likeliest first."""
    kinds, bare, free = shape.kinds, text.strip(), "string" in shape.kinds
    if not kinds:
        if parsed := _try_parse(text, _JSON_STARTS, strict=True):
            yield parsed.value, ()
        yield text, ()
        return
    literal = text if free else bare
    if "null" in kinds and (literal in ("null", "None") or (not literal and len(kinds) == 1)):
        yield None, ()
    cut = shape.order.index("string") if free else len(shape.order)
    yield from _read_literal(literal, shape.order[:cut])
    if kinds & _CONTAINERS and (parsed := _try_parse(bare, _OPENERS, strict=free)):
        yield parsed.value, parsed.repairs
    if free:
        yield text, ()
        yield from _read_literal(bare, shape.order[cut:])
        yield bare, ("trimmed_value",)
    yield from _read_loosely(bare, kinds)


def _read_loosely(text: str, kinds: Collection[str]) -> Iterator[Reading]:
    if "boolean" in kinds and text.lower() in _BOOLEANS:
        yield _BOOLEANS[text.lower()], ("coerced_boolean",)
    if not _NUMBERS.isdisjoint(kinds) and (number := spell_number(text, "number" not in kinds)):
        yield number, ("normalized_number",)


def _read_literal(text: str, kinds: Collection[str]) -> Iterator[Reading]:
    if "boolean" in kinds and text.lower() in ("true", "false"):
        yield text.lower() == "true", ()
    if not _NUMBERS.isdisjoint(kinds) and (number := spell_number(text, "number" not in kinds)) == text:
        yield number, ()


def _wrap(text: str, shape: Shape) -> Iterator[Reading]:
    """One value where a list of such values is due; what set out to be JSON is not hidden inside a list."""
    if _takes_single(shape) and text.strip() and not text.lstrip().startswith(_OPENERS):
        item = read_text(text, shape.items, "")
        if not item.defects:
            yield [item.value], (*item.repairs, "wrapped_in_list")


def _try_parse(text: str, openers: tuple[str, ...], strict: bool = False) -> Parsed | None:
    """The value that the text holds; strict, where it could be mere text, wants JSON to the letter."""
    if not text.lstrip().startswith(openers):
        return None
    try:
        if strict:
            json.loads(text, parse_int=str, parse_float=str)
        return parse(text)
    except (ValueError, RecursionError):
        return None


# -- values that have JSON types ---------------------------------------------------------------------------------------


def conform(value: Value, shape: Shape, where: str) -> Typed:
    """Type a value that has JSON types already; only lossless changes are made."""
    return _Fitting(bare=False).fit(value, shape, where, 0)


def conform_text_leaves(value: Value, shape: Shape, where: str) -> Typed:
    """Type nested elements, whose leaves are bare text; typing them is no repair, for they had no types."""
    typed = _Fitting(bare=True).fit(value, shape, where, 0)
    return Typed(typed.value, (), typed.defects)


@dataclass(slots=True)
class _Fitting:
    """One walk over one value; unions are remembered, or nested ones would be tried again and again."""

    bare: bool
    seen: dict[tuple[int, int], tuple[Value, Typed]] = field(default_factory=dict)

    def fit(self, value: Value, shape: Shape, where: str, depth: int) -> Typed:
        if shape.untyped:
            return Typed(value)
        if depth > MAX_DEPTH:
            deep = Defect(Reason.INVALID_VALUE, where, f"more than {MAX_DEPTH} levels", "a value nested less deeply")
            return Typed(value, (), (deep,))
        if self.bare and type(value) is str:
            return self.fit_leaf(value, shape, where, depth)
        key = (id(value), id(shape))
        if key in self.seen:
            return self.seen[key][1]
        if shape.branches:
            typed = self.fit_union(value, shape, where, depth)
        elif not shape.admits(value):
            typed = self.change(value, shape, where, depth)
        elif shape.enum is not None and not any(same(value, member) for member in shape.enum):
            typed = _mismatch(value, shape, where)
        else:
            typed = self.fit_parts(value, shape, where, depth)
        if isinstance(value, (list, dict)):
            self.seen[key] = (value, typed)
        return typed

    def fit_leaf(self, text: str, shape: Shape, where: str, depth: int) -> Typed:
        kinds = shape.kinds - {"null"}
        if text.strip() or not (kinds == {"array"} or kinds == {"object"}):
            return _read_text(text, shape, where, depth)
        return self.fit([] if kinds == {"array"} else {}, shape, where, depth)

    def fit_parts(self, value: Value, shape: Shape, where: str, depth: int) -> Typed:
        fitted: dict[str | int, Typed] = {}
        if isinstance(value, dict):
            for name, part in value.items():
                fitted[name] = self.fit(part, shape.property_shape(name), f"{where}.{name}", depth + 1)
            absent = tuple(_absent(name, shape, f"{where}.{name}") for name in shape.list_missing(value))
            whole: Value = {str(name): typed.value for name, typed in fitted.items()}
        elif isinstance(value, list):
            for i, part in enumerate(value):
                fitted[i] = self.fit(part, shape.items, f"{where}[{i}]", depth + 1)
            absent, whole = (), [typed.value for typed in fitted.values()]
        else:
            return Typed(value)
        repairs = dict.fromkeys(name for typed in fitted.values() for name in typed.repairs)
        return Typed(whole, tuple(repairs), (*(bad for typed in fitted.values() for bad in typed.defects), *absent))

    def fit_union(self, value: Value, shape: Shape, where: str, depth: int) -> Typed:
        """The first branch that needs no change, else the first without a defect, else the one with the fewest."""
        near = [branch for branch in shape.branches if branch.admits(value)]
        tried: list[Typed] = []
        for branch in (*near, *(branch for branch in shape.branches if branch not in near)):
            tried.append(self.fit(value, branch, where, depth))
            if not tried[-1].defects and not tried[-1].repairs:
                return tried[-1]
        best = min(tried, key=lambda typed: bool(typed.defects))
        if best.defects and near and isinstance(value, (list, dict)):
            return min(tried[: len(near)], key=lambda typed: len(typed.defects))
        return _mismatch(value, shape, where) if best.defects else best

    def change(self, value: Value, shape: Shape, where: str, depth: int) -> Typed:
        """Make a value of the wrong kind fit, if that loses nothing."""
        defects: tuple[Defect, ...] = ()
        lone = _list_children(value, shape) if self.bare and isinstance(value, dict) else ()
        for changed, repairs in chain(lone, _changes(value, shape)):
            typed = self.fit(changed, shape, where, depth + 1)
            if not typed.defects:
                return Typed(typed.value, repairs + typed.repairs)
            defects = defects or typed.defects
        return Typed(value, (), defects) if defects else _mismatch(value, shape, where)


def _changes(value: Value, shape: Shape) -> Iterator[Reading]:
    """The same content as a value of a kind that the shape takes."""
    kinds = shape.kinds - {"null"}
    if isinstance(value, (bool, Number)) and kinds == TEXT:
        yield str(value) if isinstance(value, Number) else str(value).lower(), ("coerced_type",)
    elif isinstance(value, Number):
        yield from _recount(legal_number(value), kinds)
    elif isinstance(value, str):
        yield from _decode(value, kinds)
        if value.lstrip().startswith(_OPENERS):
            return
    if value is not None and _takes_single(shape) and shape.items.admits(value):
        yield [value], ("wrapped_in_list",)


def _decode(text: str, kinds: Collection[str]) -> Iterator[Reading]:
    """A string that holds nothing but the JSON text of a value that is due."""
    if kinds == {"boolean"} and text in ("true", "false"):
        yield text == "true", ("coerced_type",)
    if _NUMBERS.issuperset(kinds) and spell_number(text, False) == text:
        yield from _recount(text, kinds)
    if not _CONTAINERS.isdisjoint(kinds) and (parsed := _try_parse(text, _OPENERS)):
        yield parsed.value, ("double_encoded", *parsed.repairs)


def _recount(text: str, kinds: Collection[str]) -> Iterator[Reading]:
    if not _NUMBERS.isdisjoint(kinds) and (number := spell_number(text, "number" not in kinds)):
        yield number, ("coerced_type",)


def _takes_single(shape: Shape) -> bool:
    """Whether one value may stand for a list of one; in lists of lists that would have no natural end."""
    return "array" in shape.kinds and "array" not in shape.items.kinds


def _list_children(value: dict[str, Value], shape: Shape) -> Iterator[Reading]:
    """The children of an element that stands for a list."""
    items = shape.items
    if "array" not in shape.kinds or len(value) != 1 or items.declares(next(iter(value))):
        return
    ((key, child),) = value.items()
    if isinstance(child, list):
        yield child, ()
    elif key == "item" or items.properties or not items.admits(value):
        yield [child], ()


# -- tools -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    parameters: Shape = ANY
    description: str = ""

    @property
    def required(self) -> frozenset[str]:
        return self.parameters.required

    def declares(self, key: str) -> bool:
        return self.parameters.declares(key)

    def shape_of(self, key: str) -> Shape:
        return self.parameters.property_shape(key)

    def missing(self, present: Collection[str]) -> tuple[Defect, ...]:
        """A defect for every required argument that is absent."""
        shape = self.parameters
        return tuple(_absent(key, shape, f"argument {key}") for key in shape.list_missing(present))

    @property
    def sole_text_parameter(self) -> str | None:
        """The one parameter that loose text can only mean."""
        if len(self.parameters.properties) == 1:
            return next(iter(self.parameters.properties))
        texts = [key for key in self.required if "string" in self.shape_of(key).kinds]
        return texts[0] if len(texts) == 1 else None

    def lift(self, arguments: dict[str, Value]) -> dict[str, Value] | None:
        """The same arguments one level deeper, when they can only be the members of the one required argument."""
        if not arguments or len(self.required) != 1 or any(map(self.declares, arguments)):
            return None
        (key,) = self.required
        shape = self.shape_of(key)
        kinds = shape.kinds - {"null"}
        inner = shape.items if kinds == {"array"} else shape
        if len(kinds) != 1 or not all(map(inner.declares, arguments)):
            return None
        return {key: [arguments] if kinds == {"array"} else arguments}


def _define_tool(entry: object, index: int) -> Tool:
    """A tool from any of the usual ways to declare one."""
    if not isinstance(entry, Mapping):
        raise ToolSchemaError(f"#{index}", "tool", "must be a mapping")
    inner = entry.get("function", entry)
    if not isinstance(inner, Mapping):
        raise ToolSchemaError(f"#{index}", "function", "must be a mapping")
    name = inner.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ToolSchemaError(f"#{index}", "name", "must be a string that is not empty")
    path = "input_schema" if "input_schema" in inner else "parameters"
    schema = inner.get(path)
    if schema is not None and not isinstance(schema, Mapping):
        raise ToolSchemaError(name, path, "must be a mapping")
    shape = compile_schema(schema, name, path) if schema else Shape(("object",))
    return Tool(name, shape, str(inner.get("description") or ""))


_TRIMMINGS = (
    (re.compile(r"^[\s\"'`]+|[\s\"'`]+$"), ""),
    (re.compile(r"\\([^\w\s]|_)"), r"\1"),
    (re.compile(r":[0-9]+$"), ""),
    (re.compile(r"\(\)$"), ""),
    (re.compile(r"\.call$"), ""),
    (re.compile(r"^(?:(?:functions?|tools?|default_api|api)\.|functions:)"), ""),
)
_LONGEST_NAME = 256


def _respell(written: str) -> Iterator[str]:
    """The name without what models put around it, one layer after the other."""
    name = written
    for _ in range(3):
        for pattern, instead in _TRIMMINGS:
            shorter = pattern.sub(instead, name)
            if shorter != name:
                name = shorter
                yield name


def plain_name(written: str) -> str:
    """The name without anything that models put around it."""
    *_, plain = written[:_LONGEST_NAME], *_respell(written[:_LONGEST_NAME])
    return plain


class Toolbox:
    """The tools on offer, and the names that are known without a schema."""

    __slots__ = ("_tools", "names")

    def __init__(self, tools: Sequence[Mapping[str, Any]] | None, supported: Collection[str] = ()) -> None:
        if tools is not None and not isinstance(tools, (list, tuple)):
            raise ToolSchemaError("#0", "tools", "must be a list of tools")
        self._tools: dict[str, Tool] = {}
        for index, entry in enumerate(tools or ()):
            tool = _define_tool(entry, index)
            if tool.name in self._tools:
                raise ToolSchemaError(tool.name, "name", "is the name of two tools")
            self._tools[tool.name] = tool
        for name in supported:
            self._tools.setdefault(name, Tool(name))
        self.names = tuple(self._tools)

    def find(self, written: str) -> Tool | None:
        """The tool of that name, as written or without what models put around names; never a similar one."""
        tool = self._tools.get(written)
        if tool is None and len(written) <= _LONGEST_NAME:
            tool = next((self._tools[name] for name in _respell(written) if name in self._tools), None)
        return tool

    def nearest(self, written: str) -> str | None:
        """The name that may have been meant: a suggestion to show, not to act on."""
        known = {name.lower(): name for name in self.names}
        close = difflib.get_close_matches(plain_name(written).lower(), known, n=1)
        return known[close[0]] if close else None
