"""Tool sets for editing: calls, tools, history and answers, both ways, and every loss.

Tests named after *Request* follow the document "Native tool calling for models that support it", heading "Tool Mapping
System" and "Parameter Translation", with the corrections that its table needs.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from support.error_texts import what_failed
from support.event_order import check_order
from support.gateway import Answer, gateway
from support.rows import in_one_test

from toolglot.clients.toolsets import (
    TOOLSET_NAMES,
    TOOLSETS,
    ResponseMapper,
    ToolMapping,
    Untranslatable,
    all_mappings,
    find_mapping,
    map_response,
)
from toolglot.clients.toolsets.argument_renamer import ArgumentRenamer
from toolglot.clients.toolsets.operations import Create, Insert, Operation, Replace, Run, View, list_folder
from toolglot.clients.toolsets.search_replace import DiffBlock, parse_diff, reindent, write_diff
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolChoice, ToolResult
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reason,
    TextDelta,
    merge_deltas,
)
from toolglot.sim import Answer as SimAnswer
from toolglot.sim import ScriptedAnswer, SimCall, SimOptions

EDITOR = "str_replace_based_edit_tool"
PAIRS = {(mapping.client.name, mapping.model.name): mapping for mapping in all_mappings()}
ROO, CODE = PAIRS["roo", "anthropic"], PAIRS["opencode", "claude_code"]


def tool(name: str, *keys: str, **described: str) -> Tool:
    properties = {key: {"type": "string"} for key in keys} | {
        key: {"type": "integer", "description": words} for key, words in described.items()
    }
    return Tool(name, "", {"type": "object", "properties": properties})


def mapped(client: str, model: str, *tools: Tool, **changes: Any) -> ToolMapping:
    """A pair of sets with only these tools of the client's."""
    return replace(PAIRS[client, model], tools=tools or PAIRS[client, model].tools, **changes)


DIFFING = mapped("roo", "anthropic", tool("apply_diff", "path", "diff"), model_name="claude-x")
"""A client that can only replace with diffs."""


def there(mapping: ToolMapping, name: str, **arguments: Any) -> list[tuple[str, Any]]:
    carried = mapping.map_call_to_model(name, json.dumps(arguments))
    return [(received, json.loads(text)) for received, text in carried.calls]


def back(mapping: ToolMapping, name: str, **arguments: Any) -> list[tuple[str, Any]]:
    return [
        (received, json.loads(text)) for received, text in mapping.map_call_to_client(name, json.dumps(arguments)).calls
    ]


def edit(command: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return EDITOR, {"command": command, "path": "a.py", **arguments}


def diff(old: str, new: str, head: str = "") -> str:
    return f"<<<<<<< SEARCH\n{head}{old}\n=======\n{new}\n>>>>>>> REPLACE"


# Request, Tool Mapping System

ROWS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "read_file": ("read_file", {"path": "a.py"}, {"command": "view", "path": "a.py"}),
    "read_file_lines": (
        "read_file",
        {"path": "a.py", "mode": "slice", "offset": 5, "limit": 10},
        {"command": "view", "path": "a.py", "view_range": [5, 14]},
    ),
    "read_file_to_the_end": (
        "read_file",
        {"path": "a.py", "mode": "slice", "offset": 5},
        {"command": "view", "path": "a.py", "view_range": [5, -1]},
    ),
    "read_directory": ("list_files", {"path": "src", "recursive": False}, {"command": "view", "path": "src/"}),
    "read_directory_here": ("list_files", {"path": ".", "recursive": False}, {"command": "view", "path": "."}),
    "new_file_creation": (
        "write_to_file",
        {"path": "a.py", "content": "x = 1\n"},
        {"command": "create", "path": "a.py", "file_text": "x = 1\n"},
    ),
    "code_insertion": (
        "insert_content",
        {"path": "a.py", "line": 4, "content": "x"},
        {"command": "insert", "path": "a.py", "insert_line": 3, "insert_text": "x"},
    ),
    "code_insertion_at_the_top": (
        "insert_content",
        {"path": "a.py", "line": 1, "content": "x"},
        {"command": "insert", "path": "a.py", "insert_line": 0, "insert_text": "x"},
    ),
    "code_replacement_with_edit": (
        "edit",
        {"file_path": "a.py", "old_string": "x", "new_string": ""},
        {"command": "str_replace", "path": "a.py", "old_str": "x", "new_str": ""},
    ),
}


