"""The Responses wire through a whole gateway: the openai package as client, text and native models, other upstreams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from aiohttp import web
from openai import APIError, AsyncOpenAI, BadRequestError, OpenAI, RateLimitError
from support.gateway import gateway, run
from support.loopback import MANIFEST, QUESTION, Loop, Sim, running_gateway, running_loop, running_sim
from support.wiring import ANSWERS, Replay, call

from toolglot.core.conversation import Conversation
from toolglot.core.events import Event, Finished, ReasoningSigned
from toolglot.wires import all_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

PATCH = '*** Begin Patch\n*** Add File: a.txt\n+"quoted" & <tag> </input>\n*** End Patch\n'
MARKS = [("hermes", "text"), ("qwen3_coder", "text"), ("roo_xml", "text"), ("native", "native")]
READ: dict[str, Any] = {
    "type": "function",
    "name": "read",
    "description": "Read a file",
    "parameters": {"type": "object", "properties": {"filePath": {"type": "string"}}, "required": ["filePath"]},
    "strict": False,
}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: begin_patch hunk+ end_patch"}
APPLY_PATCH = {"type": "custom", "name": "apply_patch", "description": "Edits files.", "format": GRAMMAR}
SPAWN = {**READ, "name": "spawn_agent", "description": "Start another agent"}
CODEX: dict[str, Any] = {
    "instructions": "",
    "tools": [READ, {"type": "namespace", "name": "agents", "description": "Others", "tools": [SPAWN]}, {"type": "web_search"}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
}  # fmt: skip
SCRIPT: dict[str, Any] = {
    "answer": [
        {"when": "fix a.txt", "times": 1, "text": "I fix it.", "calls": [{"name": "apply_patch", "arguments": {"input": PATCH}}]},
        {"when": "fix a.txt", "text": "Fixed."},
        {"when": "get help", "times": 1, "calls": [{"name": "agents__spawn_agent", "arguments": {"filePath": "x"}}]},
        {"when": "get help", "text": "Helped."},
    ]
}  # fmt: skip

Way: TypeAlias = Callable[..., Any]


def ask_whole(client: OpenAI, **asked: Any) -> Any:
    return client.responses.create(**asked)


def ask_streamed(client: OpenAI, **asked: Any) -> Any:
    """Only what stands in the finished items counts, as for Codex."""
    done: list[Any] = []
    for event in client.responses.create(**asked, stream=True):
        if event.type == "response.output_item.done":
            done.append(event.item)
        elif event.type == "response.completed":
            assert [item.to_dict() for item in event.response.output] == [item.to_dict() for item in done]
            return event.response
    raise AssertionError("the stream did not complete")


def ask_with_helper(client: OpenAI, **asked: Any) -> Any:
    with client.responses.stream(**asked) as stream:
        list(stream)
        return stream.get_final_response()


WAYS: dict[str, Way] = {"create": ask_whole, "create_stream": ask_streamed, "stream": ask_with_helper}


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with running_loop() as loop:
        yield loop


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


def connect(base_url: str) -> OpenAI:
    return OpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=20)


@pytest.fixture(scope="module")
def sim(loop: Loop) -> Iterator[Sim]:
    with running_sim(loop, chunk=5) as sim:
        yield sim


@pytest.fixture(scope="module", params=MARKS)
def place(request: pytest.FixtureRequest, loop: Loop, sim: Sim) -> Iterator[tuple[OpenAI, str]]:
    dialect, mode = request.param
    received = {"mode": mode} if mode == "native" else {"mode": mode, "dialect": dialect}
    with running_gateway(loop, sim, **received) as base_url, connect(base_url) as client:
        yield client, f"sim:{dialect}"


def work(client: OpenAI, way: Way, asked: dict[str, Any], run_tool: Callable[[Any], str]) -> list[Any]:
    """An agent: the output goes back with what the tools gave. All items that came."""
    history, came = list(asked.pop("input")), []
    for _ in range(4):
        response = way(client, **asked, input=history)
        came += response.output
        calls = [item for item in response.output if item.type in ("function_call", "custom_tool_call")]
        if not calls:
            return came
        history += [item.to_dict() for item in response.output]
        history += [{"type": f"{one.type}_output", "call_id": one.call_id, "output": run_tool(one)} for one in calls]
    raise AssertionError("no end")


def test_a_file_is_read(place: tuple[OpenAI, str], way: Way, tmp_path: Path) -> None:
    client, model = place
    (tmp_path / "package.json").write_text(MANIFEST, "utf-8")
    asked = {
        "model": model,
        "input": [{"role": "user", "content": QUESTION}],
        "tools": [READ],
        "instructions": "Be brief.",
    }
    came = work(client, way, asked, lambda item: (tmp_path / json.loads(item.arguments)["filePath"]).read_text("utf-8"))
    calls = [item for item in came if item.type == "function_call"]
    assert [(item.name, json.loads(item.arguments)) for item in calls] == [("read", {"filePath": "package.json"})]
    assert came[-1].content[0].text.startswith("Done. The tool said: `")
    assert len({item.id for item in came}) == len(came)


@pytest.mark.parametrize("dialect", ["hermes", "qwen3_coder", "roo_xml"])
def test_what_codex_sends(loop: Loop, dialect: str, way: Way) -> None:
    answer_text: list[Any] = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are an agent."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context/>"}]},
    ]
    with running_sim(loop, SCRIPT, chunk=7) as sim, running_gateway(loop, sim, mode="text", dialect=dialect) as url:
        with connect(url) as client:
            question = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "fix a.txt"}]}
            tools = [*CODEX["tools"], APPLY_PATCH]
            came = work(
                client,
                way,
                CODEX | {"model": "m", "tools": tools, "input": [*answer_text, question]},
                lambda item: "ok",
            )
            patches = [item for item in came if item.type == "custom_tool_call"]
            assert [(item.name, item.input) for item in patches] == [("apply_patch", PATCH)]
            assert came[-1].content[0].text == "Fixed."
            question = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "get help"}]}
            came = work(client, way, CODEX | {"model": "m", "input": [*answer_text, question]}, lambda item: "ok")
            calls = [item for item in came if item.type == "function_call"]
            assert [(item.namespace, item.name, item.arguments) for item in calls] == [
                ("agents", "spawn_agent", '{"filePath":"x"}')
            ]
        taught = sim.since(0)[0].body
        assert (
            "You are an agent." in taught["messages"][0]["content"]
            and "begin_patch hunk+" in taught["messages"][0]["content"]
        )
        assert not {"store", "include", "reasoning", "prompt_cache_key", "instructions"} & set(taught)


def test_tools_that_come_as_an_item(loop: Loop, sim: Sim) -> None:
    items: list[Any] = [
        {"type": "additional_tools", "role": "developer", "tools": [READ]},
        {"role": "user", "content": QUESTION},
    ]
    with running_gateway(loop, sim, mode="text", dialect="hermes") as url, connect(url) as client:
        assert [item.type for item in ask_streamed(client, model="sim:hermes", input=items).output][
            -1
        ] == "function_call"


def test_what_goes_wrong(loop: Loop, sim: Sim, way: Way) -> None:
    asked: dict[str, Any] = {"input": QUESTION, "tools": [READ]}
    with running_gateway(loop, sim, mode="text", dialect="hermes") as url, connect(url) as client:
        with pytest.raises(BadRequestError, match="previous_response_id cannot be honoured: it is not known here"):
            way(client, **asked, model="m", previous_response_id="resp_1")
        with pytest.raises(BadRequestError, match="conversation cannot be honoured"):
            way(client, **asked, model="m", conversation="conv_1")
        with pytest.raises(RateLimitError):
            way(client, **asked, model="sim:hermes+http_429")
        with pytest.raises(APIError, match="failed in the middle"):
            way(client, **asked, model="sim:hermes+error_after_first")
        with pytest.raises(APIError, match="The connection to the upstream broke"):
            way(client, **asked, model="sim:hermes+cut_mid_call")


def test_a_cut_call_is_never_done(loop: Loop, sim: Sim) -> None:
    with running_gateway(loop, sim, mode="text", dialect="hermes") as url, connect(url) as client:
        asked: dict[str, Any] = {"input": QUESTION, "tools": [READ], "model": "sim:hermes+length"}
        events = list(client.responses.create(**asked, stream=True))
        assert events[-1].type == "response.incomplete"
        assert "function_call" not in [event.item.type for event in events if event.type == "response.output_item.done"]
        whole: Any = client.responses.create(**asked)
        assert whole.status == "incomplete" and "function_call" not in [item.type for item in whole.output]


# State


def name_previous(response: Any) -> dict[str, Any]:
    return {"previous_response_id": response.id, "input": []}


def name_items(response: Any) -> dict[str, Any]:
    return {
        "input": [
            {"role": "user", "content": QUESTION},
            *({"type": "item_reference", "id": one.id} for one in response.output),
        ]
    }


@pytest.mark.parametrize("refer", [name_previous, name_items])
def test_a_client_that_relies_on_state(
    place: tuple[OpenAI, str], way: Way, refer: Callable[[Any], dict[str, Any]]
) -> None:
    client, model = place
    asked: dict[str, Any] = {"model": model, "tools": [READ]}
    first = way(client, **asked, input=QUESTION)
    assert first.store is True
    [called] = [item for item in first.output if item.type == "function_call"]
    received = refer(first)
    received["input"].append({"type": "function_call_output", "call_id": called.call_id, "output": MANIFEST})
    second = way(client, **asked, **received)
    assert second.output[-1].content[0].text.startswith("Done. The tool said: `")
    third = way(client, **asked, previous_response_id=second.id, input="Thank you.")
    assert third.output


def test_what_is_not_to_be_kept_is_not_known(loop: Loop, sim: Sim, way: Way) -> None:
    with running_gateway(loop, sim, mode="text", dialect="hermes") as url, connect(url) as client:
        first = way(client, model="sim:hermes", input="hi", tools=[READ], store=False)
        assert first.store is False
        with pytest.raises(BadRequestError, match="not known here"):
            way(client, model="sim:hermes", input="hi", tools=[READ], previous_response_id=first.id)


def test_answers_of_another_key_cannot_be_referenced(loop: Loop, sim: Sim) -> None:
    with running_gateway(loop, sim, mode="text", dialect="hermes") as url:
        with connect(url) as client:
            first = client.responses.create(model="sim:hermes", input="hi", tools=[READ])  # type: ignore[list-item]
        with OpenAI(base_url=url, api_key="another", max_retries=0) as other, pytest.raises(BadRequestError):
            other.responses.create(model="sim:hermes", input="hi", previous_response_id=first.id)


@pytest.mark.parametrize(
    "payload", [{"previous_response_id": "resp_9"}, {"conversation": "conv_1"}, {"background": True}]
)
def test_an_upstream_of_this_wire_may_know_what_is_not_known_here(payload: dict[str, Any]) -> None:
    replay = Replay()
    replay.body, replay.content_type = answer_by("openai_responses", ANSWERS["text"], False), "application/json"
    asked = {"model": "m", "input": "hi", "tools": [READ], **payload}

    async def test() -> None:
        async with gateway(app=replay.app, upstream={"wire": "openai_responses"}, mode="native") as gate:
            assert (await gate.ask(asked, path="/v1/responses")).status == 200
            refused = await gate.ask(asked, path="/v1/responses", x_toolglot_mode="text")
            assert refused.status == 400 and refused.error["param"] == next(iter(payload))

    run(test)
    assert [body for _, _, body in replay.asked] == [asked]


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("tools", [[], [READ]])
def test_answers_that_only_passed_are_known_unless_their_server_keeps_them(tools: list[Any], stateful: bool) -> None:
    replay = Replay()
    replay.body = answer_by("openai_responses", ANSWERS["text_call"], True)
    if stateful:
        replay.body = replay.body.replace(b'"store":false', b'"store":true')
    asked: dict[str, Any] = {"model": "m", "input": [{"role": "user", "content": "hi"}], "tools": tools, "stream": True}
    called = {"type": "item_reference", "id": "fc_1_1"}
    result = {"type": "function_call_output", "call_id": "call_0", "output": "x"}

    async def test() -> None:
        async with gateway(app=replay.app, upstream={"wire": "openai_responses"}, mode="native") as gate:
            answer = await gate.ask(asked, path="/v1/responses")
            assert answer.body == replay.body
            await gate.ask(asked | {"input": [*asked["input"], called, result]}, path="/v1/responses")

    run(test)
    sent = replay.asked[1][2]["input"][1]
    assert sent == called if stateful else (sent["type"], sent["call_id"]) == ("function_call", "call_0")


def test_a_request_that_grows_too_large_is_refused() -> None:
    replay = Replay()
    replay.body = answer_by("openai_responses", ANSWERS["text_call"], True)
    asked: dict[str, Any] = {"model": "m", "input": "hi", "stream": True}
    upstream = {"wire": "openai_responses"}

    async def test() -> None:
        async with gateway(app=replay.app, upstream=upstream, mode="native", limit_body_bytes="1000") as gate:
            await gate.ask(asked, path="/v1/responses")
            meant = [{"type": "item_reference", "id": "fc_1_1"}] * 16
            answer = await gate.ask(asked | {"input": meant}, path="/v1/responses")
            assert (answer.status, answer.json["error"]["code"]) == (413, "request_too_large")

    run(test)
    assert len(replay.asked) == 1


# This wire at the other end


def answer_by(upstream: str, events: list[Event], stream: bool) -> bytes:
    wire = all_wires()[upstream]
    answerer, asked = (
        ResponseIdentity("1", 1, "m"),
        ClientRequest(conversation=Conversation("m", ()), stream=stream, wants_usage=True),
    )
    return wire.open_encoder(answerer, asked).write(events) if stream else wire.encode_response(events, answerer, asked)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["text", "calls", "text_call"])
def test_a_chat_client_before_a_responses_upstream(name: str, stream: bool) -> None:
    replay = Replay()
    replay.body = answer_by("openai_responses", ANSWERS[name], stream)
    replay.content_type = "text/event-stream" if stream else "application/json"
    history = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]  # fmt: skip
    function = {key: READ[key] for key in ("name", "description", "parameters")}

    async def test() -> None:
        async with gateway(app=replay.app, upstream={"wire": "openai_responses"}, mode="native") as gate:
            tools = [{"type": "function", "function": function}]
            answer = await gate.ask({"model": "m", "messages": history, "tools": tools, "stream": stream})
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
    path, _, body = replay.asked[0]
    assert path == "/v1/responses" and body["instructions"] == "s" and body["tools"] == [READ]
    assert [item["type"] for item in body["input"]] == ["message", "function_call", "function_call_output"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_responses_client_before_a_responses_upstream(stream: bool) -> None:
    """Custom tools, namespaces and signatures pass unchanged, although the text is searched for calls."""
    custom = ClientRequest(
        conversation=Conversation("m", ()),
        memory={
            "custom": frozenset(("apply_patch",)),
            "namespaces": {"agents__spawn_agent": ("agents", "spawn_agent")},
        },
    )
    wire = all_wires()["openai_responses"]
    events: list[Event] = [
        ReasoningSigned("SIGNATURE", "openai_responses"),
        *call(0, "apply_patch", json.dumps({"input": PATCH})),
        *call(1, "agents__spawn_agent", "{}"),
        Finished("tool_calls"),
    ]
    answerer, replay = ResponseIdentity("1", 1, "m"), Replay()
    replay.body = (
        wire.open_encoder(answerer, custom).write(events) if stream else wire.encode_response(events, answerer, custom)
    )
    replay.content_type = "text/event-stream" if stream else "application/json"
    asked = {**CODEX, "model": "m", "input": "hi", "stream": stream, "tools": [*CODEX["tools"], APPLY_PATCH]}

    async def test() -> None:
        async with gateway(app=replay.app, upstream={"wire": "openai_responses"}, mode="native") as gate:
            answer = await gate.ask(asked, path="/v1/responses")
            received = answer.json
            assert [(item["type"], item.get("namespace")) for item in received["output"]] == [
                ("reasoning", None), ("custom_tool_call", None), ("function_call", "agents"),
            ]  # fmt: skip
            assert received["output"][0]["encrypted_content"] == "SIGNATURE" and received["output"][1]["input"] == PATCH

    async def test_streamed() -> None:
        async with gateway(app=replay.app, upstream={"wire": "openai_responses"}, mode="native") as gate:
            answer = await gate.ask(asked, path="/responses")
            last = json.loads(answer.body.decode().strip().rpartition("data: ")[2])
            assert [item.get("input") for item in last["response"]["output"]] == [None, PATCH, None]

    run(test_streamed if stream else test)
    assert replay.asked[0][2] == asked


def test_a_stream_that_is_passed_on_keeps_its_identity(loop: Loop) -> None:
    """Silence before the first byte and in the middle of it, and a client that stops at anything odd."""
    frames = [frame + b"\n\n" for frame in answer_by("openai_responses", ANSWERS["text"], True).split(b"\n\n")[:-1]]

    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.3)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"".join(frames[:5]))
        await asyncio.sleep(0.3)
        await response.write(b"".join(frames[5:]))
        return response

    app = web.Application()
    app.router.add_post("/v1/responses", answer)

    async def test() -> None:
        payload: dict[str, Any] = {"upstream": {"wire": "openai_responses"}, "heartbeat_seconds": "0.1"}
        async with (
            gateway(app=app, **payload) as gate,
            AsyncOpenAI(base_url=gate.address + "/v1", api_key="k") as client,
        ):
            async with client.responses.stream(model="m", input="hi") as stream:
                seen = [event.type async for event in stream]
                final = await stream.get_final_response()
            assert final.output_text == "Grüß dich 😀" and final.id == "resp_1" and "keepalive" in seen

    run(test)
