"""Real agents through ``toolglot setup``: a first call with what it wrote, then ``--undo``.

Between setup and undo the agent runs, and saves a setting of its own if it has a command for that. Qwen Code saves its
file at each start. Undo must leave what the agent saved, and nothing of toolglot.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from agents.agents import SECONDS
from agents.cycles import FOLDER, NODE, Journal
from agents.programs import Ended, Server, run
from agents.test_run import ARGUMENTS, PROGRAMS, QUIET, write_files

from toolglot.clients.agents import find_agent
from toolglot.clients.file_editing import parse_text

MODEL = "sim:hermes"
SAVES = {
    "codex": ("mcp", "add", "own", "--", "true"),
    "gemini": ("mcp", "add", "--scope", "user", "own", "true"),
    "qwen": ("mcp", "add", "--scope", "user", "own", "true"),
}
"""Commands that save a setting in the file that setup wrote."""
SAVED = {"codex": {"mcp_servers"}, "gemini": {"mcpServers"}, "qwen": {"mcpServers", "$version"}}


class Settings:
    """The configuration files of one agent."""

    def __init__(self, client: str, environment: dict[str, str]) -> None:
        agent = find_agent(client)
        assert agent is not None
        self.files = {file.locate(environment, Path(environment["HOME"])): file for file in agent.files}

    def read(self) -> dict[str, Any]:
        """The values of the files that exist, by name."""
        texts = {path: path.read_text("utf-8") for path in self.files if path.exists()}
        return {path.name: parse_text(text, self.files[path].format) for path, text in texts.items()}

    def list_notes(self) -> list[Path]:
        entries = [entry for path in self.files if path.parent.is_dir() for entry in path.parent.iterdir()]
        return [entry for entry in entries if "toolglot" in entry.name]


@pytest.mark.parametrize(
    ("client", "existing"),
    [*((client, False) for client in ARGUMENTS), ("claude", True), ("codex", True), ("qwen", True)],
)
def test_a_first_call_and_back(
    client: str, existing: bool, gateway: Server, project: Path, environment: dict[str, str], journal: Journal
) -> None:
    missing = [path for path in (PROGRAMS[client], NODE) if not path.exists()]
    assert not missing, f"{missing[0].relative_to(FOLDER)} is missing; 'make test-clients' installs it"
    environment |= QUIET | {"PATH": f"{NODE.parent}:{environment['PATH']}"}
    environment |= {"TOOLGLOT_KEY": "none"} if client == "codex" and existing else {}  # its file demands it

    def start(*command: str | Path) -> Ended:
        ended = run(command, project, environment, SECONDS)
        journal.entries.append(ended)
        assert ended.code == 0
        return ended

    setup = (sys.executable, "-m", "toolglot", "setup", client)
    settings = Settings(client, environment)
    if existing:
        write_files(client, environment)
    before = settings.read()
    assert bool(before) is existing
    assert "called get_weather(" in start(*setup, "--url", gateway.address, "--model", MODEL).stdout
    start(PROGRAMS[client], *ARGUMENTS[client], "Write 'a line & a <tag>' to out.txt")
    assert (project / "out.txt").read_bytes() == b"a line & a <tag>"
    if client in SAVES:
        start(PROGRAMS[client], *SAVES[client])
    during = settings.read()
    undone = start(*setup, "--undo").stdout
    assert "kept" not in undone and "note:" not in undone
    after = settings.read()
    own = {
        name: {key: values[key] for key in SAVED.get(client, set()) if key in values} for name, values in during.items()
    }
    assert any(own.values()) is (client in SAVES)
    expected = {name: before.get(name, {}) | own[name] for name in during}
    assert after == {name: values for name, values in expected.items() if values}
    assert not settings.list_notes() and "nothing to undo" in start(*setup, "--undo").stdout
