"""The gateway over HTTP, in front of a simulated upstream."""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from support.error_texts import what_failed
from support.gateway import ASK, READ, gateway, run
from support.rows import in_one_test

from toolglot import list_dialects
from toolglot.gateway.context import Source
from toolglot.gateway.telemetry.recorder import OWN_ID
from toolglot.server.app import TokenSource
from toolglot.server.http_request import make_request_id
from toolglot.sim import Answer, ScriptedAnswer, SimOptions

DIALECTS = ("hermes", "qwen3_coder", "roo_xml", "glm45", "fenced_toolcode_json")
FILE = '{"filePath":"package.json"}'


def awaited(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def runs(**arguments: Any) -> None:
        run(lambda: test(**arguments))

    return runs


def script_of(text: str, **options: Any) -> SimOptions:
    return SimOptions(script=(ScriptedAnswer(Answer(text)),), **options)


def known_dialects() -> list[str]:
    return [dialect.name for dialect in list_dialects()]


# calls


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name in known_dialects()])
@pytest.mark.parametrize("chunk", [1, 7])
@awaited
async def test_calls_in_text_arrive_as_calls(dialect: str, chunk: int) -> None:
    async with gateway(SimOptions(dialect=dialect, chunk=chunk)) as gate:
        streamed = await gate.ask(ASK | {"stream": True})
        text, calls, finish = streamed.joined
        assert (calls, finish) == ([("read", FILE)], "tool_calls")
        assert text.strip() and text == text.strip()
        assert streamed.headers["Content-Type"] == "text/event-stream"
        whole = await gate.ask()
        assert whole.finish == "tool_calls"
        assert [call["function"] for call in whole.message["tool_calls"]] == [{"name": "read", "arguments": FILE}]
        assert whole.message["content"] == text
        assert whole.headers["x-toolglot-mode"] == "text" and whole.headers["x-toolglot-dialect"] == dialect


@awaited
async def test_the_upstream_sees_text_only() -> None:
    async with gateway() as gate:
        await gate.ask(ASK | {"tool_choice": "auto", "parallel_tool_calls": False, "top_k": 3})
        body = gate.record.last.body
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(body)
        assert body["top_k"] == 3
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert "## read" in body["messages"][0]["content"]


