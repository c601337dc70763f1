"""docs/examples-of-origin.md names the tests of all examples of the first documents, and no other ones."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/examples-of-origin.md"
NAMED = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE.read_text("utf-8")))
OF_DOCUMENTS = re.compile(
    r"^def (test_(?:examples_(?:direction|cycle|case|type)|plan_phase_|recovery_(?:pattern|no_match|says)|transformer_|request_(?:tool|para))\w*)",
    re.M,
)
"""Tests whose names begin with a document."""


def test_every_named_test_exists() -> None:
    missing = [
        f"{path}::{name}"
        for path, name in NAMED
        if not re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.M)
    ]
    assert missing == []


def test_every_example_that_is_a_test_is_named() -> None:
    found = {
        (str(path.relative_to(ROOT)), name)
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in OF_DOCUMENTS.findall(path.read_text("utf-8"))
    }
    assert found - NAMED == set() and len(found) > 60
