"""Edits JSON files that people write: everything that does not change stays as it is, comments included.

Strategy. The text is scanned once for the positions of objects, members and values. A change replaces the characters of
one value, or inserts one member before the closing brace of its object. Comments and trailing commas are accepted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

SPACE: Final = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
SCALAR: Final = re.compile(r"[-+.\w]+")
INDENT: Final = "  "
MAX_DEPTH: Final = 100

Edit = tuple[int, int, str]
"""Start and end of the characters to replace, and what replaces them."""


@dataclass(slots=True)
class Node:
    """A value and where it is. ``members`` are those of an object; ``comma``: a comma follows its last member."""

    start: int
    end: int
    value: Any
    members: dict[str, Node] = field(default_factory=dict)
    comma: bool = False


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
            node.members[key.value] = member
            node.value[key.value] = member.value
            at, node.comma = self.pass_comma(member.end, "}")
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


def edit_json(text: str, changes: Mapping[str, Any]) -> str:
    """Merge changes into the object of a text: objects are merged, other values replaced. Raises: ValueError."""
    scanner = Scanner(text)
    if scanner.skip(0) == len(text):
        return text + format_value(changes, "") + "\n"
    root = scanner.scan()
    if not isinstance(root.value, dict):
        raise ValueError("it is not a JSON object")
    for start, end, inserted in sorted(_find_edits(text, root, changes), reverse=True):
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
