"""Options and profiles of the whole test run.

``SCALE=50 pytest tests/reading/test_properties.py`` tries fifty times as many examples, and new ones each time.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from support.fragments import SCALE

STATE = tempfile.mkdtemp(prefix="toolglot-state-")
"""The state folder of the gateways that tests start, so that they do not use that of the user."""
os.environ["XDG_STATE_HOME"] = STATE
atexit.register(shutil.rmtree, STATE, ignore_errors=True)

settings.register_profile(
    "default_scale",
    deadline=None,
    derandomize=SCALE == 1,
    database=None,
    max_examples=100 * SCALE,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("default_scale")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-samples",
        action="store_true",
        help="rewrite what is generated: '## Read' parts of tests/data/dialects/*/*.md, docs/toolglot.schema.json, tables of docs/CONFIGURATION.md, docs/state.md and docs/setup.md, docs/reference, docs/before-after.md, the graph of docs/ARCHITECTURE.md",
    )
