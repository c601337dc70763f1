"""Failed edits of files that were read before: the nearest real lines are added to the result."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from support.line import Line
from support.rows import in_one_test
from support.strict_history import check_request

from toolglot.clients.edit_failures import (
    Edit,
    read_edit,
    read_shown_paths,
    reports_missing_text,
    same_path,
    strip_line_numbers,
)
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolResult
from toolglot.gateway.recovery.edit_hints import MAX_CHARACTERS, MAX_FILE, MAX_LINES, find_edit_hints

FILE = (
    "import os\n\n\ndef run(name):\n\tpath = os.path.join('a',  name)\n\treturn open(path)\n\n\ndef stop():\n    pass\n"
)
NUMBERED = "\n".join(f"{number:6}\t{line}" for number, line in enumerate(FILE.split("\n"), 1))
FAILED = "String to replace not found in file.\nString: ..."
SHOWN = FILE.rstrip("\n").split("\n")
ASKED = Message("user", (Text("go"),))
ids = iter(range(1_000_000))


def turn(name: str, arguments: dict[str, Any], text: str, *, error: bool = False) -> list[Message]:
    call_id = f"c{next(ids)}"
    made = Message("assistant", (ToolCall(call_id, name, json.dumps(arguments)),))
    return [made, Message("tool", (ToolResult(call_id, name, (Text(text),), error),))]


def hints(*turns: list[Message]) -> list[str]:
    return [one.text for one in find_edit_hints([ASKED, *(message for one in turns for message in one)])]


READ = turn("Read", {"file_path": "/w/a.py"}, NUMBERED)
WRONG = "def run(name):\n    path = os.path.join('a', name)\n    return open(path)"


# -- what clients write ------------------------------------------------------------------------------------------------


@in_one_test(
    "text",
    [
        "<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>",
        "Error: oldString not found in content",
        "No replacement was performed, old_str `x` did not appear verbatim in /w/a.py.",
        "<error_details>\nNo sufficiently similar match found at line: 3 (80% similar, needs 100%)",
        "The tool execution failed with the following error:\n<error>\nThe SEARCH block:\nx\n...does not match anything in the file.",
        "apply_patch verification failed: Failed to find expected lines in a.py:\nx",
        "Failed to edit, 0 occurrences found for old_string in a.py. Ensure you're not escaping content incorrectly",
        "## SearchReplaceNoExactMatch: This SEARCH block failed to exactly match lines in a.py",
        "'old_str' must appear exactly once in the file, but it does not appear in the file.",
        "old_string not found in file",
    ],
)  # fmt: skip
def test_reports_of_clients(text: str) -> None:
    assert reports_missing_text(text)


@pytest.mark.parametrize("text", ["", "Done.", "Found 2 matches of the string to replace", "File not found: a.py"])
def test_other_results(text: str) -> None:
    assert not reports_missing_text(text)


SEARCH = "<<<<<<< SEARCH\n:start_line:4\n-------\ndef a():\n  pass\n=======\ndef b():\n>>>>>>> REPLACE"
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@ def a():\n x\n-y\n+z\n\n w\n*** End Patch"


@in_one_test(
    ("arguments", "edit"),
    [
        ({"file_path": "a", "old_string": "x", "new_string": "y"}, Edit("a", ("x",), ("y",))),
        ({"filePath": "a", "oldString": "x", "newString": ""}, Edit("a", ("x",), ("",))),
        ({"command": "str_replace", "path": "a", "old_str": "x"}, Edit("a", ("x",))),
        ({"path": "a", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": "z"}]}, Edit("a", ("x", "z"), ("y",))),
        ({"path": "a", "diff": SEARCH}, Edit("a", ("def a():\n  pass",))),
        ({"path": "a", "diff": "------- SEARCH\nx\n=======\ny\n+++++++ REPLACE"}, Edit("a", ("x",))),
        ({"input": PATCH}, Edit("a.py", ("x\ny\n\nw",))),
        ({"command": ["apply_patch", PATCH]}, Edit("a.py", ("x\ny\n\nw",))),
        ({"path": "a", "content": "x"}, None),
        ({"path": "a"}, None),
        ({"old_string": "x"}, None),
        ({"path": 1, "edits": "x", "diff": [1], "input": None}, None),
        ({"input": "*** Begin Patch\n*** Add File: a\n+x"}, None),
    ],
)
def test_edits_of_clients(arguments: dict[str, Any], edit: Edit | None) -> None:
    assert read_edit(arguments) == edit


@in_one_test(
    ("listing", "text"),
    [
        ("     1→a\n     2→  b\n     3→", "a\n  b\n"),
        ("     9\ta\n    10\tb", "a\nb"),
        ("<file>\n00001| a\n00002|   b\n\n(End of file)\n</file>", "a\n  b"),
        ('<file><path>a</path>\n<content lines="1-2">\n1 | a\n2 |   b\n</content></file>', "a\n  b"),
        ("1: a\n2:   b", "a\n  b"),
        ("a\nb", "a\nb"),
        ("1: a\nplain\n2: b", "1: a\nplain\n2: b"),
        ("1: a\n5: b", "1: a\n5: b"),
        ("", ""),
    ],
)
def test_line_numbers_are_stripped(listing: str, text: str) -> None:
    assert strip_line_numbers(listing) == text


def test_shown_paths_and_equal_paths() -> None:
    assert read_shown_paths({"command": ["bash", "-lc", "sed -n '1,20p' src/a.py"]}) == ["src/a.py"]
    assert read_shown_paths({"command": "cat 'a.py'"}) == ["a.py"]
    assert read_shown_paths({"command": "rm a.py"}) == []
    assert same_path("/w/a.py", "./a.py") and same_path("a\\b.py", "a/b.py") and not same_path("ab.py", "b.py")


# -- hints -------------------------------------------------------------------------------------------------------------


def test_the_nearest_lines_are_shown_exactly() -> None:
    (hint,) = hints(READ, turn("Edit", {"file_path": "/w/a.py", "old_string": WRONG, "new_string": ""}, FAILED))
    shown = "\n".join(SHOWN[:9])
    assert hint == (
        "The text to replace is not in /w/a.py. These are the lines of the file that are nearest to it, exactly"
        f" as last seen in this conversation:\n```\n{shown}\n```"
    )


@pytest.mark.parametrize(
    "read",
    [
        turn("read", {"filePath": "a.py"}, FILE),
        turn("read_file", {"path": "w/a.py"}, f"<file>\n{NUMBERED}\n</file>"),
        turn("shell", {"command": ["bash", "-lc", "cat a.py"]}, FILE),
        turn("write", {"file_path": "/w/a.py", "content": FILE}, "ok"),
    ],
)
def test_files_are_known_from_any_reading_or_writing(read: list[Message]) -> None:
    (hint,) = hints(read, turn("apply_diff", {"path": "w/a.py", "diff": SEARCH.replace("def a():\n  pass", WRONG)}, "No sufficiently similar match found"))  # fmt: skip
    assert SHOWN[4] in hint


def test_a_patch_gets_a_hint() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n def run(name):\n-    path = join(name)\n+    path = 1\n*** End Patch"
    (hint,) = hints(READ, turn("apply_patch", {"input": patch}, "Failed to find expected lines in a.py:\n..."))
    assert SHOWN[4] in hint


def test_one_similar_line_is_enough() -> None:
    edit = {"file_path": "/w/a.py", "old_string": "path = os.path.join('b', name)", "new_string": ""}
    (hint,) = hints(READ, turn("Edit", edit, FAILED))
    assert SHOWN[4] in hint


@in_one_test(
    "turns",
    [
        [turn("Edit", {"file_path": "/w/a.py", "old_string": WRONG}, FAILED)],
        [READ, turn("Edit", {"file_path": "/w/b.py", "old_string": WRONG}, FAILED)],
        [READ, turn("Edit", {"file_path": "/w/a.py", "old_string": WRONG}, "Done.")],
        [READ, turn("Edit", {"file_path": "/w/a.py", "old_string": "nothing alike"}, FAILED)],
        [READ, turn("Edit", {"file_path": "/w/a.py", "old_string": "def stop():"}, FAILED)],
        [READ, turn("Read", {"file_path": "/w/log.txt"}, FAILED)],
        [turn("Read", {"file_path": "/w/a.py"}, "x\n" * MAX_FILE), turn("Edit", {"file_path": "/w/a.py", "old_string": WRONG}, FAILED)],
        [turn("Read", {"file_path": "/w/a.py"}, NUMBERED, error=True), turn("Edit", {"file_path": "/w/a.py", "old_string": WRONG}, FAILED)],
    ],
)  # fmt: skip
def test_no_hint_without_a_reason(turns: list[list[Message]]) -> None:
    assert hints(*turns) == []


def test_later_edits_are_applied_or_mentioned() -> None:
    done = turn("Edit", {"file_path": "/w/a.py", "old_string": "'a',  name", "new_string": "'b',\tname"}, "Done.")
    failed = turn("Edit", {"file_path": "/w/a.py", "old_string": WRONG, "new_string": ""}, FAILED)
    (hint,) = hints(READ, done, failed)
    assert "os.path.join('b',\tname)" in hint and "changed again" not in hint
    other = turn("apply_diff", {"path": "/w/a.py", "diff": SEARCH}, "Done.")
    (hint,) = hints(READ, other, failed)
    assert "last seen in this conversation, before it was changed again:" in hint
    (hint,) = hints(READ, other, READ, failed)
    assert "changed again" not in hint


def test_hints_are_bounded() -> None:
    lines = [f"    value_{number} = compute({number})" for number in range(500)]
    read = turn("Read", {"file_path": "a.py"}, "\n".join(lines))
    searched = [*lines[100:180], "    other()", *lines[181:300]]
    (hint,) = hints(read, turn("Edit", {"file_path": "a.py", "old_string": "\n".join(searched)}, FAILED))
    shown = hint.split("```")[1].strip("\n").split("\n")
    assert len(shown) == MAX_LINES and shown[3] == lines[180]  # where the texts begin to differ
    long = turn("Read", {"file_path": "a.py"}, "\n".join([*lines[:3], "x" * 3 * MAX_CHARACTERS, *lines[3:]]))
    (hint,) = hints(long, turn("Edit", {"file_path": "a.py", "old_string": f"{lines[2].strip()}\nother"}, FAILED))
    assert len(hint) < MAX_CHARACTERS + 300


def test_a_fence_in_the_lines() -> None:
    read = turn("Read", {"file_path": "a.md"}, "# Use\n\n```sh\nmake  all\n```\n")
    (hint,) = hints(read, turn("Edit", {"file_path": "a.md", "old_string": "```sh\nmake all"}, FAILED))
    assert "\n````\n# Use\n\n```sh\nmake  all\n```\n\n````" in hint


def test_long_histories_take_little_time() -> None:
    text = "\n".join(f"line {number % 1000} of {number}" for number in range(20_000))
    read = turn("Read", {"file_path": "a"}, text)
    failed = [turn("Edit", {"file_path": "a", "old_string": f"line {number} of\nx", "new_string": ""}, FAILED) for number in range(20)]  # fmt: skip
    hints(read, *failed[:1])
    began = process_time()
    hints(read, *failed)
    first = process_time() - began
    began = process_time()
    hints(read, *failed)
    assert process_time() - began < max(first / 2, 0.5)  # the second time they are known
    assert first < 20


# -- requests ----------------------------------------------------------------------------------------------------------

CONVERSATION = Conversation(
    "m",
    (ASKED, *READ, *turn("Edit", {"file_path": "/w/a.py", "old_string": WRONG, "new_string": ""}, FAILED)),
    (Tool("Read", "", {"type": "object"}), Tool("Edit", "", {"type": "object"})),
)
HINT = "nearest to it, exactly as last seen"


@in_one_test("upstream", ["openai_chat", "anthropic_messages", "gemini", "openai_responses", "ollama"])
@in_one_test("mode", ["native", "text"])
def test_the_hint_is_part_of_the_request(upstream: str, mode: str) -> None:
    exchange = Line("anthropic_messages", upstream, mode, recovery_edit_hints="true").ask(CONVERSATION, False)
    assert exchange.upstream_body.decode().count(HINT) == 1
    assert "the nearest lines of /w/a.py were added to the result of Edit" in exchange.recorder.notes
    if mode == "native":
        check_request(upstream, exchange.upstream_body)


def test_hints_are_off_unless_asked_for() -> None:
    line = Line("anthropic_messages", "anthropic_messages")
    body = line.client.encode_request(CONVERSATION, stream=False, wants_usage=True)
    assert line.open(body, False).upstream_body == body
