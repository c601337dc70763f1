"""Nested elements as a value: ``<file><path>a</path></file>`` is ``{"file": {"path": "a"}}``."""

from __future__ import annotations

import re

from toolglot.core.lenient_json import MAX_DEPTH, Value
from toolglot.core.schema.coerce import AttributedText
from toolglot.dialects.codecs.attributes import decode_entities

_PREFIX = re.compile(r"\]<\]\w+\[>\[")
_ATTRIBUTE = re.compile(r"""\s+([\w:.\-]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')""")
_OPEN = re.compile(r"""\s*<([\w:.\-]+)((?:\s+[\w:.\-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(/?)>""")


def parse_elements(text: str) -> Value | None:
    """Parse nested elements, with leaves as text; None if the text is not all elements.

    Repeated children of one name become a list. An element whose content is not all elements is text. Attributes become
    members next to the children of their element; a text with attributes is ``AttributedText``. Whitespace around text
    is layout, unless the tags carry a prefix: these are written without layout.
    """
    plain, prefixes = _PREFIX.subn("", text)
    return _children(plain, 0, prefixes > 0)


def _children(text: str, depth: int, verbatim: bool) -> dict[str, Value] | None:
    found: dict[str, Value] = {}
    pos = 0
    while (opener := _OPEN.match(text, pos)) is not None:
        name, attributes = opener[1], _read_attributes(opener[2])
        pos = opener.end()
        inner = ""
        if not opener[3]:
            end = _closer(text, name, pos)
            if end < 0 or depth > MAX_DEPTH:
                return None
            inner, pos = text[pos:end], end + len(name) + 3
        if attributes is None:
            return None
        children = _children(inner, depth + 1, verbatim)
        _put(found, name, _element(children, inner if verbatim else inner.strip(), attributes))
    if text[pos:].strip():
        return None
    return {name: _share_names(value) if isinstance(value, list) else value for name, value in found.items()}


def _share_names(items: list[Value]) -> list[Value]:
    """Give every text in a list the attribute names of its siblings, which it might have had too."""
    names = frozenset(name for item in items if isinstance(item, AttributedText) for name in item.names)
    if not names:
        return items
    return [_name_attributes(item, names) if isinstance(item, str) else item for item in items]


def _name_attributes(text: str, names: frozenset[str]) -> AttributedText:
    return AttributedText(text, text.attributes if isinstance(text, AttributedText) else {}, names)


def _read_attributes(written: str) -> dict[str, str] | None:
    """The attributes of a tag; None if one is given twice."""
    pairs = [(found[1], found[2] if found[3] is None else found[3]) for found in _ATTRIBUTE.finditer(written)]
    attributes = {name: decode_entities(value) for name, value in pairs}
    return attributes if len(attributes) == len(pairs) else None


def _element(children: dict[str, Value] | None, inner: str, attributes: dict[str, str]) -> Value:
    if not attributes:
        return children or inner
    if children is not None and not attributes.keys() & children.keys():
        return {**attributes, **children}
    return AttributedText(inner, attributes, frozenset(attributes))


def _closer(text: str, name: str, pos: int) -> int:
    """The position of the closing tag, counting nested elements of the same name; -1 if there is none."""
    depth = 1
    for tag in re.compile(rf"<(/?){re.escape(name)}(?:\s[^<>]*(?<!/))?>").finditer(text, pos):
        depth += -1 if tag[1] else 1
        if not depth:
            return tag.start()
    return -1


def _put(parent: dict[str, Value], name: str, value: Value) -> None:
    given = parent.get(name)
    if name not in parent:
        parent[name] = value
    elif isinstance(given, list):
        given.append(value)
    else:
        parent[name] = [given, value]
