"""Which path leads where."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Generic, TypeVar

Where = TypeVar("Where")

_NAMED = re.compile(r"\{(\w+)(?::((?:[^{}]|\{[^{}]*\})+))?\}")
EVERY = "*"


class Router(Generic[Where]):
    """Paths as they are, or with named parts: ``{name}`` for anything but a slash, ``{name:expression}``."""

    def __init__(self) -> None:
        self._plain: dict[tuple[str, str], Where] = {}
        self._patterns: list[tuple[str, re.Pattern[str], Where]] = []

    def add(self, method: str, path: str, where: Where) -> None:
        """Add a path. Plain ones come first, and of the others the first that fits."""
        if "{" not in path:
            self._plain[method, path] = where
            return
        pieces = _NAMED.split(path)
        expression = "".join(
            re.escape(plain) + f"(?P<{name}>{inner or '[^/]+'})"
            for plain, name, inner in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=False)
        )
        self._patterns.append((method, re.compile(expression + re.escape(pieces[-1]), re.DOTALL), where))

    def find(self, method: str, path: str) -> tuple[Where, Mapping[str, str]]:
        """What a path leads to, and its named parts. Raises ``LookupError`` if it leads nowhere."""
        plain = self._plain.get((method, path))
        if plain is not None:
            return plain, {}
        for known, pattern, where in self._patterns:
            if known in (method, EVERY) and (fit := pattern.fullmatch(path)):
                return where, fit.groupdict()
        raise LookupError(path)
