"""Nested elements as a value: ``<file><path>a</path></file>`` is ``{"file": {"path": "a"}}``."""

from __future__ import annotations

import re

from toolglot.jsontext import MAX_DEPTH, Value

_PREFIX = re.compile(r"\]<\]\w+\[>\[")
_OPEN = re.compile(r"\s*<([\w:.\-]+)>")


def parse_elements(text: str) -> Value | None:
    """The value that nested elements stand for, its leaves as text; None when the text is not all elements.

    Children of one name several times are a list. What is not all elements inside an element is its text.
    """
    return _children(_PREFIX.sub("", text), 0)


def _children(text: str, depth: int) -> dict[str, Value] | None:
    found: dict[str, Value] = {}
    pos = 0
    while (opener := _OPEN.match(text, pos)) is not None:
        end = _closer(text, opener[1], opener.end())
        if end < 0 or depth > MAX_DEPTH:
            return None
        inner = text[opener.end() : end]
        _put(found, opener[1], _children(inner, depth + 1) or inner.strip())
        pos = end + len(opener[1]) + 3
    return None if text[pos:].strip() else found


def _closer(text: str, name: str, pos: int) -> int:
    """Where the element of that name closes, elements of the same name inside it counted; -1 if it does not."""
    depth = 1
    for tag in re.finditer(f"<(/?){re.escape(name)}>", text[pos:]):
        depth += -1 if tag[1] else 1
        if not depth:
            return pos + tag.start()
    return -1


def _put(parent: dict[str, Value], name: str, value: Value) -> None:
    given = parent.get(name)
    if name not in parent:
        parent[name] = value
    elif isinstance(given, list):
        given.append(value)
    else:
        parent[name] = [given, value]
