"""Cline as a separate program: it takes calls as XML in text, whatever the model behind the gateway writes.

Cline trims what stands between its tags, so that files lose blank lines at both ends. What is written here has some, and
must arrive with them: they are saved by a character that Cline deletes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agents.conftest import bare_environment
from agents.cycles import CLINE, FOLDER, NODE
from agents.programs import Ended, Server, run, serving
from support.loopback import Sim, running_loop, running_sim

from toolglot.gateway.telemetry.report import read_log

SECONDS = 90.0
DIALECTS = ("fenced_tool_flat", "hermes", "qwen3_coder", "native")
MODEL = "sim"
"""No name that Cline knows, so it uses XML."""
FAREWELL = "All files are written."

FILES: Mapping[str, str] = {
    "page.html": (
        "<!doctype html>\n<p>1 &lt; 2 &amp;&amp; 3 &gt; 2, &quot;quoted&quot; &amp;lt; &nbsp;</p>\n"
        "<content>\n</content>\n<path>elsewhere.txt</path>\n</write_to_file>\n<read_file><path>x</path></read_file>\n"
    ),
    "notes.md": "\n\n# Notes\n\n\t* \"quotes\" 'single' `code` ${HOME} \\n \\\\ {braces} %s\n* naïve ☕ 日本語 ]]>\n\n```js\nx\n```\n",
    "plain.txt": "no line break at the end",
}
"""Files that are easily damaged: entities, Cline's own tags, a code fence, and both kinds of end."""


QUESTION = "Write three files."
COMPLAINT = "[ERROR] You did not use a tool"
END = "<attempt_completion>\n<result>Nothing was done.</result>\n</attempt_completion>"


def script(dialect: str) -> list[dict[str, Any]]:
    """The files one after the other, then the end."""
    calls = [{"name": "write_to_file", "arguments": {"path": name, "content": text}} for name, text in FILES.items()]
    calls.append({"name": "attempt_completion", "arguments": {"result": FAREWELL}})
    return [{"text": "Now.", "calls": [call], "dialect": dialect} for call in calls]


def run_cline(base_url: str, home: Path, project: Path) -> Ended:
    if not CLINE.exists():
        pytest.fail(f"{CLINE.relative_to(FOLDER)} is missing; 'make test-clients' installs it")
    data = home / ".cline/data"
    data.mkdir(parents=True)
    chosen = {f"{mode}ModeApiProvider": "openai" for mode in ("act", "plan")}
    chosen |= {f"{mode}ModeOpenAiModelId": MODEL for mode in ("act", "plan")}
    state = chosen | {"openAiBaseUrl": base_url, "welcomeViewCompleted": True, "telemetrySetting": "disabled"}
    (data / "globalState.json").write_text(json.dumps(state), "utf-8")
    (data / "secrets.json").write_text('{"openAiApiKey": "none"}', "utf-8")
    environment = bare_environment(home) | {"CLINE_DIR": str(home / ".cline"), "CLINE_NO_AUTO_UPDATE": "1"}
    return run([NODE, CLINE, "-a", "-y", "--json", QUESTION], project, environment, SECONDS)


@contextmanager
def toolglot(sim: Sim, folder: Path, mode: str, **variables: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "toolglot", "serve", "--port", "0", "--base-url", sim.base_url, "--mode", mode]
    environment = bare_environment(folder) | variables
    with serving("gateway", command, folder, environment, folder / "gateway.log") as server:
        yield server


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """The user's home, and a project that is empty."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    return home, project


def messages_of(ended: Ended) -> list[str]:
    events = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    return [event["text"] for event in events if event.get("say") == "completion_result" and event.get("text")]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_files_are_written_to_the_byte(dialect: str, folders: tuple[Path, Path]) -> None:
    home, project = folders
    with running_loop() as loop, running_sim(loop, {"answer": script(dialect)}, chunk=5) as sim:
        with toolglot(sim, home, "native" if dialect == "native" else "text") as server:
            ended = run_cline(f"{server.address}/v1", home, project)
        bodies = [seen.body for seen in sim.since(0)]
        log = str(server)
    assert ended.code == 0, (ended, log)
    assert {path.name: path.read_bytes() for path in project.iterdir()} == {
        name: text.encode() for name, text in FILES.items()
    }, (ended, log)
    assert messages_of(ended)[-1] == FAREWELL
    assert len(bodies) == len(FILES) + 1
    assert all(("tools" in body) == (dialect == "native") for body in bodies)
    assert COMPLAINT not in json.dumps(bodies)


def test_without_toolglot_nothing_is_written(folders: tuple[Path, Path]) -> None:
    """The same answers straight from the model: the client finds no call in them, and complains."""
    home, project = folders
    answers = [script("hermes")[list(FILES).index("plain.txt")], {"text": END}]
    with running_loop() as loop, running_sim(loop, {"answer": answers}, chunk=5) as sim:
        ended = run_cline(sim.base_url, home, project)
        bodies = [seen.body for seen in sim.since(0)]
    assert ended.code == 0, ended
    assert list(project.iterdir()) == []
    assert COMPLAINT in json.dumps(bodies[-1]["messages"][-1])
    assert len(bodies) == 2


@pytest.mark.parametrize("stage", ["shadow", "full"])
def test_the_rollout_is_judged_by_the_client(stage: str, folders: tuple[Path, Path]) -> None:
    """In a dry run the client gets what the model wrote, and its own complaint is in the record that follows."""
    home, project = folders
    answers = [script("fenced_tool_flat")[list(FILES).index("plain.txt")], {"text": END}]
    with running_loop() as loop, running_sim(loop, {"answer": answers}, chunk=5) as sim:
        with toolglot(sim, home, "text", TOOLGLOT_ROLLOUT_XML=stage) as server:
            ended = run_cline(f"{server.address}/v1", home, project)
        groups, found = read_log((home / "gateway.log").read_text("utf-8").splitlines())
    assert ended.code == 0, (ended, str(server))
    assert found == 2
    (tally,) = groups["xml"].values()
    assert (tally.arm, tally.answers) == ("on" if stage == "full" else "dry_run", 2)
    assert (tally.tools["write_to_file"], tally.verdict) == (1, "met")
    assert dict(tally.complaints) == ({} if stage == "full" else {"no_tool": 1})
    assert [path.name for path in project.iterdir()] == (["plain.txt"] if stage == "full" else [])
