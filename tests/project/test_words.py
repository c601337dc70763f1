"""Retired words: metaphors and vague words that names, docstrings, comments and messages no longer use.

``docs/glossary.md`` has the words to use instead. In tests, strings other than docstrings are data and may have any word.
"""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from support.rows import in_one_test

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {path: path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}
TESTS = [
    path
    for path in sorted((ROOT / "tests").rglob("*.py"))
    if path != Path(__file__) and path.relative_to(ROOT / "tests").parts[0] not in ("sim", "data")
]

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
    "speak": r"def speak\(|toolglot speak|\"speak\"|library import .*speak",
    "speech": r"as Speech\b|-> Speech:|\"Speech\"",
    "told": r"told apart",
    "visit": r"\|visit\||cc_visit",  # a verb that the simulated model understands; a function of radon
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


@cache
def list_words(text: str) -> frozenset[str]:
    return frozenset().union(*(parts for _, parts in split_lines(text)))


def find_word(word: str, text: str) -> Iterator[int]:
    """The lines that hold a word, alone, in the plural, or as a part of a name in any style."""
    if " " not in word and list_words(text).isdisjoint((word, f"{word}s")):
        return
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
def test_removed_names_stay_away(pattern: str) -> None:
    found = [
        f"{name_of(path)}:{number} {match.group()}"
        for path, text in SOURCES.items()
        for number, line in enumerate(text.splitlines(), 1)
        for match in re.finditer(pattern, line)
    ]
    assert found == []


def read_prose(path: Path) -> str:
    """The names, comments and docstrings of a file, in their lines."""
    lines = [""] * (len(path.read_text("utf-8").splitlines()) + 1)
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            prose = token.type in (tokenize.NAME, tokenize.COMMENT) or token.string.startswith(('"""', 'r"""'))
            for at, text in enumerate(token.string.splitlines() if prose else ()):
                lines[token.start[0] + at - 1] += f" {text}"
    return "\n".join(lines)


@cache
def prose_of_tests() -> dict[Path, str]:
    return {path: read_prose(path) for path in TESTS}


def test_strings_of_tests_are_data(tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    path.write_text('"""The\ndoor."""\n\ndoor = "the door"  # no door\nx = f"door {door}"\n', "utf-8")
    assert list(find_word("door", read_prose(path))) == [2, 4]


@in_one_test("word", RETIRED)
def test_retired_words_stay_away_from_tests(word: str) -> None:
    found = [f"{name_of(path)}:{number}" for path, text in prose_of_tests().items() for number in find_word(word, text)]
    assert found == [], f"{word}: see docs/glossary.md for the word to use"


@in_one_test("word", RETIRED)
def test_retired_words_stay_away(word: str) -> None:
    found = [f"{name_of(path)}:{number}" for path, text in SOURCES.items() for number in find_word(word, text)]
    assert found == [], f"{word}: see docs/glossary.md for the word to use"
