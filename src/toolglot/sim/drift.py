"""How models drift from the form of a single dialect: replacements in a written call, listed in ``drift.toml``.

A drift of another dialect, or one that finds nothing, leaves the text as it is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Drift:
    """``about`` says what is wrong; ``count`` limits how often each replacement is made (0: everywhere)."""

    about: str
    dialects: frozenset[str]
    replacements: tuple[tuple[re.Pattern[str], str], ...]
    count: int = 0


DRIFTS: Mapping[str, Drift] = {
    name: Drift(
        given["about"],
        frozenset(given["dialects"]),
        tuple((re.compile(pattern, re.S), put) for pattern, put in given["replacements"]),
        given.get("count", 0),
    )
    for name, given in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items()
}
"""Every drift by name."""


def apply_drift(name: str, dialect: str, written: str) -> str:
    """Apply a drift to a written call."""
    drift = DRIFTS[name]
    if dialect not in drift.dialects:
        return written
    for pattern, put in drift.replacements:
        written = pattern.sub(put, written, count=drift.count)
    return written
