"""Whether work grows with its size as it should, measured in CPU time.

Strategy: the clock is needed, because most work that grows too fast is one call of the language itself, such as a search or a copy
of the rest of a text, which a count of calls does not see. Other work on the machine slows a process down for a while, by
sharing its core and its caches. So both sizes are measured one after the other, several times, and one pair within the limit
is enough: work that grows too fast exceeds the limit in every pair, as long as the limit is well below its ratio.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

PAIRS = 7


def assert_growth(measure: Callable[[int], float], small: int, large: int, limit: float, noise: float) -> None:
    """The large size takes at most ``limit`` times the seconds of the small one, or no more than ``noise`` seconds.

    It is not checked more closely than between linear and quadratic work, so ``limit`` is between their ratios.
    """
    ratio = large / small
    assert 2 * ratio <= limit <= ratio**2 / 2, "no limit between linear and quadratic work"
    measured = []
    with _without_collections():
        measure(max(1, small // 10))  # what is compiled once would make the small size slow
        for _ in range(PAIRS):
            pair = measure(small), measure(large)
            if pair[1] <= max(noise, limit * pair[0]):
                return
            measured.append(pair)
    pairs = ", ".join(f"{first:.4f} s and {second:.4f} s" for first, second in measured)
    pytest.fail(f"{small} and {large} took {pairs}: more than {limit} times as long every time")


@contextmanager
def _without_collections() -> Iterator[None]:
    """The garbage of all tests is not collected meanwhile: that takes longer than the small size, and comes with the large one."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
