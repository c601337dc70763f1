"""Answers of servers of other wires than Chat Completions that differ from their protocol."""

from __future__ import annotations

import json
from typing import Any

from support.line import Line, sum_up
from support.rows import in_one_test

from toolglot.core.conversation import Conversation, Message, Text, Tool
from toolglot.core.events import Finished
from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.response_streams import open_stream
from toolglot.wires import client_wires

READ = Tool("read", "Reads", {"type": "object", "properties": {"path": {"type": "string"}}})
ASKED = Conversation("m", (Message("user", (Text("go"),)),), (READ,))
CALLED = ("", [("read", {"path": "a"})], "tool_calls")
WRITTEN = '{"path":"a"}'


def carry(client: str, upstream: str, raw: bytes, stream: bool) -> tuple[str, list[tuple[str, Any]], str]:
    line = Line(client, upstream)
    return sum_up(line.carry(line.ask(ASKED, stream), raw))


@in_one_test("client", client_wires())
def test_ollama_arguments_as_text(client: str) -> None:
    """Its own clients accept only an object."""
    call = {"function": {"name": "read", "arguments": WRITTEN}}
    answer = {"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": True}
    raw = json.dumps(answer | {"done_reason": "stop"}).encode() + b"\n"
    for stream in (False, True):
        assert carry(client, "ollama", raw, stream) == CALLED
    line = Line("ollama", "ollama")
    exchange = line.ask(ASKED, False)
    [made] = json.loads(reply(exchange, raw))["message"]["tool_calls"]
    assert made["function"]["arguments"] == {"path": "a"}


@in_one_test("client", client_wires())
def test_gemini_in_snake_case(client: str) -> None:
    parts = [{"function_call": {"name": "read", "args": {"path": "a"}}}]
    usage = {"prompt_token_count": 11, "candidates_token_count": 5, "thoughts_token_count": 2, "total_token_count": 18}
    candidate = {"content": {"role": "model", "parts": parts}, "finish_reason": "STOP"}
    payload = json.dumps({"candidates": [candidate], "usage_metadata": usage}).encode()
    for stream, raw in ((False, payload), (True, b"data: " + payload + b"\r\n\r\n")):
        assert carry(client, "gemini", raw, stream) == CALLED
        if client != "gemini":
            line = Line(client, "gemini")
            [*_, end] = line.carry(line.ask(ASKED, stream), raw)
            assert isinstance(end, Finished) and end.usage is not None
            assert (end.usage.input_tokens, end.usage.output_tokens) == (11, 7)


def write_messages(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)


START = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
TEXT = (
    {"type": "message_start", "message": START},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
    {"type": "content_block_stop", "index": 0},
)


@in_one_test("client", client_wires())
@in_one_test(
    ("deltas", "expected"),
    [
        ([{"stop_reason": "max_tokens"}, {}], "length"),
        ([{}, {"stop_reason": "max_tokens"}], "length"),
        ([{"stop_reason": None}], "stop"),
    ],
)
def test_messages_with_several_ends_or_none(client: str, deltas: list[dict[str, Any]], expected: str) -> None:
    """Usage may come in events of its own, behind the stop reason."""
    ends = [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}} for delta in deltas]
    raw = write_messages(*TEXT, *ends, {"type": "message_stop"})
    assert carry(client, "anthropic_messages", raw, True) == ("Hello", [], expected)


@in_one_test("client", client_wires())
def test_messages_with_plain_content(client: str) -> None:
    raw = json.dumps(START | {"content": "Hello", "stop_reason": "end_turn"}).encode()
    assert carry(client, "anthropic_messages", raw, False) == ("Hello", [], "stop")


def test_a_stream_without_a_stop_reason_gets_one() -> None:
    line = Line("anthropic_messages", "anthropic_messages")
    stream = open_stream(line.ask(ASKED, True))
    ends = ({"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 7}},)
    out = (
        b"".join(stream.feed(write_messages(each)) for each in (*TEXT, *ends, {"type": "message_stop"}))
        + stream.close()
    )
    assert out.count(b"event: message_stop") == 1 and b'"stop_reason":"end_turn"' in out
