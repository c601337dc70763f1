"""The JSON protocols, one room each, found by walking the folder."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import cast

from toolglot.wire import Wire


def wire_names() -> tuple[str, ...]:
    """The names of all wires; none is loaded for that."""
    return tuple(sorted(room.name for room in pkgutil.iter_modules(__path__)))


@cache
def all_wires() -> Mapping[str, Wire]:
    """Every wire by its name."""
    return {name: cast("Wire", import_module(f"{__name__}.{name}")) for name in wire_names()}
