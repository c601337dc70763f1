"""Expressions of the names in a request are not kept by ``re`` beyond the bounds of our own caches."""

from __future__ import annotations

import gc
import re
import weakref

import pytest

from toolglot.core.uncached_regex import compile_uncached
from toolglot.dialects.patterns import compile_stops


def test_the_expression_is_the_same() -> None:
    assert compile_uncached("a(b)", re.IGNORECASE) == re.compile("a(b)", re.IGNORECASE)
    with pytest.raises(re.error):
        compile_uncached("(")


def test_an_expression_that_is_dropped_is_freed() -> None:
    freed: list[str] = []
    stops = compile_stops({"<": "(?=t0123_read)"})
    assert stops.search("a <t0123_read>")
    weakref.finalize(stops, freed.append, "stops")
    del stops
    gc.collect()
    assert freed == ["stops"]
