"""Convert the JSON arguments of a model to the values for a client tool.

Strategy. Models use several keys and shapes for these tools, so keys have aliases, and nested values are accepted in
all shapes seen so far. Anything else is a defect, and a call with a defect is never sent: an argument that the tool
does not have may be what makes the call safe. The values have the form in which the tool of the client uses them, so
that the rendered call can be compared with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.nested_parser import MalformedValue, parse_files, parse_suggestions
from toolglot.clients.xml.profile import JS_WHITESPACE, ClientParameter, ClientTool, Tolerance, ValueKind
from toolglot.clients.xml.value_decoding import parse_strict_json
from toolglot.core.events import Defect, Reason
from toolglot.core.lenient_json import Number, Value, dump

_INTEGER = re.compile(r"-?[0-9]+\Z")
_RANGE = re.compile(r"[0-9]+-[0-9]+\Z")


class ConversionError(ValueError):
    """A value that does not fit its parameter; the message is what was expected."""


class ConvertedArguments(Struct):
    """Values, defects and notes of one call."""

    values: dict[str, Value] = field(default_factory=dict)
    defects: list[Defect] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def convert_arguments(
    client: XmlClient, tool: ClientTool, arguments: Mapping[str, Value], fill: bool
) -> ConvertedArguments:
    """Convert all arguments; ``fill`` adds the defaults of omitted parameters."""
    converted = ConvertedArguments()
    found: dict[str, Value] = {}
    for key, value in arguments.items():
        parameter = tool.find_parameter(key)
        if parameter is None and key in client.ignored_arguments:
            converted.notes.append(f"{key} is not known to {client.name} and was left out")
        elif parameter is None:
            known = ", ".join(one.name for one in tool.parameters) or "no arguments"
            converted.defects.append(
                Defect(
                    reason=Reason.INVALID_VALUE,
                    where=key,
                    found="an argument that the tool does not have",
                    expected=known,
                )
            )
        elif value is not None:
            _convert_argument(parameter, value, found, converted)
    _wrap_path(tool, found, converted)
    for parameter in tool.parameters:
        _check_parameter(tool, parameter, found, converted, fill)
    return converted


def _convert_argument(
    parameter: ClientParameter, value: Value, found: dict[str, Value], converted: ConvertedArguments
) -> None:
    name = parameter.name
    try:
        accepted = _CONVERTERS[parameter.kind](value)
    except (ConversionError, MalformedValue) as error:
        converted.defects.append(
            Defect(reason=Reason.INVALID_VALUE, where=name, found=_show(value), expected=str(error))
        )
        return
    if found.setdefault(name, accepted) != accepted:
        converted.defects.append(
            Defect(reason=Reason.DUPLICATE_ARGUMENT, where=name, found="two different values", expected="one value")
        )


def _check_parameter(
    tool: ClientTool, parameter: ClientParameter, found: Mapping[str, Value], converted: ConvertedArguments, fill: bool
) -> None:
    """Store the value, or its default if ``fill`` is set; add a defect if it is missing."""
    name = parameter.name
    value = _find_value(parameter, found, converted, fill)
    if value is not None and (parameter.may_be_empty or not _is_empty(parameter, value)):
        converted.values[name] = value
    elif not parameter.required or (parameter.may_be_missing and not fill):
        if value:
            converted.notes.append(f"{name} was blank and was left out")
    elif not any(found.get(other) for other in tool.one_of if name in tool.one_of):
        reported = any(defect.where == name for defect in converted.defects)
        if not reported:
            converted.defects.append(
                Defect(reason=Reason.MISSING_ARGUMENT, where=name, found="nothing", expected="a value")
            )


def _find_value(
    parameter: ClientParameter, found: Mapping[str, Value], converted: ConvertedArguments, fill: bool
) -> Value:
    value = _count_lines(parameter, found, converted) if parameter.counts_lines_of else found.get(parameter.name)
    if value is None and fill and parameter.default is not None:
        return _CONVERTERS[parameter.kind](parameter.default)
    return value


def _count_lines(parameter: ClientParameter, found: Mapping[str, Value], converted: ConvertedArguments) -> Value:
    counted = Number(str(str(found.get(parameter.counts_lines_of, "")).count("\n") + 1))
    if (given := found.get(parameter.name)) not in (None, counted):
        converted.notes.append(f"{parameter.name} is {counted}, not {given}")
    return counted


def _is_empty(parameter: ClientParameter, value: Value) -> bool:
    """Whether the client treats the value as absent."""
    if isinstance(value, str) and parameter.tolerance in (Tolerance.ENDS, Tolerance.PROSE):
        value = value.strip(JS_WHITESPACE)
    return value in ("", [])


def _wrap_path(tool: ClientTool, found: dict[str, Value], converted: ConvertedArguments) -> None:
    """Wrap a path in a list of one file for a tool that takes a list of files."""
    files = next((one.name for one in tool.parameters if one.kind is ValueKind.FILES), None)
    if files is None or not found.get("path"):
        return
    entry: dict[str, Value] = {"path": found.pop("path")}
    lines = [found.pop(key, None) for key in ("start_line", "end_line")]
    if any(lines):
        if not all(lines):
            converted.defects.append(
                Defect(
                    reason=Reason.MISSING_ARGUMENT,
                    where="end_line",
                    found="one end of a range",
                    expected="both start_line and end_line",
                )
            )
        entry["line_range"] = [f"{lines[0]}-{lines[1]}"]
    folded: Value = {"file": [entry]}
    if found.setdefault(files, folded) != folded:
        converted.defects.append(
            Defect(reason=Reason.DUPLICATE_ARGUMENT, where="path", found=f"a path and {files}", expected="one of them")
        )


def _show(value: Value) -> str:
    shown = dump(value)
    return shown if len(shown) <= 80 else shown[:77] + "..."


def _convert_text(value: Value) -> Value:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        raise ConversionError("text")
    return value


def _convert_number(value: Value) -> Value:
    if isinstance(value, str) and _INTEGER.match(value.strip()):
        return Number(value.strip())
    raise ConversionError("a whole number")


def _convert_flag(value: Value) -> Value:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ConversionError("true or false")


def _parse_nested(value: Value) -> Value:
    """The object or list that a text holds as JSON; any other value as it is."""
    if not isinstance(value, str) or isinstance(value, Number):
        return value
    try:
        nested = parse_strict_json(value)
    except MalformedValue:
        return value
    return nested if isinstance(nested, dict | list) else value


def _convert_json(value: Value) -> Value:
    value = _parse_nested(value)
    if not isinstance(value, dict):
        raise ConversionError("a JSON object")
    return value


def _convert_list(value: Value) -> Value:
    value = _parse_nested(value)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConversionError("a list of texts")
    return [str(item) for item in value]


def _convert_files(value: Value) -> Value:
    if isinstance(value, str) and "<file>" in value:
        return parse_files(value)
    files: list[Value] = list(_list_files(_parse_nested(value)))
    if not files:
        raise ConversionError("files with a path")
    return {"file": files}


def _list_files(value: Value) -> Iterator[Value]:
    if isinstance(value, str) and value:
        yield {"path": str(value)}
    elif isinstance(value, list):
        for item in value:
            yield from _list_files(item)
    elif isinstance(value, dict) and isinstance(value.get("path"), str) and value["path"]:
        ranges = _list_ranges(value.get("line_range", value.get("line_ranges")))
        if set(value) - {"path", "line_range", "line_ranges"}:
            raise ConversionError("files with a path and line_range only")
        yield {"path": value["path"], "line_range": ranges} if ranges else {"path": value["path"]}
    elif isinstance(value, dict) and len(value) == 1 and set(value) <= {"file", "files"}:
        yield from _list_files(next(iter(value.values())))
    else:
        raise ConversionError("files with a path")


def _list_ranges(value: Value) -> list[Value]:
    if value is None:
        return []
    if isinstance(value, list) and len(value) == 2 and all(isinstance(end, Number) for end in value):
        value = f"{value[0]}-{value[1]}"
    if isinstance(value, str) and _RANGE.match(value):
        return [str(value)]
    if isinstance(value, list):
        return [found for item in value for found in _list_ranges(item)]
    raise ConversionError("a line_range like 1-20")


def _convert_suggestions(value: Value) -> Value:
    if isinstance(value, str) and "<suggest" in value:
        return parse_suggestions(value)
    return list(_list_suggestions(_parse_nested(value)))


def _list_suggestions(value: Value) -> Iterator[Value]:
    if isinstance(value, str):
        if value:
            yield {"text": str(value)}
    elif isinstance(value, list):
        for item in value:
            yield from _list_suggestions(item)
    elif isinstance(value, dict) and set(value) == {"suggest"}:
        yield from _list_suggestions(value["suggest"])
    elif isinstance(value, dict) and set(value) <= {"text", "answer", "mode"}:
        text, mode = value.get("text", value.get("answer")), value.get("mode")
        if not isinstance(text, str) or not text or not isinstance(mode, str | None):
            raise ConversionError("answers with a text")
        yield {"text": text, "mode": mode} if mode else {"text": text}
    else:
        raise ConversionError("a list of answers")


_CONVERTERS: Mapping[ValueKind, Callable[[Value], Value]] = {
    ValueKind.TEXT: _convert_text,
    ValueKind.BLOCK: _convert_text,
    ValueKind.NUMBER: _convert_number,
    ValueKind.FLAG: _convert_flag,
    ValueKind.JSON: _convert_json,
    ValueKind.LIST: _convert_list,
    ValueKind.FILES: _convert_files,
    ValueKind.SUGGESTIONS: _convert_suggestions,
}
