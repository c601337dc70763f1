"""Feedback for rejected calls: what is wrong, and one correct call with the good arguments of the model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fragments import SCALE
from support.rows import in_one_test
from support.samples import load_samples, load_tools

import toolglot
from toolglot.core.conversation import Tool
from toolglot.core.events import CallRejected, Defect, Reason
from toolglot.core.made_up_values import make_number
from toolglot.core.schema.validation import find_argument_defects
from toolglot.prompting.call_writer import parse_tools, write_call
from toolglot.prompting.feedback import MAX_FEEDBACK, find_near_names, holds_placeholder, write_feedback

TOOLS: list[dict[str, Any]] = [
    {
        "name": "read_file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "start_line": {"type": "integer"}},
            "required": ["path"],
        },
    },
    {
        "name": "write_to_file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    },
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer", "minimum": 2},
            },
            "required": ["city", "unit", "days"],
        },
    },
    {
        "name": "apply_diff",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
                        "required": ["old", "new"],
                    },
                },
            },
            "required": ["path", "edits"],
        },
    },
]
PARSED = parse_tools(TOOLS)
NAMES = [tool.name for tool in PARSED]
DIALECTS = [dialect.name for dialect in toolglot.list_dialects() if dialect.name != "shell_fence"]


def hermes(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def reject(text: str, tools: list[dict[str, Any]] = TOOLS) -> list[toolglot.RejectedCall]:
    rejected = toolglot.read(text, tools=tools, unknown_tools="reject").rejected
    assert rejected, f"{text!r} is not rejected"
    return rejected


def reject_native(name: str, arguments: str) -> CallRejected:
    """The rejection of a native call, as the gateway makes it."""
    tool = next((tool for tool in PARSED if tool.name == name), None)
    defects = find_argument_defects(tool, arguments) if tool is not None else ()
    return CallRejected(arguments, defects[0].reason if defects else Reason.UNKNOWN_TOOL, name, defects)


def split(feedback: str) -> tuple[str, str]:
    paragraph, _, example = feedback.partition("\n")
    return paragraph, example


def read_example(example: str, tools: list[dict[str, Any]] = TOOLS) -> tuple[str, dict[str, Any]]:
    """The one call of the example."""
    reading = toolglot.read(example, tools=tools)
    assert [reading.rejected, reading.text.strip()] == [[], ""]
    (call,) = reading.calls
    return call.name, json.loads(call.arguments)


# -- what it says ------------------------------------------------------------------------------------------------------


def test_a_misspelt_key_is_named_with_its_line_and_its_value_is_kept() -> None:
    feedback = toolglot.feedback(reject("<read_file>\n<pth>src/app.py</pth>\n</read_file>"), TOOLS, "roo_xml")
    assert feedback == (
        "Your call of `read_file` was not executed: `pth` (line 2) is not a parameter of `read_file`, write `path`"
        " instead. Keep the values that were right. Write the call again now, in exactly this form, and nothing else:\n"
        "<read_file>\n<path>src/app.py</path>\n</read_file>"
    )


def test_a_missing_argument_gets_a_placeholder() -> None:
    paragraph, example = split(toolglot.feedback(reject(hermes("write_to_file", path="a.py")), TOOLS))
    assert "the required parameter `content` is missing" in paragraph
    assert "Replace each [... ...] by your own full value." in paragraph
    name, arguments = read_example(example)
    assert (name, arguments["path"]) == ("write_to_file", "a.py")
    assert holds_placeholder(json.dumps(arguments))
    assert not holds_placeholder('{"path":"a.py","content":"[... ...]"}')


def test_a_missing_number_gets_an_example_that_is_called_so() -> None:
    paragraph, example = split(
        toolglot.feedback(reject(hermes("get_weather", city="Oslo", unit="celcius")), TOOLS, "qwen3_coder")
    )
    assert '`unit` is the text "celcius", but it must be one of "celsius", "fahrenheit"' in paragraph
    assert "The value of `days` is only an example: write your own." in paragraph
    name, arguments = read_example(example)
    assert (name, arguments.pop("days")) == ("get_weather", make_number("get_weather", "days"))
    assert arguments == {"city": "Oslo", "unit": "celsius"}


@in_one_test("dialect", [None, "hermes"])
def test_a_value_that_is_not_listed_need_not_be_replaced(dialect: str | None) -> None:
    """Perhaps no listed value is what the user wants: the model may answer in words."""
    good = hermes("get_weather", city="Oslo", unit="kelvin", days=1)
    paragraph, _ = split(toolglot.feedback(reject(good), TOOLS, dialect))
    assert "If no allowed value of `unit` is what the user asked for, make no call and tell the user so in words." in (
        paragraph
    )
    other, _ = split(toolglot.feedback(reject(hermes("get_weather", city="Oslo", unit="celsius")), TOOLS, dialect))
    assert "make no call" not in other


def test_a_missing_member_is_named_by_its_path() -> None:
    call = hermes("apply_diff", path="a.py", edits=[{"old": "x", "new": "y"}, {"old": "z"}])
    paragraph, example = split(toolglot.feedback(reject(call), TOOLS))
    assert "the required parameter `edits[1].new` is missing" in paragraph
    edits = read_example(example)[1]["edits"]
    assert edits[0] == {"old": "x", "new": "y"}
    assert edits[1]["old"] == "z" and holds_placeholder(edits[1]["new"])


def test_keys_of_a_member_go_to_the_argument_that_holds_them() -> None:
    call = "<apply_diff>\n<path>a.py</path>\n<old>x</old>\n<new>y</new>\n</apply_diff>"
    defects = tuple(
        Defect(reason=Reason.MALFORMED, where=f"argument {key}", found="an unknown name", expected="path, edits")
        for key in ("old", "new")
    )
    rejected = CallRejected(call, Reason.MALFORMED, "apply_diff", defects)
    paragraph, example = split(toolglot.feedback(rejected, TOOLS, "roo_xml"))
    assert "`old` (line 3) is not a parameter of `apply_diff`, it belongs into `edits`" in paragraph
    assert read_example(example)[1] == {"path": "a.py", "edits": [{"old": "x", "new": "y"}]}


def test_a_similar_tool_is_suggested_and_shown() -> None:
    paragraph, example = split(toolglot.feedback(reject(hermes("file_read", filename="a.py")), TOOLS))
    assert "there is no tool `file_read` (did you mean `read_file`?)" in paragraph
    assert read_example(example) == ("read_file", {"path": "a.py"})


def test_without_a_similar_tool_all_are_listed() -> None:
    feedback = toolglot.feedback(reject(hermes("launch_rocket", to="moon")), TOOLS)
    assert feedback == (
        "Your call was not executed: there is no tool `launch_rocket`. The tools are: `read_file`, `write_to_file`,"
        " `get_weather`, `apply_diff`. Call one of them, or answer without a tool."
    )


def test_without_tools_the_model_answers_without_a_tool() -> None:
    rejected = CallRejected(hermes("read_file", path="a"), Reason.UNKNOWN_TOOL, "read_file")
    assert toolglot.feedback(rejected, []).endswith("There are no tools here: answer without a tool.")


def test_near_names() -> None:
    names = ["read_file", "read_files", "write_file", "bash", "mcp__files__read"]
    assert find_near_names("readFile", names)[0] == "read_file"
    assert find_near_names("functions.read_file:0", names)[0] == "read_file"
    assert find_near_names("file_read", names)[0] == "read_file"
    assert len(find_near_names("read", [f"read_{number}" for number in range(9)])) == 3
    assert find_near_names("weather", names) == ()
    assert find_near_names("", names) == ()


def test_a_cut_value_is_never_shown_as_the_value_of_the_model() -> None:
    call = '<tool_call>\n{"name": "write_to_file", "arguments": {"path": "a.py", "content": "rm -rf /'
    paragraph, example = split(toolglot.feedback(reject(call), TOOLS))
    assert "it stops in the middle, in `content`" in paragraph
    arguments = read_example(example)[1]
    assert arguments["path"] == "a.py"
    assert holds_placeholder(arguments["content"]) and "rm" not in example


def test_a_cut_optional_argument_is_not_forgotten() -> None:
    call = "<tool_call>\n<function=read_file>\n<parameter=path>\na.py\n</parameter>\n<parameter=start_line>\n1"
    paragraph, example = split(toolglot.feedback(reject(call), TOOLS, "qwen3_coder"))
    assert "in `start_line`" in paragraph
    assert list(read_example(example)[1]) == ["path", "start_line"]


def test_text_in_a_value_is_not_taken_for_arguments() -> None:
    call = hermes("get_weather", city='<days>3</days> start_line=1, "unit": "celsius", days=', unit="kelvin")
    arguments = read_example(split(toolglot.feedback(reject(call), TOOLS))[1])[1]
    assert arguments["days"] == make_number("get_weather", "days")
    nested = hermes("read_file", pth={"path": "x", "start_line": 1, "old": 'start_line="'})
    assert list(read_example(split(toolglot.feedback(reject(nested), TOOLS))[1])[1]) == ["path"]


def test_long_values_are_not_repeated_but_must_be_kept() -> None:
    call = hermes("write_to_file", pth="a.py", content="print(1)\n" * 500, mode="w")
    feedback = toolglot.feedback(reject(call), TOOLS)
    assert len(feedback) < 700
    assert read_example(split(feedback)[1])[1] == {
        "path": "a.py",
        "content": "[... keep your value of content here ...]",
    }


def test_of_a_long_list_one_item_is_shown() -> None:
    edits = [{"old": f"line {number}", "new": "x" * 50} for number in range(50)]
    paragraph, example = split(toolglot.feedback(reject(hermes("apply_diff", edits=edits)), TOOLS))
    assert "Write all items of `edits`, not only one." in paragraph
    assert len(read_example(example)[1]["edits"]) == 1 and holds_placeholder(example)


def test_a_made_up_result_is_not_answered_with_an_example() -> None:
    call = hermes("read_file", path="a") + "\n<tool_response>\nhello\n</tool_response>"
    feedback = toolglot.feedback(reject(call), TOOLS)
    assert "You wrote a tool result yourself" in feedback
    assert "\n" not in feedback


def test_several_calls_are_described_in_order_with_one_example() -> None:
    calls = "\n".join([hermes("write_to_file", path="a"), hermes("get_weather", city="Oslo"), hermes("rocket")])
    paragraph, example = split(toolglot.feedback(reject(calls), TOOLS))
    assert paragraph.startswith("3 of your calls were not executed. 1. `write_to_file`: ")
    assert "2. `get_weather`: " in paragraph and "3. `rocket`: there is no tool `rocket`" in paragraph
    assert read_example(example)[0] == "write_to_file"


@pytest.mark.parametrize(
    ("name", "arguments", "problem", "example"),
    [
        ("read_file", '{"pth":"a","start_line":"3"}', "write `path` instead", {"path": "a", "start_line": 3}),
        ("read_file", '{"path":"a"}{"path":"b"}', "two JSON objects, one after the other", {"path": "a"}),
        ("read_file", "{'path': 'a'}", "at character 2", {"path": "a"}),
        ("readfile", '{"path":"a"}', "did you mean `read_file`?", {"path": "a"}),
        (
            "get_weather",
            '{"city":"Oslo","unit":"C","days":3}',
            'one of "celsius", "fahrenheit"',
            {"city": "Oslo", "unit": "celsius", "days": 3},
        ),
        (
            "write_to_file",
            '{"path":"a","content":"im',
            "in `content`",
            {"path": "a", "content": "[... write your value of content here ...]"},
        ),
        ("read_file", "", "`path` is missing", {"path": "[... write your value of path here ...]"}),
    ],
)
def test_native_calls_are_shown_as_arguments(name: str, arguments: str, problem: str, example: dict[str, Any]) -> None:
    paragraph, shown = split(toolglot.feedback(reject_native(name, arguments), TOOLS, None))
    assert problem in paragraph
    assert json.loads(shown) == example


@in_one_test("dialect", [None, "hermes", "qwen3_coder"])
@in_one_test(
    "text",
    [
        '<tool_call>{"name": "read_file", "arguments": {"path" "src/a.py"}}</tool_call>',
        '<tool_call>{"name": "read_file", "arguments": {"path": }}</tool_call>',
        '<tool_call>{"name": "read_file", "parameters": {"pa',
        "<tool_call>\n<function=read_file>\n<parameter=start_line>\n3\n</parameter>\n</function>\n</tool_call>",
        "read_file(start_line=3",
    ],
)
def test_the_name_of_a_tool_is_no_value(text: str, dialect: str | None) -> None:
    """A call in text that is rejected may belong to a request whose model makes native calls."""
    for rejected in toolglot.read(text, TOOLS).rejected:
        feedback = toolglot.feedback(rejected, TOOLS, dialect)
        assert '"path":"read_file"' not in feedback.replace(": ", ":"), feedback
        assert "`name`" not in feedback and "write your value of path" in feedback


FOREIGN = {
    "a damaged mark of the next parameter": "<tool_call>\n<function=write_to_file>\n<parameter=path>\na.py\n</parameter>\n"
    "<<parameter=content>\nFOREIGN\n</parameter>\n</function>",
    "a lost quote and a damaged key": '<tool_call>{"name": "write_to_file", "arguments": {"path": "a.py", content": "FOREIGN"}}'
    "</tool_call>",
    "a key without its end": '[TOOL_CALLS]write_to_file[ARGS]{"path": "a.py", "cont: "FOREIGN"}',
    "a damaged text mark": '<|tool_call>call:write_to_file{path:<|"|>a.py|>,content:<|"|>FOREIGN<|"|>}<tool_call|>',
    "a lost line": "<tool_call>write_to_file\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value\n"
    "<arg_value>FOREIGN</arg_value>\n</tool_call>",
}


@in_one_test("text", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("dialect", [None, "hermes", "qwen3_coder"])
def test_the_value_of_another_parameter_is_not_shown(text: str, dialect: str | None) -> None:
    rejections = toolglot.read(text, TOOLS).rejected
    assert rejections
    for rejected in rejections:
        _, example = split(toolglot.feedback(rejected, TOOLS, dialect))
        assert example and "FOREIGN" not in example, example


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ('{"path": "say " "hi" now", "content" "x"}', '{"path":"[... write your value of path here ...]"'),
        ('{"path": "a.py", "content" "x"}', '{"path":"a.py"'),
        ('{"path": "a.py" "content": "x"}', '{"path":"a.py","content":"x"}'),
    ],
)
def test_a_quote_that_was_not_escaped_ends_no_value(raw: str, shown: str) -> None:
    feedback = toolglot.feedback(CallRejected(raw, Reason.MALFORMED, "write_to_file"), TOOLS, None)
    assert split(feedback)[1].startswith(shown), feedback


@pytest.mark.parametrize("dialect", [None, "hermes"])
def test_a_call_in_text_may_be_given_by_its_arguments(dialect: str | None) -> None:
    rejected = CallRejected('{"path":"a.py","start_line":"x"}', Reason.INVALID_VALUE, "read_file", (), "hermes")
    assert '"path":"a.py"' in toolglot.feedback(rejected, TOOLS, dialect).replace(": ", ":")


def test_a_tool_without_parameters_is_shown_without_arguments() -> None:
    tool = {"name": "list_files", "parameters": {"type": "object", "additionalProperties": False}}
    rejected = CallRejected('{"path":"a"}', Reason.MALFORMED, "list_files")
    paragraph, example = split(toolglot.feedback(rejected, [tool], None))
    assert "`path` is not a parameter of `list_files`" in paragraph
    assert example == "{}"


def test_a_schema_that_nothing_fits_gets_no_example() -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "integer", "const": "x"}}, "required": ["a"]}
    feedback = toolglot.feedback(
        CallRejected("{}", Reason.MISSING_ARGUMENT, "t"), [{"name": "t", "parameters": parameters}]
    )
    assert "\n" not in feedback and feedback.endswith("and nothing else.")


def test_nothing_rejected_is_nothing_to_say() -> None:
    assert toolglot.feedback([], TOOLS) == ""


def test_a_forbidden_tool_is_not_shown_again() -> None:
    feedback = toolglot.feedback(CallRejected("", Reason.FORBIDDEN, "read_file"), TOOLS)
    assert "the tool `read_file` cannot be called now" in feedback
    assert "\n" not in feedback


# -- what holds for every feedback -------------------------------------------------------------------------------------


@cache
def all_rejected() -> list[tuple[str, list[dict[str, Any]], toolglot.RejectedCall, str]]:
    """The rejected calls of all samples, with their tools and dialect."""
    return [
        (sample.id, load_tools(sample.tools), rejected, sample.dialect)
        for sample in load_samples()
        if sample.expected.rejected
        for rejected in toolglot.read(
            sample.text, tools=load_tools(sample.tools), truncated=sample.truncated, **sample.options
        ).rejected
    ]


def assert_sound(feedback: str, tools: list[dict[str, Any]]) -> None:
    """The feedback is bounded, quotes no call, and its example is a quotation for the reader."""
    paragraph, example = split(feedback)
    assert len(feedback) <= MAX_FEEDBACK
    reading = toolglot.read(paragraph, tools=tools)
    assert (reading.calls, reading.rejected, reading.text) == ([], [], paragraph)
    if example:
        assert paragraph.endswith(":")
        read_example(example, tools)
        quoted = toolglot.read(f"You said:\n{example}\nBut why?", tools=tools, quoted=[feedback])
        assert quoted.calls == []


def test_feedback_on_the_rejected_calls_of_all_samples() -> None:
    assert len(all_rejected()) > 8
    for _, tools, rejected, dialect in all_rejected():
        for written_in in (dialect, "hermes"):
            assert_sound(toolglot.feedback(rejected, tools, written_in), tools)
        assert len(toolglot.feedback(rejected, tools, None)) < MAX_FEEDBACK


@in_one_test("dialect", DIALECTS)
def test_the_example_is_read_in_every_dialect(dialect: str) -> None:
    """A call that lacks an argument comes back with the others unchanged, whatever the dialect."""
    values = {"path": "src/a b.py", "content": "if a < b && c:\n\tprint('\"')\n"}
    for lacking in values:
        given_ = {key: value for key, value in values.items() if key != lacking}
        raw = write_call(dialect, "write_to_file", json.dumps(given_), [Tool("write_to_file")])
        rejected = CallRejected(raw, Reason.MISSING_ARGUMENT, "write_to_file", dialect=dialect)
        feedback = toolglot.feedback(rejected, TOOLS, dialect)
        assert_sound(feedback, TOOLS)
        name, arguments = read_example(split(feedback)[1])
        assert name == "write_to_file"
        assert {key: arguments[key] for key in given_} == given_
        assert holds_placeholder(arguments[lacking])


PIECES = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", "<function=read_file>", "<parameter=path>", "</parameter>", "</function>"),
        *("<read_file>", "</read_file>", "<path>", "</path>", "<|tool_call|>", "[TOOL_CALLS]", "```json\n", "\n```"),
        *('{"name": "read_file", "arguments": {', '"path": "a.py"', "}}", "[", "]", "read_file(", 'path="', ")", "\n"),
        *("`", '"', "'", "\\", "<", "\ud800", "\u2060", "\x00", "days=1, ", "Action: read_file\n", "<invoke name="),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=8), max_size=12).map("".join)
DEFECTS = st.builds(
    Defect,
    reason=st.sampled_from(Reason),
    where=st.sampled_from(["call", "arguments", "tool name", "argument path", "argument edits[0].new"]) | TEXTS,
    found=st.sampled_from(["an unknown name", "nothing"]) | TEXTS,
    expected=TEXTS,
)
REJECTED = st.builds(
    CallRejected,
    raw=TEXTS,
    reason=st.sampled_from(Reason),
    tool=st.none() | st.sampled_from(NAMES) | TEXTS,
    defects=st.lists(DEFECTS, max_size=4).map(tuple),
)


@settings(max_examples=60 * SCALE, deadline=None)
@given(st.lists(REJECTED, min_size=1, max_size=4), st.sampled_from(["hermes", "qwen3_coder", "roo_xml", "react"]))
def test_feedback_on_anything_is_sound(rejected: list[CallRejected], dialect: str) -> None:
    assert_sound(write_feedback(rejected, PARSED, dialect), TOOLS)
    assert len(write_feedback(rejected, PARSED, None)) <= MAX_FEEDBACK


VALUES = st.text(max_size=60) | st.sampled_from(["</parameter>", "<tool_call>", "a\nb", '{"x": 1}', "  x ", "`"])


@settings(max_examples=50 * SCALE, deadline=None)
@given(VALUES, st.sampled_from(["hermes", "qwen3_coder", "roo_xml", "anthropic", "glm45", "pythonic"]))
def test_good_arguments_are_kept_unchanged(value: str, dialect: str) -> None:
    raw = write_call(dialect, "get_weather", json.dumps({"city": value, "unit": "kelvin"}), [Tool("get_weather")])
    feedback = toolglot.feedback(CallRejected(raw, Reason.INVALID_VALUE, "get_weather"), TOOLS, dialect)
    assert read_example(split(feedback)[1])[1]["city"] == value


def hostile_texts(size: int) -> Iterator[str]:
    yield hermes("write_to_file", content="x" * size)
    yield '{"path": ' + "[" * size
    yield '<tool_call>{"name": "read_file", "arguments": {"pth": ' + '{"a":' * (size // 5)
    yield "<path>" * (size // 6)
    yield '"path": "' * (size // 9)
    yield "path='" * (size // 6)
    yield '{"path": "' + "\\" * size
    yield '{"path": "' + '\\"' * (size // 2)
    yield "<parameter name=" * (size // 16)
    yield "a_" * (size // 2)
    yield " " * size
    yield "\ud800" * size
    yield "{" + ",".join(f'"pat{number}":"x"' for number in range(size // 14)) + "}"
    yield '{"path":"a","edits":[' + ",".join(['{"old":[{}]}'] * (size // 13)) + "]}"


@in_one_test("number", range(14))
def test_long_texts_take_no_longer_than_their_bounded_beginning(number: int) -> None:
    text = list(hostile_texts(1 << 20))[number]
    for tool, dialect in (("read_file", "hermes"), ("apply_diff", None), (text[:1000], "roo_xml")):
        before = process_time()
        feedback = write_feedback([CallRejected(text, Reason.MALFORMED, tool)], PARSED, dialect)
        assert process_time() - before < 2
        assert len(feedback) <= MAX_FEEDBACK


def test_unusable_schemas_do_no_harm() -> None:
    schemas: list[Any] = [
        {"type": "blob"},
        {"properties": []},
        {"$ref": "http://example.com/x"},
        {"type": "object", "properties": {"path": {"type": "string", "format": []}}, "required": ["path"]},
        {"type": "object", "required": ["a b", "</x>", "`"]},
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(300)}, "required": ["p1"]},
        {"type": "object", "properties": {"me": {"$ref": "#"}}, "required": ["me"]},
    ]
    for schema in schemas:
        tool = Tool("read_file", "", schema)
        for raw in ("", hermes("read_file", path="a"), "{"):
            for dialect in ("hermes", "roo_xml", None):
                rejected = CallRejected(raw, Reason.MALFORMED, "read_file")
                assert len(write_feedback([rejected], [tool], dialect)) <= MAX_FEEDBACK
