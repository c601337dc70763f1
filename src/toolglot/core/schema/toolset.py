"""The tools a model may call: how they are declared, and how their names are found again.

Strategy. The usual ways to declare a tool all come down to a name and a schema, which is compiled into a shape once.
Names are compared to the letter, first as written and then without what models are known to put around them; a name
that is merely similar is a suggestion and never a match.
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
from toolglot.core.events import Defect
from toolglot.core.schema.aliases import find_aliases
from toolglot.core.schema.coerce import Typed, coerce_text, coerce_text_leaves, coerce_value, list_missing_defects
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
    """Other keys for required arguments, with the arguments that they mean."""

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
        """A defect for every required argument that is absent."""
        return list_missing_defects(self.parameters, present, "argument ")

    @property
    def sole_text_parameter(self) -> str | None:
        """The one parameter that loose text can only mean."""
        if len(self.parameters.properties) == 1:
            return next(iter(self.parameters.properties))
        texts = [key for key in self.required if "string" in self.type_of(key).kinds]
        return texts[0] if len(texts) == 1 else None


_NO_PARAMETERS = SchemaType(("object",))
_ENCODER = msgspec.json.Encoder()


def _compile_declared_tool(entry: object, index: int) -> CompiledTool:
    """A tool from any of the usual ways to declare one."""
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
    return compile_schema(schema, tool, path) if schema else _NO_PARAMETERS


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
    (re.compile(r"^(?:(?:assistant\.)?(?:functions?|tools?|default_api|api)[./]|functions:|default_api:)"), ""),
)
_MAX_NAME = 256
_REWRITTEN_ID = re.compile(r"functions[._](\S+?)(?:[:_!][0-9]+|json)|(?:functions[._])?(\S+?)commentary(?:json)?")
"""The id of a call, as relays respell it that allow fewer characters; models then imitate it as the name. Or what
follows a name, the channel and the kind of content, without the blank between them."""


def _list_spellings(written: str) -> tuple[str, ...]:
    """The name as written, then without what models put around it, one layer after the other."""
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
    """The name without anything that models put around it."""
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
    """A name as APIs spell it that allow no dots."""
    return name.replace(".", "_")


class CompiledTools:
    """The tools on offer, and the names that are known without a schema."""

    __slots__ = ("_flat", "_tools", "names")

    def __init__(self, tools: Sequence[Mapping[str, Any]] | None, supported: Collection[str] = ()) -> None:
        self._tools: dict[str, CompiledTool] = {}
        self.add(_compile_declared_tools(tools).values(), supported)

    def add(self, tools: Iterable[CompiledTool], supported: Collection[str]) -> None:
        """Take in tools, and names that are known without a schema."""
        self._tools |= {tool.name: tool for tool in tools}
        for name in supported:
            self._tools.setdefault(name, CompiledTool(name))
        self.names = tuple(self._tools)
        flat = Counter(map(_flatten, self.names))
        self._flat = {_flatten(name): name for name in self.names if flat[_flatten(name)] == 1}

    def find(self, written: str) -> CompiledTool | None:
        """The tool of that name, as written or without what models put around names; never a similar one."""
        found = self._tools.get(written)
        found = found or next((self._tools[name] for name in _list_spellings(written) if name in self._tools), None)
        if found is None and (rewritten := _REWRITTEN_ID.fullmatch(written)) is not None:
            return self._tools.get(rewritten[1] or rewritten[2])
        if found is None:
            names = (self._flat.get(_flatten(spelled)) for spelled in (written, plain_name(written)))
            found = next((self._tools[name] for name in names if name is not None), None)
        return found

    def suggest_name(self, written: str) -> str | None:
        """The name that may have been meant: a suggestion to show, not to act on."""
        known = {name.lower(): name for name in self.names}
        close = difflib.get_close_matches(plain_name(written).lower(), known, n=1)
        return known[close[0]] if close else None


@lru_cache(maxsize=64)
def compile_tools(tools: tuple[conversation.Tool, ...], supported: tuple[str, ...]) -> CompiledTools:
    """The compiled tools. Agents send the same ones with every turn, so they are compiled once."""
    box = CompiledTools(None, ())
    box.add([compile_tool(tool)[0] for tool in tools], supported)
    return box


@lru_cache(maxsize=512)
def compile_tool(tool: conversation.Tool) -> tuple[CompiledTool, str]:
    """The compiled tool, and what is wrong with its schema: then it is as if it had none."""
    try:
        return _compile_declared_tool({"name": tool.name, "parameters": dict(tool.parameters)}, 0), ""
    except ToolSchemaError as error:
        return _compile_declared_tool({"name": tool.name}, 0), error.message


_COMPILED: dict[tuple[bytes, tuple[str, ...]], CompiledTools] = {}
_MAX_COMPILED = 64


def compile_declared(tools: Sequence[Mapping[str, Any]] | None, supported: tuple[str, ...]) -> CompiledTools:
    """The compiled tools of a caller who declares the same ones again and again; known again by their JSON."""
    try:
        key = (_ENCODER.encode(tools), supported)
    except (TypeError, ValueError, OverflowError, RecursionError):  # not JSON, and maybe not usable
        return CompiledTools(tools, supported)
    found = _COMPILED.get(key)
    if found is None:
        found = CompiledTools(msgspec.json.decode(key[0]), supported)
        if len(_COMPILED) >= _MAX_COMPILED:
            _COMPILED.clear()
        _COMPILED[key] = found
    return found
