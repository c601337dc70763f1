"""Grammars: whatever they let a model write is a call that is read without repairs and fits its tool."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from support.embedded import ask, needs_model, start_model
from support.fragments import SCALE
from support.gbnf import Grammar
from support.rows import in_one_test

from toolglot import read
from toolglot.core.conversation import Tool
from toolglot.dialects.records import all_dialects
from toolglot.prompting.grammar.gbnf import build_grammar, build_text_grammar

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
WITH_GRAMMAR = [spec.name for spec in all_dialects() if build_grammar(TOOLS, spec.name, required=True, parallel=False)]


def define(tools: tuple[Tool, ...]) -> list[dict[str, Any]]:
    return [{"name": each.name, "parameters": each.parameters} for each in tools]


def make(dialect: str, *, required: bool = True, parallel: bool = False, tools: tuple[Tool, ...] = TOOLS) -> str:
    made = build_grammar(tools, dialect, required=required, parallel=parallel)
    assert made is not None
    return made


def texts(dialect: str, count: int, *, required: bool = True, parallel: bool = False) -> Iterator[str]:
    written = Grammar(make(dialect, required=required, parallel=parallel), random.Random(dialect))
    return (written.write() for _ in range(count))


def test_the_dialects_that_matter_have_a_grammar() -> None:
    main = {"hermes", "roo_xml", "qwen3_coder", "glm45", "anthropic", "minimax_m2", "kimi_k2", "deepseek_v31"}
    assert main | {"mistral_args", "llama3_json", "fenced_json", "react", "harmony"} <= set(WITH_GRAMMAR)
    assert len(WITH_GRAMMAR) > 40


def test_a_dialect_without_a_grammar_returns_none() -> None:
    assert build_grammar(TOOLS, "shell_fence", required=True, parallel=False) is None
    assert build_grammar(TOOLS, "no such dialect", required=True, parallel=False) is None
    assert build_grammar((), "hermes", required=True, parallel=False) is None
    assert build_grammar((tool("odd", ("a b",), **{"a b": TEXT}),), "roo_xml", required=True, parallel=False) is None


@in_one_test("dialect", WITH_GRAMMAR)
def test_every_text_of_the_grammar_is_one_call_without_repairs(dialect: str) -> None:
    for text in texts(dialect, 20 * SCALE):
        reading = read(text, define(TOOLS), dialect)
        assert [call.repairs for call in reading.calls] == [()], text
        assert (reading.rejected, reading.text.strip()) == ([], ""), text
        call = reading.calls[0]
        wanted = next(each for each in TOOLS if each.name == call.name).parameters
        assert set(wanted["required"]) <= set(json.loads(call.arguments)) <= set(wanted["properties"]), text


@pytest.mark.parametrize("dialect", ["hermes", "qwen3_coder", "roo_xml", "kimi_k2", "anthropic", "fenced_json"])
def test_several_calls_are_written_on_separate_lines(dialect: str) -> None:
    counts = set()
    for text in texts(dialect, 60, parallel=True):
        reading = read(text, define(TOOLS), dialect)
        assert {call.repairs for call in reading.calls} == {()}, text
        assert (reading.rejected, reading.text.strip()) == ([], ""), text
        counts.add(len(reading.calls))
    assert {1, 2, 3} <= counts <= set(range(1, 9))


@pytest.mark.parametrize("dialect", ["hermes", "qwen3_coder", "mistral_args", "fenced_json"])
def test_text_may_be_alone_or_before_a_call(dialect: str) -> None:
    seen = set()
    for text in texts(dialect, 200, required=False):
        reading = read(text, define(TOOLS), dialect)
        assert len(reading.calls) <= 1, text
        assert reading.rejected == [], text
        seen.add((bool(reading.text.strip()), bool(reading.calls)))
    assert seen >= {(True, False), (False, True), (True, True)}


@pytest.mark.parametrize("dialect", ["hermes", "qwen3_coder", "mistral_args", "fenced_json", "shell_fence"])
def test_an_answer_in_words_is_not_empty_and_holds_no_call(dialect: str) -> None:
    made = build_text_grammar(TOOLS, dialect)
    assert made is not None
    words = Grammar(made, random.Random(dialect))
    for _ in range(200):
        text = words.write()
        assert text
        assert read(text, define(TOOLS), dialect).calls == [], text


@needs_model
def test_a_real_model_cannot_call_where_words_are_due() -> None:
    question = [{"role": "user", "content": 'Repeat exactly: {"name": "weather", "arguments": {"city": "Oslo"}}'}]
    with start_model() as model:
        free = ask(model.base_url, question, temperature=0)
        held = ask(model.base_url, question, temperature=0, grammar=build_text_grammar((WEATHER,), "fenced_json"))
    assert '{"name":' in free
    assert held and not read(held, define((WEATHER,))).calls


def test_a_required_parameter_comes_first_and_values_are_typed() -> None:
    made = make("hermes", tools=(WEATHER,))
    assert made.index('\\"city\\": ') < made.index('(", " "\\"days\\": ')
    assert '"integer' not in made
    assert 'integer ::= "0" | "-"? [1-9]' in made


def test_text_between_tags_holds_no_mark_of_the_call() -> None:
    words = Grammar(make("roo_xml", tools=(WRITE,)), random.Random(0))
    for _ in range(300):
        text = words.write()
        assert text.count("</content>") == text.count("<path>") == text.count("</write_file>") == 1


def test_a_schema_that_cannot_be_used_leaves_the_tool_without_arguments() -> None:
    broken = Tool("broken", "", {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}})
    assert read(Grammar(make("hermes", tools=(broken,)), random.Random(0)).write()).calls[0].arguments == "{}"


def test_what_begins_like_bare_json_is_a_call_if_the_smallest_models_may() -> None:
    """Text can no longer contain the beginning of such a call, so that only tools that there are can be named."""
    plain = build_grammar(TOOLS, "hermes", required=False, parallel=False)
    bare = build_grammar(TOOLS, "hermes", required=False, parallel=False, bare=True)
    assert plain is not None and bare is not None
    begins = [line.split(" ::= ")[1] for line in bare.splitlines() if line.startswith("call-")]
    assert sum(body.startswith('"{\\"name\\"') for body in begins) == len(TOOLS)
    assert sum(body.startswith('"<tool_call>') for body in begins) == len(TOOLS)
    assert '"{\\"name\\"' not in plain
    assert bare.startswith("root ::= [^\\U0000003C\\U0000007B] text-"), "text is not empty"


@needs_model
def test_a_model_that_forgets_the_marks_names_a_tool_that_there_is() -> None:
    question = [{"role": "user", "content": 'Repeat exactly: {"name": "config.json", "arguments": {}}'}]
    held = build_grammar(TOOLS, "hermes", required=False, parallel=False, bare=True)
    with start_model() as model:
        answer = ask(model.base_url, question, grammar=held, max_tokens=100)
    assert answer and '{"name": "config' not in answer, answer


@needs_model
def test_the_model_server_takes_every_grammar_and_writes_a_call() -> None:
    question = [{"role": "user", "content": "What is the weather in Oslo?"}]
    with start_model() as model:
        for number, dialect in enumerate(WITH_GRAMMAR):
            held = make(dialect, required=number % 2 == 0, parallel=True)
            ask(model.base_url, question, grammar=held, max_tokens=1)
        for dialect in ("hermes", "roo_xml", "qwen3_coder"):
            held = make(dialect, tools=(WEATHER, NOTHING))
            answer = ask(model.base_url, question, grammar=held, max_tokens=100)
            calls = read(answer, define(TOOLS), dialect).calls
            assert [call.repairs for call in calls] == [()], answer
