"""The JSON protocols, one room each, found by walking the folder."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import cast

from toolglot.wire import Wire


@cache
def all_wires() -> Mapping[str, Wire]:
    """Every wire by its name."""
    rooms = [import_module(f"{__name__}.{room.name}") for room in pkgutil.iter_modules(__path__)]
    return {room.NAME: cast("Wire", room) for room in rooms}
