"""Retired words: metaphors and vague words that names, docstrings and messages in ``src/`` no longer use.

``docs/glossary.md`` has the words to use instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {path: path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}

GONE = (
    # identifiers of earlier versions, as they were written
    r"\b_?(?:Door|House|Visit|Errand|Inquiry|Guest|Acquaintance|Mould|Twins?|Rehearsal|Trial|Lesson|Passage)\b",
    r"\b_?(?:Seal|Room|Wish|Experience|Shelf|Ladder|Trail|Mending|Knowledge|Answerer|Watch|UnsureError)\b",
    r"\b_?(?:Frame|Draft|Ledger|Sink|Machine|Spoiled|Loss|Translation|Relay|LAST_WORDS)\b",
    r"(?i)\bacquaintances?\b",
)
"""Regular expressions on the text of a file."""

RETIRED = (
    *("door", "house", "visit", "errand", "guest", "twin", "mould", "seal", "sealed", "lesson", "keepsake", "drawer"),
    *(
        "told",
        "telling",
        "speak",
        "speaking",
        "speech",
        "spoken",
        "speaker",
        "said",
        "heard",
        "unheard",
        "mend",
        "mended",
    ),
    *(
        "mending",
        "rehearse",
        "rehearsal",
        "trial",
        "passage",
        "inquiry",
        "wish",
        "shelf",
        "ladder",
        "trail",
        "knowledge",
    ),
    *("experience", "manner", "room", "nobody", "anybody", "somebody", "everybody", "whoever", "lives", "joiner"),
    *("retreat", "bond", "way there", "way back"),
)
"""Words in any case, in prose and as parts of names. ``tell``, ``say``, ``hear``, ``meet``, ``word``, ``who``, ``stands`` and
``beat`` are retired as metaphors too, but have ordinary uses, so reviewers look for them."""

ALLOWED = {
    "experience": r'getLogger\("toolglot\.experience"\)',
    "guest": r'"guest"',  # a value of a protocol that the simulated model checks
    "lesson": r'"lessons"',  # a key of a file that was written before
    "rehearsal": r"rehearsal_failed",  # in records that were written before
    "room": r'"room"',  # a property that the simulated model fills
    "said": r"(?:The tool|You) said: |wrote\|said\||says\?\|said",
    "speak": r"as speak\b|\"speak\"",
    "speech": r"as Speech\b|\"Speech\"",
    "told": r"told apart",
    "visit": r"\|visit\|",  # a verb that the simulated model understands
    "wish": r"\|wish\)",
}
"""Public names that stay, by word."""

PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def split_lines(text: str) -> list[tuple[str, frozenset[str]]]:
    """Each line in lower case, and the words in it; names are split into theirs."""
    return [(line.lower(), frozenset(part.lower() for part in PARTS.findall(line))) for line in text.splitlines()]


def find_word(word: str, text: str) -> Iterator[int]:
    """The lines that hold a word, alone, in the plural, or as a part of a name in any style."""
    allowed = ALLOWED.get(word)
    for number, (line, parts) in enumerate(split_lines(re.sub(allowed, "", text) if allowed else text), 1):
        if word in parts or f"{word}s" in parts or (" " in word and word in line):
            yield number


def test_words_are_found_in_names_and_prose() -> None:
    text = "class FrontDoor:\n    two_doors = 1\n    # the door\n    indoor = 'Outdoors'\n    DOOR = 0"
    assert list(find_word("door", text)) == [1, 2, 3, 5]
    assert list(find_word("way back", "On the way back.\nway_back")) == [1]
    assert list(find_word("rehearsal", "'rehearsal_failed'\n'rehearsal'")) == [2]


@pytest.mark.parametrize("pattern", GONE)
def test_words_that_are_gone_stay_away(pattern: str) -> None:
    found = [
        f"{name_of(path)}:{number} {match.group()}"
        for path, text in SOURCES.items()
        for number, line in enumerate(text.splitlines(), 1)
        for match in re.finditer(pattern, line)
    ]
    assert found == []


@pytest.mark.parametrize("word", RETIRED)
def test_retired_words_stay_away(word: str) -> None:
    found = [f"{name_of(path)}:{number}" for path, text in SOURCES.items() for number in find_word(word, text)]
    assert found == [], f"{word}: see docs/glossary.md for the word to use"
