"""Places of settings in the values of a file: the keys that lead to it, and the name of an object in a list."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

SettingPath: TypeAlias = tuple[str, ...]
NAME: Final = "name"
"""The member that identifies an object in a list."""
PLAIN: Final = re.compile(r"[\w$-]+")
UNUSUAL: Final = "its layout is unusual"


class Marker:
    """A value that no file has."""


MISSING: Final = Marker()
REMOVED: Final = Marker()


def show_path(path: SettingPath) -> str:
    """A path for people: keys with a dot in between, quoted where that is needed."""
    return ".".join(key if PLAIN.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in path)


def find_position(items: list[Any], name: str) -> int | None:
    """Where the object of this name is in a list."""
    return next((at for at, item in enumerate(items) if isinstance(item, dict) and item.get(NAME) == name), None)


def find_value(values: Any, path: SettingPath) -> Any:
    """The value at a path, or ``MISSING``."""
    for key in path:
        if isinstance(values, Mapping) and key in values:
            values = values[key]
        elif isinstance(values, list) and (at := find_position(values, key)) is not None:
            values = values[at]
        else:
            return MISSING
    return values


def change_value(values: Any, path: SettingPath, value: Any) -> None:
    """Replace or remove (``REMOVED``) the value at a path that exists."""
    holder, key = find_value(values, path[:-1]), path[-1]
    place = find_position(holder, key) if isinstance(holder, list) else key
    if value is REMOVED:
        del holder[place]
    else:
        holder[place] = value
