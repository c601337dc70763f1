"""Edits JSON files that people write: everything that does not change stays as it is, comments included.

Strategy. The text is scanned once for the positions of objects, members and values. A change replaces the characters of
one value, inserts one member before the closing brace of its object, or removes one with its comma. Comments and
trailing commas are accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from toolglot.clients.setting_paths import REMOVED, UNUSUAL, SettingPath

SPACE: Final = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
SCALAR: Final = re.compile(r"[-+.\w]+")
INDENT: Final = "  "
MAX_DEPTH: Final = 100

Edit = tuple[int, int, str]
"""Start and end of the characters to replace, and what replaces them."""


class Node(Struct):
    """A value and where it is. ``members`` are those of an object; ``comma``: a comma follows its last member. A member
    begins at ``key_start``, and the comma behind it is at ``comma_at``, if there is one."""

    start: int
    end: int
    value: Any
    members: dict[str, Node] = field(default_factory=dict)
    comma: bool = False
    key_start: int = 0
    comma_at: int | None = None


class Scanner:
    """Finds the values of one text. Raises: ValueError if it is not JSON."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0

    def scan(self) -> Node:
        node = self.scan_value(self.skip(0))
        if self.skip(node.end) != len(self.text):
            raise self.fail(node.end)
        return node

    def skip(self, at: int) -> int:
        found = SPACE.match(self.text, at)
        return found.end() if found else at

    def fail(self, at: int) -> ValueError:
        return ValueError(f"line {self.text.count(chr(10), 0, at) + 1} is not JSON")

    def scan_value(self, at: int) -> Node:
        opening = self.text[at : at + 1]
        if opening not in ("{", "["):
            found = (STRING if opening == '"' else SCALAR).match(self.text, at)
            if found is None:
                raise self.fail(at)
            return Node(at, found.end(), self.load(found.group(), at))
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(at)
        node = self.scan_object(at) if opening == "{" else self.scan_array(at)
        self.depth -= 1
        return node

    def load(self, text: str, at: int) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            raise self.fail(at) from None

    def scan_object(self, start: int) -> Node:
        node, at = Node(start, start, {}), self.skip(start + 1)
        while self.text[at : at + 1] != "}":
            key = self.scan_value(at) if self.text[at : at + 1] == '"' else None
            at = self.skip(key.end) if key else at
            if key is None or self.text[at : at + 1] != ":":
                raise self.fail(at)
            member = self.scan_value(self.skip(at + 1))
            member.key_start = key.start
            node.members[key.value] = member
            node.value[key.value] = member.value
            at, node.comma = self.pass_comma(member.end, "}")
            member.comma_at = self.skip(member.end) if node.comma else None
        node.end = at + 1
        return node

    def scan_array(self, start: int) -> Node:
        node, at = Node(start, start, []), self.skip(start + 1)
        while self.text[at : at + 1] != "]":
            item = self.scan_value(at)
            node.value.append(item.value)
            at, _ = self.pass_comma(item.end, "]")
        node.end = at + 1
        return node

    def pass_comma(self, at: int, closing: str) -> tuple[int, bool]:
        at = self.skip(at)
        if self.text[at : at + 1] == ",":
            return self.skip(at + 1), True
        if self.text[at : at + 1] != closing:
            raise self.fail(at)
        return at, False


def parse_json(text: str) -> Any:
    """The value of a JSON text with comments; an empty object if it has no value. Raises: ValueError."""
    scanner = Scanner(text)
    return {} if scanner.skip(0) == len(text) else scanner.scan().value


def merge_json(text: str, changes: Mapping[str, Any]) -> str:
    """Merge changes into the object of a text: objects are merged, other values replaced. Raises: ValueError."""
    scanner = Scanner(text)
    if scanner.skip(0) == len(text):
        return text + format_value(changes, "") + "\n"
    root = scanner.scan()
    if not isinstance(root.value, dict):
        raise ValueError("it is not a JSON object")
    return _apply(text, _find_edits(text, root, changes))


def _apply(text: str, edits: Iterable[Edit]) -> str:
    for start, end, inserted in sorted(edits, reverse=True):
        text = text[:start] + inserted + text[end:]
    return text


