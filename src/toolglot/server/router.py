"""Maps methods and paths to targets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeVar

Target = TypeVar("Target")

_NAMED = re.compile(r"\{(\w+)(?::((?:[^{}]|\{[^{}]*\})+))?\}")
ANY_METHOD = "*"
NO_PARTS: Final[Mapping[str, str]] = MappingProxyType({})


class Router(dict[tuple[str, str], tuple[Target, Mapping[str, str]]]):
    """The target of a method and a path, and the named parts of the path: ``router["GET", "/models"]``.

    Routes are literal paths, which are the items of this dictionary, or patterns: ``{name}`` for anything but a slash,
    ``{name:expression}``. Raises: LookupError if no route matches.
    """

    def __init__(self) -> None:
        super().__init__()
        self._patterns: list[tuple[str, re.Pattern[str], Target]] = []
        self._routes: list[tuple[str, str, Target]] = []

    def add(self, method: str, path: str, target: Target) -> None:
        """Add a route. A route for the method takes precedence over one for any; literal paths take precedence over
        patterns; of the patterns, the first that matches counts."""
        self._routes.append((method, path, target))
        if "{" not in path:
            self[method, path] = target, NO_PARTS
            return
        pieces = _NAMED.split(path)
        expression = "".join(
            re.escape(literal) + f"(?P<{name}>{inner or '[^/]+'})"
            for literal, name, inner in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=False)
        )
        self._patterns.append((method, re.compile(expression + re.escape(pieces[-1]), re.DOTALL), target))

    def __missing__(self, asked: tuple[str, str]) -> tuple[Target, Mapping[str, str]]:
        method, path = asked
        for wanted in (method, ANY_METHOD):
            if wanted is ANY_METHOD and (literal := self.get((ANY_METHOD, path))) is not None:
                return literal
            for known, pattern, target in self._patterns:
                if known == wanted and (fit := pattern.fullmatch(path)):
                    return target, fit.groupdict()
        raise LookupError(path)

    def list_routes(self) -> list[tuple[str, str, Target]]:
        """Method, path and target of all routes for one method and certain paths."""
        return [route for route in self._routes if route[0] != ANY_METHOD and not route[1].startswith("{")]

    def list_methods(self, path: str) -> list[str]:
        """The methods that a path takes, in order; ``ANY_METHOD`` does not count."""
        literal = [method for method, known in self if known == path]
        fitting = [method for method, pattern, _ in self._patterns if pattern.fullmatch(path)]
        return sorted({*literal, *fitting} - {ANY_METHOD})
