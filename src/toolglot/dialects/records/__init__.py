"""All dialects: one file per family, each a tuple ``DIALECTS`` of records. New files are found automatically."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from functools import cache
from importlib import import_module

from toolglot.dialects.spec import Commitment, Dialect, loosen_call, loosen_wrap


@cache
def all_dialects() -> tuple[Dialect, ...]:
    """Return the records of all files, ordered by file name and position in the file."""
    found: list[Dialect] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda entry: entry.name):
        records = import_module(f"{__name__}.{module.name}").DIALECTS
        found += [_loosen(replace(record, family=module.name, file=f"{module.name}.py")) for record in records]
    return tuple(found)


def _loosen(record: Dialect) -> Dialect:
    """Add variants of the marks; marks that occur in ordinary text are matched exactly."""
    wraps = tuple(spelled for wrap in record.wrap for spelled in loosen_wrap(wrap))
    if record.commitment is not Commitment.MARKED:
        return replace(record, wrap=wraps)
    return replace(record, wrap=wraps, call=loosen_call(record.call), also=tuple(map(loosen_call, record.also)))
