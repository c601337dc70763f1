"""Argument aliases: other keys that models use for well-known arguments.

Strategy. An alias counts only where the call would fail without it: the tool requires the argument and does not declare
the alias. Only the end of the call shows whether the argument itself is given too, so from an alias on the arguments
are buffered in pieces; then the key is renamed or kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from toolglot.core.schema.types import SchemaType

ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("file", "file_path", "filename"),
    "file_path": ("file", "filename"),
    "filePath": ("file", "filename"),
    "command": ("cmd",),
    "regex": ("pattern",),
}
"""The aliases of each argument."""
RENAMED: Final = "renamed_argument"


def find_aliases(parameters: SchemaType) -> Mapping[str, str]:
    """Map the aliases that apply to these parameters to the one argument each can mean."""
    meant: dict[str, list[str]] = {}
    for name in ALIASES.keys() & parameters.required & parameters.properties.keys():
        if parameters.property_type(name).streams:
            for alias in ALIASES[name]:
                meant.setdefault(alias, []).append(name)
    return {alias: names[0] for alias, names in meant.items() if len(names) == 1 and not parameters.declares(alias)}


class Alias(Struct, frozen=True):
    """An alias in a call: the argument it may mean, and the index of its key among the buffered pieces."""

    key: str
    name: str
    at: int


def choose_aliases(given: Iterable[Alias], keys: Iterable[str], pieces: list[str]) -> list[Alias]:
    """Return the aliases to rename: the argument is absent, no other alias means it, and the value is a string."""
    given, present = list(given), set(keys)
    names = [alias.name for alias in given]
    return [
        alias
        for alias in given
        if alias.name not in present and names.count(alias.name) == 1 and pieces[alias.at + 1].startswith(':"')
    ]
