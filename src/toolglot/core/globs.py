"""Matches names against globs such as ``qwen*-coder*``.

``fnmatch`` compiles a regular expression for each glob and keeps 256 of them, fewer than dialects, profiles and
settings may have. Most of these globs have ``*`` alone, for which the methods of ``str`` are enough.
"""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches_glob(text: str, glob: str) -> bool:
    """Whether a glob matches all of a text, in the same case. ``*``, ``?`` and ``[...]`` are as in ``fnmatch``."""
    if "?" in glob or "[" in glob:
        return fnmatchcase(text, glob)
    first, *others = glob.split("*")
    if not others:
        return text == glob
    *between, last = others
    end = len(text) - len(last)
    at = len(first)
    if at > end or not (text.startswith(first) and text.endswith(last)):
        return False
    for piece in between:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True