@in_one_test("row", ROWS)
def test_request_tool_mapping_system(row: str) -> None:
    name, roo, editor = ROWS[row]
    assert there(ROO, name, **roo) == [(EDITOR, editor)]
    assert back(ROO, EDITOR, **editor) == [(name, roo)]
    other = PAIRS["anthropic", "roo"]
    if name != "edit":  # a model of Roo gets apply_diff
        assert there(other, EDITOR, **editor) == [(name, roo)]
        assert back(other, name, **roo) == [(EDITOR, editor)]


def test_request_tool_mapping_system_code_replacement() -> None:
    call = edit("str_replace", old_str="a\n  b", new_str="c\n  d")
    assert back(DIFFING, EDITOR, **call[1]) == [("apply_diff", {"path": "a.py", "diff": diff("a\n  b", "c\n  d")})]
    assert there(DIFFING, "apply_diff", path="a.py", diff=diff("a\n  b", "c\n  d")) == [call]


def test_request_parameter_translation_of_apply_diff() -> None:
    """One block is one call, several are several; a line number is dropped with a note."""
    carried = ROO.map_call_to_model(
        "apply_diff", json.dumps({"path": "a.py", "diff": diff("x", "y", ":start_line:7\n-------\n")})
    )
    assert [json.loads(text) for _, text in carried.calls] == [edit("str_replace", old_str="x", new_str="y")[1]]
    assert "start_line 7 dropped" in carried.notes[0]
    both = {"path": "a.py", "diff": diff("x", "y") + "\n" + diff("p", "q") + "\n"}
    assert there(ROO, "apply_diff", **both) == [
        edit("str_replace", old_str="x", new_str="y"),
        edit("str_replace", old_str="p", new_str="q"),
    ]
    other = PAIRS["anthropic", "roo"]
    assert len(back(other, "apply_diff", **both)) == 2
    with pytest.raises(Untranslatable, match="2 things at once"):
        back(replace(other, parallel=False), "apply_diff", **both)


def test_the_inserted_text_has_two_names() -> None:
    expected = [("insert_content", {"path": "a.py", "line": 3, "content": "x"})]
    assert back(ROO, EDITOR, command="insert", path="a.py", insert_line=2, new_str="x") == expected
    older = mapped("anthropic", "roo", tool("str_replace_editor", "command", "path", "new_str"))
    assert back(older, "insert_content", path="a.py", line=3, content="x") == [
        ("str_replace_editor", {"command": "insert", "path": "a.py", "insert_line": 2, "new_str": "x"})
    ]


# The other words of Roo

READS: dict[str, tuple[Tool, dict[str, Any]]] = {
    "legacy": (tool("read_file", "path", "start_line", "end_line"), {"path": "a.py", "start_line": 5, "end_line": 14}),
    "files": (tool("read_file", "files"), {"files": [{"path": "a.py", "line_ranges": [[5, 14]]}]}),
    "args": (tool("read_file", "args"), {"args": "<file><path>a.py</path><line_range>5-14</line_range></file>"}),
    "native": (tool("read_file", "path", "offset", "limit"), {"path": "a.py", "offset": 5, "limit": 10}),
}


@pytest.mark.parametrize("era", READS)
def test_read_file_of_every_era(era: str) -> None:
    known, call = READS[era]
    mapping = mapped("roo", "anthropic", known)
    assert there(mapping, "read_file", **call) == [edit("view", view_range=[5, 14])]
    assert back(mapping, *edit("view", view_range=[5, 14])[:1], **edit("view", view_range=[5, 14])[1]) == [("read_file", call)]  # fmt: skip


def test_read_file_of_the_xml_era_escapes_paths_and_reads_several() -> None:
    mapping = mapped("roo", "anthropic", READS["args"][0])
    assert back(mapping, EDITOR, command="view", path="a&<b>.py") == [
        ("read_file", {"args": "<file><path>a&amp;&lt;b&gt;.py</path></file>"})
    ]
    args = "\n<file>\n  <path>a&amp;b</path>\n</file>\n<file><path>c</path><line_range>1-2</line_range></file>"
    assert [call["path"] for _, call in there(mapping, "read_file", args=args)] == ["a&b", "c"]


