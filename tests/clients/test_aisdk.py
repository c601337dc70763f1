"""The AI SDK: a program that streams, runs two tools with the real file system, and goes on step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clients.conftest import Endpoints
from clients.cycles import FOLDER, NODE, Endpoint, Journal, Outcome, try_notes, try_reading
from clients.programs import run
from loopback import DIALECTS, NATIVE

SECONDS = 30.0


class Agent:
    """The program, and all that it told the last time."""

    def __init__(self, project: Path, environment: dict[str, str], journal: Journal) -> None:
        self._project = project
        self._environment = environment
        self._journal = journal
        self.told: dict[str, Any] = {}

    def __call__(self, endpoint: Endpoint, question: str, model: str = "") -> Outcome:
        variables = self._environment | {"BASE_URL": endpoint.base_url, "MODEL": model or endpoint.model}
        ended = run([NODE, FOLDER / "aisdk.mjs", question], self._project, variables, SECONDS)
        self._journal.note(ended, endpoint.gateway)
        assert ended.code == 0
        self.told = json.loads(ended.stdout)
        calls = [(call["name"], call["input"]) for step in self.told["steps"] for call in step["calls"]]
        return Outcome([step["finishReason"] for step in self.told["steps"]], calls, self.told["text"])


@pytest.fixture
def agent(project: Path, environment: dict[str, str], journal: Journal) -> Agent:
    return Agent(project, environment, journal)


@pytest.mark.parametrize("dialect", [NATIVE, *DIALECTS])
def test_cycle_one(dialect: str, agent: Agent, endpoints: Endpoints, journal: Journal) -> None:
    try_reading("aisdk", endpoints[dialect], agent, journal)
    assert agent.told["errors"] == []
    assert all(step["usage"] for step in agent.told["steps"])


@pytest.mark.parametrize("dialect", [NATIVE, *DIALECTS])
def test_notes(dialect: str, agent: Agent, endpoints: Endpoints, journal: Journal, project: Path) -> None:
    try_notes("aisdk", endpoints[dialect], agent, journal, project)
    assert agent.told["errors"] == []
    assert agent.told["pieces"]["tool-input-delta"] > 20, "arguments come while they are written"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_that_is_cut_is_not_run(
    dialect: str, agent: Agent, endpoints: Endpoints, journal: Journal, project: Path
) -> None:
    question = "Write 'a text that is long enough to be cut somewhere in the middle of it' to cut.txt"
    outcome = agent(endpoints[dialect], question, f"sim:{dialect}+cut_mid_call")
    assert outcome.calls == []
    assert agent.told["errors"]
    assert not (project / "cut.txt").exists()
