"""Grammars, structural tags and schemas with random tools: what they allow is read, and what is written they allow.

The texts come from an interpreter of our own. Whether a text follows a grammar or a tag is decided by xgrammar's own
matcher, which reads GBNF too; whether llama.cpp takes the grammars is checked in ``test_grammar.py``.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest
from support.fragments import SCALE
from support.gbnf import Grammar
from support.random_tools import fits, make_arguments, make_tool
from support.rows import in_one_test
from support.xgrammar_engine import Matcher, needs_xgrammar

from toolglot import read
from toolglot.core.conversation import Tool
from toolglot.dialects.records import all_dialects
from toolglot.prompting.call_writer import write_call
from toolglot.prompting.grammar.answer_schema import build_answer_schema
from toolglot.prompting.grammar.call_shape import find_call_shape
from toolglot.prompting.grammar.gbnf import build_grammar
from toolglot.prompting.grammar.structural_tag import build_structural_tag

DIALECTS = [spec.name for spec in all_dialects() if find_call_shape(spec.name)]
ELEMENTS = ("roo_xml", "anthropic_legacy")
"""Dialects in which the writer writes objects and lists as elements, and the grammar as JSON. Both are read."""

TOOLS = tuple(make_tool(number, random.Random(number)) for number in range(20))
TOOLS_PER_DIALECT = min(6 * SCALE, len(TOOLS))
DEFINITIONS = [{"name": tool.name, "parameters": tool.parameters} for tool in TOOLS]
FLAT_TOOLS = [
    tool
    for tool in TOOLS
    if '"items"' not in (schema := json.dumps(tool.parameters)) and schema.count('"properties"') == 1
]
TEXT = {"type": "string"}
WRITE = Tool(
    "write", "", {"type": "object", "properties": {"path": TEXT, "lines": {"type": "array", "items": TEXT}}, "required": ["path"]}
)  # fmt: skip
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/node"}},
    "required": ["root"],
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {"type": "number"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["value"],
        }
    },
}


def choose_tools(chance: random.Random, tools: Sequence[Tool] = TOOLS) -> tuple[Tool, ...]:
    """Some of the tools; together the dialects try all of them."""
    return tuple(chance.sample(tools, min(TOOLS_PER_DIALECT, len(tools))))


def tag_of(dialect: str, tools: tuple[Tool, ...], *, parallel: bool = False) -> Mapping[str, Any]:
    made = build_structural_tag(tools, dialect, parallel=parallel)
    assert made is not None
    return made


def write_text(tag: Mapping[str, Any], chance: random.Random) -> str:
    """A random text that follows a structural tag of ours."""
    assert tag["type"] == "tags_with_separator" and tag["at_least_one"]
    count = 1 if tag["stop_after_first"] else chance.randint(1, 3)
    return str(tag["separator"]).join(write_tag(chance.choice(tag["tags"]), chance) for _ in range(count))


def write_tag(tag: Mapping[str, Any], chance: random.Random) -> str:
    assert tag["content"]["type"] == "grammar"
    return f"{tag['begin']}{Grammar(tag['content']['grammar'], chance).write()}{tag['end']}"


def assert_reads_as(text: str, dialect: str, names: list[str]) -> None:
    reading = read(text, DEFINITIONS, dialect)
    assert [(call.name, call.repairs) for call in reading.calls] == [(name, ()) for name in names], text
    assert (reading.rejected, reading.text.strip()) == ([], ""), text
    for call in reading.calls:
        schema = next(tool.parameters for tool in TOOLS if tool.name == call.name)
        assert fits(schema, json.loads(call.arguments)), text


@cache
def matchers(dialect: str, tool: Tool) -> tuple[Matcher, Matcher]:
    grammar = build_grammar((tool,), dialect, required=True, parallel=False)
    assert grammar is not None
    return Matcher.of_tag(tag_of(dialect, (tool,))), Matcher.of_grammar(grammar)


# -- what is allowed is read -------------------------------------------------------------------------------------------


@in_one_test("dialect", DIALECTS)
def test_every_text_of_a_tag_is_one_valid_call(dialect: str) -> None:
    chance = random.Random(dialect)
    for tool in choose_tools(chance):
        for _ in range(2):
            assert_reads_as(write_text(tag_of(dialect, (tool,)), chance), dialect, [tool.name])


@pytest.mark.parametrize("dialect", ["hermes", "qwen3_coder", "roo_xml", "glm45", "deepseek_v31"])
def test_several_calls_are_read_one_by_one(dialect: str) -> None:
    chance = random.Random(dialect)
    tag = tag_of(dialect, TOOLS, parallel=True)
    for _ in range(30):
        tags = chance.choices(range(len(TOOLS)), k=chance.randint(1, 3))
        text = tag["separator"].join(write_tag(tag["tags"][number], chance) for number in tags)
        assert_reads_as(text, dialect, [TOOLS[number].name for number in tags])


@needs_xgrammar
@in_one_test("dialect", DIALECTS)
def test_the_engine_takes_every_tag_and_allows_the_same_texts(dialect: str) -> None:
    chance = random.Random(dialect)
    tools = choose_tools(chance)
    for tool in tools:
        by_tag, by_grammar = matchers(dialect, tool)
        text = write_text(tag_of(dialect, (tool,)), chance)
        assert by_tag.accepts(text) and by_grammar.accepts(text), text
        assert not by_tag.accepts(text[: chance.randrange(len(text) - 1)]), text
        assert not by_tag.accepts(f"Well. {text}"), text
    tag = tag_of(dialect, tools, parallel=True)
    several = Matcher.of_tag(tag)
    for _ in range(5):
        assert several.accepts(write_text(tag, chance))


# -- what is written is allowed ----------------------------------------------------------------------------------------


@needs_xgrammar
@in_one_test("dialect", DIALECTS)
def test_every_written_call_follows_tag_and_grammar(dialect: str) -> None:
    chance = random.Random(dialect)
    for tool in choose_tools(chance, FLAT_TOOLS if dialect in ELEMENTS else TOOLS):
        by_tag, by_grammar = matchers(dialect, tool)
        for _ in range(2):
            given = json.dumps(make_arguments(dict(tool.parameters), chance), ensure_ascii=False)
            text = write_call(dialect, tool.name, given, TOOLS)
            assert by_tag.accepts(text) and by_grammar.accepts(text), text


@needs_xgrammar
@pytest.mark.parametrize("dialect", ["hermes", "qwen3_coder", "roo_xml"])
def test_nothing_but_a_call_of_the_right_kind_is_allowed(dialect: str) -> None:
    only = Matcher.of_tag(tag_of(dialect, (WRITE,)))
    written = write_call(dialect, "write", '{"path": "a"}', [WRITE])
    assert only.accepts(written)
    assert not only.accepts(f"{written}\n{written}")
    assert Matcher.of_tag(tag_of(dialect, (WRITE,), parallel=True)).accepts(f"{written}\n{written}")
    for other in ("", "Fine.", f"{written} Done.", written.replace("write", "wipe"), written.replace("path", "pfad")):
        assert not only.accepts(other), other


def test_a_tag_has_the_text_of_the_sample_around_its_grammar() -> None:
    tag = tag_of("hermes", (WRITE,))
    assert {key: tag[key] for key in ("type", "separator", "at_least_one", "stop_after_first")} == {
        "type": "tags_with_separator",
        "separator": "\n",
        "at_least_one": True,
        "stop_after_first": True,
    }
    [only] = tag["tags"]
    assert (only["type"], only["begin"]) == ("tag", '<tool_call>\n{"name": "write", "arguments": ')
    assert only["end"] == "}\n</tool_call>"
    assert only["content"]["grammar"].startswith('root ::= "{" "\\"path\\": " value-')


def test_a_dialect_without_a_grammar_has_no_tag() -> None:
    odd = Tool("odd", "", {"type": "object", "properties": {"a b": TEXT}, "required": ["a b"]})
    assert build_structural_tag(TOOLS, "shell_fence", parallel=False) is None
    assert build_structural_tag(TOOLS, "no such dialect", parallel=False) is None
    assert build_structural_tag((), "hermes", parallel=False) is None
    assert build_structural_tag((odd,), "roo_xml", parallel=False) is None
    assert build_structural_tag((odd,), "hermes", parallel=False) is not None


# -- a schema for the whole answer -------------------------------------------------------------------------------------


def answer_of(tool: Tool, chance: random.Random) -> str:
    given = make_arguments(dict(tool.parameters), chance)
    return json.dumps({"name": tool.name, "arguments": given}, ensure_ascii=False)


@in_one_test("dialect", sorted({spec.name for spec in all_dialects()} - {"shell_fence"}))
def test_an_answer_that_follows_the_schema_is_read_in_every_dialect(dialect: str) -> None:
    chance = random.Random(dialect)
    for tool in TOOLS:
        assert_reads_as(answer_of(tool, chance), dialect, [tool.name])


@needs_xgrammar
def test_the_schema_allows_the_calls_of_its_tools_only() -> None:
    chance = random.Random(0)
    every = build_answer_schema(TOOLS)
    assert every is not None
    all_tools = Matcher.of_schema(every)
    for tool in TOOLS:
        alone = build_answer_schema((tool,))
        assert alone is not None
        matcher = Matcher.of_schema(alone)
        for _ in range(5):
            text = answer_of(tool, chance)
            assert matcher.accepts(text) and all_tools.accepts(text), text
        assert not matcher.accepts('{"name": "other", "arguments": {}}')
        assert not matcher.accepts(f'{{"name": "{tool.name}"}}')


def test_a_type_that_contains_itself_becomes_a_definition() -> None:
    schema = build_answer_schema((Tool("tree", "", TREE),))
    assert schema is not None
    following = {"$ref": "#/$defs/type1"}
    assert schema["properties"]["arguments"]["properties"]["root"]["properties"]["next"] == following
    assert schema["$defs"]["type1"] == {
        "type": "object",
        "properties": {"value": {"type": "number"}, "next": following},
        "required": ["value"],
        "additionalProperties": False,
    }


@needs_xgrammar
def test_a_recursive_schema_is_taken_by_the_engine() -> None:
    tree = Tool("tree", "", TREE)
    schema = build_answer_schema((tree, WRITE))
    assert schema is not None
    text = '{"name": "tree", "arguments": {"root": {"value": 1, "next": {"value": 2.5}}}}'
    assert Matcher.of_schema(schema).accepts(text)
    assert not Matcher.of_schema(schema).accepts(text.replace('"value": 2.5', ""))


def test_without_tools_there_is_no_schema() -> None:
    assert build_answer_schema(()) is None