def test_line_count_and_numbers_as_text_of_the_xml_era() -> None:
    mapping = mapped("roo", "anthropic", tool("write_to_file", "path", "content", "line_count"))
    assert back(mapping, *edit("create", file_text="a\nb\n")[:1], **edit("create", file_text="a\nb\n")[1]) == [
        ("write_to_file", {"path": "a.py", "content": "a\nb\n", "line_count": 3})
    ]
    assert there(ROO, "insert_content", path="a.py", line="4", content="x") == [
        edit("insert", insert_line=3, insert_text="x")
    ]
    assert there(ROO, "list_files", path="src", recursive="false") == [(EDITOR, {"command": "view", "path": "src/"})]
    assert there(ROO, "read_file", path="a.py", mode="slice", offset=None, limit=None) == [edit("view")]


def test_the_exact_counterpart_is_preferred_and_the_next_is_tried() -> None:
    """search_replace cannot take this text and apply_diff can."""
    known = [tool("apply_diff", "path", "diff"), tool("search_replace", "file_path", "old_string", "new_string")]
    mapping = mapped("roo", "anthropic", *known)
    names = [back(mapping, *edit("str_replace")[:1], **edit("str_replace", old_str="x", new_str=new)[1])[0][0] for new in ("y", "$&")]  # fmt: skip
    assert names == ["search_replace", "apply_diff"]


# OpenCode and Claude Code

CODING: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "read": ("read", {"filePath": "a", "offset": 5, "limit": 10}, "Read", {"file_path": "a", "offset": 5, "limit": 10}),
    "write": ("write", {"filePath": "a", "content": "x"}, "Write", {"file_path": "a", "content": "x"}),
    "edit": (
        "edit",
        {"filePath": "a", "oldString": "x", "newString": "y", "replaceAll": True},
        "Edit",
        {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
    ),
    "bash": (
        "bash",
        {"command": "ls", "timeout": 9, "description": "List"},
        "Bash",
        {"command": "ls", "timeout": 9, "description": "List"},
    ),
}


@pytest.mark.parametrize("row", CODING)
def test_opencode_and_claude_code(row: str) -> None:
    own, arguments, other, received = CODING[row]
    assert there(CODE, own, **arguments) == [(other, received)]
    assert back(CODE, other, **received) == [(own, arguments)]
    turned = PAIRS["claude_code", "opencode"]
    assert there(turned, other, **received) == [(own, arguments)]
    assert back(turned, own, **arguments) == [(other, received)]


@pytest.mark.parametrize(("words", "offset"), [("(0-based)", 4), ("(1-indexed)", 5)])
def test_opencode_counts_lines_as_its_tool_documents(words: str, offset: int) -> None:
    known = tool("read", "filePath", "limit", offset=f"The line to start from {words}")
    mapping = mapped("opencode", "anthropic", known)
    call = {"filePath": "a.py", "offset": offset, "limit": 10}
    assert there(mapping, "read", **call) == [edit("view", view_range=[5, 14])]
    assert back(mapping, EDITOR, command="view", path="a.py", view_range=[5, 14]) == [("read", call)]


def test_a_shell_without_descriptions() -> None:
    mapping = mapped("opencode", "claude_code", tool("bash", "command", "timeout", "workdir"))
    assert back(mapping, "Bash", command="ls", description="List") == [("bash", {"command": "ls"})]
    assert [target.tool.name for _, target in mapping.model_side.tools] == ["Bash"]


def test_folders_are_read_if_the_tool_supports_them() -> None:
    known = Tool("read", "", {"properties": {"filePath": {"description": "The path of the file or directory"}}})
    mapping = mapped("opencode", "anthropic", known)
    assert back(mapping, EDITOR, command="view", path="src/") == [("read", {"filePath": "src/"})]
    assert there(mapping, "read", filePath="src/") == [(EDITOR, {"command": "view", "path": "src/"})]


# Losses: (mapping, whether on the response path, tool, arguments, part of the message)

