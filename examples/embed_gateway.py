"""A gateway inside a Python program: it starts on a free port, is used by a client in the same program, and stops.

    pip install 'toolglot[server]' openai
    python examples/embed_gateway.py                                        # against the simulated model
    python examples/embed_gateway.py http://127.0.0.1:8080/v1 my-model      # against your own server

The program keeps its event loop, its logging and its signal handlers; nothing is read from the environment.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

from openai import AsyncOpenAI

from toolglot.config import make_settings
from toolglot.server import listening
from toolglot.sim import SimOptions, make_app, running

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


async def ask(address: str, model: str) -> None:
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key="none") as client:
        answer = await client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": 'What is the weather in "Oslo"?'}],
            tools=[WEATHER],
        )
    for call in answer.choices[0].message.tool_calls or ():
        print("call:", call.function.name, call.function.arguments)


async def main(base_url: str = "", model: str = "sim") -> None:
    async with AsyncExitStack() as stack:
        if not base_url:
            simulated = make_app(SimOptions(dialect="qwen3_coder", chunk=3))  # a model that writes calls as text
            base_url = await stack.enter_async_context(running(simulated)) + "/v1"
        settings = make_settings(base_url=base_url, port=0, state_dir="none", mode="text")
        address = await stack.enter_async_context(listening(settings))
        print("gateway:", address)
        await ask(address, model)
    print("stopped")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
