"""A model that needs guidance gets a note if its call failed."""

from __future__ import annotations

import pytest

from toolglot.core.conversation import Message, Text, ToolCall, ToolResult
from toolglot.gateway.recovery.failed_calls import FAILED, FAILED_EDIT, find_failures

EDIT = '{"path":"a.py","old_text":"x = 1","new_text":"x = 2"}'


def turn(result: str, arguments: str = '{"path":"a.py"}', *, error: bool = False) -> list[Message]:
    call = Message("assistant", (ToolCall("c1", "edit", arguments),))
    return [call, Message("tool", (ToolResult("c1", "edit", (Text(result),), error=error),))]


@pytest.mark.parametrize(
    "result",
    [
        "Error: no such file",
        "error: no such file",
        "FileNotFoundError: a.py",
        "Traceback (most recent call last):",
        "<error>no such file</error>",
        "Failed to open a.py",
        "**Error** while reading",
    ],
)
def test_a_result_that_begins_like_an_error_gets_a_note(result: str) -> None:
    (found,) = find_failures(turn(result))
    assert (found.at, found.part, found.text) == (1, 0, FAILED)


@pytest.mark.parametrize(
    "result",
    ["", "ok", "errors = []", "The file was written. Error handling is unchanged.", "failing = 0", "errorless"],
)
def test_other_results_get_none(result: str) -> None:
    assert list(find_failures(turn(result))) == []


def test_the_client_decides_if_it_marks_errors() -> None:
    assert [found.text for found in find_failures(turn("no", error=True))] == [FAILED]


def test_the_note_on_an_edit_says_to_read_the_file() -> None:
    assert [found.text for found in find_failures(turn("Error: not found", EDIT))] == [FAILED_EDIT]


def test_arguments_that_are_not_json_do_no_harm() -> None:
    assert [found.text for found in find_failures(turn("Error: bad", "{"))] == [FAILED]
