"""Finds the tools of a client that read, edit and write a whole file, by names, descriptions and required parameters.

find_file_tools(tools).reader     the tool Read with the parameter file_path, say
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from toolglot.clients.edit_failures import CONTENT_KEYS, NEW_KEYS, OLD_KEYS, PATH_KEYS
from toolglot.core.conversation import Tool

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_READING: Final = frozenset(("read", "reads", "view", "open", "cat"))
_ABSOLUTE: Final = re.compile(r"\babsolute\b", re.IGNORECASE)


class FileTool(Struct, frozen=True):
    """A tool and the names of its required parameters, in the order in which ``make_arguments`` takes values."""

    name: str
    keys: tuple[str, ...]
    absolute: bool = False
    """The tool asks for absolute paths."""

    def make_arguments(self, path: str, *texts: str) -> dict[str, str]:
        """The arguments of a call for one file."""
        return dict(zip(self.keys, (path, *texts), strict=True))


class FileTools(Struct, frozen=True):
    """The tools of a client for whole files; None for what there is no tool."""

    reader: FileTool | None = None
    editor: FileTool | None = None
    """Replaces a piece of text by another."""
    writer: FileTool | None = None
    """Replaces the whole text."""


def find_file_tools(tools: Sequence[Tool]) -> FileTools:
    """The first tool of each kind. A tool that requires anything else is left out."""
    return FileTools(
        reader=_find(filter(_is_reader, tools), PATH_KEYS),
        editor=_find(tools, PATH_KEYS, OLD_KEYS, NEW_KEYS),
        writer=_find(tools, PATH_KEYS, CONTENT_KEYS),
    )


def _is_reader(tool: Tool) -> bool:
    """Whether the name, or the description by its first word, says that the tool reads."""
    words = (*_WORD.findall(tool.name), *_WORD.findall(tool.description)[:1])
    return not _READING.isdisjoint(word.lower() for word in words)


def _find(tools: Iterable[Tool], *roles: tuple[str, ...]) -> FileTool | None:
    """The first tool with exactly one required text parameter for each role."""
    for tool in tools:
        properties, required = tool.parameters.get("properties"), tool.parameters.get("required")
        if not isinstance(properties, Mapping) or not isinstance(required, (list, tuple)):
            continue
        found = [[key for key in required if key in role and _is_text(properties.get(key))] for role in roles]
        if all(len(keys) == 1 for keys in found) and len(required) == len(roles):
            (path, *others) = (keys[0] for keys in found)
            asked = str(properties[path].get("description", ""))
            return FileTool(tool.name, (path, *others), _ABSOLUTE.search(asked) is not None)
    return None


def _is_text(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "string" and not {"enum", "const"} & schema.keys()
