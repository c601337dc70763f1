"""The versions that ``toolglot setup`` names as tried are those that ``make test-clients`` runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolglot.clients.agents import find_agent

PINNED = json.loads((Path(__file__).resolve().parents[1] / "agents/package.json").read_text("utf-8"))["dependencies"]
PACKAGES = {
    "claude": "@anthropic-ai/claude-code-linux-x64",
    "codex": "@openai/codex",
    "opencode": "opencode-linux-x64",
    "gemini": "@google/gemini-cli",
    "qwen": "@qwen-code/qwen-code",
    "goose": "@aaif/goose-binary-linux-x64",
}


@pytest.mark.parametrize("name", PACKAGES)
def test_the_tested_version_is_the_pinned_one(name: str) -> None:
    agent = find_agent(name)
    assert agent is not None and agent.tested == PINNED[PACKAGES[name]].removesuffix("-linux-x64")
