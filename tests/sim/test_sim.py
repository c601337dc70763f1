"""The simulated model on the wire: what it sends, how it cuts it, and that every fault really happens."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from support.rows import in_one_test

import toolglot
from toolglot.sim import (
    FAULTS,
    REQUEST_LOG,
    Answer,
    RequestLog,
    ScriptedAnswer,
    SimOptions,
    Simulation,
    make_app,
    running,
)
from toolglot.sim.damage import CALL_FAULTS, JSON_FAULTS, MARK_FAULTS

TEXT = {"type": "string"}
WRITE = {
    "type": "function",
    "function": {
        "name": "write",
        "description": "Write content to a file",
        "parameters": {
            "type": "object",
            "properties": {"path": TEXT, "content": TEXT, "mode": {"type": "integer"}},
            "required": ["path", "content"],
        },
    },
}
ARGUMENTS = {"path": "a.txt", "content": 'Größe "eins" 🙂\nline two', "mode": 7}
QUESTION = f"call write with {json.dumps(ARGUMENTS, ensure_ascii=False)}"
PATIENCE, IMPATIENCE = 20, 0.6
"""Seconds after which a test gives up on an answer, and on one that is known to hang."""


@dataclass(slots=True)
class Reply:
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    data: bytes = b""
    reads: int = 0
    broken: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def events(self) -> list[str]:
        found = re.findall(r"(?m)^data: ?(.*?)\r?$", self.data.decode())
        return [event for event in found if event != "[DONE]"]

    @property
    def chunks(self) -> list[Any]:
        return [json.loads(event) for event in self.events]

    @property
    def deltas(self) -> list[Any]:
        return [choice["delta"] for chunk in self.chunks for choice in chunk["choices"]]

    @property
    def calls(self) -> list[Any]:
        return [call for delta in self.deltas for call in delta.get("tool_calls") or ()]

    @property
    def text(self) -> str:
        return "".join(delta.get("content") or "" for delta in self.deltas)

    @property
    def finish(self) -> list[str]:
        reasons = [choice["finish_reason"] for chunk in self.chunks for choice in chunk["choices"]]
        return [reason for reason in reasons if reason]


def make_body(question: str = QUESTION, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": question}]
    told = {"model": "sim", "messages": messages, "tools": [WRITE], "stream": True}
    return told | {"stream_options": {"include_usage": True}} | more


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Dialects are compiled when they are first needed; that must not eat up a test's patience."""
    Simulation(SimOptions(dialect="hermes")).plan(make_body(), 10, {})


async def post(address: str, body: Any, headers: Mapping[str, str] | None = None, patience: float = PATIENCE) -> Reply:
    reply = Reply()
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(sock_read=patience)) as http:
        try:
            async with http.post(f"{address}/v1/chat/completions", json=body, headers=headers) as response:
                reply.status, reply.headers = response.status, response.headers
                async for piece in response.content.iter_any():
                    reply.data += piece
                    reply.reads += 1
        except (aiohttp.ClientError, TimeoutError) as error:
            reply.broken = type(error).__name__
    return reply


def ask(options: SimOptions | None = None, headers: Mapping[str, str] | None = None, **body: Any) -> Reply:
    async def run() -> Reply:
        async with running(make_app(options)) as address:
            hangs = options is not None and any(fault.startswith("hang") for fault in options.faults)
            return await post(address, make_body(**body), headers, IMPATIENCE if hangs else PATIENCE)

    return asyncio.run(run())


# The plain wire


def test_a_native_call_is_streamed_as_clients_expect_it() -> None:
    reply = ask()
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["x-toolglot-sim"] == "1"
    assert {chunk["system_fingerprint"] for chunk in reply.chunks} == {"toolglot-sim"}
    assert {chunk["model"] for chunk in reply.chunks} == {"sim"}
    assert [delta["role"] for delta in reply.deltas if "role" in delta] == ["assistant"]
    first, *rest = reply.calls
    assert first["function"]["name"] == "write" and first["type"] == "function" and first["id"]
    assert not any("id" in call or "name" in call["function"] for call in rest)
    assert json.loads("".join(call["function"]["arguments"] for call in reply.calls)) == ARGUMENTS
    assert reply.finish == ["tool_calls"]
    assert reply.chunks[-1]["choices"] == [] and reply.chunks[-1]["usage"]["total_tokens"] > 0
    assert reply.data.endswith(b"data: [DONE]\n\n")


