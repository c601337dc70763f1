"""Relayed answers: one that is truncated, broken or empty is an error, and nothing is sent after the end."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import pytest
from aiohttp import web
from gateway.test_response_streams import WIRES, frames_of, relay
from support.gateway import gateway, run
from support.line import path_of
from support.rows import in_one_test
from support.wiring import USAGE

from toolglot.core.conversation import Conversation, Message, Text
from toolglot.core.errors import RequestError, ToolglotError, UpstreamError
from toolglot.core.events import Event, Failed, Finished, ReasoningDelta, TextDelta
from toolglot.gateway.relay import RelayedStream
from toolglot.gateway.response_pipeline import reply
from toolglot.wires import all_wires
from toolglot.wires.json_fields import find_field, parse_body
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

ANSWER: list[Event] = [TextDelta("Hello"), TextDelta(" there"), Finished("stop", USAGE)]
SECRET = "sk-proj-abcdefgh12345678"
DEEP = b"[" * 5000 + b"]" * 5000


def awaited(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def runs(**given: Any) -> None:
        run(lambda: test(**given))

    return runs


def pass_on(wire: str, pieces: list[bytes], error: ToolglotError | None = None) -> bytes:
    """What a client gets of these pieces, and of their end."""
    stream, out = RelayedStream(relay(wire)), b""
    for piece in pieces:
        out += stream.feed(piece)
        if stream.over:
            break
    return out + (stream.close() if error is None else stream.fail(error))


def read(wire: str, body: bytes) -> list[Event]:
    reader = all_wires()[wire].open_decoder(lambda: "1")
    return [*reader.feed(body), *reader.close()]


def encode_event(wire: str, expected: Any) -> bytes:
    """An event with this data."""
    data = json.dumps(expected).encode()
    return data + b"\n" if wire == "ollama" else b"data: " + data + b"\n\n"


@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_that_is_cut_ends_with_an_error(wire: str) -> None:
    raw = b"".join(frames_of(wire, ANSWER[:2]))
    for size in range(0, len(raw), 7):
        for error in (None, UpstreamError("it broke")):
            out = pass_on(wire, [raw[:size]], error)
            assert isinstance(read(wire, out)[-1], Failed)
            text = "".join(event.text for event in read(wire, out) if isinstance(event, TextDelta))
            assert "Hello there".startswith(text)


@in_one_test("lacking", [1, 2])
@in_one_test("wire", WIRES)
def test_a_missing_blank_line_is_added(wire: str, lacking: int) -> None:
    raw = b"".join(frames_of(wire, ANSWER))
    assert pass_on(wire, [raw[: -1 if wire == "ollama" else -lacking]]) == raw


@in_one_test("together", [True, False])
@in_one_test("wire", WIRES)
def test_nothing_is_passed_on_behind_the_end(wire: str, together: bool) -> None:
    frames = frames_of(wire, ANSWER)
    raw = b"".join(frames)
    late = [frames_of(wire, [TextDelta("late")])[-1], encode_event(wire, {"error": "late"})]
    pieces = [raw + b"".join(late)] if together else [*frames, *late]
    out = pass_on(wire, pieces[:-1] if wire == "gemini" and not together else pieces)
    assert out == raw or (wire == "gemini" and out.startswith(raw) and b'"late"}' not in out)


@in_one_test("begun", [True, False])
@in_one_test("wire", WIRES)
def test_nothing_is_passed_on_behind_a_failure(wire: str, begun: bool) -> None:
    """Neither text nor another error, which would repeat a key, whether they come together or one by one."""
    failed = encode_event(wire, {"type": "error", "error": {"message": f"no {SECRET}", "code": 500}})
    late = [frames_of(wire, [TextDelta("late")])[-1], failed]
    pieces = [*(frames_of(wire, ANSWER[:2]) if begun else ()), failed, *late]
    out = pass_on(wire, [b"".join(pieces)])
    assert isinstance(read(wire, out)[-1], Failed)
    assert b"late" not in out and SECRET.encode() not in out
    assert out == pass_on(wire, pieces)


@in_one_test("line_end", [b"\n", b"\r\n", b"\r"])
@in_one_test("breaks", [3, 4, 5])
@in_one_test("wire", sorted(set(WIRES) - {"ollama"}))
def test_further_blank_lines_pass(wire: str, breaks: int, line_end: bytes) -> None:
    *events, last = b"".join(frames_of(wire, ANSWER)).split(b"\n\n")[:-1]
    raw = (b"\n" * breaks).join(events) + b"\n" * breaks + last + b"\n\n"
    raw = raw.replace(b"\n", line_end)
    for size in (1, 2, 3, 50, 61, 400, len(raw)):
        assert pass_on(wire, [raw[at : at + size] for at in range(0, len(raw), size)]) == raw


def test_a_reason_before_any_content_is_recorded() -> None:
    """The limit was reached while the model was reasoning: that is no error, and no success either."""
    frames = frames_of("openai_chat", [ReasoningDelta("Hm."), Finished("length", None)])
    for pieces in (frames, [b"".join(frames)]):
        exchange = relay("openai_chat")
        stream = RelayedStream(exchange)
        assert b"".join(map(stream.feed, pieces)) == b"".join(frames) and stream.over
        exchange.conclude()
        assert (exchange.recorder.finish, exchange.recorder.error) == ("length", "")


def test_candidates_and_reasons_that_come_again_are_passed_on() -> None:
    """Some servers give a reason to finish with every event, and several candidates end one after the other."""

    def candidate_event(text: str, index: int, finish: str | None) -> bytes:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": text}]}, "index": index}
        return encode_event("gemini", {"candidates": [candidate | ({"finishReason": finish} if finish else {})]})

    every = [
        candidate_event("a", 0, "STOP"),
        candidate_event("b", 0, "STOP"),
        candidate_event("c", 1, None),
        encode_event("gemini", {"usageMetadata": {}}),
    ]
    assert pass_on("gemini", every) == b"".join(every)
    assert pass_on("gemini", [*every, candidate_event("d", 0, None)]) == b"".join(every)


@in_one_test("cut", [0, 1, 2, 3, 9])
@in_one_test("wire", WIRES)
def test_a_byte_order_mark_is_taken_off(wire: str, cut: int) -> None:
    raw = b"".join(frames_of(wire, ANSWER))
    marked = b"\xef\xbb\xbf" + raw
    assert pass_on(wire, [piece for piece in (marked[:cut], marked[cut:]) if piece]) == raw


@in_one_test("events", [[], [ReasoningDelta("Hm.")], [TextDelta(" \n")]])
@in_one_test("wire", WIRES)
def test_an_empty_answer_is_an_error(wire: str, events: list[Event]) -> None:
    failed = read(wire, pass_on(wire, frames_of(wire, [*events, Finished("stop", USAGE)])))[-1]
    assert isinstance(failed, Failed)
    asked = ClientRequest(
        conversation=Conversation("m", ()), stream=False, wants_usage=True, memory={"thoughts": True, "list": False}
    )
    body = all_wires()[wire].encode_response([*events, Finished("stop", USAGE)], ResponseIdentity("1", 1, "m"), asked)
    with pytest.raises(UpstreamError) as raised:
        reply(relay(wire, stream=False), body)
    assert raised.value.code in ("empty_answer", "upstream_invalid")


@in_one_test("body", [b"{}", b'{"id":', b'{"error":{"message":"no","code":"c"}}', b'{"a":' + DEEP + b"}"])
@in_one_test("wire", WIRES)
def test_a_whole_answer_that_is_none_is_an_error(wire: str, body: bytes) -> None:
    with pytest.raises(UpstreamError):
        reply(relay(wire, stream=False), body)


@pytest.mark.parametrize("wire", WIRES)
def test_a_healthy_whole_answer_passes_however_it_is_laid_out(wire: str) -> None:
    asked = ClientRequest(
        conversation=Conversation("m", ()), stream=False, wants_usage=True, memory={"thoughts": True, "list": False}
    )
    body = all_wires()[wire].encode_response(ANSWER, ResponseIdentity("1", 1, "m"), asked)
    laid_out = json.dumps(json.loads(body), indent=2).encode()
    assert reply(relay(wire, stream=False), laid_out) is laid_out
    assert reply(relay(wire, stream=False), b"\xef\xbb\xbf" + laid_out) == laid_out


def test_a_missing_terminator_is_added() -> None:
    for wire in ("openai_chat", "anthropic_messages"):
        raw = b"".join(frames_of(wire, ANSWER))
        *events, last = raw.split(b"\n\n")[:-1]
        out = pass_on(wire, [b"\n\n".join(events) + b"\n\n"])
        assert out == raw and last in out


@in_one_test(
    "payload",
    [
        {"error": {"message": f"bad {SECRET}", "type": SECRET, "code": SECRET, "param": SECRET}},
        {"type": "error", "error": {"type": SECRET, "message": SECRET}},
        {"error": SECRET},
        {"detail": SECRET},
        {"code": SECRET, "type": SECRET},
    ],
)
@in_one_test("begun", [True, False])
@in_one_test("wire", WIRES)
def test_errors_inside_a_stream_repeat_no_key(wire: str, payload: dict[str, Any], begun: bool) -> None:
    out = pass_on(wire, [*(frames_of(wire, ANSWER[:2]) if begun else []), encode_event(wire, payload)])
    assert SECRET.encode() not in out and isinstance(read(wire, out)[-1], Failed)


@pytest.mark.parametrize("wire", WIRES)
def test_text_of_the_model_is_never_taken_for_its_end(wire: str) -> None:
    words = ['"done":true', '{"error":{"message":"x"}}', "data: [DONE]\n\n", '"finish_reason":"stop"', SECRET, '"type"']
    raw = b"".join(frames_of(wire, [*(TextDelta(f"{word} so ") for word in words * 5), Finished("stop", USAGE)]))
    for size in (9, 100, 10_000):
        assert pass_on(wire, [raw[at : at + size] for at in range(0, len(raw), size)]) == raw


@pytest.mark.parametrize("wire", WIRES)
def test_events_that_arrive_together_are_checked_as_alone(wire: str) -> None:
    """Also where most of them differ in one string only, which is compared and not searched."""
    words = [f"word{number} " for number in range(60)]
    usual = frames_of(wire, [*map(TextDelta, words), Finished("stop", USAGE)])
    failed = encode_event(wire, {"error": {"message": "overloaded"}})
    for frames in (usual, [*usual[:50], failed, *usual[50:]], [*usual[:50], b": alive\n\n", *usual[50:]]):
        alone = pass_on(wire, frames)
        for size in (2, 7, 25):
            together = [b"".join(frames[at : at + size]) for at in range(0, len(frames), size)]
            assert pass_on(wire, together) == alone


def test_events_with_a_known_frame_are_not_searched() -> None:
    stream = RelayedStream(relay("openai_chat"))
    frames = frames_of("openai_chat", [TextDelta(f"word{number}") for number in range(60)])
    stream.feed(b"".join(frames[:20]))
    stream.search = None  # type: ignore[assignment]
    assert stream.feed(b"".join(frames[20:40])) == b"".join(frames[20:40])
    assert stream.feed(frames[40]) == frames[40]
    with pytest.raises(TypeError):
        stream.feed(b"".join(frames[40:50]) + encode_event("openai_chat", {"error": "no"}))


# -- requests and errors -----------------------------------------------------------------------------------------------


def refuse(body: bytes, headers: dict[str, str] | None = None) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body, status=429, content_type="application/json", headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    return app


def ask(wire: str, stream: bool = False) -> tuple[bytes, str]:
    """A request of a wire, and where it goes."""
    asked = Conversation("m", (Message("user", (Text("hi"),)),))
    parts = path_of(wire, stream)
    route = all_wires()[wire].routes[0]
    path = f"/v1beta/models/m:{parts['method']}" if wire == "gemini" else route
    return all_wires()[wire].encode_request(asked, stream=stream, wants_usage=False), path


@pytest.mark.parametrize("wire", WIRES)
@awaited
async def test_no_field_of_an_upstreams_error_repeats_a_key(wire: str, caplog: pytest.LogCaptureFixture) -> None:
    received = {"message": f"no {SECRET}", "type": SECRET, "code": SECRET, "param": SECRET, "status": SECRET}
    headers = {"retry-after": SECRET, "x-ratelimit-limit-requests": "10"}
    caplog.set_level("INFO")
    app = refuse(json.dumps({"error": received}).encode(), headers)
    async with gateway(app=app, upstream={"wire": wire}) as gate:
        for client in WIRES:
            body, path = ask(client)
            answer = await gate.ask(body, path)
            assert answer.status == 429 and SECRET not in answer.body.decode() + str(answer.headers)
            assert "retry-after" not in answer.headers and answer.headers["x-ratelimit-limit-requests"] == "10"
        assert SECRET not in (await gate.get("/metrics")).body.decode()
    assert SECRET not in caplog.text


@pytest.mark.parametrize("body", [DEEP, b'{"error":' * 700 + b"1" + b"}" * 700, b'{"error":{"message":' + DEEP + b"}}"])
@pytest.mark.parametrize("wire", WIRES)
@awaited
async def test_errors_may_be_nested_as_deeply_as_they_like(wire: str, body: bytes) -> None:
    async with gateway(app=refuse(body), upstream={"wire": wire}) as gate:
        for stream in (False, True):
            assert (await gate.ask(*ask(wire, stream))).status == 429


@awaited
async def test_requests_that_are_nested_too_deeply_name_the_field() -> None:
    async with gateway(app=refuse(b"{}")) as gate:
        for path in ("/v1/messages/count_tokens", "/api/show", "/v1/chat/completions", "/v1/responses"):
            answer = await gate.ask(b'{"model":"m","messages":[],"metadata":' + DEEP + b"}", path)
            assert answer.status == 400 and b"metadata" in answer.body


@pytest.mark.parametrize("stop", [[["x"]], [1], 5, {"a": 1}])
@pytest.mark.parametrize("wire", WIRES)
@awaited
async def test_stop_sequences_are_texts(wire: str, stop: Any) -> None:
    async with gateway(app=refuse(b"{}"), upstream={"wire": wire}) as gate:
        asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stop": stop}
        answer = await gate.ask(asked)
        assert answer.status == 400 and answer.error["param"] == "stop"


@pytest.mark.parametrize(("path", "wire"), [("/v1beta/models/m:countTokens", "gemini"), ("/api/generate", "ollama")])
@awaited
async def test_unknown_paths_are_refused_in_the_wire(path: str, wire: str) -> None:
    async with gateway(app=refuse(b"{}")) as gate:
        answer = await gate.ask({}, path)
        assert answer.status == 404
        assert isinstance(answer.error, str) if wire == "ollama" else answer.error["status"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"model":"m","temperature":Infinity}', "temperature"),
        (b'{"model":"m","top_p":NaN,"stop":["a"]}', "top_p"),
        (b'{"model":"m","messages":[{"content":tru}]}', "messages"),
    ],
)
def test_json_that_cannot_be_read_names_the_field(body: bytes, field: str) -> None:
    with pytest.raises(RequestError, match=f", in {field}: ") as raised:
        parse_body(body)
    assert raised.value.where == field


def test_the_field_that_is_nested_is_found() -> None:
    assert find_field(b'{"a":{"x":[1,"]]["]},"b\\"c":{"d":' + DEEP + b"}}") == 'b\\"c'
    assert find_field(b'{"a":1}') is None and find_field(DEEP) is None
