"""Edits of files as clients write them in calls and results: failed ones, the text they look for, files that were read.

    reports_missing_text("String to replace not found in file.")      True
    read_edit({"path": "a.py", "old_str": "x = 1", "new_str": "x"})   Edit("a.py", ("x = 1",), ("x",))
    read_path({"filePath": "a.py"})                                   "a.py"
    strip_line_numbers("     1\tx = 1\n     2\ty = 2")                "x = 1\ny = 2"

Everything here looks at text of clients and models, takes linear time and never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from toolglot.core.conversation import Image, Message, Text, ToolResult

FAILURES: Final = (
    r"String to replace not found in file",  # Claude Code
    r"did not appear verbatim in",  # editors after Anthropic's text editor tool
    r"No match found for replacement",
    r"oldString not found in content",  # OpenCode, Kilo
    r"Could not find oldString in the file",
    r"No sufficiently similar match found",  # Roo, Kilo: apply_diff
    r"No match found for (?:the specified )?['\"`]?old_string",  # Roo: edit, search_replace
    r"\.\.\.does not match anything in the file",  # Cline: replace_in_file
    r"Failed to find (?:expected lines|context)\b",  # Codex: apply_patch
    r"0 occurrences found for old_string",  # Gemini CLI, Qwen Code
    r"could not find the string to replace",
    r"SEARCH block failed to exactly match lines",  # aider
    r"'old_str' must appear exactly once in the file, but it does not appear",  # goose
    r"old_string not found in (?:the )?(?:file|content)",  # Crush and others
)
"""Sentences with which clients report that the text of an edit is not in the file, as regular expressions."""

_FAILURE: Final = re.compile("|".join(FAILURES), re.IGNORECASE)
_SEARCHED: Final = 1 << 14
"""How many characters of a result are searched for such a sentence; Cline repeats the text before it."""
_SIGNS: Final = ("not", "No", "ail", "0 occ")
"""Every such sentence contains one of these, which are found faster."""
_RECENT: Final = 12
"""How many messages are looked at for edits that fail again."""
_SHORT: Final = 600
"""A longer result is not looked at for that."""
PATH_KEYS: Final = (
    *("path", "file_path", "filePath", "filepath", "file", "filename", "target_file"),
    *("absolute_path", "relative_path", "uri"),
)
OLD_KEYS: Final = ("old_string", "oldString", "old_str", "oldStr", "old_text", "oldText", "search", "find")
NEW_KEYS: Final = ("new_string", "newString", "new_str", "newStr", "new_text", "newText", "replace", "replacement")
_LIST_KEYS: Final = ("edits", "operations", "changes", "replacements")
CONTENT_KEYS: Final = ("content", "contents", "file_text", "text")
_BLOCK_KEYS: Final = ("diff", "patch", "patchText", "input", "command", "cmd")
_SEARCH: Final = re.compile(r"(?:<{5,}|-{5,}) ?SEARCH>?\s*$")
_DIVIDER: Final = re.compile(r"={5,}\s*$")
_LOCATION: Final = re.compile(r":(?:start|end)_line:.*$|-{5,}\s*$")
_PATCH: Final = "*** Begin Patch"
_UPDATED: Final = "*** Update File: "
_READERS: Final = frozenset(("cat", "sed", "head", "tail", "nl", "bat", "less", "more", "type", "Get-Content"))
_NUMBERED: Final = re.compile(r"[ \t]*(\d{1,7})(?:→|\t| ?\| ?|: ?)(.*)", re.DOTALL)
_LONGEST_COMMAND: Final = 4000


class Edit(Struct, frozen=True):
    """The texts that a call wants to replace in a file, and their replacements, if the call has them as such."""

    path: str
    old: tuple[str, ...]
    new: tuple[str, ...] = ()


def reports_missing_text(result: str) -> bool:
    """Whether a tool result reports that the text of an edit is not in the file."""
    return _FAILURE.search(result, 0, _SEARCHED) is not None


def edits_fail(messages: Sequence[Message]) -> bool:
    """Whether the last result reports such an edit, and one of the results shortly before it does, too."""
    parts = (part for message in reversed(messages[-_RECENT:]) for part in reversed(message.parts))
    texts = ("".join(map(_text_of, part.content)) for part in parts if isinstance(part, ToolResult))
    reports = (
        len(text) <= _SHORT and any(map(text.__contains__, _SIGNS)) and reports_missing_text(text) for text in texts
    )
    return next(reports, False) and any(reports)


def _text_of(part: Text | Image) -> str:
    return part.text if isinstance(part, Text) else ""


def read_edit(arguments: Mapping[str, Any]) -> Edit | None:
    """The edit in the arguments of a call; None if it is none, or one without the text to replace."""
    blocks = list(_texts_at(arguments, _BLOCK_KEYS))
    patch = next((text for text in blocks if _PATCH in text), None)
    if patch is not None:
        return _read_patch(patch)
    path = read_path(arguments)
    old, new = _read_pairs(arguments)
    if not old:
        old = tuple(block for text in blocks for block in _read_blocks(text))
    return Edit(path, old, new) if path and old else None


def _read_pairs(arguments: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts to replace and their replacements, of the call itself or of a list of edits."""
    listed = [one for key in _LIST_KEYS for one in _dicts_in(arguments.get(key))]
    edits = [one for one in (arguments, *listed) if _text_at(one, OLD_KEYS)]
    old, new = ([_text_at(one, keys) for one in edits] for keys in (OLD_KEYS, NEW_KEYS))
    return tuple(filter(None, old)), tuple(text for text in new if text is not None)


