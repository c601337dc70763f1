"""List tools as text, in each of the formats that models were trained on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from toolglot.core.conversation import Tool
from toolglot.core.lenient_json import parse
from toolglot.dialects.codecs.sample_templates import Notation
from toolglot.dialects.spec import Dialect, ToolListing, ToolPromptStyle
from toolglot.prompting.call_writer import cache_calls, write_call
from toolglot.prompting.example_arguments import ExampleArguments, properties_of, resolve_schema, type_of

_MARK = re.compile(r"<[^<>\s]+>|\[/?\w+\]")
_EMPTY = {"type": "object", "properties": {}}


def list_tools(tools: Sequence[Tool], dialect: Dialect) -> str:
    """List the tools as models of the dialect expect them, with the marks around the list."""
    style = dialect.teach
    if style.listing is ToolListing.ARRAY:
        body = _escape_marks(to_json([_definition(tool) for tool in tools]), style)
    else:
        listed = [style.each[0] + _escape_marks(text, style) + style.each[1] for text in _list_each(tools, dialect)]
        body = _SEPARATORS.get(style.listing, "\n").join(listed)
    return "\n".join(piece for piece in (style.open, body, style.close) if piece or piece is body)


def _list_each(tools: Sequence[Tool], dialect: Dialect) -> Iterator[str]:
    if dialect.teach.listing is ToolListing.DOCUMENTS:
        return map(_document, tools, write_examples(tools, dialect.name))
    write = _LISTERS[dialect.teach.listing]
    return (write(tool, dialect, number) for number, tool in enumerate(tools, 1))


def _escape_marks(listed: str, style: ToolPromptStyle) -> str:
    """Escape the marks around the list and each tool, so that a description cannot end the list. In JSON the first
    character becomes an escape sequence, elsewhere a space follows it."""
    marks = [re.escape(mark) for mark in {style.open, style.close, *style.each} if _MARK.fullmatch(mark)]
    if not marks:
        return listed
    found = re.compile("|".join(marks), re.IGNORECASE)
    if style.listing in (ToolListing.ARRAY, ToolListing.LINES):
        return found.sub(lambda mark: f"\\u{ord(mark[0][0]):04x}{mark[0][1:]}", listed)
    return found.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", listed)


def to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def write_examples(tools: Sequence[Tool], dialect: str) -> list[str]:
    """Write an example call to each tool."""
    calls = [(tool.name, to_json(ExampleArguments(tool, only_required=False).make())) for tool in tools]
    cache_calls(dialect, calls, tools)
    return [write_call(dialect, name, arguments, tools) for name, arguments in calls]


def _definition(tool: Tool) -> dict[str, Any]:
    about = {"description": tool.description} if tool.description.strip() else {}
    return {"type": "function", "function": {"name": tool.name, **about, "parameters": dict(tool.parameters) or _EMPTY}}


def _line(tool: Tool, dialect: Dialect, number: int) -> str:
    return to_json(_definition(tool))


# -- documents: headings, one line per parameter, an example call ------------------------------------------------------


def _document(tool: Tool, example: str) -> str:
    lines = [f"## {tool.name}", *_describe_tool(tool)]
    parameters = _parameter_lines(tool.parameters, tool.parameters, "")
    lines += ["Parameters:", *parameters] if parameters else ["Parameters: none"]
    return "\n".join([*lines, "", "Usage:", example])


def _describe_tool(tool: Tool) -> Iterator[str]:
    if tool.description.strip():
        yield f"Description: {tool.description}".rstrip()


def _parameter_lines(schema: Mapping[str, Any], root: Mapping[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for key, inner in properties_of(schema, root).items():
        lines.append(f"{indent}- {key}: ({_requirement(schema, key)}) {_describe(inner, root)}")
        items = resolve_schema(inner.get("items"), root) if type_of(inner) == "array" else inner
        if len(indent) < 8:
            lines += _parameter_lines(items, root, indent + "  ")
    return lines


def _requirement(schema: Mapping[str, Any], key: str) -> str:
    required = schema.get("required")
    return "required" if isinstance(required, (list, tuple)) and key in required else "optional"


def _describe(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    notes: list[str] = []
    if isinstance(schema.get("enum"), (list, tuple)):
        notes.append("one of: " + ", ".join(map(to_json, schema["enum"])))
    if "default" in schema:
        notes.append(f"default: {to_json(schema['default'])}")
    text = " ".join(str(schema.get("description") or "").split())
    line = f"{_kind(schema, root)} - {text}" if text else _kind(schema, root)
    return f"{line} ({'; '.join(notes)})" if notes else line


def _kind(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    kind = type_of(schema)
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return f"array of {_kind(resolve_schema(schema['items'], root), root)}"
    return kind


def _numbered(tool: Tool, dialect: Dialect, number: int) -> str:
    lines = [f"---- BEGIN FUNCTION #{number}: {tool.name} ----", *_describe_tool(tool)]
    inner = properties_of(tool.parameters, tool.parameters)
    lines.append("Parameters:" if inner else "No parameters are required for this function.")
    for index, (key, schema) in enumerate(inner.items(), 1):
        kind, _, text = _describe(schema, tool.parameters).partition(" - ")
        lines.append(f"  ({index}) {key} ({kind}, {_requirement(tool.parameters, key)}): {text}".rstrip())
    return "\n".join([*lines, f"---- END FUNCTION #{number} ----"])


# -- elements ----------------------------------------------------------------------------------------------------------


def _elements(tool: Tool, dialect: Dialect, number: int) -> str:
    lines = ["<function>", f"<name>{tool.name}</name>"]
    if tool.description:
        lines.append(f"<description>{tool.description}</description>")
    lines.append("<parameters>")
    for key, schema in properties_of(tool.parameters, tool.parameters).items():
        lines += ["<parameter>", f"<name>{key}</name>", f"<type>{type_of(schema)}</type>"]
        lines += [f"<{name}>{_plain(value)}</{name}>" for name, value in schema.items() if name != "type"]
        lines.append("</parameter>")
    if tool.parameters.get("required"):
        lines.append(f"<required>{to_json(tool.parameters['required'])}</required>")
    return "\n".join([*lines, "</parameters>", "</function>"])


def _plain(value: object) -> str:
    return value if isinstance(value, str) else to_json(value)


# -- types and stubs ---------------------------------------------------------------------------------------------------

_DEEPEST = 8
_TYPES = {"integer": "number", "null": "null", "array": "any[]"}
_HINTS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict"}


def _types(tool: Tool, dialect: Dialect, number: int) -> str:
    lines = [f"// {line}" for line in tool.description.splitlines()]
    inner = _type(tool.parameters, tool.parameters, 0) if properties_of(tool.parameters, tool.parameters) else ""
    return "\n".join([*lines, f"type {tool.name} = ({f'_: {inner}' if inner else ''}) => any;"])


def _type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if isinstance(schema.get("enum"), (list, tuple)):
        return " | ".join(map(to_json, schema["enum"]))
    kind = type_of(schema)
    if depth < _DEEPEST and kind == "array" and "items" in schema:
        return f"{_type(resolve_schema(schema['items'], root), root, depth + 1)}[]"
    if depth < _DEEPEST and properties_of(schema, root):
        return _object_type(schema, root, depth)
    return _TYPES.get(kind, kind)


def _object_type(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    lines = ["{"]
    for key, value in properties_of(schema, root).items():
        text = " ".join(str(value.get("description") or "").split())
        lines += [f"// {text}"] if text else []
        default = f" // default: {to_json(value['default'])}" if "default" in value else ""
        optional = "" if _requirement(schema, key) == "required" else "?"
        lines.append(f"{key}{optional}: {_type(value, root, depth + 1)},{default}")
    return "\n".join([*lines, "}"])


def _stub(tool: Tool, dialect: Dialect, number: int) -> str:
    members = properties_of(tool.parameters, tool.parameters)
    ordered = sorted(members, key=lambda key: _requirement(tool.parameters, key) != "required")
    inside = ", ".join(
        f"{key}: {_HINTS.get(type_of(members[key]), 'object')}"
        + ("" if _requirement(tool.parameters, key) == "required" else f" = {members[key].get('default')!r}")
        for key in ordered
    )
    lines = [f"def {tool.name}({inside}):", f'    """{tool.description}']
    lines += ["", "    Args:"] if members else []
    lines += [f"        {key}: {_describe(members[key], tool.parameters)}" for key in ordered]
    return "\n".join([*lines, '    """', "    pass"])