@awaited
async def test_arguments_flow_while_they_are_written() -> None:
    content = "x" * 400
    call = f"<write>\n<path>a</path>\n<content>\n{content}\n</content>\n</write>"
    write = {"type": "function", "function": {"name": "write", "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}}}  # fmt: skip
    async with gateway(script_of(call, chunk=10, pace=5)) as gate:
        times = []
        body = json.dumps(ASK | {"stream": True, "tools": [write]}).encode()
        async with gate.session.post(gate.address + "/v1/chat/completions", data=body) as response:
            async for piece in response.content.iter_any():
                if b'"arguments"' in piece:
                    times.append(time.monotonic())
        assert len(times) > 10 and times[-1] - times[0] > 0.1


@awaited
async def test_all_calls_are_delivered_even_if_the_prompt_asks_for_one() -> None:
    two = "<read>\n<filePath>a</filePath>\n</read>\n<read>\n<filePath>b</filePath>\n</read>"
    script = SimOptions(script=(ScriptedAnswer(Answer(two)),))
    async with gateway(script) as gate:
        assert len((await gate.ask()).message["tool_calls"]) == 2
        assert "several tools" not in gate.record.last.body["messages"][0]["content"]
        assert len((await gate.ask(ASK | {"parallel_tool_calls": False})).message["tool_calls"]) == 1
        many = await gate.ask(ASK | {"parallel_tool_calls": True})
        assert len(many.message["tool_calls"]) == 2
        assert "several tools" in gate.record.last.body["messages"][0]["content"]


@awaited
async def test_malformed_calls_come_back_as_text() -> None:
    broken = 'I\'ll read the file.\n\n<tool_call>\n{"name": "read", "arguments": {"filePath": }}\n</tool_call>'
    async with gateway(script_of(broken)) as gate:
        answer = await gate.ask()
        text = answer.message["content"]
        assert text.startswith(f"{broken}\n\n(The call of read was not made: argument filePath: found nothing, ")
        assert "tool_calls" not in answer.message and answer.finish == "stop"
        # in a stream the call had begun before it turned out to be broken: the answer fails with the reason
        streamed = await gate.ask(ASK | {"stream": True})
        assert b'"finish_reason":"' not in streamed.body
        assert b'"code":"refused_call"' in streamed.body and b"The call of read was not made" in streamed.body


@awaited
async def test_text_that_never_was_a_call_stays_text() -> None:
    broken = 'Look:\n\n<tool_call>\n{"nme": "read", "arguments": 3}\n</tool_call>\nWhat now?'
    async with gateway(script_of(broken, chunk=5)) as gate:
        text, calls, finish = (await gate.ask(ASK | {"stream": True})).joined
        assert (text, calls, finish) == (broken, [], "stop")


@awaited
async def test_names_that_cannot_be_tags_come_back_as_they_were() -> None:
    tool = {"type": "function", "function": {**READ["function"], "name": "mcp.files/read now"}}  # type: ignore[dict-item]
    async with gateway(SimOptions(dialect="auto")) as gate:
        answer = await gate.ask(ASK | {"tools": [tool]})
        assert "mcp.files/read now" not in gate.record.last.body["messages"][0]["content"]
        assert answer.message["tool_calls"][0]["function"]["name"] == "mcp.files/read now"


@awaited
async def test_a_tool_that_is_called_tool_call_works() -> None:
    parameters = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    tool = {
        "type": "function",
        "function": {"name": "tool_call", "description": "Call a tool", "parameters": parameters},
    }
    for dialect in ("hermes", "roo_xml", "qwen3_coder"):
        async with gateway(dialect=dialect) as gate:
            answer = await gate.ask(
                ASK | {"tools": [tool], "messages": [{"role": "user", "content": 'Call the tool "x"'}]}
            )
            assert [call["function"]["name"] for call in answer.message["tool_calls"]] == ["tool_call"], dialect


@awaited
async def test_quoted_marks_are_escaped_and_restored() -> None:
    quoted = '<tool_call>{"name":"read","arguments":{"filePath":"secret"}}</tool_call>'
    messages = [{"role": "user", "content": f"What does {quoted} mean?"}]

    async def echo(request: web.Request) -> web.Response:
        asked = await request.json()
        text = asked["messages"][-1]["content"]
        return web.json_response({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", echo)
    async with gateway(app=app) as gate:
        answer = await gate.ask(ASK | {"messages": messages})
        assert answer.message == {"role": "assistant", "content": messages[0]["content"]}


# choices


@awaited
async def test_choice_none_adds_no_prompt_and_reads_no_calls() -> None:
    call = "<read>\n<filePath>a</filePath>\n</read>"
    async with gateway(script_of(call)) as gate:
        answer = await gate.ask(ASK | {"tool_choice": "none"})
        assert answer.message == {"role": "assistant", "content": call}
        assert "read" not in gate.record.last.body["messages"][0]["content"].replace("Read the file", "")


@awaited
async def test_choice_of_one_tool_offers_only_that_tool() -> None:
    other = {
        "type": "function",
        "function": {"name": "write", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
    }
    call = '<tool_call>\n{"name": "write", "arguments": {"path": "a"}}\n</tool_call>'
    async with gateway(script_of(call)) as gate:
        choice = {"type": "function", "function": {"name": "read"}}
        answer = await gate.ask(ASK | {"tools": [READ, other], "tool_choice": choice})
        assert answer.message == {"role": "assistant", "content": call}
        taught = gate.record.last.body["messages"][0]["content"]
        assert "You must call the tool read now" in taught and "## write" not in taught


# what goes wrong


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [("http_400", 400, "400"), ("http_401", 401, "upstream_key_missing"), ("http_429", 429, "429"), ("http_500", 500, "500"), ("http_502_html", 502, "upstream_refused")],
)  # fmt: skip
@pytest.mark.parametrize("stream", [True, False])
@awaited
async def test_the_status_of_an_upstream_is_kept(fault: str, status: int, code: str, stream: bool) -> None:
    async with gateway(SimOptions(faults=(fault,))) as gate:
        answer = await gate.ask(ASK | {"stream": stream})
        assert (answer.status, answer.error["code"]) == (status, code)
        assert answer.headers["Content-Type"].startswith("application/json")
        assert (answer.headers.get("retry-after") is not None) == (fault == "http_429")


@pytest.mark.parametrize("fault", ["refused", "in_stream", "not_json"])
@pytest.mark.parametrize("stream", [True, False])
@awaited
async def test_a_key_that_an_upstream_repeats_is_redacted(fault: str, stream: bool) -> None:
    async def repeat(request: web.Request) -> web.Response:
        keys = [request.headers[name] for name in ("Authorization", "x-token")]
        error = json.dumps({"error": {"message": f"Incorrect keys: {keys}"}})
        if fault == "refused":
            return web.Response(status=401, text=error, content_type="application/json")
        if fault == "in_stream":
            return web.Response(text=f"data: {error}\n\n", content_type="text/event-stream")
        return web.Response(text=f"{keys}", content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", repeat)
    async with gateway(app=app, api_key="correct-horse", upstream={"headers": {"x-token": "battery-staple"}}) as gate:
        answer = await gate.ask(ASK | {"stream": stream})
        assert b"***" in answer.body and b"horse" not in answer.body and b"staple" not in answer.body


def answers(reply: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.Application:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", reply)
    return app


TITLE = {"model": "sim", "messages": [{"role": "user", "content": "A title, please"}]}


@pytest.mark.parametrize("body", [ASK, TITLE], ids=["text", "relay"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "page", [(200, "<html>Sign in</html>"), (200, ""), (204, ""), (302, "<html>Moved</html>"), (304, "")]
)
@awaited
async def test_a_page_is_no_answer(page: tuple[int, str], stream: bool, body: Any) -> None:
    async def show(request: web.Request) -> web.Response:
        return web.Response(status=page[0], text=page[1], content_type="text/html", headers={"Location": "/login"})

    async with gateway(app=answers(show)) as gate:
        answer = await gate.ask(body | {"stream": stream})
        assert answer.status == 502 and answer.error["code"] in ("upstream_invalid", "upstream_failed")


CALL = "<read><filePath>package.json</filePath></read>"
CALL_CHUNK = json.dumps({"choices": [{"index": 0, "delta": {"content": CALL}, "finish_reason": "stop"}]})
DONE = "data: [DONE]\n\n"


@pytest.mark.parametrize("body", [ASK, TITLE], ids=["text", "relay"])
@pytest.mark.parametrize("ending", ["hang", "reset"])
@awaited
async def test_what_happens_behind_the_end_of_an_answer_does_not_matter(ending: str, body: Any) -> None:
    async def linger(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(f"data: {CALL_CHUNK}\n\n{DONE}".encode())
        await asyncio.sleep(0.1 if ending == "reset" else 30)
        if request.transport is not None:
            request.transport.abort()
        return response

    async with gateway(app=answers(linger), heartbeat_seconds="0.1") as gate:
        began = time.monotonic()
        answer = await gate.ask(body | {"stream": True})
        assert time.monotonic() - began < 3
        assert answer.body.endswith(DONE.encode()) and b"error" not in answer.body


@awaited
async def test_an_answer_with_a_finish_reason_is_complete() -> None:
    async def break_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(f"data: {CALL_CHUNK}\n\n".encode())
        await asyncio.sleep(0.1)
        assert request.transport is not None
        request.transport.abort()
        return response

    async with gateway(app=answers(break_off)) as gate:
        answer = await gate.ask(ASK | {"stream": True})
        assert answer.joined == ("", [("read", FILE)], "tool_calls") and answer.body.endswith(DONE.encode())


@awaited
async def test_an_upstream_that_is_not_there() -> None:
    async with gateway(upstream={"base_url": "http://127.0.0.1:9/v1"}) as gate:
        answer = await gate.ask(ASK | {"stream": True})
        assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")


@pytest.mark.parametrize("fault", ["cut_mid_call", "error_after_first", "bad_frame"])
@pytest.mark.parametrize("dialect", ["hermes", "roo_xml", "native"])
@awaited
async def test_an_answer_that_breaks_off_is_an_error_and_never_a_complete_call(fault: str, dialect: str) -> None:
    mode = "native" if dialect == "native" else "text"
    async with gateway(SimOptions(dialect=dialect, faults=(fault,), chunk=3), mode=mode) as gate:
        answer = await gate.ask(ASK | {"stream": True})
        assert "error" in answer.chunks[-1]
        _, calls, finish = answer.joined
        assert finish is None
        for _, arguments in calls:
            with pytest.raises(ValueError):
                json.loads(arguments)
        whole = await gate.ask()
        assert whole.status in {"bad_frame": (200, 502), "error_after_first": (500,)}.get(fault, (502,))


@awaited
async def test_a_call_cut_by_the_limit_never_looks_complete() -> None:
    async with gateway(SimOptions(dialect="hermes", faults=("length",), chunk=3)) as gate:
        _, calls, finish = (await gate.ask(ASK | {"stream": True})).joined
        assert finish == "length"
        for _, arguments in calls:
            with pytest.raises(ValueError):
                json.loads(arguments)
        whole = await gate.ask()
        assert "tool_calls" not in whole.message and whole.message["content"] and whole.finish == "length"


@pytest.mark.parametrize(
    "fault", ["no_finish", "no_done", "no_usage", "crlf", "role_every_chunk", "json_instead_of_sse", "double_wrapper"]
)
@awaited
async def test_harmless_faults_do_no_harm(fault: str) -> None:
    async with gateway(SimOptions(dialect="hermes", faults=(fault,), chunk_bytes=1)) as gate:
        answer = await gate.ask(ASK | {"stream": True, "stream_options": {"include_usage": True}})
        _, calls, finish = answer.joined
        if fault != "no_finish":
            assert (calls, finish) == ([("read", FILE)], "tool_calls")
        assert answer.body.count(b'"role"') <= 1


@awaited
async def test_an_empty_answer_is_an_error() -> None:
    async with gateway(SimOptions(faults=("empty_answer",))) as gate:
        assert (await gate.ask()).status == 502
        streamed = await gate.ask(ASK | {"stream": True})
        assert streamed.chunks[-1]["error"]["code"] == "empty_answer"


@pytest.mark.parametrize(
    ("body", "param"),
    [(b"{", None), (b"[1]", None), (json.dumps(ASK | {"n": 2}).encode(), "n"), (json.dumps(ASK | {"messages": []}).encode(), "messages")],
)  # fmt: skip
@awaited
async def test_bad_requests_are_refused_in_the_wire(body: bytes, param: str | None) -> None:
    async with gateway() as gate:
        answer = await gate.ask(body)
        assert answer.status == 400 and gate.record.total == 0
        assert answer.error["type"] == "invalid_request_error" and answer.error["param"] == param


@awaited
async def test_a_request_that_is_nested_too_deeply_is_refused() -> None:
    parts = [{"type": "odd", "odd": "HERE"}]
    bodies = (ASK | {"odd": "HERE"}, ASK | {"messages": [{"role": "user", "content": parts}]})
    async with gateway() as gate:
        for depth in (950, 970, 990, 100_000):
            deep = b"[" * depth + b"]" * depth
            for body in bodies:
                answer = await gate.ask(json.dumps(body).encode().replace(b'"HERE"', deep))
                assert answer.status in (200, 400), answer.body
        assert (answer.status, answer.error["code"]) == (400, "invalid_request")


# tool results


def with_results(*results: dict[str, Any], calls: tuple[str, ...] = ("c1",)) -> dict[str, Any]:
    made = [{"id": name, "type": "function", "function": {"name": "read", "arguments": FILE}} for name in calls]
    turns = [*ASK["messages"], {"role": "assistant", "content": None, "tool_calls": made}, *results]
    return ASK | {"messages": turns}


@awaited
async def test_a_result_without_content_is_refused() -> None:
    async with gateway() as gate:
        answer = await gate.ask(with_results({"role": "tool", "tool_call_id": "c1"}))
        refused = (400, "invalid_tool_results", "messages[2].content")
        assert (answer.status, answer.error["code"], answer.error["param"]) == refused
        assert "messages[2]" in answer.error["message"]


@pytest.mark.parametrize(
    "body",
    [
        with_results({"role": "tool", "tool_call_id": "c9", "content": "strange words"}),
        with_results({"role": "tool", "tool_call_id": "c1", "content": "x"}, {"role": "tool", "tool_call_id": "c1", "content": "strange words"}),
        with_results({"role": "tool", "tool_call_id": "c1", "content": "x"}, {"role": "tool", "content": "strange words"}),
        ASK | {"messages": [{"role": "tool", "tool_call_id": "c1", "content": "strange words"}]},
    ],
)  # fmt: skip
@awaited
async def test_results_that_fit_no_call_reach_the_model(body: Any) -> None:
    async with gateway() as gate:
        answer = await gate.ask(body)
        assert answer.status == 200
        assert "strange words" in json.dumps(gate.record.requests[-1].body["messages"])


@awaited
async def test_results_without_ids_are_tied_to_their_calls() -> None:
    async with gateway() as gate:
        answer = await gate.ask(
            with_results({"role": "tool", "content": "one"}, {"role": "tool", "content": None}, calls=("c1", ""))
        )
        assert answer.status == 200
        received = gate.record.last.body["messages"][-1]["content"]
        assert received == "Tool Result from read:\none\n\nTool Result from read:\n(no output)"


@awaited
async def test_history_with_invalid_json_and_unknown_tools_passes() -> None:
    made = [{"id": "c1", "type": "function", "function": {"name": "invalid", "arguments": '{"tool": "x'}}]
    turns = [*ASK["messages"], {"role": "assistant", "content": "", "tool_calls": made}, {"role": "tool", "tool_call_id": "c1", "content": "bad"}]  # fmt: skip
    async with gateway() as gate:
        assert (await gate.ask(ASK | {"messages": turns})).status == 200
        received = gate.record.last.body["messages"]
        assert '{"tool": "x' in received[2]["content"].replace("\\", "") and received[3]["content"].endswith(
            "invalid:\nbad"
        )


# requests without tools, switches


@awaited
async def test_requests_without_tools_pass_untouched() -> None:
    body = {"model": "sim", "messages": [{"role": "user", "content": "A title, please"}], "stream": True, "odd": [1]}
    async with gateway() as gate:
        answer = await gate.ask(body)
        assert answer.headers["x-toolglot-mode"] == "relay"
        assert gate.record.last.body == body
        assert b"toolglot-sim" in answer.body


@awaited
async def test_switched_off_tools_are_stripped() -> None:
    async with gateway(tool_calling_enabled="false") as gate:
        answer = await gate.ask()
        assert "tools" not in gate.record.last.body and "tool_calls" not in answer.message
        assert gate.record.last.body["messages"] == ASK["messages"]


@awaited
async def test_native_mode_hands_tools_on_and_reads_what_leaks() -> None:
    async with gateway(SimOptions(dialect="native"), mode="native") as gate:
        assert (await gate.ask()).message["tool_calls"][0]["function"] == {
            "name": "read",
            "arguments": FILE.replace(":", ": "),
        }
        assert gate.record.last.body["tools"] == [READ]
        _, calls, finish = (await gate.ask(ASK | {"stream": True})).joined
        assert (calls, finish) == ([("read", FILE.replace(":", ": "))], "tool_calls")
    async with gateway(SimOptions(dialect="hermes"), mode="native") as gate:
        _, calls, finish = (await gate.ask(ASK | {"stream": True})).joined
        assert (calls, finish) == ([("read", FILE)], "tool_calls")


@pytest.mark.parametrize("finish", ["length", "content_filter"])
@pytest.mark.parametrize(("arguments", "whole"), [(FILE, True), (FILE[:-2], False)])
@awaited
async def test_a_native_call_is_delivered_if_it_is_whole(arguments: str, whole: bool, finish: str) -> None:
    made = {"index": 0, "id": "c", "function": {"name": "read", "arguments": arguments}}

    async def cut(request: web.Request) -> web.Response:
        text = {"tool_calls": [made]}
        return web.json_response({"choices": [{"message": text, "finish_reason": finish}]})

    async with gateway(app=answers(cut), mode="native") as gate:
        answer = await gate.ask()
        assert ("tool_calls" in answer.message, answer.finish) == (whole, "tool_calls" if whole else finish)
        assert (await gate.ask(ASK | {"stream": True})).joined[2] == ("tool_calls" if whole else finish)


@awaited
async def test_a_request_may_choose_its_mode() -> None:
    async with gateway() as gate:
        await gate.ask(x_toolglot_mode="native")
        assert gate.record.last.body["tools"] == [READ]
        assert (await gate.ask(x_toolglot_mode="magic")).status == 400


@awaited
async def test_supported_tools_are_read_without_being_offered() -> None:
    call = "<read>\n<filePath>a</filePath>\n</read>"
    body = {"model": "sim", "messages": [{"role": "user", "content": "read a"}]}
    async with gateway(SimOptions(script=(ScriptedAnswer(Answer(call)),)), tool_calling_supported_tools="read") as gate:
        assert (await gate.ask(body)).message["tool_calls"][0]["function"]["name"] == "read"
        assert gate.record.last.body["messages"] == body["messages"]
    async with gateway(SimOptions(script=(ScriptedAnswer(Answer(call)),)), tool_calling_supported_tools="read", tool_calling_auto_detect="false") as gate:  # fmt: skip
        assert (await gate.ask(body)).message["content"] == call


@awaited
async def test_more_tools_than_allowed_are_refused() -> None:
    tools = [{"type": "function", "function": {"name": f"t{number}"}} for number in range(4)]
    async with gateway(tool_calling_max_tools="3") as gate:
        answer = await gate.ask(ASK | {"tools": tools})
        assert (answer.status, answer.error["param"]) == (400, "tools") and "at most 3" in answer.error["message"]


# the edge


@awaited
async def test_keys() -> None:
    async with gateway(client_keys="sk-right") as gate:
        for headers in ({}, {"Authorization": "Bearer sk-wrong"}, {"x_api_key": "no"}, {"Authorization": "sk-right"}):
            answer = await gate.ask(**headers)
            assert (answer.status, answer.error["code"]) == (401, "invalid_api_key")
            assert b"sk-" not in answer.body
        assert (await gate.ask(Authorization="Bearer sk-right")).status == 200
        assert (await gate.ask(x_api_key="sk-right")).status == 200
        assert (await gate.ask(x_goog_api_key="sk-right")).status == 200
        assert (await gate.ask(path="/v1/chat/completions?key=sk-right")).status == 200
        assert (await gate.ask(path="/v1/chat/completions?key=sk-wrong")).status == 401
        assert "Authorization" not in gate.record.last.headers
        assert (await gate.get("/health")).status == 200
        assert (await gate.get("/metrics")).status == 401


@awaited
async def test_the_upstreams_key_is_sent_and_the_clients_is_not() -> None:
    async with gateway(api_key="sk-up") as gate:
        await gate.ask(Authorization="Bearer sk-client")
        assert gate.record.last.headers["Authorization"] == "Bearer sk-up"
    async with gateway() as gate:
        await gate.ask(Authorization="Bearer sk-client")
        assert gate.record.last.headers["Authorization"] == "Bearer sk-client"


@awaited
async def test_a_body_that_is_too_large() -> None:
    async with gateway(limit_body_bytes="1000") as gate:
        answer = await gate.ask(ASK | {"messages": [{"role": "user", "content": "x" * 2000}]})
        assert (answer.status, answer.error["code"]) == (413, "request_too_large")


@awaited
async def test_paths_and_probes() -> None:
    async with gateway() as gate:
        for path in ("/", "/health", "/health/liveliness", "/health/readiness"):
            assert (await gate.get(path)).status == 200
            assert (await gate.get(path, "HEAD")).status == 200
        assert (await gate.ask(path="/chat/completions")).status == 200
        for prefix in ("", "/v1"):
            assert [model["id"] for model in (await gate.get(prefix + "/models")).json["data"]] == ["sim"]
            assert (await gate.get(prefix + "/models/sim")).json["id"] == "sim"
        for path in ("/api/hello", "/v1", "/v1/models"):
            assert (await gate.get(path, "HEAD")).status == 200
        missing = await gate.get("/v1/nothing")
        assert (missing.status, missing.error["code"]) == (404, "unknown_path")
        long = await gate.get("/" + "x" * 5000)
        assert long.status == 404 and len(long.error["message"]) < 400
        assert b"toolglot_requests_total" in (await gate.get("/metrics")).body


@awaited
async def test_ids_go_in_and_out() -> None:
    async with gateway() as gate:
        assert (await gate.ask(x_request_id="mine")).headers["x-request-id"] == "mine"
        assert gate.record.last.headers["x-request-id"] == "mine"
        first, second = (await gate.ask()), (await gate.ask())
        assert first.headers["x-request-id"] != second.headers["x-request-id"]
        assert OWN_ID.fullmatch(first.headers["x-request-id"])
        assert first.json["id"] != second.json["id"]
        assert first.message["tool_calls"][0]["id"] != second.message["tool_calls"][0]["id"]


def test_no_id_is_made_twice() -> None:
    tokens = TokenSource()
    made = [tokens.take() for _ in range(2000)]
    assert len({*made, TokenSource().take()}) == 2001
    assert all(OWN_ID.fullmatch(f"req_{token}") for token in made)


def test_request_ids_sort_by_time() -> None:
    times = iter((1.0, 1.5, 2e9, 2e9 + 1))
    source = Source(lambda: next(times), TokenSource().take)
    made = [make_request_id(source) for _ in range(4)]
    assert made == sorted(made)
    assert all(map(OWN_ID.fullmatch, made))


@awaited
async def test_an_unknown_model_is_an_error(tmp_path: Any = None) -> None:
    async with gateway() as gate:
        assert (await gate.ask(ASK | {"model": "sim:nonsense"})).status == 400


# time


@awaited
async def test_silence_is_filled_with_heartbeats() -> None:
    async with gateway(SimOptions(latency=600), heartbeat_seconds="0.1") as gate:
        body = json.dumps(ASK | {"stream": True}).encode()
        async with gate.session.post(gate.address + "/v1/chat/completions", data=body) as response:
            assert response.status == 200 and gate.record.last.ended is None
            answer = await response.read()
        assert answer.count(b'"delta":{},"finish_reason":null') >= 3
        assert b'"finish_reason":"tool_calls"' in answer and answer.count(b'"role"') == 1


@awaited
async def test_an_error_after_a_heartbeat_travels_in_the_stream() -> None:
    async with gateway(SimOptions(latency=300, faults=("http_500",)), heartbeat_seconds="0.1") as gate:
        answer = await gate.ask(ASK | {"stream": True})
        assert (
            answer.status == 200
            and what_failed(answer.chunks[-1]["error"]["message"]) == "The simulated model has failed."
        )


@awaited
async def test_heartbeats_fill_silence_in_the_middle_too() -> None:
    async with gateway(SimOptions(dialect="hermes", chunk=30, pace=250), heartbeat_seconds="0.1") as gate:
        answer = await gate.ask(ASK | {"stream": True})
        assert answer.joined[1:] == ([("read", FILE)], "tool_calls")
        assert answer.body.count(b'"delta":{},"finish_reason":null') >= 2


@awaited
async def test_a_silent_upstream_times_out() -> None:
    async with gateway(SimOptions(faults=("hang_mid",)), upstream={"read_timeout": 0.3}) as gate:
        answer = await gate.ask(ASK | {"stream": True})
        assert answer.chunks[-1]["error"]["code"] == "upstream_timeout"
    async with gateway(SimOptions(faults=("hang_before_headers",)), upstream={"read_timeout": 0.3}) as gate:
        assert (await gate.ask()).status == 504


@pytest.mark.parametrize("fault", ["hang_mid", "hang_before_headers"])
@awaited
async def test_a_client_that_leaves_ends_the_request_upstream(fault: str) -> None:
    async with gateway(SimOptions(faults=(fault,))) as gate:
        asking = asyncio.create_task(gate.ask(ASK | {"stream": True}))
        while not gate.record.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        asking.cancel()
        left = time.monotonic()
        while gate.record.last.ended is None and time.monotonic() - left < 5:
            await asyncio.sleep(0.01)
        assert gate.record.last.outcome == "abandoned"
        assert time.monotonic() - left < 1
        metrics = (await gate.get("/metrics")).body.decode()
        assert 'status="499"' in metrics and "toolglot_clients_gone_total 1.0" in metrics


@awaited
async def test_a_slow_client_holds_the_upstream_up() -> None:
    text = "lorem ipsum dolor " * 2_200_000
    async with gateway(script_of(text, chunk=8000)) as gate:
        body = json.dumps(ASK | {"stream": True}).encode()
        async with gate.session.post(gate.address + "/v1/chat/completions", data=body) as response:
            await response.content.readany()
            await asyncio.sleep(1)
            held = gate.record.last.sent
            await asyncio.sleep(0.3)
            assert gate.record.last.sent == held < len(text) * 0.8
            response.close()


@awaited
async def test_parts_that_are_not_modelled_reach_the_upstream() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    parts = [{"type": "text", "text": "read this"}, audio]
    async with gateway() as gate:
        assert (await gate.ask(ASK | {"messages": [{"role": "user", "content": parts}]})).status == 200
        assert gate.record.last.body["messages"][-1]["content"] == parts


@pytest.mark.parametrize("stream", [True, False])
@awaited
async def test_a_call_that_is_made_natively_and_written_as_text_is_delivered_once(stream: bool) -> None:
    written = f'I read.\n<tool_call>{{"name": "read", "arguments": {FILE}}}</tool_call>'
    calls = [
        {"index": at, "id": f"c{at}", "type": "function", "function": {"name": "read", "arguments": json.dumps({"filePath": path})}}
        for at, path in enumerate(("package.json", "other.json"))
    ]  # fmt: skip

    async def both(request: web.Request) -> web.Response:
        answer_text = {"role": "assistant", "content": written, "tool_calls": calls}
        if not stream:
            return web.json_response({"choices": [{"message": answer_text, "finish_reason": "tool_calls"}]})
        chunks = [
            {"choices": [{"delta": answer_text, "finish_reason": None}]},
            {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
        ]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        return web.Response(text=body, content_type="text/event-stream")

    async with gateway(app=answers(both), mode="native") as gate:
        answer = await gate.ask(ASK | {"stream": stream})
        made = answer.joined[1] if stream else [(c["function"]["name"], c["function"]["arguments"]) for c in answer.message["tool_calls"]]  # fmt: skip
        assert [json.loads(arguments)["filePath"] for _, arguments in made] == ["package.json", "other.json"]


@in_one_test("keyed", [False, True])
@in_one_test(
    ("headers", "served"),
    [
        ({}, True),
        ({"Host": "localhost:4100"}, True),
        ({"Host": "[::1]:4100", "Origin": "http://127.0.0.1:9"}, True),
        ({"Host": "127.1.2.3", "Origin": "https://localhost"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-site"}, True),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost:9"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-origin", "Host": "evil.example:4100"}, False),
        ({"Host": "evil.example:4100"}, False),
        ({"Host": "192.168.0.7"}, False),
        ({"Host": "[::"}, False),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://127.0.0.1.evil.example"}, False),
        ({"Origin": "http://evil.example@localhost.evil.example"}, False),
    ],
)
def test_without_keys_no_web_page_is_served(headers: dict[str, str], served: bool, keyed: bool) -> None:
    """A page of another site can send requests to this machine, and a name of its own can lead here."""

    async def check() -> None:
        settings: dict[str, Any] = {"client_keys": "sk-right"} if keyed else {}
        async with gateway(**settings) as gate:
            shown = headers | ({"Authorization": "Bearer sk-right"} if keyed else {})
            status = 200 if served or keyed else 403
            answer = await gate.ask(**shown)
            assert answer.status == status
            assert served or keyed or answer.error["code"] == "forbidden_origin"
            for path in ("/v1/models", "/metrics", "/health"):
                assert (await gate.get(path, **shown)).status == status

    run(check)


@pytest.mark.parametrize("path", ["/v1/v1/chat/completions", "/v1/v1/v1/chat/completions", "/v1/chat/completions"])
def test_a_doubled_version_is_understood(path: str) -> None:
    async def check() -> None:
        async with gateway() as gate:
            assert (await gate.ask(path=path)).status == 200

    run(check)


def test_an_upstream_that_is_down_is_named() -> None:
    async def check() -> None:
        async with gateway(upstream={"base_url": "http://127.0.0.1:9/v1"}) as gate:
            answer = await gate.ask()
            assert answer.status == 502
            for word in ("Upstream '", "http://127.0.0.1:9", "base_url", "running"):
                assert word in answer.error["message"]

    run(check)


def test_a_key_that_the_upstream_refuses_is_not_the_clients() -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, status=401)

    async def check() -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", refuse)
        async with gateway(app=app) as gate:
            answer = await gate.ask()
            assert answer.status == 401
            assert "Upstream '" in answer.error["message"] and "Incorrect API key" in answer.error["message"]

    run(check)
