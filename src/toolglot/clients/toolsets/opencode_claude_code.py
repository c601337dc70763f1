"""The tools of OpenCode and of Claude Code, which differ in names only.

    read  {"filePath": "/a.py", "offset": 5, "limit": 10}               Read  {"file_path": ..., "offset", "limit"}
    write {"filePath": "/a.py", "content": "..."}                       Write {"file_path": ..., "content"}
    edit  {"filePath": "/a.py", "oldString", "newString", "replaceAll"} Edit  {"file_path", "old_string", ...}
    bash  {"command": "ls", "timeout": 1000, "description": "List"}     Bash  the same

Strategy. One function makes both sets from their names. OpenCode once counted lines from 0 and now counts from 1; the
tool description states which, and without that line numbers are neither accepted nor written. Where ``read`` also shows
folders, a path that ends with a slash is one. ``write`` differs in names only, so it streams; ``edit`` does not,
because an empty search text writes a whole file in one set and fails in the other.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from toolglot.clients.toolsets.operations import (
    Arguments,
    Create,
    List,
    Operation,
    OperationType,
    Replace,
    Run,
    Target,
    ToolAdapter,
    ToolSet,
    Untranslatable,
    View,
    WrittenArguments,
    define_tool,
    folder_path,
    integer_schema,
    is_folder,
    list_folder,
    refuse_crlf,
    string_schema,
    to_number,
    view_range,
)
from toolglot.core.conversation import Tool

_FROM_ONE: Final = re.compile(r"\b1-(?:indexed|based)", re.IGNORECASE)
_FROM_ZERO: Final = re.compile(r"\b0-(?:indexed|based)", re.IGNORECASE)


class _Names(Struct, frozen=True, kw_only=True):
    """Names in one of the sets. ``counted``: lines are counted from 1 even if the tool does not state it."""

    read: str
    write: str
    edit: str
    bash: str
    path: str
    old: str
    new: str
    every: str
    counted: bool


def _first_line(names: _Names, target: Target) -> int:
    """The number of the first line."""
    description = target.describe("offset")
    if _FROM_ZERO.search(description):
        return 0
    if names.counted or _FROM_ONE.search(description):
        return 1
    raise Untranslatable(f"{target.tool.name} does not say whether it counts lines from 0 or from 1")


def _shows_folders(names: _Names, target: Target) -> bool:
    return "director" in target.describe(names.path)


def _make_read(names: _Names) -> ToolAdapter:
    def read(given: Arguments, target: Target) -> tuple[Operation, ...]:
        path, offset, limit = given.take_path(names.path), given.take_integer("offset"), given.take_integer("limit")
        if offset is None and limit is None:
            return (list_folder(path) if is_folder(path) and _shows_folders(names, target) else View(path),)
        first = 1 if offset is None else offset + 1 - _first_line(names, target)
        return (view_range(first, None if limit is None else first + limit - 1, path),)

    def write_view(view: View, target: Target) -> WrittenArguments:
        written: WrittenArguments = {names.path: view.path}
        if is_folder(view.path) and _shows_folders(names, target):
            raise Untranslatable("a path that ends with a slash is a folder to read, not a file")
        if (view.first, view.last) == (1, None):
            return written
        if not target.declares("offset", "limit"):
            raise Untranslatable(f"the client's {names.read} reads whole files only")
        if view.first != 1:
            written["offset"] = to_number(view.first - 1 + _first_line(names, target))
        if view.last is not None:
            written["limit"] = to_number(view.last - view.first + 1)
        return written

    def write_list(folder: List, target: Target) -> WrittenArguments:
        if not _shows_folders(names, target):
            raise Untranslatable(f"the client's {names.read} shows no folders")
        return {names.path: folder_path(folder.path)}

    def make(kinds: frozenset[OperationType]) -> Tool:
        what = "file or directory; that of a directory ends with a slash" if List in kinds else "file"
        properties = {
            names.path: string_schema(f"The path of the {what}."),
            "offset": integer_schema("The line to start reading from (1-indexed)."),
            "limit": integer_schema("How many lines to read at most."),
        }
        return define_tool(
            names.read, "Read a file; its lines are shown with their numbers.", properties, ("offset", "limit")
        )

    return ToolAdapter(names.read, (names.path,), read, {View: write_view, List: write_list}, make)


def _make_write(names: _Names) -> ToolAdapter:
    def read(given: Arguments, target: Target) -> tuple[Operation, ...]:
        return (Create(given.take_path(names.path), given.take_text("content")),)

    def write(create: Create, target: Target) -> WrittenArguments:
        return {names.path: create.path, "content": create.text}

    tool = define_tool(
        names.write,
        "Write a whole file.",
        {names.path: string_schema("The path of the file."), "content": string_schema("The content.")},
    )
    fields = {"path": names.path, "text": "content"}
    return ToolAdapter(names.write, (names.path, "content"), read, {Create: write}, lambda kinds: tool, fields=fields)


def _make_edit(names: _Names) -> ToolAdapter:
    def read(given: Arguments, target: Target) -> tuple[Operation, ...]:
        path, old, new = given.take_path(names.path), given.take_text(names.old), given.take_text(names.new)
        if not old:
            raise Untranslatable(f"{names.old} is empty: there is nothing to look for")
        return (Replace(path, old, new, given.take_flag(names.every)),)

    def write(replace: Replace, target: Target) -> WrittenArguments:
        refuse_crlf(replace, names.edit)
        if replace.every and not target.declares(names.every):
            raise Untranslatable(f"the client's {names.edit} changes one place only, and all of them were meant")
        every: WrittenArguments = {names.every: True} if replace.every else {}
        return {names.path: replace.path, names.old: replace.old, names.new: replace.new, **every}

    properties = {
        names.path: string_schema("The path of the file."),
        names.old: string_schema("The text to replace."),
        names.new: string_schema("The text to put in its place."),
        names.every: {"type": "boolean", "description": "Replace it wherever it is."},
    }
    tool = define_tool(names.edit, "Replace a text in a file.", properties, (names.every,))
    return ToolAdapter(names.edit, (names.path, names.old, names.new), read, {Replace: write}, lambda kinds: tool)


def _make_bash(names: _Names) -> ToolAdapter:
    def read(given: Arguments, target: Target) -> tuple[Operation, ...]:
        description = given.take_text("description") if "description" in given else None
        return (Run(given.take_text("command"), given.take_integer("timeout"), description),)

    def write(run: Run, target: Target) -> WrittenArguments:
        written: WrittenArguments = {"command": run.command}
        if run.timeout is not None:
            written["timeout"] = to_number(run.timeout)
        if run.description is not None and target.declares("description"):
            written["description"] = run.description
        elif target.requires("description"):
            raise Untranslatable(f"the client's {names.bash} needs a description")
        return written

    properties = {
        "command": string_schema("The command to run."),
        "timeout": integer_schema("Optional timeout in milliseconds."),
        "description": string_schema("What the command does, in a few words."),
    }
    tool = define_tool(names.bash, "Run a command in a shell.", properties, ("timeout",))
    return ToolAdapter(names.bash, ("command", "timeout"), read, {Run: write}, lambda kinds: tool)


def _make_toolset(name: str, names: _Names) -> ToolSet:
    adapters = tuple(make(names) for make in (_make_read, _make_write, _make_edit, _make_bash))
    return ToolSet(name, adapters, tuple(adapter.tool for adapter in adapters))


OPENCODE = _make_toolset(
    "opencode",
    _Names(
        read="read",
        write="write",
        edit="edit",
        bash="bash",
        path="filePath",
        old="oldString",
        new="newString",
        every="replaceAll",
        counted=False,
    ),
)
CLAUDE_CODE = _make_toolset(
    "claude_code",
    _Names(
        read="Read",
        write="Write",
        edit="Edit",
        bash="Bash",
        path="file_path",
        old="old_string",
        new="new_string",
        every="replace_all",
        counted=True,
    ),
)
