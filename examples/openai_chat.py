"""The openai package: a call in a whole answer, a call in a stream, and a complete cycle with a real file.

    pip install openai
    toolglot sim --script examples/scenarios.toml
    toolglot serve --base-url http://127.0.0.1:8099/v1
    python examples/openai_chat.py

Nothing but the base URL is special: the model behind the gateway writes its calls as text.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from openai import OpenAI

CLIENT = OpenAI(base_url=os.environ.get("TOOLGLOT_URL", "http://127.0.0.1:8484") + "/v1", api_key="none")
MODEL = "qwen3-max"


def function(name: str, description: str, *parameters: str) -> Any:
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in parameters}, "required": parameters}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = [
    function("read", "Read a file from the filesystem", "filePath"),
    function("bash", "Execute a command", "command", "description"),
]


def run_tool(name: str, arguments: dict[str, str]) -> str:
    """Execute a call. The model gets an error, too, and can then do something else."""
    try:
        if name == "read":
            return Path(arguments["filePath"]).read_text("utf-8")
        if name == "bash":
            ended = subprocess.run(arguments["command"], shell=True, capture_output=True, text=True, check=False)
            return ended.stdout + ended.stderr
        return f"There is no tool {name}."
    except (OSError, KeyError) as error:
        return f"Error: {error!r}"


def ask_whole() -> None:
    question = {"role": "user", "content": "Read the file src/server.js"}
    answer = CLIENT.chat.completions.create(model=MODEL, messages=[question], tools=TOOLS)
    for call in answer.choices[0].message.tool_calls or ():
        print("whole:   ", call.function.name, call.function.arguments)


def ask_streamed() -> None:
    question = {"role": "user", "content": "List files in current directory"}
    stream = CLIENT.chat.completions.create(model=MODEL, messages=[question], tools=TOOLS, stream=True)
    text, name, arguments = "", "", ""
    for chunk in stream:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():  # the name comes first, the arguments in fragments
                name += piece.function.name or ""
                arguments += piece.function.arguments or ""
    print("streamed:", repr(text), name, json.loads(arguments))


def run_cycle(question: str) -> str:
    """Ask, run the calls of the answer, send the results back, until there are no calls."""
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        message = CLIENT.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = run_tool(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def main() -> None:
    ask_whole()
    ask_streamed()
    for question in ("Read package.json", "Run npm test to check if tests pass"):
        print("cycle:   ", run_cycle(question))


if __name__ == "__main__":
    main()
