"""Every dialect we know, found by walking this folder: one file per family, records as data."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from functools import cache
from importlib import import_module

from toolglot.dialects.spec import Commitment, Dialect, loosen_call, loosen_wrap


@cache
def all_dialects() -> tuple[Dialect, ...]:
    """The records of all files here, in the order of file name and of writing."""
    found: list[Dialect] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda entry: entry.name):
        records = import_module(f"{__name__}.{module.name}").DIALECTS
        found += [_loosen(replace(record, family=module.name, file=f"{module.name}.py")) for record in records]
    return tuple(found)


def _loosen(record: Dialect) -> Dialect:
    """The record with the marks that models vary; what is ordinary text too is taken as it is written."""
    wraps = tuple(spelled for wrap in record.wrap for spelled in loosen_wrap(wrap))
    if record.commitment is not Commitment.MARKED:
        return replace(record, wrap=wraps)
    return replace(record, wrap=wraps, call=loosen_call(record.call), also=tuple(map(loosen_call, record.also)))
