"""Calls written in every dialect: the reader gives them back, whatever the arguments are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.rows import in_one_test
from support.samples import Sample, load_samples, load_tools

import toolglot
from toolglot.core.conversation import Tool, Tools
from toolglot.core.lenient_json import dump, parse
from toolglot.core.text_cache import TextCache
from toolglot.prompting import call_writer as writing
from toolglot.prompting.call_writer import can_name, parse_tools, write_call, write_calls
from toolglot.reading.reader import dialect_index

NAMES = [dialect.name for dialect in toolglot.list_dialects()]
WEATHER = parse_tools(
    [{"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
)

UNWRITTEN = {"shell_fence": "a fence is a call only to readers that list its command"}
OTHERWISE = {
    "anthropic_legacy": "texts of files stand on lines of their own",
    "anthropic_ns": "the dialect's sample has a namespace",
    "bfcl_concise_xml": "a number is a number, not an integer or a float",
    "bfcl_verbose_xml": "line breaks in attributes stay line breaks",
    "langchain_json": "the dialect's sample is on one line",
    "lfm2": "the dialect's sample has single quotes",
    "lmstudio": "the file ends in a line break",
    "llama3_json": "the dialect's sample begins with its token",
    "minicpm5": "CDATA only where it is needed",
    "olmo3": "Python's words",
    "yaml_xml": "texts of several lines are blocks",
}
"""Dialects whose Markdown sample is laid out in another way than the sample of their record, and why."""


def normal(arguments: str) -> str:
    return dump(parse(arguments).value)


def read_back(text: str, tools: tuple[Tool, ...]) -> list[tuple[str, str]]:
    reading = toolglot.read(text, tools=[{"name": tool.name, "parameters": tool.parameters} for tool in tools])
    assert reading.text.strip() == "" and reading.rejected == []
    return [(call.name, normal(call.arguments)) for call in reading.calls]


@in_one_test("dialect", [name for name in NAMES if name not in UNWRITTEN])
def test_the_sample_of_a_dialect_is_what_is_written(dialect: str) -> None:
    spec = next(spec for spec in toolglot.list_dialects() if spec.name == dialect)
    assert write_call(dialect, "get_weather", '{"city": "Oslo"}', WEATHER) == spec.sample


def code_samples() -> list[Sample]:
    return [sample for sample in load_samples() if sample.canonical and sample.path.stem == "nasty"]


@in_one_test("sample", code_samples(), ids=lambda sample: sample.id)
def test_code_as_an_argument_is_written_like_the_canonical_sample(sample: Sample) -> None:
    tools = parse_tools(load_tools(sample.tools))
    text = write_calls(sample.dialect, sample.expected.calls, tools)
    assert read_back(text, tools) == [(name, normal(arguments)) for name, arguments in sample.expected.calls]
    if sample.dialect not in {*UNWRITTEN, *OTHERWISE}:
        assert text == sample.text.rstrip("\n")


SEPARATE = {
    "cohere_rplus": "the dialect's sample is on one line",
    "deepseek_v3": "the dialect's sample is on one line",
    "fenced_json": "the dialect's sample is on one line",
    "bfcl_json": "the dialect's sample is on one line",
    "mistral_array": "each call has an id of its own",
    "mistral_args": "calls stand on lines of their own",
    "mistral_callid": "each call has an id of its own",
    "kimi_k2": "calls are counted",
    "kimi_k3": "calls are counted",
    "solar_open": "each call has an id of its own",
    "cohere_action": "each call has an id of its own",
    "harmony": "calls stand on lines of their own",
    "inkling": "calls stand on lines of their own",
    "functionary_v32": "calls stand on lines of their own",
    "functiongemma": "calls stand on lines of their own",
    "gemma4": "calls stand on lines of their own",
    "glm47": "calls stand on lines of their own",
    "muse_glimmer": "calls stand on lines of their own",
    "openhands": "calls stand on lines of their own",
    "gemma_tool_code": "each call has its fence",
    "minicpm3": "each call has its fence",
    "doubao": "a blank behind the comma",
}
"""Dialects whose Markdown sample of several calls is laid out in another way, and why."""


def several() -> list[Sample]:
    return [sample for sample in load_samples() if sample.canonical and sample.path.stem == "parallel"]


@in_one_test("sample", several(), ids=lambda sample: sample.id)
def test_several_calls_are_written_like_the_canonical_sample(sample: Sample) -> None:
    tools = parse_tools(load_tools(sample.tools))
    text = write_calls(sample.dialect, sample.expected.calls, tools)
    assert read_back(text, tools) == [(name, normal(arguments)) for name, arguments in sample.expected.calls]
    if sample.dialect not in {*UNWRITTEN, *OTHERWISE, *SEPARATE}:
        assert text == sample.text.rstrip("\n")


@in_one_test("dialect", NAMES)
def test_several_calls_of_one_message_are_read_back(dialect: str) -> None:
    tools = parse_tools(load_tools("house"))
    calls = [
        ("set_thermostat", '{"room":"Küche","celsius":21.5,"schedule":{"from":"06:30","days":[1,2,5]}}'),
        ("query_db", '{"sql":"SELECT id FROM t WHERE a<3 -- ok","limit":10,"params":["α","b c"]}'),
        ("list_sensors", "{}"),
    ]
    assert read_back(write_calls(dialect, calls, tools), tools) == calls


# -- any arguments -----------------------------------------------------------------------------------------------------

PIECES = [
    "</parameter>",
    "<parameter=x>",
    "</function>",
    "</tool_call>",
    "<tool_call>",
    "</invoke>",
    "]]>",
    "<![CDATA[",
    "```",
    "```json",
    '"',
    "'",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    "=",
    "<",
    ">",
    "&amp;",
    "<escape>",
    "「末」",
    "END_ARG",
    "Observation:",
    "Action:",
    "<think>",
    "</think>",
    "null",
    "true",
    "5",
    "007",
    "1.0",
    "1e5",
    "]<]minimax[>[",
    "</arg_value>",
    "<|close|>argument<|sep|>",
    "</use_it>",
    "<use_it>",
    "<text>",
    "</text>",
    "<item>x</item>",
    "#",
    "-",
    "key:",
    "%",
    "**",
    "functions.",
    "é",
    "漢",
    "🚀",
    "a",
    "C:",
    "C:\\new",
    "\\",
    "\\n",
    '<|"|>',
    "<|tool_call_end|>",
    "|",
]
BLANKS = ("\n", "\r\n", " ", "\t", "\x00", "\x1b", "\u2028", "\ud800", "\ufeff")
CHAIN = "\n</parameter>\n</function>\n</tool_call>"

texts = st.lists(st.sampled_from([*PIECES, *BLANKS, CHAIN]), max_size=6).map("".join) | st.text(max_size=12)
keys = st.sampled_from(["a", "text", "content", "path", "arguments", "name", "item", "type", "x-y", "é"]) | texts
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
KINDS: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}


def declare(arguments: dict[str, Any]) -> Tool:
    properties = {key: {"type": KINDS.get(type(value), "null")} for key, value in arguments.items()}
    return Tool("use_it", "", {"type": "object", "properties": properties, "required": list(arguments)})


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dialect=st.sampled_from(NAMES), arguments=st.dictionaries(keys, values, max_size=4), declared=st.booleans())
def test_any_arguments_are_read_back_in_any_dialect(dialect: str, arguments: dict[str, Any], declared: bool) -> None:
    tool = declare(arguments) if declared else Tool("use_it")
    text = json.dumps(arguments, ensure_ascii=False)
    assert read_back(write_call(dialect, "use_it", text, (tool,)), (tool,)) == [("use_it", normal(text))]


@in_one_test("dialect", NAMES)
@in_one_test(
    "arguments",
    [
        {"content": CHAIN + "\nmore"},
        {"content": "\n\nlines around\n\n", "path": ""},
        {"content": "]]></content></use_it>", "path": "```\n</think>"},
        {"content": '"\'\\ <|"|> <escape> 「末」\x00', "path": " blanks "},
    ],
    ids=["closers", "line-breaks", "cdata", "quotes"],
)
def test_values_that_look_like_marks_are_read_back(dialect: str, arguments: dict[str, str]) -> None:
    tool = declare(arguments)
    text = json.dumps(arguments)
    assert read_back(write_call(dialect, "use_it", text, (tool,)), (tool,)) == [("use_it", normal(text))]


def test_numbers_and_the_order_of_keys_are_kept_as_text() -> None:
    text = '{"z":1.0,"a":1,"b":1e5,"c":0.50}'
    for dialect in NAMES:
        tool = Tool("use_it", "", {"type": "object", "properties": {key: {"type": "number"} for key in "zabc"}})
        assert read_back(write_call(dialect, "use_it", text, (tool,)), (tool,)) == [("use_it", text)]


def test_a_huge_argument_is_read_back() -> None:
    arguments = {"content": "line of <b>text</b> & more\n" * 8000, "path": "a.txt"}
    tool = declare(arguments)
    for dialect in ("hermes", "qwen3_coder", "roo_xml", "pythonic"):
        assert read_back(write_call(dialect, "use_it", json.dumps(arguments), (tool,)), (tool,))[0][0] == "use_it"


def test_the_fallback_stays_inside_the_wrapper_of_the_dialect() -> None:
    text = write_call("seed_oss", "use_it", json.dumps({'a"b': CHAIN}), (Tool("use_it"),))
    assert text.startswith("<seed:tool_call>") and text.endswith("</seed:tool_call>")


# -- arguments that a client once got wrong ------------------------------------------------------------------------------


@in_one_test("dialect", NAMES)
def test_no_arguments_at_all_are_an_empty_object(dialect: str) -> None:
    assert read_back(write_call(dialect, "use_it", "", (Tool("use_it"),)), (Tool("use_it"),)) == [("use_it", "{}")]


@in_one_test("dialect", ["hermes", "roo_xml", "pythonic", "yaml_xml", "gemma4"])
@in_one_test("arguments", ['{"path": "/a', "rm -rf", "[1, 2]", '"text"', "{{}}", "\ud800", "[" * 500])
def test_arguments_that_are_no_object_become_one_argument(dialect: str, arguments: str) -> None:
    tool = Tool("use_it", "", {"type": "object", "properties": {"path": {"type": "string"}}})
    assert "use_it" in write_call(dialect, "use_it", arguments, (tool,))
    called = read_back(write_call(dialect, "use_it", arguments, (Tool("use_it"),)), (Tool("use_it"),))
    assert [list(json.loads(given)) for _, given in called] == [["arguments"]]


def test_arguments_against_the_schema_are_written_as_they_are() -> None:
    tool = Tool("use_it", "", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n", "m"]})
    assert write_call("roo_xml", "use_it", '{"n": "many"}', (tool,)) == "<use_it>\n<n>many</n>\n</use_it>"


def test_a_broken_schema_does_not_keep_a_call_from_being_written() -> None:
    tool = Tool("use_it", "", {"type": "object", "properties": {"n": {"type": "no type"}}})
    assert write_call("hermes", "use_it", '{"n": 1}', (tool,)).count("use_it") == 1


# -- names and the public face -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["read", "read_file", "get-weather", "a" * 64])
def test_plain_names_can_be_written(name: str) -> None:
    assert can_name("roo_xml", name) and can_name("hermes", name) and can_name("qwen3_coder", name)


@in_one_test("name", ["think", "a.b", "a/b", "a b", "wéather", "a" * 65, "1st", "<x>"])
def test_names_that_cannot_be_tags(name: str) -> None:
    assert not can_name("roo_xml", name)


def test_json_envelopes_take_more_names() -> None:
    for name in ("tool_call", "function", "parameter", "mcp.read", "a/b", "wéather", "a" * 100):
        assert can_name("hermes", name), name


def test_write_takes_openai_tools_and_a_mapping() -> None:
    tools = [
        {"type": "function", "function": {"name": "read", "parameters": {"properties": {"n": {"type": "integer"}}}}}
    ]
    text = toolglot.write("read", {"n": 3}, dialect="qwen3-coder-30b", tools=tools)
    assert text == "<tool_call>\n<function=read>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>"
    assert [call.arguments for call in toolglot.read(text, tools=tools).calls] == ['{"n":3}']


def test_an_unknown_dialect_is_a_usage_error() -> None:
    with pytest.raises(toolglot.UsageError, match="klingon"):
        toolglot.write("read", {}, dialect="klingon")
    with pytest.raises(toolglot.UsageError):
        toolglot.write("read", {}, dialect="auto")


def test_calls_that_fill_the_memory_are_not_remembered() -> None:
    before = len(writing._CALL_CACHE)
    arguments = json.dumps({"path": "a", "content": "x" * 100_000})
    assert "x" * 100_000 in writing.write_call("roo_xml", "write_file", arguments)
    assert len(writing._CALL_CACHE) == before


HARD = (
    "a",
    "",
    " a\n",
    "</content>",
    "</write_file>\n<write_file>",
    "</parameter>",
    "]]>",
    '"}',
    "<tool_call>",
    "1 < 2",
)


@pytest.mark.parametrize("dialect", [spec.name for spec in dialect_index().dialects])
def test_calls_are_the_same_whether_they_are_written_ahead(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"path": {"type": "string"}, "content": {"type": "string"}}
    tools = Tools([Tool("write_file", "", {"type": "object", "properties": kinds})])
    calls = [("write_file", json.dumps({"path": f"{number}", "content": text})) for number, text in enumerate(HARD)]
    alone = [writing._write(dialect, name, arguments, tools[0]) for name, arguments in calls]
    for some in (calls, calls[:2]):
        monkeypatch.setattr(writing, "_CALL_CACHE", TextCache(1 << 20))
        writing.cache_calls(dialect, some, tools)
        assert [writing.write_call(dialect, *call, tools) for call in some] == alone[: len(some)]


def test_written_calls_hold_no_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools have long descriptions and schemas, which the size of the cache does not count."""
    kept = TextCache[writing._CallKey](1 << 14)
    monkeypatch.setattr(writing, "_CALL_CACHE", kept)
    for number in range(100):
        tools = Tools([Tool("read_file", "x" * 100, {"type": "object", "properties": {f"path_{number}": {}}})])
        writing.write_call("hermes", "read_file", '{"path": "a"%s}' % (" " * 1000), tools)
    assert 1 < len(kept) <= (1 << 14) // 1000
    assert all(isinstance(part, str | bytes) for key in kept._texts for part in key)


@pytest.mark.parametrize("offered", [tuple, Tools])
def test_a_written_call_depends_on_the_parameters(offered: type[tuple[Tool, ...]]) -> None:
    texts, numbers = (
        offered([Tool("read_file", "", {"type": "object", "properties": {"a": {"type": kind}}})])
        for kind in ("string", "integer")
    )
    call = "roo_xml", "read_file", '{"a": "1"}'
    as_text, as_number = writing.write_call(*call, texts), writing.write_call(*call, numbers)
    assert as_text != as_number and writing.write_call(*call, texts) == as_text
    assert not isinstance(texts, Tools) or [*texts.digests] == ["read_file"]
