"""Continues arguments of which a part was sent: the rest of a corrected call, if it begins like the part.

Strategy. Text that was sent cannot be retracted. The part is split into its complete members and its open end. The
corrected arguments fit if they have every complete member with the same value, and a member that continues the open
end. The order of members has no meaning in JSON, so the remaining members follow in the order of the corrected call.
"""

from __future__ import annotations

import json
from json.decoder import JSONDecodeError
from typing import Final

import msgspec

from toolglot.core.identity import canonical_json

_WHITESPACE: Final = " \t\r\n"
_DECODER: Final = json.JSONDecoder(strict=False)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def extend_arguments(sent: str, corrected: str) -> str | None:
    """The text to send after ``sent``, the beginning of a JSON object, so that both together equal ``corrected``.

    Returns: the rest, or None if ``corrected`` contradicts what was sent or is no JSON object.
    """
    try:
        members = {key: bytes(raw).decode() for key, raw in _MEMBERS.decode(corrected).items()}
        return _extend(sent.lstrip(_WHITESPACE), members)
    except (ValueError, RecursionError):  # also what msgspec raises
        return None


def _extend(sent: str, members: dict[str, str]) -> str | None:
    """As ``extend_arguments``, with the members of the corrected arguments as JSON text."""
    if not sent.startswith("{"):
        return None if sent else "{" + _join(members)
    at = _skip_whitespace(sent, 1)
    if sent[at : at + 1] == "}":
        return _close(sent[at:], members)
    while at < len(sent):
        key, after = _read_string(sent, at)
        if key is None:
            return _complete_key(sent[at:], members)
        raw = members.pop(key, None)
        if raw is None:
            return None
        end = _pass_value(sent, after, raw)
        if end is None:
            return _complete_member(sent[after:], raw, members)
        at = _skip_whitespace(sent, end)
        if sent[at : at + 1] != "," or not members:
            return _close(sent[at:], members)
        at = _skip_whitespace(sent, at + 1)
    return _join(members)


def _close(part: str, others: dict[str, str]) -> str | None:
    """The rest of the arguments behind a complete member; ``part`` is what was sent behind it."""
    if not part:
        return _append(others)
    return "" if part.rstrip(_WHITESPACE) == "}" and not others else None


def _pass_value(sent: str, at: int, raw: str) -> int | None:
    """The end of the value behind a key, if it is complete and the expected one; ``at`` is the end of the key."""
    colon = _skip_whitespace(sent, at)
    start = _skip_whitespace(sent, colon + 1)
    end = _find_end(sent, start) if sent[colon : colon + 1] == ":" else None
    if end is None or canonical_json(sent[start:end], exact=True) != canonical_json(raw, exact=True):
        return None
    return end


def _complete_member(part: str, raw: str, others: dict[str, str]) -> str | None:
    """The rest of the arguments behind a key and the beginning of its value."""
    part = part.lstrip(_WHITESPACE)
    if not part:
        return f":{raw}{_append(others)}"
    rest = _complete_value(part[1:].lstrip(_WHITESPACE), raw) if part[0] == ":" else None
    return None if rest is None else rest + _append(others)


def _join(members: dict[str, str]) -> str:
    return ",".join(f"{json.dumps(key, ensure_ascii=False)}:{raw}" for key, raw in members.items()) + "}"


def _append(members: dict[str, str]) -> str:
    return ("," if members else "") + _join(members)


def _skip_whitespace(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WHITESPACE:
        at += 1
    return at


def _read_string(text: str, at: int) -> tuple[str | None, int]:
    """The string that begins here and its end; None if it is not complete."""
    try:
        found, end = _DECODER.raw_decode(text, at)
    except JSONDecodeError:
        return None, at
    return (found, end) if isinstance(found, str) else (None, at)


def _find_end(text: str, start: int) -> int | None:
    """The end of the value that begins here; None if it may go on."""
    try:
        end = _DECODER.raw_decode(text, start)[1]
    except JSONDecodeError:
        return None
    open_number = end == len(text) and text[end - 1] not in '"}]el'
    return None if open_number else end


def _complete_key(part: str, members: dict[str, str]) -> str | None:
    """The rest of the arguments after the beginning of a key."""
    for key, raw in members.items():
        whole = json.dumps(key, ensure_ascii=False)
        if whole.startswith(part):
            others = {name: value for name, value in members.items() if name != key}
            return f"{whole[len(part) :]}:{raw}{_append(others)}"
    return None


def _complete_value(part: str, raw: str) -> str | None:
    """The rest of a value after its beginning."""
    if raw.startswith(part):
        return raw[len(part) :]
    if not (part.startswith('"') and raw.startswith('"')):
        return None
    (begun, end), whole = _read_string(part + '"', 0), json.loads(raw)
    if begun is None or end <= len(part) or not whole.startswith(begun):  # a closed text is another value
        return None
    return json.dumps(whole[len(begun) :], ensure_ascii=False)[1:]
