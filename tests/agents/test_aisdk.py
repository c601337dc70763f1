"""The AI SDK: a program that streams, runs two tools with the real file system, and goes on step by step.

It has a provider for every wire; that of the chat wire, which most programs use, is tried with every dialect.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents.cycles import FOLDER, NODE, Endpoint, Journal, Outcome, try_notes, try_reading
from agents.programs import Server, run
from support.loopback import DIALECTS, NATIVE, QUESTION, Sim

SECONDS = 30.0
FEW = ("hermes", "roo_xml")
TEXT = [
    *(("chat", dialect) for dialect in DIALECTS),
    *((name, one) for name in ("messages", "responses") for one in FEW),
]
ALL = [(name, NATIVE) for name in ("chat", "messages", "responses")] + TEXT


class Agent:
    """The program, and its last report."""

    def __init__(self, provider: str, project: Path, environment: dict[str, str], journal: Journal) -> None:
        self.name = f"aisdk-{provider}"
        self._provider = provider
        self._project = project
        self._environment = environment
        self._journal = journal
        self.report: dict[str, Any] = {}

    def __call__(self, endpoint: Endpoint, question: str, model: str = "", **more: str) -> Outcome:
        place = {"PROVIDER": self._provider, "BASE_URL": endpoint.base_url, "MODEL": model or endpoint.model}
        ended = run([NODE, FOLDER / "aisdk.mjs", question], self._project, self._environment | place | more, SECONDS)
        self._journal.entries.append(ended)
        assert ended.code == 0
        self.report = json.loads(ended.stdout)
        calls = [(call["name"], call["input"]) for step in self.report["steps"] for call in step["calls"]]
        reasons = [step["finishReason"] for step in self.report["steps"]]
        return Outcome(reasons, calls, self.report["text"], self.report["errors"])


@pytest.fixture
def agent(provider: str, project: Path, environment: dict[str, str], journal: Journal) -> Agent:
    return Agent(provider, project, environment, journal)


@pytest.fixture
def endpoint(provider: str, dialect: str, sim: Sim, gateway: Server) -> Endpoint:
    """A clean run goes straight to the model only on the model's own wire."""
    direct = (provider, dialect) == ("chat", NATIVE)
    return Endpoint(dialect, sim.base_url if direct else f"{gateway.address}/v1")


@pytest.mark.parametrize(("provider", "dialect"), ALL)
def test_cycle_one(agent: Agent, endpoint: Endpoint, journal: Journal) -> None:
    try_reading(agent.name, endpoint, agent, journal)
    assert all(step["usage"] for step in agent.report["steps"])


@pytest.mark.parametrize(("provider", "dialect"), ALL)
def test_notes(agent: Agent, endpoint: Endpoint, journal: Journal, project: Path) -> None:
    try_notes(agent.name, endpoint, agent, journal, project)
    assert agent.report["pieces"]["tool-input-delta"] > 20, "arguments come while they are written"


@pytest.mark.parametrize(("provider", "dialect"), TEXT)
def test_a_call_that_is_cut_is_not_run(agent: Agent, endpoint: Endpoint, project: Path) -> None:
    """The SDK reports the error to the model, as for any call with broken input."""
    question = "Write 'a text that is long enough to be cut somewhere in the middle of it' to cut.txt"
    outcome = agent(endpoint, question, f"{endpoint.model}+cut_mid_call")
    assert set(outcome.reasons) == {"error"}
    assert [result for step in agent.report["steps"] for result in step["results"]] == []
    assert "the connection to the upstream broke" in outcome.errors[0].lower()
    assert not (project / "cut.txt").exists()


@pytest.mark.parametrize(("provider", "dialect"), [("responses", "hermes"), ("responses", NATIVE)])
def test_a_client_that_keeps_everything_itself(agent: Agent, endpoint: Endpoint, journal: Journal) -> None:
    """All items come with every request, where the provider would refer to them by their ids."""
    outcome = agent(endpoint, QUESTION, STATELESS="yes")
    assert outcome.calls == [("read", {"filePath": "package.json"})] and not outcome.errors
    assert len(journal.bodies) == 2
