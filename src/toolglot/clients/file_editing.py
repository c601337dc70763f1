"""Merges settings into the configuration files of clients, which people also edit by hand.

Strategy. A file is edited as text, so that comments, order and layout stay. The editors handle the usual layouts only.
Therefore the result is parsed and compared with the merged values: a file that is laid out in another way is refused
and never damaged.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from toolglot.clients.json_editing import edit_json, parse_json

NAME: Final = "name"
"""The member that identifies an object in a list."""
INDENT: Final = "  "
COMMENT: Final = re.compile(r"[ \t]+#[^\"'\n]*(?=\n?\Z)")
"""A comment at the end of a line."""


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
    edited = FORMATS[kind][1](text.removeprefix("\ufeff").replace("\r\n", "\n"), changes)
    if parse_text(edited, kind) != after:
        raise ValueError("its layout is unusual")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    return mark + (edited.replace("\n", "\r\n") if "\r\n" in text else edited)


def format_settings(changes: Mapping[str, Any], kind: str) -> str:
    """A whole file with these settings."""
    return FORMATS[kind][1]("", changes)


def parse_text(text: str, kind: str) -> Any:
    """The values of a file. Raises: ValueError."""
    return FORMATS[kind][0](text.removeprefix("\ufeff").replace("\r\n", "\n"))


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


# TOML


def _edit_toml(text: str, changes: Mapping[str, Any]) -> str:
    """Set keys at the top level and in tables; a table of a table is written with its dotted name."""
    lines = text.splitlines(keepends=True)
    for table, values in _list_tables(changes):
        header = f"[{table}]"
        first = next((at + 1 for at, line in enumerate(lines) if line.split("#")[0].strip() == header), 0)
        if table and not first:
            if lines and lines[-1].strip():
                _end_line(lines)
                lines.append("\n")
            lines.append(f"{header}\n")
            first = len(lines)
        for key, value in values.items():
            last = next((at for at in range(first, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))
            _set_line(lines, rf"\s*{re.escape(key)}\s*=", f"{key} = {_write_toml(value)}", range(first, last))
    return "".join(lines)


def _list_tables(changes: Mapping[str, Any], name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    own = {key: value for key, value in changes.items() if not isinstance(value, Mapping)}
    if own:
        yield name, own
    for key, value in changes.items():
        if isinstance(value, Mapping):
            yield from _list_tables(value, f"{name}.{key}".lstrip("."))


def _write_toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _set_line(lines: list[str], pattern: str, new: str, within: range) -> None:
    """Replace the line that matches the pattern. If there is none, insert one behind the last line that is neither
    blank nor a comment, or at the start."""
    found = next((at for at in within if re.match(pattern, lines[at])), None)
    if found is not None:
        comment = COMMENT.search(lines[found])
        lines[found] = new + (comment.group() if comment else "") + "\n"
        return
    at = max((at + 1 for at in within if lines[at].split("#")[0].strip()), default=within.start)
    _end_line(lines, at)
    lines.insert(at, new + "\n")


def _end_line(lines: list[str], at: int | None = None) -> None:
    """Add the line break that the line before this place may lack."""
    last = (len(lines) if at is None else at) - 1
    if last >= 0 and not lines[last].endswith("\n"):
        lines[last] += "\n"


# YAML: scalars at the top level, and lists of named objects


def _parse_yaml(text: str) -> Any:
    import yaml  # imported only here: it is slow to load

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"it is not YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(found, dict | None):
        raise ValueError("it is not a YAML mapping")
    return found or {}


def _edit_yaml(text: str, changes: Mapping[str, Any]) -> str:
    lines = text.splitlines(keepends=True)
    for key, value in changes.items():
        at = next((at for at, line in enumerate(lines) if re.match(rf"{re.escape(key)}\s*:", line)), None)
        if not isinstance(value, list):
            _set_line(lines, rf"{re.escape(key)}\s*:", f"{key}: {json.dumps(value)}", range(len(lines)))
        elif at is None:
            _end_line(lines)
            lines += [f"{key}:\n", *_write_items(value, INDENT)]
        else:
            lines[at] = re.sub(r":\s*\[\s*\]", ":", lines[at])
            _end_line(lines, at + 1)
            _replace_items(lines, at + 1, value)
    return "".join(lines)


def _replace_items(lines: list[str], start: int, items: list[Mapping[str, Any]]) -> None:
    """Replace the items of the same names in the list that begins at a line; insert the others there."""
    found = next((re.match(r"(\s*)- ", line) for line in lines[start:] if line.strip(" \n") and "#" not in line), None)
    indent = found[1] if found else INDENT
    for item in reversed(items):
        named = re.compile(rf"{indent}- {NAME}: *[\"']?{re.escape(item[NAME])}[\"']?\s*$")
        first = next((at for at in range(start, len(lines)) if named.match(lines[at])), None)
        last = first = start if first is None else first
        if last < len(lines) and named.match(lines[last]):
            last += 1
            while last < len(lines) and lines[last].startswith(f"{indent}  "):
                last += 1
        lines[first:last] = _write_items([item], indent)


def _write_items(items: list[Mapping[str, Any]], indent: str) -> Iterator[str]:
    for item in items:
        for at, (key, value) in enumerate(item.items()):
            yield f"{indent}{'  ' if at else '- '}{key}: {json.dumps(value)}\n"


# Variables, one to a line


def _parse_variables(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#"))
    return {
        name.strip().removeprefix("export ").strip(): _unquote(COMMENT.sub("", value).strip())
        for name, _, value in pairs
    }


def _unquote(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _edit_variables(text: str, changes: Mapping[str, Any]) -> str:
    lines = text.splitlines(keepends=True)
    for name, value in changes.items():
        _set_line(lines, rf"\s*(?:export\s+)?{re.escape(name)}\s*=", f"{name}={value}", range(len(lines)))
    return "".join(lines)


Parse = Callable[[str], Any]
Edit = Callable[[str, Mapping[str, Any]], str]

FORMATS: Final[Mapping[str, tuple[Parse, Edit]]] = {
    "json": (parse_json, edit_json),
    "toml": (tomllib.loads, _edit_toml),
    "yaml": (_parse_yaml, _edit_yaml),
    "env": (_parse_variables, _edit_variables),
}
"""By format: how a file is parsed and edited. Both raise ValueError."""
