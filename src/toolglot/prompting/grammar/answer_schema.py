"""The JSON Schema of an answer that is one call, for servers that constrain answers only by a schema.

    {"name": "get_weather", "arguments": {"city": "Oslo"}}

Strategy. The reader reads this form in every dialect. The schema is written from the compiled parameters of the tools,
so references are resolved and only keywords remain that every server knows; a type that contains itself becomes a
definition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from toolglot.core.conversation import Tool
from toolglot.core.lenient_json import dump
from toolglot.core.schema.compile import compile_schema
from toolglot.core.schema.types import SchemaType
from toolglot.prompting.grammar.rules import order_keys

_CALL = ("name", "arguments")


@lru_cache(maxsize=16)
def build_answer_schema(tools: tuple[Tool, ...]) -> Mapping[str, Any] | None:
    """Build the schema of an answer that is one call of one of these tools; None if there are no tools."""
    writer = _SchemaWriter()
    calls = [
        _object(
            {"name": {"const": tool.name}, "arguments": writer.write_arguments(compile_schema(tool.parameters))}, _CALL
        )
        for tool in tools
    ]
    if not calls:
        return None
    schema = calls[0] if len(calls) == 1 else {"anyOf": calls}
    return schema | ({"$defs": writer.definitions} if writer.definitions else {})


class _SchemaWriter(Struct):
    """Writes compiled types as JSON Schema."""

    definitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    """The names of types that contain themselves, by identity."""
    unfinished: set[int] = field(default_factory=set)

    def write_arguments(self, shape: SchemaType) -> dict[str, Any]:
        """An object with the declared members only; required ones come first."""
        members = {key: self.write(shape.property_type(key)) for key in order_keys(shape)}
        return _object(members, [key for key in members if key in shape.required])

    def write(self, shape: SchemaType) -> dict[str, Any]:
        key = id(shape)
        if key in self.unfinished:
            return _refer(self.names.setdefault(key, f"type{len(self.names) + 1}"))
        self.unfinished.add(key)
        schema = self._write_type(shape)
        self.unfinished.discard(key)
        if key not in self.names:
            return schema
        self.definitions[self.names[key]] = schema
        return _refer(self.names[key])

    def _write_type(self, shape: SchemaType) -> dict[str, Any]:
        if shape.enum is not None:
            return {"enum": [json.loads(dump(member)) for member in shape.enum]} if shape.enum else {}
        if shape.branches:
            return {"anyOf": [self.write(branch) for branch in shape.branches]}
        schema: dict[str, Any] = {}
        if shape.properties or shape.required:
            schema |= self.write_arguments(shape)
        elif "additionalProperties" in shape.links:
            schema["additionalProperties"] = self.write(shape.links["additionalProperties"])
        if "items" in shape.links:
            schema["items"] = self.write(shape.items)
        if shape.order:
            schema["type"] = shape.order[0] if len(shape.order) == 1 else list(shape.order)
        return schema


def _object(members: Mapping[str, Any], required: Iterable[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(members),
        "required": list(required),
        "additionalProperties": False,
    }


def _refer(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}
