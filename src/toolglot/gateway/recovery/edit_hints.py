"""Shows a model the real lines of a file when its edit failed because the text was not found.

Strategy. One walk through the history keeps the newest known text of each file: what a call has read, without line
numbers, or written, with later edits applied where they fit. Where the result of an edit reports that its text is
missing, the lines nearest to that text are appended to the result. Each line of the searched text votes for the offset
at which the same line, but for its whitespace, stands in the file; without any such line the one that shares the most
words decides. All of it takes linear time, long files are skipped, and hints are cached because clients resend their
history with every turn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct, field

from toolglot.clients.edit_failures import (
    Edit,
    read_content,
    read_edit,
    read_path,
    read_shown_paths,
    reports_missing_text,
    same_path,
    strip_line_numbers,
)
from toolglot.core.conversation import Message
from toolglot.core.text_cache import TextCache
from toolglot.gateway.recovery.annotations import Annotation, list_steps, read_arguments, text_of

MAX_FILE: Final = 1 << 20
MAX_LINES: Final = 40
MAX_CHARACTERS: Final = 4000
MAX_WORK: Final = 1 << 26
"""Characters of files that are searched for the texts of edits, for one request."""
MOST_NAMESAKES: Final = 16
"""Files with the same name in different folders that are known."""
CONTEXT_LINES: Final = 3
"""Lines before and after the searched text that are shown."""
_MOST_SEARCHED: Final = 400
"""How many lines of the searched text are compared."""
_MOST_POSITIONS: Final = 20
"""Lines that occur more often say nothing about the place."""
_LEAST_OVERLAP: Final = 0.5
_WORD: Final = re.compile(r"\w+")
_FENCE: Final = re.compile(r"`{3,}")
_HINTS: Final[TextCache[bytes]] = TextCache(1 << 20)
"""Nearest lines, by a digest of file and searched text."""


class _File(Struct):
    """The newest known text of a file. ``changed``: it was edited since, in an unknown way."""

    path: str
    text: str
    changed: bool = False


class _Files(Struct):
    """The files of a conversation, by the last part of their paths."""

    by_name: dict[str, list[_File]] = field(default_factory=dict)
    budget: int = MAX_WORK

    def find(self, path: str) -> _File | None:
        files = self.by_name.get(_file_name(path), ())
        return next((file for file in reversed(files) if same_path(file.path, path)), None)

    def set(self, path: str, text: str) -> None:
        files = self.by_name.setdefault(_file_name(path), [])
        files[:] = [file for file in files if not same_path(file.path, path)][1 - MOST_NAMESAKES :]
        files.append(_File(path, text))

    def contains(self, file: _File, text: str) -> bool:
        """Whether the file contains the text; False as soon as too much was searched."""
        self.budget -= len(file.text)
        return self.budget > 0 and text in file.text

    def apply(self, edit: Edit) -> None:
        """Make the same edit here, if that is possible."""
        file = self.find(edit.path)
        if file is None:
            return
        fits = len(edit.old) == len(edit.new)
        for old, new in zip(edit.old, edit.new, strict=False):
            fits = fits and self.contains(file, old) and len(file.text) + len(new) <= MAX_FILE
            file.text = file.text.replace(old, new, 1) if fits else file.text
        file.changed = file.changed or not fits


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def find_edit_hints(messages: Sequence[Message]) -> Iterator[Annotation]:
    """The nearest real lines for each failed edit of a file that was read before, in a healed history."""
    files = _Files()
    for step in list_steps(messages):
        for call in step.calls if step is not None else ():
            result = step.results.get(call.id) if step is not None else None
            if step is None or result is None:
                continue
            text, arguments = text_of(result), read_arguments(call)
            edit = read_edit(arguments)
            if edit is None:
                if not result.error:
                    _learn(files, arguments, text)
            elif not reports_missing_text(text):
                if not result.error:
                    files.apply(edit)
            elif hint := _write_hint(files, edit):
                at, part = step.places[call.id]
                note = f"the nearest lines of {edit.path} were added to the result of {call.name}"
                yield Annotation(at=at, part=part, text=hint, note=note)


def _learn(files: _Files, arguments: Mapping[str, object], result: str) -> None:
    """Keep the text that a call has read or written."""
    path = read_path(arguments)
    if path:
        written = read_content(arguments)
        text = strip_line_numbers(result) if written is None else written
        if len(text) <= MAX_FILE and (written is not None or "\n" in text):
            files.set(path, text)
        return
    shown = read_shown_paths(arguments)
    if len(shown) == 1 and "\n" in result and len(result) <= MAX_FILE:
        files.set(shown[0], strip_line_numbers(result))


def _write_hint(files: _Files, edit: Edit) -> str:
    file = files.find(edit.path)
    if file is None:
        return ""
    missing = next((old for old in edit.old if old.strip() and not files.contains(file, old)), "")
    lines = _find_nearest(file.text, missing) if missing and files.budget > 0 else ""
    if not lines:
        return ""
    fence = "`" * max((len(found) + 1 for found in _FENCE.findall(lines)), default=3)
    when = ", before it was changed again" if file.changed else ""
    return (
        f"The text to replace is not in {edit.path}. These are the lines of the file that are nearest to it, exactly"
        f" as last seen in this conversation{when}:\n{fence}\n{lines}\n{fence}"
    )


def _find_nearest(text: str, searched: str) -> str:
    """The lines of a text that are nearest to the searched text; empty if none is similar."""
    raw = f"{len(text)}:{text}{searched}".encode("utf-8", "surrogatepass")
    key = sha256(raw).digest()[:16]
    found = _HINTS.get(key)
    if found is None:
        found = _search(text.split("\n"), searched.strip("\n").split("\n")[:_MOST_SEARCHED])
        _HINTS.add(key, found)
    return found


def _search(lines: Sequence[str], searched: Sequence[str]) -> str:
    offset = _find_offset(lines, searched)
    if offset is None:
        return ""
    start = offset
    if len(searched) + 2 * CONTEXT_LINES > MAX_LINES:  # only a part can be shown: the first lines that differ
        start += _count_equal(lines, searched, offset)
    end = min(len(lines), offset + len(searched) + CONTEXT_LINES)
    return _take_lines(lines[max(0, start - CONTEXT_LINES) : end])


def _find_offset(lines: Sequence[str], searched: Sequence[str]) -> int | None:
    """Where the searched lines would begin in the file."""
    wanted = [_squeeze(line) for line in searched]
    positions: dict[str, list[int]] = {line: [] for line in wanted if line}
    for at, line in enumerate(lines):
        same = positions.get(_squeeze(line))
        if same is not None and len(same) <= _MOST_POSITIONS:
            same.append(at)
    votes: Counter[int] = Counter()
    for number, line in enumerate(wanted):
        found = positions.get(line, ())
        for at in found if len(found) <= _MOST_POSITIONS else ():
            votes[at - number] += len(line)
    if votes:
        return max(votes, key=lambda offset: (votes[offset], -offset))
    longest = max(range(len(wanted)), key=lambda number: len(wanted[number]))
    similar = _find_similar_line(lines, wanted[longest])
    return None if similar is None else similar - longest


def _squeeze(line: str) -> str:
    return " ".join(line.split())


def _find_similar_line(lines: Sequence[str], wanted: str) -> int | None:
    """The line that shares the most words, in relation to all words of both."""
    words = set(_WORD.findall(wanted))
    best = 0.0
    place: int | None = None
    for at, line in enumerate(lines):
        found = set(_WORD.findall(line))
        shared = len(words & found)
        overlap = shared / len(words | found) if shared else 0.0
        if overlap > best:
            best, place = overlap, at
    return place if best >= _LEAST_OVERLAP else None


def _count_equal(lines: Sequence[str], searched: Sequence[str], offset: int) -> int:
    """How many of the searched lines are in the file as they are, before the first that differs."""
    for number, line in enumerate(searched):
        at = offset + number
        if not 0 <= at < len(lines) or lines[at] != line:
            return number
    return 0


def _take_lines(lines: Sequence[str]) -> str:
    """As many whole lines as the limits allow."""
    kept: list[str] = []
    size = 0
    for line in lines[:MAX_LINES]:
        size += len(line) + 1
        if size > MAX_CHARACTERS:
            break
        kept.append(line)
    return "\n".join(kept) if any(line.strip() for line in kept) else ""
