"""Parse and write the SEARCH/REPLACE blocks of Roo's apply_diff.

    <<<<<<< SEARCH
    :start_line:5
    -------
    the old lines
    =======
    the new lines
    >>>>>>> REPLACE

Strategy. Lines are parsed one by one. A content line that begins like a mark is escaped with a backslash, which is
removed again; nothing else is escaped, so a line that begins with a backslash and a mark cannot be written. Roo
compares and replaces whole lines, skips blank lines after its marks, strips trailing whitespace of new lines, keeps the
kind of indentation of the first old line, deletes lines together with their line break if the replacement is empty, and
removes line numbers if all lines have one. All of that is checked before a block is written, and a text that Roo would
change is refused. A line break that ends both texts, or the old one if the replacement is empty, ends the lines of a
block and is not one more line in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.clients.toolsets.operations import Untranslatable

SEARCH, SEPARATOR, REPLACE, HEAD_SEPARATOR = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "-------"
SEARCH_MARKS: Final = (SEARCH, SEARCH + ">")
ESCAPED_MARKS: Final = ("<<<<<<<", "=======", ">>>>>>>", HEAD_SEPARATOR, ":start_line:", ":end_line:")
_HEAD: Final = tuple(map(re.compile, (r":start_line:\s*([0-9]+)", r":end_line:\s*[0-9]+", HEAD_SEPARATOR)))
_JS_WHITESPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""Whitespace in JavaScript."""
_NUMBERED: Final = re.compile(rf"[{_JS_WHITESPACE}]*[0-9]+[{_JS_WHITESPACE}]+\|(?!\|)")
_OTHER_LINE_ENDS: Final = re.compile("[\r\u2028\u2029]")


class DiffBlock(Struct, frozen=True):
    old: str
    new: str
    start_line: int | None = None


def parse_diff(diff: str) -> tuple[DiffBlock, ...]:
    """The blocks of a diff. Raises ``Untranslatable`` where Roo would refuse it, or apply it differently."""
    if _OTHER_LINE_ENDS.search(diff):
        raise Untranslatable("a diff with line ends other than LF is not read the same way everywhere")
    lines = iter(diff.split("\n"))
    found: list[DiffBlock] = []
    for line in lines:
        if line.rstrip(_JS_WHITESPACE) in SEARCH_MARKS:
            found.append(_read_block(lines))
        elif line.strip(_JS_WHITESPACE):
            raise Untranslatable("a diff holds text outside of its blocks")
    if not found:
        raise Untranslatable("a diff holds no block of SEARCH and REPLACE")
    return tuple(found)


def _read_block(lines: Iterator[str]) -> DiffBlock:
    old, new = _read_part(lines, SEPARATOR), _read_part(lines, REPLACE)
    start: int | None = None
    for head in _HEAD:
        if old and (found := head.fullmatch(old[0].rstrip(_JS_WHITESPACE))):
            start = int(found[1]) if head is _HEAD[0] else start
            old.pop(0)
    block = DiffBlock(_unescape(old), _unescape(new), start or None)
    check_block(block.old, block.new)
    return block if block.new else replace(block, old=block.old + "\n")


def _read_part(lines: Iterator[str], closer: str) -> list[str]:
    part: list[str] = []
    for line in lines:
        bare = line.strip(_JS_WHITESPACE)
        if line.rstrip(_JS_WHITESPACE) == closer:
            return part
        if _is_mark(bare) or (closer is REPLACE and bare.startswith(ESCAPED_MARKS[-2:])):
            raise Untranslatable(f"a diff holds the mark {bare[:40]} where {closer} was due")
        part.append(line)
    raise Untranslatable(f"a diff ends without {closer}")


def _is_mark(bare: str) -> bool:
    """Whether Roo treats a line as a mark, wherever in the line it is."""
    return bare == SEPARATOR or bare.startswith((SEARCH[:7], REPLACE[:7]))


def _unescape(lines: Sequence[str]) -> str:
    return "\n".join(
        line[1:] if line.startswith("\\") and line[1:].startswith(ESCAPED_MARKS) else line for line in lines
    )


def check_block(old: str, new: str) -> None:
    """Raise ``Untranslatable`` where replacing whole lines differs from replacing text."""
    if not old:
        raise Untranslatable("nothing to search for: an empty SEARCH is not allowed")
    for part in (old, new):
        if part and not part.split("\n", 1)[0].strip(_JS_WHITESPACE):
            raise Untranslatable("blank lines at the beginning of SEARCH or REPLACE are skipped")
    if is_numbered(old) and (is_numbered(new) or not new.strip(_JS_WHITESPACE)):
        raise Untranslatable("lines that all begin with a number and a bar lose them")


def is_numbered(part: str) -> bool:
    """Whether every line begins with a number and a bar, as clients show the lines of a file."""
    return all(_NUMBERED.match(line) for line in part.split("\n"))


def write_diff(old: str, new: str) -> str:
    """A block that makes Roo replace the old text by the new one. Raises ``Untranslatable``."""
    if not new and not old.endswith("\n"):
        raise Untranslatable(
            "an empty REPLACE deletes the lines together with their line break, an empty text leaves that behind"
        )
    if old.endswith("\n") and (not new or new.endswith("\n")):
        old, new = old[:-1], new[:-1]
    if _OTHER_LINE_ENDS.search(old + new):
        raise Untranslatable("apply_diff does not keep line ends other than LF as they are written")
    check_block(old, new)
    if new and reindent(old, new) != new:
        raise Untranslatable("apply_diff changes indentation of another kind and blanks at the end of new lines")
    diff = "\n".join((SEARCH, *_escape(old), SEPARATOR, *_escape(new), REPLACE))
    if parse_diff(diff) != (DiffBlock(old if new else old + "\n", new),):
        raise Untranslatable("a line of the text is a mark of the diff and cannot be escaped")
    return diff


def _escape(part: str) -> Iterator[str]:
    for line in part.split("\n"):
        yield "\\" + line if line.startswith(ESCAPED_MARKS) else line


def reindent(old: str, new: str) -> str:
    """The new lines with the indentation that Roo gives them where the old ones match exactly."""
    base = _indentation(old)
    return "\n".join(_reindent_line(line, base) for line in new.split("\n"))


def _reindent_line(line: str, base: str) -> str:
    own = _indentation(line)
    kept = base[: len(own)] if len(own) < len(base) else base + own[len(base) :]
    return kept + line.strip(_JS_WHITESPACE)


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip("\t "))]
