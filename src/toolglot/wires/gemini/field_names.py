"""Spelling of the Gemini wire: two names per field, base64 signatures, schemas with types in capitals.

Clients use ``functionCall`` and ``function_call`` and mix both in one body, so ``pick`` looks up both.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from toolglot.wires.translation import unwrap_signature, wrap_signature
from toolglot.wires.vendor_fields import Known, Level

NAME = "gemini"
THINKING, EFFORT, BUDGET = "thinkingConfig", "thinkingLevel", "thinkingBudget"
"""Path of the field for the reasoning effort, and its sibling for a number of tokens."""
EFFORT_VALUES = ("minimal", "low", "medium", "high")
MIME_TYPE, JSON_SCHEMA, OWN_SCHEMA = "responseMimeType", "responseJsonSchema", "responseSchema"
"""The settings for the output format."""
FORMAT_PATHS = tuple(f"generationConfig.{key}" for key in (MIME_TYPE, JSON_SCHEMA, OWN_SCHEMA))
JSON_TYPE = "application/json"
NO_SIGNATURE = b64encode(b"skip_thought_signature_validator").decode()
"""Replaces the signature of a call that another model made, as the vendor advises."""

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
_JOINT = re.compile(r"_([a-z])")
_CAPITAL = re.compile(r"[A-Z]")


@lru_cache(maxsize=256)
def _snake(key: str) -> str:
    return _HUMP.sub(lambda found: f"_{found[1].lower()}", key)


def pick(holder: Mapping[str, Any], key: str) -> Any:
    """A field in either spelling; ``key`` is in camel case."""
    value = holder.get(key)
    return holder.get(_snake(key)) if value is None else value


def pick_text(holder: Mapping[str, Any], key: str) -> str:
    value = pick(holder, key)
    return value if isinstance(value, str) else ""


def pick_table(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = pick(holder, key)
    return value if isinstance(value, dict) else {}


def unify(holder: Mapping[str, Any]) -> dict[str, Any]:
    """Convert all field names to camel case."""
    return {_JOINT.sub(lambda found: found[1].upper(), key): value for key, value in holder.items()}


def add_aliases(known: Level) -> dict[str, Known]:
    """Add the names in snake case, which clients may use, to fields that are known."""
    inner: dict[str, Known] = {
        name: add_aliases(one) if isinstance(one, Mapping) else one for name, one in known.items()
    }
    aliases: dict[str, Known] = {_CAPITAL.sub(lambda found: "_" + found[0].lower(), name): None for name in known}
    return aliases | inner


# -- signatures --------------------------------------------------------------------------------------------------------


def read_signature(part: Mapping[str, Any]) -> tuple[str, str]:
    """The signature of a part and the wire it belongs to. Clients use both base64 alphabets."""
    signature = pick_text(part, "thoughtSignature").replace("-", "+").replace("_", "/")
    if not signature or signature == NO_SIGNATURE:
        return "", NAME
    try:
        wrapped = b64decode(signature).decode()
    except ValueError:
        return signature, NAME
    own, kind = unwrap_signature(wrapped, NAME)
    return (own, kind) if own != wrapped else (signature, NAME)


def write_signature(signature: str, kind: str) -> str:
    """Encode a signature for a client."""
    wrapped = wrap_signature(signature, kind, NAME)
    return wrapped if wrapped == signature else b64encode(wrapped.encode()).decode()


# -- schemas -----------------------------------------------------------------------------------------------------------

NUMBERS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
DROPPED = ("nullable", "propertyOrdering")


def read_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a schema in the vendor's own form to JSON Schema."""
    fields = unify(schema)
    payload = {key: _READ.get(key, _keep)(value) for key, value in fields.items() if key not in DROPPED}
    if fields.get("nullable") is True and isinstance(payload.get("type"), str):
        payload["type"] = [payload["type"], "null"]
    return payload


def _keep(value: Any) -> Any:
    return value


def _read_type(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _read_number(value: Any) -> Any:
    """Large numbers are sent as text."""
    return int(value) if isinstance(value, str) and value.isdigit() else value


def _read_nested(value: Any) -> Any:
    return read_schema(value) if isinstance(value, dict) else value


def _read_listed(value: Any) -> Any:
    return [_read_nested(each) for each in value] if isinstance(value, list) else value


def _read_named(value: Any) -> Any:
    return {name: _read_nested(each) for name, each in value.items()} if isinstance(value, dict) else value


_READ: Mapping[str, Callable[[Any], Any]] = {
    "type": _read_type,
    "items": _read_nested,
    "additionalProperties": _read_nested,
    "anyOf": _read_listed,
    "properties": _read_named,
    **dict.fromkeys(NUMBERS, _read_number),
}
