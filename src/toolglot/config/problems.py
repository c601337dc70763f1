"""Problems of a settings file: the first one is raised, or all are collected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from toolglot.core.errors import UsageError

Place = tuple[str | int, ...]
"""Where a value is in a document: ``("server", "port")``, ``("upstream", 0, "base_url")``; empty: not in the file."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem, its place in the document, and its line if the file cannot be parsed."""

    message: str
    place: Place = ()
    line: int = 0


class Problems:
    """Raises a UsageError for the first problem, or, if it ``collects``, keeps all of them in ``found``."""

    def __init__(self, collects: bool = False) -> None:
        self.collects = collects
        self.found: list[Problem] = []

    def report(self, message: str, *place: str | int, line: int = 0) -> None:
        if not self.collects:
            raise UsageError(message)
        self.found.append(Problem(message, place, line))

    @contextmanager
    def at(self, *place: str | int) -> Iterator[None]:
        """Report a UsageError of the block, at this place."""
        try:
            yield
        except UsageError as error:
            if not self.collects:
                raise
            self.found.append(Problem(error.message, place))

    def has(self, *place: str | int) -> bool:
        return any(problem.place == place for problem in self.found)


FIRST: Final = Problems()
"""Raises the first problem."""
