"""Nested elements as a value: ``<file><path>a</path></file>`` is ``{"file": {"path": "a"}}``."""

from __future__ import annotations

import re

from toolglot.jsontext import MAX_DEPTH, Value

_TAG = re.compile(r"(?:\]<\]\w+\[>\[)?<(/?)([\w:.\-]+)>")


def parse_elements(text: str) -> Value | None:
    """The value that nested elements stand for, its leaves as text; None when they do not nest properly.

    Children of one name several times are a list. Text beside elements has no place and makes it None.
    """
    tree = _Tree(text)
    if all(tree.step(tag) for tag in _TAG.finditer(text)) and len(tree.stack) == 1 and not text[tree.pos :].strip():
        return tree.stack[0][1]
    return None


class _Tree:
    """Elements while they are put together."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.stack: list[tuple[str, dict[str, Value]]] = [("", {})]
        self.pos = 0

    def step(self, tag: re.Match[str]) -> bool:
        between = self.text[self.pos : tag.start()]
        self.pos = tag.end()
        return self.close(tag[2], between) if tag[1] else self.open(tag[2], between)

    def open(self, name: str, between: str) -> bool:
        self.stack.append((name, {}))
        return not between.strip() and len(self.stack) <= MAX_DEPTH

    def close(self, name: str, between: str) -> bool:
        if len(self.stack) == 1 or self.stack[-1][0] != name:
            return False
        _, children = self.stack.pop()
        self.put(name, children or between.strip())
        return not (children and between.strip())

    def put(self, name: str, value: Value) -> None:
        parent = self.stack[-1][1]
        given = parent.get(name)
        if name not in parent:
            parent[name] = value
        elif isinstance(given, list):
            given.append(value)
        else:
            parent[name] = [given, value]
