"""A real server with three wires, llama.cpp, behind every client wire: relayed, and translated.

The model is tiny, so the content of its answers does not matter, except that there is some.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import OpenAI
from support.embedded import KEY, needs_model, start_model
from support.event_order import check_order
from support.gateway import Gate, gateway, run
from wires.test_wire_matrix import ask, sum_up

from toolglot.core.conversation import Conversation, Message, Sampling, Text, Tool, ToolCall, ToolResult
from toolglot.core.events import Event, Finished, TextDelta
from toolglot.wires import all_wires, client_wires

pytestmark = needs_model

UPSTREAM_WIRES = ("openai_chat", "anthropic_messages", "openai_responses")
"""The wires of the server."""

NO_LENGTH = {"openai_responses"}
"""Wires on which this server does not report that the limit truncated an answer."""

TOKENS = 8
SAMPLING = Sampling(max_tokens=TOKENS, temperature=0.0)
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = (Tool("read", "Read a file", SCHEMA), Tool("list", "List a folder", SCHEMA))
HELLO = Message("user", (Text("Say hello."),))
HISTORY = (
    Message("system", (Text("Be brief."),)),
    Message("user", (Text("What is in a.txt?"),)),
    Message("assistant", (Text("I look."), ToolCall("call_1", "read", '{"path":"a.txt"}'))),
    Message("tool", (ToolResult("call_1", "read", (Text("no such file"),), error=True),)),
    Message("user", (Text("Say hello."),)),
)


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with start_model() as running:
        yield running.base_url


def check(events: list[Event], behind: str) -> None:
    check_order(events)
    last = events[-1]
    assert isinstance(last, Finished), last
    assert sum_up(events)["text"].strip()
    assert last.usage is not None and 0 < last.usage.output_tokens <= TOKENS and last.usage.input_tokens > 10
    cut = last.usage.output_tokens == TOKENS and behind not in NO_LENGTH
    assert last.reason == ("length" if cut else "stop")


@pytest.mark.parametrize("behind", UPSTREAM_WIRES)
@pytest.mark.parametrize("before", client_wires())
def test_answers_of_a_real_server(before: str, behind: str, base_url: str) -> None:
    """Without tools: relayed where both ends have the same wire, translated elsewhere. With tools and results: parsed."""
    plain = Conversation("m", (HELLO,), sampling=SAMPLING)
    with_tools = Conversation("m", HISTORY, TOOLS, sampling=SAMPLING)

    async def compare() -> None:
        payload: dict[str, Any] = {"base_url": base_url, "api_key": KEY, "upstream": {"wire": behind}, "mode": "native"}
        async with gateway(**payload) as gate:
            for asked in (plain, with_tools):
                for streamed in (True, False):
                    events = await ask(gate, all_wires()[before], asked, streamed)
                    check(events, behind)
                    if streamed:
                        assert sum(isinstance(event, TextDelta) for event in events) > 1

    run(compare)


@pytest.mark.parametrize("wire", UPSTREAM_WIRES)
def test_a_relayed_stream_is_unchanged(wire: str, base_url: str) -> None:
    body = all_wires()[wire].encode_request(
        Conversation("m", (HELLO,), sampling=SAMPLING), stream=True, wants_usage=True
    )

    async def compare() -> None:
        async with gateway(base_url=base_url, api_key=KEY, upstream={"wire": wire}) as gate:
            answer = await gate.ask(body, all_wires()[wire].routes[0])
            assert answer.headers["x-toolglot-mode"] == "relay"
            assert b'"model":"smollm2-135m"' in answer.body
            assert await requests_without_errors(gate)

    run(compare)


async def requests_without_errors(gate: Gate) -> bool:
    metrics = (await gate.get("/metrics")).body.decode()
    return 'status="200"' in metrics and "toolglot_errors_total{" not in metrics


@pytest.mark.parametrize("behind", UPSTREAM_WIRES)
def test_tools_as_text_behind_every_wire(behind: str, base_url: str) -> None:
    """The tool prompt reaches the model on every wire, and its answer is delivered as text or as a call."""

    async def compare() -> None:
        payload: dict[str, Any] = {
            "base_url": base_url,
            "api_key": KEY,
            "upstream": {"wire": behind},
            "mode": "text",
            "dialect": "hermes",
        }
        async with gateway(**payload) as gate:
            for streamed in (True, False):
                events = await ask(
                    gate, all_wires()["openai_chat"], Conversation("m", HISTORY, TOOLS[:1], sampling=SAMPLING), streamed
                )
                check_order(events)
                assert isinstance(events[-1], Finished) and events[-1].usage is not None
                assert events[-1].usage.input_tokens > 100, "the tools were taught"

    run(compare)


def test_a_server_error_is_encoded_in_every_wire(base_url: str) -> None:
    """More than the server takes is its 400, whatever wire it was asked on."""
    long = Conversation("m", (Message("user", (Text("word " * 20_000),)),), sampling=SAMPLING)

    async def compare() -> None:
        for behind in UPSTREAM_WIRES:
            async with gateway(base_url=base_url, api_key=KEY, upstream={"wire": behind}) as gate:
                for before in client_wires():
                    for streamed in (True, False):
                        [failed] = await ask(gate, all_wires()[before], long, streamed)
                        assert "context" in failed.message or "exceed" in failed.message, (before, behind, failed)  # type: ignore[union-attr]

    run(compare)


def test_the_openai_package_follows_a_translated_stream(base_url: str) -> None:
    """It checks more than our own reader does."""

    async def compare() -> None:
        async with gateway(base_url=base_url, api_key=KEY, upstream={"wire": "anthropic_messages"}) as gate:
            await asyncio.to_thread(follow, gate.address)

    run(compare)


def follow(address: str) -> None:
    with OpenAI(base_url=f"{address}/v1", api_key="k", max_retries=0) as client:
        with client.responses.stream(model="m", input="Say hello.") as stream:
            list(stream)
            final = stream.get_final_response()
        assert final.output_text and json.loads(final.to_json())["usage"]["output_tokens"] > 0
