"""One edit in one mark of a call: nothing of the mark is ever delivered as part of a value."""

from __future__ import annotations

import json
import re
from random import Random

import pytest
from support import independent_writer as writer
from support.rows import in_one_test
from support.samples import random_cuts, read_events

import toolglot
from toolglot.reading.reader import collect

PATH = {"type": "string"}
TOOLS = [
    {
        "name": "save_text",
        "parameters": {
            "type": "object",
            "properties": {"path": PATH, "text": PATH, "limit": {"type": "integer"}},
            "required": ["path"],
        },
    },
    {"name": "run", "parameters": {"type": "object", "properties": {"command": PATH}, "required": ["command"]}},
]
VALUES = ("src/a.py", "if a < b:\n    pass\n", "a\n\n", "")
MARK = re.compile(r"(?:\]<\]\w+\[>\[)?<[^<>\n]*>")
WRITERS = {name: write for name, write in writer.MARKUP.items() if name != "minicpm5"}


def read(text: str) -> toolglot.Reading:
    whole = read_events([text], tools=TOOLS)
    assert read_events(random_cuts(text, 3), tools=TOOLS) == whole
    return collect(whole)


def edit(mark: str, random: Random) -> str:
    at = random.randrange(1, len(mark))
    char = random.choice("<>/=\"abx_ \n'|")
    return random.choice(
        (
            mark[:at] + mark[at + 1 :],
            mark[:at] + char + mark[at:],
            mark[: at - 1] + char + mark[at:],
            mark[: at - 1] + mark[at : at + 1] + mark[at - 1 : at] + mark[at + 1 :],
            mark + mark,
            mark + "\n" + mark,
            "",
            mark[1:],
            mark.replace("<", "< ", 1),
        )
    )


@in_one_test("dialect", WRITERS)
def test_an_edit_in_a_mark_never_changes_a_value(dialect: str) -> None:
    random = Random(dialect)
    for value in VALUES:
        arguments: writer.Arguments = [("path", "a b/c.txt"), ("text", value), ("limit", 3)]
        if dialect == "roo_xml":
            value = arguments[1][1].strip()
            arguments[1] = ("text", value)
        text = WRITERS[dialect]("save_text", arguments, random)
        assert [json.loads(call.arguments) for call in read(text).calls] == [dict(arguments)], text
        marks = list(MARK.finditer(text))
        for _ in range(60):
            mark = random.choice(marks)
            edited = edit(mark[0], random)
            damaged = text[: mark.start()] + (edited if edited[1:] != mark[0] else "") + text[mark.end() :]
            for call in read(damaged).calls:
                assert (call.name, json.loads(call.arguments)) == ("save_text", dict(arguments)), damaged


@pytest.mark.parametrize(
    "text",
    [
        "<function=run>\n<parameter=command><parameter=command>\nls\n</parameter>\n</function>",
        '<invoke name="run"><parameter name="command"><parameter name="command">ls</parameter></invoke>',
        "<tool_call>run\n<arg_key>command</arg_key>\n<arg_value><arg_value>ls</arg_value>\n</tool_call>",
        "<run>\n<command><command>ls</command>\n</run>",
        "<function=run>\n<parameter=command>\nls\n/parameter>\n</function>",
        "<function=run>\n<parameter=command>\nls\n< /parameter>\n</function>",
        "<function=run>\n<parameter=command>\ncat <a.txt\n</arameter>\n</function>",
        "<run>\n<command>cat <a.txt</comand>\n</run>",
        "<function=save_text>\n<parameter=path>\na\n</parameter>\n<param eter=text>\nb\n</parameter>\n</function>",
        "<function=save_text>\n<parameter=path>\na\n</parameter>\n<parameter=txt>\nb\n</parameter>\n</function>",
        "<function=save_text>\n<parameter=path>\na\n</parameter>\n\nb\n</parameter>\n</function>",
        "<function=save_txt>\n<parameter=path>\na\n</parameter>\n</function>",
        "<tool_call>run\\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
        '<function_calls><invoke name="run">{"x": 1}</parameter></invoke></function_calls>',
    ],
)
def test_damage_that_may_mean_two_things_is_rejected(text: str) -> None:
    reading = read(text)
    assert not reading.calls
    assert reading.rejected or reading.text


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("<function=run><function=run>\n<parameter=command>\nls\n</parameter>\n</function>", {"command": "ls"}),
        ("<function=run>\n<parameter=command>\nls\n</arameter>\n</function>", {"command": "ls"}),
        (
            "<function=run>\n<parameter=command>\n<parameter=command>\nls\n</parameter>\n</parameter>\n</function>",
            {"command": "<parameter=command>\nls\n</parameter>"},
        ),
    ],
)
def test_damage_that_means_one_thing_is_repaired(text: str, arguments: dict[str, str]) -> None:
    assert [json.loads(call.arguments) for call in read(text).calls] == [arguments]


@in_one_test("dialect", [name for name in WRITERS if name != "kimi_k3"])
def test_a_section_that_is_all_of_a_file_is_its_content(dialect: str) -> None:
    for key, value, expected in (
        ("text", "<![CDATA[ raw ]]>", "<![CDATA[ raw ]]>"),
        ("text", "<![CDATA[if (a < b)]]>", "if (a < b)"),
        ("path", "<![CDATA[a.py]]>", "a.py"),
    ):
        arguments = {"path": "a", key: value}
        text = WRITERS[dialect]("save_text", list(arguments.items()), Random(0))
        assert [json.loads(call.arguments) for call in read(text).calls] == [{**arguments, key: expected}], text


def test_a_long_value_with_a_damaged_end_takes_linear_time() -> None:
    body = "<p>text</p>\n</paramete\n" * 10_000
    reading = toolglot.read(f"<function=run>\n<parameter=command>\n{body}</paramter>\n</function>", tools=TOOLS)
    assert not reading.calls
