"""Grammars: whatever they let a model write is a call that is read without repairs and fits its tool."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from gbnf import Grammar

from toolglot import read
from toolglot.constraint import grammar
from toolglot.conversation import Tool
from toolglot.dialects import all_dialects

TEXT = {"type": "string"}


def tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> Tool:
    return Tool(name, "", {"type": "object", "properties": properties, "required": list(required)})


WEATHER = tool("weather", ("city",), days={"type": "integer"}, city=TEXT)
WRITE = tool("write_file", ("path", "content"), path=TEXT, content=TEXT, mode={"enum": ["w", "a"]})
NOTHING = tool("wait")
CHOICES = tool("choices", (), unit={"enum": ["C", "F", None]}, exact={"type": "boolean"}, one={"const": 7})
NESTED = tool(
    "nested",
    ("items",),
    items={"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}},
    rate={"type": ["number", "null"]},
    either={"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
    free={"type": "object"},
)
TREE = Tool(
    "tree",
    "",
    {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "required": ["root"],
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"value": {"type": "number"}, "children": {"items": {"$ref": "#/$defs/node"}}},
                "required": ["value"],
            }
        },
    },
)
TOOLS = (WEATHER, WRITE, NOTHING, CHOICES, NESTED, TREE)
SPOKEN = [record.name for record in all_dialects() if grammar(TOOLS, record.name, required=True, parallel=False)]


def define(tools: tuple[Tool, ...]) -> list[dict[str, Any]]:
    return [{"name": each.name, "parameters": each.parameters} for each in tools]


def make(dialect: str, *, required: bool = True, parallel: bool = False, tools: tuple[Tool, ...] = TOOLS) -> str:
    made = grammar(tools, dialect, required=required, parallel=parallel)
    assert made is not None
    return made


def texts(dialect: str, count: int, **manner: bool) -> Iterator[str]:
    written = Grammar(make(dialect, **manner), random.Random(dialect))
    return (written.write() for _ in range(count))


def test_the_dialects_that_matter_have_a_grammar() -> None:
    main = {"hermes", "roo_xml", "qwen3_coder", "glm45", "anthropic", "minimax_m2", "kimi_k2", "deepseek_v31"}
    assert main | {"mistral_args", "llama3_json", "fenced_json", "react", "harmony"} <= set(SPOKEN)
    assert len(SPOKEN) > 40


def test_what_has_no_grammar_says_so() -> None:
    assert grammar(TOOLS, "shell_fence", required=True, parallel=False) is None
    assert grammar(TOOLS, "no such dialect", required=True, parallel=False) is None
    assert grammar((), "hermes", required=True, parallel=False) is None
    assert grammar((tool("odd", ("a b",), **{"a b": TEXT}),), "roo_xml", required=True, parallel=False) is None


@pytest.mark.parametrize("dialect", SPOKEN)
def test_every_text_of_the_grammar_is_one_call_without_repairs(dialect: str) -> None:
    for text in texts(dialect, 60):
        reading = read(text, define(TOOLS), dialect)
        assert [call.repairs for call in reading.calls] == [()], text
        assert (reading.rejected, reading.text.strip()) == ([], ""), text
        call = reading.calls[0]
        wanted = next(each for each in TOOLS if each.name == call.name).parameters
        assert set(wanted["required"]) <= set(json.loads(call.arguments)) <= set(wanted["properties"]), text
