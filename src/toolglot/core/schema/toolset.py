"""The tools a model may call: compiled from their declarations, found by name.

Strategy. Every declaration format comes down to a name and a schema, which is compiled once. Names are compared
exactly, first as written, then without the decoration that models add; a merely similar name is a suggestion, never a
match.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape
from typing import Any

import msgspec

from toolglot.core import conversation
from toolglot.core.errors import ToolSchemaError
from toolglot.core.events import Defect, Reason
from toolglot.core.schema.aliases import find_aliases
from toolglot.core.schema.coerce import (
    Typed,
    coerce_text,
    coerce_text_leaves,
    coerce_value,
    describe_unknown_key,
    list_missing_defects,
)
from toolglot.core.schema.compile import compile_schema
from toolglot.core.schema.types import ANY, UNTYPED, SchemaType

__all__ = [
    "ANY",
    "UNTYPED",
    "CompiledTool",
    "CompiledTools",
    "SchemaType",
    "Typed",
    "coerce_text",
    "coerce_text_leaves",
    "coerce_value",
]


@dataclass(frozen=True, slots=True)
class CompiledTool:
    name: str
    parameters: SchemaType = ANY
    description: str = ""
    aliases: Mapping[str, str] = field(init=False, compare=False)
    """Aliases of required arguments, with the argument each means."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "aliases", find_aliases(self.parameters))

    @property
    def required(self) -> frozenset[str]:
        return self.parameters.required

    def declares(self, key: str) -> bool:
        return self.parameters.declares(key)

    def type_of(self, key: str) -> SchemaType:
        return self.parameters.property_type(key)

    def missing(self, present: Collection[str]) -> tuple[Defect, ...]:
        """Return a defect for every missing required argument."""
        return list_missing_defects(self.parameters, present, "argument ")

    def undeclared(self, present: Iterable[str]) -> tuple[Defect, ...]:
        """Return a defect for every argument that the tool does not have."""
        shape = self.parameters
        return tuple(describe_unknown_key(shape, f"argument {key}") for key in present if key not in shape.properties)

    @property
    def sole_text_parameter(self) -> str | None:
        """The only parameter that bare text can mean, or None."""
        if len(self.parameters.properties) == 1:
            return next(iter(self.parameters.properties))
        texts = [key for key in self.required if "string" in self.type_of(key).kinds]
        return texts[0] if len(texts) == 1 else None


_NO_PARAMETERS = SchemaType(("object",))
_ENCODER = msgspec.json.Encoder()


def _compile_declared_tool(entry: object, index: int) -> CompiledTool:
    """Compile a tool from any of the usual declaration formats."""
    outer = _expect_mapping(entry, f"#{index}", "tool")
    inner = _expect_mapping(outer.get("function", outer), f"#{index}", "function")
    name = inner.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ToolSchemaError(f"#{index}", "name", "must be a string that is not empty")
    return CompiledTool(name, _compile_parameters(inner, name), str(inner.get("description") or ""))


def _compile_parameters(declared: Mapping[str, Any], tool: str) -> SchemaType:
    path = "input_schema" if "input_schema" in declared else "parameters"
    if declared.get(path) is None:
        return _NO_PARAMETERS
    schema = _expect_mapping(declared[path], tool, path)
    return compile_schema(schema) if schema else _NO_PARAMETERS


def _expect_mapping(thing: object, tool: str, path: str) -> Mapping[str, Any]:
    if not isinstance(thing, (dict, Mapping)):
        raise ToolSchemaError(tool, path, "must be a mapping")
    return thing


_DECORATIONS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"&#?\w+;"), lambda entity: unescape(entity[0])),
    (re.compile(r"^[\s\"'`]+|[\s\"'`]+$"), ""),
    (re.compile(r"\\([^\w\s]|_)"), r"\1"),
    (re.compile(r":[0-9]+$"), ""),
    (re.compile(r"\(\)$"), ""),
    (re.compile(r"\.call$"), ""),
    (re.compile(r"^(.+)\.\1$"), r"\1"),
    (re.compile(r"^(?:(?:assistant\.)?(?:functions?|tools?|default_api|api)[./]|functions:|default_api:)"), ""),
)
_MAX_NAME = 256
_REWRITTEN_ID = re.compile(
    r"functions[._](\S+?)(?:[:_!][0-9]+|json)|functions([A-Za-z]\S*?):?[0-9]+|(?:functions[._])?(\S+?)commentary(?:json)?"
)
"""A call id in place of the name: relays that allow fewer characters rewrite ids, and models imitate them. Or a name
followed by the channel and content type without the space between them."""


def _list_spellings(written: str) -> tuple[str, ...]:
    """Return the name as written, then with one layer of decoration after the other removed."""
    return (written,) if len(written) > _MAX_NAME else _strip_decoration(written)


