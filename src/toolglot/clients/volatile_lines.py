"""Lines of system prompts that clients change from request to request.

A server processes a prompt again from the first byte that differs from the request before, so one changing line at the
beginning costs the whole prompt. Each rule here names a line that means something to its vendor only; other upstreams
do not get it. For lines that mean something to the model, ``split_changes`` compares a system prompt with an earlier
one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from toolglot.core.globs import matches_glob


class VolatileLine(Struct, frozen=True):
    """A line at the beginning of a text of the system prompt. ``mark`` is in every such line, ``meant_for`` are globs
    for the hosts that get it unchanged."""

    name: str
    client: str
    mark: str
    pattern: re.Pattern[str]
    meant_for: tuple[str, ...]

    def remove(self, text: str) -> str:
        """The text without the line."""
        return self.pattern.sub("", text, count=1) if self.mark in text else text


VOLATILE_LINES: Final = (
    VolatileLine(
        name="attribution",
        client="Claude Code",
        mark="x-anthropic-billing-header:",
        pattern=re.compile(r"\Ax-anthropic-billing-header:[^\n]*(?:\n+|\Z)"),
        meant_for=("*.anthropic.com", "bedrock-runtime.*.amazonaws.com", "*aiplatform.googleapis.com"),
    ),
)
VOLATILE_MARKS: Final = tuple(rule.mark.encode() for rule in VOLATILE_LINES)
"""A request without any of these has no such line."""
CHANGED_LINES: Final = "changed_lines"
"""The rule for lines that differ from the session's first request in numbers and dates only."""
RULE_NAMES: Final = (*(rule.name for rule in VOLATILE_LINES), CHANGED_LINES)

MOST_CHANGES: Final = 8
"""A system prompt with more changed lines is another one."""
_VALUE = re.compile(
    r"\d+|\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b"
    r"|\b(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\b|\b[AaPp][Mm]\b"
)


def find_volatile_lines(body: bytes, address: str, unstable: Iterable[str] = ()) -> tuple[VolatileLine, ...]:
    """The rules whose lines may be in this request and mean nothing to the upstream at ``address``. ``unstable`` are
    the names of rules that are switched off."""
    rules = _rules_for(address)
    return tuple([rule for rule in rules if rule.mark.encode() in body and rule.name not in unstable])


@lru_cache(maxsize=256)
def _rules_for(address: str) -> tuple[VolatileLine, ...]:
    host = urlsplit(address).hostname or ""
    return tuple(rule for rule in VOLATILE_LINES if not any(matches_glob(host, glob) for glob in rule.meant_for))


def remove_lines(text: str, rules: Iterable[VolatileLine]) -> str:
    """The text of a system prompt without the lines of these rules."""
    for rule in rules:
        text = rule.remove(text)
    return text


def split_changes(first: Sequence[str], now: Sequence[str]) -> list[str] | None:
    """The lines of a system prompt that differ from an earlier one, in their present form; None if more than a few
    numbers and dates differ, so that it is another prompt. Both are given as the texts they consist of."""
    changed: list[str] = []
    if len(first) != len(now):
        return None
    for before, after in zip(first, now, strict=True):
        if before == after:
            continue
        old, new = before.split("\n"), after.split("\n")
        if len(old) != len(new):
            return None
        for one, other in zip(old, new, strict=True):
            if one != other:
                if len(changed) == MOST_CHANGES or _VALUE.sub("0", one) != _VALUE.sub("0", other):
                    return None
                changed.append(other)
    return changed
