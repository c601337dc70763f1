"""Other keys that models use for well-known arguments, and how a call is read that has one.

Strategy. An alias counts only where the call would fail without it: the tool requires the argument and declares no such
key. Whether the argument itself is still to come is known at the end of the call, so from an alias on the arguments
wait in pieces; then the key is renamed, or stays what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

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
    """The aliases that a tool with these parameters understands, each with the one argument that it can mean."""
    meant: dict[str, list[str]] = {}
    for name in ALIASES.keys() & parameters.required & parameters.properties.keys():
        if parameters.property_shape(name).streams:
            for alias in ALIASES[name]:
                meant.setdefault(alias, []).append(name)
    return {alias: names[0] for alias, names in meant.items() if len(names) == 1 and not parameters.declares(alias)}


@dataclass(frozen=True, slots=True)
class Alias:
    """An alias that was given: the argument it may mean, and the place of its key among the pieces that wait."""

    key: str
    name: str
    at: int


def choose_aliases(given: Iterable[Alias], keys: Iterable[str], pieces: list[str]) -> list[Alias]:
    """Those that mean their argument: it was not given itself, no other alias means it too, and the value is text."""
    given, present = list(given), set(keys)
    names = [alias.name for alias in given]
    return [
        alias
        for alias in given
        if alias.name not in present and names.count(alias.name) == 1 and pieces[alias.at + 1].startswith(':"')
    ]
