"""Who may import whom: the contracts in pyproject.toml, run as a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from importlinter import cli

ROOT = Path(__file__).resolve().parent.parent


def test_the_import_contracts_hold(capsys: pytest.CaptureFixture[str]) -> None:
    failed = cli.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    assert not failed, capsys.readouterr().out
