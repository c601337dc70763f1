"""Call patterns: dialects that also occur in ordinary text, each group with a switch and a confidence.

Calls of a pattern that is off stay text and are listed in ``Reader.left``. The confidence of a pattern replaces that of
its dialects and is compared with ``min_confidence``. Dialects whose marks never occur in ordinary text belong to no
pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from toolglot.core.errors import UsageError

PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    "json_code_blocks": ("fenced_json", "fenced_tool_flat", "bfcl_json", "langchain_json", "cohere_rplus"),
    "shell_commands": ("shell_fence",),
    "bare_json": ("bare_json", "bare_json_array"),
    "python_calls": ("pythonic", "python_call", "fenced_python", "gemma_tool_code"),
}
"""The dialects of each pattern."""
CONFIDENCE: Final = "_confidence"
REQUIRE_CWD: Final = "require_cwd"
NATURAL_LANGUAGE: Final = "natural_language"
KEYS: Final = (*PATTERNS, *(name + CONFIDENCE for name in PATTERNS), REQUIRE_CWD, NATURAL_LANGUAGE)
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


@dataclass(frozen=True, slots=True)
class Patterns:
    """The dialects that are off, confidences of others, and whether a shell fence needs a working directory."""

    off: frozenset[str] = frozenset()
    confidences: Mapping[str, float] = field(default_factory=dict, hash=False)
    require_cwd: bool = False


ALL_ON: Final = Patterns()


def to_snake_case(key: str) -> str:
    """Convert camel case: ``jsonCodeBlocks`` becomes ``json_code_blocks``."""
    return _CAPITAL.sub(lambda found: f"_{found[1].lower()}", key)


def read_patterns(given: Mapping[str, bool | float | None] | None) -> Patterns:
    """Parse the ``patterns`` option.

    ``given``: a boolean per pattern (``json_code_blocks``, ``shell_commands``, ``bare_json``, ``python_calls``), a
    number from 0 to 1 per ``<pattern>_confidence``, and ``require_cwd``. Keys may be in camel case; None and a missing
    key mean the default. Raises ``UsageError`` for any other key or value.
    """
    if not given:
        return ALL_ON
    if not isinstance(given, Mapping):
        raise UsageError(f"patterns takes a mapping of names to switches and confidences, not {given!r}")
    return _compile(tuple(sorted(_check(given).items())))


def _check(given: Mapping[str, Any]) -> dict[str, bool | float]:
    checked: dict[str, bool | float] = {}
    for key, value in given.items():
        name = to_snake_case(str(key))
        if name not in KEYS:
            raise UsageError(f"patterns has an unknown key {key!r}; known are {', '.join(KEYS)}")
        if value is None:
            continue
        if name.endswith(CONFIDENCE):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise UsageError(f"patterns has {key} {value!r}; it must be a number from 0 to 1")
        elif not isinstance(value, bool):
            raise UsageError(f"patterns has {key} {value!r}; it must be true or false")
        if checked.setdefault(name, value) != value:
            raise UsageError(f"patterns has {name} twice, in two spellings")
    if checked.get(NATURAL_LANGUAGE):
        raise UsageError(f"patterns has {NATURAL_LANGUAGE} on: prose is never read as a call, so it can only be off")
    return checked


@lru_cache(maxsize=64)
def _compile(checked: tuple[tuple[str, bool | float], ...]) -> Patterns:
    values = dict(checked)
    off = frozenset(dialect for name in PATTERNS if values.get(name) is False for dialect in PATTERNS[name])
    confidences = {
        dialect: float(values[name + CONFIDENCE])
        for name in PATTERNS
        if name + CONFIDENCE in values
        for dialect in PATTERNS[name]
    }
    return Patterns(off, confidences, bool(values.get(REQUIRE_CWD)))