def read_path(arguments: Mapping[str, Any]) -> str:
    """The path of a call for one file; empty if there is none."""
    return _text_at(arguments, PATH_KEYS) or ""


def read_content(arguments: Mapping[str, Any]) -> str | None:
    """The whole text that a call writes to a file; None if it writes none."""
    return _text_at(arguments, CONTENT_KEYS)


def read_shown_paths(arguments: Mapping[str, Any]) -> list[str]:
    """The paths that a shell command shows, such as ``cat a.py``."""
    commands = _texts_at(arguments, ("command", "cmd"))
    words = [word.strip("\"'`;,") for command in commands for word in command[:_LONGEST_COMMAND].split()]
    return [word for word in words if "." in word or "/" in word] if _READERS.intersection(words) else []


def strip_line_numbers(listing: str) -> str:
    """The lines of a numbered listing, without their numbers and without what stands before and after them; any other
    text as it is."""
    lines = listing.split("\n")
    found = [_NUMBERED.fullmatch(line) for line in lines]
    first = next((at for at, line in enumerate(found) if line is not None), len(lines))
    kept: list[str] = []
    expected = -1
    for numbered in found[first:]:
        if numbered is None or expected not in (-1, int(numbered[1])):
            break
        expected = int(numbered[1]) + 1
        kept.append(numbered[2])
    if not kept or any(found[first + len(kept) :]):
        return listing
    return "\n".join(kept)


def same_path(one: str, other: str) -> bool:
    """Whether two paths name the same file; one may be absolute and the other relative."""
    first, second = _plain_path(one), _plain_path(other)
    return first == second or first.endswith("/" + second) or second.endswith("/" + first)


def _plain_path(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./")


def _text_at(holder: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := holder.get(key), str)), None)


def _texts_at(holder: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        value = holder.get(key)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                yield text


def _dicts_in(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _read_blocks(diff: str) -> Iterator[str]:
    """The texts to replace of SEARCH/REPLACE blocks."""
    block: list[str] | None = None
    for line in diff.split("\n"):
        if block is None:
            block = [] if _SEARCH.match(line) else None
        elif _DIVIDER.match(line):
            yield "\n".join(block)
            block = None
        elif block or not _LOCATION.match(line):
            block.append(line)


def _read_patch(patch: str) -> Edit | None:
    """The first updated file of a patch, and the old lines of its hunks."""
    start = patch.find(_UPDATED)
    if start < 0:
        return None
    path, _, rest = patch[start + len(_UPDATED) :].partition("\n")
    hunks: list[list[str]] = [[]]
    for line in rest.split("\n"):
        if line.startswith("*** "):
            break
        if line.startswith("@@"):
            hunks.append([])
        elif line[:1] in (" ", "-"):
            hunks[-1].append(line[1:])
        elif not line:
            hunks[-1].append(line)
    old = tuple("\n".join(hunk) for hunk in hunks if any(hunk))
    return Edit(path.strip(), old) if path.strip() and old else None
