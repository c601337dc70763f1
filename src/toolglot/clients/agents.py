"""All clients: one record for each, with its files, its variables, its wire and how it is started."""

from __future__ import annotations

import difflib
from typing import Final

from toolglot.clients.agent_records import Agent, ConfigFile, Connection, Launch
from toolglot.clients.gateway_key import KEY_VARIABLE, NO_KEY

__all__ = [
    "AGENTS",
    "KEY_VARIABLE",
    "NO_KEY",
    "Agent",
    "ConfigFile",
    "Connection",
    "Launch",
    "find_agent",
    "suggest_agent",
]

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
QWEN_SETTINGS: Final = {
    "env": QWEN_VARIABLES,
    "model": {"name": "{model}"},
    "security": {"auth": {"selectedType": "openai"}},
}
GOOSE_VARIABLES: Final = {
    "GOOSE_PROVIDER": "openai",
    "GOOSE_MODEL": "{model}",
    "OPENAI_HOST": "{address}",
    "OPENAI_BASE_PATH": "v1/chat/completions",
}
CLAUDE_FILE: Final = ConfigFile(
    folder=".claude",
    variable="CLAUDE_CONFIG_DIR",
    names=("settings.json",),
    format="json",
    settings={"env": CLAUDE_VARIABLES},
)
CLINE_FILE: Final = ConfigFile(
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
    volatile=("updatedAt",),
)
CONTINUE_FILE: Final = ConfigFile(
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
)
GEMINI_FILES: Final = (
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
)
KEY_NOTE: Final = f"set {KEY_VARIABLE} to the client key before it is started"

AGENTS: Final = (
    Agent(
        name="claude",
        title="Claude Code",
        wire="anthropic_messages",
        tested="2.1.326",
        start="claude",
        launch=Launch(
            install="npm install -g @anthropic-ai/claude-code",
            options=("--settings", "{folder}/settings.json"),
            resume="--continue",
            unset=("ANTHROPIC_API_KEY", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
            files=(CLAUDE_FILE,),
        ),
        files=(CLAUDE_FILE,),
        variables=CLAUDE_VARIABLES,
    ),
    Agent(
        name="codex",
        title="Codex",
        wire="openai_responses",
        tested="0.169.0",
        start="codex",
        launch=Launch(
            install="npm install -g @openai/codex",
            override="--config",
            variables={KEY_VARIABLE: "{key}"},
            resume="resume --last",
        ),
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
        launch=Launch(
            install="npm install -g opencode-ai", variables={"OPENCODE_CONFIG_CONTENT": OPENCODE}, resume="--continue"
        ),
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
        launch=Launch(install="npm install -g @kilocode/cli", variables={"KILO_CONFIG_CONTENT": OPENCODE}),
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
        launch=Launch(
            install="npm install -g @google/gemini-cli",
            variables={"GEMINI_CLI_HOME": "{folder}"},
            unset=("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
            files=GEMINI_FILES,
            copies=True,
            mirrors=".gemini",
        ),
        files=GEMINI_FILES,
        variables=GEMINI_VARIABLES,
        notes=("a .env file in the folder of a project takes precedence",),
    ),
    Agent(
        name="qwen",
        title="Qwen Code",
        wire="openai_chat",
        tested="0.24.4",
        start="qwen",
        launch=Launch(
            install="npm install -g @qwen-code/qwen-code",
            variables={"QWEN_CODE_SYSTEM_SETTINGS_PATH": "{folder}/settings.json"},
            files=(
                ConfigFile(folder="/etc/qwen-code", names=("settings.json",), format="json", settings=QWEN_SETTINGS),
            ),
            copies=True,
        ),
        files=(
            ConfigFile(
                folder=".qwen",
                names=("settings.json",),
                format="json",
                settings=QWEN_SETTINGS,
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
        launch=Launch(
            install="npm install -g cline",
            variables={"CLINE_PROVIDER_SETTINGS_PATH": "{folder}/providers.json"},
            files=(CLINE_FILE,),
            copies=True,
        ),
        files=(CLINE_FILE,),
        notes=("in the extension: API Provider 'OpenAI Compatible', with the same base URL, key and model",),
    ),
    Agent(
        name="continue",
        title="Continue",
        wire="openai_chat",
        tested="1.5.47",
        start="cn",
        launch=Launch(
            install="npm install -g @continuedev/cli",
            options=("--config", "{folder}/config.yaml"),
            files=(CONTINUE_FILE,),
            copies=True,
        ),
        files=(CONTINUE_FILE,),
    ),
    Agent(
        name="aider",
        title="aider",
        wire="openai_chat",
        start="aider",
        launch=Launch(install="pipx install aider-chat"),
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
        launch=Launch(install="brew install block-goose-cli", unset=("OPENAI_BASE_URL",)),
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


def suggest_agent(name: str) -> str:
    """The end of a message about an unknown client: the nearest known one, if any is near."""
    near = difflib.get_close_matches(name.lower(), [agent.name for agent in AGENTS], 1, 0.75)
    return f" (did you mean {near[0]}?)" if near else ""


def find_agent(name: str) -> Agent | None:
    """The client of this name."""
    return next((agent for agent in AGENTS if agent.name == name), None)
