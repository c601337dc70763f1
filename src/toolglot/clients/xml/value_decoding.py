"""Decode parsed values as the tools of a client do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from toolglot.clients.xml.nested_parser import MalformedValue, parse_files, parse_suggestions
from toolglot.clients.xml.profile import JS_WHITESPACE, ClientParameter, ClientTool, ContentRewrite, ValueKind
from toolglot.core.lenient_json import Number, Value

FENCE = "```"
_INTEGER = re.compile(r"-?[0-9]+\Z")
_NUMBERED = re.compile(rf"[{JS_WHITESPACE}]*[0-9]+[{JS_WHITESPACE}]+\|(?!\|)")
_NUMBERED_LINE = re.compile(
    rf"[{JS_WHITESPACE}]*[0-9]+[{JS_WHITESPACE}]+\|(?!\|)[{JS_WHITESPACE}]?([^\n\r\u2028\u2029]*)\Z"
)
_LINE_END = re.compile("\r?\n")


def decode_values(tool: ClientTool, tags: Mapping[str, str], model: str) -> tuple[dict[str, Value], str]:
    """The arguments as the tool uses them, and its complaint if one is malformed. Unknown arguments stay unchanged."""
    params: dict[str, Value] = {}
    complaint = ""
    for name, text in tags.items():
        parameter = next((one for one in tool.parameters if one.name == name), None)
        try:
            params[name] = text if parameter is None else _decode_value(parameter, text, model, tags.get("path", ""))
        except MalformedValue as error:
            params[name], complaint = text, f"{name}: {error}"
    return params, complaint


def _decode_value(parameter: ClientParameter, text: str, model: str, path: str) -> Value:
    reading = _DECODERS.get(parameter.kind)
    if not text and parameter.kind in (ValueKind.JSON, ValueKind.FILES):
        return ""  # the client treats it as absent
    if reading is not None:
        return reading(text)
    if ContentRewrite.FENCES in parameter.rewrites:
        text = _drop_fences(text, "")
    elif ContentRewrite.FENCES_TRIMMED in parameter.rewrites:
        text = _drop_fences(text, JS_WHITESPACE)
    text = parameter.unescaping.for_request(model, path).unescape(text)
    if ContentRewrite.ESCAPED_MENTIONS in parameter.rewrites:
        text = text.replace("\\\\@", "\\@")
    if ContentRewrite.LINE_NUMBERS in parameter.rewrites:
        text = _drop_line_numbers(text)
    return text.lstrip("\ufeff") if ContentRewrite.BYTE_ORDER_MARK in parameter.rewrites else text


def _drop_fences(text: str, blanks: str) -> str:
    if text.startswith(FENCE):
        text = text.partition("\n")[2].strip(blanks) if blanks else text.partition("\n")[2]
    if text.endswith(FENCE):
        text = text.rpartition("\n")[0].strip(blanks) if blanks else text.rpartition("\n")[0]
    return text


def _drop_line_numbers(text: str) -> str:
    lines = _LINE_END.split(text)
    if not all(map(_NUMBERED.match, lines)):
        return text
    found = [(_NUMBERED_LINE.match(line), line) for line in lines]
    return ("\r\n" if "\r\n" in text else "\n").join(match[1] if match else line for match, line in found)


def _reject_constant(name: str) -> Value:
    raise ValueError(name)


_STRICT = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_reject_constant)


def parse_strict_json(text: str) -> Value:
    """Parse JSON as strictly as ``JSON.parse``; numbers keep their spelling. Raises ``MalformedValue``."""
    try:
        value: Value = _STRICT.decode(text)
    except (ValueError, RecursionError) as error:
        raise MalformedValue("is not JSON") from error
    return value


def _decode_list(text: str) -> Value:
    """A JSON array, or as many items as the client recovers; anything else gives an empty list."""
    try:
        return parse_strict_json(text or "[]")
    except MalformedValue:
        text = text.strip(JS_WHITESPACE)
        items = text[2:].removesuffix('"]').split('", "') if text.startswith('["') else []
        return [item.strip(JS_WHITESPACE) for item in items if item.strip(JS_WHITESPACE)]


def _decode_number(text: str) -> Value:
    return Number(text) if _INTEGER.match(text) else text


def _decode_flag(text: str) -> Value:
    return text.lower() == "true"


_DECODERS: Mapping[ValueKind, Callable[[str], Value]] = {
    ValueKind.NUMBER: _decode_number,
    ValueKind.FLAG: _decode_flag,
    ValueKind.JSON: parse_strict_json,
    ValueKind.LIST: _decode_list,
    ValueKind.FILES: parse_files,
    ValueKind.SUGGESTIONS: parse_suggestions,
}
