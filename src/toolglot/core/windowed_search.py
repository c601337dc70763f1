"""Regular expression search in windows, so that long texts do not block other threads.

The regular expression engine holds the GIL until a search is over. Windows bound that time, whatever the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

WINDOW: Final = 1 << 13
"""Characters per search."""
MAX_MATCH: Final = 1 << 11
"""The longest match, lookahead included, that is found in a text of more than one window."""


def find_all(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches as ``pattern.finditer`` does. A match must not be empty."""
    at = 0
    while (found := search(pattern, text, at)) is not None:
        yield found
        at = found.end()


def search(pattern: re.Pattern[str], text: str, start: int = 0) -> re.Match[str] | None:
    """Find the first match from ``start`` on, as ``pattern.search`` does."""
    size = len(text)
    while start + WINDOW + MAX_MATCH < size:
        edge = start + WINDOW
        found = pattern.search(text, start, edge + MAX_MATCH)
        if found is not None and found.start() < edge:
            return found
        start = edge
    return pattern.search(text, start)


def replace_all(pattern: re.Pattern[str], text: str, instead: str = "") -> str:
    """Replace every match as ``pattern.sub`` does, with ``instead`` taken literally."""
    if len(text) <= WINDOW:
        return pattern.sub(instead, text)
    pieces: list[str] = []
    at = 0
    for found in find_all(pattern, text):
        pieces.append(text[at : found.start()])
        at = found.end()
    return instead.join([*pieces, text[at:]]) if pieces else text
