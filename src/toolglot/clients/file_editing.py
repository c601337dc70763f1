"""Merges settings into the configuration files of clients, and takes them back.

Strategy. People and clients change these files, too, so a file is edited as text: comments, order and layout stay. The
result is parsed and compared with the values that it must have. A file that is laid out in a way that an editor does
not handle is refused and never damaged.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct

from toolglot.clients.json_editing import change_json, merge_json, parse_json
from toolglot.clients.line_editing import change_variables, merge_variables, parse_variables
from toolglot.clients.setting_paths import (
    MISSING,
    NAME,
    REMOVED,
    UNUSUAL,
    SettingPath,
    change_value,
    find_value,
)
from toolglot.clients.toml_editing import change_toml, merge_toml
from toolglot.clients.yaml_editing import change_yaml, merge_yaml, parse_yaml

BYTE_ORDER_MARK: Final = "\ufeff"


class Format(NamedTuple):
    """How files of one format are parsed, settings are merged into them, and existing values are changed. All raise
    ValueError."""

    parse: Callable[[str], Any]
    merge: Callable[[str, Mapping[str, Any]], str]
    change: Callable[[str, Mapping[SettingPath, Any]], str]


FORMATS: Final[Mapping[str, Format]] = {
    "json": Format(parse_json, merge_json, change_json),
    "toml": Format(tomllib.loads, merge_toml, change_toml),
    "yaml": Format(parse_yaml, merge_yaml, change_yaml),
    "env": Format(parse_variables, merge_variables, change_variables),
}


# Merging


def merge_text(text: str, changes: Mapping[str, Any], kind: str) -> str:
    """Merge settings into the text of a file.

    Parameters: ``kind`` is one of ``FORMATS``. Mappings are merged. The named objects of a list replace those of the
    same name, or go to its start.

    Returns: the new text; the same one if it has all settings already. Raises: ValueError if that is impossible.
    """
    before = parse_text(text, kind)
    after = merge_values(before, changes)
    if after == before:
        return text
    return _edit(text, kind, lambda plain: FORMATS[kind].merge(plain, changes), after)


def parse_text(text: str, kind: str) -> Any:
    """The values of a file. Raises: ValueError."""
    return FORMATS[kind].parse(_simplify(text))


def merge_values(before: Any, changes: Any) -> Any:
    """What ``merge_text`` must result in."""
    if isinstance(before, dict) and isinstance(changes, Mapping):
        merged = {key: merge_values(before[key], value) for key, value in changes.items() if key in before}
        return {**before, **changes, **merged}
    if isinstance(before, list) and isinstance(changes, list):
        return _merge_items(before, {change[NAME]: change for change in changes})
    return changes


def _merge_items(before: list[Any], changes: Mapping[str, Any]) -> list[Any]:
    names = [item.get(NAME) if isinstance(item, dict) else None for item in before]
    kept = [changes.get(name, item) if name else item for name, item in zip(names, before, strict=True)]
    return [change for name, change in changes.items() if name not in names] + kept


def _simplify(text: str) -> str:
    """The text as editors take it."""
    return text.removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")


def _edit(text: str, kind: str, edit: Callable[[str], str], expected: Any) -> str:
    """Edit a text and compare the values of the result. Byte order mark and line ends stay. Raises: ValueError."""
    edited = edit(_simplify(text))
    if parse_text(edited, kind) != expected:
        raise ValueError(UNUSUAL)
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    return mark + (edited.replace("\n", "\r\n") if "\r\n" in text else edited)


# Taking back


class SettingChange(Struct, frozen=True):
    """One value that was set. ``before`` is what it was, if it ``existed``. ``volatile``: the client keeps it up to
    date itself, so that another value is not a person's."""

    path: SettingPath
    value: Any
    existed: bool = False
    before: Any = None
    volatile: bool = False


class ChangeList(Struct, frozen=True):
    """All values that were set in a file, and the collections that were made for them. ``defaults`` are keys that every
    file of the client has: they stay as long as others have something in it."""

    changes: tuple[SettingChange, ...] = ()
    made: tuple[SettingPath, ...] = ()
    defaults: tuple[str, ...] = ()


class Reverted(NamedTuple):
    """A text without what was set in it, and the paths of values that stay because others have changed them since."""

    text: str
    kept: list[SettingPath]


def find_changes(before: Any, after: Any, volatile: Collection[str] = (), defaults: Collection[str] = ()) -> ChangeList:
    """What is set in the values of a file that was not so before; the other parameters are keys of such values."""
    changes: list[SettingChange] = []
    made: list[SettingPath] = []

    def compare(path: SettingPath, old: Mapping[str, Any], new: Mapping[str, Any], deeper: bool) -> None:
        for key, value in new.items():
            here, former = (*path, key), old.get(key, MISSING)
            if former == value:
                continue
            fits = former is MISSING or isinstance(former, type(value))
            inner = _name_members(value) if deeper and fits else {}
            if not inner:
                known = former is not MISSING
                changes.append(SettingChange(here, value, known, former if known else None, key in volatile))
                continue
            if former is MISSING:
                made.append(here)
            compare(here, _name_members(former), inner, isinstance(value, dict))

    compare((), before, after, True)
    added = [change.path[0] for change in changes if not change.existed]
    return ChangeList(tuple(changes), tuple(made), tuple(key for key in defaults if key in added))


def _name_members(value: Any) -> Mapping[str, Any]:
    """The members of an object, or the named objects of a list."""
    if isinstance(value, list):
        return {item[NAME]: item for item in value if isinstance(item, dict) and isinstance(item.get(NAME), str)}
    return value if isinstance(value, dict) else {}


def _find_edits(values: Any, changes: ChangeList) -> tuple[dict[SettingPath, Any], list[SettingPath]]:
    """What has to be changed to take changes back, and the paths of values that others have changed. Defaults are left
    out."""
    edits: dict[SettingPath, Any] = {}
    kept: list[SettingPath] = []
    for change in changes.changes:
        found = find_value(values, change.path)
        if found is not MISSING and (change.volatile or found == change.value):
            if change.path[0] not in changes.defaults:
                edits[change.path] = change.before if change.existed else REMOVED
        elif found != (change.before if change.existed else MISSING):
            kept.append(change.path)
    return edits, kept


def revert_text(text: str, changes: ChangeList, kind: str) -> Reverted:
    """Take back what was set in a file that others may have changed since: a value that is still the one that was set
    becomes what it was before, or is removed. All other values stay.

    Raises: ValueError if the text is damaged, or laid out in a way that cannot be edited.
    """
    values = copy.deepcopy(parse_text(text, kind))
    edits, kept = _find_edits(values, changes)
    for path, value in edits.items():
        change_value(values, path, value)
    for made in sorted(changes.made, key=len, reverse=True):
        if find_value(values, made) in ({}, []):
            change_value(values, made, REMOVED)
            edits = {path: value for path, value in edits.items() if path[: len(made)] != made} | {made: REMOVED}
    unchanged = {(key,): REMOVED for key in changes.defaults if key in values and (key,) not in kept}
    if len(unchanged) == len(values):
        edits, values = edits | unchanged, {}
    if not edits:
        return Reverted(text, kept)
    return Reverted(_edit(text, kind, lambda plain: FORMATS[kind].change(plain, edits), values), kept)
