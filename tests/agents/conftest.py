"""What the tests with real clients share: the simulated model, a gateway before it, and the programs that npm brought.

The gateway is a process, as a person would start it; the simulated model runs in the test, so that what reached it can be
counted and read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agents.agents import AGENTS
from agents.cycles import BREAKING, CLIENTS, FOLDER, NODE, OPENCODE, PACKAGES, Endpoint, Journal
from agents.programs import Server, serving
from support.loopback import DIALECTS, MANIFEST, NATIVE, Sim, running_loop, running_sim, script_notes


def bare_environment(home: Path) -> dict[str, str]:
    """An environment with nothing of this machine in it but the programs."""
    places = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(home), "TMPDIR": str(home), **places}


@pytest.fixture(scope="session")
def sim() -> Iterator[Sim]:
    tasks = [f"{client}-{dialect}" for client in CLIENTS for dialect in (NATIVE, *DIALECTS)]
    notes = [answer for agent in AGENTS.values() for dialect in (NATIVE, *DIALECTS) for answer in agent.script(dialect)]
    script = {"answer": [*script_notes(tasks)["answer"], *notes, *BREAKING]}
    with running_loop() as loop, running_sim(loop, script, chunk=5) as sim:
        yield sim


def _describe(name: str, model: str, mode: str, dialect: str = "") -> str:
    return f'[[model]]\nname = "{name}"\nmodel = "{model}"\nmode = "{mode}"\ndialect = "{dialect}"\n'


@pytest.fixture(scope="session")
def gateway(sim: Sim, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One gateway for all dialects: the name of the model selects it."""
    with gateway_before(sim, tmp_path_factory.mktemp("gateway")) as server:
        yield server


@contextmanager
def gateway_before(sim: Sim, folder: Path) -> Iterator[Server]:
    """A gateway before a simulated model, with a model name for each dialect."""
    programs = [NODE, OPENCODE, PACKAGES / "ai", *(agent.program for agent in AGENTS.values())]
    missing = [path for path in programs if not path.exists()]
    if missing:
        pytest.fail(f"{missing[0].relative_to(FOLDER)} is missing; 'make test-clients' installs it")
    upstream = f'[[upstream]]\nname = "sim"\nbase_url = "{sim.base_url}"\n'
    models = [_describe(f"sim:{dialect}*", f"sim:{dialect}*", "text", dialect) for dialect in DIALECTS]
    models += [_describe(f"gpt-5.5-{dialect}", f"sim:{dialect}", "text", dialect) for dialect in DIALECTS]
    models += [_describe(f"{prefix}{NATIVE}", f"sim:{NATIVE}", "native") for prefix in ("sim:", "gpt-5.5-")]
    (folder / "toolglot.toml").write_text("\n".join([upstream, *models]), "utf-8")
    command = [sys.executable, "-m", "toolglot", "serve", "--port", "0"]
    with serving("gateway", command, folder, bare_environment(folder), folder / "gateway.log") as server:
        yield server


@pytest.fixture
def endpoint(dialect: str, sim: Sim, gateway: Server) -> Endpoint:
    """Where a client is sent for a dialect: to the gateway or, for a clean run, straight to the model."""
    return Endpoint(dialect, sim.base_url if dialect == NATIVE else f"{gateway.address}/v1")


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
def journal(sim: Sim, gateway: Server) -> Journal:
    return Journal(sim, [gateway])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report the output of the client and the gateway with a failure, and the requests that reached the model."""
    report = yield
    journal = getattr(item, "funcargs", {}).get("journal")
    if report.failed and isinstance(journal, Journal):
        report.sections.append(("Output of the programs", str(journal)))
    return report
