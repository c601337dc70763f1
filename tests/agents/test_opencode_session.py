"""OpenCode as a server that other programs give tasks to; it runs them one after the other."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents.conftest import bare_environment
from agents.cycles import BREAKS_OFF, OPENCODE, Ask, Endpoint, Journal, Outcome, check_reading, try_notes, try_reading
from agents.opencode import configure, read_parts
from agents.programs import Server, serving
from support.loopback import DIALECTS, MANIFEST, NATIVE, Sim

SECONDS = 120.0
LOCAL = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@pytest.fixture(scope="module")
def opencode(sim: Sim, gateway: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("opencode")
    endpoints = [Endpoint(dialect, f"{gateway.address}/v1") for dialect in DIALECTS]
    variables = bare_environment(home) | configure([Endpoint(NATIVE, sim.base_url), *endpoints])
    command = [str(OPENCODE), "serve", "--port", "0", "--print-logs", "--log-level", "WARN"]
    with serving("opencode", command, home, variables, home / "opencode.log") as server:
        yield server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("project")


@pytest.fixture
def project(shared: Path) -> Path:
    """One directory for all tasks, because every new one costs OpenCode a second."""
    (shared / "package.json").write_text(MANIFEST, "utf-8")
    (shared / "notes.txt").unlink(missing_ok=True)
    return shared


@pytest.fixture
def ask(opencode: Server, project: Path, journal: Journal) -> Ask:
    def call(path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "x-opencode-directory": str(project)}
        request = urllib.request.Request(opencode.address + path, data, headers)
        with LOCAL.open(request, timeout=SECONDS) as response:
            return json.load(response)

    def ask(endpoint: Endpoint, question: str) -> Outcome:
        journal.entries.append(opencode)
        session = call("/session", {})["id"]
        model = {"providerID": endpoint.dialect, "modelID": endpoint.model}
        call(f"/session/{session}/message", {"model": model, "parts": [{"type": "text", "text": question}]})
        messages = call(f"/session/{session}/message")
        answers = [message for message in messages if message["info"]["role"] == "assistant"]
        journal.entries.append(json.dumps(answers, ensure_ascii=False))
        assert [message["info"]["error"] for message in answers if message["info"].get("error")] == []
        return read_parts([part for message in answers for part in message["parts"]])

    return ask


@pytest.mark.parametrize("dialect", [NATIVE, *DIALECTS])
def test_cycle_one(endpoint: Endpoint, ask: Ask, journal: Journal) -> None:
    try_reading("session", endpoint, ask, journal)


@pytest.mark.parametrize("dialect", [NATIVE, *DIALECTS])
def test_notes(endpoint: Endpoint, ask: Ask, journal: Journal, project: Path) -> None:
    try_notes("session", endpoint, ask, journal, project)


@pytest.mark.parametrize("dialect", ["hermes"])
def test_an_answer_that_breaks_off_is_asked_for_again(endpoint: Endpoint, ask: Ask, journal: Journal) -> None:
    outcome = ask(endpoint, BREAKS_OFF)
    assert outcome.errors == ["Tool execution aborted"]
    assert outcome.reasons == ["tool-calls", "stop"]
    check_reading(outcome)
    assert len(journal.bodies) == 4, "title, the broken answer, the call, the result"
