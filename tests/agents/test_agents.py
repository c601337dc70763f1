"""Agents as users start them: one command, one task, an exit code, and a file that was really written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from agents.agents import AGENTS, Agent, LastMessage, read_events
from agents.cycles import ASIDE, Endpoint, Journal, check_requests
from agents.programs import Server
from support.loopback import FAREWELL, NATIVE, NOTES, ask_for_notes

Ask: TypeAlias = Callable[[str], LastMessage]


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> Agent:
    return AGENTS[request.param]


@pytest.fixture
def endpoint(dialect: str, gateway: Server) -> Endpoint:
    """Always the gateway, because the model has only one wire."""
    return Endpoint(dialect, f"{gateway.address}/v1")


@pytest.fixture
def ask(agent: Agent, endpoint: Endpoint, project: Path, environment: dict[str, str], journal: Journal) -> Ask:
    def ask(question: str) -> LastMessage:
        ended = agent.run(endpoint, question, project, environment)
        journal.entries.append(ended)
        assert ended.code == 0
        return agent.listen(read_events(ended.stdout))

    return ask


@pytest.mark.parametrize("dialect", [NATIVE, "hermes", "roo_xml"])
def test_notes(agent: Agent, endpoint: Endpoint, ask: Ask, journal: Journal, project: Path) -> None:
    """The file is read and written byte for byte, and that costs no request more than it must."""
    received = ask(ask_for_notes(agent.task(endpoint.dialect)))
    assert received == LastMessage(FAREWELL, [])
    assert (project / "notes.txt").read_bytes() == NOTES.encode()
    check_requests(agent.name, 3, endpoint, journal, agent.tool_phrase)


@pytest.mark.parametrize("dialect", ["hermes"])
def test_the_model_finds_the_tool_itself(endpoint: Endpoint, ask: Ask, project: Path) -> None:
    """No script: among all that the agent offers the model finds what writes a file."""
    received = ask("Write 'a line & a <tag>' to out.txt")
    assert received.errors == []
    assert received.text.startswith("Done. The tool said: `")
    assert (project / "out.txt").read_bytes() == b"a line & a <tag>"


@pytest.mark.parametrize("dialect", ["hermes"])
def test_a_call_that_is_cut_is_not_run_in_part(
    agent: Agent, endpoint: Endpoint, ask: Ask, journal: Journal, project: Path
) -> None:
    """Some agents retry, some report it to the model or the user; none retries forever."""
    received = ask(f"Write 'a text that is cut in the middle once' to out.txt. Break off {agent.task('hermes')} once.")
    assert received.text
    written = [path.read_bytes() for path in project.glob("out.txt")]
    assert written in ([], [b"a text that is cut in the middle once"])
    assert 2 <= len(journal.bodies) <= 3 + ASIDE[agent.name]
