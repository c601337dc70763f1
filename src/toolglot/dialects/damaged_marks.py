"""Compares text with the mark that was due there: a damaged mark differs from it by a few characters."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

_SLOTS = {
    "ns": re.compile(r"(?<=<)[\w\-]+:"),
    "suffix": re.compile(r":\w+(?=>\Z)"),
    "bar": re.compile(r"[|｜‖]{1,2}"),
}
"""Where the opening mark shows what fills a slot of the closing mark."""
_SLOT = re.compile(r"\{(\w+)\}|\s")
_SUFFIXES = re.compile(r"(?<=\w):\w+(?=>)")
_ATTRIBUTES = re.compile(r"""(?:\s+[\w:.\-]+\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"']+))*\s*/?""")
_BLANKS = re.compile(r"\s+")
QUOTES = ("'", '"')

MAX_DAMAGED = 80
"""The length of text that is compared with a mark."""


class RecentText:
    """The end of a text that arrives in pieces, none of them empty. A piece costs no more than a call of ``add``."""

    __slots__ = ("_pieces", "add")

    def __init__(self) -> None:
        self._pieces: deque[str] = deque(maxlen=MAX_DAMAGED)
        self.add = self._pieces.append

    @property
    def text(self) -> str:
        """Its last characters."""
        text = ""
        for piece in reversed(self._pieces):
            text = piece[-MAX_DAMAGED:] + text
            if len(text) >= MAX_DAMAGED:
                break
        return text[-MAX_DAMAGED:]


def spell_closer(template: str, opener: str, key: str) -> str:
    """Spell out the closing mark that belongs to this opening mark, without blanks."""

    return _SLOT.sub(lambda slot: key if slot[1] == "key" else _find_filling(slot[1], opener), template)


def _find_filling(slot: str | None, opener: str) -> str:
    found = _SLOTS[slot].search(opener) if slot in _SLOTS else None
    return found[0] if found is not None else ""


def _count_edits(text: str, due: str) -> list[int]:
    """Count the edits from each beginning of the text to ``due``.

    An edit inserts, deletes or replaces a character, or swaps two.
    """
    older: list[int] = []
    old: list[int] = []
    row = list(range(len(text) + 1))
    for line, wanted in enumerate(due, 1):
        older, old, row = old, row, [line]
        for place, letter in enumerate(text, 1):
            edits = min(old[place] + 1, row[place - 1] + 1, old[place - 1] + (wanted != letter))
            swapped = line > 1 and _are_swapped(text[place - 2 : place], due[line - 2 : line])
            row.append(min(edits, older[place - 2] + 1) if swapped else edits)
    return row


def _are_swapped(pair: str, other: str) -> bool:
    return len(pair) == 2 and pair == other[::-1]


def ends_damaged(value: str, found: str, mark: str) -> bool:
    """Whether a part of the value before ``found`` belongs to what should be this mark."""
    value, found = _BLANKS.sub("", value[-MAX_DAMAGED:]), _BLANKS.sub("", found)
    if found == mark:
        return False
    row = _count_edits((value + found)[: -len(mark) - 8 : -1], mark[::-1])
    least = min(row)
    return least <= max(2, 2 * len(mark) // 5) and max(at for at, edits in enumerate(row) if edits == least) > len(
        found
    )


def is_spelled(text: str, mark: str) -> bool:
    """Whether the text is this mark, perhaps with other blanks."""
    return _BLANKS.sub("", text) == mark


def begins_damaged(text: str, mark: str) -> bool:
    """Whether the text begins with what should be this opening mark."""
    text = _BLANKS.sub("", text.partition("</")[0])[: len(mark) + 4]
    return min(_count_edits(text, mark)) <= max(2, len(mark) // 4)


def find_similar(word: str, words: Iterable[str]) -> list[str]:
    """Return the words that differ from this one by an edit, or by two if they are long."""
    return [other for other in words if is_similar(word, other)]


def is_similar(word: str, other: str) -> bool:
    """Whether the words differ by an edit, or by two if they are long."""
    most = 2 if len(other) >= 8 else 1
    return abs(len(word) - len(other)) <= most and _count_edits(word, other)[-1] <= most


def has_stray_quote(opener: re.Match[str], after: str) -> bool:
    """Whether a quotation mark is missing in an opening mark, so that ``after`` it or its key may hold one."""
    mark, start, end = opener[0], *(at - opener.start() for at in opener.span("key"))
    around = mark[start - 1] in QUOTES, mark[end : end + 1] in QUOTES
    return around[0] != around[1] or (after in QUOTES and mark.count(after) % 2 == 1)


def is_sound_tag(opener: re.Match[str]) -> bool:
    """Whether the attributes in an opening mark are pairs of names and values, and its tags have one suffix."""
    attributes = opener.groupdict().get("attributes") or ""
    if opener[0].count('"') % 2 and not opener[0].endswith('"'):
        return False
    return _ATTRIBUTES.fullmatch(attributes) is not None and len(set(_SUFFIXES.findall(opener[0]))) < 2


def ends_tag(text: str, opener: re.Match[str]) -> bool:
    """Whether the text begins with the end of an opening mark that ended too early."""
    suffixes = _SUFFIXES.findall(opener[0])
    if len(set(suffixes)) > 1:
        return text.startswith(suffixes[0].removeprefix(suffixes[-1]))
    return 0 <= text.find(">") < f"{text}<".find("<")


def ends_in_blanks(text: str) -> bool:
    """Whether text ends with more whitespace than a line break: some of it may belong to the value that follows."""
    return text[len(text.rstrip()) :] not in ("", "\n", "\r\n")