@lru_cache(maxsize=1024)
def _strip_decoration(written: str) -> tuple[str, ...]:
    spelled = [written]
    for pattern, instead in _DECORATIONS * 3:
        shorter = pattern.sub(instead, spelled[-1])
        if shorter != spelled[-1]:
            spelled.append(shorter)
    return tuple(spelled)


def plain_name(written: str) -> str:
    """Return the name without the decoration that models add."""
    return _list_spellings(written[:_MAX_NAME])[-1]


def _compile_declared_tools(entries: Sequence[Mapping[str, Any]] | None) -> dict[str, CompiledTool]:
    if not isinstance(entries, (list, tuple, type(None))):
        raise ToolSchemaError("#0", "tools", "must be a list of tools")
    tools: dict[str, CompiledTool] = {}
    for index, entry in enumerate(entries or ()):
        tool = _compile_declared_tool(entry, index)
        if tool.name in tools:
            raise ToolSchemaError(tool.name, "name", "is the name of two tools")
        tools[tool.name] = tool
    return tools


def _flatten(name: str) -> str:
    """Return the name as APIs spell it that allow no dots."""
    return name.replace(".", "_")


class CompiledTools:
    """The tools on offer, and names that are known without a schema."""

    __slots__ = ("_flat", "by_name", "names")

    def __init__(self, tools: Sequence[Mapping[str, Any]] | None, supported: Collection[str] = ()) -> None:
        self.by_name: dict[str, CompiledTool] = {}
        self.add(_compile_declared_tools(tools).values(), supported)

    def add(self, tools: Iterable[CompiledTool], supported: Collection[str]) -> None:
        """Add tools, and names that are known without a schema."""
        self.by_name |= {tool.name: tool for tool in tools}
        for name in supported:
            self.by_name.setdefault(name, CompiledTool(name))
        self.names = tuple(self.by_name)
        flat = Counter(map(_flatten, self.names))
        self._flat = {_flatten(name): name for name in self.names if flat[_flatten(name)] == 1}

    def find(self, written: str) -> CompiledTool | None:
        """Find a tool by name, as written or without decoration; never a merely similar one."""
        found = self.by_name.get(written)
        found = found or next((self.by_name[name] for name in _list_spellings(written) if name in self.by_name), None)
        if found is None and (rewritten := _REWRITTEN_ID.fullmatch(written)) is not None:
            return self.by_name.get(rewritten[1] or rewritten[2] or rewritten[3])
        if found is None:
            names = (self._flat.get(_flatten(spelled)) for spelled in (written, plain_name(written)))
            found = next((self.by_name[name] for name in names if name is not None), None)
        return found

    def describe_unknown(self, written: str) -> Defect:
        """Return the defect of a call to a tool that is not offered, with the nearest name or all names."""
        nearest = self.suggest_name(written)
        names = ", ".join(self.names[:20]) or "no tool at all"
        expected = f'"{nearest}"' if nearest else f"one of {names}"
        return Defect(reason=Reason.UNKNOWN_TOOL, where="tool name", found=f'"{written}"', expected=expected)

    def find_by_keys(self, given: Collection[str]) -> str | None:
        """Return the name of the only tool that declares all these arguments and requires no others."""
        tools = self.by_name.values()
        fit = [tool.name for tool in tools if tool.required <= set(given) <= tool.parameters.properties.keys()]
        return fit[0] if len(fit) == 1 else None

    def suggest_name(self, written: str) -> str | None:
        """Return the most similar name, as a suggestion for messages only."""
        known = {name.lower(): name for name in self.names}
        close = difflib.get_close_matches(plain_name(written).lower(), known, n=1)
        return known[close[0]] if close else None


@lru_cache(maxsize=64)
def compile_tools(tools: tuple[conversation.Tool, ...], supported: tuple[str, ...]) -> CompiledTools:
    """Compile the tools of a request. Cached: agents send the same ones with every turn."""
    box = CompiledTools(None, ())
    box.add(map(compile_tool, tools), supported)
    return box


@lru_cache(maxsize=512)
def compile_tool(tool: conversation.Tool) -> CompiledTool:
    """Compile a tool."""
    return _compile_declared_tool({"name": tool.name, "parameters": dict(tool.parameters)}, 0)


_COMPILED: dict[tuple[bytes, tuple[str, ...]], CompiledTools] = {}
_MAX_COMPILED = 64


def compile_declared(tools: Sequence[Mapping[str, Any]] | None, supported: tuple[str, ...]) -> CompiledTools:
    """Compile declared tools. Cached by their JSON, because callers declare the same ones repeatedly."""
    try:
        key = (_ENCODER.encode(tools), supported)
    except (TypeError, ValueError, OverflowError, RecursionError):  # not JSON, so not cacheable; may be unusable
        return CompiledTools(tools, supported)
    found = _COMPILED.get(key)
    if found is None:
        found = CompiledTools(msgspec.json.decode(key[0]), supported)
        if len(_COMPILED) >= _MAX_COMPILED:
            _COMPILED.clear()
        _COMPILED[key] = found
    return found
