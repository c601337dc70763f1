"""The AI SDK: a program that streams, runs two tools with the real file system, and goes on step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
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
        self._journal.entries.append(ended)
        assert ended.code == 0
        self.told = json.loads(ended.stdout)
        calls = [(call["name"], call["input"]) for step in self.told["steps"] for call in step["calls"]]
        reasons = [step["finishReason"] for step in self.told["steps"]]
        return Outcome(reasons, calls, self.told["text"], self.told["errors"])


@pytest.fixture
def agent(project: Path, environment: dict[str, str], journal: Journal) -> Agent:
    return Agent(project, environment, journal)


@pytest.mark.parametrize("dialect", [NATIVE, *DIALECTS])
def test_cycle_one(agent: Agent, endpoint: Endpoint, journal: Journal) -> None:
    try_reading("aisdk", endpoint, agent, journal)
    assert all(step["usage"] for step in agent.told["steps"])


@pytest.mark.parametrize("dialect", [NATIVE, *DIALECTS])
def test_notes(agent: Agent, endpoint: Endpoint, journal: Journal, project: Path) -> None:
    try_notes("aisdk", endpoint, agent, journal, project)
    assert agent.told["pieces"]["tool-input-delta"] > 20, "arguments come while they are written"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_that_is_cut_is_not_run(agent: Agent, endpoint: Endpoint, project: Path) -> None:
    """The SDK tells the model of the error instead, as it does with any call whose input is broken."""
    question = "Write 'a text that is long enough to be cut somewhere in the middle of it' to cut.txt"
    outcome = agent(endpoint, question, f"{endpoint.model}+cut_mid_call")
    assert set(outcome.reasons) == {"error"}
    assert [result for step in agent.told["steps"] for result in step["results"]] == []
    assert "the connection to the upstream broke" in outcome.errors[0].lower()
    assert not (project / "cut.txt").exists()
