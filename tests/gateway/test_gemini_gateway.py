"""The Gemini wire through a whole gateway: the google-genai package as client, text and native models, other upstreams."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from google import genai
from google.genai import errors, types
from support.error_texts import what_failed
from support.gateway import gateway, run
from support.loopback import MANIFEST, QUESTION, Loop, Sim, running_gateway, running_loop, running_sim
from support.wiring import ANSWERS, Replay, call

from toolglot.core.conversation import Conversation
from toolglot.core.events import Event, Finished, ReasoningSigned
from toolglot.wires import all_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

MARKS = [("hermes", "text"), ("qwen3_coder", "text"), ("roo_xml", "text"), ("native", "native")]
SCHEMA = {"type": "object", "properties": {"filePath": {"type": "string"}}, "required": ["filePath"]}
TOOL = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(name="read", description="Read a file", parameters_json_schema=SCHEMA)
    ]
)
BODY: dict[str, Any] = {
    "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
    "tools": [{"functionDeclarations": [{"name": "read", "parameters": {"type": "OBJECT", "properties": {"filePath": {"type": "STRING"}}}}]}],
}  # fmt: skip

Way: TypeAlias = Callable[[genai.Client, str, list[Any]], list[types.Content]]


def configure() -> types.GenerateContentConfig:
    unattended = types.AutomaticFunctionCallingConfig(disable=True)
    return types.GenerateContentConfig(
        tools=[TOOL], system_instruction="Be brief.", automatic_function_calling=unattended
    )


def ask_whole(client: genai.Client, model: str, contents: list[Any]) -> list[types.Content]:
    reply = client.models.generate_content(model=model, contents=contents, config=configure())
    assert reply.candidates and reply.candidates[0].content and reply.usage_metadata
    return [reply.candidates[0].content]


def ask_streamed(client: genai.Client, model: str, contents: list[Any]) -> list[types.Content]:
    replies = list(client.models.generate_content_stream(model=model, contents=contents, config=configure()))
    candidates = [reply.candidates[0] for reply in replies if reply.candidates]
    assert candidates[-1].finish_reason == "STOP"
    return [candidate.content for candidate in candidates if candidate.content]


WAYS: dict[str, Way] = {"whole": ask_whole, "streamed": ask_streamed}


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with running_loop() as loop:
        yield loop


@pytest.fixture(scope="module")
def sim(loop: Loop) -> Iterator[Sim]:
    with running_sim(loop, chunk=5) as sim:
        yield sim


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


def connect(base_url: str, key: str = "none") -> genai.Client:
    options = types.HttpOptions(base_url=base_url.removesuffix("/v1"), retry_options=types.HttpRetryOptions(attempts=1))
    return genai.Client(api_key=key, http_options=options)


@pytest.fixture(scope="module", params=MARKS)
def place(request: pytest.FixtureRequest, loop: Loop, sim: Sim) -> Iterator[tuple[genai.Client, str]]:
    dialect, mode = request.param
    received = {"mode": mode} if mode == "native" else {"mode": mode, "dialect": dialect}
    with running_gateway(loop, sim, **received) as base_url:
        client = connect(base_url)
        yield client, f"sim:{dialect}"
        client.close()


def test_a_file_is_read(place: tuple[genai.Client, str], way: Way, tmp_path: Path) -> None:
    client, model = place
    (tmp_path / "package.json").write_text(MANIFEST, "utf-8")
    history: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
    called: list[Any] = []
    for _ in range(4):
        contents = way(client, model, history)
        history += contents
        calls = [part.function_call for content in contents for part in content.parts or [] if part.function_call]
        if not calls:
            break
        called += calls
        output = (tmp_path / calls[0].args["filePath"]).read_text("utf-8")  # type: ignore[index]
        response = types.FunctionResponse(id=calls[0].id, name=calls[0].name, response={"output": output})
        history.append(types.Content(role="user", parts=[types.Part(function_response=response)]))
    assert [(one.name, one.args) for one in called] == [("read", {"filePath": "package.json"})]
    text = "".join(part.text or "" for content in contents for part in content.parts or [])
    assert text.startswith("Done. The tool said: `")


def test_a_chat_that_runs_tools_itself(loop: Loop, sim: Sim, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(MANIFEST, "utf-8")
    asked: list[str] = []

    def read(filePath: str) -> str:
        """Read a file"""
        asked.append(filePath)
        return (tmp_path / filePath).read_text("utf-8")

    with running_gateway(loop, sim, mode="text", dialect="hermes") as base_url:
        client = connect(base_url)
        chat = client.chats.create(model="sim:hermes", config=types.GenerateContentConfig(tools=[read]))
        text = chat.send_message(QUESTION).text
        client.close()
    assert asked == ["package.json"] and text is not None and text.startswith("Done. The tool said: `")


def test_what_goes_wrong(loop: Loop, sim: Sim, way: Way) -> None:
    contents: list[Any] = [QUESTION]
    with running_gateway(loop, sim, mode="text", dialect="hermes", client_keys="sk-toolglot-right") as base_url:
        client = connect(base_url, "sk-toolglot-wrong")
        with pytest.raises(errors.ClientError, match="UNAUTHENTICATED"):
            way(client, "sim:hermes", contents)
        client.close()
        client = connect(base_url, "sk-toolglot-right")
        with pytest.raises(errors.ClientError, match="RESOURCE_EXHAUSTED"):
            way(client, "sim:hermes+http_429", contents)
        with pytest.raises(errors.ServerError, match="failed in the middle"):
            way(client, "sim:hermes+error_after_first", contents)
        with pytest.raises(errors.ServerError, match="The connection to the upstream broke"):
            way(client, "sim:hermes+cut_mid_call", contents)
        client.close()


@pytest.mark.parametrize("root", ["/v1beta", "/v1", ""])
def test_addresses_and_kinds_of_streams(root: str) -> None:
    async def test() -> None:
        async with gateway(mode="text", dialect="hermes") as gate:
            listed = await gate.ask(BODY, path=f"{root}/models/sim:hermes:streamGenerateContent?key=k")
            assert listed.headers["Content-Type"] == "application/json"
            calls = [
                part
                for received in listed.json
                for part in received["candidates"][0]["content"]["parts"]
                if "functionCall" in part
            ]
            assert [part["functionCall"]["args"] for part in calls] == [{"filePath": "package.json"}]
            events = await gate.ask(BODY, path=f"{root}/models/sim:hermes:streamGenerateContent?alt=sse")
            assert events.headers["Content-Type"] == "text/event-stream" and events.body.startswith(b"data: {")
            whole = await gate.ask(BODY, path=f"{root}/models/sim:hermes:generateContent")
            assert whole.json["modelVersion"] == "sim:hermes"
            assert (await gate.get("/v1/models/sim")).json["id"] == "sim"
            assert (await gate.ask(BODY, path=f"{root}/models/sim:countTokens")).status in (404, 405)

    run(test)


# This wire at the other end


def answer_of_gemini(events: list[Event], stream: bool) -> bytes:
    wire, answerer = all_wires()["gemini"], ResponseIdentity("1", 1, "m")
    asked = ClientRequest(conversation=Conversation("m", ()), stream=stream, memory={"thoughts": True})
    return wire.open_encoder(answerer, asked).write(events) if stream else wire.encode_response(events, answerer, asked)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["text", "calls", "text_call"])
def test_a_chat_client_before_a_gemini_upstream(name: str, stream: bool) -> None:
    replay = Replay()
    replay.body = answer_of_gemini(ANSWERS[name], stream)
    replay.content_type = "text/event-stream" if stream else "application/json"
    history = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]  # fmt: skip
    tools = [{"type": "function", "function": {"name": "read", "description": "Read a file", "parameters": SCHEMA}}]

    async def test() -> None:
        async with gateway(app=replay.app, upstream={"wire": "gemini"}, mode="native") as gate:
            answer = await gate.ask(
                {"model": "m", "messages": history, "tools": tools, "stream": stream}, Authorization="Bearer k"
            )
            assert answer.status == 200
            if stream:
                text, calls, finish = answer.joined
            else:
                received = answer.message.get("tool_calls", ())
                calls = [(one["function"]["name"], one["function"]["arguments"]) for one in received]
                text, finish = answer.message["content"] or "", answer.finish
            assert len(calls) == {"text": 0, "calls": 2, "text_call": 1}[name]
            assert bool(text) == ("text" in name) and finish == ("tool_calls" if calls else "stop")

    run(test)
    path, headers, body = replay.asked[0]
    assert path == "/v1/models/m:" + ("streamGenerateContent?alt=sse" if stream else "generateContent")
    assert headers["x-goog-api-key"] == "k" and "Authorization" not in headers
    assert body["systemInstruction"] == {"parts": [{"text": "s"}]}
    assert body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == SCHEMA
    kinds = [next(iter(part)) for content in body["contents"] for part in content["parts"]]
    assert kinds == ["text", "functionCall", "functionResponse"]


def test_a_signature_is_restored_through_a_responses_client() -> None:
    """Each end has its own form for it; nothing is kept in between."""
    replay = Replay()
    events: list[Event] = [ReasoningSigned("AAAA", "gemini"), *call(0), Finished("tool_calls")]
    replay.body, replay.content_type = answer_of_gemini(events, False), "application/json"
    tool = {"type": "function", "name": "read", "parameters": SCHEMA}

    async def test() -> None:
        async with gateway(app=replay.app, upstream={"wire": "gemini"}, mode="native") as gate:
            first = await gate.ask({"model": "m", "input": "hi", "tools": [tool]}, path="/v1/responses")
            output = first.json["output"]
            result = {"type": "function_call_output", "call_id": output[-1]["call_id"], "output": "x"}
            question = {"role": "user", "content": "hi"}
            again = {"model": "m", "input": [question, *output, result], "tools": [tool]}
            assert (await gate.ask(again, path="/v1/responses")).status == 200

    run(test)
    turn = replay.asked[1][2]["contents"][1]
    assert turn["parts"][0]["thoughtSignature"] == "AAAA" and "functionCall" in turn["parts"][0]


@pytest.mark.parametrize("alt", ["", "?alt=sse"])
def test_a_gemini_client_before_a_gemini_upstream(alt: str) -> None:
    """Without tools bytes pass as they are, unless the client wants a list, which is not what upstreams are asked for."""
    replay = Replay()
    replay.body = answer_of_gemini(ANSWERS["text"], True)
    body = {"contents": [{"parts": [{"text": "hi"}]}], "safetySettings": []}

    async def test() -> None:
        async with gateway(app=replay.app, upstream={"wire": "gemini"}) as gate:
            answer = await gate.ask(body, path=f"/v1beta/models/m:streamGenerateContent{alt}")
            if alt:
                assert answer.body == replay.body
            else:
                texts = [
                    part["text"] for received in answer.json for part in received["candidates"][0]["content"]["parts"]
                ]
                assert "".join(texts) == "Grüß dich 😀"

    run(test)
    assert replay.asked[0][0] == "/v1/models/m:streamGenerateContent?alt=sse" and replay.asked[0][2] == body


def test_an_upstream_error_is_encoded_in_the_clients_wire() -> None:
    replay = Replay()
    replay.status, replay.content_type = 429, "application/json"
    replay.body = json.dumps({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}).encode()

    async def test() -> None:
        async with gateway(app=replay.app, upstream={"wire": "gemini"}, mode="native") as gate:
            answer = await gate.ask({"model": "m", "input": "hi"}, path="/v1/responses")
            assert (answer.status, what_failed(answer.error["message"]), answer.error["type"]) == (
                429,
                "slow down",
                "rate_limit_error",
            )

    run(test)


def test_a_model_that_leads_elsewhere_is_refused() -> None:
    replay = Replay()

    async def test() -> None:
        async with gateway(app=replay.app, upstream={"wire": "gemini"}, mode="native") as gate:
            answer = await gate.ask({"model": "../../../admin/delete", "messages": [{"role": "user", "content": "hi"}]})
            assert (answer.status, answer.error["code"]) == (400, "invalid_request")

    run(test)
    assert not replay.asked