VIEW = {"command": "view", "path": "a.py"}
STR = {"command": "str_replace", "path": "a.py"}
LOSSES: dict[str, tuple[ToolMapping, bool, str, dict[str, Any], str]] = {
    "undo": (ROO, True, EDITOR, {"command": "undo_edit", "path": "a.py"}, "undo_edit has no equivalent"),
    "command": (ROO, True, EDITOR, {"command": "rm", "path": "a.py"}, "no command"),
    "old_str_empty": (ROO, True, EDITOR, {**STR, "old_str": "", "new_str": "x"}, "nothing to look for"),
    "view_range_backwards": (ROO, True, EDITOR, {**VIEW, "view_range": [5, 4]}, "no lines from 5 to 4"),
    "view_range_zero": (ROO, True, EDITOR, {**VIEW, "view_range": [0, 4]}, "no lines from 0"),
    "view_range_one": (ROO, True, EDITOR, {**VIEW, "view_range": [3]}, "two line numbers"),
    "insert_two_texts": (
        ROO,
        True,
        EDITOR,
        {"command": "insert", "path": "a", "insert_line": 1, "insert_text": "x", "new_str": "y"},
        "two texts",
    ),
    "insert_not_here": (
        DIFFING,
        True,
        EDITOR,
        {"command": "insert", "path": "a", "insert_line": 1, "insert_text": "x"},
        "no tool to insert",
    ),
    "unknown_argument": (ROO, True, EDITOR, {**VIEW, "depth": 2}, "depth .* has no equivalent"),
    "not_an_object": (ROO, True, EDITOR, {"command": 5, "path": "a"}, "must be text"),
    "open_end": (
        mapped("roo", "anthropic", READS["files"][0]),
        True,
        EDITOR,
        {**VIEW, "view_range": [5, -1]},
        "last line",
    ),
    "whole_files_only": (
        mapped("roo", "anthropic", tool("read_file", "path")),
        True,
        EDITOR,
        {**VIEW, "view_range": [5, 6]},
        "whole files only",
    ),
    "append": (ROO, False, "insert_content", {"path": "a", "line": 0, "content": "x"}, "end of the file"),
    "recursive": (ROO, False, "list_files", {"path": "a", "recursive": True}, "whole tree"),
    "indentation": (ROO, False, "read_file", {"path": "a", "mode": "indentation"}, "by indentation"),
    "two_ranges": (ROO, False, "read_file", {"path": "a", "offset": 1, "end_line": 2}, "two line ranges"),
    "replace_all": (
        ROO,
        False,
        "edit",
        {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": True},
        "one place only",
    ),
    "fence": (
        ROO,
        True,
        EDITOR,
        {"command": "create", "path": "a.md", "file_text": "```py\nx\n```"},
        "code fence",
    ),
    "numbers": (ROO, True, EDITOR, {"command": "create", "path": "a", "file_text": "1 | a\n2 | b"}, "takes the numbers"),
    "edit_nothing": (CODE, True, "Edit", {"file_path": "a", "old_string": "", "new_string": "x"}, "nothing to look for"),
    "entities": (ROO, True, EDITOR, {"command": "create", "path": "a.html", "file_text": "a &lt; b"}, "entities"),
    "crlf": (ROO, True, EDITOR, {**STR, "old_str": "a\r\nb", "new_str": "c"}, "CR LF"),
    "diff_delete": (DIFFING, True, EDITOR, {**STR, "old_str": "a"}, "empty REPLACE"),
    "diff_crlf": (DIFFING, True, EDITOR, {**STR, "old_str": "a\r\nb", "new_str": "c"}, "line ends"),
    "diff_blank_line": (DIFFING, True, EDITOR, {**STR, "old_str": "\na", "new_str": "c"}, "blank lines"),
    "diff_trailing_blanks": (DIFFING, True, EDITOR, {**STR, "old_str": "a", "new_str": "c  "}, "blanks at the end"),
    "diff_indentation": (DIFFING, True, EDITOR, {**STR, "old_str": "    a", "new_str": "\ta"}, "indentation"),
    "diff_numbers": (DIFFING, True, EDITOR, {**STR, "old_str": "1 | a", "new_str": "1 | b"}, "number and a bar"),
    "diff_backslash": (DIFFING, True, EDITOR, {**STR, "old_str": "\\=======", "new_str": "b"}, "cannot be escaped"),
    "diff_indented_mark": (DIFFING, True, EDITOR, {**STR, "old_str": "x\n  =======", "new_str": "b"}, "mark"),
    "diff_entities": (
        replace(DIFFING, model_name="qwen"),
        True,
        EDITOR,
        {**STR, "old_str": "a", "new_str": "&amp;"},
        "entities",
    ),
    "search_empty": (ROO, False, "apply_diff", {"path": "a", "diff": diff("", "x")}, "empty SEARCH|blank lines"),
    "diff_outside": (ROO, False, "apply_diff", {"path": "a", "diff": "```\n" + diff("x", "y")}, "outside"),
    "diff_none": (ROO, False, "apply_diff", {"path": "a", "diff": "x"}, "outside"),
    "diff_open": (ROO, False, "apply_diff", {"path": "a", "diff": "<<<<<<< SEARCH\nx\n======="}, "ends without"),
    "diff_mark": (ROO, False, "apply_diff", {"path": "a", "diff": diff("x\n<<<<<<< HEAD", "y")}, "where ======="),
    "diff_start_line_below": (
        ROO,
        False,
        "apply_diff",
        {"path": "a", "diff": diff("x", ":start_line:3\ny")},
        "where >>>>>>> REPLACE",
    ),
    "counting": (
        mapped("opencode", "anthropic", tool("read", "filePath", "offset", "limit")),
        True,
        EDITOR,
        {**VIEW, "view_range": [5, 6]},
        "from 0 or from 1",
    ),
    "folder": (
        mapped("claude_code", "anthropic", tool("Read", "file_path")),
        True,
        EDITOR,
        {"command": "view", "path": "src/"},
        "no folders",
    ),
    "background": (CODE, True, "Bash", {"command": "ls", "run_in_background": True}, "has no equivalent"),
    "description": (
        mapped("opencode", "claude_code", Tool("bash", "", {"properties": {"command": {}, "timeout": {}, "description": {}}, "required": ["command", "description"]})),
        True,
        "Bash",
        {"command": "ls"},
        "needs a description",
    ),
    "dollar": (
        mapped("roo", "anthropic", tool("search_replace", "file_path", "old_string", "new_string")),
        True,
        EDITOR,
        {**STR, "old_str": "a", "new_str": "$$"},
        "instruction",
    ),
}  # fmt: skip


@in_one_test("loss", LOSSES)
def test_losses_are_refused_with_a_sentence(loss: str) -> None:
    mapping, is_back, name, arguments, sentence = LOSSES[loss]
    with pytest.raises(Untranslatable, match=sentence):
        (mapping.map_call_to_client if is_back else mapping.map_call_to_model)(name, json.dumps(arguments))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"command": "view", "path": "a"', "null", "{'command': 'view'}"])
def test_arguments_that_are_no_object_are_refused(text: str) -> None:
    with pytest.raises(Untranslatable):
        ROO.map_call_to_client(EDITOR, text)


# Properties

LINES = st.sampled_from(
    ["foo", "  bar", "\tbaz", "", "=======", "<<<<<<< SEARCH", ">>>>>>> REPLACE", "-------", ":start_line:4", ":end_line:5",
     "\\=======", "\\x", "1 | a", "  =======", "x  ", "ünï\u2028ß", "🙂", "```", "&lt;", "$&", "a\r", "\ud800", '"', "\\"]
)  # fmt: skip
TEXTS = st.one_of(st.lists(LINES, max_size=5).map("\n".join), st.text(max_size=20))
PATHS = st.one_of(st.sampled_from(["a.py", "/b/c.md", "src/", ".", "a b", "ü&<>.txt"]), st.text(min_size=1, max_size=8))
COUNTS = st.integers(1, 5000)
OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(View, PATHS),
    st.builds(lambda path, first, more: View(path, first, None if more is None else first + more), PATHS, COUNTS, st.none() | COUNTS),
    st.builds(list_folder, PATHS),
    st.builds(Create, PATHS, TEXTS),
    st.builds(Replace, PATHS, TEXTS, TEXTS, st.booleans()),
    st.builds(Insert, PATHS, st.integers(0, 5000), TEXTS),
    st.builds(Run, TEXTS, st.none() | COUNTS, st.none() | TEXTS),
)  # fmt: skip


