"""Edits TOML files that people write: everything that does not change stays as it is, comments included.

Strategy. ``merge_toml`` sets keys line by line and handles the usual layouts only; its caller compares the values.
``change_toml`` splits the text into statements, each of which ``tomllib`` can parse alone, so that it finds keys that
are quoted, dotted, in inline tables or behind values of several lines.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from toolglot.clients.line_editing import end_line, find_comment, set_line
from toolglot.clients.setting_paths import REMOVED, UNUSUAL, SettingPath, change_value

BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
KEY: Final = re.compile(r"""\s*(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')\s*""")
ITEM: Final = "\0"
"""Stands in a path for one of several tables of the same name, in which no setting is looked for."""


# Merging


def merge_toml(text: str, changes: Mapping[str, Any]) -> str:
    """Set keys at the top level and in tables; a table of a table is written with its dotted name."""
    lines = text.splitlines(keepends=True)
    for table, values in _list_tables(changes):
        header = f"[{table}]"
        first = next((at + 1 for at, line in enumerate(lines) if line.split("#")[0].strip() == header), 0)
        if table and not first:
            if lines and lines[-1].strip():
                end_line(lines)
                lines.append("\n")
            lines.append(f"{header}\n")
            first = len(lines)
        for key, value in values.items():
            last = next((at for at in range(first, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))
            set_line(lines, rf"\s*{re.escape(key)}\s*=", f"{key} = {write_toml(value)}", range(first, last))
    return "".join(lines)


def _list_tables(changes: Mapping[str, Any], name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    own = {key: value for key, value in changes.items() if not isinstance(value, Mapping)}
    if own:
        yield name, own
    for key, value in changes.items():
        if isinstance(value, Mapping):
            yield from _list_tables(value, f"{name}.{key}".lstrip("."))


def write_toml(value: Any) -> str:
    """A value on one line; a mapping is an inline table."""
    if isinstance(value, Mapping):
        pairs = [f"{_write_key(key)} = {write_toml(item)}" for key, item in value.items()]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(write_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write_key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else write_toml(key)


# Changing what is there


class Statement(NamedTuple):
    """A table header or a key with its value: its lines, its path in the file, and the text of its key."""

    start: int
    end: int
    path: SettingPath
    key: str = ""
    value: Any = None


def change_toml(text: str, changes: Mapping[SettingPath, Any]) -> str:
    """Replace or remove (``REMOVED``) the values at paths that the file has. Raises: ValueError."""
    lines = text.splitlines(keepends=True)
    for path, value in changes.items():
        statements = list(_scan(lines))
        whole = [one for one in statements if one.path[: len(path)] == path]
        if value is REMOVED and whole:
            for one in reversed(whole):
                _delete(lines, one.start, one.end)
            continue
        found = [one for one in statements if one.key and one.path == path[: len(one.path)]]
        if not found:
            raise ValueError(UNUSUAL)
        _rewrite(lines, found[0], path, value)
    return "".join(lines)


def _rewrite(lines: list[str], statement: Statement, path: SettingPath, value: Any) -> None:
    """Write a statement with another value, or another one in its inline table."""
    inner = path[len(statement.path) :]
    if inner:
        table = {"": copy.deepcopy(statement.value)}
        change_value(table, ("", *inner), value)
        value = table[""]
    ending = lines[statement.end - 1]
    comment = find_comment(ending)
    ended = "\n" if ending.endswith("\n") else ""
    lines[statement.start : statement.end] = [f"{statement.key}= {write_toml(value)}{comment}{ended}"]


def _delete(lines: list[str], start: int, end: int) -> None:
    """Delete lines, and the blank one before them if it separates nothing any more."""
    del lines[start:end]
    if start and not lines[start - 1].strip() and not (start < len(lines) and lines[start].strip()):
        del lines[start - 1]


def _scan(lines: Sequence[str]) -> Iterator[Statement]:
    """The statements of a file. Raises: ValueError."""
    table: SettingPath = ()
    at = 0
    while at < len(lines):
        first = lines[at].strip()
        if not first or first.startswith("#"):
            at += 1
            continue
        end, values = _parse_statement(lines, at)
        if first.startswith("["):
            table = tuple(_list_names(values))
            yield Statement(at, end, table)
        else:
            key = _find_key(lines[at])
            path = _list_names(values)[: _count_parts(key)]
            value = values
            for name in path:
                value = value[name]
            yield Statement(at, end, (*table, *path), key, value)
        at = end


def _parse_statement(lines: Sequence[str], start: int) -> tuple[int, Any]:
    """The statement that starts at a line: the line behind it, and its values. It has as few lines as can be parsed."""
    for end in range(start + 1, len(lines) + 1):
        try:
            return end, tomllib.loads("".join(lines[start:end]))
        except tomllib.TOMLDecodeError:
            continue
    raise ValueError(UNUSUAL)


def _list_names(values: Any) -> list[str]:
    names = []
    while isinstance(values, dict) and values:
        name, values = next(iter(values.items()))
        names.append(name)
    return [*names, ITEM] if isinstance(values, list) and values == [{}] else names


def _find_key(line: str) -> str:
    """The text before the equals sign, which may be quoted and have several parts."""
    at = 0
    while (part := KEY.match(line, at)) and line[part.end() : part.end() + 1] == ".":
        at = part.end() + 1
    if part is None:
        raise ValueError(UNUSUAL)
    return line[: part.end()]


def _count_parts(key: str) -> int:
    return len(KEY.findall(key))
