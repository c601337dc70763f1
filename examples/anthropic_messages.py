"""The anthropic package: a call in a whole answer, a call in a stream, and a complete cycle with a real file.

    pip install anthropic
    toolglot sim --script examples/scenarios.toml
    toolglot serve --base-url http://127.0.0.1:8099/v1
    python examples/anthropic_messages.py

The client speaks the Messages API and the upstream Chat Completions; the gateway translates.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from anthropic import Anthropic

CLIENT = Anthropic(base_url=os.environ.get("TOOLGLOT_URL", "http://127.0.0.1:8484"), api_key="none")
MODEL = "qwen3-max"
LIMIT = 1024


def define(name: str, description: str, *parameters: str) -> Any:
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in parameters}, "required": parameters}
    return {"name": name, "description": description, "input_schema": schema}


TOOLS = [
    define("read", "Read a file from the filesystem", "filePath"),
    define("bash", "Execute a command", "command", "description"),
]


def run_tool(name: str, arguments: dict[str, str]) -> tuple[str, bool]:
    """Execute a call: the result, and whether it is an error."""
    try:
        if name == "read":
            return Path(arguments["filePath"]).read_text("utf-8"), False
        ended = subprocess.run(arguments["command"], shell=True, capture_output=True, text=True, check=False)
        return ended.stdout + ended.stderr, ended.returncode != 0
    except (OSError, KeyError) as error:
        return repr(error), True


def ask_whole() -> None:
    question: Any = {"role": "user", "content": "Read the file src/server.js"}
    answer = CLIENT.messages.create(model=MODEL, max_tokens=LIMIT, messages=[question], tools=TOOLS)
    for block in answer.content:
        if block.type == "tool_use":
            print("whole:   ", block.name, block.input, answer.stop_reason)


def ask_streamed() -> None:
    question: Any = {"role": "user", "content": "List files in current directory"}
    with CLIENT.messages.stream(model=MODEL, max_tokens=LIMIT, messages=[question], tools=TOOLS) as stream:
        text = "".join(stream.text_stream)
        answer = stream.get_final_message()
    calls = [(block.name, block.input) for block in answer.content if block.type == "tool_use"]
    print("streamed:", repr(text), calls)


def run_cycle(question: str) -> str:
    """Ask, run the calls of the answer, send the results back, until there are no calls."""
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        answer = CLIENT.messages.create(model=MODEL, max_tokens=LIMIT, messages=messages, tools=TOOLS)
        calls = [block for block in answer.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in answer.content if block.type == "text")
        messages.append({"role": "assistant", "content": [block.model_dump() for block in answer.content]})
        results = []
        for call in calls:
            content, failed = run_tool(call.name, call.input)
            results.append({"type": "tool_result", "tool_use_id": call.id, "content": content, "is_error": failed})
        messages.append({"role": "user", "content": results})


def main() -> None:
    ask_whole()
    ask_streamed()
    for question in ("Read package.json", "Run npm test to check if tests pass"):
        print("cycle:   ", run_cycle(question))


if __name__ == "__main__":
    main()