@given(st.sampled_from(sorted(PAIRS)), OPERATIONS)
def test_back_and_there_is_the_same_call_or_a_refusal(pair: tuple[str, str], operation: Operation) -> None:
    mapping = PAIRS[pair]
    try:
        name, arguments = mapping.model_side.write(operation)
        carried = mapping.map_call_to_client(name, arguments)
        (returned,) = mapping.map_call_to_model(*carried.calls[0]).calls
    except Untranslatable:
        return
    assert returned == (name, arguments)


@given(st.sampled_from(sorted(PAIRS)), OPERATIONS)
def test_there_and_back_does_the_same_or_is_refused(pair: tuple[str, str], operation: Operation) -> None:
    """The client's call may come back with another of its tools that does the same."""
    mapping = PAIRS[pair]
    for shape, target in mapping.client_side.tools:
        try:
            call = write_with(mapping, shape.tool, operation)
            (received,) = mapping.map_call_to_model(*call).calls
            (returned,) = mapping.map_call_to_client(*received).calls
        except Untranslatable:
            continue
        assert mapping.client_side.read(*returned)[0] == mapping.client_side.read(*call)[0], target


def write_with(mapping: ToolMapping, name: str, operation: Operation) -> tuple[str, str]:
    side = mapping.client_side
    return structs.replace(side, tools=tuple(pair for pair in side.tools if pair[0].tool == name)).write(operation)


