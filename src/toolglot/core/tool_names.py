"""Substitutes for tool names that a dialect cannot write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice

_ODD = re.compile(r"[^A-Za-z0-9_]+")
MAX_LENGTH = 64
MAX_TRIES = 8
"""If no name fits, as in a dialect that only knows commands, the first candidate is used."""


def assign_names(offered: Iterable[str], fits: Callable[[str], bool], past: Sequence[str] = ()) -> dict[str, str]:
    """Map each name to itself where it ``fits``, otherwise to a unique plain name.

    ``offered`` are the names of tools on offer, ``past`` those of earlier calls in order: a later name never changes
    what an earlier one is mapped to. The mapping is deterministic and one-to-one, so the inverse dictionary maps back.
    """
    own = list(dict.fromkeys(offered))
    given = {name: name for name in own if fits(name)}
    taken = set(own)
    for name in (*own, *past):
        if name not in given:
            given[name] = name if fits(name) and name not in taken else _make_name(name, taken, fits)
            taken.add(given[name])
    return {name: given[name] for name in (*own, *past)}


def _make_name(name: str, taken: set[str], fits: Callable[[str], bool]) -> str:
    free = (invented for invented in _list_candidates(name) if invented not in taken)
    tried = list(islice(free, MAX_TRIES))
    return next(filter(fits, tried), tried[0])


def _list_candidates(name: str) -> Iterator[str]:
    """Yield the name in plain letters, the same with the prefix ``use_``, then both with numbers."""
    plain = _ODD.sub("_", name).strip("_")
    used = plain if plain.startswith("use") else f"use_{plain}".rstrip("_")
    stems = (plain, used) if plain[:1].isalpha() else (used,)
    for number in count(1):
        tail = "" if number == 1 else f"_{number}"
        yield from (stem[: MAX_LENGTH - len(tail)] + tail for stem in stems)
