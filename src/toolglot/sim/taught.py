"""What a prompt teaches: the tools that are described in it, the dialect it asks for, results told as text.

*Strategy.* Nothing here is told by a side channel: the prompt is read as a model would read it. Tools are described in
few manners (JSON objects, sections with headings, XML elements), and each manner is found by its own shape, wherever it
stands. A prompt that describes no tool teaches none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolglot.conversation import Tool

DECODER = json.JSONDecoder()
JSON_START = re.compile(r'\{\s*"(?:type|function|name)"\s*:')

SECTION = re.compile(r"^#{2,4} (?P<name>[\w.-]+)[ \t]*\n(?P<body>.*?)(?=^#{1,4} |\Z)", re.M | re.S)
SECTION_ABOUT = re.compile(r"^Description:[ \t]*(.*)$", re.M)
SECTION_PARAMETER = re.compile(
    r"^[-*] (?P<name>[\w.-]+): *\((?P<need>required|optional)\)[ \t]*"
    r"(?:(?P<type>string|number|integer|boolean|array|object)\b[^-\n]*)?(?:- )?(?P<about>.*)$",
    re.M,
)
ENUM = re.compile(r"\b(?:one of|enum|allowed values|values)\b:?[ \t]*\[?([^\]\n).;]+)", re.I)

XML_TOOL = re.compile(r"<function>\s*<name>(?P<name>[^<]+)</name>(?P<body>.*?)</function>", re.S)
XML_PARAMETER = re.compile(r"<parameter>\s*<name>(?P<name>[^<]+)</name>(?P<body>.*?)</parameter>", re.S)
XML_REQUIRED = re.compile(r"<required>(.*?)</required>", re.S)


def find_tools(prompt: str) -> tuple[Tool, ...]:
    """The tools that a prompt describes, in its order; none if it describes none."""
    found: dict[str, Tool] = {}
    for manner in (_find_json, _find_xml, _find_sections):
        for tool in manner(prompt):
            found.setdefault(tool.name, tool)
        if found:
            break
    return tuple(found.values())


def _find_json(prompt: str) -> Iterator[Tool]:
    """Tools written as JSON objects, alone, in lines or in an array."""
    position = 0
    while start := JSON_START.search(prompt, position):
        try:
            value, position = DECODER.raw_decode(prompt, start.start())
        except ValueError:
            position = start.end()
            continue
        function = value.get("function", value)
        if isinstance(function, Mapping) and _describes_tool(function):
            yield Tool(function["name"], str(function.get("description") or ""), _schema_of(function))


def _describes_tool(function: Mapping[str, Any]) -> bool:
    """An example of a call has a name too, but it has arguments and no description."""
    name = function.get("name")
    told = {"description", "parameters", "input_schema", "parameter_definitions"} & function.keys()
    return isinstance(name, str) and bool(name.strip()) and bool(told) and "arguments" not in function


def _schema_of(function: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = function.get("parameters", function.get("input_schema"))
    return schema if isinstance(schema, Mapping) else {}


def _find_xml(prompt: str) -> Iterator[Tool]:
    """Tools written as elements, as the Qwen coder models know them."""
    for found in XML_TOOL.finditer(prompt):
        body = found["body"]
        properties = {
            parameter["name"].strip(): _without_empty(
                {"type": _element("type", parameter["body"]), "description": _element("description", parameter["body"])}
                | {"enum": _read_list(_element("enum", parameter["body"]))}
            )
            for parameter in XML_PARAMETER.finditer(body)
        }
        required = [name for wanted in XML_REQUIRED.findall(body) for name in _read_list(wanted) if name in properties]
        about = _element("description", XML_PARAMETER.sub("", body))
        yield Tool(found["name"].strip(), about, _object(properties, required))


def _find_sections(prompt: str) -> Iterator[Tool]:
    """Tools written as sections: a heading, Description, Parameters, Usage."""
    for found in SECTION.finditer(prompt):
        name, body = found["name"], found["body"]
        if f"<{name}>" not in body and f"<{name}/>" not in body:
            continue
        about = SECTION_ABOUT.search(body)
        properties, required = {}, []
        for parameter in SECTION_PARAMETER.finditer(body):
            described = parameter["about"].strip()
            values = ENUM.search(described)
            properties[parameter["name"]] = _without_empty(
                {"type": parameter["type"] or "string", "description": described}
                | {"enum": _read_list(values[1]) if values else []}
            )
            if parameter["need"] == "required":
                required.append(parameter["name"])
        yield Tool(name, about[1].strip() if about else "", _object(properties, required))


def _element(tag: str, body: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", body, re.S)
    return found[1].strip() if found else ""


def _read_list(text: str) -> list[str]:
    """Names in a list, with or without quotes and brackets."""
    return [word.strip(" \t\n\"'`[]") for word in re.split(r"[,|]|\bor\b", text) if word.strip(" \t\n\"'`[]")]


def _without_empty(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if value}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


# The dialect that is taught

TAUGHT_BY = (
    ("<function=", "qwen3_coder"),
    ("<arg_key>", "glm45"),
    ("<invoke name=", "anthropic"),
    ("```tool_code", "fenced_tool_flat"),
    ("<tool_call>", "hermes"),
    ("```json", "fenced_json"),
)
"""Marks that give a dialect away, the telling ones first."""


def taught_dialect(prompt: str) -> str:
    """The dialect a prompt asks for: the one whose marks it shows; sections with tags for examples mean tags."""
    return next((dialect for mark, dialect in TAUGHT_BY if mark in prompt), "roo_xml")


# Results told as text

RESULTS = tuple(
    re.compile(pattern, re.S)
    for pattern in (
        r"<tool_response>\s*(.*?)\s*</tool_response>",
        r"<tool_result>\s*(.*?)\s*</tool_result>",
        r"<function_results>\s*<result>\s*(.*?)\s*</result>\s*</function_results>",
        r"\[[\w.-]+ for '[^'\n]*'\] Result:\s*(.*)",
        r"(?:Tool Result|Tool Error|Error) from [\w.-]+:\s*(.*?)(?=\n\n(?:Tool Result|Tool Error|Error) from |\Z)",
        r"EXECUTION RESULT of \[[\w.-]+\]:\s*(.*)",
        r"Observation:\s*(.*)",
    )
)


def split_result(text: str) -> tuple[str, str | None]:
    """What a user message asks, and the result it tells, if it tells one."""
    for pattern in RESULTS:
        results = pattern.findall(text)
        if results:
            return pattern.sub("", text).strip(), "\n".join(results)
    return text, None
