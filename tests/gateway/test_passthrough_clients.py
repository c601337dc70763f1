"""Native answers that are re-encoded from the middle on, read by the packages of the vendors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web
from anthropic import AsyncAnthropic
from gateway.test_passthrough import ANSWERS, CALL, LEAKED, write
from openai import AsyncOpenAI
from support.gateway import gateway, run

from toolglot.core.events import Event

NARROWING = {
    "words": ([], "Well, 1 < 2 and `<tool` is {no} call."),
    "call": (["a"], "See: "),
    "leak": (["a"], "See: "),
    "leak behind a call": (["a"], "And: " + CALL.replace('"a"', '"b"')),
    "leak behind words": (["a"], "See: "),
    "words in thought": (["a"], ""),
}
"""The files that are read, and the text, of these answers."""
SCHEMA: Any = {"type": "object", "properties": {"filePath": {"type": "string"}}}


def upstream(wire: str, events: Sequence[Event]) -> web.Application:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in write(wire, events):
            await response.write(piece)
        return response

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    return app


@pytest.mark.parametrize("answer_text", NARROWING)
def test_the_package_of_anthropic(answer_text: str) -> None:
    async def talk() -> None:
        app = upstream("anthropic_messages", (ANSWERS | LEAKED)[answer_text])
        async with gateway(app=app, upstream={"wire": "anthropic_messages"}, mode="native") as gate:
            client = AsyncAnthropic(base_url=gate.address, api_key="none", max_retries=0)
            async with (
                client,
                client.messages.stream(
                    model="m",
                    max_tokens=9,
                    messages=[{"role": "user", "content": "hi"}],
                    tools=[{"name": "read", "input_schema": SCHEMA}],
                ) as stream,
            ):
                received = await stream.get_final_message()
        files = [block.input["filePath"] for block in received.content if block.type == "tool_use"]
        text = "".join(block.text for block in received.content if block.type == "text")
        assert (files, text.rstrip("\n")) == (NARROWING[answer_text][0], NARROWING[answer_text][1].rstrip("\n"))
        assert received.stop_reason == ("tool_use" if files else "end_turn")

    run(talk)


@pytest.mark.parametrize("text", NARROWING)
def test_the_package_of_openai(text: str) -> None:
    async def talk() -> None:
        app = upstream("openai_responses", (ANSWERS | LEAKED)[text])
        async with gateway(app=app, upstream={"wire": "openai_responses"}, mode="native") as gate:
            client = AsyncOpenAI(base_url=gate.address + "/v1", api_key="none", max_retries=0)
            tool: Any = {"type": "function", "name": "read", "parameters": SCHEMA, "strict": False}
            async with client, client.responses.stream(model="m", input="hi", tools=[tool]) as stream:
                deltas = [event.delta async for event in stream if event.type == "response.output_text.delta"]
                received = await stream.get_final_response()
        calls = [item.arguments for item in received.output if item.type == "function_call"]
        assert len(calls) == len(NARROWING[text][0])
        assert all(f'"{name}"' in call for name, call in zip(NARROWING[text][0], calls, strict=True))
        assert "".join(deltas).rstrip("\n") == received.output_text.rstrip("\n") == NARROWING[text][1].rstrip("\n")

    run(talk)
