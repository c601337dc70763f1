"""Names that a dialect cannot write, and names to teach in their place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice

_ODD = re.compile(r"[^A-Za-z0-9_]+")
LONGEST = 64
TRIES = 8
"""Where no name fits, such as in a dialect that only knows commands, one is as good as another."""


def rename(names: Iterable[str], fits: Callable[[str], bool]) -> dict[str, str]:
    """What to call each of them: its own name where that fits, otherwise a plain one that no other has.

    The same names always get the same answer, and no two names get the same one, so the way back is the dictionary
    turned round.
    """
    own = list(dict.fromkeys(names))
    given = {name: name for name in own if fits(name)}
    taken = set(own)
    for name in own:
        if name not in given:
            given[name] = _invent(name, taken, fits)
            taken.add(given[name])
    return {name: given[name] for name in own}


def _invent(name: str, taken: set[str], fits: Callable[[str], bool]) -> str:
    free = (invented for invented in _spellings(name) if invented not in taken)
    tried = list(islice(free, TRIES))
    return next(filter(fits, tried), tried[0])


def _spellings(name: str) -> Iterator[str]:
    """The name in plain letters, the same as something to use, and both with numbers."""
    plain = _ODD.sub("_", name).strip("_")
    used = plain if plain.startswith("use") else f"use_{plain}".rstrip("_")
    stems = (plain, used) if plain[:1].isalpha() else (used,)
    for number in count(1):
        tail = "" if number == 1 else f"_{number}"
        yield from (stem[: LONGEST - len(tail)] + tail for stem in stems)
