"""Ids in requests that name something which an upstream stores: responses, conversations, files, caches, containers.

The upstream knows the gateway, not its clients, so it would open what belongs to another client. The gateway checks
the ids of a request before it passes to an upstream of the same wire. Ids are found by the names of their fields, at
any depth and in any spelling: servers read them in more places than are documented. Objects whose names the user
chooses (schemas, arguments, metadata) are not searched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from unicodedata import normalize
from urllib.parse import unquote

NAMES: Final = frozenset(
    ("previousresponseid", "conversation", "container", "containerid", "fileid", "fileids", "vectorstoreid")
) | {"vectorstoreids", "approvalrequestid", "fileuri", "cachedcontent", "filesearchstorenames", "audio.id"}
"""Fields that have an id, a list of them, or an object with one; see ``_fold``. A dot leads into an object."""

FREE: Final = frozenset(
    ("arguments", "args", "parameters", "properties", "metadata", "attributes", "env", "headers", "inputexamples")
)
"""Objects with any names, of which servers open nothing; so are those whose name ends with ``schema``."""

ITEMS: Final = "input"
ESCAPED: Final = re.compile(rb"\\u(?:00[4-7]|017f|212a)", re.IGNORECASE)
LONG_S, KELVIN_SIGN = (letter.encode() for letter in "\u017f\u212a")
"""Servers that ignore case take them for ``s`` and ``k``; others are no part of these names."""


class IdReference(NamedTuple):
    """A field of a request that may have an id, and the id."""

    field: str
    id: str


class ReferenceFields:
    """Finds the ids in requests of a wire. ``free``: more objects with names that the user chooses. ``whole_items``: if
    given, ``input`` has items, whose ids are references unless the item has its content: for each type the field."""

    def __init__(self, free: Iterable[str] = (), whole_items: Mapping[str, str] | None = None) -> None:
        self._free = FREE.union(free)
        self._whole = whole_items
        names = {name.partition(".")[0] for name in NAMES} | ({"id"} if whole_items is not None else set())
        self._mention = re.compile(b'"(?:%b)"' % "|".join(sorted(names)).encode())

    def may_be_in(self, body: bytes) -> bool:
        """Whether a body may have such a field; a fast test, which also sees what a parser drops. It is false for names
        inside strings, as their quotes are escaped."""
        if ESCAPED.search(body) or LONG_S in body or KELVIN_SIGN in body:
            return True
        return self._mention.search(body.lower().replace(b"_", b"")) is not None

    def find(self, fields: Mapping[str, object]) -> list[IdReference]:
        """The ids in the fields of a request."""
        found: list[IdReference] = []
        pending: list[tuple[str, object]] = [("", fields)]
        for parent, value in pending:
            if isinstance(value, list):
                pending += [(parent, one) for one in value if isinstance(one, dict | list)]
            elif isinstance(value, dict):
                found += self._find_in(parent, value, pending)
        return found

    def _find_in(
        self, parent: str, value: Mapping[str, object], pending: list[tuple[str, object]]
    ) -> Iterable[IdReference]:
        """The ids in one object; the objects inside it are added to ``pending``."""
        is_item = parent == ITEMS and self._whole is not None and not _is_whole(value, self._whole)
        for name, inner in value.items():
            folded = _fold(name)
            if folded in self._free or folded.endswith("schema"):
                continue
            if folded in NAMES or f"{parent}.{folded}" in NAMES or (is_item and folded == "id"):
                field = f"{parent}.{name}" if folded == "id" else name
                yield from (IdReference(field, given) for given in _list_ids(inner))
            if folded == "variables" and isinstance(inner, dict):  # their names are the user's, their values are not
                pending += [("", one) for one in inner.values()]
            else:
                pending.append((folded, inner))


def _fold(name: str) -> str:
    """A name as servers compare it: with any case and, for names in both styles, without underscores."""
    return name.casefold().replace("_", "")


def _is_whole(item: Mapping[str, object], content: Mapping[str, str]) -> bool:
    """Whether an item has its content. Of names in two spellings the server could take either."""
    members = {_fold(name): value for name, value in item.items()}
    kind = members.get("type") or ("message" if "role" in members else None)
    known = len(members) == len(item) and isinstance(kind, str) and kind in content
    return known and members.get(_fold(content[str(kind)])) not in (None, "", [])


def _list_ids(value: object) -> Iterable[str]:
    """The ids in the value of a field."""
    for one in value if isinstance(value, list) else [value]:
        given = [inner for name, inner in one.items() if _fold(name) == "id"] if isinstance(one, dict) else [one]
        yield from (text for text in given if isinstance(text, str) and text and not _is_public(text))


def _is_public(text: str) -> bool:
    """Whether a text is content, or a link to something outside the upstream; Gemini's files have links, too."""
    scheme = text[:8].casefold()
    if scheme.startswith("data:"):
        return True
    letters = re.sub("[^a-z]", "", normalize("NFKC", unquote(text)).casefold())
    return scheme.startswith(("http://", "https://")) and "generativelanguage" not in letters
