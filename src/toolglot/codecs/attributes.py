"""Arguments in the tag itself: ``<invoke name="read" path="a.py"/>``, ``<read path="a.py"/>``."""

from __future__ import annotations

import re
from html import unescape

from toolglot.codecs.gathering import parse_object
from toolglot.codecs.members import ENVELOPES
from toolglot.draft import Draft
from toolglot.pattern import Match
from toolglot.schema import read_text

_ATTRIBUTE = re.compile(r"""([\w.\-:$]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")

_ABOUT_THE_CALL = frozenset(("id", "call_id", "tool_call_id", "index", "type", "string", "status", "xmlns"))
"""Attributes that tell of the call and not of what the tool is to do."""


def take_attributes(draft: Draft, header: Match, certain: bool) -> bool:
    """Add what stands in the header; False if that is no call, because nothing does that the tool has asked for."""
    written = header.groupdict().get("attributes")
    if not written or "=" not in written:
        return certain
    for found in _ATTRIBUTE.finditer(written):
        key, value = found[1], unescape(found[2] if found[3] is None else found[3])
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
