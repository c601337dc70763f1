"""How clients are pointed to the gateway: one record for each, with its files, its variables and its wire.

Texts in records have the placeholders ``{address}`` (of the gateway, without ``/v1``), ``{model}`` and ``{key}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from toolglot.clients.file_editing import merge_text, merge_values, parse_text

NO_KEY: Final = "none"
"""What clients present to a gateway without client keys; most refuse an empty key."""
KEY_VARIABLE: Final = "TOOLGLOT_KEY"


class Connection(Struct, frozen=True, kw_only=True):
    """What a client must know of the gateway."""

    address: str
    model: str
    key: str = ""

    def fill(self, template: Any) -> Any:
        """The template with its placeholders filled, in keys, too."""
        if isinstance(template, str):
            values = {"{address}": self.address, "{model}": self.model, "{key}": self.key or NO_KEY}
            return values.get(template) or _replace_all(template, values)
        if isinstance(template, Mapping):
            return {self.fill(key): self.fill(value) for key, value in template.items()}
        return [self.fill(item) for item in template] if isinstance(template, list | tuple) else template


def _replace_all(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


class ConfigFile(Struct, frozen=True, kw_only=True):
    """A configuration file of a client.

    ``folder`` is in the home directory, unless ``variable`` names another one; ``below`` is a path in that. Of the
    ``names`` the first that exists is used, else the first. ``keyed`` are settings only for a gateway with client keys,
    ``defaults`` are those that a file has anyway, unless it is new.
    """

    folder: str
    names: tuple[str, ...]
    format: str
    settings: Mapping[str, Any]
    keyed: Mapping[str, Any] = {}
    defaults: Mapping[str, Any] = {}
    variable: str = ""
    below: str = ""

    def locate(self, environ: Mapping[str, str], home: Path) -> Path:
        named = environ.get(self.variable) if self.variable else None
        folder = Path(named) / self.below if named else home / self.folder
        paths = [folder / name for name in self.names]
        return next((path for path in paths if path.exists()), paths[0])

    def merge(self, text: str, connection: Connection) -> str:
        """The text of the file with the settings for the gateway. Raises: ValueError if it cannot be edited."""
        known = parse_text(text, self.format)
        changes = {key: value for key, value in self.defaults.items() if key not in known}
        changes |= connection.fill(self.settings)
        if connection.key:
            changes = merge_values(changes, self.keyed)
        return merge_text(text, changes, self.format)


class Agent(Struct, frozen=True, kw_only=True):
    """A client: the wire that it uses, its files, or a snippet where it is configured in a program or a dialog.

    ``start`` is the command that starts it. ``variables`` point it to the gateway without its files. ``tested`` is the
    version that these settings were tried with, if any.
    """

    name: str
    title: str
    wire: str
    start: str = ""
    files: tuple[ConfigFile, ...] = ()
    variables: Mapping[str, str] = {}
    snippet: str = ""
    notes: tuple[str, ...] = ()
    tested: str = ""


OPENCODE: Final = {
    "model": "toolglot/{model}",
    "small_model": "toolglot/{model}",
    "provider": {
        "toolglot": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "toolglot",
            "options": {"baseURL": "{address}/v1", "apiKey": "{key}"},
            "models": {"{model}": {"name": "{model}", "tool_call": True}},
        }
    },
}
CLAUDE_VARIABLES: Final = {
    "ANTHROPIC_BASE_URL": "{address}",
    "ANTHROPIC_AUTH_TOKEN": "{key}",
    "ANTHROPIC_MODEL": "{model}",
    "ANTHROPIC_SMALL_FAST_MODEL": "{model}",
}
GEMINI_VARIABLES: Final = {
    "GOOGLE_GEMINI_BASE_URL": "{address}",
    "GEMINI_API_KEY": "{key}",
    "GEMINI_MODEL": "{model}",
}
QWEN_VARIABLES: Final = {
    "OPENAI_API_KEY": "{key}",
    "OPENAI_BASE_URL": "{address}/v1",
    "OPENAI_MODEL": "{model}",
}
GOOSE_VARIABLES: Final = {
    "GOOSE_PROVIDER": "openai",
    "GOOSE_MODEL": "{model}",
    "OPENAI_HOST": "{address}",
    "OPENAI_BASE_PATH": "v1/chat/completions",
}
KEY_NOTE: Final = f"set {KEY_VARIABLE} to the client key before it is started"

AGENTS: Final = (
    Agent(
        name="claude",
        title="Claude Code",
        wire="anthropic_messages",
        tested="2.1.326",
        start="claude",
        files=(
            ConfigFile(
                folder=".claude",
                variable="CLAUDE_CONFIG_DIR",
                names=("settings.json",),
                format="json",
                settings={"env": CLAUDE_VARIABLES},
            ),
        ),
        variables=CLAUDE_VARIABLES,
    ),
    Agent(
        name="codex",
        title="Codex",
        wire="openai_responses",
        tested="0.169.0",
        start="codex",
        files=(
            ConfigFile(
                folder=".codex",
                variable="CODEX_HOME",
                names=("config.toml",),
                format="toml",
                settings={
                    "model": "{model}",
                    "model_provider": "toolglot",
                    "model_providers": {
                        "toolglot": {"name": "toolglot", "base_url": "{address}/v1", "wire_api": "responses"}
                    },
                },
                keyed={"model_providers": {"toolglot": {"env_key": KEY_VARIABLE}}},
            ),
        ),
        notes=(f"if the gateway has client keys, {KEY_NOTE}",),
    ),
    Agent(
        name="opencode",
        title="OpenCode",
        wire="openai_chat",
        tested="1.18.34",
        start="opencode",
        files=(
            ConfigFile(
                folder=".config/opencode",
                variable="XDG_CONFIG_HOME",
                below="opencode",
                names=("opencode.json", "opencode.jsonc"),
                format="json",
                settings=OPENCODE,
                defaults={"$schema": "https://opencode.ai/config.json"},
            ),
        ),
        notes=("an opencode.json in the folder of a project takes precedence",),
    ),
    Agent(
        name="kilo",
        title="Kilo CLI",
        wire="openai_chat",
        start="kilo",
        files=(
            ConfigFile(
                folder=".config/kilo",
                variable="XDG_CONFIG_HOME",
                below="kilo",
                names=("kilo.json", "kilo.jsonc"),
                format="json",
                settings=OPENCODE,
            ),
        ),
        notes=("in the extension: API Provider 'OpenAI Compatible', with the same base URL, key and model",),
    ),
    Agent(
        name="gemini",
        title="Gemini CLI",
        wire="gemini",
        tested="0.61.0",
        start="gemini",
        files=(
            ConfigFile(
                folder=".gemini",
                variable="GEMINI_CLI_HOME",
                below=".gemini",
                names=(".env",),
                format="env",
                settings=GEMINI_VARIABLES,
            ),
            ConfigFile(
                folder=".gemini",
                variable="GEMINI_CLI_HOME",
                below=".gemini",
                names=("settings.json",),
                format="json",
                settings={"security": {"auth": {"selectedType": "gemini-api-key"}}},
            ),
        ),
        variables=GEMINI_VARIABLES,
        notes=("a .env file in the folder of a project takes precedence",),
    ),
    Agent(
        name="qwen",
        title="Qwen Code",
        wire="openai_chat",
        tested="0.24.4",
        start="qwen",
        files=(
            ConfigFile(
                folder=".qwen",
                names=("settings.json",),
                format="json",
                settings={
                    "env": QWEN_VARIABLES,
                    "model": {"name": "{model}"},
                    "security": {"auth": {"selectedType": "openai"}},
                },
            ),
        ),
        variables=QWEN_VARIABLES,
        notes=("OPENAI_* variables of the shell take precedence",),
    ),
    Agent(
        name="cline",
        title="Cline",
        wire="openai_chat",
        tested="3.0.65",
        start="cline",
        files=(
            ConfigFile(
                folder=".cline/data/settings",
                variable="CLINE_DIR",
                below="data/settings",
                names=("providers.json",),
                format="json",
                settings={
                    "lastUsedProvider": "openai-compatible",
                    "providers": {
                        "openai-compatible": {
                            "settings": {
                                "provider": "openai-compatible",
                                "apiKey": "{key}",
                                "model": "{model}",
                                "baseUrl": "{address}/v1",
                            },
                            "updatedAt": "2026-01-01T00:00:00.000Z",
                            "tokenSource": "manual",
                        }
                    },
                },
                defaults={"version": 1},
            ),
        ),
        notes=("in the extension: API Provider 'OpenAI Compatible', with the same base URL, key and model",),
    ),
    Agent(
        name="continue",
        title="Continue",
        wire="openai_chat",
        tested="1.5.47",
        start="cn",
        files=(
            ConfigFile(
                folder=".continue",
                variable="CONTINUE_GLOBAL_DIR",
                names=("config.yaml",),
                format="yaml",
                settings={
                    "models": [
                        {
                            "name": "toolglot",
                            "provider": "openai",
                            "model": "{model}",
                            "apiBase": "{address}/v1",
                            "apiKey": "{key}",
                            "roles": ["chat", "edit", "apply"],
                            "capabilities": ["tool_use"],
                        }
                    ],
                },
                defaults={"name": "Local configuration", "version": "1.0.0", "schema": "v1"},
            ),
        ),
    ),
    Agent(
        name="aider",
        title="aider",
        wire="openai_chat",
        start="aider",
        files=(
            ConfigFile(
                folder="",
                names=(".aider.conf.yml",),
                format="yaml",
                settings={
                    "model": "openai/{model}",
                    "openai-api-base": "{address}/v1",
                    "openai-api-key": "{key}",
                },
            ),
        ),
        variables={"AIDER_MODEL": "openai/{model}", "OPENAI_API_BASE": "{address}/v1", "OPENAI_API_KEY": "{key}"},
        notes=("it offers no tools: edits are blocks in its answers, which pass unchanged",),
    ),
    Agent(
        name="goose",
        title="goose",
        wire="openai_chat",
        tested="1.52.0",
        start="goose session",
        files=(
            ConfigFile(
                folder=".config/goose",
                variable="XDG_CONFIG_HOME",
                below="goose",
                names=("config.yaml",),
                format="yaml",
                settings=GOOSE_VARIABLES,
            ),
        ),
        variables={**GOOSE_VARIABLES, "OPENAI_API_KEY": "{key}"},
        notes=("it keeps keys in the system's keyring: start it with OPENAI_API_KEY={key}",),
    ),
    Agent(
        name="roo",
        title="Roo Code",
        wire="openai_chat",
        snippet="""\
