"""Remembers which models have made a defective call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

RECENT_SECONDS: Final = 3600.0
"""How long a model's calls are held after a defective one."""
MAX_RECENT: Final = 1000


class RecentDefects:
    """The models that have recently made a defective call, so that their next calls are checked before they are
    sent."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.until: dict[tuple[str, str], float] = {}

    def note(self, address: str, model: str) -> None:
        self.until.pop((address, model), None)
        self.until[address, model] = self.now() + RECENT_SECONDS
        if len(self.until) > MAX_RECENT:
            del self.until[next(iter(self.until))]

    def has(self, address: str, model: str) -> bool:
        until = self.until.get((address, model))
        return until is not None and self.now() < until
