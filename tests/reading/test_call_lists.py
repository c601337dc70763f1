"""Lists of calls in ordinary text: calls if all of their elements are, text otherwise."""

from __future__ import annotations

import pytest
from support.samples import random_cuts, read_events

import toolglot
from toolglot.core.events import CallStarted
from toolglot.reading.reader import Reader, collect

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"name": "read", "parameters": PATH}, {"name": "write", "parameters": PATH}]
READ = '{"name": "read", "arguments": {"path": "a.py"}}'
WRITE = '{"name": "write", "arguments": {"path": "b.py"}}'


def read(text: str) -> toolglot.Reading:
    whole = read_events([text], tools=TOOLS)
    assert read_events(list(text), tools=TOOLS) == whole
    assert read_events(random_cuts(text, 7), tools=TOOLS) == whole
    return collect(whole)


@pytest.mark.parametrize(
    "text",
    [
        f"[{READ}, 5]",
        f"[{READ}, null]",
        f'[{READ}, "then"]',
        f"[{READ}, ...]",
        f'[{READ}, {{"note": 1}}]',
        f"[{READ}, {WRITE.replace('write', 'remove')}]",
        f"[{READ}, {WRITE.replace('path', 'file_name_of')}]",
        f'[{READ}, {{"name": "write", "arguments": {{"path": "b',
        f"```json\n[{READ}, 5]\n```",
        f'{{"tool_calls": [{READ}, 5]}}',
        f'{{"tool_calls": [{READ}], "result": 5}}',
    ],
)
def test_list_with_another_element_is_text(text: str) -> None:
    reading = read(text)
    assert (reading.text, reading.calls, reading.rejected) == (text, [], [])


@pytest.mark.parametrize(
    "text",
    [
        f"[{READ}, {WRITE}]",
        f"[{READ}, {WRITE}",
        f"[{READ}}}, {WRITE}]",
        f"[{READ}, // the second one\n {WRITE},]",
        f"[{READ}]\n[{WRITE}]",
        f"```json\n[{READ}, {WRITE}\n```",
        f'{{"tool_calls": [{READ}, {WRITE}]}}',
        f'{{"tool_calls": [{READ}, {WRITE}], "content": ""}}',
    ],
)
def test_list_of_calls_is_read(text: str) -> None:
    reading = read(text)
    assert [(call.name, call.arguments) for call in reading.calls] == [
        ("read", '{"path":"a.py"}'),
        ("write", '{"path":"b.py"}'),
    ]
    assert reading.text == ""


def test_further_list_does_not_undo_the_first() -> None:
    reading = read(f"[{READ}]\n[{WRITE}, 5]")
    assert [call.name for call in reading.calls] == ["read"]
    assert reading.text.strip() == f"[{WRITE}, 5]"


def test_list_counts_when_it_is_closed() -> None:
    reader = Reader(tools=TOOLS)
    assert not reader.feed(f"[{READ}, {WRITE}")
    started = [event for event in reader.feed("]\nDone.") if isinstance(event, CallStarted)]
    assert [event.name for event in started] == ["read", "write"]


BROKEN = '{"name": "read", "arguments": {"pth": "a.py"}}'


@pytest.mark.parametrize("behind", ["", "\n"])
@pytest.mark.parametrize("between", ["\nThen the log:\n", " Then the log:\n\n", "\n\n2. Then write.\n", "\n"])
def test_bare_calls_with_words_between_them_are_all_delivered(between: str, behind: str) -> None:
    reading = read(f"First the tide:\n{READ}{between}{WRITE}{behind}")
    assert [call.name for call in reading.calls] == ["read", "write"]
    assert reading.text.split() == f"First the tide: {between}".split()


@pytest.mark.parametrize(
    ("text", "missed"),
    [
        (f"First:\n{READ}\nThen:\n{WRITE}\nThat is the plan.", ["read", "write"]),
        (f"First:\n{READ}\nThen:\n{BROKEN}\nAnd:\n{WRITE}", ["read", "read", "write"]),
        (f"First:\n{READ}\n{'This is a long text. ' * 12}\n{WRITE}", ["read", "write"]),
        (f"First:\n{READ}\nThat is all.", ["read"]),
        (f"For example:\n{READ}\nThat is all.", []),
    ],
)
def test_bare_calls_are_text_if_not_all_are_delivered(text: str, missed: list[str]) -> None:
    for chunks in ([text], list(text), random_cuts(text, 7)):
        reader = Reader(TOOLS)
        reading = collect([*(event for chunk in chunks for event in reader.feed(chunk)), *reader.close()])
        assert (reading.text, reading.calls, reading.rejected) == (text, [], [])
        assert [miss.tool for miss in reader.missed] == missed


def test_a_marked_call_after_a_bare_one_is_delivered_alone() -> None:
    reading = read(f"First:\n{READ}\nThen:\n<tool_call>\n{WRITE}\n</tool_call>")
    assert [call.name for call in reading.calls] == ["write"]
    assert reading.text.split() == f"First: {READ} Then:".split()
