"""Tool sets for editing: a call has the same effect on a file in both tool sets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.editors import EDITORS, edit_as_anthropic, edit_as_roo, work

from toolglot.clients.toolsets import ToolMapping, Untranslatable, all_mappings

EDITOR = "str_replace_based_edit_tool"
PAIRS = {(mapping.client.name, mapping.model.name): mapping for mapping in all_mappings()}

LINES = st.sampled_from(
    ["a", "b", "  a", "", "=======", "<<<<<<< SEARCH", "ü😀", "x = '</a>'", "\\d", "1 | a", "-------"]
)
FILES = st.lists(LINES, min_size=1, max_size=6).map("\n".join)
PARTS = st.lists(LINES, min_size=1, max_size=3).map("\n".join)
ENDED = st.tuples(PARTS, st.sampled_from(["", "\n"])).map("".join)
COMMANDS = st.one_of(
    st.builds(lambda text: {"command": "create", "file_text": text}, ENDED),
    st.builds(lambda old, new: {"command": "str_replace", "old_str": old, "new_str": new}, ENDED, ENDED | st.just("")),
    st.builds(lambda at, text: {"command": "insert", "insert_line": at, "insert_text": text}, st.integers(0, 7), ENDED),
)
ROO = PAIRS["roo", "anthropic"]
CLIENTS: dict[str, ToolMapping] = {
    "roo": ROO,
    "roo with search_replace": replace(ROO, tools=tuple(tool for tool in ROO.tools if tool.name != "edit")),
    "opencode": PAIRS["opencode", "anthropic"],
    "claude_code": PAIRS["claude_code", "anthropic"],
}


@pytest.mark.parametrize("client", CLIENTS)
@given(FILES, COMMANDS)
def test_a_call_of_the_anthropic_editor_does_the_same_with_every_client(client: str, file: str, command: Any) -> None:
    mapping, call = CLIENTS[client], (EDITOR, json.dumps(command | {"path": "f"}))
    try:
        carried = mapping.map_call_to_client(*call)
    except Untranslatable:
        return
    assert work(EDITORS[mapping.client.name], file, list(carried.calls)) == work(edit_as_anthropic, file, [call])


DIFFING = replace(ROO, tools=tuple(tool for tool in ROO.tools if tool.name in ("apply_diff", "insert_content")))


@given(FILES, COMMANDS)
def test_a_diff_does_the_same_or_is_refused(file: str, command: Any) -> None:
    """Text that is part of a line is not found by a diff; of equal lines it takes the first. Both are stated."""
    call = (EDITOR, json.dumps(command | {"path": "f"}))
    try:
        carried = DIFFING.map_call_to_client(*call)
    except Untranslatable:
        return
    wanted, done = work(edit_as_anthropic, file, [call]), work(edit_as_roo, file, list(carried.calls))
    assert done in (wanted, None) or wanted is None


@given(FILES, st.lists(st.tuples(PARTS, PARTS | st.just("")), min_size=1, max_size=3))
def test_a_diff_of_several_blocks_is_several_replacements(file: str, blocks: list[tuple[str, str]]) -> None:
    """A model that writes diffs, a client with the editor: blocks of whole lines that are there once."""
    mapping = PAIRS["anthropic", "roo"]
    diff = "\n".join(f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE" for old, new in blocks)
    call = ("apply_diff", json.dumps({"path": "f", "diff": diff}))
    try:
        carried = mapping.map_call_to_client(*call)
    except Untranslatable:
        return
    assert len(carried.calls) == len(blocks)
    wanted, done = work(edit_as_roo, file, [call]), work(edit_as_anthropic, file, list(carried.calls))
    assert wanted is None or done in (wanted, None)


@pytest.mark.parametrize(
    ("at", "text", "expected"),
    [
        (0, "x\ny", "x\ny\n1\n2\n"),
        (1, "x", "1\nx\n2\n"),
        (2, "x", "1\n2\nx\n"),
        (0, "x\n", "x\n\n1\n2\n"),
    ],
)
def test_lines_are_inserted_behind_and_before_the_same_line(at: int, text: str, expected: str) -> None:
    call = (EDITOR, json.dumps({"command": "insert", "path": "f", "insert_line": at, "insert_text": text}))
    carried = ROO.map_call_to_client(*call)
    assert json.loads(carried.calls[0][1])["line"] == at + 1
    assert work(edit_as_roo, "1\n2\n", list(carried.calls)) == work(edit_as_anthropic, "1\n2\n", [call]) == expected


@pytest.mark.parametrize(("old", "new", "expected"), [("b\n", "", "a\nc\n"), ("b\n", "x\ny\n", "a\nx\ny\nc\n")])
def test_lines_with_their_line_breaks_are_replaced_by_a_diff(old: str, new: str, expected: str) -> None:
    call = (EDITOR, json.dumps({"command": "str_replace", "path": "f", "old_str": old, "new_str": new}))
    assert work(edit_as_roo, "a\nb\nc\n", list(DIFFING.map_call_to_client(*call).calls)) == expected
    assert work(edit_as_anthropic, "a\nb\nc\n", [call]) == expected


def test_a_conflict_in_a_file_is_resolved_by_a_diff() -> None:
    file = "a\n<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> main\nz\n"
    given = {"command": "str_replace", "path": "f", "old_str": file[2:-2], "new_str": "both\n"}
    carried = DIFFING.map_call_to_client(EDITOR, json.dumps(given))
    assert work(edit_as_roo, file, list(carried.calls)) == "a\nboth\nz\n"