def test_usage_is_told_only_when_asked_for() -> None:
    assert not any("usage" in chunk for chunk in ask(stream_options={}).chunks)


def test_a_whole_answer_has_the_same_content() -> None:
    message = ask(stream=False).json["choices"][0]
    assert json.loads(message["message"]["tool_calls"][0]["function"]["arguments"]) == ARGUMENTS
    assert message["finish_reason"] == "tool_calls"
    assert ask(stream=False).json["usage"]["prompt_tokens"] > 0


@pytest.mark.parametrize("dialect", ["hermes", "roo_xml", "qwen3_coder", "fenced_tool_flat", "glm45", "kimi_k2"])
def test_a_call_in_a_dialect_is_text_that_reads_back(dialect: str) -> None:
    reply = ask(SimOptions(dialect=dialect))
    assert reply.finish == ["stop"] and not reply.calls
    reading = toolglot.read(reply.text, [WRITE])
    assert [(call.name, json.loads(call.arguments)) for call in reading.calls] == [("write", ARGUMENTS)]
    assert ask(SimOptions(dialect=dialect), stream=False).json["choices"][0]["message"]["content"] == reply.text


def test_ids_are_never_used_twice() -> None:
    async def run() -> list[Reply]:
        async with running(make_app()) as address:
            return [await post(address, make_body()) for _ in range(3)]

    replies = asyncio.run(run())
    assert len({reply.chunks[0]["id"] for reply in replies}) == 3
    assert len({reply.calls[0]["id"] for reply in replies}) == 3


def test_models_and_health_answer_with_and_without_v1() -> None:
    async def run() -> list[Any]:
        async with running(make_app()) as address, aiohttp.ClientSession(address) as http:
            found = []
            for path in ("/v1/models", "/models", "/v1/models/sim", "/health"):
                async with http.get(path) as response:
                    found.append(await response.json())
            async with http.post("/chat/completions", json=make_body(stream=False)) as response:
                found.append(await response.json())
            return found

    listed, bare, one, health, answer = asyncio.run(run())
    assert [model["id"] for model in listed["data"]] == ["sim"] and listed == bare
    assert one["id"] == "sim"
    assert health == {"status": "ok", "simulated": True}
    assert answer["object"] == "chat.completion"


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"messages": []}', b'{"messages": ["x"]}', b"{}"])
def test_a_request_that_no_server_would_answer_is_refused(body: bytes) -> None:
    async def run() -> tuple[int, Any]:
        async with running(make_app()) as address, aiohttp.ClientSession(address) as http:
            async with http.post("/v1/chat/completions", data=body) as response:
                return response.status, await response.json()

    status, answer = asyncio.run(run())
    assert status == 400 and answer["error"]["type"] == "invalid_request_error"


def test_a_limit_of_tokens_cuts_the_answer() -> None:
    reply = ask(SimOptions(dialect="hermes"), max_tokens=10)
    assert len(reply.text) == 40 and reply.finish == ["length"]
    assert ask(max_tokens=10).finish == ["length"]
    assert ask(max_tokens=4000).finish == ["tool_calls"]


# Chunking and time


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_events_hold_so_many_characters(size: int) -> None:
    reply = ask(SimOptions(dialect="hermes", chunk=size))
    pieces = [delta["content"] for delta in reply.deltas if delta.get("content")]
    assert {len(piece) for piece in pieces[:-1]} <= {size} and len(pieces[-1]) <= size


async def sizes_of_writes(options: SimOptions) -> list[int]:
    """The sizes of the pieces in which the body was written, as the chunked encoding tells them."""
    async with running(make_app(options)) as address:
        host, port = address.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = json.dumps(make_body(), ensure_ascii=False).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await reader.readuntil(b"\r\n\r\n")
        sizes = []
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
            sizes.append(size)
        writer.close()
        await writer.wait_closed()
        return sizes


@pytest.mark.parametrize("size", [1, 7])
def test_network_writes_hold_so_many_bytes(size: int) -> None:
    sizes = asyncio.run(sizes_of_writes(SimOptions(dialect="roo_xml", chunk_bytes=size)))
    assert set(sizes[:-1]) == {size}


def test_writes_of_one_byte_split_characters_and_events_and_lose_nothing() -> None:
    whole, bytewise = ask(SimOptions(dialect="hermes")), ask(SimOptions(dialect="hermes", chunk_bytes=1))
    assert bytewise.text == whole.text and "🙂" in bytewise.text
    assert "🙂".encode() in bytewise.data, "characters stand on the wire as they are, so that they can be split"
    assert bytewise.reads > len(bytewise.data) // 2 > whole.reads


