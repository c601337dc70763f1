"""Real agents through ``toolglot run``: a first call is made, and no file that they had is changed.

Every agent has settings for another server, as people do; what ``run`` sets must take precedence.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from agents.agents import CLAUDE, CODEX, SECONDS
from agents.cycles import FOLDER, NODE, OPENCODE, PACKAGES
from agents.opencode import SWITCHES
from agents.programs import run
from support.loopback import Sim

from toolglot.clients.agents import find_agent

PROGRAMS = {
    "claude": CLAUDE.program,
    "codex": CODEX.program,
    "opencode": OPENCODE,
    "gemini": PACKAGES / ".bin/gemini",
    "qwen": PACKAGES / ".bin/qwen",
    "node": NODE,
}
ARGUMENTS = {
    "claude": ("--dangerously-skip-permissions", "--print"),
    "codex": ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
    "opencode": ("run",),
    "gemini": ("--yolo", "--prompt"),
    "qwen": ("--yolo", "--prompt"),
}
CLOSED = "http://127.0.0.1:9"
OPENCODE_SETTINGS = {
    "$schema": "https://opencode.ai/config.json",
    "model": "toolglot/old",
    "small_model": "toolglot/old",
    "permission": {"*": "allow"},
    "provider": {
        "toolglot": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{CLOSED}/v1", "apiKey": "old"},
            "models": {"old": {"tool_call": True}},
        }
    },
}
QWEN_SETTINGS = {
    "env": {"OPENAI_API_KEY": "old", "OPENAI_BASE_URL": f"{CLOSED}/v1", "OPENAI_MODEL": "old"},
    "general": {"enableAutoUpdate": False},
    "model": {"name": "old"},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"auth": {"selectedType": "qwen-oauth"}},
    "telemetry": {"enabled": False},
    "$version": 4,
}
FILES = {
    "claude": [f'{{"env": {{"ANTHROPIC_BASE_URL": "{CLOSED}", "ANTHROPIC_MODEL": "old"}}, "model": "opus"}}'],
    "codex": [
        'model = "old"\nmodel_provider = "toolglot"\ncheck_for_update_on_startup = false\nanalytics.enabled = false\n'
        f'features.plugins = false\n[model_providers.toolglot]\nname = "old"\nbase_url = "{CLOSED}/v1"\n'
        'wire_api = "responses"\nenv_key = "TOOLGLOT_KEY"\n'
    ],
    "opencode": [json.dumps(OPENCODE_SETTINGS)],
    "gemini": [
        f"GEMINI_API_KEY=old\nGOOGLE_GEMINI_BASE_URL={CLOSED}\nGEMINI_MODEL=old\n",
        '{"security": {"auth": {"selectedType": "oauth-personal"}}, "privacy": {"usageStatisticsEnabled": false}}',
    ],
    "qwen": [json.dumps(QWEN_SETTINGS)],
}
"""What the files of each client have, in the order of its record."""
QUIET = {name: value for name, value in CLAUDE.variables.items() if not name.startswith("ANTHROPIC_")} | {
    **SWITCHES,
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
}


def write_files(client: str, environment: dict[str, str]) -> dict[Path, bytes]:
    agent = find_agent(client)
    assert agent is not None
    written = {}
    for file, text in zip(agent.files, FILES[client], strict=True):
        path = file.locate(environment, Path(environment["HOME"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        written[path] = text.encode()
    return written


@pytest.mark.parametrize("client", ARGUMENTS)
def test_a_first_call(client: str, sim: Sim, project: Path, environment: dict[str, str], tmp_path: Path) -> None:
    missing = [path for path in (PROGRAMS[client], NODE) if not path.exists()]
    assert not missing, f"{missing[0].relative_to(FOLDER)} is missing; 'make test-clients' installs it"
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, path in PROGRAMS.items():
        (programs / name).symlink_to(path)
    environment |= QUIET | {"PATH": f"{programs}:{environment['PATH']}"}
    before = write_files(client, environment)
    task = f"Write 'a line & a <tag>' to {project / 'out.txt'}"
    command = [sys.executable, "-m", "toolglot", "run", client, "--base-url", sim.base_url, "--json", "--"]
    ended = run([*command, *ARGUMENTS[client], task], project, environment, 2 * SECONDS)
    assert ended.code == 0, ended
    assert (project / "out.txt").read_bytes() == b"a line & a <tag>", ended
    summary = json.loads(ended.stdout.splitlines()[-1])
    assert summary["calls"] == 1 and summary["turns"] >= 2 and summary["failed"] == 0 and summary["sessions"], ended
    assert Path(summary["html"]).read_text("utf-8").startswith("<!doctype html>")
    assert {path: path.read_bytes() for path in before} == before
