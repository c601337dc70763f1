"""Structure that is damaged at one place: a value never swallows what follows it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.rows import in_one_test
from support.samples import random_cuts, read_events

import toolglot
from toolglot.reading.reader import collect

TEXT = {"type": "string"}
TOOLS = [
    {
        "name": "search",
        "parameters": {
            "type": "object",
            "properties": {"pattern": TEXT, "path": TEXT, "hidden": {"type": "boolean"}},
            "required": ["pattern"],
        },
    },
    {"name": "run", "parameters": {"type": "object", "properties": {"command": TEXT}, "required": ["command"]}},
]


def read(text: str) -> list[tuple[str, dict[str, Any]]]:
    whole = read_events([text], tools=TOOLS)
    assert read_events(list(text), tools=TOOLS) == whole
    assert read_events(random_cuts(text, 7), tools=TOOLS) == whole
    assert collect(whole).rejected == toolglot.read(text, tools=TOOLS).rejected
    return [(call.name, json.loads(call.arguments)) for call in collect(whole).calls]


JSON_FRAMES = [
    '<tool_call>\n{{"name": "search", "arguments": {}}}\n</tool_call>',
    '{{"name": "search", "arguments": {}}}',
    '[TOOL_CALLS][{{"name": "search", "arguments": {}}}]',
    "<function=search>{}</function>",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
    "<|tool_calls_section_end|>",
]


@in_one_test(
    "body",
    [
        '{"pattern": "a b", ""path": "src"}',
        '{"pattern": "a b", path": "src"}',
        '{"pattern": "a b", "path: "src"}',
        '{"pattern": "a b", "path"": "src"}',
        '{"pattern": "a b", >"path": "src"}',
        '{"pattern": "a b", "hidden" true}',
        '{"pattern": "a b", "hidden">: true}',
    ],
)
@in_one_test("frame", JSON_FRAMES)
def test_text_does_not_swallow_a_damaged_member(frame: str, body: str) -> None:
    assert not read(frame.format(body))


@in_one_test("frame", JSON_FRAMES)
def test_text_with_quotes_may_name_arguments(frame: str) -> None:
    for written, pattern in (
        ('{"pattern": "say "a", then path of b", "hidden": true}', 'say "a", then path of b'),
        ('{"path": "src", "pattern": "a "b", ""path" c", "hidden": true}', 'a "b", ""path" c'),
    ):
        ((_, arguments),) = read(frame.format(written))
        assert arguments["pattern"] == pattern


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "search", "arguments": "hidden": true, "pattern": "a"}}\n</tool_call>',
        '[TOOL_CALLS][{"name": "search", "arguments": "path": "src", "pattern": "a"}}]',
    ],
)
def test_arguments_without_their_bracket_are_not_dropped(text: str) -> None:
    assert not read(text)


@pytest.mark.parametrize(
    "text",
    [
        "<function=run>>\n<parameter=command>\nls\n</parameter>\n</function>",
        "<function=run>'\n<parameter=command>\nls\n</parameter>\n</function>",
        '<invoke name="run">,\n<parameter name="command">ls</parameter>\n</invoke>',
        '<function=run>>{"command": "ls"}</function>',
        'Action: run\nAction Input:: {"command": "ls"}',
        'Action: run\nAction Input: \'{"command": "ls"}\'',
    ],
)
def test_stray_characters_before_arguments_are_no_text(text: str) -> None:
    assert read(text) in ([], [("run", {"command": "ls"})])


@pytest.mark.parametrize(
    "text",
    [
        "<function=search>\n<parameter=pattern>\na\n</parameter>\n<parameter==path>\nsrc\n</parameter>\n</function>",
        "<function=search>\n<parameter=path>\nsrc\n</parameter}>\n<parameter=pattern>\na\n</parameter>\n</function>",
        "<function=search>\n<parameter=path>\nsrc\n</parameter>>\n<parameter=pattern>\na\n</parameter>\n</function>",
        '<invoke name="search">\n<parameter name="pattern">a</parameter>\n<parameter name"path">src</parameter>\n</invoke>',
        '<invoke name="search">\n<parameter name="pattern">a</parameter>\n<parameter\' name="path">src</parameter>\n</invoke>',
        "<tool_call>search<arg_key>pattern</arg_key><arg_value>a</arg_value><arg_key>>path</arg_key>"
        "<arg_value>src</arg_value></tool_call>",
        "<tool_call>search<arg_key>pattern</arg_key><arg_value>a</arg_value>path</arg_key><arg_value>src</arg_value>"
        "</tool_call>",
        "<tool_call>search\n<arg_key>pattern</arg_key>\n<arg_value>a</arg_value>\n<arg_value>src</arg_value>\n</tool_call>",
        "<tool_call>search<arg_key>pattern</arg_key><arg_value>a</arg_value</tool_call>",
        "<search>\n<pattern>a</pattern\n</search>",
    ],
)
def test_value_does_not_swallow_a_damaged_mark(text: str) -> None:
    assert read(text) in ([], [("search", {"pattern": "a", "path": "src"})], [("search", {"pattern": "a"})])


@in_one_test("between", ["\n", "", ":", " >\n", ",", "arg_value>"])
def test_pair_without_the_opener_of_its_value(between: str) -> None:
    opener = "" if between in ("\n", "arg_value>") else "<arg_value>"
    text = f"<tool_call>search\n<arg_key>pattern</arg_key>{between}{opener}a</arg_value>\n</tool_call>"
    assert read(text) == [("search", {"pattern": "a"})]


def test_tag_at_the_end_of_a_file_is_no_wrong_closing_mark() -> None:
    text = "<function=search>\n<parameter=pattern>\n+ a\n+ </b>\n\n<parameter=path>\nsrc\n</parameter>\n</function>"
    assert read(text) == []  # the empty line is either layout or part of the value
    assert read(text.replace("\n\n", "\n")) == [("search", {"pattern": "+ a\n+ </b>", "path": "src"})]
