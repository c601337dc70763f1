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
