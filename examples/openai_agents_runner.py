"""openai-agents: an agent with two tools, run to its end and streamed.

    pip install openai-agents
    toolglot sim --script examples/scenarios.toml
    toolglot serve --base-url http://127.0.0.1:8099/v1
    python examples/openai_agents_runner.py

With OpenAIResponsesModel instead of OpenAIChatCompletionsModel it uses the Responses API of the gateway.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)  # it would send what happens here to a service
CLIENT = AsyncOpenAI(base_url=os.environ.get("TOOLGLOT_URL", "http://127.0.0.1:8484") + "/v1", api_key="none")


@function_tool
def read(filePath: str) -> str:
    """Read a file from the filesystem."""
    return Path(filePath).read_text("utf-8")


@function_tool
def bash(command: str, description: str) -> str:
    """Execute a command."""
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


MODELS = {
    "chat": OpenAIChatCompletionsModel("qwen3-max", CLIENT),
    "responses": OpenAIResponsesModel("qwen3-max", CLIENT),
}


async def stream(agent: Agent) -> None:
    run = Runner.run_streamed(agent, "List files in current directory")
    async for event in run.stream_events():
        if event.type == "run_item_stream_event" and event.name == "tool_called":
            print("streamed:", event.item.raw_item.name, event.item.raw_item.arguments)
    print("end:     ", run.final_output)


async def main() -> None:
    for wire, model in MODELS.items():
        agent = Agent(name="Reader", instructions="You are a careful assistant.", model=model, tools=[read, bash])
        await stream(agent)
        for question in ("Read the file src/server.js", "Read package.json", "Run npm test to check if tests pass"):
            result = await Runner.run(agent, question)
            print(f"cycle:    {result.final_output} ({wire})")


if __name__ == "__main__":
    asyncio.run(main())
