"""Long texts searched window by window.

A search of the regular expression engine holds the interpreter until it is over, and with it every other thread. In
windows the longest such time is bounded, whatever the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

WINDOW: Final = 1 << 13
"""How many characters are searched at a time."""
LONGEST: Final = 1 << 11
"""The longest match, with all it looks ahead to, that is found in a text of more than one window."""


def find_all(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Find the matches of a pattern as ``pattern.finditer`` does. A match must not be empty."""
    at = 0
    while (found := search(pattern, text, at)) is not None:
        yield found
        at = found.end()


def search(pattern: re.Pattern[str], text: str, start: int = 0) -> re.Match[str] | None:
    """Find the first match from ``start`` on, as ``pattern.search`` does."""
    size = len(text)
    while start + WINDOW + LONGEST < size:
        edge = start + WINDOW
        found = pattern.search(text, start, edge + LONGEST)
        if found is not None and found.start() < edge:
            return found
        start = edge
    return pattern.search(text, start)


def replace_all(pattern: re.Pattern[str], text: str, instead: str = "") -> str:
    """The text with every match replaced, as ``pattern.sub`` does with text that is no template."""
    if len(text) <= WINDOW:
        return pattern.sub(instead, text)
    pieces: list[str] = []
    at = 0
    for found in find_all(pattern, text):
        pieces.append(text[at : found.start()])
        at = found.end()
    return instead.join([*pieces, text[at:]]) if pieces else text
