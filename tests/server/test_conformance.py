"""What clients expect of a gateway: each row of docs/conformance.md, by a request."""

from __future__ import annotations

import pytest
from support.conformance import ROWS, SOURCES, Row
from support.gateway import run


@pytest.mark.parametrize("one", ROWS, ids=lambda one: f"{one.client}: {one.expectation[:60]}")
def test_an_expectation_is_met(one: Row) -> None:
    run(one.check)


def test_every_client_has_rows() -> None:
    assert {one.client for one in ROWS} == set(SOURCES)
