"""Values that toolglot's own prompts make up for examples, and how they are recognised in a call.

make_word("read_file", "path")     zqbodarimu: the same in every turn and every process
find_made_up('{"path":"src/ZQBODARIMU.md"}')

Strategy. A made-up value must never reach a client, so it is recognisable by itself, whichever prompt it comes from. A
word begins with letters that begin no word, and its second half follows from its first. A number has nine digits: four
fixed ones, three that vary and two that follow from these. Both are derived from the names of tool and parameter alone.
Schemas that admit neither get one of a few fixed texts, or a number that is not recognised. Models change the case of
words, put them into longer texts and write letters as JSON escapes; all of that is found.

An answer may arrive in pieces. ``find_open_end`` says which end of a piece may be the beginning of a made-up value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import Final

from msgspec import Struct

KEEP: Final = "[... keep your value of {} here ...]"
WRITE: Final = "[... write your value of {} here ...]"
"""Placeholders for the texts that a model must write itself."""
FIXED: Final = ("7219-04-17", "72190000-7219-4219-8219-721907219072", "7219::7219", "72.19.72.19")
"""Values of formats that have no place for a word or a number."""
_SYLLABLES: Final = tuple(head + vowel for head in "bdfgklmnprstv" for vowel in "aeiou")
_CODES: Final = len(_SYLLABLES) ** 2
_STEP: Final = 1733
"""The distance between the codes of two values of one parameter, which are far apart then."""
_BEGINNINGS: Final = ("zq", "7219", "72.19", "[... ")
_HEADS: Final = tuple(text.partition("{}")[0] for text in (KEEP, WRITE))


def _derive(most: int, *seed: str) -> int:
    return int.from_bytes(blake2b("\0".join(seed).encode("utf-8", "replace"), digest_size=8).digest()) % most


def _spell(code: int) -> str:
    return _SYLLABLES[code // len(_SYLLABLES)] + _SYLLABLES[code % len(_SYLLABLES)]


def _complete(half: str) -> str:
    """The word that begins with these two syllables."""
    return f"zq{half}{_spell(_derive(_CODES, 'word', half))}"


def make_word(*seed: str, number: int = 0) -> str:
    """A word that stands for a value; another ``number`` gives another word."""
    return _complete(_spell((_derive(_CODES, *seed) + number * _STEP) % _CODES))


def make_number(*seed: str, number: int = 0) -> int:
    """A number that stands for a value; another ``number`` gives another one."""
    varied = (_derive(1000, *seed) + number * _STEP) % 1000
    return 721900000 + varied * 100 + _derive(100, "number", str(varied))


class MadeUpValue(Struct, frozen=True):
    """A made-up value in a text, in lower case, and where it begins."""

    value: str
    start: int


def find_made_up(arguments: str, known: Collection[str] = ()) -> MadeUpValue | None:
    """Find the first made-up value in the JSON text of arguments; those that are ``known`` are the user's own."""
    for found in _CANDIDATE.finditer(arguments):
        value = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), found[1]).lower()
        if _is_made_up(value) and value not in known:
            return MadeUpValue(value, found.start())
    return None


def _is_made_up(value: str) -> bool:
    if value.startswith("zq"):
        return value == _complete(value[2:6])
    return not value.isdecimal() or int(value) % 100 == _derive(100, "number", str(int(value) // 100 % 1000))


def find_open_end(arguments: str) -> int:
    """Where the end of a text begins that may be the beginning of a made-up value; its length if there is none."""
    found = _OPEN_END.search(arguments)
    return len(arguments) if found is None else found.start()


def list_made_up(text: str) -> frozenset[str]:
    """The made-up values that stand in a text of the conversation: they may be what the user means."""
    if not any(map(text.lower().__contains__, _BEGINNINGS)):
        return frozenset()
    return frozenset(filter(_is_made_up, (found[1].lower() for found in _CANDIDATE.finditer(text))))


_ESCAPE: Final = re.compile(r"\\u00([0-7][0-9a-fA-F])")
_HALF_ESCAPE: Final = r"\\(?:u(?:0(?:0[0-7]?)?)?)?"
_WORD: Final = ("z", "q", *["[a-z]"] * 8)
_FORMS: Final = (_WORD, (*"7219", *["[0-9]"] * 5), *(tuple(map(re.escape, text)) for text in (*FIXED, *_HEADS)))
"""The characters of each kind of made-up value."""


def _write_form(form: Iterable[str]) -> str:
    return "".join(f"(?:{character}|{_ESCAPE.pattern.replace('(', '(?:')})" for character in form)


def _write_beginnings(form: tuple[str, ...]) -> str:
    """A pattern for all beginnings of a form at the end of a text."""
    pattern = ""
    for character in reversed(form):
        pattern = f"(?:{_write_form([character])}{pattern}|{_HALF_ESCAPE})?"
    return pattern.removesuffix("?")


_CANDIDATE: Final = re.compile(
    "(?=(" + "|".join(map(_write_form, _FORMS)) + r"))(?<![0-9](?=[0-9]))(?![0-9]{10})", re.I
)
_OPEN_END: Final = re.compile(
    "(?:" + "|".join(_write_beginnings(form[:-1] if form is _WORD else form) for form in _FORMS) + r")\Z", re.I
)
LOOKS_MADE_UP: Final = re.compile(r"[zZ](?:[qQ\\]|\Z)|7(?:[2\\]|\Z)|\[(?:[.\\]|\Z)|\\(?:u0[0-7]|u?0?\Z)").search
"""Search what a text has if it holds a made-up value, or ends with the beginning of one."""
