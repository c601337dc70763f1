"""OpenCode as a user starts it: one command, one task, an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agents.cycles import OPENCODE, Ask, Endpoint, Journal, Outcome, try_notes, try_reading
from agents.opencode import configure, read_parts
from agents.programs import run
from support.loopback import DIALECTS

SECONDS = 120.0


@pytest.fixture
def ask(project: Path, environment: dict[str, str], journal: Journal) -> Ask:
    def ask(endpoint: Endpoint, question: str) -> Outcome:
        model = f"{endpoint.dialect}/{endpoint.model}"
        command = [str(OPENCODE), "run", "--format", "json", "--model", model, question]
        ended = run(command, project, environment | configure([endpoint]), SECONDS)
        journal.entries.append(ended)
        assert ended.code == 0
        events = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
        assert [event for event in events if event["type"] == "error"] == []
        return read_parts([event["part"] for event in events if "part" in event])

    return ask


@pytest.mark.parametrize("dialect", DIALECTS)
def test_cycle_one(endpoint: Endpoint, ask: Ask, journal: Journal) -> None:
    try_reading("opencode", endpoint, ask, journal)


@pytest.mark.parametrize("dialect", ["roo_xml"])
def test_notes(endpoint: Endpoint, ask: Ask, journal: Journal, project: Path) -> None:
    try_notes("opencode", endpoint, ask, journal, project)
