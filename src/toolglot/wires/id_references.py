"""Ids in requests that name something which an upstream stores: responses, conversations, files, caches, containers.

The upstream knows the gateway, not its clients, so it would open what belongs to another client. The gateway checks
the ids of a request before it passes to an upstream of the same wire.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

PUBLIC_LINK: Final = re.compile(r"[a-z]+://(?!.*generativelanguage)", re.IGNORECASE)
"""A link to something outside the upstream; Gemini's files have links, too."""

MAX_NAMES: Final = 200


class IdReference(NamedTuple):
    """A field of a request that may have an id, and the id; it is empty if there is none."""

    field: str
    id: str


class _Step:
    """What a name leads to: ``path`` is set if its value is an id, ``steps`` are names inside its value. ``kind``: it
    has that meaning only in objects of this type."""

    __slots__ = ("kind", "path", "steps")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.path = ""
        self.steps = _Steps()


class _Steps(dict[str, _Step | None]):
    """Steps by their names in any case; None for other names, of which those that come first are remembered."""

    def __missing__(self, name: str) -> _Step | None:
        found = self.get(name.casefold())
        if len(self) < MAX_NAMES:
            self[name] = found
        return found


class ReferenceFields:
    """The fields of a wire that have ids. A path leads through objects, and through all elements of lists; a step
    ``kind:name`` leads only through objects of that type, which need not be given. A field has an id, a list of them,
    or an object with one. Servers may take names in any case."""

    def __init__(self, *paths: str) -> None:
        self._steps = _Steps()
        for path in paths:
            steps = self._steps
            for part in path.split("."):
                kind, _, name = part.rpartition(":")
                step = steps[name.casefold()] = steps.get(name.casefold()) or _Step(kind)
                steps = step.steps
            step.path = path.replace(":", ".")

    def find(self, fields: Mapping[str, object]) -> list[IdReference]:
        """The ids in the fields of a request."""
        found: list[IdReference] = []
        _collect(fields, self._steps, found)
        return found


def _collect(value: object, steps: _Steps, found: list[IdReference]) -> None:
    if isinstance(value, list):
        for item in value:
            if type(item) is not str:
                _collect(item, steps, found)
    elif isinstance(value, dict):
        for name, inner in value.items():
            step = steps[name]
            if step is None or (step.kind and not _has_kind(value, step.kind)):
                continue
            if step.path:
                found += [IdReference(step.path, given) for given in _list_ids(inner)]
            if step.steps and type(inner) is not str:
                _collect(inner, step.steps, found)


def _has_kind(value: Mapping[str, object], kind: str) -> bool:
    given = [inner for name, inner in value.items() if name.casefold() == "type"]
    return kind in given or not (any(given) or "role" in value)


def _list_ids(value: object) -> list[str]:
    """The ids in the value of a field; one that is empty for a value that is no id."""
    if isinstance(value, list):
        return [given for item in value for given in _list_ids(item)]
    if isinstance(value, dict):
        value = next((inner for name, inner in value.items() if name.casefold() == "id"), "")
    return [value if isinstance(value, str) and not PUBLIC_LINK.match(value) else ""]
