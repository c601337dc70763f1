"""LangChain: an agent with two tools, run to its end and streamed.

pip install langchain langchain-openai
toolglot sim --script examples/scenarios.toml
toolglot serve --base-url http://127.0.0.1:8099/v1
python examples/langchain_agent.py
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

MODEL = ChatOpenAI(
    base_url=os.environ.get("TOOLGLOT_URL", "http://127.0.0.1:8484") + "/v1",
    api_key="none",
    model="qwen3-max",
    streaming=True,
)


@tool
def read(filePath: str) -> str:
    """Read a file from the filesystem."""
    return Path(filePath).read_text("utf-8")


@tool
def bash(command: str, description: str) -> str:
    """Execute a command."""
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


AGENT = create_agent(MODEL, [read, bash])


def ask_once() -> None:
    """One answer without an agent: LangChain shows the call that was read from the model's text."""
    answer = MODEL.bind_tools([read, bash]).invoke("Read the file src/server.js")
    for call in answer.tool_calls:
        print("whole:   ", call["name"], call["args"])


def stream() -> None:
    """The pieces of an agent's run as they arrive: text, calls, results."""
    question = {"messages": [{"role": "user", "content": "List files in current directory"}]}
    text, names, results = "", [], []
    for message, _ in AGENT.stream(question, stream_mode="messages"):
        if isinstance(message, ToolMessage):
            results.append(str(message.content).split())
        elif isinstance(message, AIMessageChunk):
            text += str(message.content)
            names += [piece["name"] for piece in message.tool_call_chunks if piece["name"]]
    print("streamed:", repr(text), names, results)


def main() -> None:
    ask_once()
    stream()
    for question in ("Read package.json", "Run npm test to check if tests pass"):
        state = AGENT.invoke({"messages": [{"role": "user", "content": question}]})
        print("cycle:   ", state["messages"][-1].content)


if __name__ == "__main__":
    main()
