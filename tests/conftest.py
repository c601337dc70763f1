"""Options and profiles of the whole test run."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("deep", settings.get_profile("house"), derandomize=False, max_examples=5000)
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-samples",
        action="store_true",
        help="rewrite the '## Read' part of tests/dialects/*/*.md with what the reader reads today",
    )
