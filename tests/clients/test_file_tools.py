"""Which tools of a client read, edit and write files."""

from __future__ import annotations

from typing import Any

import pytest

from toolglot.clients.file_tools import FileTool, FileTools, find_file_tools
from toolglot.core.conversation import Tool


def make_tool(name: str, *required: str, optional: tuple[str, ...] = (), **schemas: Any) -> Tool:
    properties = {key: schemas.get(key, {"type": "string"}) for key in (*required, *optional)}
    return Tool(name, "", {"type": "object", "properties": properties, "required": list(required)})


CLAUDE_CODE = (
    make_tool("Bash", "command"),
    make_tool("Read", "file_path", optional=("offset", "limit")),
    make_tool("Edit", "file_path", "old_string", "new_string", optional=("replace_all",)),
    make_tool("Write", "file_path", "content"),
)


def test_tools_are_found_by_their_parameters() -> None:
    assert find_file_tools(CLAUDE_CODE) == FileTools(
        FileTool("Read", ("file_path",)),
        FileTool("Edit", ("file_path", "old_string", "new_string")),
        FileTool("Write", ("file_path", "content")),
    )


@pytest.mark.parametrize("name", ["read", "read_file", "ReadFile", "readFile", "view-file", "fs.open", "cat"])
def test_a_reader_is_found_by_its_name(name: str) -> None:
    assert find_file_tools([make_tool("delete", "path"), make_tool(name, "path")]).reader == FileTool(name, ("path",))


@pytest.mark.parametrize(
    ("description", "reads"),
    [("Reads a file.", True), ("Read the file at a path", True), ("Deletes what you have read", False), ("", False)],
)
def test_a_reader_is_found_by_its_description(description: str, reads: bool) -> None:
    tool = make_tool("get_text", "path")
    tool = Tool(tool.name, description, tool.parameters)
    assert (find_file_tools([tool]).reader is not None) is reads


@pytest.mark.parametrize("name", ["delete_file", "spreadsheet", "already", "list_files", "thread", "README"])
def test_other_tools_with_a_path_read_nothing(name: str) -> None:
    assert find_file_tools([make_tool(name, "path")]).reader is None


def test_the_order_of_the_parameters_does_not_matter() -> None:
    (found,) = (find_file_tools([make_tool("edit", "newString", "oldString", "filePath")]).editor,)
    assert found is not None
    assert found.make_arguments("a", "b", "c") == {"filePath": "a", "oldString": "b", "newString": "c"}


@pytest.mark.parametrize(
    "tool",
    [
        make_tool("write", "path", "content", "line_count"),
        make_tool("write", "path", optional=("content",)),
        make_tool("write", "path", "content", content={"type": "array"}),
        make_tool("write", "path", "content", content={"type": "string", "enum": ["a"]}),
        make_tool("write", "path", "filename", "content"),
        Tool("write", "", {"properties": {"path": True, "content": None}, "required": ["path", "content"]}),
        Tool("write", "", {"properties": [], "required": "path"}),
        Tool("write", "", {"properties": {"path": {"type": "string"}}, "required": [["path"], {}]}),
        Tool("write"),
    ],
)
def test_a_tool_that_wants_something_else_is_left_out(tool: Tool) -> None:
    assert find_file_tools([tool]) == FileTools()


@pytest.mark.parametrize(("description", "absolute"), [("The absolute path", True), ("A path", False), (7, False)])
def test_absolute_paths_are_noticed(description: object, absolute: bool) -> None:
    schema = {"type": "string", "description": description}
    assert find_file_tools([make_tool("read", "path", path=schema)]).reader == FileTool("read", ("path",), absolute)
