"""The agents: how each is started for a model, what it calls its tools, and how its output is parsed.

All run offline: their own services are switched off, and their keys are fake.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from agents.cycles import PACKAGES, Endpoint
from agents.programs import Ended, run
from support.loopback import FAREWELL, NOTES, script_task

SECONDS = 60.0

CallOf: TypeAlias = tuple[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The last message of an agent, and the errors before it."""

    text: str
    errors: list[str]


@dataclass(frozen=True, slots=True)
class Agent:
    """``arguments`` are followed by the question. Variables and files name the gateway ``{address}`` and the ``{model}``;
    files lie at home. ``tool_phrase`` is in a prompt only if its tools are."""

    name: str
    program: Path
    arguments: tuple[str, ...]
    variables: Mapping[str, str]
    listen: Callable[[list[dict[str, Any]]], LastMessage]
    read: CallOf
    write: CallOf
    tool_phrase: str
    files: Mapping[str, str] = field(default_factory=dict)
    model: str = "sim:{dialect}"

    def script(self, dialect: str) -> list[dict[str, Any]]:
        """What the model answers to the notes, with calls of this agent's tools; and that one answer is cut once."""
        cut = {"when": rf"Break off {self.task(dialect)} once\.", "tools": True, "times": 1, "fault": "cut_mid_call"}
        return [*script_task(self.task(dialect), (self.read, self.write), FAREWELL), cut]

    def task(self, dialect: str) -> str:
        return f"{self.name}-{dialect}"

    def run(
        self,
        endpoint: Endpoint,
        question: str,
        project: Path,
        environment: Mapping[str, str],
        seconds: float = SECONDS,
    ) -> Ended:
        model = self.model.format(dialect=endpoint.dialect)
        places = {"address": endpoint.base_url.removesuffix("/v1"), "model": model}
        for name, content in self.files.items():
            path = Path(environment["HOME"], name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(content.format_map(places), "utf-8")
        variables = {name: value.format_map(places) for name, value in self.variables.items()}
        return run([self.program, *self.arguments, question], project, {**environment, **variables}, seconds)


def read_events(stdout: str) -> list[dict[str, Any]]:
    """The lines that are JSON; some agents print text before. Only a line feed ends a line: U+2028 may be in a string."""
    return [json.loads(line) for line in stdout.split("\n") if line.startswith("{")]


# Claude Code


def _listen_to_claude(events: list[dict[str, Any]]) -> LastMessage:
    contents = [event["message"]["content"] for event in events if event["type"] == "user"]
    results = [part for content in contents for part in content if part["type"] == "tool_result"]
    end = events[-1]
    errors = [str(part["content"]) for part in results if part.get("is_error")]
    return LastMessage(end["result"], [*errors, *([end["subtype"]] if end["is_error"] else [])])


CLAUDE = Agent(
    name="claude",
    program=PACKAGES / "@anthropic-ai/claude-code-linux-x64/claude",
    arguments=("--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose", "--print"),
    variables={
        "ANTHROPIC_BASE_URL": "{address}",
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_MODEL": "{model}",
        "ANTHROPIC_SMALL_FAST_MODEL": "{model}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",  # without it the superuser must not skip permissions
    },
    listen=_listen_to_claude,
    read=("Read", {"file_path": "package.json"}),
    write=("Write", {"file_path": "notes.txt", "content": NOTES}),
    tool_phrase="file_path",
)


# Codex


def _listen_to_codex(events: list[dict[str, Any]]) -> LastMessage:
    items = [event["item"] for event in events if event["type"] == "item.completed"]
    texts = [item["text"] for item in items if item["type"] == "agent_message"]
    broken = [event for event in events if event["type"] in ("error", "turn.failed")]
    broken += [item for item in items if item.get("status", "completed") != "completed"]
    return LastMessage(texts[-1] if texts else "", list(map(str, broken)))


CODEX = Agent(
    name="codex",
    program=PACKAGES / "@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex",
    arguments=("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json"),
    variables={"GATEWAY_KEY": "none"},
    files={
        ".codex/config.toml": """
model = "{model}"
model_provider = "gateway"
check_for_update_on_startup = false
analytics.enabled = false
features.plugins = false

[model_providers.gateway]
name = "gateway"
base_url = "{address}/v1"
env_key = "GATEWAY_KEY"
wire_api = "responses"
"""
    },
    listen=_listen_to_codex,
    read=("exec_command", {"cmd": "cat package.json"}),
    write=("exec_command", {"cmd": f"printf %s {shlex.quote(NOTES)} > notes.txt"}),
    tool_phrase="exec_command",
)


PATCH = "*** Begin Patch\n*** Add File: notes.txt\n" + "".join(f"+{line}" for line in NOTES.splitlines(True))

PATCHING = replace(
    CODEX,
    name="codex-patch",
    model="gpt-5.5-{dialect}",
    write=("apply_patch", {"input": PATCH + "*** End Patch\n"}),
)
"""For a model of a name it knows Codex offers a tool that takes raw text."""


# goose


def _listen_to_goose(events: list[dict[str, Any]]) -> LastMessage:
    messages = [event["message"] for event in events if event["type"] == "message"]
    parts = [(message["id"], part) for message in messages for part in message["content"]]
    results = [part["toolResult"] for _, part in parts if part["type"] == "toolResponse"]
    broken = [result for result in results if result["status"] != "success" or result["value"].get("isError")]
    broken += [event for event in events if event["type"] == "error"]
    text = "".join(part["text"] for number, part in parts if number == messages[-1]["id"] and part["type"] == "text")
    return LastMessage(text, list(map(str, broken)))


def _make_goose(name: str, **variables: str) -> Agent:
    return Agent(
        name=f"goose-{name}",
        program=PACKAGES / "@aaif/goose-binary-linux-x64/bin/goose",
        arguments=("run", "--no-session", "--with-builtin", "developer", "--output-format", "stream-json", "--text"),
        variables={"GOOSE_MODEL": "{model}", "GOOSE_DISABLE_KEYRING": "1", "GOOSE_MODE": "auto", **variables},
        listen=_listen_to_goose,
        read=("shell", {"command": "cat package.json"}),
        write=("write", {"path": "notes.txt", "content": NOTES}),
        tool_phrase="timeout_secs",
    )


_OPENAI = {"GOOSE_PROVIDER": "openai", "OPENAI_API_KEY": "none", "OPENAI_HOST": "{address}"}

GEESE = (
    _make_goose("chat", **_OPENAI, OPENAI_BASE_PATH="v1/chat/completions"),
    _make_goose("responses", **_OPENAI, OPENAI_BASE_PATH="v1/responses"),
    _make_goose("messages", GOOSE_PROVIDER="anthropic", ANTHROPIC_API_KEY="none", ANTHROPIC_HOST="{address}"),
)

AGENTS = {agent.name: agent for agent in (CLAUDE, CODEX, PATCHING, *GEESE)}
