"""Arguments in odd quotes, with comments, or not quite valid for their schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.rows import in_one_test
from support.samples import random_cuts, read_events

import toolglot
from toolglot.core.events import Reason
from toolglot.reading.reader import collect

TEXT = {"type": "string"}
ITEM = {"type": "object", "properties": {"option": TEXT, "mode": TEXT}, "required": ["option"]}
TOOLS = [
    {
        "name": "note",
        "parameters": {
            "type": "object",
            "properties": {
                "text": TEXT,
                "n": {"type": "integer"},
                "sure": {"type": "string", "enum": ["True", "False"]},
                "kinds": {"type": "array", "items": TEXT, "enum": ["a", "b"]},
                "options": {"type": "array", "items": ITEM},
            },
            "required": ["text"],
        },
    },
    {"name": "functions_cross", "parameters": {"type": "object", "properties": {"x": TEXT}, "required": ["x"]}},
]
WRAPS = ["<tool_call>\n{}\n</tool_call>", "{}", "```json\n{}\n```", "[TOOL_CALLS][{}]"]

VALUES = [
    ('"text": """a\n"b" c"""', {"text": 'a\n"b" c'}),
    ('"text": """a""", "n": 1', {"text": "a", "n": 1}),
    ('"text": "", "n": 1', {"text": "", "n": 1}),
    ('"text": ""', {"text": ""}),
    ('"text": “a b”', {"text": "a b"}),
    ('"text": `a b`', {"text": "a b"}),
    ('“text”: "a", “n”: 1', {"text": "a", "n": 1}),
    ('"text": "a "b", “c”: d", "n": 1', {"text": 'a "b", “c”: d', "n": 1}),
    ('"text": "a", // why\n "n": 1', {"text": "a", "n": 1}),
    ('"text": "a" // why\n, "n": 1', {"text": "a", "n": 1}),
    ('"text": "a", # why\n "n": 1 # because\n', {"text": "a", "n": 1}),
    ('/* first */ "text": "a" /* second */', {"text": "a"}),
    ('"text": "a // b", "n": 1', {"text": "a // b", "n": 1}),
    ('"text": "# a\\n/* b */", "n": 1', {"text": "# a\n/* b */", "n": 1}),
    ('"text": "a", "sure": true', {"text": "a", "sure": "True"}),
    ('"text": "a", "sure": false', {"text": "a", "sure": "False"}),
    ('"text": "a", "kinds": ["a", "b"]', {"text": "a", "kinds": ["a", "b"]}),
]
WRONG = [
    '"text": “a',
    '"text": “a” and ”b”',
    '"text": `a` `b`',
    '"text": ...',
    '"text": text',
    '"text": read()',
    '"text": """a',
    '"text": "a", "kinds": ["c"]',
    '"text": "a", "sure": "maybe"',
    '// "text": "a"\n',
]


def read_calls(text: str) -> list[tuple[str, Any]]:
    whole = read_events([text], tools=TOOLS)
    for pieces in (list(text), random_cuts(text, 1), random_cuts(text, 2)):
        assert read_events(pieces, tools=TOOLS) == whole
    return [(call.name, json.loads(call.arguments)) for call in collect(whole).calls]


def envelope(arguments: str) -> str:
    return f'{{"name": "note", "arguments": {{{arguments}}}}}'


@in_one_test("wrap", WRAPS)
@in_one_test(("written", "arguments"), VALUES)
def test_damaged_values_are_repaired(written: str, arguments: dict[str, Any], wrap: str) -> None:
    assert read_calls(wrap.replace("{}", envelope(written))) == [("note", arguments)]


@in_one_test("wrap", WRAPS)
@in_one_test("written", WRONG)
def test_values_that_are_unclear_make_no_call(written: str, wrap: str) -> None:
    assert read_calls(wrap.replace("{}", envelope(written))) == []


ELEMENTS = [
    ('<option mode="x">A</option><option>B</option>', [{"option": "A", "mode": "x"}, {"option": "B"}]),
    ('<option mode="x">A</option>', [{"option": "A", "mode": "x"}]),
    ("<option>A</option>", [{"option": "A"}]),
]


@pytest.mark.parametrize(("written", "options"), ELEMENTS)
def test_an_element_called_like_its_text_keeps_its_attributes(written: str, options: list[Any]) -> None:
    text = f"<note>\n<text>a</text>\n<options>\n{written}\n</options>\n</note>"
    [(name, arguments)] = read_calls(text)
    assert (name, arguments["text"]) == ("note", "a")
    assert arguments["options"] == options


@pytest.mark.parametrize("name", ["functions.cross", "functions_cross", "functions.functions_cross"])
def test_a_name_that_begins_like_a_namespace_is_found(name: str) -> None:
    assert read_calls(f'<tool_call>{{"name": "{name}", "arguments": {{"x": "1"}}}}</tool_call>') == [
        ("functions_cross", {"x": "1"})
    ]


def test_an_undeclared_key_of_several_words_is_no_text_of_gemma() -> None:
    text = '<|tool_call>call:note{text:<|"|>a<|"|>,some key:<|"|>b<|"|>}<tool_call|>'
    assert read_calls(text) == [("note", {"text": "a", "some key": "b"})]


