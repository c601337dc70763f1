"""The ends of values: in every dialect with marked parameters, and in calls of a second writer."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from support import independent_writer as writer
from support.rows import in_one_test
from support.samples import random_cuts, read_events

import toolglot
from toolglot.core.conversation import Tool
from toolglot.core.events import CallArguments, CallEnded
from toolglot.dialects.codecs.tagged_parameters import TaggedParameters
from toolglot.dialects.records import all_dialects
from toolglot.prompting.call_writer import write_call

Pairs = list[tuple[str, Any]]
ROUNDS = 120


def tool(name: str, required: list[str], **extra: Any) -> dict[str, Any]:
    keys = ("path", "content", "command", "mode")
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in keys}, "required": required}
    return {"name": name, "parameters": {**schema, **extra}}


TOOLS = [tool("write_to_file", ["path", "content"]), tool("execute_command", ["command"])]
CLOSED = [tool("write_to_file", ["path", "content"], additionalProperties=False)]
WRITERS = {name: write for name, write in writer.MARKUP.items() if name != "minicpm5"}


def write(dialect: str, *pairs: tuple[str, str]) -> str:
    return WRITERS[dialect]("write_to_file", list(pairs), Random(0))


def read_pairs(text: str, tools: list[dict[str, Any]]) -> tuple[Pairs, tuple[str, ...]] | None:
    """The arguments of the only call and its repairs; None if there is none. Cuts make no difference."""
    reading = toolglot.read(text, tools=tools)
    whole = read_events([text], tools=tools)
    assert read_events(list(text), tools=tools) == whole
    assert read_events(random_cuts(text, 1), tools=tools) == whole
    if not reading.calls:
        return None
    (call,) = reading.calls
    return list(json.loads(call.arguments).items()), call.repairs


# What ends a value, in every dialect

CONTENTS = [
    "if (a < b) {}",
    "foo </path>",
    "<path>x</path> is",
    "<command>npm start</command> starts it",
    'see `<parameter=path>`, `<content>`, `<arg_key>path</arg_key><arg_value>`, `<parameter name="path">` here',
    "<![CDATA[ hi ]]> is CDATA",
    "<![CDATA[ opens",
    "<a>\n<content>x</content>\n<size>1</size>\n</a>",
    "List<Map<String, Integer>> x = a<b ? c : d;",
    "text</div>\n<p>a</p>",
]


@in_one_test("content", CONTENTS)
@in_one_test("dialect", WRITERS)
def test_the_value_ends_before_whatever_follows(dialect: str, content: str) -> None:
    for pairs in (
        [("path", "a"), ("content", content)],
        [("content", content), ("path", "a")],
        [("path", "a"), ("content", content), ("line_count", "1")],
        [("path", "a"), ("content", content), ("line_count", "1"), ("mode", "x")],
        [("path", "a"), ("line_count", "1"), ("content", content)],
        [("line_count", "1"), ("why", "a < b"), ("content", content), ("path", "a")],
        [("execute_command", "1"), ("content", content), ("path", "a")],
        [("content", content), ("title", "1"), ("path", "a")],
    ):
        assert read_pairs(write(dialect, *pairs), TOOLS) == (pairs, ()), pairs


@in_one_test("content", ["</parameter>", "</content>", "</arg_value>", "</function>", "</invoke>"])
@in_one_test("dialect", WRITERS)
def test_a_closing_mark_as_the_whole_value_may_be_a_second_one(dialect: str, content: str) -> None:
    """Its own mark is either the value or follows an empty one: the call is rejected."""
    own = content == marks_of(dialect, "content")[1]
    for pairs in (
        [("path", "a"), ("content", content)],
        [("content", content), ("path", "a")],
        [("path", "a"), ("content", content), ("line_count", "1")],
    ):
        assert read_pairs(write(dialect, *pairs), TOOLS) == (None if own else (pairs, ())), pairs


@in_one_test("dialect", WRITERS)
def test_an_undeclared_argument_is_dropped_where_the_schema_forbids_it(dialect: str) -> None:
    pairs = [("why", "a < b"), ("path", "a"), ("line_count", "1"), ("content", "a < b"), ("x", "<b>")]
    found = read_pairs(write(dialect, *pairs), CLOSED)
    assert found == ([("path", "a"), ("content", "a < b")], ("dropped_undeclared_argument",))


@in_one_test("dialect", WRITERS)
def test_a_repeated_argument_is_never_part_of_a_value(dialect: str) -> None:
    assert read_pairs(write(dialect, ("path", "a"), ("content", "a < b"), ("path", "b")), TOOLS) is None
    found = read_pairs(write(dialect, ("path", "a"), ("content", "a < b"), ("x", "1"), ("x", "2")), TOOLS)
    assert found == ([("path", "a"), ("content", "a < b"), ("x", "1")], ("dropped_repeated_argument",))


@in_one_test("dialect", WRITERS)
@in_one_test("value", ["a < b", "one\n  two", "", "</x> " * 10])
def test_a_repeated_argument_of_the_same_value_is_one(dialect: str, value: str) -> None:
    pairs = [("content", value), ("path", "a"), ("content", value)]
    assert read_pairs(write(dialect, *pairs), TOOLS) == (pairs[:2], ("dropped_repeated_argument",))
    assert read_pairs(write(dialect, *pairs[:2], ("content", value + "x")), TOOLS) is None


@in_one_test("dialect", WRITERS)
@in_one_test("behind", ["", "\nMore.\n", "\n"])
def test_a_quoted_call_is_part_of_the_file(dialect: str, behind: str) -> None:
    quoted = write(dialect, ("path", "x"), ("content", "hello"))
    content = f"Like this:\n\n{quoted}{behind}"
    twice = f"Like this:\n\n{quoted}\nor\n{quoted}{behind}"
    for pairs in (
        [("path", "a"), ("content", content)],
        [("content", twice), ("path", "a"), ("line_count", "1")],
    ):
        assert read_pairs(write(dialect, *pairs), TOOLS) == (pairs, ()), pairs


@in_one_test("quoted", writer.FORMATS)
@in_one_test("dialect", [*WRITERS, "gemma4"])
def test_a_call_quoted_in_any_dialect_is_part_of_the_file(dialect: str, quoted: str) -> None:
    """Whatever its arguments are called: given already, still to come, or undeclared."""
    for keys in (("path", "content"), ("path", "regex"), ("command",)):
        example = writer.FORMATS[quoted]("search_files", [(key, "x") for key in keys], Random(0))
        for content in (f"Example:\n{example}\nThat was it.", f"Use `{example}` there"):
            for pairs in (
                [("path", "a"), ("content", content)],
                [("content", content), ("line_count", "1"), ("path", "a")],
            ):
                text = writer.FORMATS[dialect]("write_to_file", list(pairs), Random(0))
                found = read_pairs(text, TOOLS)
                assert found is not None, text
                assert found[0] == pairs, text


def marks_of(dialect: str, key: str) -> tuple[str, str, str]:
    """What opens and closes the value of a parameter, and what closes the call with all that is around it."""
    call = writer.FORMATS[dialect]("write_to_file", [(key, "VALUE")], Random(0))
    before, after = (part.strip() for part in call.split("VALUE"))
    head, tail = {"minimax_m3": ("]<]", ">"), "kimi_k3": ("<|open|>", "<|sep|>")}.get(dialect, ("<", ">"))
    size = after.index(tail, after.index("/") if tail == ">" else 0) + len(tail)
    return before[before.rindex(head) :], after[:size], after[size:].strip()


@in_one_test("sign", ["`", '"', "'"])
@in_one_test("dialect", WRITERS)
def test_marks_that_are_talked_about_open_and_end_nothing(dialect: str, sign: str) -> None:
    for key in ("content", "line_count"):
        opener, closer, end = (f"{sign}{mark}{sign}" for mark in marks_of(dialect, key))
        for text in (f"see {opener} here", f"{opener} and {opener}", f"- {closer}\n- x", f"see {end} here"):
            others = [("path", "a")] if key == "content" else [("path", "a"), ("content", "b")]
            for pairs in ([*others, (key, text)], [(key, text), *others]):
                call = write(dialect, *pairs)
                assert read_pairs(call, TOOLS) == (pairs, ()), call
                if end not in text:
                    calls = toolglot.read(f"{call}\n{call}", tools=TOOLS).calls
                    assert [list(json.loads(each.arguments).items()) for each in calls] == [pairs, pairs], call


@in_one_test("dialect", [name for name in WRITERS if name not in ("roo_xml", "minimax_m3")])
def test_a_call_with_a_closing_mark_in_it_may_follow_one_with_openers(dialect: str) -> None:
    opener, _, end = marks_of(dialect, "content")
    first = [("path", "a"), ("content", f"It begins so: {opener}, and then")]
    end = end.split("<|close|>tools")[0].splitlines()[0]
    second = [("content", f"before\n{end}\nafter"), ("path", "b")]
    calls = toolglot.read(f"{write(dialect, *first)}\n{write(dialect, *second)}", tools=TOOLS).calls
    assert [list(json.loads(call.arguments).items()) for call in calls] == [first, second]


@pytest.mark.parametrize("content", ['ends a string: <|"|>', '[<|"|>] opens', '<|"|> [TOOL_CALLS] and', "<|tool_call>"])
def test_marks_inside_a_string_between_marks_are_text(content: str) -> None:
    for pairs in (
        [("path", "a"), ("content", f"{content} x")],
        [("content", f"{content} x"), ("x", "1"), ("path", "a")],
    ):
        text = writer.FORMATS["gemma4"]("write_to_file", list(pairs), Random(0))
        assert read_pairs(text, TOOLS) == (pairs, ()), text


@in_one_test("dialect", WRITERS)
def test_a_call_that_begins_anew_in_its_own_value_is_rejected(dialect: str) -> None:
    call = write(dialect, ("path", "a"), ("content", "first line < second\n"))
    cut = call.index("second")
    reading = toolglot.read(call[:cut] + "\n" + call, tools=TOOLS)
    assert not reading.calls
    assert reading.rejected


@in_one_test("dialect", WRITERS)
def test_text_and_calls_may_follow_a_value_with_quoted_openers(dialect: str) -> None:
    quoting = [("path", "a"), ("content", CONTENTS[4]), ("line_count", "1")]
    plain = [("path", "b"), ("content", "x < y")]
    first, second = write(dialect, *quoting), write(dialect, *plain)
    calls = toolglot.read(f"{first}\n{second}", tools=TOOLS).calls
    assert [list(json.loads(call.arguments).items()) for call in calls] == [quoting, plain]
    reading = toolglot.read(f"{first}\n\nThat is it.", tools=TOOLS)
    assert [list(json.loads(call.arguments).items()) for call in reading.calls] == [quoting]
    assert reading.text.strip() == "That is it."


# CDATA, attributes, openers without a value


@in_one_test(
    ("written", "value"),
    [
        ("<![CDATA[a < b]]>", "a < b"),
        ("<![CDATA[a]]]]><![CDATA[>b]]>", "a]]>b"),
        ("<![CDATA[x[y[0]]>1]]>", "x[y[0]]>1"),
        ("<![CDATA[a</content></parameter></arg_value>b]]>", "a</content></parameter></arg_value>b"),
        ("<![CDATA[a]]> and <![CDATA[b]]>", "<![CDATA[a]]> and <![CDATA[b]]>"),
        ("a <![CDATA[b]]>", "a <![CDATA[b]]>"),
        ("<![CDATA[a]]>\n<b/>", "<![CDATA[a]]>\n<b/>"),
    ],
)
@in_one_test("dialect", [name for name in WRITERS if name != "kimi_k3"])
def test_cdata_is_unwrapped_only_as_the_whole_value(dialect: str, written: str, value: str) -> None:
    for pairs in ([("path", "a"), ("content", written)], [("content", written), ("x", "1"), ("path", "a")]):
        expected = [(key, value if key == "content" else text) for key, text in pairs]
        found = read_pairs(write(dialect, *pairs), TOOLS)
        assert found is not None
        assert found[0] == expected


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>write_to_file\n<arg_key>content</arg_key>\n<arg_value>x</arg_value>\n<arg_key>path</arg_key>\n"
        "</tool_call>",
        "<tool_call>write_to_file\n<arg_key>path</arg_key>\n<arg_key>content</arg_key>\n<arg_value>x</arg_value>\n"
        "</tool_call>",
        "<longcat_tool_call>write_to_file\n<longcat_arg_key>path</longcat_arg_key>\n<longcat_arg_key>content"
        "</longcat_arg_key>\n<longcat_arg_value>x</longcat_arg_value>\n</longcat_tool_call>",
        "<tool_call>\n<function=write_to_file>\n<parameter=content>\nx\n</parameter>\n<parameter=path>\n</function>\n"
        "</tool_call>",
        "<tool_call>\n<function=write_to_file>\n<parameter=path>\n<parameter=content>\nx\n</parameter>\n</function>\n"
        "</tool_call>",
        "<write_to_file>\n<content>x</content>\n<path/>\n</write_to_file>",
        "<write_to_file>\n<content>x</content>\n<path>\n</write_to_file>",
    ],
)
def test_an_opener_without_a_value_is_rejected(text: str) -> None:
    reading = toolglot.read(text, tools=TOOLS)
    assert not reading.calls
    assert reading.rejected


@pytest.mark.parametrize(
    "text",
    [
        '<write_to_file>\n<path kind="file">a</path>\n<content lang="js">a < b</content>\n<x y="1">2</x>\n'
        "</write_to_file>",
        '<tool_call>\n<function=write_to_file>\n<parameter=path type="string">\na\n</parameter>\n'
        '<parameter=content type="string">\na < b\n</parameter>\n<parameter=x>\n2\n</parameter>\n</function>\n'
        "</tool_call>",
        '<function_calls>\n<invoke name="write_to_file">\n<parameter name="path" kind="file">a</parameter>\n'
        '<parameter name="content" lang="js">a < b</parameter>\n<parameter name="x" y="z">2</parameter>\n</invoke>\n'
        "</function_calls>",
    ],
)
def test_attributes_of_a_parameter_do_no_harm(text: str) -> None:
    found = read_pairs(text, TOOLS)
    assert found is not None
    assert found[0] == [("path", "a"), ("content", "a < b"), ("x", "2")]


MODES = {"type": "object", "properties": {"text": {"type": "string"}, "mode": {"type": "string"}}}


def ask(items: dict[str, Any]) -> list[dict[str, Any]]:
    properties = {"question": {"type": "string"}, "follow_up": {"type": "array", "items": items}}
    return [{"name": "ask", "parameters": {"type": "object", "properties": properties, "required": ["question"]}}]


@pytest.mark.parametrize(
    ("items", "expected", "repairs"),
    [
        (MODES, [{"mode": "code", "text": "A"}, {"text": "B"}], ()),
        ({**MODES, "required": ["text"]}, [{"mode": "code", "text": "A"}, {"text": "B"}], ()),
        ({"anyOf": [{"type": "null"}, MODES]}, [{"mode": "code", "text": "A"}, {"text": "B"}], ()),
        ({"type": "string"}, ["A", "B"], ("dropped_attributes",)),
        ({}, ["A", "B"], ("dropped_attributes",)),
    ],
)
def test_attributes_of_repeated_elements(items: dict[str, Any], expected: list[Any], repairs: tuple[str, ...]) -> None:
    body = '<follow_up>\n<suggest mode="code">A</suggest>\n<suggest>B</suggest>\n</follow_up>'
    found = read_pairs(f"<ask>\n<question>q</question>\n{body}\n</ask>", ask(items))
    assert found == ([("question", "q"), ("follow_up", expected)], repairs)


def test_a_text_that_may_be_one_of_several_members_is_rejected() -> None:
    items = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    body = "<follow_up><suggest>A</suggest><suggest>B</suggest></follow_up>"
    assert read_pairs(f"<ask>\n<question>q</question>\n{body}\n</ask>", ask(items)) is None


def test_nested_elements_of_a_bare_object_are_typed() -> None:
    options = {"type": "object"}
    declared = {"type": "object", "properties": {"id": {"type": "string"}}}
    tools = [{"name": "job", "parameters": {"type": "object", "properties": {"options": options, "known": declared}}}]
    text = (
        "<job><options><timeout>5000</timeout><on>true</on><code>007</code><in><rate>1.50</rate></in></options>"
        "<known><id>007</id><more>5</more></known></job>"
    )
    found = read_pairs(text, tools)
    assert found is not None
    assert found[0] == [
        ("options", {"timeout": 5000, "on": True, "code": "007", "in": {"rate": 1.5}}),
        ("known", {"id": "007", "more": "5"}),
    ]


# Arguments beside the name


@pytest.mark.parametrize("key", ["line_count", "reason", "description", "execute_command"])
def test_undeclared_arguments_beside_the_name_may_be_anywhere(key: str) -> None:
    for pairs in (
        [(key, "x"), ("path", "a"), ("content", "b")],
        [("path", "a"), (key, "x"), ("content", "b")],
        [("path", "a"), ("content", "b"), (key, "x")],
    ):
        found = read_pairs(f"```tool_code\n{json.dumps({'tool': 'write_to_file', **dict(pairs)})}\n```", TOOLS)
        assert found is not None
        assert dict(found[0]) == dict(pairs)


@pytest.mark.parametrize(
    "payload",
    [
        {"name": "write_to_file", "description": "Writes a file", "arguments": {"path": "a", "content": "b"}},
        {"tool": "write_to_file", "description": "Writes a file", "parameters": {"path": "a", "content": "b"}},
        {"name": "write_to_file", "status": "done", "path": "a", "content": "b"},
        {"tool": "write_to_file", "status": "done"},
        {"tool": "stop", "status": "done"},
        {"tool": "write_to_file", "result": "written", "path": "a", "content": "b"},
    ],
)
def test_a_tool_definition_is_no_call(payload: dict[str, Any]) -> None:
    tools = [*TOOLS, {"name": "stop", "parameters": {"type": "object", "properties": {"when": {"type": "string"}}}}]
    for text in (f"```json\n{json.dumps(payload)}\n```", json.dumps(payload)):
        assert not toolglot.read(text, tools=tools).calls


def test_an_argument_may_be_called_like_all_of_them() -> None:
    files = {"type": "object", "properties": {"file": {"type": "array", "items": {"type": "string"}}}}
    tools = [{"name": "read_file", "parameters": {"type": "object", "properties": {"args": files}}}]
    args = {"args": {"file": ["a"]}}
    for call in (
        {"tool": "read_file", **args},
        {"tool": "read_file", "args": args},
        {"name": "read_file", "args": args},
    ):
        found = read_pairs(f"```tool_code\n{json.dumps(call)}\n```", tools)
        assert found is not None
        assert dict(found[0]) == args
    found = read_pairs(f"```tool_code\n{json.dumps({'tool': 'read_file', 'why': 'x', **args})}\n```", tools)
    assert found is not None
    assert dict(found[0]) == {"why": "x", **args}


# The writer

MARKED_UP = [dialect.name for dialect in all_dialects() if isinstance(dialect.call.body, TaggedParameters)]


@in_one_test("dialect", MARKED_UP)
def test_what_is_written_is_read_with_undeclared_and_reordered_arguments(dialect: str) -> None:
    offered = [Tool(entry["name"], "", entry["parameters"]) for entry in TOOLS]
    for content in CONTENTS:
        for pairs in (
            [("path", "a"), ("content", content), ("line_count", "1")],
            [("why", "a < b"), ("mode", "x"), ("content", content), ("path", "a")],
        ):
            text = write_call(dialect, "write_to_file", json.dumps(dict(pairs)), offered)
            found = read_pairs(text, TOOLS)
            assert found is not None
            assert found[0] == pairs, text


# The second writer


def read_streamed(text: str, seed: int) -> list[str]:
    """The arguments of complete calls, read in pieces."""
    events = read_events(random_cuts(text, seed), tools=writer.TOOLS)
    ended = {event.index for event in events if isinstance(event, CallEnded)}
    return [
        "".join(event.fragment for event in events if isinstance(event, CallArguments) and event.index == index)
        for index in sorted(ended)
    ]


def check_rounds(dialect: str, make: Callable[[Random], writer.Written]) -> None:
    for seed in range(ROUNDS):
        random = Random(f"{dialect} {seed}")
        call = make(random)
        reading = toolglot.read(call.text, tools=writer.TOOLS)
        found = [(each.name, list(json.loads(each.arguments).items())) for each in reading.calls]
        assert found == [(call.name, call.arguments)], (seed, call.text)
        if seed % 4 == 0:
            assert read_streamed(call.text, seed) == [each.arguments for each in reading.calls], (seed, call.text)


@in_one_test("dialect", writer.FORMATS)
def test_a_second_writer_is_read_exactly(dialect: str) -> None:
    check_rounds(dialect, lambda random: writer.make_call(dialect, random, random.random() < 0.4))
