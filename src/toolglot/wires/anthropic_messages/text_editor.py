"""Anthropic's text editor tool. Requests name only its type, because Anthropic's models know the rest."""

from __future__ import annotations

from typing import Any, Final

from toolglot.core.conversation import Tool

TYPE_PREFIX: Final = "text_editor_"
WITH_UNDO: Final = "str_replace_editor"
"""The name of the older versions, which can undo an edit."""

_COMMANDS: Final = ("view", "create", "str_replace", "insert")
_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "path": {"type": "string", "description": "The path of the file."},
    "view_range": {
        "type": "array",
        "items": {"type": "integer"},
        "description": "For view: first and last line, counted from 1; -1 is the end of the file.",
    },
    "file_text": {"type": "string", "description": "For create: the whole content of the file."},
    "old_str": {
        "type": "string",
        "description": "For str_replace: the text to replace; it must be in the file exactly once.",
    },
    "new_str": {"type": "string", "description": "For str_replace: the text to put in its place."},
    "insert_line": {
        "type": "integer",
        "description": "For insert: the line behind which to insert; 0 is the top of the file.",
    },
    "insert_text": {"type": "string", "description": "For insert: the text to insert."},
}


def define_text_editor(name: str) -> Tool:
    """The definition of the text editor tool of this name."""
    commands = [*_COMMANDS, *(("undo_edit",) if name == WITH_UNDO else ())]
    command = {"type": "string", "enum": commands, "description": "What to do."}
    schema = {"type": "object", "properties": {"command": command, **_PARAMETERS}, "required": ["command", "path"]}
    return Tool(name, "View and edit files. A folder is viewed with a slash at the end of its path.", schema)
