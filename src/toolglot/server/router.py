"""Maps methods and paths to targets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Generic, TypeVar

Target = TypeVar("Target")

_NAMED = re.compile(r"\{(\w+)(?::((?:[^{}]|\{[^{}]*\})+))?\}")
ANY_METHOD = "*"


class Router(Generic[Target]):
    """Routes are literal paths or patterns: ``{name}`` for anything but a slash, ``{name:expression}``."""

    def __init__(self) -> None:
        self._literal: dict[tuple[str, str], Target] = {}
        self._patterns: list[tuple[str, re.Pattern[str], Target]] = []

    def add(self, method: str, path: str, target: Target) -> None:
        """Add a route. Literal paths take precedence; of the patterns, the first that matches."""
        if "{" not in path:
            self._literal[method, path] = target
            return
        pieces = _NAMED.split(path)
        expression = "".join(
            re.escape(literal) + f"(?P<{name}>{inner or '[^/]+'})"
            for literal, name, inner in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=False)
        )
        self._patterns.append((method, re.compile(expression + re.escape(pieces[-1]), re.DOTALL), target))

    def find(self, method: str, path: str) -> tuple[Target, Mapping[str, str]]:
        """The target of a path and its named parts. Raises: LookupError if no route matches."""
        literal = self._literal.get((method, path))
        if literal is not None:
            return literal, {}
        for known, pattern, target in self._patterns:
            if known in (method, ANY_METHOD) and (fit := pattern.fullmatch(path)):
                return target, fit.groupdict()
        raise LookupError(path)
