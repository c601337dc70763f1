"""The JSON protocols, one package each, found by walking the folder."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import cast

from toolglot.wires.protocol import USUAL, Wire


def wire_names() -> tuple[str, ...]:
    """The names of all wires; none is loaded for that."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


@cache
def all_wires() -> Mapping[str, Wire]:
    """Every wire by its name."""
    return {name: _load(name) for name in wire_names()}


def _load(name: str) -> Wire:
    wire = import_module(f"{__name__}.{name}")
    vars(wire).update({**USUAL, **vars(wire)})
    return cast("Wire", wire)
