"""Gemini CLI, Qwen Code and OpenCode, started like the agents of ``agents``; those take paths that are absolute."""

from __future__ import annotations

import json
from typing import Any

from agents.agents import CLAUDE, Agent, CallOf, LastMessage
from agents.cycles import NODE, OPENCODE, PACKAGES
from agents.opencode import SWITCHES, read_parts

NO_CALL: CallOf = ("", {})
"""Tasks of these agents name their own files."""


# Gemini CLI


def _listen_to_gemini(events: list[dict[str, Any]]) -> LastMessage:
    results = [number for number, event in enumerate(events) if event["type"] == "tool_result"]
    last = events[results[-1] + 1 if results else 0 :]
    messages = [event for event in last if event["type"] == "message" and event["role"] == "assistant"]
    broken = [event for event in events if event["type"] == "error" or event.get("status", "success") != "success"]
    return LastMessage("".join(event["content"] for event in messages), list(map(str, broken)))


GEMINI = Agent(
    name="gemini",
    program=NODE,
    arguments=(str(PACKAGES / "@google/gemini-cli/bundle/gemini.js"), "--yolo", "-o", "stream-json", "-p"),
    variables={
        "GOOGLE_GEMINI_BASE_URL": "{address}",
        "GEMINI_API_KEY": "none",
        "GEMINI_MODEL": "{model}",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    },
    files={
        ".gemini/settings.json": """{{
  "general": {{"enableAutoUpdate": false}},
  "privacy": {{"usageStatisticsEnabled": false}},
  "security": {{"auth": {{"selectedType": "gemini-api-key"}}}}
}}"""
    },
    listen=_listen_to_gemini,
    read=NO_CALL,
    write=NO_CALL,
    tool_phrase="file_path",
)


# Qwen Code, whose events are those of Claude Code

QWEN = Agent(
    name="qwen",
    program=NODE,
    arguments=(
        *(str(PACKAGES / "@qwen-code/qwen-code/cli-entry.js"), "--yolo", "--auth-type", "openai"),
        *("-o", "stream-json"),
    ),
    variables={"OPENAI_BASE_URL": "{address}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "{model}"},
    files={
        ".qwen/settings.json": """{{
  "general": {{"enableAutoUpdate": false}},
  "privacy": {{"usageStatisticsEnabled": false}},
  "telemetry": {{"enabled": false}}
}}"""
    },
    listen=CLAUDE.listen,
    read=NO_CALL,
    write=NO_CALL,
    tool_phrase="file_path",
)


# OpenCode


def _listen_to_opencode(events: list[dict[str, Any]]) -> LastMessage:
    outcome = read_parts([event["part"] for event in events if "part" in event])
    return LastMessage(outcome.text, [*outcome.errors, *(str(event) for event in events if event["type"] == "error")])


_PROVIDER = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "ADDRESS/v1", "apiKey": "none"},
    "models": {"MODEL": {"tool_call": True, "limit": {"context": 200_000, "output": 8000}}},
}
_CONFIG = {
    **{"model": "gateway/MODEL", "share": "disabled", "autoupdate": False, "permission": {"*": "allow"}},
    "provider": {"gateway": _PROVIDER},
}
_ESCAPED = json.dumps(_CONFIG).replace("{", "{{").replace("}", "}}")

OPENCODE_RUN = Agent(
    name="opencode",
    program=OPENCODE,
    arguments=("run", "--format", "json"),
    variables={
        **SWITCHES,
        "OPENCODE_CONFIG_CONTENT": _ESCAPED.replace("ADDRESS", "{address}").replace("MODEL", "{model}"),
    },
    listen=_listen_to_opencode,
    read=NO_CALL,
    write=NO_CALL,
    tool_phrase="filePath",
)
