"""Marks and JSON that models damage: unambiguous damage is repaired, and leaves no remains in the text."""

from __future__ import annotations

import pytest
from support.rows import in_one_test
from support.samples import random_cuts, read_events

import toolglot
from toolglot.reading.reader import collect

TOOLS = [
    {
        "name": "read_file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "note": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["path"],
        },
    }
]
BODY = '{"name": "read_file", "arguments": {"path": "a.py"}}'
OPENERS = (
    "<tool_call>",
    "< tool_call >",
    "<tool_call >",
    "<tool_call:>",
    "<tool_call＞",
    '<tool_call id="1">',
)
CLOSERS = ("</tool_call>", "</ tool_call>", "</tool_call＞", "<tool_call/>", "</tool_call >", "")


def read(text: str) -> toolglot.Reading:
    whole = read_events([text], tools=TOOLS)
    assert read_events(list(text), tools=TOOLS) == whole
    assert read_events(random_cuts(text, 7), tools=TOOLS) == whole
    return collect(whole)


@in_one_test("closer", CLOSERS)
@in_one_test("opener", OPENERS)
def test_damaged_marks_leave_nothing(opener: str, closer: str) -> None:
    reading = read(f"Hello.\n{opener}\n{BODY}\n{closer}\n")
    assert [call.arguments for call in reading.calls] == ['{"path":"a.py"}']
    assert reading.text.strip() == "Hello."


@pytest.mark.parametrize("opener", ["[TOOL CALL: 3]", "[TOOL CALL]", '[TOOL_CALL id="3"]'])
def test_brackets_may_hold_a_number(opener: str) -> None:
    for closer in ("[END TOOL CALL]", "[/TOOL_CALL]"):
        reading = read(f"{opener}{BODY}{closer}")
        assert [call.arguments for call in reading.calls] == ['{"path":"a.py"}']
        assert reading.text == ""


@pytest.mark.parametrize(
    "text",
    [
        "If a < tool_call > b, it counts.",
        "The tag < tool_call > opens a call and <tool_call/> is empty.",
        "＜tool_call＞ is a mark.",
        "[TOOL CALL: see below] and [END TOOL CALL] are marks.",
        'a < tool_call > {"x": 1}',
        "<tool_call/>",
    ],
)
def test_marks_in_prose_stay_text(text: str) -> None:
    reading = read(text)
    assert (reading.text, reading.calls, reading.rejected) == (text, [], [])


@in_one_test("form", ["%s", "```json\n%s\n```", "<tool_call>\n%s\n</tool_call>"])
@in_one_test(
    ("body", "arguments"),
    [
        ('{"name": "read_file", "arguments": {"path": "a" "limit": 3}}', '{"path":"a","limit":3}'),
        ('{"name": "read_file", "arguments": {"path": "a"\n"limit": 3}}', '{"path":"a","limit":3}'),
        ("{“name”: “read_file”, “arguments”: {“path”: “a”, “limit”: 3}}", '{"path":"a","limit":3}'),
        (
            '{"name": "read_file", "arguments": {"path": "say "b" now", "limit": 3}}',
            '{"path":"say \\"b\\" now","limit":3}',
        ),
        (
            '{"name": "read_file", "arguments": {"path": "is "b" "limit": 3", "limit": 4}}',
            '{"path":"is \\"b\\" \\"limit\\": 3","limit":4}',
        ),
        ('{"name": "read_file", "arguments": {"path": "a"limit": 3"}}', '{"path":"a\\"limit\\": 3"}'),
        ('{"name": "read_file", "arguments": {"path": "a" "other": 3"}}', '{"path":"a\\" \\"other\\": 3"}'),
    ],
)
def test_a_missing_comma_and_odd_quotes(form: str, body: str, arguments: str) -> None:
    assert [call.arguments for call in read(form.replace("%s", body)).calls] == [arguments]


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>\n<function=read_file now>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>",
        "<function=read_file (now)>\n<parameter=path>\na.py\n</parameter>\n</function>",
        '<function=read_file now>{"path": "a.py"}</function>',
        '<invoke name=read_file now><parameter name="path">a.py</parameter></invoke>',
        '<|channel|>commentary to=functions.read_file now <|constrain|>json<|message|>{"path": "a.py"}<|call|>',
        '<|channel|>commentary to=functions.read_file now<|message|>{"path": "a.py"}<|call|>',
        '<|channel|>commentary to=functions.read_file, now<|message|>{"path": "a.py"}<|call|>',
    ],
)
def test_words_behind_a_name_belong_to_it(text: str) -> None:
    whole = read_events([text], tools=TOOLS, unknown_tools="reject")
    assert read_events(list(text), tools=TOOLS, unknown_tools="reject") == whole
    reading = collect(whole)
    assert not reading.calls
    assert [call.reason for call in reading.rejected] == [toolglot.Reason.UNKNOWN_TOOL]


def test_attributes_before_a_json_body_are_arguments() -> None:
    reading = read('<function=read_file limit="5">{"path": "a.py"}</function>')
    assert [call.arguments for call in reading.calls] == ['{"limit":5,"path":"a.py"}']
    assert not read('<function=read_file path="b.py">{"path": "a.py"}</function>').calls
