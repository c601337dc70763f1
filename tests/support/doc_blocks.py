"""Code blocks of the docs: finding them, and the commands in shell blocks."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^( *)(`{3,})([\w-]*)\n(.*?)^\1\2$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:^(?: {4}.*)?\n)+", re.MULTILINE)
COMMAND = re.compile(r"(?:[A-Z_]+=\S* )*(?:toolglot|make) ")
HERE_DOCUMENT = re.compile(r"<<'(\w+)'")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
OPERATORS = ("|", ">", ">>", "2>>", "2>", "<", ";", "&&", "&")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def find_blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, and commands in indented ones as blocks of the language ``sh``."""
    text = page.read_text("utf-8")
    found = [
        Block(page, text.count("\n", 0, match.start()) + 1, match[3], textwrap.dedent(match[4]))
        for match in FENCE.finditer(text)
    ]
    rest = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
    for match in INDENTED.finditer(rest):
        lines = [line.strip() for line in match[0].splitlines() if COMMAND.match(line.strip())]
        if lines:
            found.append(Block(page, text.count("\n", 0, match.start()) + 1, "sh", "\n".join(lines) + "\n"))
    return found


def find_inline_commands(page: Path) -> list[str]:
    """The commands in the text and the tables of a page; names in capitals stand for something."""
    text = FENCE.sub("", page.read_text("utf-8"))
    found = re.findall(r"`((?:[A-Z_]+=\S+ )*(?:toolglot|make|curl) (?:[a-z-][^`]*))`", text)
    return [" ".join(command.split()) for command in found]


def split_commands(text: str) -> Iterator[str]:
    """The commands of a shell block. One may have several lines: quotes, here documents, a backslash at the end."""
    lines = iter(text.splitlines())
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        command = line
        here = HERE_DOCUMENT.search(line)
        while here is not None:
            command += "\n" + (last := next(lines))
            here = None if last == here[1] else here
        while not _is_whole(command):
            command += "\n" + next(lines)
        yield command


def _is_whole(command: str) -> bool:
    if HERE_DOCUMENT.search(command):
        return True
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return not command.endswith("\\")


def split_words(command: str) -> list[str]:
    """The words of a command up to a pipe or redirection, without assignments before it and without comments."""
    words = shlex.split(command.partition("<<")[0].replace("\\\n", " "), comments=True)
    end = next((number for number, word in enumerate(words) if word in OPERATORS), len(words))
    words = words[:end]
    while words and ASSIGNMENT.fullmatch(words[0]):
        del words[0]
    return words
