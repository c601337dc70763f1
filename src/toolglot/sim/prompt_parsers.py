"""Parse the tools that a prompt describes, in each of the formats in use.

*Strategy.* The prompt is all there is, as for a model; there is no side channel. JSON definitions, sections with
headings, numbered functions, XML elements, TypeScript types, Python stubs and declarations are recognised anywhere in
it. What a format leaves out, such as the members of an object in a stub, stays unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

from toolglot.core.conversation import Tool

Schema: TypeAlias = dict[str, Any]
DECODER = json.JSONDecoder()


@lru_cache(maxsize=64)
def find_tools(prompt: str) -> tuple[Tool, ...]:
    """The tools that a prompt describes, possibly none. The first description of a name counts."""
    found: dict[str, Tool] = {}
    for parse in TOOL_PARSERS:
        for tool in parse(prompt):
            found.setdefault(tool.name, tool)
    return tuple(found.values())


def _object(properties: Schema, required: list[str]) -> Schema:
    return {"type": "object", "properties": properties, "required": required}


# JSON objects, alone, in lines or in an array

_JSON_START = re.compile(r'\{\s*"(?:type|function|name|description)"\s*:')


def _find_json(prompt: str) -> Iterator[Tool]:
    position = 0
    while start := _JSON_START.search(prompt, position):
        try:
            value, position = DECODER.raw_decode(prompt, start.start())
        except ValueError:
            position = start.end()
            continue
        function = value.get("function", value)
        if isinstance(function, Mapping) and _is_definition(function):
            schema = function.get("parameters", function.get("input_schema"))
            known = schema if isinstance(schema, Mapping) else {}
            yield Tool(function["name"], str(function.get("description") or ""), known)


def _is_definition(function: Mapping[str, Any]) -> bool:
    """Distinguish a definition from an example call, which has a name and perhaps ``parameters``, but no schema."""
    name = function.get("name")
    schema = function.get("parameters", function.get("input_schema"))
    is_described = "description" in function or (isinstance(schema, Mapping) and "properties" in schema)
    return isinstance(name, str) and bool(name.strip()) and is_described and "arguments" not in function


# Sections and numbered functions: one line per parameter

_SECTION = re.compile(r"^#{2,4} (?P<name>\S+)[ \t]*\n(?=Description:|Parameters:|Usage:)", re.M)
_NUMBERED = re.compile(r"^-+ BEGIN FUNCTION #\d+: (?P<name>\S+) -+$", re.M)
_LINE = re.compile(
    r"^(?P<indent> *)(?:[-*] (?P<name>[^\s:]+): *\((?P<need>required|optional)\)[ \t]*(?P<text>.*)"
    r"|\(\d+\) (?P<numbered>\S+) \((?P<kind>.*), (?P<duty>required|optional)\): ?(?P<about>.*))$",
    re.M,
)
_KIND = re.compile(r"(?:array of )*(?:string|number|integer|boolean|array|object|null)\b")
_NOTES = re.compile(r" ?\((?:one of: (?P<enum>.*?))?(?:; )?(?:default: (?P<default>.*?))?\)\s*$")


def _find_sections(prompt: str) -> Iterator[Tool]:
    for heading in (_SECTION, _NUMBERED):
        starts = [(found["name"], found.start(), found.end()) for found in heading.finditer(prompt)]
        for (name, _, start), (_, end, _) in pairwise([*starts, ("", len(prompt), 0)]):
            # a description may contain "Parameters:" as well, so the last one counts
            about, _, lines = f"\n{prompt[start:end]}".rpartition("\nParameters:")
            about = about or lines.partition("\nNo parameters")[0]
            yield Tool(name, about.strip().removeprefix("Description:").strip(), _read_lines(lines))


def _read_lines(lines: str) -> Schema:
    """Parameters by lines; indented ones belong to the one above."""
    root = _object({}, [])
    above: list[tuple[int, Schema]] = [(-1, root)]
    for line in _LINE.finditer(lines.partition("\nUsage:")[0]):
        name, need = line["name"] or line["numbered"], line["need"] or line["duty"]
        text = line["text"] if line["name"] else " - ".join(filter(None, (line["kind"], line["about"])))
        schema = _parse_parameter(text)
        while above[-1][0] >= len(line["indent"]):
            above.pop()
        holder = above[-1][1]
        holder = holder["items"] if holder.get("type") == "array" and "items" in holder else holder
        holder.setdefault("properties", {})[name] = schema
        if need == "required":
            holder.setdefault("required", []).append(name)
        above.append((len(line["indent"]), schema))
    return root


def _parse_parameter(text: str) -> Schema:
    """Parse ``array of string - Where to look (one of: "a", "b"; default: "a")``, or a description alone."""
    kind = _KIND.match(text)
    schema: Schema = _read_kind(kind[0]) if kind else {"type": "string"}
    if notes := _NOTES.search(text):
        schema |= {key: _read_json(f"[{note}]", key == "default") for key, note in notes.groupdict().items() if note}
        text = text[: notes.start()]
    about = text[kind.end() :] if kind else text
    return schema | ({"description": about.strip(" -")} if about.strip(" -") else {})


def _read_kind(kind: str) -> Schema:
    if kind.startswith("array of "):
        return {"type": "array", "items": _read_kind(kind.removeprefix("array of "))}
    return {"type": kind}


def _read_json(text: str, one: bool = False) -> Any:
    try:
        values = json.loads(text)
    except ValueError:
        values = [word.strip(" \"'`") for word in text[1:-1].split(",")]
    return values[0] if one else values


# XML elements

_ELEMENT_TOOL = re.compile(r"<function>\s*<name>(?P<name>[^<]+)</name>(?P<body>.*?)</function>", re.S)
_ELEMENT_PARAMETER = re.compile(r"<parameter>\s*<name>(?P<name>[^<]+)</name>(?P<body>.*?)</parameter>", re.S)
_ELEMENT = re.compile(r"<(?P<key>\w+)>(?P<value>.*?)</(?P=key)>", re.S)


def _find_elements(prompt: str) -> Iterator[Tool]:
    for found in _ELEMENT_TOOL.finditer(prompt):
        parameters = {
            parameter["name"].strip(): _read_elements(parameter["body"])
            for parameter in _ELEMENT_PARAMETER.finditer(found["body"])
        }
        head, _, tail = _ELEMENT_PARAMETER.sub("", found["body"]).partition("<parameters>")
        about = str(_read_elements(head).get("description", ""))
        required = _read_elements(tail).get("required", [])
        yield Tool(found["name"].strip(), about, _object(parameters, [name for name in required if name in parameters]))


def _read_elements(body: str) -> Schema:
    """Elements as members; a JSON array or object is decoded."""
    members: Schema = {}
    for element in _ELEMENT.finditer(body):
        value = element["value"].strip()
        try:
            members[element["key"]] = json.loads(value) if value[:1] in ("[", "{") else value
        except ValueError:
            members[element["key"]] = value
    return members


# TypeScript types

_TYPE_TOOL = re.compile(r"(?P<about>(?:^//.*\n)*)^type (?P<name>\S+) = \((?P<takes>_: )?", re.M)
_TYPE_MEMBER = re.compile(r"\s*(?:// ?(?P<about>.*)\n\s*)*(?P<name>[^\s:?]+)(?P<optional>\?)?: ")
_TYPE_LITERALS = re.compile(r'"(?:[^"\\]|\\.)*"(?: \| (?:"(?:[^"\\]|\\.)*"|[\w.-]+))*')
_TYPE_WORD = re.compile(r"\w+")
_TYPE_NEXT = re.compile(r",?(?: // default: .*)?\s*")


def _find_types(prompt: str) -> Iterator[Tool]:
    for found in _TYPE_TOOL.finditer(prompt):
        about = "\n".join(line.removeprefix("//").strip() for line in found["about"].splitlines())
        yield Tool(found["name"], about, _read_type(prompt, found.end())[0] if found["takes"] else {})


def _read_type(text: str, position: int) -> tuple[Schema, int]:
    """The type at this position, and its end."""
    schema: Schema
    if text.startswith("{", position):
        schema, position = _read_members(text, position + 1)
    elif literals := _TYPE_LITERALS.match(text, position):
        values = _read_json(f"[{literals[0].replace(' | ', ', ')}]")
        schema, position = {"type": "string", "enum": values}, literals.end()
    else:
        word = _TYPE_WORD.match(text, position)
        schema, position = {"type": word[0] if word else "string"}, word.end() if word else position + 1
    while text.startswith("[]", position):
        schema, position = {"type": "array", "items": schema}, position + 2
    return schema, position


def _read_members(text: str, position: int) -> tuple[Schema, int]:
    properties: Schema = {}
    required: list[str] = []
    while member := _TYPE_MEMBER.match(text, position):
        schema, position = _read_type(text, member.end())
        properties[member["name"]] = schema | ({"description": member["about"]} if member["about"] else {})
        if not member["optional"]:
            required.append(member["name"])
        following = _TYPE_NEXT.match(text, position)
        position = following.end() if following else position
        if text.startswith("}", position):
            break
    closing = text.find("}", position)
    return _object(properties, required), closing + 1 if closing >= 0 else len(text)


# Python stubs

_STUB = re.compile(r'^def (?P<name>\w+)\((?P<takes>[^\n]*)\):\n    """(?P<doc>.*?)\n?    """', re.M | re.S)
_STUB_PARAMETER = re.compile(r"(?:^|, )(?P<name>\w+): \w+(?P<optional> = )?")
_STUB_LINE = re.compile(r"^        (?P<name>\w+): (?P<text>.*)$", re.M)


def _find_stubs(prompt: str) -> Iterator[Tool]:
    for found in _STUB.finditer(prompt):
        about, _, lines = found["doc"].partition("    Args:")
        members = {line["name"]: _parse_parameter(line["text"]) for line in _STUB_LINE.finditer(lines)}
        required = [taken["name"] for taken in _STUB_PARAMETER.finditer(found["takes"]) if not taken["optional"]]
        yield Tool(found["name"], about.strip(), _object(members, [name for name in required if name in members]))


# Declarations

_DECLARATION = re.compile(r"declaration:(?P<name>[\w.-]+)(?=\{)")
_TOKEN = re.compile(
    r'(?P<quote><escape>|<\|"\|>)(?P<text>.*?)(?P=quote)|(?P<key>[^\s{}\[\],:<]+)(?=:)|(?P<rest>[^\s{}\[\],:]+|.)', re.S
)


def _find_declarations(prompt: str) -> Iterator[Tool]:
    for found in _DECLARATION.finditer(prompt):
        value = _read_declaration(prompt, found.end())
        schema = _lower_types(value.get("parameters", {}))
        yield Tool(found["name"], str(value.get("description", "")), schema)


def _read_declaration(prompt: str, start: int) -> Schema:
    """Convert an object with bare keys and marked strings to JSON, token by token."""
    written, depth = [], 0
    for token in _TOKEN.finditer(prompt, start):
        quoted = token["key"] if token["quote"] is None else token["text"]
        written.append(token[0] if quoted is None else json.dumps(quoted))
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if not depth:
            break
    try:
        value = json.loads("".join(written))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _lower_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: value.lower() if key == "type" and isinstance(value, str) else _lower_types(value)
            for key, value in schema.items()
        }
    return [_lower_types(item) for item in schema] if isinstance(schema, list) else schema


TOOL_PARSERS: tuple[Callable[[str], Iterator[Tool]], ...] = (
    _find_json,
    _find_sections,
    _find_elements,
    _find_types,
    _find_stubs,
    _find_declarations,
)
