"""Values of Python calls: literals count, expressions do not."""

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
        "name": "find",
        "parameters": {
            "type": "object",
            "properties": {
                "query": TEXT,
                "order": {"type": "string", "enum": ["up", "down"]},
                "tags": {"type": "array", "items": TEXT},
                "more": {"type": "object"},
            },
            "required": ["query"],
        },
    },
    {"name": "ping", "parameters": {"type": "object", "properties": {}}},
]
FORMS = [
    "%s",
    "[%s]",
    "[ping(), %s]",
    "ping()\n%s",
    "```python\n%s\n```",
    "```python\n[%s]\n```",
    "```tool_code\n%s\n```",
    "Tool calls: [%s]",
    "<|python_start|>[%s]<|python_end|>",
    "<function_calls>\n%s\n</function_calls>",
    "<|tool_call_start|>[%s]<|tool_call_end|>",
    "<|python_tag|>%s",
    "Call: %s<bot_end>",
    "<tool_call>\n%s\n</tool_call>",
]
EXPRESSIONS = [
    "user.city",
    "city",
    "-x",
    "x or 'y'",
    "'a' + 'b'",
    "'a'+'b'",
    "'a' + x",
    "x + 'a'",
    "('a' + 'b')",
    '"a" + "b"',
    "'a' * 3",
    "'%s' % 'b'",
    "'{}'.format('b')",
    "'a'.upper()",
    "'abc'[1:]",
    "'a' if x else 'b'",
    "'a' and 'b'",
    "'a' == 'b'",
    "'a' in b",
    "not 'a'",
    "f'{city}'",
    "b'a'",
    "lambda: 'x'",
    "names[0]",
    "get_city()",
    "await x",
    "',' .join(['a', 'b'])",
    "base/name",
]


def read_calls(text: str) -> list[tuple[str, Any]]:
    whole = read_events([text], tools=TOOLS)
    assert read_events(list(text), tools=TOOLS) == whole
    assert read_events(random_cuts(text, 3), tools=TOOLS) == whole
    return [(call.name, json.loads(call.arguments)) for call in collect(whole).calls]


@in_one_test("form", FORMS)
@in_one_test("value", EXPRESSIONS)
def test_an_expression_is_no_value(value: str, form: str) -> None:
    for arguments in (
        f"query={value}",
        f"query='q', tags=[{value}]",
        f"query='q', more={{'k': {value}}}",
    ):
        names = [name for name, _ in read_calls(form.replace("%s", f"find({arguments})"))]
        assert "find" not in names
    assert read_calls(f'["find(query={value})"]'.replace("query=", "query= ")) == []


@in_one_test(
    "call",
    [
        "find(query='a', query='b')",
        "find(query='a', 'b')",
        "find(query='a', *b)",
        "find(query=5 'a')",
        "find(*args)",
        "find(**options)",
    ],
)
@in_one_test("form", FORMS)
def test_arguments_that_python_refuses_are_no_call(call: str, form: str) -> None:
    assert "find" not in [name for name, _ in read_calls(form.replace("%s", call))]


@in_one_test(
    ("value", "meant"),
    [
        ("'a' 'b'", "ab"),
        ("'a' \"b\"\n  'c'", "abc"),
        ("('a'\n 'b')", "ab"),
        ("'it's fine'", "it's fine"),
        ('"say "hi" now"', 'say "hi" now'),
        ("'dogs' toys'", "dogs' toys"),
        ("New York", "New York"),
        ("2024-10-12", "2024-10-12"),
    ],
)
def test_literals_and_plain_words_are_values(value: str, meant: str) -> None:
    for form in ("[%s]", "<|python_start|>[%s]<|python_end|>", "```tool_code\n%s\n```"):
        assert read_calls(form.replace("%s", f"find(query={value})")) == [("find", {"query": meant})]


def test_a_name_is_a_value_where_the_schema_lists_it() -> None:
    assert read_calls("[find(query='q', order=up)]") == [("find", {"query": "q", "order": "up"})]
    assert read_calls("[find(query='q', order=sideways)]") == []


def test_parentheses_make_a_list_only_with_a_comma() -> None:
    assert read_calls("[find(query=('q'), tags=('a',))]") == [("find", {"query": "q", "tags": ["a"]})]
    assert read_calls("[find(query='q', tags=('a', 'b'))]") == [("find", {"query": "q", "tags": ["a", "b"]})]


@pytest.mark.parametrize("text", ["[ping(), find(order='up')]", "ping()\n[find()]", "[find(), ping()]"])
def test_of_several_calls_all_must_be_good(text: str) -> None:
    assert toolglot.read(text, TOOLS).text == text
    assert read_calls(text) == []


@pytest.mark.parametrize("form", ["%s", "```json\n%s\n```", "<tool_call>\n%s\n</tool_call>"])
def test_strings_that_a_sign_joins_are_no_value_in_json(form: str) -> None:
    assert read_calls(form.replace("%s", '{"name": "find", "arguments": {"query": "a" + "b"}}')) == []
    code = '{"name": "find", "arguments": {"query": "x = "a" + "b";"}}'
    assert read_calls(form.replace("%s", code)) == [("find", {"query": 'x = "a" + "b";'})]
