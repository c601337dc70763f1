"""Parse, check and rewrite JSON bodies and their fields; shared by all wires."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from sys import float_info
from typing import Any, Final, TypeAlias

import msgspec

from toolglot.core.conversation import Tool, ToolChoice, Tools
from toolglot.core.errors import RequestError
from toolglot.core.events import CallEnded, CallRejected, Defect, Event, Reason
from toolglot.core.json_numbers import (
    decode,
    decode_allowing_nan,
    decode_part,
    decode_tolerant,
    decode_without_minus_zero,
    encode,
)

_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>u[dD][89a-fA-F]..)|.)", re.DOTALL)


Offer: TypeAlias = tuple[Tools, tuple[str, ...]]
"""The usable tools, and notes on the skipped ones."""

NO_TOOLS: Final[Offer] = (Tools(), ())
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SHARED = 1 << 20
"""Agents send the same tools with every turn; lists up to this many bytes are cached."""
_LOOKED_AT = 1 << 20
_DEEP = 100
_TOKEN = re.compile(rb'(?s)"(?P<key>(?:[^"\\]|\\.)*)"(?=\s*:)|"(?:[^"\\]|\\.)*"|[\[\]{}]')
_BYTE = re.compile(r"\(byte (\d+)\)")
_PATH = re.compile(r" - at `[^`]*+`$")
_OPEN = ("", "-", ".", "e", "e-", "e+")
"""Unparsed rest of truncated JSON: nothing, or part of a number."""


def parse_body(body: bytes, read_tools: Callable[[Any], Any] | None = None) -> dict[str, Any]:
    """Parse the JSON object of a request. Lone surrogates, from texts cut inside an emoji, are replaced.

    ``read_tools`` converts the value of ``tools``. Its result is cached and shared by requests: do not modify it.
    """
    try:
        written = _FIELDS.decode(body)
        tools = written.pop("tools", None) if read_tools else None
        read_value = decode_part if b"-0" in body else decode_without_minus_zero
        fields = {name: read_value(value) for name, value in written.items()}
        if read_tools and tools is not None:
            read = _read_once if len(tools) <= _SHARED else _read_large_once
            fields["tools"] = read(bytes(tools), read_tools)
    except (msgspec.DecodeError, UnicodeDecodeError):
        fields = _parse_leniently(body)
        if read_tools and "tools" in fields:
            fields["tools"] = read_tools(fields["tools"])
    return fields


def adapt_body(body: bytes, model: str, without: Collection[str] = ()) -> bytes:
    """Set the model name and drop the fields ``without``; all other fields keep their bytes."""
    try:
        fields: dict[str, Any] = dict(_FIELDS.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError):
        fields = _parse_leniently(body)
    named = msgspec.Raw(msgspec.json.encode(model))
    if (not model or fields.get("model") == named) and not any(name in fields for name in without):
        return body
    return encode({name: value for name, value in fields.items() if name not in without} | {"model": named})


def _read(written: bytes, read: Callable[[Any], Any]) -> Any:
    return read(decode(written))


_read_once = lru_cache(maxsize=64)(_read)
_read_large_once = lru_cache(maxsize=4)(_read)


def _parse_leniently(body: bytes) -> dict[str, Any]:
    try:
        try:
            fields = decode(body)
        except msgspec.DecodeError:
            if b"\\ud" not in body.lower():
                raise
            fields = decode(_ESCAPE.sub(lambda found: b"\\ufffd" if found["half"] else found[0], body))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        where, problem = _find_broken_field(body, str(error)), _PATH.sub("", str(error))
        raise RequestError(f"The body is not valid JSON{f', in {where}' if where else ''}: {problem}.", where) from None
    if not isinstance(fields, dict):
        raise RequestError("The body must be a JSON object.")
    return fields


def _find_broken_field(body: bytes, problem: str) -> str | None:
    """Find the field of a request that a decoder failed on, or None."""
    if found := _BYTE.search(problem):
        return find_field(body, int(found[1]))
    try:
        fields = _FIELDS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    for name, value in fields.items():
        try:
            decode(bytes(value))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return name
    return None


def find_field(body: bytes, end: int = _LOOKED_AT) -> str | None:
    """Find the top-level field before a position, or the first one that is nested too deeply.

    For error messages only: it is slow and searches only the beginning of a body.
    """
    depth, name = 0, None
    for found in _TOKEN.finditer(body, 0, min(end, _LOOKED_AT)):
        token = found[0]
        if token[:1] == b'"':
            name = found["key"] if depth == 1 and found["key"] is not None else name
        else:
            depth += 1 if token in b"[{" else -1
            if depth > _DEEP:
                break
    else:
        if end >= len(body):
            return None
    return name.decode(errors="replace")[:100] if name else None


def parse_object(data: bytes) -> dict[str, Any] | None:
    """Parse a JSON object from an upstream; None if it is none."""
    try:
        payload = decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # lone surrogates or invalid UTF-8: decode leniently
        try:
            payload = decode_allowing_nan(data.decode(errors="replace"))
        except (ValueError, RecursionError):
            return None
    except RecursionError:
        return None
    return payload if isinstance(payload, dict) else None


def text_at(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def count_at(holder: Mapping[str, Any], key: str) -> int:
    value = holder.get(key)
    return value if isinstance(value, int) else 0


_FAR: Final = float_info.max
"""The largest number that every upstream can parse."""


def number_at(holder: Mapping[str, Any], key: str, where: str = "") -> float | None:
    value = holder.get(key)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and -_FAR <= value <= _FAR):
        return value
    raise RequestError(f"{where}{key} must be a number.", f"{where}{key}")


def whole_at(holder: Mapping[str, Any], key: str, where: str = "") -> int | None:
    value = number_at(holder, key, where)
    return None if value is None else int(value)


def texts_at(holder: Mapping[str, Any], key: str, where: str = "") -> tuple[str, ...]:
    """A list of strings; some clients send one string."""
    value = holder.get(key)
    texts = (value,) if isinstance(value, str) else () if value is None else value
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise RequestError(f"{where}{key} must be a list of texts.", f"{where}{key}")
    return tuple(filter(None, texts))


def dicts_in(listed: object) -> list[dict[str, Any]]:
    """The objects of a list; other entries are skipped."""
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def check_messages(fields: Mapping[str, Any]) -> list[Any]:
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("A request needs a list of messages that is not empty.", "messages")
    return messages


def check_choice(choice: ToolChoice, tools: Iterable[Tool], where: str = "tool_choice") -> ToolChoice:
    """Return the choice; ``RequestError`` if it names or needs a tool that is not offered."""
    known = {tool.name for tool in tools}
    for name in choice.only:
        if name not in known:
            raise RequestError(f"{where} names {name}, which is not among the tools.", where)
    if choice.mode == "required" and not known:
        raise RequestError(f"{where} requires a call, but no usable tool is offered.", where)
    return choice


NO_ARGUMENTS: tuple[object, ...] = (None, [], "")
"""Values that servers write for an empty object."""


def read_arguments(text: str) -> dict[str, Any]:
    """Parse arguments as an object; anything else becomes the single argument ``arguments``."""
    try:
        payload = decode_tolerant(text) if text.strip() else {}
    except ValueError:
        payload = text
    if payload in NO_ARGUMENTS:
        return {}
    return payload if isinstance(payload, dict) else {"arguments": payload}


def write_arguments(payload: object) -> str:
    """Arguments as compact JSON text."""
    if isinstance(payload, str):
        return payload or "{}"
    return encode({} if payload is None else payload).decode()


def find_fault(arguments: str) -> Reason | None:
    """Check the arguments of a native call: truncated, malformed (no JSON object), or None if they are valid.

    Missing arguments are valid in any spelling, and so are raw line breaks in strings and lone surrogates.
    """
    try:
        payload = decode(arguments.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return _judge(arguments, "truncated" in str(error)) if arguments.strip() else None
    return _check_object(payload)


def _check_object(payload: object) -> Reason | None:
    return None if isinstance(payload, dict) or payload in NO_ARGUMENTS else Reason.MALFORMED


def _judge(arguments: str, may_be_cut: bool) -> Reason | None:
    """Check arguments that are not strict JSON."""
    try:
        return _check_object(decode_tolerant(arguments))
    except json.JSONDecodeError as error:
        rest = arguments[error.pos :].rstrip().lower()
        cut = may_be_cut or rest in _OPEN or error.msg.startswith("Unterminated string")
        return Reason.TRUNCATED if cut else Reason.MALFORMED
    except ValueError:
        return Reason.MALFORMED  # NaN or Infinity
    except RecursionError:
        return None


def end_call(index: int, fault: Reason | None) -> Event:
    """The end event of a call that the upstream calls complete: a rejection if its arguments have a fault."""
    if fault is None:
        return CallEnded(index)
    found = "an end in the middle" if fault is Reason.TRUNCATED else "something else"
    return CallRejected(
        "", fault, None, (Defect(reason=fault, where="arguments", found=found, expected="a JSON object"),), index=index
    )


def read_functions(tools: object) -> Offer:
    """Decode tools in the form that most wires share. Unusable ones are skipped with a note, because agents send more
    than they need."""
    if tools is None:
        return NO_TOOLS
    if not isinstance(tools, list):
        raise RequestError("tools must be a list.", "tools")
    found: dict[str, Tool] = {}
    notes: list[str] = []
    for at, entry in enumerate(tools):
        problem = _problem_with(entry, found)
        if problem:
            notes.append(f"tools[{at}] skipped: {problem}")
            continue
        payload = entry["function"]
        parameters = payload.get("parameters")
        found[payload["name"]] = Tool(
            payload["name"], text_at(payload, "description"), parameters if isinstance(parameters, dict) else {}
        )
    return Tools(found.values()), tuple(notes)


def _problem_with(entry: object, found: Mapping[str, Tool]) -> str:
    if not isinstance(entry, dict):
        return "not an object"
    payload = entry.get("function")
    if not isinstance(payload, dict):
        return f"not a function but {entry.get('type')!r}"
    name = payload.get("name")
    if not isinstance(name, str) or not name.strip():
        return "no name"
    if payload.get("parameters") is not None and not isinstance(payload["parameters"], dict):
        return "its parameters are no JSON Schema"
    return f"a second tool named {name}" if name in found else ""


def write_function(tool: Tool) -> dict[str, Any]:
    payload: dict[str, Any] = {"name": tool.name}
    if tool.description:
        payload["description"] = tool.description
    payload["parameters"] = dict(tool.parameters)
    if tool.strict:
        payload["strict"] = True
    return {"type": "function", "function": payload}
