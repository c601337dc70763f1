"""How this wire spells things: every field in two ways, seals as base64, schemas with types in capitals.

Clients write ``functionCall`` and ``function_call`` and mix both in one body, so fields are looked up by ``pick``.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from toolglot.wires.translation import lend_seal, regain_seal

NAME = "gemini"
THINKING, EFFORT = "thinkingConfig", "thinkingLevel"
"""Where it stands how much a model is to think."""
EFFORT_WORDS = ("minimal", "low", "medium", "high")
UNSEALED = b64encode(b"skip_thought_signature_validator").decode()
"""Stands for the signature of a call that another model made, as the vendor advises."""

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
_JOINT = re.compile(r"_([a-z])")


@lru_cache(maxsize=256)
def _snake(key: str) -> str:
    return _HUMP.sub(lambda found: f"_{found[1].lower()}", key)


def pick(holder: Mapping[str, Any], key: str) -> Any:
    """A field in either spelling; the key is given in camel case."""
    value = holder.get(key)
    return holder.get(_snake(key)) if value is None else value


def pick_text(holder: Mapping[str, Any], key: str) -> str:
    value = pick(holder, key)
    return value if isinstance(value, str) else ""


def pick_table(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = pick(holder, key)
    return value if isinstance(value, dict) else {}


def unify(holder: Mapping[str, Any]) -> dict[str, Any]:
    """The same fields, all in camel case."""
    return {_JOINT.sub(lambda found: found[1].upper(), key): value for key, value in holder.items()}


# -- seals -------------------------------------------------------------------------------------------------------------


def read_seal(part: Mapping[str, Any]) -> tuple[str, str]:
    """The signature of a part and whose it is. Clients use both alphabets of base64."""
    seal = pick_text(part, "thoughtSignature").replace("-", "+").replace("_", "/")
    if not seal or seal == UNSEALED:
        return "", NAME
    try:
        lent = b64decode(seal).decode()
    except ValueError:
        return seal, NAME
    own, kind = regain_seal(lent, NAME)
    return (own, kind) if own != lent else (seal, NAME)


def write_seal(seal: str, kind: str) -> str:
    """A seal as a client keeps it."""
    lent = lend_seal(seal, kind, NAME)
    return lent if lent == seal else b64encode(lent.encode()).decode()


# -- schemas -----------------------------------------------------------------------------------------------------------

NUMBERS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
DROPPED = ("nullable", "propertyOrdering")


def read_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema in the vendor's own form as a JSON Schema."""
    fields = unify(schema)
    told = {key: _READ.get(key, _keep)(value) for key, value in fields.items() if key not in DROPPED}
    if fields.get("nullable") is True and isinstance(told.get("type"), str):
        told["type"] = [told["type"], "null"]
    return told


def _keep(value: Any) -> Any:
    return value


def _read_type(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _read_number(value: Any) -> Any:
    """Large numbers are told as text."""
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
