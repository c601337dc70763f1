"""Arguments in the tag itself, or written as if: ``<invoke name="read" path="a.py"/>``, ``read path="a.py"``."""

from __future__ import annotations

import re
from html import unescape

from toolglot.core.events import Reason
from toolglot.core.schema.toolset import coerce_text
from toolglot.dialects.codecs.buffered_values import parse_object
from toolglot.dialects.codecs.object_members import ENVELOPES
from toolglot.dialects.partial_call import PartialCall
from toolglot.dialects.patterns import Match

_ATTRIBUTE = re.compile(r"""(?<![\w.\-:$])([\w.\-:$]++)\s*+=\s*+(?:"([^"]*)"|'([^']*)'|([^\s"'<>{}]++))(?=\s|\Z)""")
_PAIRS = re.compile(rf"""(?:\s*+{_ATTRIBUTE.pattern})++\s*+""")
"""Nothing but attributes: a quote inside a value leaves a remainder, and then the ends of the values are unknown."""

_ASSIGNED = re.compile(r"(?<![\w.\-:$])([\w.\-:$]++)\s*+=")

_ABOUT_THE_CALL = frozenset(("id", "call_id", "tool_call_id", "index", "type", "string", "status", "xmlns"))
"""Attributes that describe the call and are no arguments."""

_TYPES = frozenset(("string", "integer", "number", "boolean", "array", "object"))

_KEY = re.compile(r"[\w.\-$]+")
_LINE_VALUE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(.*?\S))\s*""")
_ENTITY = re.compile(r"&(?:#\w{1,8}|[A-Za-z]\w{1,30});")
"""Only with the semicolon at the end: ``&`` also separates the parameters of a URL."""


def decode_entities(text: str) -> str:
    """The text with its entities decoded."""
    return _ENTITY.sub(lambda found: unescape(found[0]), text)


def _value(found: Match, *groups: int) -> str:
    return next(value for value in found.group(*groups) if value is not None)


def _read_attributes(text: str) -> list[tuple[str, str]] | None:
    if not _PAIRS.fullmatch(text):
        return None
    return [(found[1], decode_entities(_value(found, 2, 3, 4))) for found in _ATTRIBUTE.finditer(text)]


def _read_lines(text: str) -> list[tuple[str, str]] | None:
    pairs = []
    for line in text.strip().splitlines():
        key, _, written = line.partition(":")
        value = _LINE_VALUE.fullmatch(written)
        if value is None or not _KEY.fullmatch(key.strip()):
            return None
        pairs.append((key.strip(), _value(value, 1, 2, 3)))
    return pairs


def read_pairs(text: str) -> dict[str, str] | None:
    """Parse a text that is nothing but ``key="value"`` pairs, or lines of ``key: value``; None if it is not.

    None too if a key occurs twice: the second may be a line of the value before it.
    """
    pairs = _read_attributes(text.rstrip().removesuffix(">").removesuffix("/")) or _read_lines(text)
    found = dict(pairs or ())
    return found if pairs and len(found) == len(pairs) else None


def take_attributes(call: PartialCall, header: Match, certain: bool) -> bool:
    """Add the arguments in the header; False if this is no call, because the header has no declared argument."""
    written = header.groupdict().get("attributes")
    if not written or "=" not in written:
        return certain
    if header[0].endswith(f"{written}>"):
        written = written.removesuffix("/")
    attributes = _read_attributes(written)
    if attributes is None:
        if any(call.declares(found[1]) for found in _ASSIGNED.finditer(written)):
            call.add_defect(
                Reason.MALFORMED, "call", "attributes that cannot be told apart", "one parameter for each value"
            )
        return certain
    if _declares_types(call, attributes) or not all([_take(call, key, value, certain) for key, value in attributes]):
        return False
    if call.keys:
        call.repair("arguments_in_tag")
    return certain or bool(call.keys)


def _declares_types(call: PartialCall, attributes: list[tuple[str, str]]) -> bool:
    """Whether the attributes are a tool definition (types) and no arguments."""
    given = [value for key, value in attributes if call.declares(key) or key not in _ABOUT_THE_CALL]
    return bool(given) and _TYPES.issuperset(given)


def _take(call: PartialCall, key: str, value: str, certain: bool) -> bool:
    """Add one attribute; False if only a certain call may have it."""
    if call.declares(key):
        call.add(key, coerce_text(value, call.parameter_type(key), f"argument {key}"))
    elif key in ENVELOPES and (members := parse_object(value)) is not None:
        call.add_members(members.value)
    elif not certain or key in _ABOUT_THE_CALL:
        return certain
    elif call.is_open_ended:
        call.add(key, coerce_text(value, call.parameter_type(key), f"argument {key}"))
    else:
        call.add_defect(Reason.MALFORMED, "call", f'the attribute "{key}"', "arguments that the tool has")
    return True
