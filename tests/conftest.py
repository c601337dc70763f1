"""Options and profiles of the whole test run.

``SCALE=50 pytest tests/reading/test_properties.py`` tries fifty times as many examples, and new ones each time.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
from pathlib import Path

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

TESTS = Path(__file__).parent
LONG = (
    "cli/test_embedded.py",
    "cli/test_explain.py",
    "cli/test_run.py",
    "project/test_contributing.py",
    "project/test_site.py",
    "reading/test_linear.py",
    "server/test_openapi.py",
    "store/test_model.py",
)
"""Files with tests that take seconds. They come first, so that no worker is left with one of them at the end."""


def pytest_collection() -> None:
    gc.disable()  # nothing of what is imported and collected is garbage, and there is more to look through each time


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    first = {TESTS / name for name in LONG}
    assert all(path.is_file() for path in first), "LONG names a file that does not exist"
    items.sort(key=lambda item: item.path not in first)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-samples",
        action="store_true",
        help="rewrite what is generated: '## Read' parts of tests/data/dialects/*/*.md, docs/toolglot.schema.json, tables of docs/CONFIGURATION.md, docs/state.md and docs/setup.md, docs/reference, docs/before-after.md, the graph of docs/ARCHITECTURE.md",
    )