def test_events_leave_together_without_a_pace_and_alone_with_one() -> None:
    assert len(asyncio.run(sizes_of_writes(SimOptions()))) == 1
    paced = asyncio.run(sizes_of_writes(SimOptions(pace=1)))
    assert len(paced) == ask().data.count(b"\n\n")


def test_latency_and_pace_take_their_time() -> None:
    began = time.monotonic()
    ask(SimOptions(latency=80, pace=5, chunk=4, dialect="hermes"))
    assert time.monotonic() - began > 0.08 + 0.005 * 20


# Faults: every one of them is looked at on the wire

Check = Callable[[Reply], object]


def is_error(status: int) -> Check:
    return lambda reply: reply.status == status and reply.json["error"]["message"]


ON_THE_WIRE: dict[str, Check] = {
    "http_400": is_error(400),
    "http_401": is_error(401),
    "http_404": is_error(404),
    "http_429": lambda reply: is_error(429)(reply) and reply.headers["retry-after"] == "1",
    "http_500": is_error(500),
    "http_503": is_error(503),
    "http_502_html": lambda reply: reply.status == 502 and reply.data.startswith(b"<html>"),
    "no_tools_400": lambda reply: is_error(400)(reply) and "does not support tools" in reply.data.decode(),
    "no_parser_400": is_error(400),
    "parse_500": lambda reply: is_error(500)(reply) and "Failed to parse" in reply.data.decode(),
    "parse_error": lambda reply: reply.chunks[-1]["error"]["code"] == 500 and len(reply.chunks) == 2,
    "parse_error_late": lambda reply: reply.chunks[-1]["error"]["code"] == 500 and len(reply.chunks) == 3,
    "role_every_chunk": lambda reply: all(delta.get("role") for delta in reply.deltas[:-1]),
    "no_role": lambda reply: not any("role" in delta for delta in reply.deltas),
    "null_fields": lambda reply: all("refusal" in delta for delta in reply.deltas[:-1]),
    "no_index": lambda reply: reply.calls and not any("index" in call for call in reply.calls),
    "same_index": lambda reply: {call["index"] for call in reply.calls} == {0},
    "no_id": lambda reply: reply.calls and not any("id" in call for call in reply.calls),
    "no_type": lambda reply: reply.calls and not any("type" in call for call in reply.calls),
    "repeat_id": lambda reply: all(call["id"] and call["function"]["name"] for call in reply.calls),
    "one_delta": lambda reply: json.loads(reply.calls[0]["function"]["arguments"]) == ARGUMENTS,
    "object_arguments": lambda reply: reply.calls[0]["function"]["arguments"] == ARGUMENTS,
    "bad_frame": lambda reply: sum(not is_json(event) for event in reply.events) == 1 and b"[DONE]" in reply.data,
    "error_after_first": lambda reply: (
        reply.chunks[-1]["error"]["code"] == 500 and len(reply.chunks) == 3 and b"[DONE]" not in reply.data
    ),
    "event_error": lambda reply: b"event: error\ndata: {" in reply.data and "message" in reply.chunks[-1],
    "empty_data": lambda reply: "" in reply.events,
    "comments": lambda reply: reply.data.count(b": still here") == reply.data.count(b"data: "),
    "cut_mid_call": lambda reply: reply.broken and arguments_are_cut(reply) and not reply.finish,
    "hang_mid": lambda reply: reply.broken.endswith("TimeoutError") and arguments_are_cut(reply) and not reply.finish,
    "hang_after_headers": lambda reply: (
        reply.broken.endswith("TimeoutError") and reply.status == 200 and not reply.data
    ),
    "hang_before_headers": lambda reply: reply.broken.endswith("TimeoutError") and not reply.status,
    "reset": lambda reply: reply.broken and not reply.status,
    "crlf": lambda reply: b"\r\n\r\n" in reply.data and not re.search(rb"(?<!\r)\n", reply.data),
    "no_finish": lambda reply: reply.calls and not reply.finish and b"[DONE]" in reply.data,
    "no_done": lambda reply: reply.finish and b"[DONE]" not in reply.data and not reply.broken,
    "no_usage": lambda reply: reply.finish and b'"usage"' not in reply.data,
    "usage_in_finish": lambda reply: reply.chunks[-1]["choices"] and reply.chunks[-1]["usage"],
    "stop_finish": lambda reply: reply.calls and reply.finish == ["stop"],
    "length": lambda reply: reply.finish == ["length"] and arguments_are_cut(reply) and b"[DONE]" in reply.data,
    "empty_answer": lambda reply: not reply.text and not reply.calls and reply.finish == ["stop"],
    "json_instead_of_sse": lambda reply: (
        reply.json["choices"][0]["message"]["tool_calls"] and "json" in reply.headers["content-type"]
    ),
    "no_content_type": lambda reply: "event-stream" not in reply.headers.get("content-type", "") and reply.finish,
    "slow_drip": lambda reply: reply.reads > 20 and reply.finish,
}


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def arguments_are_cut(reply: Reply) -> bool:
    arguments = "".join(call["function"]["arguments"] for call in reply.calls)
    return 0 < len(arguments) and not is_json(arguments)


