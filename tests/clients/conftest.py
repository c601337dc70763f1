"""What the tests with real clients share: the simulated model, gateways before it, and the programs that npm brought.

A gateway is a process, as a person would start it; the simulated model runs in the test, so that what reached it can be
counted and read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from clients.cycles import CLIENTS, NODE, OPENCODE, PACKAGES, Endpoint, Journal
from clients.programs import serving
from loopback import DIALECTS, MANIFEST, NATIVE, Sim, running_loop, running_sim, script_notes


def bare_environment(home: Path) -> dict[str, str]:
    """An environment with nothing of this machine in it but the programs."""
    places = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(home), "TMPDIR": str(home), **places}


class Endpoints:
    """The endpoints by dialect; a gateway is started when it is first asked for."""

    def __init__(self, sim: Sim, folder: Path, stack: ExitStack) -> None:
        self._sim = sim
        self._folder = folder
        self._stack = stack
        self._known = {NATIVE: Endpoint(NATIVE, sim.base_url)}

    def __getitem__(self, dialect: str) -> Endpoint:
        if dialect not in self._known:
            options = ["--port", "0", "--base-url", self._sim.base_url, "--mode", "text", "--dialect", dialect]
            command = [sys.executable, "-m", "toolglot", "serve", *options]
            log = self._folder / f"{dialect}.log"
            server = serving(f"gateway {dialect}", command, self._folder, bare_environment(self._folder), log)
            gateway = self._stack.enter_context(server)
            self._known[dialect] = Endpoint(dialect, f"{gateway.address}/v1", gateway)
        return self._known[dialect]


@pytest.fixture(scope="session")
def sim() -> Iterator[Sim]:
    tasks = [f"{client}-{dialect}" for client in CLIENTS for dialect in (NATIVE, *DIALECTS)]
    with running_loop() as loop, running_sim(loop, script_notes(tasks), chunk=5) as sim:
        yield sim


@pytest.fixture(scope="session")
def endpoints(sim: Sim, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoints]:
    missing = [path for path in (NODE, OPENCODE, PACKAGES / "ai") if not path.exists()]
    if missing:
        pytest.fail(f"{missing[0].relative_to(PACKAGES)} is not installed; 'make test-clients' does that")
    with ExitStack() as stack:
        yield Endpoints(sim, tmp_path_factory.mktemp("gateways"), stack)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with the package.json of the question."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "package.json").write_text(MANIFEST, "utf-8")
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return bare_environment(home)


@pytest.fixture
def journal(sim: Sim) -> Journal:
    return Journal(sim)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Beside a failure stands what the client and the gateway said, and what reached the model."""
    report = yield
    journal = getattr(item, "funcargs", {}).get("journal")
    if report.failed and isinstance(journal, Journal):
        report.sections.append(("What the programs said", str(journal)))
    return report
