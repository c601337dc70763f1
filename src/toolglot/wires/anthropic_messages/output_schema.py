"""JSON Schemas for whole answers, as the Messages wire takes them.

The wire requires that every object is closed, and has no keywords for limits of numbers, lengths and patterns. An
object that does not say whether it is open is closed, which keeps answers within the schema of the client. Limits go
into the description, where the model reads them. Open objects, such as maps, and recursion cannot be expressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolglot.core.json_numbers import encode

KEPT: Final = frozenset(("type", "enum", "const", "description", "title", "required", "$ref"))
"""Keywords whose value is taken as it is."""

NESTED: Final = ("properties", "$defs", "definitions")
LISTED: Final[Mapping[str, str]] = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}
"""Keywords with a list of schemas, and how they are written."""

FORMATS: Final = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"),
)
DROPPED: Final = frozenset(("$schema", "$id", "default", "examples", "additionalProperties"))
MOST_LEVELS: Final = 40
"""How deeply a schema may be nested."""


class CannotExpressError(ValueError):
    """A schema that the wire cannot express."""


def adapt_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema in the form that the wire takes; None if it cannot be expressed."""
    try:
        adapted = _adapt(schema, MOST_LEVELS)
        _check_recursion(adapted)
    except CannotExpressError:
        return None
    return adapted


def _adapt(schema: object, levels: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or not levels or not _is_typed(schema):
        raise CannotExpressError
    adapted: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for key, value in schema.items():
        if _is_taken(key, value):
            adapted[key] = value
        elif key in NESTED or key in LISTED or key == "items":
            adapted[LISTED.get(key, key)] = _adapt_inner(value, key, levels - 1)
        elif key not in DROPPED:
            limits[key] = value
    if limits:
        described = f"{schema.get('description', '')}\n{encode(limits).decode()}".strip()
        adapted["description"] = described
    return _close(adapted, schema) if _is_object(schema) else adapted


def _is_taken(key: str, value: object) -> bool:
    """Whether the wire takes this keyword with this value."""
    return key in KEPT or (key == "format" and value in FORMATS) or (key == "minItems" and value in (0, 1))


def _adapt_inner(value: object, key: str, levels: int) -> Any:
    """The schemas below a keyword."""
    if key in NESTED and isinstance(value, Mapping):
        return {name: _adapt(inner, levels) for name, inner in value.items()}
    if key in LISTED and isinstance(value, list):
        return [_adapt(inner, levels) for inner in value]
    return _adapt(value, levels)


def _is_typed(schema: Mapping[str, Any]) -> bool:
    return any(key in schema for key in ("type", "enum", "const", "$ref", *LISTED))


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _close(adapted: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object, closed. One without members would only allow ``{}``."""
    more = schema.get("additionalProperties", False)
    if (more is not False and more is not True) or not adapted.get("properties"):
        raise CannotExpressError
    return adapted | {"additionalProperties": False}


def _check_recursion(schema: Mapping[str, Any]) -> None:
    """Raise ``CannotExpressError`` if a definition refers to itself, or to something other than a definition."""
    places = {f"#/{key}/{name}": inner for key in NESTED[1:] for name, inner in schema.get(key, {}).items()}
    open_places: list[str] = []
    done: set[str] = set()

    def follow(part: object) -> None:
        if isinstance(part, list):
            for each in part:
                follow(each)
        elif isinstance(part, Mapping):
            target = part.get("$ref")
            if isinstance(target, str):
                follow_reference(target)
            for key, inner in part.items():
                if key not in NESTED[1:]:
                    follow(inner)

    def follow_reference(place: str) -> None:
        if place in done:
            return
        if place in open_places or place not in places:
            raise CannotExpressError
        open_places.append(place)
        follow(places[place])
        open_places.pop()
        done.add(place)

    follow(schema)
