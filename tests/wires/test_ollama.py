"""The wire of Ollama: what is read, what is written, that both are the same, and the ollama package at both ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from ollama import AsyncClient, ChatResponse, Client, ResponseError
from support.event_order import check_order
from support.gateway import ASK, READ, gateway, run
from support.loopback import running_loop
from support.replay import replaying
from support.rows import in_one_test

from toolglot.core.conversation import (
    Conversation,
    Image,
    Message,
    Reasoning,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from toolglot.core.errors import RequestError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    Started,
    TextDelta,
    Usage,
    merge_deltas,
)
from toolglot.gateway.recovery.history import heal_history
from toolglot.sim import SimOptions
from toolglot.sim.server import running
from toolglot.wires.ollama import WIRE as wire
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

ANSWERER = ResponseIdentity("1", 1234567890, "qwen3")
PLAIN = ClientRequest(conversation=Conversation("m", ()))
USER = Message("user", (Text("hi"),))


def ask(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}).encode()


def decode(body: bytes) -> ClientRequest:
    return wire.decode_request(body, {})


def encode(*messages: Message, **fields: Any) -> Any:
    return json.loads(wire.encode_request(Conversation("m", messages, **fields), stream=False, wants_usage=False))


def ids() -> Any:
    numbers = iter(range(1, 100))
    return lambda: f"made_{next(numbers)}"


def lines(*received: object) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in received).encode()


def line(**message: Any) -> dict[str, Any]:
    received = {"role": "assistant", "content": "", **message}
    return {"model": "qwen3", "created_at": "2009-02-13T23:31:30Z", "message": received, "done": False}


def done(reason: str = "stop", **fields: Any) -> dict[str, Any]:
    return line() | {"done": True, "done_reason": reason, "prompt_eval_count": 3, "eval_count": 4, **fields}


def call(name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **fields}


def read_whole(stream: bytes, size: int = 0) -> list[Event]:
    reader = wire.open_decoder(ids())
    size = size or len(stream)
    events = [event for at in range(0, len(stream), size) for event in reader.feed(stream[at : at + size])]
    events += reader.close()
    check_order(events)
    return list(merge_deltas(events))


# requests


def test_every_kind_of_message_is_read() -> None:
    asked = decode(
        ask(
            messages=[
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "see", "images": ["iVBORw0KGgo=", "/9j/4AAQ"]},
                {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call("read", {"a": "ä"}), call("read", {}, id="c")]},
                {"role": "tool", "tool_name": "read", "content": "out"},
                {"role": "tool", "tool_name": "read", "content": "[The tool reported an error]\ngone", "tool_call_id": "c"},
            ],
            tools=[READ],
            options={"num_predict": -1, "num_ctx": 9, "stop": ["x"], "temperature": 0},
            think=True,
        )
    )  # fmt: skip
    system, user, assistant, tool, last = asked.conversation.messages
    assert (system.role, system.text) == ("system", "be brief")
    assert [image.media_type for image in user.parts if isinstance(image, Image)] == ["image/png", "image/jpeg"]
    assert assistant.parts == (Reasoning("hm"), ToolCall("call_2_0", "read", '{"a":"ä"}'), ToolCall("c", "read", "{}"))
    assert tool.parts == (ToolResult("", "read", (Text("out"),)),)
    assert last.parts == (ToolResult("c", "read", (Text("gone"),), True),)
    assert asked.stream and asked.wants_usage and asked.conversation.sampling == Sampling(temperature=0, stop=("x",))
    assert asked.conversation.extra == {"think": True, "options": {"num_predict": -1, "num_ctx": 9}}
    assert not decode(ask(stream=False)).stream


def test_results_belong_to_calls_without_ids_in_order() -> None:
    """Some clients leave the ids out of calls and in results."""
    made = [call("read", {"a": "1"}), call("write", {}), call("read", {"a": "2"})]
    received = [{"role": "tool", "content": text, "tool_call_id": f"call_{text}"} for text in ("one", "two", "three")]
    history = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls": made}, *received]
    messages = heal_history(decode(ask(messages=history)).conversation.messages).messages
    results = [part for message in messages for part in message.parts if isinstance(part, ToolResult)]
    assert [(result.call_id, result.name) for result in results] == [
        ("call_1_0", "read"),
        ("call_1_1", "write"),
        ("call_1_2", "read"),
    ]
    assert [result.content for result in results] == [(Text(text),) for text in ("one", "two", "three")]


def test_a_strange_id_of_a_result_is_kept_where_all_calls_have_ids() -> None:
    made = [call("read", {}, id="c")]
    received = {"role": "tool", "content": "x", "tool_call_id": "other"}
    history = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls": made}, received]
    (result,) = decode(ask(messages=history)).conversation.messages[-1].parts
    assert isinstance(result, ToolResult) and result.call_id == "other"


def test_a_request_written_again_is_the_same_request() -> None:
    body = ask(
        messages=[
            {"role": "system", "content": "s"},
            {"role": "user", "content": "a", "images": ["iVBORw0KGgo="]},
            {"role": "assistant", "content": "t", "thinking": "h", "tool_calls": [{"id": "c", "function": {"index": 0, "name": "read", "arguments": {"a": 1}}}]},
            {"role": "tool", "tool_name": "read", "tool_call_id": "c", "content": "[The tool reported an error]\nr"},
        ],
        tools=[READ],
        options={"num_ctx": 8, "num_predict": 7, "temperature": 0.5, "top_p": 0.5, "top_k": 3, "seed": 1, "stop": ["x"]},
        stream=True,
        format="json",
        keep_alive="5m",
    )  # fmt: skip
    asked = decode(body)
    again = wire.encode_request(asked.conversation, stream=asked.stream, wants_usage=asked.wants_usage)
    assert json.loads(again) == json.loads(body)
    assert decode(again) == asked


@in_one_test(
    ("body", "where", "words"),
    [
        (b"{", None, "not valid JSON"),
        (ask(messages=[]), "messages", "not empty"),
        (ask(messages=[3]), "messages[0]", "role"),
        (ask(messages=[{"role": "wizard"}]), "messages[0].role", "one of"),
        (ask(messages=[{"role": "user", "content": [4]}]), "messages[0].content", "text"),
        (ask(messages=[{"role": "user", "images": [3]}]), "messages[0].images", "base64"),
        (ask(messages=[{"role": "assistant", "tool_calls": [{}]}]), "messages[0].tool_calls", "name"),
        (ask(tools=3), "tools", "list"),
        (ask(options=3), "options", "object"),
        (ask(options={"num_predict": "many"}), "options.num_predict", "number"),
    ],
)
def test_bad_requests_name_the_field(body: bytes, where: str | None, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        decode(body)
    assert caught.value.where == where
    assert words in json.loads(wire.encode_error(caught.value))["error"]


def test_a_choice_is_made_by_what_is_offered() -> None:
    tools = (Tool("read"), Tool("write"))
    assert "tools" not in encode(USER, tools=tools, choice=ToolChoice("none"))
    encoded = encode(USER, tools=tools, choice=ToolChoice.one("write"))
    assert [tool["function"]["name"] for tool in encoded["tools"]] == ["write"]
    assert encoded["messages"][0] == {"role": "system", "content": "Your next answer must be a call of write."}
    assert encoded["stream"] is False


def test_an_image_without_its_bytes_is_refused() -> None:
    with pytest.raises(RequestError, match="address"):
        encode(Message("user", (Image(url="http://x/y.png"),)))


def test_a_request_for_another_model_keeps_everything_else() -> None:
    body = ask(tools=[READ], think=False)
    assert wire.adapt_request(body, "m", without_tools=False) == body
    encoded = json.loads(wire.adapt_request(body, "other", without_tools=True))
    assert encoded["model"] == "other" and "tools" not in encoded and "think" in encoded


# replies

STREAM = lines(
    line(thinking="hm"),
    line(content="Ich "),
    line(content="lese – "),
    line(tool_calls=[call("read", {"path": "ä"}, id="c1"), call("list", {})]),
    done(),
)
EVENTS: list[Event] = [
    Started("", "qwen3"),
    ReasoningDelta("hm"),
    TextDelta("Ich lese – "),
    CallStarted(0, "c1", "read"),
    CallArguments(0, '{"path":"ä"}'),
    CallEnded(0),
    CallStarted(1, "made_1", "list"),
    CallArguments(1, "{}"),
    CallEnded(1),
    Finished("tool_calls", Usage(input_tokens=3, output_tokens=4, total_tokens=7)),
]


@in_one_test("size", [0, 1, 7, 64])
@in_one_test("ends", [b"\n", b"\r\n"])
def test_a_stream_is_read_however_it_is_cut(size: int, ends: bytes) -> None:
    assert read_whole(STREAM.replace(b"\n", ends), size) == EVENTS


@pytest.mark.parametrize(
    ("stream", "last"),
    [
        (lines(line(content="x"), done()), Finished("stop", Usage(input_tokens=3, output_tokens=4, total_tokens=7))),
        (lines(line(content="x"), done("length")), Finished("length", Usage(input_tokens=3, output_tokens=4, total_tokens=7))),
        (lines(line(content="x"), done())[:-1], Finished("stop", Usage(input_tokens=3, output_tokens=4, total_tokens=7))),
        (lines(line(content="x")), Failed("upstream_closed", "The upstream closed the connection in the middle of its answer.")),
        (lines(line(content="x"), {"error": "boom"}, done()), Failed("upstream_refused", "boom")),
        (b"{\n", Failed("upstream_invalid", "The upstream sent no reply but '{'.")),
    ],
)  # fmt: skip
def test_how_a_stream_ends(stream: bytes, last: Event) -> None:
    assert read_whole(stream)[-1] == last


def test_what_is_written_is_read_the_same() -> None:
    assert read_whole(wire.open_encoder(ANSWERER, PLAIN).write(EVENTS), 11) == EVENTS
    assert wire.decode_response(wire.encode_response(EVENTS, ANSWERER, PLAIN), ids()).events == EVENTS


def test_a_heartbeat_is_an_empty_line() -> None:
    assert json.loads(wire.open_encoder(ANSWERER, PLAIN).heartbeat()) == line()


def test_only_whole_calls_are_sent() -> None:
    started: list[Event] = [CallStarted(0, "c", "read"), CallArguments(0, '{"a":"b (refused)')]
    cut = wire.open_encoder(ANSWERER, PLAIN).write([*started, Finished("length")])
    assert json.loads(cut)["done_reason"] == "length"
    whole = json.loads(wire.encode_response([*started, Finished("length")], ANSWERER, PLAIN))
    assert "tool_calls" not in whole["message"] and whole["done_reason"] == "length"


@pytest.mark.parametrize(
    ("body", "message"),
    [(b'{"error":"no such model"}', "no such model"), (b"<html>", "The upstream answered with status 404.")],
)
def test_errors_of_upstreams(body: bytes, message: str) -> None:
    error = wire.decode_error(404, body)
    assert (error.status, error.message) == (404, message)


# the ollama package


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with running_loop() as loop, loop.entered(running(replaying(wire))) as address:
        client = Client(host=address)
        yield client
        client._client.close()


def ask_client(client: Client, model: str, streamed: bool) -> tuple[str, str, list[Any], ChatResponse]:
    messages = [{"role": "user", "content": "hi"}]
    parts = list(client.chat(model, messages, stream=True)) if streamed else [client.chat(model, messages)]
    text = "".join(part.message.content or "" for part in parts)
    thought = "".join(part.message.thinking or "" for part in parts)
    calls = [(call.function.name, call.function.arguments) for part in parts for call in part.message.tool_calls or ()]
    return text, thought, calls, parts[-1]


FIRST = ("read", {"filePath": "package.json"})


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("model", "text", "thought", "calls", "reason"),
    [
        ("text", "Hello wörld", "", [], "stop"),
        ("one", "Now. ", "", [FIRST], "stop"),
        ("two", "", "", [FIRST, ("write", {"filePath": "ä", "content": "x\ny"})], "stop"),
        ("thought", "", "I should read.", [FIRST], "stop"),
        ("length", "Hello ", "", [], "length"),
    ],
)
def test_the_package_reads_it(
    client: Client, model: str, text: str, thought: str, calls: list[Any], reason: str, streamed: bool
) -> None:
    *received, last = ask_client(client, model, streamed)
    assert received == [text, thought, calls]
    assert (last.done, last.done_reason, last.prompt_eval_count, last.eval_count) == (True, reason, 11, 7)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_failure_raises(client: Client, streamed: bool) -> None:
    with pytest.raises(ResponseError, match=r"It broke\."):
        ask_client(client, "error", streamed)


# through the gateway


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("mode", ["roo_xml", "native"])
def test_an_agent_reads_a_file(mode: str, streamed: bool) -> None:
    async def cycle() -> None:
        settings: Any = {"mode": "native"} if mode == "native" else {"mode": "text", "dialect": mode}
        async with gateway(SimOptions(dialect=mode), **settings) as gate:
            client = AsyncClient(host=gate.address)
            messages: list[Any] = [{"role": "user", "content": 'Read the file "package.json"'}]
            for _ in range(2):
                if streamed:
                    stream = await client.chat("sim", messages, tools=[READ], stream=True)
                    parts = [part async for part in stream]
                else:
                    parts = [await client.chat("sim", messages, tools=[READ])]
                calls = [call for part in parts for call in part.message.tool_calls or ()]
                text = "".join(part.message.content or "" for part in parts)
                messages.append({"role": "assistant", "content": text, "tool_calls": calls})
                messages += [
                    {"role": "tool", "tool_name": call.function.name, "content": '{"name": "shop"}'} for call in calls
                ]
            assert "shop" in text and not calls
            received = [call.function.arguments for message in messages for call in message.get("tool_calls", ())]
            assert received == [{"filePath": "package.json"}]
            assert "sim" in [model.model for model in (await client.list()).models]
            assert (await client.show("sim")).capabilities == ["completion", "tools"]
            assert (await gate.get("/api/version")).json["version"]
            await client._client.aclose()

    run(cycle)


def test_a_slow_relay_is_kept_alive_between_its_lines() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        for piece in (STREAM[:30], STREAM[30:-9], STREAM[-9:]):
            await response.write(piece)
            await asyncio.sleep(0.15)
        return response

    async def relay() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat", answer)
        async with gateway(app=app, upstream={"wire": "ollama"}, mode="off", heartbeat_seconds=0.05) as gate:
            received = await gate.ask(ask(model="qwen3"), "/api/chat")
            assert read_whole(received.body) == EVENTS
            assert all(json.loads(part) for part in received.body.splitlines())

    run(relay)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_chat_client_is_answered_by_it(streamed: bool) -> None:
    seen: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(await request.json())
        if seen[-1]["stream"]:
            return web.Response(body=STREAM, content_type="application/x-ndjson")
        return web.json_response(
            done() | {"message": line(content="Ich lese – ", tool_calls=[call("read", {"path": "ä"})])["message"]}
        )

    async def translate() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat", answer)
        async with gateway(app=app, upstream={"wire": "ollama"}, mode="native") as gate:
            received = await gate.ask({**ASK, "stream": streamed, "max_tokens": 5})
            if streamed:
                assert received.joined == ("Ich lese – ", [("read", '{"path":"ä"}'), ("list", "{}")], "tool_calls")
            else:
                assert received.message["tool_calls"][0]["function"]["arguments"] == '{"path":"ä"}'
            assert seen[-1]["options"] == {"num_predict": 5} and seen[-1]["stream"] is streamed

    run(translate)
