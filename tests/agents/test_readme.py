"""The settings in docs/clients.md, used by the agents unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from agents.agents import CLAUDE, CODEX, SECONDS
from agents.cycles import OPENCODE, Journal
from agents.opencode import SWITCHES
from agents.programs import Ended, Server, run

PAGE = (Path(__file__).resolve().parents[2] / "docs/clients.md").read_text("utf-8").partition("## By hand")[2]
TASK = "Write 'a line & a <tag>' to out.txt"
QUIET = {name: value for name, value in CLAUDE.variables.items() if not name.startswith("ANTHROPIC_")}

Start = Callable[[str, Path, dict[str, str]], Ended]


def start_claude(settings: str, project: Path, environment: dict[str, str]) -> Ended:
    script = settings.replace("\nclaude\n", '\nexec "$@"\n')
    return run(
        ["sh", "-c", script, "sh", CLAUDE.program, *CLAUDE.arguments, TASK], project, environment | QUIET, SECONDS
    )


def start_codex(settings: str, project: Path, environment: dict[str, str]) -> Ended:
    folder = Path(environment["HOME"], ".codex")
    folder.mkdir()
    (folder / "config.toml").write_text(settings, "utf-8")
    return run([CODEX.program, *CODEX.arguments, TASK], project, environment, SECONDS)


def start_opencode(settings: str, project: Path, environment: dict[str, str]) -> Ended:
    (project / "opencode.json").write_text(settings, "utf-8")
    return run([OPENCODE, "run", TASK], project, environment | SWITCHES, SECONDS)


@pytest.mark.parametrize(("kind", "start"), [("sh", start_claude), ("toml", start_codex), ("json", start_opencode)])
def test_the_printed_settings_work(
    kind: str, start: Start, gateway: Server, project: Path, environment: dict[str, str], journal: Journal
) -> None:
    """Only the port and the name of the model are others."""
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    settings = blocks[0].replace("http://127.0.0.1:8484", gateway.address).replace("my-model", "sim:hermes")
    ended = start(settings, project, environment)
    journal.entries.append(ended)
    assert ended.code == 0
    assert (project / "out.txt").read_bytes() == b"a line & a <tag>"
