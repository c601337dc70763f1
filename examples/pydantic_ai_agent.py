"""pydantic-ai: an agent with two tools, run to its end and streamed.

    pip install 'pydantic-ai-slim[openai]'
    toolglot sim --script examples/scenarios.toml
    toolglot serve --base-url http://127.0.0.1:8099/v1
    python examples/pydantic_ai_agent.py

Its run_stream() takes any text before a call for the final answer; run_stream_events() runs all calls.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

from pydantic_ai import Agent, AgentRunResultEvent, FunctionToolCallEvent, FunctionToolResultEvent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

PROVIDER = OpenAIProvider(
    base_url=os.environ.get("TOOLGLOT_URL", "http://127.0.0.1:8484") + "/v1",
    api_key="none",
)
AGENT = Agent(OpenAIChatModel("qwen3-max", provider=PROVIDER))


@AGENT.tool_plain
def read(filePath: str) -> str:
    """Read a file from the filesystem."""
    return Path(filePath).read_text("utf-8")


@AGENT.tool_plain
def bash(command: str, description: str) -> str:
    """Execute a command."""
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


async def stream() -> None:
    async with AGENT.run_stream_events("List files in current directory") as events:
        async for event in events:
            if isinstance(event, FunctionToolCallEvent):
                print("streamed:", event.part.tool_name, event.part.args_as_dict())
            elif isinstance(event, FunctionToolResultEvent):
                print("result:  ", str(event.part.content).split())
            elif isinstance(event, AgentRunResultEvent):
                print("end:     ", event.result.output)


async def main() -> None:
    await stream()
    for question in ("Read the file src/server.js", "Read package.json", "Run npm test to check if tests pass"):
        result = await AGENT.run(question)
        print("cycle:   ", result.output)


if __name__ == "__main__":
    asyncio.run(main())
