"""Words of natural languages, one TOML file a language in the folder ``languages``, for narrated stops and requests.

Strategy. A file holds lists of phrases, which a person who knows the language can review; docs/recovery.md explains the
lists. Only the languages of a text are read: those of its script, and in Latin script those whose frequent words
occur most often (``languages/languages.toml``). A list is compiled when it is needed first.

In a list, commas separate phrases, ``*`` is the rest of a word, ``a/b`` either word, ``(a)`` an optional word, and
``..`` up to six words.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

from toolglot.core.uncached_regex import compile_uncached

_FOLDER = Path(__file__).with_name("languages")
_INDIAN = r"[\w\u0900-\u0dff]"
"""A letter of Indian scripts, whose signs for vowels are no letters for ``re``."""
_DROPPED = dict.fromkeys([*range(0x064B, 0x0653), 0x0307, 0x0640, 0x093C, 0x200B, 0x200C, 0x200D, 0xFE0F])
"""Marks that writers leave out or add: Arabic vowels, dots of Turkish and Hindi letters, invisible characters."""
_FOLDED = str.maketrans("’ʼёँ\u00a0\u202fإآ", "''еं  اا")
_OPTIONAL = re.compile(r"( ?)\(([^()]*)\)$|\(([^()]*)\)( ?)")
_CHOICE = re.compile(r"[^\s()?:,|]+(?:/[^\s()?:,|]+)+")
_STEM = re.compile(r"[^*/().]+\*")
"""A phrase that ends with the rest of a word. These are compiled as one, which takes less time."""
_WORD = re.compile(r"\w+")
_SAMPLE = 600
"""How many characters decide which language a text is in."""
_SHARE = 4
"""A text is in another script if it has one letter of it for this many Latin ones."""


def fold(text: str) -> str:
    """A text in lower case, with one spelling for letters that are written in several ways."""
    text = text.lower()
    return text if text.isascii() else unicodedata.normalize("NFC", text).translate(_DROPPED).translate(_FOLDED)


class Language:
    """The lists of one language as compiled patterns: ``language.opens`` finds a phrase of *opens*. Some patterns
    are made of several lists."""

    def __init__(self, lists: dict[str, str | bool]) -> None:
        self.lists = lists
        self.spaceless = bool(lists.get("spaceless"))
        self.letter = _INDIAN if lists.get("indian") else r"\w"
        self.free_order = bool(lists.get("free_order"))

    def __getattr__(self, name: str) -> re.Pattern[str]:
        pattern = compile_uncached(self._write(name))
        setattr(self, name, pattern)
        return pattern

    def skip_leads(self, text: str, start: int = 0) -> int:
        """Where the words end that stand at the beginning of a clause and do not change it."""
        found = self.leads.match(text, start)
        return found.end() if found is not None else start

    def _write(self, name: str) -> str:
        """The expression of a list, or of what is made of several lists."""
        match name:
            case "clause":  # what stands before a clause inside a sentence
                signs = r"[,;:،؛，；：、–—(]\s*|\s-\s+"
                return rf"{signs}|\s(?={self._join('joins')}[, ])" if "joins" in self.lists else signs
            case "leads":
                return rf" ?(?:{self._join('leads')}[,:，：、]? ?)*+"
            case "doing" | "gerunds" if "acts" in self.lists and name in self.lists:  # endings of verbs
                subject = rf"(?:{self._list('subject')})\s?" if name == "doing" else ""
                return rf"{subject}(?:{self._list('acts')})(?:{self._list(name)})(?!{self.letter})"
            case "ends" | "plain_ends" | "now":
                return rf"{self._join(name)}(?=$| ?{self._join('joins')})"
        return self._join(name)

    def _join(self, name: str) -> str:
        """An expression for any phrase of a list, as whole words."""
        phrases = self._list(name)
        if not phrases or self.spaceless:
            return f"(?:{phrases})" if phrases else "(?!)"
        prefix = f"(?:{self._list('prefix')})?" if "prefix" in self.lists else ""
        return rf"(?<!{self.letter}){prefix}(?:{phrases})(?!{self.letter})"

    def _list(self, name: str) -> str:
        """The phrases of a list as alternatives."""
        text = fold(str(self.lists.get(name, "")))
        separator = "," if "," in text or name != "acts" else None
        phrases = [" ".join(phrase.split()) for phrase in text.split(separator)]
        stems = [phrase[:-1] for phrase in phrases if _STEM.fullmatch(phrase) is not None]
        written = [self._write_phrase(phrase) for phrase in phrases if phrase and phrase[:-1] not in stems]
        return "|".join([*written, f"(?:{'|'.join(stems)}){self.letter}*"] if stems else written)

    def _write_phrase(self, phrase: str) -> str:
        """A phrase as a regular expression."""
        phrase = _OPTIONAL.sub(r"(?:\1\2\3\4)?", phrase.replace(".", "\\."))
        phrase = _CHOICE.sub(lambda found: f"(?:{found[0].replace('/', '|')})", phrase)
        gap = r"[^,，。]{0,12}?" if self.spaceless else r",? (?:[^\s,]+ ){0,6}?"
        return phrase.replace(" \\.\\. ", gap).replace("*", f"{self.letter}*")


@cache
def load_language(name: str) -> Language:
    """Read the file of one language."""
    return Language(tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8")))


@cache
def load_signs(kind: str) -> dict[str, list[str]]:
    """The signs of a kind (*scripts*, *words*, *letters*), each with the languages in which it occurs."""
    index: dict[str, dict[str, str]] = tomllib.loads((_FOLDER / "languages.toml").read_text("utf-8"))
    signs: dict[str, list[str]] = {}
    for name, text in index[kind].items():
        for sign in set(text.split()):
            signs.setdefault(sign, []).append(name)
    return signs


def find_languages(text: str) -> list[Language]:
    """The languages that a folded text may be written in. The end of a long text decides."""
    text = text[-_SAMPLE:]
    words = load_signs("words")
    scores = Counter(name for word in _WORD.findall(text) for name in words.get(word, ()))
    if not text.isascii():
        shares = {names[0]: len(re.findall(script, text)) for script, names in load_signs("scripts").items()}
        name = max(shares, key=shares.__getitem__)
        if _SHARE * shares[name] > sum(letter.isalpha() and letter < "\u0250" for letter in text):
            return [load_language("ja" if name == "zh" and shares["ja"] else name)]
        letters = load_signs("letters")
        scores.update(name for letter in text for name in letters.get(letter, ()))
    best = max(scores.values(), default=0)
    return [load_language(name) for name, score in scores.items() if score == best] or [load_language("en")]
