"""JSON as wires meet it: bodies and their fields, looked at one by one, and written again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from toolglot.conversation import Choice, Tool, Tools
from toolglot.errors import RequestError
from toolglot.events import CallEnded, CallRejected, Defect, Event, Reason

_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>u[dD][89a-fA-F]..)|.)", re.DOTALL)


Offer: TypeAlias = tuple[Tools, tuple[str, ...]]
"""Tools on offer, and notes on those that cannot be used."""

NO_TOOLS: Final[Offer] = (Tools(), ())
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_decode = msgspec.json.Decoder().decode
_SHARED = 1 << 20
"""Agents send the same tools with every turn; lists up to this length are read once."""
_OPEN = ("", "-", ".", "e", "e-", "e+")
"""What is left of JSON that ended too soon, after all that can be read: nothing, or the middle of a number."""


def parse_body(body: bytes, read_tools: Callable[[Any], Any] | None = None) -> dict[str, Any]:
    """The object that a request is. Half a surrogate pair, where a client cut a text inside an emoji, is replaced.

    In the place of the tools stands what ``read_tools`` makes of them. Other requests may share it, so it must stay as
    it is."""
    try:
        written = _FIELDS.decode(body)
        tools = written.pop("tools", None) if read_tools else None
        asked = {name: _decode(value) for name, value in written.items()}
        if read_tools and tools is not None:
            read = _read_once if len(tools) <= _SHARED else _read
            asked["tools"] = read(bytes(tools), read_tools)
    except (msgspec.DecodeError, UnicodeDecodeError):
        asked = _parse_patiently(body)
        if read_tools and "tools" in asked:
            asked["tools"] = read_tools(asked["tools"])
    return asked


def adapt_body(body: bytes, model: str, without: Collection[str] = ()) -> bytes:
    """The same request for a model of this name, without some fields. All others stay as they were written."""
    try:
        asked: dict[str, Any] = dict(_FIELDS.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError):
        asked = _parse_patiently(body)
    named = msgspec.Raw(msgspec.json.encode(model))
    if (not model or asked.get("model") == named) and not any(name in asked for name in without):
        return body
    return encode({name: value for name, value in asked.items() if name not in without} | {"model": named})


def _read(written: bytes, read: Callable[[Any], Any]) -> Any:
    return read(_decode(written))


_read_once = lru_cache(maxsize=64)(_read)


def _parse_patiently(body: bytes) -> dict[str, Any]:
    try:
        try:
            asked = msgspec.json.decode(body)
        except msgspec.DecodeError:
            if b"\\ud" not in body.lower():
                raise
            asked = msgspec.json.decode(_ESCAPE.sub(lambda found: b"\\ufffd" if found["half"] else found[0], body))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"The body is not valid JSON: {error}.") from None
    if not isinstance(asked, dict):
        raise RequestError("The body must be a JSON object.")
    return asked


def parse_reply(data: bytes) -> dict[str, Any] | None:
    """The object that an upstream sent, if it is one."""
    try:
        told = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # half a surrogate pair, bytes that are no UTF-8: what can be read is read
        try:
            told = json.loads(data.decode(errors="replace"))
        except (ValueError, RecursionError):
            return None
    except RecursionError:
        return None
    return told if isinstance(told, dict) else None


def text_at(holder: Mapping[str, Any], key: str) -> str:
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def count_at(holder: Mapping[str, Any], key: str) -> int:
    value = holder.get(key)
    return value if isinstance(value, int) else 0


def number_at(holder: Mapping[str, Any], key: str, where: str = "") -> float | None:
    value = holder.get(key)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise RequestError(f"{where}{key} must be a number.", f"{where}{key}")


def words_at(holder: Mapping[str, Any], key: str, where: str = "") -> tuple[str, ...]:
    """One text or a list of them; nothing stands for none."""
    value = holder.get(key)
    words = [value] if isinstance(value, str) else [] if value is None else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise RequestError(f"{where}{key} must be a list of texts.", f"{where}{key}")
    return tuple(words)


def whole_at(holder: Mapping[str, Any], key: str, where: str = "") -> int | None:
    value = number_at(holder, key, where)
    return None if value is None else int(value)


def dicts_in(listed: object) -> list[dict[str, Any]]:
    """The objects of a list; what is none is passed over."""
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def check_messages(asked: Mapping[str, Any]) -> list[Any]:
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages:
        raise RequestError("A request needs a list of messages that is not empty.", "messages")
    return messages


def check_choice(choice: Choice, tools: Iterable[Tool]) -> Choice:
    """A choice among the tools that are there."""
    known = {tool.name for tool in tools}
    for name in choice.only:
        if name not in known:
            raise RequestError(f"tool_choice names {name}, which is not among the tools.", "tool_choice")
    if choice.mode == "required" and not known:
        raise RequestError("tool_choice requires a call, but no usable tool is offered.", "tool_choice")
    return choice


NO_ARGUMENTS: tuple[object, ...] = (None, [], "")
"""What servers write in the place of an empty object."""


def read_arguments(text: str) -> dict[str, Any]:
    """Arguments as an object; text that is none becomes the one argument ``arguments``."""
    try:
        told = json.loads(text, strict=False) if text.strip() else {}
    except ValueError:
        told = text
    if told in NO_ARGUMENTS:
        return {}
    return told if isinstance(told, dict) else {"arguments": told}


def write_arguments(told: object) -> str:
    """Arguments as compact JSON text."""
    if isinstance(told, str):
        return told or "{}"
    return _write({} if told is None else told)


def find_fault(arguments: str) -> Reason | None:
    """What is wrong with the arguments of a native call: they end too soon or are no JSON object. None if they can be
    read.

    No arguments at all are fine, whatever stands for them. So are line breaks that stand in strings as they are, and
    half a surrogate pair.
    """
    try:
        told = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return _judge(arguments, "truncated" in str(error)) if arguments.strip() else None
    return _check_object(told)


def _check_object(told: object) -> Reason | None:
    return None if isinstance(told, dict) or told in NO_ARGUMENTS else Reason.MALFORMED


def _judge(arguments: str, doubted: bool) -> Reason | None:
    """The same for what is not strictly JSON."""
    try:
        return _check_object(json.loads(arguments, strict=False))
    except json.JSONDecodeError as error:
        rest = arguments[error.pos :].rstrip().lower()
        cut = doubted or rest in _OPEN or error.msg.startswith("Unterminated string")
        return Reason.TRUNCATED if cut else Reason.MALFORMED
    except (ValueError, RecursionError):
        pass
    return None


def end_call(index: int, fault: Reason | None) -> Event:
    """The end of a native call of which the upstream says that it is complete: rejected if its arguments are not."""
    if fault is None:
        return CallEnded(index)
    found = "an end in the middle" if fault is Reason.TRUNCATED else "something else"
    return CallRejected("", fault, None, (Defect(fault, "arguments", found, "a JSON object"),), index=index)


def encode(told: object) -> bytes:
    """Compact JSON. Half a surrogate pair, which some servers send, cannot be UTF-8 and is escaped."""
    try:
        return msgspec.json.encode(told)
    except UnicodeEncodeError:
        return json.dumps(told, separators=(",", ":")).encode()


def read_functions(tools: object) -> Offer:
    """Tools in the form that most wires share: every one that can be used. The others are skipped and noted, because
    agents send more than they need."""
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
        told = entry["function"]
        parameters = told.get("parameters")
        found[told["name"]] = Tool(
            told["name"], text_at(told, "description"), parameters if isinstance(parameters, dict) else {}
        )
    return Tools(found.values()), tuple(notes)


def _problem_with(entry: object, found: Mapping[str, Tool]) -> str:
    if not isinstance(entry, dict):
        return "not an object"
    told = entry.get("function")
    if not isinstance(told, dict):
        return f"not a function but {entry.get('type')!r}"
    name = told.get("name")
    if not isinstance(name, str) or not name.strip():
        return "no name"
    if told.get("parameters") is not None and not isinstance(told["parameters"], dict):
        return "its parameters are no JSON Schema"
    return f"a second tool named {name}" if name in found else ""


def write_function(tool: Tool) -> dict[str, Any]:
    told: dict[str, Any] = {"name": tool.name}
    if tool.description:
        told["description"] = tool.description
    return {"type": "function", "function": told | {"parameters": dict(tool.parameters)}}