def test_every_fault_is_either_on_the_wire_or_in_the_words() -> None:
    assert FAULTS.keys() == ON_THE_WIRE.keys() | CALL_FAULTS.keys() | JSON_FAULTS.keys() | MARK_FAULTS.keys()
    assert all(about for about in FAULTS.values())


@in_one_test("fault", ON_THE_WIRE)
def test_a_fault_happens_on_the_wire(fault: str) -> None:
    reply = ask(SimOptions(faults=(fault,), chunk=30))
    assert ON_THE_WIRE[fault](reply), reply


def test_two_native_calls_can_share_an_index() -> None:
    twice = f"{QUESTION} and {QUESTION}"
    assert {call["index"] for call in ask(question=twice).calls} == {0, 1}
    assert {call["index"] for call in ask(SimOptions(faults=("same_index",)), question=twice).calls} == {0}


def test_a_whole_answer_can_fail_as_well() -> None:
    def whole(fault: str) -> Reply:
        return ask(SimOptions(faults=(fault,)), stream=False)

    assert whole("no_finish").json["choices"][0]["finish_reason"] is None
    assert "usage" not in whole("no_usage").json
    assert whole("length").json["choices"][0]["finish_reason"] == "length"
    assert not is_json(whole("bad_frame").data.decode())
    assert whole("error_after_first").json["error"]["code"] == 500
    assert whole("cut_mid_call").broken and not is_json(whole("cut_mid_call").data.decode())
    assert whole("hang_mid").broken.endswith("TimeoutError")
    assert whole("empty_answer").json["choices"][0]["message"]["content"] is None
    assert (
        whole("object_arguments").json["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == ARGUMENTS
    )
    assert whole("http_429").status == 429


@in_one_test("fault", [*CALL_FAULTS, *JSON_FAULTS, *MARK_FAULTS])
def test_damage_is_in_the_words(fault: str) -> None:
    dialect = "qwen3_coder" if fault in ("lost_inner_closer",) else "hermes"
    clean, damaged = ask(SimOptions(dialect=dialect)), ask(SimOptions(dialect=dialect, faults=(fault,)))
    assert damaged.text != clean.text and damaged.finish == ["stop"]
    if fault in CALL_FAULTS or fault in JSON_FAULTS.keys() - {"parameters_key"}:
        native = [call["function"] for call in ask(SimOptions(faults=(fault,))).calls]
        assert native != [call["function"] for call in ask().calls]


READ_NEVERTHELESS = sorted(JSON_FAULTS.keys() | MARK_FAULTS.keys() - {"call_twice", "fenced_call"})


@in_one_test("fault", READ_NEVERTHELESS)
@in_one_test("dialect", ["hermes", "qwen3_coder"])
def test_damaged_calls_are_read_nevertheless(dialect: str, fault: str) -> None:
    reading = toolglot.read(ask(SimOptions(dialect=dialect, faults=(fault,))).text, [WRITE])
    assert [json.loads(call.arguments) for call in reading.calls] == [ARGUMENTS]


# Options per request


def test_the_model_name_varies_the_options() -> None:
    reply = ask(model="sim:qwen3_coder+cut_mid_call+chunk=2")
    assert reply.broken and "<function=write>" in reply.text
    assert max(len(delta["content"]) for delta in reply.deltas) == 2
    assert "<tool_call>" in ask(model="vendor/sim:hermes").text


def test_headers_vary_the_options_and_win() -> None:
    headers = {"x-sim-dialect": "roo_xml", "X-Sim-Fault": "no_done, no_usage", "x-sim-chunk": "5"}
    reply = ask(SimOptions(dialect="hermes"), headers, model="sim:native+http_500")
    assert "<write>" in reply.text and b"[DONE]" not in reply.data and b'"usage"' not in reply.data
    assert ask(SimOptions(faults=("http_500",)), {"x-sim-fault": "none"}).status == 200


@pytest.mark.parametrize("model", ["sim:nonsense", "sim:chunk=x", "sim:chunk=0", "sim:speed=3"])
def test_an_unknown_option_is_refused_with_the_choices(model: str) -> None:
    reply = ask(model=model)
    assert reply.status == 400
    assert re.search("dialects are|options are|must be", reply.json["error"]["message"])


def test_other_model_names_mean_nothing() -> None:
    assert ask(model="qwen3:8b").calls


# The record


def test_requests_are_recorded_and_bounded() -> None:
    async def run() -> RequestLog:
        app = make_app(SimOptions(keep=2))
        async with running(app) as address:
            for number in range(3):
                await post(address, make_body(user=str(number)), {"authorization": "Bearer k"})
        return app[REQUEST_LOG]

    record = asyncio.run(run())
    assert record.total == 3 and [body["user"] for body in record.bodies] == ["1", "2"]
    assert record.last.headers["Authorization"] == "Bearer k"
    assert record.last.outcome == "complete" and record.last.sent > 0


def test_a_refused_request_is_recorded_too() -> None:
    async def run() -> RequestLog:
        app = make_app()
        async with running(app) as address:
            await post(address, make_body(model="sim:nonsense"))
        return app[REQUEST_LOG]

    assert asyncio.run(run()).last.outcome == "refused"


def test_a_client_that_leaves_is_noticed_at_once() -> None:
    async def run() -> tuple[str, float]:
        app = make_app(SimOptions(pace=20, chunk=1))
        async with running(app) as address, aiohttp.ClientSession() as http:
            async with http.post(f"{address}/v1/chat/completions", json=make_body()) as response:
                await response.content.readany()
            left = time.time()
            while app[REQUEST_LOG].last.outcome == "open" and time.time() - left < 5:
                await asyncio.sleep(0.01)
            return app[REQUEST_LOG].last.outcome, (app[REQUEST_LOG].last.ended or 0) - left

    outcome, delay = asyncio.run(run())
    assert outcome == "abandoned" and delay < 1


def test_a_slow_reader_holds_the_writer_back() -> None:
    big = Answer("x" * 30_000_000)

    async def run() -> int:
        app = make_app(SimOptions(chunk=10_000, script=(ScriptedAnswer(big),)))
        async with running(app) as address, aiohttp.ClientSession(read_bufsize=2**16) as http:
            async with http.post(f"{address}/v1/chat/completions", json=make_body()):
                await asyncio.sleep(0.5)
                return app[REQUEST_LOG].last.sent

    assert asyncio.run(run()) < 20_000_000


# As a command


def test_the_command_serves_until_it_is_stopped() -> None:
    command = [sys.executable, "-m", "toolglot", "sim", "--port", "0", "--dialect", "hermes"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://[\d.]+:\d+", line)
        try:
            assert address, line
            reply = asyncio.run(post(address[0], make_body()))
            assert "<tool_call>" in reply.text
        finally:
            process.terminate()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fault", "nonsense"], "no fault 'nonsense'"),
        (["--dialect", "klingon"], "no dialect"),
        (["--script", "absent.toml"], "cannot read the script"),
        (["--chunk", "0"], "chunk must be 1 or more"),
        (["--host", "256.0.0.1"], "cannot listen on"),
    ],
)
def test_wrong_use_of_the_command_is_told(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from toolglot.cli.main import main

    assert main(["sim", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_command_lists_the_faults(capsys: pytest.CaptureFixture[str]) -> None:
    from toolglot.cli.main import main

    assert main(["sim", "--faults"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in FAULTS)


# Cost


def test_a_chunk_costs_little() -> None:
    simulation = Simulation(SimOptions(chunk=10, script=(ScriptedAnswer(Answer("four score " * 400)),)))
    body = make_body(tools=[])
    best = min(_time(lambda: simulation.plan(body, 100, {})) for _ in range(10))
    assert best / 440 < 20e-6


def _time(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began
