"""Find the arguments in the text of a rejected call.

Strategy. The reader reads the text again with a schema that requires nothing and accepts any value, and its events hold
the arguments up to the place where the text ends. A text that it cannot read is searched for pairs of a declared key
and a complete value, in the notations that models use. A value that was cut off is never returned. Only the beginning
of a long text is read, so the work is bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from itertools import islice
from typing import Any, Final

from msgspec import Struct, field

from toolglot.core.events import CallArguments
from toolglot.core.lenient_json import JSON, PYTHON, NotJsonError, Number, Value, parse
from toolglot.core.schema.toolset import CompiledTool, CompiledTools
from toolglot.reading.reader import Reader

MAX_READ: Final = 1 << 16
"""Characters of a rejected call that are read."""
MAX_KEYS: Final = 64
"""Arguments that are searched for in a text that the reader cannot read."""

_SCANNER: Final = json.JSONDecoder(strict=False)
_SPACE: Final = re.compile(r"[\s,]*")
_COLON: Final = re.compile(r"\s*:\s*")
_MEMBER_END: Final = re.compile(r"\s*(?:[,}]|\Z|\"[\w.-]+\"\s*:)")
"""What follows a complete value; after anything else a quote that was not escaped has ended it."""
_VALUE_END: Final = re.compile(r"\s*[,})\]\s/>]")
_KEY: Final = r"[A-Za-z_][\w.-]{0,63}"
_PAIR: Final = re.compile(
    rf"<arg_key>\s{{0,9}}(?P<key>{_KEY})\s{{0,9}}</arg_key>\s{{0,9}}<(?P<pair>arg_value)>"
    rf"|<(?P<tag>[\w:]{{1,40}})(?:=|\s(?:name|key)=)[\"']?(?P<named>{_KEY})[\"']?[^<>\n]{{0,80}}>"
    rf"|<(?P<element>{_KEY})>"
    rf"|[\"'](?P<quoted>{_KEY})[\"']\s{{0,9}}:\s{{0,9}}"
    rf"|(?<![\w.-])(?P<assigned>{_KEY})\s?=\s?(?=[\"'\d\[{{TFNtfn-])"
    rf"|--(?P<flag>{_KEY})\s(?=[\"'\d\[{{TFNtfn-])"
)
"""A key in one of the notations of arguments, up to its value."""
_KEY_GROUPS: Final = ("key", "named", "element", "quoted", "assigned", "flag")
_QUOTED: Final = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'", re.DOTALL)
_BARE: Final = re.compile(r"-?\d[\w.+-]{0,40}|true|false|null|True|False|None")


class Salvage(Struct, frozen=True):
    """The complete arguments of a rejected call in the order of the model, and the key of a value that was cut off."""

    arguments: dict[str, Value] = field(default_factory=dict)
    cut: str = ""
    is_complete: bool = False
    """The whole call could be read."""


def salvage_arguments(
    raw: str, tool: CompiledTool, names: Collection[str] = (), keys: Collection[str] = (), native: bool = False
) -> Salvage:
    """Find the arguments of a rejected call.

    Parameters: ``raw`` is the text of the call or of its arguments, or only these if it is ``native``; ``tool`` is the
    tool that it calls or may mean; ``names`` are other names under which the text may call it, and ``keys`` the
    undeclared arguments that it is known to give.
    """
    raw = raw[:MAX_READ]
    wanted = (*islice(tool.parameters.properties, MAX_KEYS), *islice(keys, MAX_KEYS))
    found = read_members(raw) if native else _read_again(raw, tool, (tool.name, *names), wanted)
    if not (native or found.arguments or found.cut):
        found = _read_declared_members(raw, wanted)
    if found.is_complete or (found.arguments and (found.cut or native)):
        return found
    pairs = _search_pairs(raw, wanted, (tool.name, *names))
    arguments = found.arguments or {key: value for key, value in pairs.arguments.items() if key != found.cut}
    cut = next((key for key in (found.cut, pairs.cut) if key and key not in arguments), "")
    return Salvage(arguments, cut)


def read_members(text: str) -> Salvage:
    """Read the complete members of the JSON object that begins here. Text after the object is ignored."""
    try:
        whole = parse(text, JSON).value
        if isinstance(whole, dict):
            return Salvage(whole, is_complete=True)
    except (NotJsonError, RecursionError):
        pass
    members: dict[str, Value] = {}
    at = text.find("{") + 1
    while at and (key := _decode_at(text, _skip(_SPACE, text, at))) is not None:
        colon = _COLON.match(text, key.end)
        if colon is None or type(key.value) is not str:
            break
        member = _decode_at(text, colon.end())
        if (
            member is None
            or _MEMBER_END.match(text, member.end) is None
            or (isinstance(member.value, Number) and member.end == len(text))
        ):
            return Salvage(members, key.value)
        members[key.value] = member.value
        at = member.end
    return Salvage(members)


def _read_declared_members(text: str, keys: Collection[str]) -> Salvage:
    """A text that is nothing but the arguments of a call: a complete JSON object that has one of the keys."""
    found = read_members(text)
    return found if found.is_complete and not found.arguments.keys().isdisjoint(keys) else Salvage()


class _Decoded(Struct, frozen=True):
    value: Value
    end: int


def _decode_at(text: str, at: int) -> _Decoded | None:
    """The complete JSON value that begins here and its end; None if there is none."""
    try:
        end = _SCANNER.raw_decode(text, at)[1]
        return _Decoded(parse(text[at:end]).value, end)
    except (ValueError, RecursionError):
        return None


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found is not None else at


def _read_again(raw: str, tool: CompiledTool, names: Collection[str], keys: Collection[str]) -> Salvage:
    """Read the first call of the text, with a schema that every complete call fits. Its arguments are streamed as one
    JSON object, which is complete only if the call is."""
    reader = Reader(CompiledTools([_relax(name, tool, keys) for name in dict.fromkeys(names) if name.strip()]))
    fragments: list[str] = []
    for event in (*reader.feed(raw), *reader.close()):
        if isinstance(event, CallArguments) and event.index == 0:
            fragments.append(event.fragment)
    return read_members("".join(fragments))


def _relax(name: str, tool: CompiledTool, keys: Collection[str]) -> dict[str, Any]:
    """A definition that accepts any value for every argument; text stays text where the tool takes nothing else."""
    shapes = {key: tool.parameters.property_type(key) for key in keys}
    properties = {key: {"type": "string"} if shape.streams else {} for key, shape in shapes.items()}
    return {"name": name, "parameters": {"type": "object", "properties": properties}}


# -- text that the reader cannot read ----------------------------------------------------------------------------------


def _search_pairs(raw: str, keys: Collection[str], names: Collection[str]) -> Salvage:
    """The first complete value of each key that is no name itself, and the last key if its value is not complete."""
    wanted, names = set(keys), {*names, *keys}
    arguments: dict[str, Value] = {}
    cut, at = "", 0
    while wanted and (found := _PAIR.search(raw, at)) is not None:
        group = next(group for group in _KEY_GROUPS if found[group])
        key = found[group]
        at = found.end() if key in wanted else found.end(group)
        if key not in wanted:
            continue
        closer = found["pair"] or found["tag"] or found["element"]
        end, value = _take_element(raw, at, closer) if closer else _take_literal(raw, at, group == "quoted")
        if end >= at and isinstance(value, str) and value in names:  # in the frame of the call
            continue
        wanted.discard(key)
        if end >= at:
            at = end
            arguments[key] = value
        cut = key if end < at else ""
    return Salvage(arguments, cut)


def _take_element(raw: str, at: int, tag: str) -> tuple[int, Value]:
    """The text up to the closing tag, without one line break at each end."""
    end = raw.find(f"</{tag}>", at)
    return end, raw[at:end].removeprefix("\n").removesuffix("\n")


def _take_literal(raw: str, at: int, is_json: bool) -> tuple[int, Value]:
    """A JSON or Python value that is complete; -1 if there is none."""
    if raw[at : at + 1] in ("{", "["):
        decoded = _decode_at(raw, at)
        return (decoded.end, decoded.value) if decoded is not None else (-1, None)
    found = _QUOTED.match(raw, at) or _BARE.match(raw, at)
    if found is None or _VALUE_END.match(raw, found.end()) is None:
        return -1, None
    try:
        return found.end(), parse(found[0], JSON if is_json else PYTHON).value
    except (NotJsonError, RecursionError):
        return -1, None
