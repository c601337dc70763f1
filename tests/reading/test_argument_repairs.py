"""Arguments that differ slightly from the schema, in the dialects that write them as JSON or Python."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.rows import in_one_test
from support.samples import random_cuts, read_events

import toolglot
from toolglot.reading.reader import collect

PROPERTIES = {
    "step": {"type": "integer"},
    "label": {"type": "string"},
    "loud": {"type": "boolean"},
    "mode": {"type": "string", "enum": ["high_score", "low"], "default": "medium"},
    "more": {"type": "object"},
}
OPEN = {"name": "count", "parameters": {"type": "object", "properties": PROPERTIES, "required": ["label"]}}
CLOSED = {"name": "tally", "parameters": {**OPEN["parameters"], "additionalProperties": False}}  # type: ignore[dict-item]
TOOLS: list[dict[str, Any]] = [OPEN, CLOSED]


def write_forms(name: str, arguments: dict[str, Any]) -> list[str]:
    """The same call in several dialects."""
    body = json.dumps({"name": name, "arguments": arguments})
    keywords = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return [
        body,
        f"```json\n{body}\n```",
        f"<tool_call>\n{body}\n</tool_call>",
        f"Words before.\n\n{body}",
        json.dumps({"arguments": arguments, "name": name}),
        f"[TOOL_CALLS]{name}[ARGS]{json.dumps(arguments)}",
        f"[{name}({keywords})]",
        f"<|python_start|>[{name}({keywords})]<|python_end|>",
    ]


def read_call(text: str) -> tuple[str, Any, set[str]]:
    """The only call of a text, however it is cut."""
    whole = read_events([text], tools=TOOLS)
    assert read_events(list(text), tools=TOOLS) == whole
    assert read_events(random_cuts(text, 2), tools=TOOLS) == whole
    (call,) = collect(whole).calls
    return call.name, json.loads(call.arguments), set(call.repairs)


CASES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("count", {"step": None, "label": "x"}, {"label": "x"}, "omitted_null"),
    ("count", {"label": "x", "step": None}, {"label": "x"}, "omitted_null"),
    ("count", {"step": None, "loud": None, "label": "x"}, {"label": "x"}, "omitted_null"),
    ("count", {"pace": "fast", "label": "x"}, {"pace": "fast", "label": "x"}, ""),
    ("count", {"label": "x", "pace": {"a": [1]}}, {"label": "x", "pace": {"a": [1]}}, ""),
    ("tally", {"pace": 'fast", ")}', "label": "x"}, {"label": "x"}, "dropped_undeclared_argument"),
    (
        "tally",
        {"label": "x", "pace": 3, "why": "y", "step": 2},
        {"label": "x", "step": 2},
        "dropped_undeclared_argument",
    ),
    ("count", {"label": "x", "loud": "False"}, {"label": "x", "loud": False}, "coerced_type"),
    ("count", {"loud": "true", "label": "x"}, {"loud": True, "label": "x"}, "coerced_type"),
    ("count", {"label": "x", "mode": "high\\_score"}, {"label": "x", "mode": "high_score"}, "removed_markdown_escape"),
    ("count", {"label": "x", "mode": "medium"}, {"label": "x", "mode": "medium"}, ""),
    ("count", {"label": "high\\_score"}, {"label": "high\\_score"}, ""),
]


@in_one_test(("name", "given", "wanted", "repair"), CASES)
def test_the_call_is_delivered_in_every_form(
    name: str, given: dict[str, Any], wanted: dict[str, Any], repair: str
) -> None:
    for text in write_forms(name, given):
        called, arguments, repairs = read_call(text)
        assert (called, list(arguments.items())) == (name, list(wanted.items()))
        assert not repair or repair in repairs


@in_one_test(
    "arguments",
    [
        {"pace": "fast"},
        {"label": "x", "mode": "loud"},
        {"label": "x", "loud": "perhaps"},
        {"label": None},
    ],
)
@in_one_test("name", ["count", "tally"])
def test_what_is_missing_or_wrong_is_never_delivered(name: str, arguments: dict[str, Any]) -> None:
    for text in write_forms(name, arguments):
        assert toolglot.read(text, TOOLS).calls == []


@pytest.mark.parametrize(
    "text",
    [
        '{{"name": "count", "arguments": {"label": "x", "more": {"a": 1}}}}',
        '{{"name": "count", "arguments": {{"label": "x", "more": {{"a": 1}}}}}}',
        '```json\n{{"name": "count", "arguments": {{"label": "x", "more": {{"a": 1}}}}}}\n```',
        '<tool_call>\n{{"name": "count", "arguments": {{"label": "x", "more": {"a": 1}}}}}\n</tool_call>',
        '{{"arguments": {{"label": "x", "more": {{"a": 1}}}}, "name": "count"}}',
    ],
)
def test_doubled_braces_are_read(text: str) -> None:
    called, arguments, repairs = read_call(text)
    assert (called, arguments) == ("count", {"label": "x", "more": {"a": 1}})
    assert "doubled_braces" in repairs


@pytest.mark.parametrize(
    "text",
    ['{{"label": "x"}}', "{{ count }} is a template", "{" * 3000, '{"name": "count", "arguments": ' + "{" * 3000],
)
def test_other_doubled_braces_stay_text(text: str) -> None:
    reading = toolglot.read(text, TOOLS)
    assert (reading.text, reading.calls) == (text, [])


def test_a_definition_is_no_call() -> None:
    for text in (json.dumps(OPEN), json.dumps({"parameters": OPEN["parameters"], "name": "count"})):
        assert toolglot.read(text, TOOLS).calls == []


def test_an_object_cut_before_its_last_brace_is_truncated() -> None:
    text = '<tool_call>\n{"name": "count", "arguments": {"label": "x"}'
    assert [call.name for call in toolglot.read(text, TOOLS).calls] == ["count"]
    reading = toolglot.read(text, TOOLS, truncated=True)
    assert reading.calls == []
    assert [rejected.reason for rejected in reading.rejected] == ["truncated"]


def test_a_dropped_text_does_not_leave_while_it_arrives() -> None:
    reader = toolglot.Reader(TOOLS)
    sent = reader.feed('<tool_call>{"name": "tally", "arguments": {"label": "x", "why": "' + "secret " * 50)
    assert "secret" not in repr(sent)
    sent = [*reader.feed('secret", "step": 1}}</tool_call>'), *reader.close()]
    assert "secret" not in repr(sent)
