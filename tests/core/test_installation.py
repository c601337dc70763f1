"""The command that installs an extra fits how toolglot itself was installed."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from toolglot.core.installation import name_install_command


class Installed:
    def __init__(self, source: Any) -> None:
        self.source = source

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.source if isinstance(self.source, str | None) else json.dumps(self.source)


@pytest.fixture(autouse=True)
def activated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment is that of PATH."""
    pip = tmp_path / "pip"
    pip.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


def install(monkeypatch: pytest.MonkeyPatch, source: Any) -> None:
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: Installed(source))


@pytest.mark.parametrize(
    "source",
    [None, "", "{", "[]", {"url": "https://x.test/y.git", "vcs_info": {}}, {"url": "file:///absent/t.whl"}, {"url": 1}],
)
def test_from_an_index(source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, source)
    assert name_install_command("local") == "pip install 'toolglot[local]'"


def test_from_a_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "my code"
    folder.mkdir()
    install(monkeypatch, {"url": folder.as_uri(), "dir_info": {}})
    assert name_install_command("server,local") == f"pip install {shlex.quote(f'{folder}[server,local]')}"
    install(monkeypatch, {"url": folder.as_uri(), "dir_info": {"editable": True}})
    assert name_install_command("server") == f"pip install -e {shlex.quote(f'{folder}[server]')}"


def test_an_environment_that_is_not_in_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, None)
    monkeypatch.setattr(sys, "executable", "/opt/my env/bin/python")
    assert name_install_command("local") == "'/opt/my env/bin/python' -m pip install 'toolglot[local]'"
