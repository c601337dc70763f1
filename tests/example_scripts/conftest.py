"""The environment of the examples, which `make test-examples` makes, and a gateway before the simulated model."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from agents.programs import Ended, run
from support.loopback import Loop, Sim, running_gateway, running_loop, running_sim

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PYTHON = ROOT / ".venv/examples/bin/python"
SECONDS = 90.0

Start: TypeAlias = Callable[..., Ended]


@pytest.fixture(scope="session")
def python() -> Path:
    if not PYTHON.exists():
        pytest.fail(f"{PYTHON.relative_to(ROOT)} is missing; 'make test-examples' installs it")
    return PYTHON


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    with running_loop() as loop:
        yield loop


@pytest.fixture(scope="session")
def sim(loop: Loop) -> Iterator[Sim]:
    script = tomllib.loads((EXAMPLES / "scenarios.toml").read_text("utf-8"))
    with running_sim(loop, script, chunk=5) as sim:
        yield sim


@pytest.fixture(scope="session")
def gateway(loop: Loop, sim: Sim) -> Iterator[str]:
    """The address of a gateway with default settings."""
    with running_gateway(loop, sim) as base_url:
        yield base_url.removesuffix("/v1")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder that the scenarios talk about."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    manifest = {"name": "qwen-proxy", "version": "1.0.0", "scripts": {"test": "echo all 3 tests of the project pass"}}
    (folder / "package.json").write_text(json.dumps(manifest), "utf-8")
    (folder / "src/server.js").write_text("app.listen(3000)\n", "utf-8")
    return folder


@pytest.fixture
def start(project: Path, python: Path) -> Start:
    """Runs a program in the project, with nothing of this machine in its environment but the programs."""

    def start(*command: str | Path, **variables: str) -> Ended:
        environment = {"PATH": f"{python.parent}:{os.environ['PATH']}", "HOME": str(project.parent), "LANG": "C.UTF-8"}
        return run(command, project, environment | variables, SECONDS)

    return start
