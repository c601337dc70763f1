"""What toolglot does for a tiny real model: the embedded one, asked for tool calls with and without the gateway.

Twenty simple requests, five tools, one client that uses OpenAI chat with ``tools``; only the address differs. The
model is deterministic at temperature 0, so two runs give the same figures; only the times differ.

    python bench/local.py                     the model alone, then ``toolglot serve`` with the same model
    python bench/local.py --base-url URL      any other OpenAI-compatible address
    python bench/local.py --show              every answer
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from packages import run_model


def tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": received} for key, received in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    tool("get_weather", "Get the current weather in a city.", city="Name of the city"),
    tool("read_file", "Read the contents of a file.", path="Path of the file"),
    tool("write_file", "Write text to a file.", path="Path of the file", content="Text to write"),
    tool("run_command", "Run a command in the shell.", command="Command line to run"),
    tool("web_search", "Search the web.", query="What to search for"),
]

REQUESTS: list[tuple[str, str, dict[str, str]]] = [
    ("What is the weather in Oslo?", "get_weather", {"city": "Oslo"}),
    ("Will it rain in Lisbon today?", "get_weather", {"city": "Lisbon"}),
    ("How warm is it in Nairobi right now?", "get_weather", {"city": "Nairobi"}),
    ("Tell me the weather in Toronto.", "get_weather", {"city": "Toronto"}),
    ("Show me what is in notes.txt.", "read_file", {"path": "notes.txt"}),
    ("Open the file src/main.py and read it.", "read_file", {"path": "src/main.py"}),
    ("What does config.json say?", "read_file", {"path": "config.json"}),
    ("Please read README.md.", "read_file", {"path": "README.md"}),
    (
        "Create a file hello.txt with the text Hello World",
        "write_file",
        {"path": "hello.txt", "content": "Hello World"},
    ),
    ("Save the words buy milk to todo.txt.", "write_file", {"path": "todo.txt", "content": "buy milk"}),
    ("Write 42 to the file answer.txt.", "write_file", {"path": "answer.txt", "content": "42"}),
    ("Put the line all done into status.log", "write_file", {"path": "status.log", "content": "all done"}),
    ("Run the command ls -la", "run_command", {"command": "ls -la"}),
    ("Please execute git status", "run_command", {"command": "git status"}),
    ("Run pytest in the shell.", "run_command", {"command": "pytest"}),
    ("Execute the command df -h", "run_command", {"command": "df -h"}),
    ("Search the web for cheap flights to Rome.", "web_search", {"query": "cheap flights to Rome"}),
    ("Look up the height of the Eiffel Tower on the web.", "web_search", {"query": "height of the Eiffel Tower"}),
    ("Find news about electric cars online.", "web_search", {"query": "news about electric cars"}),
    ("Search for the best pizza recipe.", "web_search", {"query": "best pizza recipe"}),
]
SMALL_TALK = [
    "Hello!",
    "Who are you?",
    "Thank you, that was helpful.",
    "What is two plus two?",
    "Tell me a joke.",
    "Good night.",
]


@dataclass
class Score:
    name: str
    valid: int = 0
    right: int = 0
    exact: int = 0
    text: int = 0
    seconds: list[float] = field(default_factory=list)

    def row(self) -> str:
        counts = f"{self.valid}/20 | {self.right}/20 | {self.exact}/20 | {self.text}/{len(SMALL_TALK)}"
        return f"| {self.name} | {counts} | {statistics.median(self.seconds):.1f} |"


def ask(base_url: str, text: str, choice: str) -> tuple[dict[str, Any], float]:
    asked = {
        "model": "any",
        "messages": [{"role": "user", "content": text}],
        "tools": TOOLS,
        "tool_choice": choice,
        "temperature": 0,
        "max_tokens": 200,
    }
    request = urllib.request.Request(
        f"{base_url}/chat/completions",
        json.dumps(asked).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer none"},
    )
    began = time.monotonic()
    with urllib.request.urlopen(request, timeout=300) as answer:
        message = json.load(answer)["choices"][0]["message"]
    return message, time.monotonic() - began


def read_call(message: dict[str, Any], tools: list[dict[str, Any]] = TOOLS) -> tuple[str, dict[str, Any]] | None:
    """The first call, if a client with these tools could execute it."""
    required = {each["function"]["name"]: each["function"]["parameters"]["required"] for each in tools}
    for call in (message.get("tool_calls") or [])[:1]:
        name = call["function"]["name"]
        try:
            arguments = json.loads(call["function"]["arguments"])
        except ValueError:
            return None
        if name in required and all(isinstance(arguments.get(key), str) for key in required[name]):
            return name, arguments
    return None


def measure(name: str, base_url: str, choice: str, show: bool) -> Score:
    score = Score(name)
    for text, wanted, arguments in REQUESTS:
        message, seconds = ask(base_url, text, choice)
        call = read_call(message)
        score.seconds.append(seconds)
        score.valid += call is not None
        score.right += call is not None and call[0] == wanted
        score.exact += call == (wanted, arguments)
        if show:
            print(f"{text} -> {call or message.get('content')!r}", file=sys.stderr)
    for text in SMALL_TALK:
        message, _ = ask(base_url, text, choice)
        score.text += not message.get("tool_calls") and bool(message.get("content"))
        if show:
            print(f"{text} -> {read_call(message) or message.get('content')!r}", file=sys.stderr)
    return score


@contextmanager
def gateway() -> Iterator[str]:
    """``toolglot serve`` with its defaults, nothing configured, and no store, which may have client keys."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "TOOLGLOT_"))}
    command = [sys.executable, "-m", "toolglot", "serve", "--port", "0", "--state-dir", "none"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=clean) as process:
        assert process.stdout is not None
        found = next(filter(None, (re.search(r"listening at (http://\S+)", line) for line in process.stdout)))
        try:
            yield f"{found[1]}/v1"
        finally:
            process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base-url", help="measure only this address")
    parser.add_argument("--show", action="store_true", help="print every answer")
    options = parser.parse_args()
    scores = []
    if options.base_url:
        scores.append(measure(options.base_url, options.base_url, "auto", options.show))
    else:
        with run_model() as local:
            for choice in ("auto", "required"):
                scores.append(measure(f"the model alone, `{choice}`", local.base_url, choice, options.show))
        with gateway() as address:
            for choice in ("auto", "required"):
                scores.append(measure(f"behind toolglot, `{choice}`", address, choice, options.show))
    print(
        "| SmolLM2-135M, 5 tools | valid call | right tool | exact arguments | small talk answered with text | s per answer |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for score in scores:
        print(score.row())


if __name__ == "__main__":
    main()
