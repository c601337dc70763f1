"""Edits of files that have one setting to a line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from toolglot.clients.setting_paths import REMOVED, UNUSUAL, SettingPath

COMMENT: Final = re.compile(r"[ \t]+#[^\"'\n]*(?=\n?\Z)")
"""A comment at the end of a line."""


def find_comment(line: str) -> str:
    """The comment at the end of a line, with the blanks before it."""
    found = COMMENT.search(line)
    return found.group() if found else ""


def set_line(lines: list[str], pattern: str, new: str, within: range) -> None:
    """Replace the line that matches the pattern. If there is none, insert one behind the last line that is neither
    blank nor a comment, or at the start."""
    found = next((at for at in within if re.match(pattern, lines[at])), None)
    if found is not None:
        lines[found] = new + find_comment(lines[found]) + "\n"
        return
    at = max((at + 1 for at in within if lines[at].split("#")[0].strip()), default=within.start)
    end_line(lines, at)
    lines.insert(at, new + "\n")


def end_line(lines: list[str], at: int | None = None) -> None:
    """Add the line break that the line before this place may lack."""
    last = (len(lines) if at is None else at) - 1
    if last >= 0 and not lines[last].endswith("\n"):
        lines[last] += "\n"


# Variables


def parse_variables(text: str) -> dict[str, str]:
    """Variables, one to a line."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#"))
    return {
        name.strip().removeprefix("export ").strip(): _unquote(COMMENT.sub("", value).strip())
        for name, _, value in pairs
    }


def _unquote(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def merge_variables(text: str, changes: Mapping[str, Any]) -> str:
    lines = text.splitlines(keepends=True)
    for name, value in changes.items():
        set_line(lines, _match_variable(name), f"{name}={value}", range(len(lines)))
    return "".join(lines)


def change_variables(text: str, changes: Mapping[SettingPath, Any]) -> str:
    """Replace or remove (``REMOVED``) variables that the file has. Raises: ValueError."""
    lines = text.splitlines(keepends=True)
    for (name,), value in changes.items():
        if not any(re.match(_match_variable(name), line) for line in lines):
            raise ValueError(UNUSUAL)
        if value is REMOVED:
            lines = [line for line in lines if not re.match(_match_variable(name), line)]
        else:
            set_line(lines, _match_variable(name), f"{name}={value}", range(len(lines)))
    return "".join(lines)


def _match_variable(name: str) -> str:
    return rf"\s*(?:export\s+)?{re.escape(name)}\s*="
