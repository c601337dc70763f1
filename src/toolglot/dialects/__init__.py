"""Every dialect we know, found by walking this folder: one file per family, records as data."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from functools import cache
from importlib import import_module

from toolglot.dialect import Dialect


@cache
def all_dialects() -> tuple[Dialect, ...]:
    """The records of all files here, in the order of file name and of writing."""
    found: list[Dialect] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda entry: entry.name):
        records = import_module(f"{__name__}.{module.name}").DIALECTS
        found += [replace(record, family=module.name, file=f"{module.name}.py") for record in records]
    return tuple(found)
