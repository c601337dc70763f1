"""Edit the system prompt in the body of a request, in the places where any wire has it; all else keeps its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from toolglot.core.json_numbers import decode, encode

Edit: TypeAlias = Callable[[str], str]

FIELDS: Final = ("system", "instructions", "systemInstruction", "system_instruction")
"""Fields that hold nothing but the system prompt."""
LISTS: Final = ("messages", "input")
"""Fields whose first items may be system messages."""
ROLES: Final = ("system", "developer")
HOLDERS: Final = ("text", "content", "parts")
"""Fields of an item that hold its text."""
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def edit_system_prompt(body: bytes, mark: bytes, edit: Edit) -> bytes:
    """The body with all texts of its system prompt edited. Only fields that contain ``mark`` are parsed; texts and
    items that become empty are left out. A body that is not a JSON object stays as it is."""
    try:
        fields: dict[str, Any] = dict(_FIELDS.decode(body))
        changed = False
        for name in (*FIELDS, *LISTS):
            raw = bytes(fields.get(name, b""))
            if mark in raw and (made := _edit_field(name, before := decode(raw), edit)) != before:
                changed = True
                fields[name] = made
                if not made:
                    del fields[name]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    return encode(fields) if changed else body


def _edit_field(name: str, value: Any, edit: Edit) -> Any:
    return _edit_list(value, edit) if name in LISTS else _edit(value, edit)


def _edit_list(items: Any, edit: Edit) -> Any:
    """The items with the system messages at the beginning edited."""
    if not isinstance(items, list):
        return items
    leading = 0
    while leading < len(items) and isinstance(items[leading], dict) and items[leading].get("role") in ROLES:
        leading += 1
    return [*_edit(items[:leading], edit), *items[leading:]]


def _edit(value: Any, edit: Edit) -> Any:
    """The texts in a system prompt, edited; what becomes empty is empty."""
    if isinstance(value, str):
        return edit(value)
    if isinstance(value, list):
        return [made for item in value if (made := _edit(item, edit))]
    if isinstance(value, dict):
        made = {name: _edit(held, edit) if name in HOLDERS else held for name, held in value.items()}
        return made if any(made.get(name) for name in HOLDERS) or made == value else {}
    return value
