"""The text editor that Anthropic's models are trained on: one tool, four commands.

    str_replace_based_edit_tool {"command": "view", "path": "/a.py", "view_range": [1, -1]}
                                {"command": "create", "path": "/a.py", "file_text": "..."}
                                {"command": "str_replace", "path": "/a.py", "old_str": "...", "new_str": "..."}
                                {"command": "insert", "path": "/a.py", "insert_line": 0, "insert_text": "..."}

Its documentation long called the inserted text ``new_str``; both are accepted, and ``insert_text`` is written unless a
client declares only the other. ``str_replace_editor`` is its predecessor, which could also undo; no other tool can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolglot.clients.toolsets.operations import (
    Arguments,
    Create,
    Insert,
    List,
    Operation,
    OperationType,
    Replace,
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
    parse_integer,
    string_schema,
    to_number,
    view_range,
)
from toolglot.core.conversation import Tool

NAME, OLDER = "str_replace_based_edit_tool", "str_replace_editor"
END_OF_FILE = -1


def _read_view(given: Arguments) -> Operation:
    path = given.take_path("path")
    if "view_range" not in given:
        return list_folder(path) if is_folder(path) else View(path)
    bounds = given.take("view_range")
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise Untranslatable("view_range must be two line numbers")
    first, last = (parse_integer(bound, "view_range") for bound in bounds)
    return view_range(first, None if last == END_OF_FILE else last, path)


def _read_create(given: Arguments) -> Operation:
    return Create(given.take_path("path"), given.take_text("file_text"))


def _read_replace(given: Arguments) -> Operation:
    path, old = given.take_path("path"), given.take_text("old_str")
    if not old:
        raise Untranslatable("old_str is empty: there is nothing to look for")
    return Replace(path, old, given.take_text("new_str", ""))


def _read_insert(given: Arguments) -> Operation:
    path, after = given.take_path("path"), given.take_integer("insert_line")
    if after is None or after < 0:
        raise Untranslatable("insert needs insert_line, 0 or the number of a line")
    if "insert_text" in given and "new_str" in given:
        raise Untranslatable("insert has two texts, insert_text and new_str")
    return Insert(path, after, given.take_text("new_str" if "new_str" in given else "insert_text"))


_COMMANDS: Mapping[str, Callable[[Arguments], Operation]] = {
    "view": _read_view,
    "create": _read_create,
    "str_replace": _read_replace,
    "insert": _read_insert,
}


def _read(given: Arguments, target: Target) -> tuple[Operation, ...]:
    command = given.take_text("command")
    if command == "undo_edit":
        raise Untranslatable("undo_edit has no equivalent: no other tool keeps the previous state of a file")
    if command not in _COMMANDS:
        raise Untranslatable(f"{command[:40]} is no command of {target.tool.name}")
    return (_COMMANDS[command](given),)


def _write_view(view: View, target: Target) -> WrittenArguments:
    written: WrittenArguments = {"command": "view", "path": view.path}
    if is_folder(view.path):
        raise Untranslatable("a path that ends with a slash is a folder to view, not a file")
    if (view.first, view.last) != (1, None):
        written["view_range"] = [to_number(view.first), to_number(END_OF_FILE if view.last is None else view.last)]
    return written


def _write_list(folder: List, target: Target) -> WrittenArguments:
    return {"command": "view", "path": folder_path(folder.path)}


def _write_create(create: Create, target: Target) -> WrittenArguments:
    return {"command": "create", "path": create.path, "file_text": create.text}


def _write_replace(replaced: Replace, target: Target) -> WrittenArguments:
    if replaced.every:
        raise Untranslatable("str_replace changes one place only, and all of them were meant")
    if not replaced.old:
        raise Untranslatable("old_str is empty: there is nothing to look for")
    return {"command": "str_replace", "path": replaced.path, "old_str": replaced.old, "new_str": replaced.new}


def _write_insert(insert: Insert, target: Target) -> WrittenArguments:
    only_old = "new_str" in target.properties and "insert_text" not in target.properties
    key = "new_str" if only_old else "insert_text"
    return {"command": "insert", "path": insert.path, "insert_line": to_number(insert.after), key: insert.text}


_ARGUMENTS: Mapping[str, tuple[tuple[OperationType, ...], dict[str, Any]]] = {
    "view_range": (
        (View,),
        {
            "type": "array",
            "items": {"type": "integer"},
            "description": "For view: first and last line, counted from 1; -1 is the end of the file.",
        },
    ),
    "file_text": ((Create,), string_schema("For create: the whole content of the file.")),
    "old_str": (
        (Replace,),
        string_schema("For str_replace: the text to replace; it must be in the file exactly once."),
    ),
    "new_str": ((Replace,), string_schema("For str_replace: the text to put in its place.")),
    "insert_line": (
        (Insert,),
        integer_schema("For insert: the line behind which to insert; 0 is the top of the file."),
    ),
    "insert_text": ((Insert,), string_schema("For insert: the text to insert.")),
}
_COMMAND_OPERATIONS: Mapping[str, tuple[OperationType, ...]] = {
    "view": (View, List),
    "create": (Create,),
    "str_replace": (Replace,),
    "insert": (Insert,),
}


def _define_editor(kinds: frozenset[OperationType]) -> Tool:
    commands = [command for command, types in _COMMAND_OPERATIONS.items() if kinds.intersection(types)]
    folders = (
        " A folder is viewed with a slash at the end of its path." if List in kinds else " Folders cannot be viewed."
    )
    properties = {
        "command": {"type": "string", "enum": commands, "description": "What to do."},
        "path": string_schema("The path of the file."),
        **{key: shown for key, (needed, shown) in _ARGUMENTS.items() if kinds.intersection(needed)},
    }
    return define_tool(NAME, f"View and edit files.{folders}", properties, _ARGUMENTS)


_WRITE: Mapping[OperationType, Callable[[Any, Target], WrittenArguments]] = {
    View: _write_view,
    List: _write_list,
    Create: _write_create,
    Replace: _write_replace,
    Insert: _write_insert,
}
TOOLSET = ToolSet(
    "anthropic",
    tuple(ToolAdapter(name, ("command", "path"), _read, _WRITE, _define_editor) for name in (NAME, OLDER)),
    (NAME,),
)