@given(TEXTS, TEXTS)
def test_a_block_is_read_as_it_was_written_or_refused(old: str, new: str) -> None:
    try:
        written = write_diff(old, new)
    except Untranslatable:
        return
    if old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]
    assert parse_diff(written) == (DiffBlock(old, new),) and reindent(old, new) == new


def test_the_line_break_behind_a_block_is_no_line_of_it() -> None:
    assert write_diff("a\n", "b\n") == diff("a", "b")
    assert write_diff("a\n", "") == diff("a", "")
    assert parse_diff(diff("a", "")) == parse_diff(diff("a", "").replace("\n\n", "\n")) == (DiffBlock("a\n", ""),)


def test_marks_in_content_are_escaped_and_read_back() -> None:
    old = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> main"
    written = write_diff(old, "-------\nboth")
    assert "\n\\=======\n" in written and "\n\\<<<<<<< HEAD\n" in written and "\n\\-------\n" in written
    assert parse_diff(written) == (DiffBlock(old, "-------\nboth"),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=6
)  # fmt: skip


@given(st.fixed_dictionaries({"a": JSON, "b": JSON}), st.lists(st.integers(0, 60)), st.sampled_from([None, 1]))
def test_a_renamer_changes_nothing_but_keys(value: dict[str, Any], cuts: list[int], indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    at = [0, *sorted(cuts), len(text)]
    renamer = ArgumentRenamer({"a": "A", "b": "B"}, "tool")
    out = "".join(renamer.feed(text[start:end]) for start, end in pairwise(at))
    assert json.loads(out) == {"A": value["a"], "B": value["b"]} and len(out) == len(text)


# Finding, offering


@in_one_test("client", TOOLSET_NAMES)
@in_one_test("wanted", TOOLSET_NAMES)
def test_a_client_is_known_by_its_tools(client: str, wanted: str) -> None:
    tools = next(mapping.tools for pair, mapping in PAIRS.items() if pair[0] == client)
    found = find_mapping((*tools, tool("ask", "question")), wanted)
    if client == wanted:
        assert found is None
    else:
        assert found is not None and (found.client.name, found.model.name) == (client, wanted)


def test_nothing_is_found_where_nothing_fits() -> None:
    assert find_mapping([tool("ask", "question")], "anthropic") is None
    assert find_mapping([tool("read_file", "path")], "") is None
    assert find_mapping([tool("bash", "command", "timeout")], "anthropic") is None
    assert find_mapping([tool("read_file", "path"), tool(EDITOR, "what")], "anthropic") is None, "its name is taken"


def test_only_what_the_client_can_do_is_offered() -> None:
    mapping = find_mapping(
        [tool("read_file", "path", "offset", "limit"), tool("apply_diff", "path", "diff")], "anthropic"
    )
    assert mapping is not None
    ((_, target),) = mapping.model_side.tools
    offered = target.tool
    properties = offered.parameters["properties"]
    assert properties["command"]["enum"] == ["view", "str_replace"] and "insert_line" not in properties
    assert "Folders cannot be viewed" in offered.description


HISTORY = (
    Message("user", (Text("Go"),)),
    Message("assistant", (Text("Both."), ToolCall("c1", "apply_diff", json.dumps({"path": "a.py", "diff": diff("x", "y") + "\n" + diff("p", "q")})))),
    Message("tool", (ToolResult("c1", "apply_diff", (Text("applied"),), error=True),)),
    Message("assistant", (ToolCall("c2", "insert_content", '{"path":"a.py","line":0,"content":"z"}'), ToolCall("c3", "ask", "{}"))),
    Message("tool", (ToolResult("c2", "insert_content", (Text("1 | z"),)),)),
    Message("tool", (ToolResult("c3", "ask", (Text("yes"),)),)),
)  # fmt: skip


def test_tools_choice_and_history_are_mapped_to_the_models_tool_set() -> None:
    notes: list[str] = []
    tools = (*ROO.tools, tool("ask", "question"))
    asked = Conversation("m", HISTORY, tools, ToolChoice("required", ("write_to_file", "ask")))
    mapping = find_mapping(tools, "anthropic")
    assert mapping is not None
    offered = mapping.map_request(asked, notes)
    assert [one.name for one in offered.tools] == [EDITOR, "ask"]
    assert offered.choice == ToolChoice("required", ("ask", EDITOR))
    assert [(call.id, call.name) for message in offered.messages for call in message.calls] == [
        ("c1", EDITOR),
        ("c1_2", EDITOR),
        ("c2", "insert_content"),
        ("c3", "ask"),
    ]
    first, second = (part for part in offered.messages[2].parts if isinstance(part, ToolResult))
    assert first == ToolResult("c1", EDITOR, (Text("applied"),), error=True) and second == structs.replace(
        first, call_id="c1_2"
    )
    assert offered.messages[3:] == HISTORY[3:] and offered.messages[0] == HISTORY[0]
    assert notes == [
        "a call to insert_content in the history stays as it is: line 0 of insert_content is the end of the file, whose"
        " number of lines is not known here"
    ]


def test_a_choice_among_editing_tools_narrows_what_is_offered() -> None:
    mapping = find_mapping(ROO.tools, "anthropic", only=("write_to_file",))
    assert mapping is not None
    asked = Conversation("m", (), ROO.tools, ToolChoice.one("write_to_file"))
    offered = mapping.map_request(asked)
    assert offered.choice == ToolChoice.one(EDITOR)
    assert offered.tools[0].parameters["properties"]["command"]["enum"] == ["create"]


# The response path


def calls(*made: tuple[str, str], cut: int = 5) -> list[Event]:
    events: list[Event] = []
    for index, (name, arguments) in enumerate(made):
        events.append(CallStarted(index, f"c{index}", name))
        events += (CallArguments(index, arguments[at : at + cut]) for at in range(0, len(arguments), cut))
        events.append(CallEnded(index))
    return [*events, Finished("tool_calls")]


def test_calls_are_held_streamed_or_passed_and_numbered_anew() -> None:
    other = PAIRS["anthropic", "roo"]
    both = json.dumps({"path": "a.py", "diff": diff("x", "y") + "\n" + diff("p", "q")})
    notes: list[str] = []
    answer = calls(("ask", '{"q":1}'), ("apply_diff", both), ("undo", "{}"))
    received = map_response(other, [TextDelta("Hm"), *answer], notes)
    check_order(received)
    started = [event for event in received if isinstance(event, CallStarted)]
    assert started == [
        CallStarted(0, "c0", "ask"),
        CallStarted(1, "c1", EDITOR),
        CallStarted(2, "c1_2", EDITOR),
        CallStarted(3, "c2", "undo"),
    ]
    assert (
        CallArguments(2, json.dumps(edit("str_replace", old_str="p", new_str="q")[1], separators=(",", ":")))
        in received
    )


def test_names_stream_while_arguments_come() -> None:
    returning = ResponseMapper(CODE)
    assert returning.feed([CallStarted(0, "c", "Write"), CallArguments(0, '{"file_')]) == [
        CallStarted(0, "c", "write"),
        CallArguments(0, "{"),
    ]
    assert returning.feed([CallArguments(0, 'path": "a\\"')]) == [CallArguments(0, '"filePath": "a\\"')]
    assert returning.feed([CallArguments(0, ' ", "content":"file_path: '), CallArguments(0, '"}'), CallEnded(0)]) == [
        CallArguments(0, ' ", "content":"file_path: '),
        CallArguments(0, '"}'),
        CallEnded(0),
    ]


def test_an_edit_waits_until_it_is_known_what_it_looks_for() -> None:
    """An empty text writes a whole file with one of both and fails with the other."""
    events = ResponseMapper(CODE).feed(calls(("Edit", '{"file_path":"a","new_string":"x","old_string":""}')))
    assert (
        isinstance(events[0], TextDelta)
        and "nothing to look for" in events[0].text
        and events[1:] == [Finished("stop")]
    )


def test_a_streamed_call_with_an_argument_without_counterpart_fails_the_answer() -> None:
    events = list(merge_deltas(ResponseMapper(CODE).feed(calls(("Write", '{"file_path":"a","mode":7,"content":"x"}')))))
    check_order(events)
    last = events[-1]
    assert isinstance(last, Failed) and last.kind == "refused_call"
    assert what_failed(last.message) == "The call of write was not made: mode of Write has no equivalent."
    assert not any(isinstance(event, CallEnded) for event in events)
    whole = map_response(CODE, calls(("Write", '{"file_path":"a","mode":7,"content":"x"}')))
    assert TextDelta("\n\n(The call of write was not made: mode of Write has no equivalent.)") in whole
    assert not any(isinstance(event, CallEnded) for event in whole)


def test_a_refused_call_becomes_text_with_the_reason() -> None:
    notes: list[str] = []
    payload = map_response(ROO, calls((EDITOR, '{"command":"undo_edit","path":"a"}')), notes)
    assert payload == [
        TextDelta(
            f'The call {EDITOR} {{"command":"undo_edit","path":"a"}} was not made: undo_edit has no equivalent:'
            " no other tool keeps the previous state of a file."
        ),
        Finished("stop"),
    ]
    assert "was refused: undo_edit" in notes[0]


def test_a_held_call_that_was_cut_never_leaves_as_a_call() -> None:
    events: list[Event] = [CallStarted(0, "c", EDITOR), CallArguments(0, '{"command":"create"'), Finished("length")]
    received = ResponseMapper(ROO).feed(events)
    assert (
        isinstance(received[0], TextDelta)
        and "it does not end" in received[0].text
        and received[1:] == [Finished("length")]
    )
    assert map_response(ROO, events) == [Finished("length")]
    rejected = CallRejected("raw", Reason.MALFORMED, index=0)
    assert ResponseMapper(ROO).feed([*events[:2], rejected]) == [structs.replace(rejected, index=None)]
    passing = ResponseMapper(ROO).feed([CallStarted(0, "c", "ask"), rejected])
    assert passing[1:] == [rejected]


# Through the gateway


def as_json(known: Tool) -> dict[str, Any]:
    function = {"name": known.name, "description": known.description, "parameters": dict(known.parameters)}
    return {"type": "function", "function": function}


def converse(mode: str, made: tuple[SimCall, ...], *requests: dict[str, Any], editing: str = "anthropic") -> tuple[list[Answer], Any]:  # fmt: skip
    async def talk() -> tuple[list[Answer], Any]:
        script = tuple(ScriptedAnswer(SimAnswer("Well.", made), times=1) for _ in requests)
        options = SimOptions(script=script, chunk=7)
        async with gateway(options, model={"editing": editing}, mode=mode, dialect="hermes") as gate:
            answers = [await gate.ask({"model": "claude-x", **request}) for request in requests]
            return answers, gate.record.bodies

    return asyncio.run(talk())


ASKED = {
    "messages": [
        {"role": "user", "content": "Edit it"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a.py"}'}}]},
        {"role": "tool", "tool_call_id": "c", "content": "1 | x"},
    ],
    "tools": [as_json(known) for known in ROO.tools],
}  # fmt: skip


@pytest.mark.parametrize("mode", ["text", "native"])
def test_the_gateway_maps_tools_both_ways(mode: str) -> None:
    made = (SimCall(EDITOR, json.dumps(edit("insert", insert_line=0, insert_text="import os\n")[1])),)
    (whole, streamed), bodies = converse(mode, made, ASKED, {**ASKED, "stream": True})
    call = whole.message["tool_calls"][0]["function"]
    assert call["name"] == "insert_content" and whole.finish == "tool_calls"
    assert json.loads(call["arguments"]) == {"path": "a.py", "line": 1, "content": "import os\n"}
    assert streamed.joined == ("Well.", [(call["name"], call["arguments"])], "tool_calls")
    sent = json.dumps(bodies[0])
    assert EDITOR in sent and '"view' in sent.replace("\\", "") and "read_file" not in sent and "1 | x" in sent


@pytest.mark.parametrize("mode", ["text", "native"])
def test_the_gateway_delivers_a_refused_call_as_text(mode: str) -> None:
    made = (SimCall(EDITOR, json.dumps(edit("create", file_text="```\nx\n```")[1])),)
    (whole, streamed), _ = converse(mode, made, ASKED, {**ASKED, "stream": True})
    assert "tool_calls" not in whole.message and whole.finish == "stop"
    assert "code fence" in whole.message["content"]
    assert streamed.joined[1:] == ([], "stop") and "code fence" in streamed.joined[0]


def test_the_gateway_maps_tools_only_if_configured() -> None:
    made = (SimCall("read_file", '{"path":"a.py"}'),)
    (answer,), bodies = converse("text", made, ASKED, editing="")
    assert answer.message["tool_calls"][0]["function"]["name"] == "read_file"
    assert EDITOR not in json.dumps(bodies)


def test_every_tool_set_has_tools_to_offer() -> None:
    for known in TOOLSETS.values():
        assert known.taught and set(known.taught) <= {shape.tool for shape in known.adapters}
