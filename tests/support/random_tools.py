"""Random tools, and random arguments for them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from toolglot.core.conversation import Tool

_WORDS = ("path", "content", "unit", "x", "line_count", "is-new", "Über", "city", "name", "arguments", "a.b")
_CHARS = "ab cÄ中😀0.,:;(){}[]&%=/#-_!?'\"\n"
_TYPES = {"string": str, "integer": int, "boolean": bool, "null": type(None)}
_KINDS = ("string", "integer", "number", "boolean", "null", "array", "object")


def make_tool(number: int, chance: random.Random) -> Tool:
    """A tool with up to five parameters, some of them required."""
    keys = chance.sample(_WORDS, chance.randint(0, 5))
    parameters = {
        "type": "object",
        "properties": {key: {"type": "string"} if key == "content" else _make_schema(chance, 2) for key in keys},
        "required": [key for key in keys if chance.random() < 0.5],
    }
    return Tool(f"{chance.choice(('read', 'do_it', 'get-x', 'W'))}_{number}", "", parameters)


def _make_schema(chance: random.Random, depth: int) -> dict[str, Any]:
    if chance.random() < 0.15:
        return {"enum": chance.sample(["a", "b c", "Ä", 1, True, None], 3)}
    kind = chance.choice(_KINDS[: None if depth else -2])
    if kind == "array":
        return {"type": "array", "items": _make_schema(chance, depth - 1)}
    if kind == "object":
        keys = chance.sample(_WORDS, chance.randint(1, 3))
        properties = {key: _make_schema(chance, depth - 1) for key in keys}
        return {"type": "object", "properties": properties, "required": keys[:1]}
    # a text that may also be another value is ambiguous between tags
    if kind == "string" or chance.random() < 0.9:
        return {"type": kind}
    return {"anyOf": [{"type": kind}, {"type": "boolean"}]}


def make_arguments(schema: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Arguments that fit the schema, required ones first."""
    required, properties = schema.get("required", []), schema["properties"]
    keys = sorted(properties, key=lambda key: key not in required)
    return {key: make_value(properties[key], chance) for key in keys if key in required or chance.random() < 0.5}


def make_value(schema: dict[str, Any], chance: random.Random) -> Any:
    """A value that fits the schema."""
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if "anyOf" in schema:
        return make_value(chance.choice(schema["anyOf"]), chance)
    match schema["type"]:
        case "object":
            return make_arguments(schema, chance)
        case "array":
            return [make_value(schema["items"], chance) for _ in range(chance.randint(0, 3))]
        case "integer":
            return chance.choice((0, -1, 7, 10**9))
        case "number":
            return chance.choice((0, 1.5, -2.25, 3))
        case "boolean":
            return chance.random() < 0.5
        case "null":
            return None
    return "".join(chance.choices(_CHARS, k=chance.randint(0, 12))).strip()  # some dialects trim


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a value fits the schema; members that are not declared do not."""
    if "enum" in schema:
        return any(type(value) is type(member) and value == member for member in schema["enum"])
    if "anyOf" in schema:
        return any(fits(branch, value) for branch in schema["anyOf"])
    match schema["type"]:
        case "object":
            declared = schema["properties"]
            return (
                isinstance(value, dict)
                and set(schema["required"]) <= set(value)
                and all(key in declared and fits(declared[key], item) for key, item in value.items())
            )
        case "array":
            return isinstance(value, list) and all(fits(schema["items"], item) for item in value)
        case "number":
            return type(value) in (int, float)
    return type(value) is _TYPES[schema["type"]]
