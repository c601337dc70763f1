"""Small editors that behave as the tools of clients are documented: they change a text, or refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any


class Refused(Exception):
    """The tool refuses."""


def swap(file: str, old: str, new: str, every: bool = False) -> str:
    found = file.count(old) if old else 0
    if not found or (found > 1 and not every):
        raise Refused
    return file.replace(old, new)


def put_in(file: str, at: int, text: str) -> str:
    lines = file.split("\n")
    if at > len(lines):
        raise Refused
    return "\n".join([*lines[:at], *text.split("\n"), *lines[at:]])


def edit_as_anthropic(file: str, name: str, given: dict[str, Any]) -> str:
    match given["command"]:
        case "create":
            return str(given["file_text"])
        case "str_replace":
            return swap(file, given["old_str"], given.get("new_str", ""))
        case "insert":
            return put_in(file, given["insert_line"], given["insert_text"])
        case other:
            raise AssertionError(other)


BLOCK = re.compile(
    r"<<<<<<< SEARCH>?\s*?\n(?::start_line:\s*\d+\s*?\n)?(?:-------\s*?\n)?"
    r"([\s\S]*?)(?:\n)?(?<=\n)=======\s*?\n([\s\S]*?)(?:\n)?(?<=\n)>>>>>>> REPLACE(?=\n|$)"
)
ESCAPED = re.compile(r"^\\(<<<<<<<|=======|>>>>>>>|-------|:start_line:|:end_line:)", re.MULTILINE)


def patch(file: str, diff: str) -> str:
    """Whole lines, the first that are equal; nothing in their place takes their line break too."""
    lines, blocks = file.split("\n"), BLOCK.findall(diff)
    assert blocks
    for found in blocks:
        old, new = (ESCAPED.sub(r"\1", part) for part in found)
        search, instead = old.split("\n"), new.split("\n") if new else []
        at = next((at for at in range(len(lines)) if lines[at : at + len(search)] == search), None)
        if at is None:
            raise Refused
        lines[at : at + len(search)] = instead
    return "\n".join(lines)


def edit_as_roo(file: str, name: str, given: dict[str, Any]) -> str:
    match name:
        case "write_to_file":
            return str(given["content"])
        case "edit" | "search_replace":
            return swap(file, given["old_string"], given["new_string"], given.get("replace_all", False))
        case "insert_content":
            return put_in(file, given["line"] - 1 if given["line"] else len(file.split("\n")), given["content"])
        case "apply_diff":
            return patch(file, given["diff"])
        case other:
            raise AssertionError(other)


def edit_as_opencode(file: str, name: str, given: dict[str, Any]) -> str:
    if name == "write":
        return str(given["content"])
    return swap(file, given["oldString"], given["newString"], given.get("replaceAll", False))


def edit_as_claude_code(file: str, name: str, given: dict[str, Any]) -> str:
    if name == "Write":
        return str(given["content"])
    return swap(file, given["old_string"], given["new_string"], given.get("replace_all", False))


Editor = Callable[[str, str, dict[str, Any]], str]
EDITORS: dict[str, Editor] = {
    "anthropic": edit_as_anthropic,
    "roo": edit_as_roo,
    "opencode": edit_as_opencode,
    "claude_code": edit_as_claude_code,
}


def work(editor: Editor, file: str, calls: list[tuple[str, str]]) -> str | None:
    try:
        for name, arguments in calls:
            file = editor(file, name, json.loads(arguments))
    except Refused:
        return None
    return file
