"""The JSON Schema of the settings file, generated from the settings; editors check and complete a file with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from toolglot.config.settings import FIELDS, SECTIONS, TABLES, Setting

REFERENCE: Final = {
    "type": "string",
    "pattern": r"^(env:|os\.environ/)",
    "description": "the value of an environment variable",
}
SECRET_FILE: Final = "A text `file:PATH` is replaced by the content of that file."


def make_schema() -> dict[str, Any]:
    """The schema of ``toolglot.toml``, in the version of 2020-12."""
    tables = {name: _describe_table(name, kind.__doc__ or "") for name, kind in SECTIONS.items()}
    rows = {
        name: {"type": "array", "items": _describe_table(name, kind.__doc__ or "")} for name, kind in TABLES.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "toolglot.toml",
        "description": "Settings of the toolglot gateway",
        "type": "object",
        "properties": {**tables, **rows},
        "additionalProperties": False,
        "$defs": {"reference": REFERENCE},
    }


def _describe_table(name: str, about: str) -> dict[str, Any]:
    known = {one.field: _describe(one) for one in FIELDS[name].values()}
    table: dict[str, Any] = {
        "type": "object",
        "description": " ".join(about.split()),
        "properties": known,
        "additionalProperties": False,
    }
    camel = {_camel_case(field): {"$ref": f"#/properties/{name}/properties/{field}"} for field in known}
    other = {f"^{spelled}$": schema for spelled, schema in camel.items() if spelled not in known}
    if name in SECTIONS and other:
        table["patternProperties"] = other
    if name in TABLES:
        table["required"] = ["base_url"] if name == "upstream" else ["name"]
    return table


def _describe(one: Setting) -> dict[str, Any]:
    about = one.description + (f". {SECRET_FILE}" if one.kind.secret else "")
    described: dict[str, Any] = {"description": f"{about}. Accepted: {one.kind.accepts}"}
    default = _as_json(one.default)
    if default is not None and not one.kind.secret:
        described["default"] = default
    schema = dict(one.kind.schema)
    if schema.get("type") == "string" and not {"enum", "pattern"} & schema.keys():
        return described | schema
    return described | {"anyOf": [schema, {"$ref": "#/$defs/reference"}]} if schema else described


def _as_json(value: Any) -> Any:
    """A default as JSON; None if it has no such form."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    return value if isinstance(value, (bool, int, float, str)) else None


def _camel_case(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)
