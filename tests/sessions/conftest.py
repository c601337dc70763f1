"""The stores that sessions are tested with."""

from __future__ import annotations

import pytest
from support.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of a fresh store; empty for the default, a file in the state folder."""
    return "" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
