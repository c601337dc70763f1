"""Nested elements as a value: ``<file><path>a</path></file>`` is ``{"file": {"path": "a"}}``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolglot.core.lenient_json import MAX_DEPTH, Value
from toolglot.core.schema.coerce import AttributedText
from toolglot.dialects.codecs.attributes import decode_entities

_PREFIX = re.compile(r"\]<\]\w+\[>\[")
"""What some dialects write before each tag."""
_ATTRIBUTE = re.compile(r"""(?<!\s)\s++([\w:.\-]++)\s*+=\s*+(?:"([^"<]*)"|'([^'<]*)')""")
_TAG = r"""<([\w:.\-]+)((?:\s+[\w:.\-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(/?)>"""
_OPEN = re.compile(rf"\s*{_TAG}")
_PREFIXED_OPEN = re.compile(rf"\s*{_PREFIX.pattern}{_TAG}")


def read_elements(text: str) -> Iterator[Value]:
    """Parse nested elements, with leaves as text; nothing if the text is not all elements.

    Repeated children of one name become a list. An element whose content is not all elements is text. Attributes become
    members next to the children of their element; a text with attributes is ``AttributedText``. Whitespace around text
    is layout, unless the tags carry a prefix: these are written without layout, and tags without it are text. A second
    reading takes them for elements whose prefix is missing.
    """
    plain, prefixes = _PREFIX.subn("", text)
    if prefixes and (found := _children(text, 0, True, _PREFIXED_OPEN)) is not None:
        yield found
    if (found := _children(plain, 0, prefixes > 0, _OPEN)) is not None:
        yield found


def _children(text: str, depth: int, verbatim: bool, opening: re.Pattern[str]) -> dict[str, Value] | None:
    found: dict[str, Value] = {}
    pos = 0
    while (opener := opening.match(text, pos)) is not None:
        name, attributes = opener[1], _read_attributes(opener[2])
        pos = opener.end()
        inner = ""
        if not opener[3]:
            closer = _find_closer(text, name, pos, _PREFIX.pattern if opening is _PREFIXED_OPEN else "")
            if closer is None or depth > MAX_DEPTH:
                return None
            inner, pos = text[pos : closer.start()], closer.end()
        if attributes is None:
            return None
        children = _children(inner, depth + 1, verbatim, opening)
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


def _find_closer(text: str, name: str, pos: int, prefix: str) -> re.Match[str] | None:
    """The closing tag, counting nested elements of the same name; None if there is none."""
    depth = 1
    for tag in re.compile(rf"{prefix}<(/?){re.escape(name)}(?:\s[^<>]*(?<!/))?>").finditer(text, pos):
        depth += -1 if tag[1] else 1
        if not depth:
            return tag
    return None


def _put(parent: dict[str, Value], name: str, value: Value) -> None:
    given = parent.get(name)
    if name not in parent:
        parent[name] = value
    elif isinstance(given, list):
        given.append(value)
    else:
        parent[name] = [given, value]