@pytest.mark.parametrize("quote", ['<|"|>', "<escape>"])
@pytest.mark.parametrize(
    "members",
    [
        "text:Qa}",
        "text:Qa,n:3}",
        "text:Qa,n:3,sure:QTrueQ}",
        "text:Qa,kinds:[QaQ,QbQ]}",
        "text:QaQ,kinds:[Qa,QbQ]}",
        "text:QaQ,options:[{option:Qa,mode:QbQ}]}",
        "text:QaQ,sure:QTrue}",
    ],
)
def test_a_string_of_gemma_that_lost_its_closing_mark_is_rejected(members: str, quote: str) -> None:
    text = f"<|tool_call>call:note{{{members}<tool_call|>".replace("Q", quote)
    for chunks in ([text], list(text), [text[:40], text[40:]]):
        reader = toolglot.Reader(TOOLS)
        reading = collect([*(event for chunk in chunks for event in reader.feed(chunk)), *reader.close()], text)
        assert not reading.calls
        assert [call.raw for call in reading.rejected] == [text]


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ('[TOOL_CALLS] [{"name": "note", "arguments": {"text": "a"}, "id": ', "junk and the rest"),
        ('[TOOL_CALLS] [{"name": "note", "arguments": {"text": "a"}, ', '"junk}] and the rest'),
        ('<TOOLCALL>[{"name": "note", "arguments": {"text": "a"}, "id": ', '"x" junk}]</TOOLCALL> The rest.'),
        ('<TOOLCALL>[{"name": "note", "arguments": {"text": "a"}} ', "junk }}]</TOOLCALL> The rest."),
        ('<tool_call>\n{"name": "note", "arguments": {"text": "a"}} ', "junk}\n</tool_call> The rest."),
        ('<tool_call>\n{"name": "note", "arguments": {"text": "a"}}\n', "</tool_cal word > The rest."),
    ],
)
def test_no_text_after_the_arguments_is_lost(before: str, behind: str) -> None:
    for chunks in ([before + behind], list(before + behind)):
        reader = toolglot.Reader(TOOLS)
        reading = collect([*(event for chunk in chunks for event in reader.feed(chunk)), *reader.close()])
        assert [(call.name, call.arguments) for call in reading.calls] == [("note", '{"text":"a"}')]
        assert reading.text.strip() == behind


def test_strings_of_gemma_may_hold_marks() -> None:
    text = '<|tool_call>call:note{text:<|"|>print("<|"|>"), such: <|"|> stays<|"|>,n:1}<tool_call|>'
    assert read_calls(text) == [("note", {"text": 'print("<|"|>"), such: <|"|> stays', "n": 1})]


@pytest.mark.parametrize(
    "text",
    [
        "The assistantcommentary to=functions.note is a header.",
        'Nobody writes assistantcommentary to=functions.other json{"text": "a"} here.',
        "analysisWe need it.assistantfinalDone.",
        "assistant to=functions.note",
    ],
)
def test_stripped_headers_without_a_call_are_text(text: str) -> None:
    assert (toolglot.read(text, TOOLS).text, read_calls(text)) == (text, [])


@pytest.mark.parametrize("value", ["#", "x # y", "https://a/#b", "/* c */", "// d", "a # b\n"])
def test_signs_of_comments_inside_strings_are_text(value: str) -> None:
    arguments = {"x": value, "free": {value: [value, 1]}, "y": 1}
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "string"}, "free": {}}}}
    text = f"<tool_call>{json.dumps({'name': 'f', 'arguments': arguments})}</tool_call>"
    (call,) = toolglot.read(text, [tool]).calls
    assert json.loads(call.arguments) == arguments
    assert call.repairs == ()


ENDLESS = [
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.note:0<|tool_call_argument_begin|>{0}<|tool_call_end|>"
    "<|tool_call_begin|>functions.functions_cross:1<|tool_call_argument_begin|>{1}<|tool_call_end|>"
    "<|tool_calls_section_end|>",
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.note:0<|tool_call_argument_begin|>{0}"
    "<|tool_call_begin|>functions.functions_cross:1<|tool_call_argument_begin|>{1}<|tool_call_end|>"
    "<|tool_calls_section_end|>",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>note<｜tool▁sep｜>{0}<｜tool▁call▁end｜><｜tool▁call▁begin｜>"
    "functions_cross<｜tool▁sep｜>{1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "[TOOL_CALLS]note[ARGS]{0}[TOOL_CALLS]functions_cross[ARGS]{1}",
]


@in_one_test("written", ['{"n": 2, "text": "a"', '{"text": "a", "n": 2'])
@in_one_test("frame", ENDLESS)
def test_object_without_its_bracket_ends_with_the_call(frame: str, written: str) -> None:
    text = frame.replace("{0}", written).replace("{1}", '{"x": "b"}')
    whole = read_events([text], tools=TOOLS)
    assert read_events(list(text), tools=TOOLS) == whole
    reading = collect(whole)
    assert [(call.name, json.loads(call.arguments)) for call in reading.calls] == [
        ("note", {"text": "a", "n": 2}),
        ("functions_cross", {"x": "b"}),
    ]
    assert reading.text == ""


def test_text_ends_before_the_header_of_the_next_call() -> None:
    reading = collect(read_events(['>>>note\n{"text": "a"\n>>>functions_cross\n{"x": "b"}'], tools=TOOLS))
    assert [call.arguments for call in reading.calls] == ['{"text":"a"}', '{"x":"b"}']


def test_a_quoted_call_in_nested_text_between_marks_rejects_the_call() -> None:
    tools = [{"name": "run", "parameters": {"type": "object", "properties": {"env": {"type": "object"}}}}]
    answer = (
        '<|tool_call>call:run{env:{a:<|"|><|tool_call>call:run{env:{b:<|"|>x<|"|>}}<tool_call|>\n<|"|>}}<tool_call|>'
    )
    reading = toolglot.read(answer, tools)
    assert [call.arguments for call in reading.calls] == []
    assert [rejected.reason for rejected in reading.rejected] == [Reason.MALFORMED]
