"""Schemas that every server accepts as strict: for tools, and for whole answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

STRICT_KEYWORDS: Final = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items"),
        *("enum", "const", "anyOf", "title", "description"),
    )
)
"""The keywords that every server with strict tools accepts."""

MOST_LEVELS: Final = 10
"""How deeply a strict schema may be nested."""


def allows_strict(parameters: Mapping[str, object]) -> bool:
    """Whether every server with strict tools accepts the schema: objects are closed, all members are required. A tool
    without parameters has nothing to be strict about, and some servers fail with it."""
    return bool(parameters.get("properties")) and _is_strict(parameters, MOST_LEVELS)


def _is_strict(schema: object, levels: int) -> bool:
    if not isinstance(schema, Mapping) or not levels or not STRICT_KEYWORDS.issuperset(schema):
        return False
    kind, branches = schema.get("type"), schema.get("anyOf", [])
    kinds = kind if isinstance(kind, list) else [kind]
    if not isinstance(branches, list) or (kind is None and not branches):
        return False
    if ("array" in kinds) != ("items" in schema) or ("object" in kinds) != ("properties" in schema):
        return False
    if "object" in kinds and not _is_closed(schema):
        return False
    properties = schema.get("properties", {})
    inner = [*branches, *properties.values(), *([schema["items"]] if "items" in schema else [])]
    return all(_is_strict(each, levels - 1) for each in inner)


def _is_closed(schema: Mapping[str, object]) -> bool:
    """Whether an object has exactly the declared members."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return False
    return schema.get("additionalProperties") is False and sorted(properties) == sorted(map(str, required))
