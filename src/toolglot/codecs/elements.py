"""Nested elements as a value: ``<file><path>a</path></file>`` is ``{"file": {"path": "a"}}``."""

from __future__ import annotations

import re

from toolglot.jsontext import MAX_DEPTH, Value

_TAG = re.compile(r"(?:\]<\]\w+\[>\[)?<(/?)([\w:.\-]+)>")


def parse_elements(text: str) -> Value | None:
    """The value that nested elements stand for, its leaves as text; None when they do not nest properly.

    Children of one name several times are a list. Text beside elements has no place and makes it None.
    """
    stack: list[tuple[str, dict[str, Value]]] = [("", {})]
    leaf_start: int | None = None
    pos = 0
    for tag in _TAG.finditer(text):
        closing, name = tag[1], tag[2]
        if not closing:
            if text[pos : tag.start()].strip() or len(stack) > MAX_DEPTH:
                return None
            stack.append((name, {}))
            leaf_start = tag.end()
        else:
            if len(stack) == 1 or stack[-1][0] != name:
                return None
            _, children = stack.pop()
            if children and text[pos : tag.start()].strip():
                return None
            value: Value = children if children else text[leaf_start : tag.start()].strip()
            _put(stack[-1][1], name, value)
        pos = tag.end()
    if len(stack) != 1 or text[pos:].strip():
        return None
    return stack[0][1]


def _put(parent: dict[str, Value], name: str, value: Value) -> None:
    if name not in parent:
        parent[name] = value
        return
    given = parent[name]
    if isinstance(given, list):
        given.append(value)
    else:
        parent[name] = [given, value]