def _find_edits(text: str, node: Node, changes: Mapping[str, Any]) -> Iterator[Edit]:
    added = {}
    for key, value in changes.items():
        member = node.members.get(key)
        if member is None:
            added[key] = value
        elif isinstance(value, Mapping) and isinstance(member.value, dict):
            yield from _find_edits(text, member, value)
        elif member.value != value:
            yield member.start, member.end, format_value(value, _indent_at(text, member.start))
    if added:
        yield from _insert(text, node, added)


def _insert(text: str, node: Node, added: Mapping[str, Any]) -> Iterator[Edit]:
    """Insert members behind the last one; what a comment says about that one stays next to it."""
    last = max((member.end for member in node.members.values()), default=None)
    multiline = last is None or "\n" in text[node.start : node.end]
    outer = _indent_at(text, node.start)
    inner = _indent_at(text, last) if last is not None and multiline else outer + INDENT
    lines = [f"{json.dumps(key)}: {format_value(value, inner)}" for key, value in added.items()]
    between = f"\n{inner}" if multiline else " "
    at = node.start + len(text[node.start : node.end - 1].rstrip())
    inserted = between + f",{between}".join(lines)
    ending = f"\n{outer}" if "\n" not in text[at : node.end] and multiline else ""
    if last is not None and not node.comma:
        if last == at:
            inserted = "," + inserted
        else:
            yield last, last, ","
    yield at, at, inserted + ending


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def format_value(value: Any, indent: str) -> str:
    """A value over several lines, of which all but the first are indented."""
    return json.dumps(value, ensure_ascii=False, indent=len(INDENT)).replace("\n", f"\n{indent}")


# Changing what is there


def change_json(text: str, changes: Mapping[SettingPath, Any]) -> str:
    """Replace or remove (``REMOVED``) the values at paths that the text has. Raises: ValueError."""
    root = Scanner(text).scan()
    edits: list[Edit] = []
    removed: dict[SettingPath, list[str]] = {}
    for path, value in changes.items():
        member = _find_node(root, path)
        if value is REMOVED:
            removed.setdefault(path[:-1], []).append(path[-1])
        else:
            edits.append((member.start, member.end, format_value(value, _indent_at(text, member.start))))
    for path, keys in removed.items():
        edits += _remove(text, _find_node(root, path), keys)
    return _apply(text, edits)


def _find_node(node: Node, path: SettingPath) -> Node:
    for key in path:
        if key not in node.members:
            raise ValueError(UNUSUAL)
        node = node.members[key]
    return node


def _remove(text: str, node: Node, keys: list[str]) -> list[Edit]:
    """Remove members with their commas; the last one that stays has a comma only if the last one had."""
    members = sorted(node.members.items(), key=lambda item: item[1].start)
    kept = [member for key, member in members if key not in keys]
    gone = [member for key, member in members if key in keys]
    spans = [(member.key_start, member.end) for member in gone]
    commas = [member.comma_at for member in gone]
    if kept and not node.comma and gone[-1].start > kept[-1].start:
        commas.append(kept[-1].comma_at)
    spans += [(comma, comma + 1) for comma in commas if comma is not None]
    edits = [(*_widen(text, *span), "") for span in _join(text, spans)]
    emptied = not kept and not _apply(text[: node.end - 1], edits)[node.start + 1 :].strip()
    return [(node.start, node.end, "{}")] if emptied else edits


def _join(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges of characters that only white space separates."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and not text[joined[-1][1] : start].strip():
            start = joined.pop()[0]
        joined.append((start, end))
    return joined


def _widen(text: str, start: int, end: int) -> tuple[int, int]:
    """The range with the line that it leaves empty, or with the blanks behind a member."""
    line, rest = text.rfind("\n", 0, start) + 1, text[end:]
    blanks = len(rest) - len(rest.lstrip(" \t"))
    begins, ends = not text[line:start].strip(), rest[blanks : blanks + 1] == "\n"
    if begins and ends:
        return line, end + blanks + 1
    is_member = text[start] == '"' and (begins or text[end - 1] == ",")
    return start, end + (blanks if is_member and not ends else 0)
