"""Import layers: the contracts in pyproject.toml, run as a test."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from importlinter import cli

ROOT = Path(__file__).resolve().parents[2]


def test_the_import_contracts_hold(capsys: pytest.CaptureFixture[str]) -> None:
    loggers = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    enabled = [logger for logger in loggers if not logger.disabled]
    failed = cli.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True)
    for logger in enabled:
        logger.disabled = False  # the linter disables all loggers, and other tests need them
    assert not failed, capsys.readouterr().out
