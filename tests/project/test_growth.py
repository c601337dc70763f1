"""The check that work is linear: it fails for quadratic work of every kind, and not because the machine is busy."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable
from itertools import chain, repeat
from time import process_time

import pytest
from support.growth import PAIRS, assert_growth
from support.rows import in_one_test

SMALL, LARGE, LIMIT = 100, 1_000, 25


def compare_all(size: int) -> None:
    for one in range(size):
        for other in range(size):
            assert one + other >= 0


def search_the_rest(size: int) -> None:
    """Few calls, each of which looks at all that is left."""
    text, closer = "a" * 30 * size, re.compile("[bc]")
    for at in range(0, len(text), 30):
        assert closer.search(text, at) is None


def count_up(size: int) -> None:
    for number in range(50 * size):
        assert number >= 0


def time_of(work: Callable[[int], None]) -> Callable[[int], float]:
    def measure(size: int) -> float:
        began = process_time()
        work(size)
        return process_time() - began

    return measure


def scripted(pairs: Iterable[tuple[float, float]]) -> Callable[[int], float]:
    """Seconds as if measured: the first of a pair for the small size, the second for the large one."""
    times = chain.from_iterable(pairs)
    return lambda size: 0.0 if size < SMALL else next(times)


@in_one_test("work", [compare_all, search_the_rest])
def test_quadratic_work_fails(work: Callable[[int], None]) -> None:
    with pytest.raises(pytest.fail.Exception, match="more than 25 times as long every time"):
        assert_growth(time_of(work), SMALL, LARGE, LIMIT, noise=0.002)


def test_linear_work_passes() -> None:
    assert_growth(time_of(count_up), SMALL, LARGE, LIMIT, noise=0)


BUSY = (0.1, 3.0)


@in_one_test("calm", range(PAIRS))
def test_one_calm_moment_is_enough(calm: int) -> None:
    assert_growth(scripted([*[BUSY] * calm, (0.1, 0.97)]), SMALL, LARGE, LIMIT, noise=0.02)


def test_a_machine_that_is_busy_all_the_time_slows_both_sizes() -> None:
    assert_growth(scripted([(0.3, 3.0)]), SMALL, LARGE, LIMIT, noise=0.02)


def test_what_takes_no_time_passes() -> None:
    assert_growth(scripted([(0.0001, 0.019)]), SMALL, LARGE, LIMIT, noise=0.02)


def test_the_measured_times_are_named() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"100 and 1000 took 0\.1000 s and 3\.0000 s, 0\.1000 s"):
        assert_growth(scripted(repeat(BUSY)), SMALL, LARGE, LIMIT, noise=0.02)


@in_one_test("limit", [9, 15, 60, 100])
def test_a_limit_that_separates_nothing_is_refused(limit: float) -> None:
    with pytest.raises(AssertionError, match="no limit between"):
        assert_growth(time_of(count_up), SMALL, LARGE, limit, noise=0.02)


def test_garbage_is_collected_again_behind_it() -> None:
    assert gc.isenabled()
    assert_growth(lambda size: float(gc.isenabled()), SMALL, LARGE, LIMIT, noise=0)
    assert gc.isenabled()
