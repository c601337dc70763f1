"""Pieces of JSON Schema for the ``schemas`` of each wire, which describe its endpoints (``GET /openapi.json``).

A schema of a request states what the decoder insists on and names what it reads; anything else is passed on, so no
object is closed. A schema of a response states what the encoder always sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}
NULL: Final[Schema] = {"type": "null"}
ANYTHING: Final[Schema] = {}
OBJECT: Final[Schema] = {"type": "object"}
NUMBER_OR_NULL: Final[Schema] = {"type": ["number", "null"]}
TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
TEXTS: Final[Schema] = {"type": ["string", "array", "null"], "items": TEXT}


class WireSchemas(Struct, frozen=True, kw_only=True):
    """The schemas of a wire: a request, a whole response, an error body. ``stream`` says in words what a stream is made
    of; ``extra`` has the request and response of each further endpoint by the end of its path. Paths that
    end with ``listed`` respond with a list of responses."""

    title: str
    request: Schema
    response: Schema
    error: Schema
    stream: str
    extra: Mapping[str, tuple[Schema | None, Schema]] = {}
    listed: str = ""


def table(required: Mapping[str, Schema] | None = None, optional: Mapping[str, Schema] | None = None) -> Schema:
    """An object with these members; others are allowed."""
    needed = required or {}
    schema: Schema = {"type": "object", "properties": {**needed, **(optional or {})}}
    return {**schema, "required": list(needed)} if needed else schema


def listing(items: Schema, least: int = 0) -> Schema:
    schema: Schema = {"type": "array", "items": items}
    return {**schema, "minItems": least} if least else schema


def words(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def fixed(value: str) -> Schema:
    return {"type": "string", "const": value}


def one_of(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}
