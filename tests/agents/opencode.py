"""OpenCode, configured to use only loopback and to call only the endpoints under test."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from agents.cycles import Endpoint, Outcome

SWITCHES = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "npm_config_registry": "http://127.0.0.1:9/",  # a closed port: nothing is installed in the background
}


def configure(endpoints: Iterable[Endpoint]) -> dict[str, str]:
    """The environment for OpenCode: a provider for every endpoint, named after its dialect, with one model."""
    providers = {}
    for endpoint in endpoints:
        limit = {"context": 200_000, "output": 8000}
        providers[endpoint.dialect] = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": endpoint.base_url, "apiKey": "none"},
            "models": {endpoint.model: {"tool_call": True, "limit": limit}},
        }
    config = {"share": "disabled", "autoupdate": False, "permission": {"*": "allow"}, "provider": providers}
    return SWITCHES | {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}


def read_parts(parts: list[dict[str, Any]]) -> Outcome:
    """The outcome of a turn from the parts of all its messages."""
    states = [(part["tool"], part["state"]) for part in parts if part["type"] == "tool"]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return Outcome(
        reasons=[part["reason"] for part in parts if part["type"] == "step-finish"],
        calls=[(name, state["input"]) for name, state in states if state["status"] == "completed"],
        text=texts[-1] if texts else "",
        errors=[str(state.get("error", state["status"])) for _, state in states if state["status"] != "completed"],
    )
