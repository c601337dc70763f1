"""Edge cases of reading: marks that may continue, and the effect of the offered tools."""

from __future__ import annotations

import pytest
from support.rows import in_one_test
from support.samples import read_events

import toolglot
from toolglot.core.conversation import Tool
from toolglot.core.events import CallArguments
from toolglot.core.schema.toolset import compile_tools
from toolglot.reading.reader import dialect_index

OPEN_ENDED = [{"name": "log", "parameters": {"type": "object"}}]
WRITE = [
    {
        "name": "write",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "body": {"type": "string"}},
            "required": ["path", "body"],
        },
    }
]


@pytest.mark.parametrize(
    "text",
    [
        # an element that may still become a wrapper while the text goes on
        "<tool_call>\n<function=log>\n<tool_call_x>\nval\n</tool_call_x>\n</function>\n</tool_call>",
        "<tool_call>\n<function=log>\n<a>1</a>\n<tool_call_x> val</tool_call_x>\n</function>\n</tool_call>",
    ],
)
def test_an_opener_that_waits_is_read_where_it_stands(text: str) -> None:
    whole = read_events([text], tools=OPEN_ENDED)
    assert toolglot.read(text, OPEN_ENDED).calls[0].arguments.endswith('val"}')
    for cut in range(1, len(text)):
        assert read_events([text[:cut], text[cut:]], tools=OPEN_ENDED) == whole
        assert read_events([text[: cut // 2], text[cut // 2 : cut], text[cut:]], tools=OPEN_ENDED) == whole


@pytest.mark.parametrize(
    ("head", "piece", "leaves"),
    [
        # what follows the closing mark cannot go on with the call, so it was part of the value
        (
            "<tool_call>\n<function=write>\n<parameter=path>\na\n</parameter>\n<parameter=body>\nx",
            "</parameter> s",
            "</parameter> s",
        ),
        ('<tool_call>\n{"name": "write", "arguments": {"path": "a", "body": "xxxx', '" s', '\\" s'),
    ],
)
def test_a_quoted_end_leaves_as_soon_as_it_is_known(head: str, piece: str, leaves: str) -> None:
    reader = toolglot.Reader(WRITE)
    reader.feed(head)
    assert reader.feed(piece) == [CallArguments(0, leaves)]


@pytest.mark.parametrize("key", ['"path"', '"path" ', "'path'", "path", '"pa\\u0074h"', '"path"' + " " * 20])
def test_keys_are_read_however_they_are_written(key: str) -> None:
    text = f'<tool_call>\n{{"name": "write", "arguments": {{{key}: "a", "body": "b"}}}}\n</tool_call>'
    assert toolglot.read(text, WRITE).calls[0].arguments == '{"path":"a","body":"b"}'
    assert read_events(list(text), tools=WRITE) == read_events([text], tools=WRITE)


@pytest.mark.parametrize("size", [128, 160, 161, 600, 5000])
def test_names_may_be_longer_than_any_mark(size: int) -> None:
    name = "n" * size
    tools = [{"name": name}, {"name": "write"}]
    for text in (f"Look: <{name}>", f"{name}(a=1)", f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'):
        toolglot.read(text, tools)
    assert toolglot.read("<tool_call>\n<function=write>\n</function>\n</tool_call>", tools).calls[0].name == "write"


def test_tools_are_compiled_once() -> None:
    tools = tuple(Tool(name, "", {"type": "object"}) for name in ("read", "write"))
    again = tuple(Tool(name, "", {"type": "object"}) for name in ("read", "write"))
    compiled = compile_tools(tools, ())
    assert compile_tools(tools, ()) is compile_tools(again, ()) is compiled
    assert compile_tools(tools, ("more",)).names == ("read", "write", "more")
    assert compile_tools(tools, ()).names == compiled.names
    for number in range(300):
        compile_tools((Tool(f"tool_{number}"),), ())
    assert compile_tools(tools, ()).names == compiled.names


@pytest.mark.parametrize(
    ("shape", "written", "read"),
    [
        ({"type": "integer"}, "5", '{"n":5}'),
        ({"type": "integer"}, '"5"', '{"n":5}'),
        ({"type": "string"}, "5", '{"n":"5"}'),
        ({"enum": ["low", "high"]}, "low", '{"n":"low"}'),
        ({"enum": ["low", "high"]}, "middle", None),
    ],
)
def test_a_free_text_becomes_what_the_tool_takes(shape: dict[str, object], written: str, read: str | None) -> None:
    tools = [{"name": "set", "parameters": {"type": "object", "properties": {"n": shape}, "required": ["n"]}}]
    reading = toolglot.read(f"Action: set\nAction Input: {written}\nObservation:", tools)
    assert [call.arguments for call in reading.calls] == ([read] if read else [])


def test_the_kind_of_content_is_part_of_a_name_that_is_offered() -> None:
    text = "<|channel|>commentary to=functions.parse_json<|message|>{}<|call|>"
    assert toolglot.read(text, [{"name": "parse_json"}, {"name": "parse_"}]).calls[0].name == "parse_json"
    assert toolglot.read(text.replace("e_", "e"), [{"name": "parse"}]).calls[0].name == "parse"
    assert toolglot.read(text.replace("e_", "e"), [{"name": "other"}]).calls[0].name == "parsejson"


@in_one_test(
    ("model", "dialect"),
    [
        ("qwen3-max", "roo_xml"),
        ("Qwen/qwen3-max-2026-01-23", "roo_xml"),
        ("qwen3-32b", "hermes"),
        ("claude-2.1", "anthropic_legacy"),
        ("claude-sonnet-4", "anthropic"),
        ("mistral-small-3.2-24b", "mistral_callid"),
        ("deepseek-v3.2-exp", "deepseek_v31"),
        ("deepseek-v3.2", "dsml_v32"),
        ("llama-3.2-3b", "pythonic"),
        ("nous-hermes-3-llama-3.1-8b", "hermes"),
    ],
)
def test_the_narrower_of_two_globs_decides_the_dialect_of_a_model(model: str, dialect: str) -> None:
    assert dialect_index().resolve_hint(model) == dialect
