"""Recovery through a running gateway: streams, clients that leave, headers, records, other models and a web chat."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.chat_lab import Client, Lab
from support.gateway import ASK, READ, gateway, run
from support.rows import in_one_test
from support.xmlprompts import write_roo

from toolglot.sim.answer import Answer

CALL = '<tool_call>\n{"name": "read", "arguments": {"filePath": "a.txt"}}\n</tool_call>'
NO_ARGUMENT = '<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>'
UNKNOWN = '<tool_call>\n{"name": "rade", "arguments": {"filePath": "a.txt"}}\n</tool_call>'
READ_CALL = [("read", '{"filePath":"a.txt"}')]
Reply = str | Callable[[web.Request], Any]


@dataclass
class Upstream:
    """Answers each request with the next reply: a text, or whatever a function makes of the request."""

    replies: list[Reply]
    requests: list[dict[str, Any]] = field(default_factory=list)

    @property
    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/v1/chat/completions", self.answer)
        return app

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        reply = self.replies.pop(0)
        if callable(reply):
            response: web.StreamResponse = await reply(request)
            return response
        return await self.send(request, body, reply)

    async def send(self, request: web.Request, body: dict[str, Any], reply: str) -> web.StreamResponse:
        if not body.get("stream"):
            return web.json_response(completion(reply))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in (reply[:9], reply[9:]):
            await response.write(frame({"content": piece}))
        await response.write(frame({}, "stop") + b"data: [DONE]\n\n")
        return response


def completion(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def frame(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


def ask(stream: bool) -> dict[str, Any]:
    return {**ASK, "stream": stream}


def settings(**more: Any) -> dict[str, Any]:
    return {"mode": "text", "dialect": "hermes", "recovery_retries": 1, **more}


def test_a_whole_answer_names_its_attempts_and_the_record_has_them(tmp_path: Path) -> None:
    async def test() -> None:
        upstream = Upstream([f"I read.\n{NO_ARGUMENT}", CALL])
        async with gateway(app=upstream.app, **settings(state_dir=str(tmp_path))) as gate:
            answer = await gate.ask(ask(stream=False))
            assert answer.headers["x-toolglot-attempts"] == "2"
            assert answer.message["content"].strip() == "I read."
            assert [call["function"]["name"] for call in answer.message["tool_calls"]] == ["read"]
            assert answer.json["usage"]["total_tokens"] == 20
            (record,) = (await gate.get("/v1/records")).json["data"]
            assert [one["error"] for one in record["attempts"]] == ["rejected_call", ""]
            assert record["outcomes"]["recovery"] == {"success": 1}
        assert len(upstream.requests) == 2
        roles = [message["role"] for message in upstream.requests[1]["messages"][-2:]]
        assert roles == ["assistant", "user"]
        assert "filePath" in upstream.requests[1]["messages"][-1]["content"]

    run(test)


def test_a_good_answer_has_one_attempt() -> None:
    async def test() -> None:
        async with gateway(app=Upstream([CALL]).app, **settings()) as gate:
            answer = await gate.ask(ask(stream=False))
            assert answer.headers["x-toolglot-attempts"] == "1"

    run(test)


def test_a_stream_goes_on_with_the_corrected_call() -> None:
    async def test() -> None:
        upstream = Upstream([f"I read.\n{UNKNOWN}", CALL])
        async with gateway(app=upstream.app, **settings()) as gate:
            answer = await gate.ask(ask(stream=True))
            assert answer.joined == ("I read.", READ_CALL, "tool_calls")
            assert answer.body.count(b"[DONE]") == 1
            assert len({chunk["id"] for chunk in answer.chunks}) == 1

    run(test)


@pytest.mark.parametrize("stream", [True, False])
def test_the_first_answer_stands_if_the_second_request_fails(stream: bool) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "overloaded"}}, status=503)

    async def test() -> None:
        upstream = Upstream([f"I read.\n{UNKNOWN}", refuse])
        async with gateway(app=upstream.app, **settings()) as gate:
            answer = await gate.ask(ask(stream))
            assert answer.status == 200
            if stream:
                assert answer.joined == ("I read.", [("rade", '{"filePath":"a.txt"}')], "tool_calls")
            else:
                assert answer.message["tool_calls"][0]["function"]["name"] == "rade"

    run(test)


def test_a_client_that_leaves_ends_the_retry() -> None:
    async def test() -> None:
        asked, gone = asyncio.Event(), asyncio.Event()

        async def wait(request: web.Request) -> web.Response:
            asked.set()
            try:
                await asyncio.sleep(30)
            finally:
                gone.set()
            return web.Response()

        upstream = Upstream([f"I read.\n{UNKNOWN}", wait])
        async with gateway(app=upstream.app, **settings()) as gate:
            data = json.dumps(ask(stream=True)).encode()
            response = await gate.session.post(gate.address + "/v1/chat/completions", data=data)
            await asyncio.wait_for(asked.wait(), 10)
            response.close()
            await asyncio.wait_for(gone.wait(), 10)

    run(test)


def test_heartbeats_are_sent_while_the_model_is_asked_again() -> None:
    async def test() -> None:
        async def slow(request: web.Request) -> web.StreamResponse:
            await asyncio.sleep(0.5)
            return await upstream.send(request, await request.json(), CALL)

        upstream = Upstream([UNKNOWN, slow])
        async with gateway(app=upstream.app, **settings(heartbeat_seconds=0.1)) as gate:
            answer = await gate.ask(ask(stream=True))
            assert answer.joined == ("", READ_CALL, "tool_calls")
            assert answer.body.count(b"\n\n") >= 7

    run(test)


@pytest.mark.parametrize("stream", [True, False])
def test_the_fallback_model_is_asked_last(stream: bool) -> None:
    async def test() -> None:
        upstream = Upstream([UNKNOWN, UNKNOWN, CALL])
        given = settings(recovery_retries=2, recovery_fallback_model="large-model")
        async with gateway(app=upstream.app, **given) as gate:
            answer = await gate.ask(ask(stream))
            calls = answer.joined[1] if stream else answer.message["tool_calls"]
            assert len(calls) == 1
        assert [request["model"] for request in upstream.requests] == ["sim", "sim", "large-model"]

    run(test)


@in_one_test("stream", [True, False])
@in_one_test(
    ("message", "asked"),
    [
        (f"Failed to parse input at pos 3: {CALL}", 1),
        ("Failed to parse input at pos 3: <tool_call>\n{", 2),
        ('error parsing tool call: raw=\'{"filePath": "a.txt"]\', err=invalid character', 2),
        ("The model produced output that does not match the expected peg-native format", 2),
    ],
)
def test_a_server_that_cannot_parse_its_model(stream: bool, message: str, asked: int) -> None:
    async def refuse(request: web.Request) -> web.Response:
        error = {"code": 500, "message": message, "type": "server_error"}
        return web.json_response({"error": error}, status=500)

    async def test() -> None:
        upstream = Upstream([refuse, CALL])
        async with gateway(app=upstream.app, **settings(mode="native")) as gate:
            answer = await gate.ask(ask(stream))
            calls = answer.joined[1] if stream else answer.message["tool_calls"]
            assert len(calls) == 1
        assert len(upstream.requests) == asked
        assert ["tools" in request for request in upstream.requests] == [True, False][:asked]

    run(test)


def test_another_error_stays_an_error() -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "no such model"}}, status=404)

    async def test() -> None:
        upstream = Upstream([refuse])
        async with gateway(app=upstream.app, **settings(mode="native")) as gate:
            answer = await gate.ask(ask(stream=False))
            assert answer.status == 404
            assert "no such model" in answer.error["message"]

    run(test)


@pytest.mark.parametrize("stream", [True, False])
def test_a_web_chat_is_asked_again(stream: bool, tmp_path: Path) -> None:
    async def test() -> None:
        lab = Lab(tmp_path, stream=stream)
        lab.answers = [Answer("I read.\n<read>\n</read>"), Answer("<read>\n<filePath>a.txt</filePath>\n</read>")]
        lab.answers.append(Answer("Done."))
        async with lab.open():
            client = Client(lab, tools=[READ])
            client.say("Read the file")
            (call,) = await client.ask(scored=False)
            assert json.loads(call["function"]["arguments"]) == {"filePath": "a.txt"}
            assert client.messages[-1]["content"].strip() == "I read."
            assert len(lab.simulation.seen) == 2
            assert "filePath" in lab.simulation.seen[1].messages[-1].text
            client.add_result(call)
            await client.ask()
            assert client.messages[-1]["content"] == "Done."

    run(test)


def test_many_clients_at_once_get_their_own_answers() -> None:
    async def test() -> None:
        async def reply(request: web.Request) -> web.StreamResponse:
            body = await request.json()
            texts = json.dumps(body["messages"])
            number = next(word for word in texts.replace('"', " ").split() if word.startswith("N-"))
            again = body["messages"][-2]["role"] == "assistant"
            return await upstream.send(request, body, (CALL if again else UNKNOWN).replace("a.txt", number))

        upstream = Upstream([reply] * 80)
        async with gateway(app=upstream.app, **settings()) as gate:

            async def one(number: int) -> None:
                body = {**ask(stream=number % 2 == 0), "messages": [{"role": "user", "content": f"Read N-{number}"}]}
                answer = await gate.ask(body)
                if number % 2 == 0:
                    assert answer.joined[1] == [("read", f'{{"filePath":"N-{number}"}}')]
                else:
                    call = answer.message["tool_calls"][0]["function"]
                    assert json.loads(call["arguments"]) == {"filePath": f"N-{number}"}

            await asyncio.gather(*map(one, range(40)))

    run(test)


# -- XML clients -------------------------------------------------------------------------------------------------------

WRITE_XML = (
    "<write_to_file>\n<path>a.py</path>\n<content>\nx = 2\n</content>\n<line_count>1</line_count>\n</write_to_file>"
)
NO_CONTENT = "<write_to_file>\n<path>a.py</path>\n</write_to_file>"
UNKNOWN_XML = "<write_the_file>\n<path>a.py</path>\n<content>x</content>\n</write_the_file>"


async def break_off(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(frame({"content": "Sorry.\n<write_to"}))
    assert request.transport is not None
    request.transport.abort()
    return response


@pytest.mark.parametrize(
    ("replies", "text"),
    [
        ([WRITE_XML], WRITE_XML),
        ([f"I write.\n{NO_CONTENT}", f"Sorry.\n{WRITE_XML}"], f"I write.\n\n{WRITE_XML}"),
        ([f"I write.\n{UNKNOWN_XML}", WRITE_XML], f"I write.\n{WRITE_XML}"),
        (["", WRITE_XML], WRITE_XML),
        ([f"I write.\n{NO_CONTENT}", break_off], f"I write.\n{NO_CONTENT}"),
        ([f"I write.\n{NO_CONTENT}", f"So:\n{NO_CONTENT}"], f"I write.\n{NO_CONTENT}"),
    ],
    ids=["good", "missing", "unknown", "empty", "broken off", "missing again"],
)
def test_an_xml_client_gets_the_corrected_call_or_the_first_answer(replies: list[Reply], text: str) -> None:
    async def test() -> None:
        upstream = Upstream([*replies])
        messages = [{"role": "system", "content": write_roo()}, {"role": "user", "content": "<task>\nFix it\n</task>"}]
        async with gateway(app=upstream.app, mode="text", recovery_retries=1) as gate:
            answer = await gate.ask({"model": "m", "messages": messages, "stream": True})
            assert answer.joined == (text, [], "stop")
        assert not upstream.replies
        if replies[0] == f"I write.\n{NO_CONTENT}":  # the example has what was missing
            assert "<content>" in upstream.requests[1]["messages"][-1]["content"]

    run(test)
