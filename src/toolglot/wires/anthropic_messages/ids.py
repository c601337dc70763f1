"""Ids and signatures as the Messages wire allows them.

Seals of other providers travel to a client inside of signatures, because clients hand these back untouched.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256

NAME = "anthropic_messages"
EFFORT = ("output_config", "effort")
"""Where it stands how much a model is to think."""
EFFORT_WORDS = ("low", "medium", "high", "max")
REDACTED = f"{NAME}.redacted"
"""The kind of a seal that holds all of the thinking."""

_LAWFUL = re.compile(r"[a-zA-Z0-9_-]{1,200}")
_ODD = re.compile(r"[^a-zA-Z0-9_-]+")
_CARRIED = re.compile(r"toolglot~([\w.]+)~(.+)", re.DOTALL)
LONGEST = 48


@dataclass(frozen=True, slots=True)
class BlockPosition:
    """How far a stream has come: blocks that have begun (-1: not even the message), the kind of the open one, and the
    number of the call that it is."""

    begun: int = -1
    kind: str = ""
    call: int = -1


def scrub(call_id: str) -> str:
    """An id in the letters that are allowed: itself, or one that always stands for it and for no other."""
    if _LAWFUL.fullmatch(call_id):
        return call_id
    plain = _ODD.sub("_", call_id)[:LONGEST].strip("_") or "toolu"
    return f"{plain}_{sha256(call_id.encode(errors='replace')).hexdigest()[:8]}"


class Ids:
    """Gives every call an id that no other has."""

    def __init__(self, taken: Collection[str] = (), mark: str = "") -> None:
        self.taken = set(taken)
        self.mark = mark

    def give(self, call_id: str) -> str:
        wanted = scrub(call_id)
        given, number = wanted, 1
        while given in self.taken:
            number += 1
            given = f"{wanted}_{self.mark or number}"
            self.mark = ""
        self.taken.add(given)
        return given


def read_signature(signature: str) -> tuple[str, str]:
    """Whose seal a signature is, and the seal; a thought that nobody signed has none."""
    carried = _CARRIED.fullmatch(signature)
    if carried:
        return carried[1], carried[2]
    return (NAME, signature) if signature else ("", "")


def write_signature(kind: str, seal: str) -> str:
    return seal if kind in (NAME, "") else f"toolglot~{kind}~{seal}"
