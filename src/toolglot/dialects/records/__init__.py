"""All dialects: one file per family, each with dialect records in ``DIALECTS``. New files are found automatically."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from msgspec.structs import replace

from toolglot.dialects.spec import Commitment, Dialect, loosen_call, loosen_wrap


@cache
def all_dialects() -> tuple[Dialect, ...]:
    """Return the dialects of all files, ordered by file name and position in the file."""
    found: list[Dialect] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda entry: entry.name):
        specs = import_module(f"{__name__}.{module.name}").DIALECTS
        found += [loosen_dialect(replace(spec, family=module.name, file=f"{module.name}.py")) for spec in specs]
    return tuple(found)


def loosen_dialect(spec: Dialect) -> Dialect:
    """Add variants of the marks; marks that occur in ordinary text are matched exactly."""
    wraps = tuple(spelled for wrap in spec.wrap for spelled in loosen_wrap(wrap))
    if spec.commitment is not Commitment.MARKED:
        return replace(spec, wrap=wraps)
    return replace(spec, wrap=wraps, call=loosen_call(spec.call), also=tuple(map(loosen_call, spec.also)))
