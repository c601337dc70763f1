"""The JSON protocols, one package each, found by listing this directory."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from toolglot.wires.protocol import Wire


def wire_names() -> tuple[str, ...]:
    """The names of all wires, without importing them."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg))


@cache
def all_wires() -> Mapping[str, Wire]:
    """Every wire by its name."""
    return {name: _load(name) for name in wire_names()}


@cache
def client_wires() -> Mapping[str, Wire]:
    """The wires that clients can use, by their names; the others are for upstreams only."""
    return {name: wire for name, wire in all_wires().items() if wire.routes}


def _load(name: str) -> Wire:
    wire: Wire = import_module(f"{__name__}.{name}").WIRE
    return wire
