"""The openai package reads what the Responses wire writes, and asks what it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import APIError, BadRequestError, OpenAI
from support.loopback import Loop, running_loop
from support.wiring import ANSWERS, PATH, Replay, call, replaying

from toolglot.core.conversation import Conversation
from toolglot.core.errors import RequestError
from toolglot.core.events import CallEnded, Event, Failed, Finished, ReasoningDelta, ReasoningSigned, TextDelta
from toolglot.wires.openai_responses import WIRE as wire
from toolglot.wires.openai_responses.response_encoder import interject
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

ANSWERER = ResponseIdentity("1", 1234567890, "m")
PLAIN = ClientRequest(
    conversation=Conversation("m", ()), memory={"custom": frozenset(("apply_patch",)), "namespaces": {}}
)
PATCH = "*** Begin Patch\n*** End Patch\n"
EXPECTED: dict[str, list[Event]] = {
    **ANSWERS,
    "custom": [*call(0, "apply_patch", json.dumps({"input": PATCH})), Finished("tool_calls")],
    "signed": [ReasoningDelta("hm"), ReasoningSigned("SIGNATURE", "gemini"), *call(0), Finished("tool_calls")],
    "together": [*call(0, ended=False), *call(1, ended=False), CallEnded(0), CallEnded(1), Finished("tool_calls")],
}
READABLE = [name for name in EXPECTED if name not in ("error", "length", "cut_call", "filtered")]


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with running_loop() as loop:
        yield loop


@pytest.fixture(scope="module")
def server(loop: Loop) -> Iterator[tuple[Replay, str]]:
    with replaying(loop) as found:
        yield found


@pytest.fixture
def client(server: tuple[Replay, str]) -> Iterator[OpenAI]:
    with OpenAI(base_url=server[1] + "/v1", api_key="k", max_retries=0) as client:
        yield client


def expect(events: list[Event]) -> list[tuple[str, ...]]:
    """The items that a client must see, by kind and content."""
    found: list[tuple[str, ...]] = []
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    if text:
        found.append(("message", text))
    if any(isinstance(event, ReasoningDelta) for event in events):
        found.append(("reasoning", "".join(event.text for event in events if isinstance(event, ReasoningDelta))))
    calls = [event for event in events if isinstance(event, CallEnded)]
    return [*found, *[("call", str(ended.index)) for ended in calls]]


def see(response: Any) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for item in response.output:
        match item.type:
            case "message":
                found.append(("message", item.content[0].text))
            case "reasoning":
                found.append(("reasoning", item.summary[0].text))
            case "function_call":
                assert item.id.startswith("fc_") and (item.name == "write" or item.arguments == PATH)
                found.append(("call", item.call_id.removeprefix("call_")))
            case "custom_tool_call":
                assert item.input == PATCH and item.name == "apply_patch"
                found.append(("call", item.call_id.removeprefix("call_")))
    return found


def prepare(replay: Replay, name: str, *, whole: bool = False, beats: int = 0) -> None:
    writer = wire.open_encoder(ANSWERER, PLAIN)
    if whole:
        replay.body, replay.content_type = wire.encode_response(EXPECTED[name], ANSWERER, PLAIN), "application/json"
        return
    replay.content_type = "text/event-stream"
    beat = b"".join(writer.heartbeat() for _ in range(beats))
    replay.body = beat + b"".join(
        writer.write([event]) + (writer.heartbeat() if beats else b"") for event in EXPECTED[name][:-1]
    )
    replay.body += writer.write(EXPECTED[name][-1:])


@pytest.mark.parametrize("name", READABLE)
def test_whole_answers(server: tuple[Replay, str], client: OpenAI, name: str) -> None:
    prepare(server[0], name, whole=True)
    response = client.responses.create(model="m", input="hi")
    assert sorted(see(response)) == sorted(expect(EXPECTED[name]))
    assert response.status == "completed" and response.usage is not None


@pytest.mark.parametrize("beats", [0, 2])
@pytest.mark.parametrize("name", READABLE)
def test_streams_and_the_stream_helper(server: tuple[Replay, str], client: OpenAI, name: str, beats: int) -> None:
    prepare(server[0], name, beats=beats)
    *_, last = client.responses.create(model="m", input="hi", stream=True)
    assert last.type == "response.completed"
    assert sorted(see(last.response)) == sorted(expect(EXPECTED[name]))
    with client.responses.stream(model="m", input="hi") as stream:
        seen = [event.type for event in stream]
        final = stream.get_final_response()
    assert sorted(see(final)) == sorted(expect(EXPECTED[name])) and final.output_text == "".join(
        text for kind, text in expect(EXPECTED[name]) if kind == "message"
    )
    assert seen[0] == "response.created"


@pytest.mark.parametrize("name", ["length", "filtered", "cut_call"])
def test_answers_that_were_cut(server: tuple[Replay, str], client: OpenAI, name: str) -> None:
    prepare(server[0], name)
    *_, last = client.responses.create(model="m", input="hi", stream=True)
    assert last.type == "response.incomplete" and last.response.incomplete_details is not None
    assert see(last.response) == expect(EXPECTED[name])
    prepare(server[0], name, whole=True)
    response = client.responses.create(model="m", input="hi")
    assert response.status == "incomplete" and see(response) == expect(EXPECTED[name])


def test_a_failure_in_a_stream_is_raised(server: tuple[Replay, str], client: OpenAI) -> None:
    prepare(server[0], "error")
    with pytest.raises(APIError, match="gone"):
        list(client.responses.create(model="m", input="hi", stream=True))
    with pytest.raises(APIError, match="gone"), client.responses.stream(model="m", input="hi") as stream:
        list(stream)


def test_an_error_is_raised(server: tuple[Replay, str], client: OpenAI) -> None:
    replay = server[0]
    error = RequestError("Not so.", "previous_response_id")
    replay.body, replay.status, replay.content_type = wire.encode_error(error), 400, "application/json"
    with pytest.raises(BadRequestError) as caught:
        client.responses.create(model="m", input="hi")
    replay.status = 200
    assert caught.value.param == "previous_response_id"


def test_what_the_package_sends_back_is_read(server: tuple[Replay, str], client: OpenAI) -> None:
    """The output of one turn is the input of the next, as the package writes it."""
    prepare(server[0], "signed", whole=True)
    response = client.responses.create(model="m", input="hi")
    result: Any = {"type": "function_call_output", "call_id": "call_0", "output": "done"}
    history: Any = [{"role": "user", "content": "hi"}, *response.output, result]
    client.responses.create(model="m", input=history)
    body = json.dumps(server[0].asked[-1][2]).encode()
    user, turn, tool = wire.decode_request(body, {}).conversation.messages
    assert [type(part).__name__ for part in turn.parts] == ["Reasoning", "ToolCall"]
    assert turn.parts[0].kind == "gemini" and tool.parts[0].call_id == "call_0"  # type: ignore[union-attr]
    assert user.text == "hi"


@pytest.mark.parametrize("before", [0, 4])
def test_an_interjection_in_a_relayed_stream(server: tuple[Replay, str], client: OpenAI, before: int) -> None:
    """A relayed stream keeps its own ids, which must not change."""
    frames = [
        frame + b"\n\n" for frame in wire.open_encoder(ANSWERER, PLAIN).write(EXPECTED["call"]).split(b"\n\n")[:-1]
    ]
    replay, passed = server[0], b"".join(frames[:before])
    replay.content_type = "text/event-stream"
    replay.body = passed + interject(None, begun=before > 0) + b"".join(frames[before:])
    with client.responses.stream(model="m", input="hi") as stream:
        list(stream)
        assert see(stream.get_final_response()) == expect(EXPECTED["call"])
    replay.body = passed + interject(Failed("upstream_closed", "gone"), begun=before > 0)
    with pytest.raises(APIError, match="gone"), client.responses.stream(model="m", input="hi") as stream:
        list(stream)
