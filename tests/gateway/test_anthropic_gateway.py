"""The Messages wire at both ends of a gateway: agents that use it before a model that writes text, and an upstream
that uses it behind chat clients."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from anthropic import AsyncAnthropic, BadRequestError, InternalServerError
from support.gateway import ASK, Gate, gateway, run

from toolglot.sim import SimOptions

SCHEMA = {"type": "object", "properties": {"filePath": {"type": "string"}}, "required": ["filePath"]}
TOOLS: Any = [
    {"name": "read", "description": "Read a file", "input_schema": SCHEMA},
    {"type": "web_search_20250305", "name": "web_search"},
]
QUESTION: Any = [{"role": "user", "content": 'Read the file "package.json"'}]
MANIFEST = '{"name": "shop"}'


@asynccontextmanager
async def connect(gate: Gate) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=gate.address, api_key="none", max_retries=0, timeout=20) as client:
        yield client


async def ask(client: AsyncAnthropic, messages: list[Any], streamed: bool, **fields: Any) -> Any:
    asked: Any = {
        "model": "sim",
        "max_tokens": 500,
        "messages": messages,
        "tools": TOOLS,
        "system": "Be brief.",
        **fields,
    }
    if not streamed:
        return await client.messages.create(**asked)
    async with client.messages.stream(**asked) as stream:
        async for _ in stream:
            pass
        return await stream.get_final_message()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("mode", ["hermes", "roo_xml", "native"])
def test_an_agent_reads_a_file(mode: str, streamed: bool) -> None:
    async def cycle() -> None:
        settings: Any = {"mode": "native"} if mode == "native" else {"mode": "text", "dialect": mode}
        async with gateway(SimOptions(dialect=mode), **settings) as gate, connect(gate) as client:
            answer = await ask(client, QUESTION, streamed)
            assert answer.stop_reason == "tool_use" and answer.usage.output_tokens > 0
            call = answer.content[-1]
            assert (call.name, call.input) == ("read", {"filePath": "package.json"})
            result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": MANIFEST}]}
            history = [*QUESTION, {"role": "assistant", "content": answer.to_dict()["content"]}]
            last = await ask(
                client, [*history, {"role": "user", "content": [result]}], streamed, thinking={"type": "disabled"}
            )
            assert last.stop_reason == "end_turn" and "shop" in last.content[0].text
            asked = gate.record.last.body
            assert MANIFEST in json.dumps(asked["messages"][-1]["content"]).replace('\\"', '"').replace("\\\\", "\\")
            assert "thinking" not in asked and asked["max_tokens"] == 500

    run(cycle)


@pytest.mark.parametrize("streamed", [False, True])
def test_talk_without_tools_is_translated_too(streamed: bool) -> None:
    async def talk() -> None:
        async with gateway() as gate, connect(gate) as client:
            answer = await ask(client, [{"role": "user", "content": "hi"}], streamed, tools=[])
            assert answer.content[0].text and answer.stop_reason == "end_turn"
            counted = await client.messages.count_tokens(model="sim", messages=QUESTION, tools=TOOLS[:1])
            assert counted.input_tokens > 20

    run(talk)


@pytest.mark.parametrize("streamed", [False, True])
def test_errors_are_encoded_in_the_wire(streamed: bool) -> None:
    async def fail() -> None:
        async with gateway(mode="text", dialect="hermes") as gate, connect(gate) as client:
            with pytest.raises(InternalServerError) as refused:
                await ask(client, QUESTION, streamed, model="sim:hermes+http_503")
            assert refused.value.status_code == 503 and refused.value.type == "overloaded_error"
            document = {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
            }
            with pytest.raises(BadRequestError, match="document cannot be carried"):
                await ask(client, [{"role": "user", "content": [document]}], streamed)
            answer = await gate.ask(b"{", "/v1/messages?beta=true")
            assert answer.status == 400 and answer.json["error"]["type"] == "invalid_request_error"

    run(fail)


# An upstream of the wire, as its documentation shows it

HEAD: Any = {"id": "msg_7", "type": "message", "role": "assistant", "model": "claude", "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 1}}  # fmt: skip
TEXT = {"type": "text", "text": "I read it."}
CALL = {"type": "tool_use", "id": "toolu_01", "name": "read", "input": {"filePath": "package.json"}}


def stream_call() -> list[dict[str, Any]]:
    return [
        {"type": "message_start", "message": HEAD},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I read"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " it."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {**CALL, "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"filePath": '}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '"package.json"}'}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]  # fmt: skip


class Claude:
    """The scripted upstream, and what it was asked."""

    def __init__(self, *, failing: bool = False) -> None:
        self.failing = failing
        self.asked: Any = {}
        self.headers: Any = {}
        self.app = web.Application()
        self.app.router.add_post("/v1/messages", self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked, self.headers = await request.json(), request.headers
        if not self.asked.get("stream"):
            whole = {**HEAD, "content": [TEXT, CALL], "stop_reason": "tool_use"}
            return web.json_response(whole | {"usage": HEAD["usage"] | {"output_tokens": 9}})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        events = stream_call()
        if self.failing:
            events[5:] = [{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}]
        for event in events:
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        return response


def behind(claude: Claude, **arguments: Any) -> Any:
    return gateway(app=claude.app, upstream={"wire": "anthropic_messages"}, api_key="sk-ant", **arguments)


def test_a_chat_client_is_answered_by_it() -> None:
    async def translate() -> None:
        claude = Claude()
        history = [
            {"role": "system", "content": "Be brief."},
            *ASK["messages"],
            {"role": "assistant", "content": None, "tool_calls": [{"id": "call.1", "type": "function", "function": {"name": "read", "arguments": '{"filePath":"a"}'}}]},
            {"role": "tool", "tool_call_id": "call.1", "content": "[The tool reported an error]\ngone"},
        ]  # fmt: skip
        async with behind(claude, mode="native") as gate:
            whole = await gate.ask({**ASK, "messages": history, "seed": 1, "logit_bias": {}})
            assert whole.message["content"] == "I read it." and whole.finish == "tool_calls"
            [call] = whole.message["tool_calls"]
            assert call["id"] == "toolu_01" and json.loads(call["function"]["arguments"]) == CALL["input"]
            counted = {"prompt_tokens": 25, "completion_tokens": 9, "total_tokens": 34}
            assert whole.json["usage"] == {**counted, "prompt_tokens_details": {"cached_tokens": 20}}
            asked = claude.asked
            assert asked["system"] == "Be brief." and asked["max_tokens"] == 4096 and "logit_bias" not in asked
            assert [message["role"] for message in asked["messages"]] == ["user", "assistant", "user"]
            result = asked["messages"][2]["content"][0]
            assert result["is_error"] and result["content"] == "gone"
            assert result["tool_use_id"] == asked["messages"][1]["content"][0]["id"] != "call.1"
            assert asked["tools"][0]["input_schema"]["required"] == ["filePath"]
            assert claude.headers["x-api-key"] == "sk-ant" and "anthropic-version" in claude.headers
            streamed = await gate.ask({**ASK, "stream": True})
            assert streamed.joined == ("I read it.", [("read", '{"filePath": "package.json"}')], "tool_calls")

    run(translate)


def test_names_that_the_wire_does_not_know_are_replaced_and_come_back() -> None:
    async def translate() -> None:
        claude = Claude()
        offered = {"type": "function", "function": {"name": "files.read", "parameters": {"type": "object"}}}
        called = {"id": "c", "type": "function", "function": {"name": "files.read", "arguments": "{}"}}
        messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "", "tool_calls": [called]}]
        async with behind(claude, mode="native") as gate:
            for stream in (False, True):
                CALL["name"] = "files_read"
                try:
                    answer = await gate.ask({"model": "m", "messages": messages, "tools": [offered], "stream": stream})
                finally:
                    CALL["name"] = "read"
                assert claude.asked["tools"][0]["name"] == "files_read"
                assert claude.asked["messages"][1]["content"][0]["name"] == "files_read"
                assert claude.asked["messages"][2]["content"][0]["is_error"] is True
                assert b'"name":"files.read"' in answer.body

    run(translate)


def test_a_failure_in_the_middle_is_reported() -> None:
    async def fail() -> None:
        async with behind(Claude(failing=True), mode="native") as gate:
            answer = await gate.ask({**ASK, "stream": True})
            assert answer.chunks[-1]["error"]["code"] == "overloaded_error"

    run(fail)


def test_talk_is_translated_also_where_nothing_concerns_tools() -> None:
    async def talk() -> None:
        claude = Claude()
        async with behind(claude, mode="off") as gate:
            answer = await gate.ask(ASK)
            assert answer.message["content"] == "I read it." and claude.asked["tools"][0]["name"] == "read"
        async with behind(claude, tool_calling_enabled="false") as gate:
            answer = await gate.ask(ASK)
            assert answer.message["content"] == "I read it." and "tools" not in claude.asked

    run(talk)


def test_one_wire_at_both_ends_is_relayed() -> None:
    async def relay() -> None:
        claude = Claude()
        body = {
            "model": "claude",
            "max_tokens": 5,
            "messages": QUESTION,
            "stream": True,
            "tools": TOOLS,
            "context_management": {},
        }
        async with behind(claude, mode="off") as gate:
            answer = await gate.ask({**body, "tools": []}, "/v1/messages?beta=true", anthropic_beta="context-1")
            received = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in stream_call())
            assert answer.body.decode() == received
            assert claude.headers["anthropic-beta"] == "context-1"
        for mode in ("native", "off"):
            async with behind(claude, mode=mode) as gate:
                await gate.ask(body, "/v1/messages")
                assert claude.asked == body

    run(relay)
