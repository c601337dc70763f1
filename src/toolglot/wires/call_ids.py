"""Ids of the calls of one response."""

from __future__ import annotations

from collections.abc import Callable


class CallIds:
    """Chooses the ids of the calls of one response: the server's own, unless it has none or repeats one."""

    __slots__ = ("new_id", "used")

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.new_id = new_id
        self.used: set[str] = set()

    def choose(self, given: str) -> str:
        chosen = given if given and given not in self.used else self.new_id()
        self.used.add(chosen)
        return chosen

    def repeats(self, given: str) -> bool:
        """Whether another call has this id, so that results could not be told apart."""
        return given in self.used
