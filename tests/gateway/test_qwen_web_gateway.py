"""Requests for the Qwen web chat through the gateway, without a network: tools as text, intercepted calls delivered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolglot.config import ModelSettings, RecoverySettings, Secret, Settings, Upstream
from toolglot.core.errors import RequestError, ToolglotError
from toolglot.gateway.capabilities.learned import LearnedFailures
from toolglot.gateway.capabilities.profiles import load_profiles
from toolglot.gateway.context import GatewayContext, IncomingRequest, Source
from toolglot.gateway.exchange import Exchange, prepare
from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.routing import Capabilities, ToolMode
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.wires import all_wires

TOKEN = "tok-4711-secret"
UPSTREAM = Upstream(
    name="qwen", wire="qwen_web", base_url="http://127.0.0.1:9", api_key=Secret(TOKEN), accept_terms=True
)
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "It works.", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}
    for name in ("read", "write")
]  # fmt: skip
ASK: dict[str, Any] = {"model": "qwen3-max", "messages": [{"role": "user", "content": "Read a."}], "tools": TOOLS}


def open_exchange(body: dict[str, Any], mode: str = "") -> Exchange:
    once = RecoverySettings(retries=0)
    settings = Settings(upstreams=(UPSTREAM,), models=(ModelSettings(name="*"),), recovery=once)
    capabilities = Capabilities(load_profiles(), LearnedFailures(None, 60), lambda: 0.0)
    context = GatewayContext(settings, Source(lambda: 0.0, lambda: "1"), capabilities)
    wire = all_wires()["openai_chat"]
    request = IncomingRequest(wire, json.dumps(body).encode(), Telemetry().begin("r", wire.name), mode=mode)
    exchange = prepare(request, context)
    assert isinstance(exchange, Exchange), "its capabilities are not asked for"
    return exchange


def encode(exchange: Exchange) -> bytes:
    """The request that starts a new chat."""
    assert exchange.chat_turn is not None
    return exchange.upstream_wire.encode_request(exchange.chat_turn.conversation, stream=True, wants_usage=True)


def write_stream(*deltas: dict[str, Any]) -> bytes:
    created = {"response.created": {"chat_id": "c", "parent_id": "u", "response_id": "a", "response_index": "0"}}
    frames = [
        created,
        *({"choices": [{"delta": {"role": "assistant", "phase": "answer"} | delta}]} for delta in deltas),
    ]
    return b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"content": "", "function_call": {"name": name, "arguments": json.dumps(arguments)}}


def refuse(name: str) -> dict[str, Any]:
    return {"role": "function", "name": name, "content": f"Tool {name} does not exists."}


END = {"content": "", "status": "finished"}


def answer(body: dict[str, Any], *deltas: dict[str, Any]) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(reply(open_exchange(body), write_stream(*deltas)))
    choice: dict[str, Any] = written["choices"][0]
    return choice


def list_calls(choice: dict[str, Any]) -> list[str]:
    return [made["function"]["name"] for made in choice["message"].get("tool_calls") or ()]


def test_tools_are_text_in_one_message_whatever_the_mode() -> None:
    for mode in ("", "auto", "text"):
        exchange = open_exchange(ASK, mode)
        assert exchange.route.tool_mode is ToolMode.TEXT and exchange.route.dialect == "roo_xml"
        request = json.loads(encode(exchange))
        [message] = request["messages"]
        assert "It works." in message["content"] and "<read>" in message["content"]
        assert "<tool_call>" not in message["content"] and "tools" not in request
        assert TOKEN.encode() not in encode(exchange)


def test_native_tools_are_refused_in_words() -> None:
    with pytest.raises(RequestError, match="no native tools"):
        open_exchange(ASK, "native")


def test_without_tools_the_text_is_sent_as_it_is() -> None:
    exchange = open_exchange({"model": "qwen3-max", "messages": ASK["messages"]})
    assert json.loads(encode(exchange))["messages"][0]["content"] == "Read a."


def test_a_call_in_the_taught_dialect_is_read() -> None:
    choice = answer(ASK, {"content": "I read.\n<read>\n<path>a</path>\n</read>"}, END)
    assert list_calls(choice) == ["read"] and choice["finish_reason"] == "tool_calls"


def test_intercepted_calls_reach_the_client_without_the_apology() -> None:
    deltas = (
        call("read", path="a"),
        call("write", path="b"),
        refuse("read"),
        refuse("write"),
        {"content": "Sorry."},
        END,
    )
    choice = answer(ASK, *deltas)
    assert list_calls(choice) == ["read", "write"] and choice["finish_reason"] == "tool_calls"
    assert not choice["message"]["content"]


def test_an_intercepted_call_of_another_tool_is_not_delivered() -> None:
    choice = answer(ASK, call("web_search", q="x"), call("read", path="a"), refuse("web_search"), refuse("read"), END)
    assert list_calls(choice) == ["read"]
    for body in (ASK, {"model": "qwen3-max", "messages": ASK["messages"]}):
        with pytest.raises(ToolglotError) as caught:
            answer(body, call("web_search", q="x"), refuse("web_search"), END)
        assert caught.value.code == "forbidden_call"


def test_errors_are_redacted() -> None:
    exchange = open_exchange(ASK)
    body = {"success": False, "data": {"code": "Unauthorized", "details": f"Token {TOKEN} is wrong"}}
    with pytest.raises(ToolglotError) as caught:
        reply(exchange, json.dumps(body).encode())
    assert caught.value.code == "upstream_unauthorized" and TOKEN not in caught.value.message