# -- declarations ------------------------------------------------------------------------------------------------------


def _declaration(tool: Tool, dialect: Dialect, number: int) -> str:
    quote = "<escape>" if "<escape>" in dialect.sample else '<|"|>'
    notation = Notation(":", quote, str, True)
    fields = {"description": tool.description, "parameters": _capitalise(dict(tool.parameters) or _EMPTY)}
    return f"declaration:{tool.name}{notation.write(parse(to_json(fields)).value)}"


def _capitalise(schema: object) -> object:
    """Put type names in capitals, as declarations have them."""
    if isinstance(schema, Mapping):
        return {
            key: value.upper() if key == "type" and isinstance(value, str) else _capitalise(value)
            for key, value in schema.items()
        }
    return [_capitalise(item) for item in schema] if isinstance(schema, (list, tuple)) else schema


_LISTERS: dict[ToolListing, Callable[[Tool, Dialect, int], str]] = {
    ToolListing.LINES: _line,
    ToolListing.NUMBERED: _numbered,
    ToolListing.ELEMENTS: _elements,
    ToolListing.TYPES: _types,
    ToolListing.STUBS: _stub,
    ToolListing.DECLARATIONS: _declaration,
}
_SEPARATORS = {
    ToolListing.DOCUMENTS: "\n\n",
    ToolListing.NUMBERED: "\n\n",
    ToolListing.TYPES: "\n\n",
    ToolListing.STUBS: "\n\n",
}
