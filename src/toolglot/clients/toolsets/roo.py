"""The tools of Roo Code and its forks, in XML and in native versions.

    read_file       {"path": "a.py", "mode": "slice", "offset": 5, "limit": 10}     today
                    {"path": "a.py", "start_line": 5, "end_line": 14}               earlier, and Cline
                    {"files": [{"path": "a.py", "line_ranges": [[5, 14]]}]}         in between
                    {"args": "<file><path>a.py</path><line_range>5-14</line_range></file>"}     XML versions
                    {"args": {"file": [{"path": "a.py", "line_range": ["5-14"]}]}}              the same, parsed
    list_files      {"path": "src", "recursive": false}
    write_to_file   {"path": "a.py", "content": "..."}                              earlier with line_count
    apply_diff      {"path": "a.py", "diff": "<<<<<<< SEARCH ..."}
    insert_content  {"path": "a.py", "line": 1, "content": "..."}                   removed at the end of 2025
    edit            {"file_path": "a.py", "old_string": "...", "new_string": "...", "replace_all": false}
    search_replace  {"file_path": "a.py", "old_string": "...", "new_string": "..."}

Strategy. ``edit`` and ``search_replace`` are exact, so they are preferred to ``apply_diff`` where a client has them.
``insert_content`` inserts *before* its line, and 0 means the end of the file, which has no equivalent elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

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
    integer_schema,
    list_folder,
    parse_integer,
    refuse_crlf,
    string_schema,
    to_number,
    view_range,
)
from toolglot.clients.toolsets.search_replace import is_numbered, parse_diff, write_diff
from toolglot.core.lenient_json import Value

_ENTITY: Final = re.compile(r"&(?:lt|gt|quot|apos|amp|lsqb|rsqb|#39|#91|#93);")
_FILE: Final = re.compile(r"\s*<file>\s*<path>([^<]+)</path>\s*((?:<line_range>\d+-\d+</line_range>\s*)*)</file>\s*")
_SPAN: Final = re.compile(r"(\d+)-(\d+)")
_XML: Final = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
_FENCE: Final = "```"
_REPLACEMENT_PATTERN: Final = re.compile(r"\$[$&`']")
"""Special patterns in a JavaScript replacement string."""


def _refuse_entities(content: str, target: Target) -> None:
    if not target.verified and "claude" not in target.model and _ENTITY.search(content):
        raise Untranslatable(
            f"{target.tool.name} turns entities such as &lt; into characters, unless the model's name has claude"
        )


# -- read_file ---------------------------------------------------------------------------------------------------------


def _read_file(given: Arguments, target: Target) -> tuple[Operation, ...]:
    if "files" in given:
        return _read_files(given.take("files"))
    if "args" in given:
        args = given.take("args")
        return _read_elements(args) if type(args) is str else _read_args(args)
    path = given.take_path("path")
    if given.take_text("mode", "slice") != "slice":
        raise Untranslatable("read_file by indentation has no equivalent")
    given.left.pop("indentation", None)  # Roo uses it in the other mode only
    first, last = given.take_integer("start_line"), given.take_integer("end_line")
    offset, limit = given.take_integer("offset"), given.take_integer("limit")
    if (offset, limit) == (None, None):
        return (view_range(first, last, path),)
    if (first, last) != (None, None):
        raise Untranslatable("read_file has two line ranges")
    offset = 1 if offset is None else offset
    return (view_range(offset, None if limit is None else offset + limit - 1, path),)


def _read_files(files: Value) -> tuple[Operation, ...]:
    if not isinstance(files, list) or not files:
        raise Untranslatable("files of read_file must be a list")
    return tuple(view for entry in files for view in _read_entry(entry))


def _read_entry(entry: Value) -> list[View]:
    path = entry.get("path") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or type(path) is not str or not path or set(entry) - {"path", "line_ranges"}:
        raise Untranslatable("an entry of files must have a path, and nothing besides but line_ranges")
    ranges = entry.get("line_ranges") or []
    if not isinstance(ranges, list):
        raise Untranslatable("line_ranges must be a list")
    return [_read_pair(pair, path) for pair in ranges] or [View(path)]


def _read_pair(pair: Value, path: str) -> View:
    if not isinstance(pair, list) or len(pair) != 2:
        raise Untranslatable("line_ranges must be pairs of line numbers")
    first, last = (parse_integer(bound, "line_ranges") for bound in pair)
    return view_range(first, last, path)


def _read_args(args: Value) -> tuple[Operation, ...]:
    """The files of ``args`` in the form in which an XML client has parsed them."""
    files = args.get("file") if isinstance(args, dict) and set(args) == {"file"} else None
    if not isinstance(files, list) or not files:
        raise Untranslatable("args of read_file must hold files")
    return tuple(view for file in files for view in _read_args_file(file))


def _read_args_file(file: Value) -> list[View]:
    path = file.get("path") if isinstance(file, dict) else None
    if not isinstance(file, dict) or type(path) is not str or not path or set(file) - {"path", "line_range"}:
        raise Untranslatable("a file of args must have a path, and nothing besides but line_range")
    ranges = file.get("line_range") or []
    if not isinstance(ranges, list):
        raise Untranslatable("line_range must be a list")
    return [_read_span(span, path) for span in ranges] or [View(path)]


def _read_span(span: Value, path: str) -> View:
    found = _SPAN.fullmatch(span) if type(span) is str else None
    if found is None:
        raise Untranslatable("line_range must hold ranges like 1-20")
    return view_range(int(found[1]), int(found[2]), path)


def _read_elements(markup: str) -> tuple[Operation, ...]:
    found: list[Operation] = []
    at = 0
    while at < len(markup):
        element = _FILE.match(markup, at)
        if element is None or re.search(r"&(?!lt;|gt;|amp;)", element[1]):
            raise Untranslatable("args of read_file are not plain elements of files")
        path = re.sub("&(?:lt|gt|amp);", lambda entity: _XML[entity[0]], element[1])
        if path != path.strip():
            raise Untranslatable("blanks around a path are lost between elements")
        spans = [view_range(int(first), int(last), path) for first, last in _SPAN.findall(element[2])]
        found += spans or [View(path)]
        at = element.end()
    if not found:
        raise Untranslatable("args of read_file name no file")
    return tuple(found)


def _write_view(view: View, target: Target) -> WrittenArguments:
    ranged = (view.first, view.last) != (1, None)
    has = target.properties
    if "files" in has:
        entry: WrittenArguments = {"path": view.path}
        if ranged:
            entry["line_ranges"] = [[to_number(view.first), to_number(_last_line(view))]]
        return {"files": [entry]}
    if "args" in has:
        return {"args": _write_args(view, ranged) if target.takes_objects("args") else _write_elements(view, ranged)}
    if not ranged:
        return {"path": view.path}
    if "start_line" in has:
        ends: WrittenArguments = {} if view.last is None else {"end_line": to_number(view.last)}
        return {"path": view.path, "start_line": to_number(view.first), **ends}
    if not target.declares("offset", "limit"):
        raise Untranslatable("the client's read_file reads whole files only")
    mode: WrittenArguments = {"mode": "slice"} if "mode" in has else {}
    limit: WrittenArguments = {} if view.last is None else {"limit": to_number(view.last - view.first + 1)}
    return {"path": view.path, **mode, "offset": to_number(view.first), **limit}


def _last_line(view: View) -> int:
    if view.last is None:
        raise Untranslatable("the client's read_file needs the number of the last line")
    return view.last


def _write_args(view: View, ranged: bool) -> Value:
    span: WrittenArguments = {"line_range": [f"{view.first}-{_last_line(view)}"]} if ranged else {}
    return {"file": [{"path": view.path, **span}]}


def _write_elements(view: View, ranged: bool) -> str:
    path = view.path
    for entity, char in reversed(_XML.items()):
        path = path.replace(char, entity)
    if path != path.strip():
        raise Untranslatable("blanks around a path are lost between elements")
    span = f"<line_range>{view.first}-{_last_line(view)}</line_range>" if ranged else ""
    return f"<file><path>{path}</path>{span}</file>"


# -- list_files, write_to_file, insert_content -------------------------------------------------------------------------


def _read_list(given: Arguments, target: Target) -> tuple[Operation, ...]:
    path = given.take_path("path")
    if given.take_flag("recursive"):
        raise Untranslatable("a whole tree cannot be listed: others show a level or two")
    return (list_folder(path),)


def _write_list(folder: List, target: Target) -> WrittenArguments:
    return {"path": folder.path, "recursive": False}


def _read_write(given: Arguments, target: Target) -> tuple[Operation, ...]:
    given.take_integer("line_count")  # Roo only compares it with the content
    return (Create(given.take_path("path"), given.take_text("content")),)


def _write_create(create: Create, target: Target) -> WrittenArguments:
    if not target.verified:
        if create.text.startswith(_FENCE) or create.text.endswith(_FENCE):
            raise Untranslatable("write_to_file takes a code fence at the beginning or the end of the content off")
        if is_numbered(create.text):
            raise Untranslatable("write_to_file takes the numbers off lines that all begin with a number and a bar")
    _refuse_entities(create.text, target)
    count: WrittenArguments = (
        {"line_count": to_number(create.text.count("\n") + 1)} if "line_count" in target.properties else {}
    )
    return {"path": create.path, "content": create.text, **count}


def _read_insert(given: Arguments, target: Target) -> tuple[Operation, ...]:
    path, line = given.take_path("path"), given.take_integer("line")
    if line == 0:
        raise Untranslatable("line 0 of insert_content is the end of the file, whose number of lines is not known here")
    if line is None or line < 0:
        raise Untranslatable("insert_content needs the line before which to insert")
    return (Insert(path, line - 1, given.take_text("content")),)


def _write_insert(insert: Insert, target: Target) -> WrittenArguments:
    return {"path": insert.path, "line": to_number(insert.after + 1), "content": insert.text}


# -- apply_diff, edit, search_replace ----------------------------------------------------------------------------------


def _read_diff(given: Arguments, target: Target) -> tuple[Operation, ...]:
    path, blocks = given.take_path("path"), parse_diff(given.take_text("diff"))
    dropped = [str(block.start_line) for block in blocks if block.start_line is not None]
    if given.take_integer("start_line") is not None or dropped:
        given.notes.append(
            f"apply_diff: start_line {', '.join(dropped)} dropped; a text that is there twice is refused by the client"
        )
    return tuple(Replace(path, block.old, block.new) for block in blocks)


def _write_diff(replace: Replace, target: Target) -> WrittenArguments:
    _refuse_every(replace, target)
    _refuse_entities(replace.old + replace.new, target)
    return {"path": replace.path, "diff": write_diff(replace.old, replace.new)}


def _read_edit(given: Arguments, target: Target) -> tuple[Operation, ...]:
    path, old, new = given.take_path("file_path"), given.take_text("old_string"), given.take_text("new_string")
    if not old:
        raise Untranslatable("old_string is empty: there is nothing to look for")
    return (Replace(path, old, new, given.take_flag("replace_all")),)


def _write_edit(replace: Replace, target: Target) -> WrittenArguments:
    refuse_crlf(replace, target.tool.name)
    every: WrittenArguments = {"replace_all": True} if replace.every else {}
    return {"file_path": replace.path, "old_string": replace.old, "new_string": replace.new, **every}


def _write_search(replace: Replace, target: Target) -> WrittenArguments:
    _refuse_every(replace, target)
    if _REPLACEMENT_PATTERN.search(replace.new):
        raise Untranslatable("search_replace takes $ before $, &, ` or ' for an instruction")
    return _write_edit(replace, target)


def _refuse_every(replace: Replace, target: Target) -> None:
    if replace.every:
        raise Untranslatable(f"{target.tool.name} changes one place only, and all of them were meant")


# -- the set -----------------------------------------------------------------------------------------------------------

_PATH = string_schema("The path of the file, relative to the workspace.")
_DIFF = string_schema(
    "One or more blocks, each: a line '<<<<<<< SEARCH', the exact lines to find, a line '=======', the lines to put in"
    " their place, a line '>>>>>>> REPLACE'. A line of content that looks like such a mark has a backslash before it."
)
_EDITED: Mapping[str, Any] = {
    "file_path": _PATH,
    "old_string": string_schema("The exact text to find."),
    "new_string": string_schema("The text to put in its place."),
}
_TOOLS: Final = {
    tool.name: tool
    for tool in (
        define_tool(
            "read_file",
            "Read a file; its lines are shown with their numbers.",
            {
                "path": _PATH,
                "mode": {"type": "string", "enum": ["slice"], "description": "How to read."},
                "offset": integer_schema("The first line to read, counted from 1."),
                "limit": integer_schema("How many lines to read at most."),
            },
            ("mode", "offset", "limit"),
        ),
        define_tool(
            "list_files",
            "List what is in a folder.",
            {
                "path": string_schema("The path of the folder, relative to the workspace."),
                "recursive": {"type": "boolean", "description": "Always false: only this level."},
            },
        ),
        define_tool(
            "write_to_file", "Write a whole file.", {"path": _PATH, "content": string_schema("The whole content.")}
        ),
        define_tool("apply_diff", "Replace lines of a file.", {"path": _PATH, "diff": _DIFF}),
        define_tool(
            "insert_content",
            "Insert lines into a file.",
            {
                "path": _PATH,
                "line": integer_schema("The line before which to insert, counted from 1."),
                "content": string_schema("The lines."),
            },
        ),
        define_tool(
            "edit", "Replace a text in a file.", {**_EDITED, "replace_all": {"type": "boolean"}}, ("replace_all",)
        ),
        define_tool("search_replace", "Replace a text in a file.", _EDITED),
    )
}


def _make_adapter(
    tool: str, keys: tuple[str, ...], read: Any, kind: OperationType, write: Any, any_of: tuple[str, ...] = ()
) -> ToolAdapter:
    return ToolAdapter(tool, keys, read, {kind: write}, lambda kinds: _TOOLS[tool], any_of)


TOOLSET = ToolSet(
    "roo",
    (
        _make_adapter("read_file", (), _read_file, View, _write_view, ("path", "files", "args")),
        _make_adapter("list_files", ("path",), _read_list, List, _write_list),
        _make_adapter("write_to_file", ("path", "content"), _read_write, Create, _write_create),
        _make_adapter("edit", ("file_path", "old_string", "new_string"), _read_edit, Replace, _write_edit),
        _make_adapter("search_replace", ("file_path", "old_string", "new_string"), _read_edit, Replace, _write_search),
        _make_adapter("apply_diff", ("path", "diff"), _read_diff, Replace, _write_diff),
        _make_adapter("insert_content", ("path", "line", "content"), _read_insert, Insert, _write_insert),
    ),
    ("read_file", "list_files", "write_to_file", "apply_diff", "insert_content"),
)
