"""Whether work grows with its size as it should, measured in CPU time."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def assert_growth(measure: Callable[[int], float], small: int, large: int, limit: float, noise: float) -> None:
    """The large size takes at most ``limit`` times the seconds of the small one, or no more than ``noise`` seconds.

    Other work on the machine is given three more chances.
    """
    quickest, slowest = measure(small), measure(large)
    for _ in range(3):
        if slowest <= noise or slowest <= limit * quickest:
            return
        quickest, slowest = max(quickest, measure(small)), min(slowest, measure(large))
    pytest.fail(f"{small}: {quickest:.4f} s, {large}: {slowest:.4f} s")
