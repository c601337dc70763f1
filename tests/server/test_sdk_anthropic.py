"""The anthropic package reads what the response encoder writes: whole answers, streams and its stream helper."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from anthropic import Anthropic, APIStatusError
from anthropic.types import Message
from support.loopback import running_loop
from support.replay import replaying

from toolglot.sim.server import running
from toolglot.wires import anthropic_messages

Way: TypeAlias = Callable[[Anthropic, str], Message]
MESSAGES: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def client() -> Iterator[Anthropic]:
    with running_loop() as loop, loop.entered(running(replaying(anthropic_messages.WIRE))) as address:
        with Anthropic(base_url=address, api_key="none", max_retries=0, timeout=20) as client:
            yield client


def ask_whole(client: Anthropic, model: str) -> Message:
    return client.messages.create(model=model, max_tokens=99, messages=MESSAGES)


def ask_streamed(client: Anthropic, model: str) -> Message:
    """Joins the events as the documentation of the protocol describes, without the package."""
    message: dict[str, Any] = {}
    pieces: dict[int, str] = {}
    for event in client.messages.create(model=model, max_tokens=99, messages=MESSAGES, stream=True):
        expected: Any = event.to_dict()
        match expected:
            case {"type": "message_start"}:
                message = dict(expected["message"])
            case {"type": "content_block_start", "index": index, "content_block": block}:
                assert index == len(message["content"])
                message["content"].append(dict(block))
            case {
                "type": "content_block_delta",
                "index": int(index),
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }:
                pieces[index] = pieces.get(index, "") + str(piece)
            case {"type": "content_block_delta", "index": int(index), "delta": {**delta}}:
                key = next(key for key in ("text", "thinking", "signature") if key in delta)
                message["content"][index][key] += delta[key]
            case {"type": "message_delta"}:
                message |= expected["delta"]
                message["usage"] |= expected["usage"]
    for index, text in pieces.items():
        message["content"][index]["input"] = json.loads(text)
    return Message.model_validate(message)


def ask_with_helper(client: Anthropic, model: str) -> Message:
    with client.messages.stream(model=model, max_tokens=99, messages=MESSAGES) as stream:
        for _ in stream:
            pass
        return stream.get_final_message()


WAYS: dict[str, Way] = {"create": ask_whole, "create_stream": ask_streamed, "stream": ask_with_helper}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


def contents(message: Message) -> list[Any]:
    received: list[Any] = []
    for block in message.content:
        match block.type:
            case "text":
                received.append(block.text)
            case "thinking":
                received.append((block.thinking, block.signature))
            case "tool_use":
                received.append((block.name, block.input))
    return received


FIRST = ("read", {"filePath": "package.json"})


@pytest.mark.parametrize(
    ("model", "received", "stop"),
    [
        ("text", ["Hello wörld"], "end_turn"),
        ("one", ["Now. ", FIRST], "tool_use"),
        ("two", [FIRST, ("write", {"filePath": "ä", "content": "x\ny"})], "tool_use"),
        ("thought", [("I should read.", "c2VhbA=="), FIRST], "tool_use"),
        ("length", ["Hello "], "max_tokens"),
    ],
)
def test_answers(client: Anthropic, way: Way, model: str, received: list[Any], stop: str) -> None:
    message = way(client, model)
    assert contents(message) == received
    assert (message.role, message.stop_reason, message.model) == ("assistant", stop, model)
    assert (message.usage.input_tokens, message.usage.output_tokens) == (11, 7)


def test_a_failure_raises(client: Anthropic, way: Way) -> None:
    with pytest.raises(APIStatusError, match=r"It broke\."):
        way(client, "error")