In the settings of the extension, under Providers:

    API Provider    OpenAI Compatible
    Base URL        {address}/v1
    API Key         {key}
    Model           {model}
""",
        notes=("it keeps its settings inside the editor, where no other program can write them",),
    ),
    Agent(
        name="openai",
        title="OpenAI SDK for Python",
        wire="openai_chat",
        snippet="""\
from openai import OpenAI

client = OpenAI(base_url="{address}/v1", api_key="{key}")
answer = client.chat.completions.create(model="{model}", messages=[{"role": "user", "content": "Hello"}])
""",
        variables={"OPENAI_BASE_URL": "{address}/v1", "OPENAI_API_KEY": "{key}"},
    ),
    Agent(
        name="anthropic",
        title="Anthropic SDK for Python",
        wire="anthropic_messages",
        snippet="""\
from anthropic import Anthropic

client = Anthropic(base_url="{address}", api_key="{key}")
answer = client.messages.create(model="{model}", max_tokens=1024, messages=[{"role": "user", "content": "Hello"}])
""",
        variables={"ANTHROPIC_BASE_URL": "{address}", "ANTHROPIC_API_KEY": "{key}"},
    ),
    Agent(
        name="ai-sdk",
        title="AI SDK",
        wire="openai_chat",
        snippet="""\
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";

const toolglot = createOpenAICompatible({ name: "toolglot", baseURL: "{address}/v1", apiKey: "{key}" });
const { text } = await generateText({ model: toolglot("{model}"), prompt: "Hello" });
""",
    ),
)


def find_agent(name: str) -> Agent | None:
    """The client of this name."""
    return next((agent for agent in AGENTS if agent.name == name), None)
