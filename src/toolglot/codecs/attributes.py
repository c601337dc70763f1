"""Arguments in the tag itself, or written as if: ``<invoke name="read" path="a.py"/>``, ``read path="a.py"``."""

from __future__ import annotations

import re
from html import unescape

from toolglot.codecs.gathering import parse_object
from toolglot.codecs.members import ENVELOPES
from toolglot.draft import Draft
from toolglot.pattern import Match
from toolglot.schema import read_text

_ATTRIBUTE = re.compile(r"""([\w.\-:$]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+))""")

_ABOUT_THE_CALL = frozenset(("id", "call_id", "tool_call_id", "index", "type", "string", "status", "xmlns"))
"""Attributes that tell of the call and not of what the tool is to do."""


_PAIRS = re.compile(rf"""(?:\s*{_ATTRIBUTE.pattern})+\s*/?>?""")
_KEY = re.compile(r"[\w.\-$]+")


def _split(found: Match) -> tuple[str, str]:
    return found[1], next(value for value in found.group(2, 3, 4) if value is not None)


def read_pairs(text: str) -> dict[str, str] | None:
    """Keys and values of a text that is nothing but ``key="value"`` pairs, or lines of ``key: value``."""
    if _PAIRS.fullmatch(text.rstrip()):
        return dict(map(_split, _ATTRIBUTE.finditer(text)))
    lines = [line.partition(":") for line in text.strip().splitlines()]
    if lines and all(_KEY.fullmatch(key.strip()) and value.strip() for key, _, value in lines):
        return {key.strip(): value.strip() for key, _, value in lines}
    return None


def take_attributes(draft: Draft, header: Match, certain: bool) -> bool:
    """Add what stands in the header; False if that is no call, because nothing does that the tool has asked for."""
    written = header.groupdict().get("attributes")
    if not written or "=" not in written:
        return certain
    for found in _ATTRIBUTE.finditer(written):
        key, value = _split(found)
        value = unescape(value)
        if draft.declares(key):
            draft.add(key, read_text(value, draft.shape(key), f"argument {key}"))
        elif key in ENVELOPES and (members := parse_object(value)) is not None:
            draft.add_members(members.value)
        elif not certain:
            return False
        elif key not in _ABOUT_THE_CALL:
            draft.add(key, read_text(value, draft.shape(key), f"argument {key}"))
    if draft.keys:
        draft.repair("arguments_in_tag")
    return certain or bool(draft.keys)
