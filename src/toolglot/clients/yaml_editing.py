"""Edits YAML files that people write: everything that does not change stays as it is, comments included.

Strategy. ``merge_yaml`` sets scalars at the top level and named objects of lists, line by line; its caller compares the
values. ``change_yaml`` asks the YAML library for the positions of all nodes, so that any layout will do: whole lines
are removed in block style, and a collection in flow style is written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from toolglot.clients.line_editing import end_line, set_line
from toolglot.clients.setting_paths import NAME, REMOVED, UNUSUAL, SettingPath, change_value

if TYPE_CHECKING:
    import yaml

INDENT: Final = "  "
PLAIN: Final = re.compile(r"[A-Za-z0-9_][\w./:-]*", re.ASCII)
ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


def parse_yaml(text: str) -> Any:
    """The mapping of a YAML text. Raises: ValueError."""
    import yaml  # imported only here: it is slow to load

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"it is not YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(found, dict | None):
        raise ValueError("it is not a YAML mapping")
    return found or {}


# Merging: scalars at the top level, and lists of named objects


def merge_yaml(text: str, changes: Mapping[str, Any]) -> str:
    lines = text.splitlines(keepends=True)
    for key, value in changes.items():
        at = next((at for at, line in enumerate(lines) if re.match(rf"{re.escape(key)}\s*:", line)), None)
        if not isinstance(value, list):
            set_line(lines, rf"{re.escape(key)}\s*:", f"{key}: {json.dumps(value)}", range(len(lines)))
        elif at is None:
            end_line(lines)
            lines += [f"{key}:\n", *_write_items(value, INDENT)]
        else:
            lines[at] = re.sub(r":\s*\[\s*\]", ":", lines[at])
            end_line(lines, at + 1)
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


# Changing what is there


def change_yaml(text: str, changes: Mapping[SettingPath, Any]) -> str:
    """Replace or remove (``REMOVED``) the values at paths that the file has. Raises: ValueError."""
    import yaml

    for path, value in changes.items():
        try:
            root = yaml.compose(text, yaml.SafeLoader)
        except yaml.YAMLError:  # a change has broken it, such as that of an anchor
            root = None
        if root is None:
            raise ValueError(UNUSUAL)
        text = _change_node(text, root, path, value)
    return text


def _change_node(text: str, node: yaml.Node, path: SettingPath, value: Any, key_end: int = 0) -> str:
    """Change what is at a path below a node; ``key_end`` is where the key ends whose value the node is."""
    start = node.start_mark.index
    if getattr(node, "flow_style", False):
        holder = {"": parse_yaml(f"v: {text[start : node.end_mark.index]}")["v"]}
        change_value(holder, ("", *path), value)
        return text[:start] + _write(holder[""]) + text[node.end_mark.index :]
    entry, held = _find_entry(node, path[0])
    if len(path) > 1:
        return _change_node(text, held, path[1:], value, entry.end_mark.index)
    end = _find_end(held)
    if value is not REMOVED:
        return text[: held.start_mark.index] + _write(value) + text[end:]
    rest = _delete_lines(text, entry.start_mark.index, end)
    if len(node.value) > 1 or not key_end:
        return rest
    colon = rest.index(":", key_end) + 1
    return f"{rest[:colon]} {'[]' if entry is held else '{}'}{rest[colon:]}"


def _write(value: Any) -> str:
    """A value on one line: JSON is YAML, but for characters that YAML does not allow. Plain words have no quotes."""
    if isinstance(value, str) and PLAIN.fullmatch(value) and parse_yaml(f"v: {value}")["v"] == value:
        return value
    return ESCAPED.sub(lambda found: f"\\U{ord(found[0]):08x}", json.dumps(value, ensure_ascii=False))


def _find_entry(node: yaml.Node, key: str) -> tuple[yaml.Node, yaml.Node]:
    """What begins an entry of a collection, and its value: key and value, or an item twice."""
    for entry in node.value if isinstance(node.value, list) else ():
        if isinstance(entry, tuple):
            if entry[0].value == key:
                return entry[0], entry[1]
        elif any(pair[0].value == NAME and pair[1].value == key for pair in entry.value if isinstance(pair, tuple)):
            return entry, entry
    raise ValueError(UNUSUAL)


def _find_end(node: yaml.Node) -> int:
    """Where the last character of a node is; a block ends before the comments behind it."""
    if isinstance(node.value, list) and node.value and not getattr(node, "flow_style", False):
        last = node.value[-1]
        return _find_end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _delete_lines(text: str, start: int, end: int) -> str:
    """Delete the lines of a range of characters."""
    first = text.rfind("\n", 0, start) + 1
    at = end if text[end - 1 : end] == "\n" else text.find("\n", end) + 1
    return text[:first] + (text[at:] if at else "")
