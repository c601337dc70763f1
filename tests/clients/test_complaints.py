"""Complaints of clients, and text that only resembles them."""

from __future__ import annotations

from support.rows import in_one_test

from toolglot.clients.complaints import CALL_COMPLAINTS, COMPLAINT_PATTERNS, find_complaints
from toolglot.core.conversation import Message, Text, ToolCall, ToolResult

ASKED = Message("user", (Text("<task>\nFix it\n</task>"),))
ANSWER = Message("assistant", (Text("I would look at the file first."),))
NO_TOOL = (
    "[ERROR] You did not use a tool in your previous response! Please retry with a tool use.\n\n"
    "# Reminder: Instructions for Tool Use\n\nTool uses are formatted using XML-style tags."
)
FAILED = "The tool execution failed with the following error:\n<error>\n{}\n</error>"
MISSING = "Missing value for required parameter 'path'. Please retry with complete response."

TEXTS = [
    (NO_TOOL, ["no_tool"]),
    ("\n" + NO_TOOL, ["no_tool"]),
    (MISSING, ["missing_parameter"]),
    (f"[write_to_file for 'a.txt'] Result:\n{FAILED.format(MISSING)}", ["missing_parameter"]),
    (f"[execute_command for 'echo \"] or\nmore'] Result:\n\n{FAILED.format(MISSING)}", ["missing_parameter"]),
    (FAILED.format('Unknown tool "run_it". Please use one of the tools.'), ["unknown_tool"]),
    ('[attempt_completion] Result:\nUnknown tool "x".', ["unknown_tool"]),
    ("Tool [read_file] was not executed because a tool has already been used in this message.", ["not_executed"]),
    ("Tool call repetition limit reached for read_file. Please try another way.", ["repeated"]),
    ("[read_file for 'a'] Result:\nThe user denied this operation.", ["denied"]),
    ('{"status":"error","message":"failed","error":"' + MISSING + '"}', ["missing_parameter"]),
    # a tool that ran and failed, and words that are only quoted
    (FAILED.format("ENOENT: no such file 'Missing value for required parameter'"), []),
    ("[read_file for 'log.txt'] Result:\n1 | [ERROR] You did not use a tool", []),
    (f"Why does it say this?\n{NO_TOOL}", []),
    ("[read_file for 'a'] Result:\n<files>Unknown tool</files>", []),
    ("", []),
]


@in_one_test(("text", "kinds"), TEXTS)
def test_similar_phrases_are_distinguished(text: str, kinds: list[str]) -> None:
    assert find_complaints((ASKED, ANSWER, Message("user", (Text(text),)))) == kinds


def test_every_kind_is_tried() -> None:
    assert {kind for _, kinds in TEXTS for kind in kinds} == set(COMPLAINT_PATTERNS)
    assert set(COMPLAINT_PATTERNS) > CALL_COMPLAINTS


def test_each_part_is_searched_and_a_kind_is_reported_once() -> None:
    parts = (Text("[read_file for 'a'] Result:"), Text(FAILED.format(MISSING)), Text(MISSING), Text("<environment>"))
    assert find_complaints((ASKED, ANSWER, Message("user", parts))) == ["missing_parameter"]


def test_results_of_native_clients_count_too() -> None:
    called = Message("assistant", (ToolCall("1", "write"),))
    result = Message("tool", (ToolResult("1", "write", (Text(MISSING),)),))
    assert find_complaints((ASKED, called, result)) == ["missing_parameter"]


def test_only_what_follows_the_last_answer_counts() -> None:
    complaint = Message("user", (Text(NO_TOOL),))
    assert (
        find_complaints((ASKED, ANSWER, complaint, ANSWER, Message("user", (Text("[read for 'a'] Result:\nok"),))))
        == []
    )
    assert find_complaints((complaint,)) == []
    assert find_complaints(()) == []


def test_an_answer_that_was_empty() -> None:
    failure = Message("assistant", (Text("Failure: I did not provide a response."),))
    assert find_complaints((ASKED, failure, Message("user", (Text(NO_TOOL),)))) == ["empty_answer", "no_tool"]
