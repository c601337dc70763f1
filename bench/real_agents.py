"""Real agents on tasks of two steps, with a model that runs on this machine: ``toolglot serve --embedded``.

The agents read one file and write another. OpenCode runs as its own program (``make test-clients`` installs it), with a
short system prompt and the tools that the tasks need, because a model of this size reads some tens of tokens a second on
a few cores; the other agent is the plain loop of ``agent_tasks.py``. The gateway is set to
one call per answer: a model of this size otherwise writes the second file before it has read the first. A task is solved
if the files at the end are exactly the right ones.

    python bench/real_agents.py                              all agents with the 1.5B model
    python bench/real_agents.py --agents opencode --tasks 1  one agent, one task
    python bench/real_agents.py --show                       what the agents print
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import agent_tasks
from agent_tasks import Task
from packages import tell

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from agents.conftest import bare_environment
from agents.cycles import OPENCODE
from agents.opencode import SWITCHES
from agents.programs import run

MODEL = "qwen2.5-coder-1.5b"
PATIENCE = 900.0
ONE_CALL = {"TOOLGLOT_PARALLEL_CALLS": "false"}
LONGEST_ANSWER = 512
PROMPT = (
    "You are an agent that works on the files of the current folder. Use the tools to do what the user asks, one step at a"
    " time: read a file before you use what is in it. When everything is done, answer with one short sentence."
)
TASKS = (
    Task(
        "take a word over",
        "Read the file word.txt. Then write the word that it names to the file answer.txt, only the word.",
        {"word.txt": "The word of the day is heron.\n"},
        {"answer.txt": ("heron",)},
    ),
    Task(
        "copy",
        "Read the file a.txt. Then write exactly the same text to the file b.txt.",
        {"a.txt": "Copper is a metal.\n"},
        {"b.txt": ("Copper is a metal.",)},
    ),
    Task(
        "largest number",
        "Read the file numbers.txt. Then write the largest of its numbers to the file max.txt, only the number.",
        {"numbers.txt": "17\n4\n93\n58\n"},
        {"max.txt": ("93",)},
    ),
)


@dataclass(frozen=True)
class Ended:
    """How an agent ended: the calls that it made, and what there is to show."""

    calls: Sequence[str]
    shown: str


def run_own(task: Task, folder: Path, address: str, home: Path) -> Ended:
    """The loop of ``agent_tasks.py`` over the chat API, with two of its tools."""
    calls: list[str] = []
    tools = [tool for tool in agent_tasks.TOOLS if tool["function"]["name"] in ("read_file", "write_file")]

    def ask(messages: list[dict[str, Any]], _: list[dict[str, Any]]) -> dict[str, Any]:
        body = {"model": MODEL, "messages": [{"role": "system", "content": PROMPT}, *messages[1:]], "tools": tools}
        message = post(f"{address}/v1/chat/completions", body | {"temperature": 0, "max_tokens": LONGEST_ANSWER})
        calls.extend(call["function"]["name"] for call in message.get("tool_calls") or ())
        return message

    return Ended(calls, agent_tasks.work(task, folder, ask)[1])


def post(url: str, body: Mapping[str, Any]) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return dict(json.load(answer)["choices"][0]["message"])


def run_opencode(task: Task, folder: Path, address: str, home: Path) -> Ended:
    """OpenCode with an agent of its configuration: a prompt and two tools."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{address}/v1", "apiKey": "none"},
        "models": {MODEL: {"tool_call": True, "temperature": True, "limit": {"context": 32_768, "output": 2048}}},
    }
    agent = {
        "mode": "primary",
        "prompt": PROMPT,
        "temperature": 0,
        "tools": {"*": False, "read": True, "write": True},
    }
    config = {
        "share": "disabled",
        "autoupdate": False,
        "permission": {"*": "allow"},
        "provider": {"toolglot": provider},
        "agent": {"files": agent, "title": {"disable": True}},
    }
    environment = bare_environment(home) | SWITCHES | {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}
    arguments = ("run", "--agent", "files", "--model", f"toolglot/{MODEL}", "--format", "json", task.request)
    ended = run([OPENCODE, *arguments], folder, environment, PATIENCE)
    events = read_lines(ended.stdout)
    return Ended([event["part"]["tool"] for event in events if event["type"] == "tool_use"], str(ended))


def read_lines(text: str) -> list[dict[str, Any]]:
    """The lines that are JSON objects."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@dataclass(frozen=True)
class Agent:
    """``program`` is None for the agent of this bench."""

    name: str
    run: Callable[[Task, Path, str, Path], Ended]
    program: Path | None = None


AGENTS = {
    "own": Agent("the loop of `bench/agent_tasks.py`", run_own),
    "opencode": Agent("OpenCode", run_opencode, OPENCODE),
}


@contextmanager
def gateway(model: str) -> Iterator[str]:
    """``toolglot serve --embedded``, as a person would start it; gives its address."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "TOOLGLOT_"))}
    clean |= ONE_CALL
    command = [sys.executable, "-m", "toolglot", "serve", "--port", "0", "--state-dir", "none", "--embedded", model]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=clean) as process,
    ):
        assert process.stdout is not None
        found = next(filter(None, (re.search(r"http://[^/\s]+", line) for line in process.stdout)), None)
        try:
            if found is None:
                log.seek(0)
                raise SystemExit(f"the gateway did not start: {log.read()[-600:]}")
            yield found[0]
        finally:
            process.terminate()


def count_requests(address: str) -> int:
    """The requests that the gateway has answered."""
    with urllib.request.urlopen(f"{address}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines if line.startswith("toolglot_requests_total{"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--tasks", type=int, default=len(TASKS), help="how many of the tasks")
    parser.add_argument("--model", default=MODEL, help="as in toolglot serve --embedded")
    parser.add_argument("--show", action="store_true", help="print what the agents print")
    options = parser.parse_args()
    print(f"| agent, {options.model} | task | solved | calls | requests | seconds |\n|---|---|---|---|---:|---:|")
    solved = 0
    with gateway(options.model) as address:
        for name in options.agents:
            agent = AGENTS[name]
            if agent.program is not None and not agent.program.exists():
                tell(f"{agent.name} is left out: 'make test-clients' installs it")
                continue
            for task in TASKS[: options.tasks]:
                solved += run_task(agent, task, address, options.show)
    sys.exit(0 if solved else "no agent has solved a task")


def run_task(agent: Agent, task: Task, address: str, show: bool) -> bool:
    """Let an agent work on a task; prints a row of the table."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, home = Path(temporary, "project"), Path(temporary, "home")
        folder.mkdir()
        home.mkdir()
        for name, text in task.files.items():
            (folder / name).write_text(text)
        requests, began = count_requests(address), time.monotonic()
        ended = agent.run(task, folder, address, home)
        seconds, requests = time.monotonic() - began, count_requests(address) - requests
        solved = agent_tasks.is_solved(task, folder, "")
        found = {path.name: path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file()}
    if show:
        print(f"{ended.shown}\n{found}", file=sys.stderr, flush=True)
    cells = (agent.name, task.name, "yes" if solved else "no", ", ".join(ended.calls) or "none", requests)
    print(f"| {' | '.join(map(str, cells))} | {seconds:.0f} |", flush=True)
    return solved


if __name__ == "__main__":
    main()
