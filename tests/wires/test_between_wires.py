"""What has to be the same on both sides of two wires: order, characters, numbers, settings, counts, and whole answers that need no correction."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from support.error_texts import what_failed
from support.line import Line
from support.oracle.records import (
    ORDERED,
    WIRES,
    Answer,
    Call,
    Json,
    Num,
    Reasoning,
    Request,
    Result,
    Text,
    Tool,
    Turn,
    Usage,
    dump,
    load,
    merged,
)
from support.oracle.responses import responses_answer
from support.oracle.wires import path_of, read_answer, read_request, write_answer, write_request
from support.rows import in_one_test

from toolglot.core.conversation import Conversation, Message
from toolglot.core.conversation import Text as Words
from toolglot.core.errors import RequestError
from toolglot.core.json_numbers import ExactNumber, decode, encode
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.response_streams import open_stream
from toolglot.wires import all_wires, client_wires

READ = Tool("read_file", "Reads.", '{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"number"}}}')
HI = Turn("user", (Text("hi"),))
CALL = Call("call_1", "read_file", '{"path":"a"}')
OTHERS = [(client, upstream) for client in WIRES for upstream in WIRES if client != upstream]
TAILS = ["", "\n", "\n\n", " <", "{", " a", "Action", "`", "[", "<tool_call", "\n<", "\u2028"]


@cache
def line_of(client: str, upstream: str, mode: str) -> Line:
    return Line(client, upstream, mode)


def ask(client: str, upstream: str, asked: Request, mode: str = "native") -> Exchange:
    return line_of(client, upstream, mode).open(write_request(client, asked), asked.stream)


def arrive(client: str, upstream: str, asked: Request) -> Request:
    exchange = ask(client, upstream, asked)
    return read_request(upstream, path_of(upstream, "m", asked.stream), exchange.upstream_body)


def carry(exchange: Exchange, raw: bytes) -> bytes:
    if not exchange.streamed:
        return reply(exchange, raw)
    stream = open_stream(exchange)
    return stream.feed(raw) + stream.close()


def answer(client: str, upstream: str, given: Answer, stream: bool, mode: str = "native") -> Answer:
    exchange = ask(client, upstream, Request((HI,), (READ,), stream=stream), mode)
    return read_answer(client, carry(exchange, write_answer(upstream, given, stream, 3)), stream)


# -- order -------------------------------------------------------------------------------------------------------------


@in_one_test("mode", ["native", "text"])
@in_one_test("stream", [False, True])
@in_one_test("upstream", WIRES)
@in_one_test("client", ORDERED)
def test_text_that_was_held_back_comes_before_the_call_behind_it(
    client: str, upstream: str, stream: bool, mode: str
) -> None:
    for tail in TAILS:
        parts = (Text(f"I'll look.{tail}"), CALL)
        got = answer(client, upstream, Answer(parts, "tool_calls"), stream, mode)
        assert [replace(part, id="call_1") if isinstance(part, Call) else part for part in merged(got.parts)] == [
            *parts
        ]


@in_one_test("mode", ["native", "text"])
@in_one_test("stream", [False, True])
@in_one_test("upstream", ORDERED)
@in_one_test("client", ORDERED)
def test_text_that_was_held_back_comes_before_the_thought_behind_it(
    client: str, upstream: str, stream: bool, mode: str
) -> None:
    for tail in TAILS:
        for last, finish in ((CALL, "tool_calls"), (Text("So."), "stop")):
            parts = (Text(f"I'll look.{tail}"), Reasoning("Hm."), last)
            assert merged(answer(client, upstream, Answer(parts, finish), stream, mode).parts) == parts


def test_a_call_in_text_behind_a_native_one_is_still_read() -> None:
    call = '<tool_call>\n{"name": "read_file", "arguments": {"path": "b"}}\n</tool_call>'
    parts = (Text("Two.\n\n"), CALL, Text(f"\nAnd\n{call}"))
    got = answer("anthropic_messages", "anthropic_messages", Answer(parts, "tool_calls"), True, "text")
    assert [part.arguments for part in got.parts if isinstance(part, Call)] == ['{"path":"a"}', '{"path":"b"}']
    assert [part.text for part in got.parts if isinstance(part, Text)] == ["Two.\n\n", "\nAnd"]


def interleave(first: Call, second: Call) -> bytes:
    """Two calls of which the second ends first."""
    whole = responses_answer(Answer((first, second), "tool_calls"), True, 1000)
    steps = [step + b"\n\n" for step in whole.split(b"\n\n") if step]
    created, one, two, completed = steps[:1], steps[1:5], steps[5:9], steps[9:]
    return b"".join([*created, one[0], two[0], *two[1:], *one[1:], *completed])


@in_one_test("stream", [False, True])
@in_one_test("client", [wire for wire in WIRES if wire != "openai_responses"])
def test_calls_come_in_the_order_of_their_starts(client: str, stream: bool) -> None:
    first, second = CALL, Call("call_2", "read_file", '{"path":"b"}')
    raw = interleave(first, second)
    exchange = ask(client, "openai_responses", Request((HI,), (READ,), stream=stream))
    out = carry(exchange, raw) if stream else reply(exchange, raw, streamed=True)
    assert read_answer(client, out, stream).parts == (first, second)


@pytest.mark.parametrize("client", ["gemini", "ollama"])
def test_a_call_that_never_ends_holds_no_other_up(client: str) -> None:
    raw = interleave(replace(CALL, arguments='{"path":"a'), Call("call_2", "read_file", "{}"))
    raw = raw.replace(b'"status":"completed","', b'"status":"incomplete","').replace(
        b"response.completed", b"response.incomplete"
    )
    raw = raw.replace(b'"incomplete_details":null', b'"incomplete_details":{"reason":"max_output_tokens"}')
    exchange = ask(client, "openai_responses", Request((HI,), (READ,), stream=True))
    got = read_answer(client, carry(exchange, raw), True)
    calls = [part.id for part in got.parts if isinstance(part, Call)]
    received = "".join(part.text for part in got.parts if isinstance(part, Text))
    assert got.finish == "length" and calls in ([], ["call_2"]) and received.count("was cut off") == (received != "")


# -- characters --------------------------------------------------------------------------------------------------------

BREAKS = "a\u2028b\u2029c\x85d"


@in_one_test(("client", "upstream"), OTHERS)
def test_no_character_ends_a_line_of_a_stream(client: str, upstream: str) -> None:
    parts = (Reasoning(BREAKS), Text(BREAKS), replace(CALL, arguments=json.dumps({"path": BREAKS}, ensure_ascii=False)))
    exchange = ask(client, upstream, Request((HI,), (READ,), stream=True))
    out = carry(exchange, write_answer(upstream, Answer(parts, "tool_calls"), True, 1000))
    assert len(out.decode().splitlines()) == out.count(b"\n")
    got = read_answer(client, out, True)
    assert BREAKS in str([part.text for part in got.parts if isinstance(part, Text)]).encode().decode("unicode_escape")
    [call] = [part for part in got.parts if isinstance(part, Call)]
    assert load(call.arguments) == {"path": BREAKS}


def test_a_failure_in_a_stream_is_one_line() -> None:
    raw = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\ndata: {"error":{"message":"no\xe2\x80\xa8way"}}\n\n'
    exchange = ask("ollama", "openai_chat", Request((HI,), (READ,), stream=True))
    lines = carry(exchange, raw).decode().splitlines()
    assert what_failed(json.loads(lines[-1])["error"]) == "no\u2028way"


# -- numbers -----------------------------------------------------------------------------------------------------------

NUMBERS = [
    "1e5",
    "1E+5",
    "-2.50",
    "-0",
    "-0.0",
    "1e400",
    "0.1000000000000000055511151231257827",
    "123456789012345678901",
]
LISTED = f"[{','.join(NUMBERS)}]"
OBJECT = '{"n":' + LISTED + ',"x":{"y":-0}}'


@in_one_test("stream", [False, True])
@in_one_test("client", WIRES)
@in_one_test("upstream", WIRES)
def test_numbers_keep_their_spelling(client: str, upstream: str, stream: bool) -> None:
    history = (
        HI,
        Turn("assistant", (replace(CALL, arguments=OBJECT),)),
        Turn("tool", (Result("call_1", "read_file", OBJECT),)),
    )
    tool = replace(READ, schema='{"type":"object","properties":{"n":{"enum":' + LISTED + "}}}")
    asked = Request(history, (tool,), temperature="0.70", stream=stream)
    got = arrive(client, upstream, asked)
    assert (got.tools, got.temperature) == ((tool,), "0.70")
    assert [part.arguments for part in got.turns[1].parts] == [OBJECT]
    assert [part.text for part in got.turns[2].parts] == [OBJECT]
    [call] = answer(client, upstream, Answer((replace(CALL, arguments=OBJECT),), "tool_calls"), stream).parts
    assert call.arguments == OBJECT


@pytest.mark.parametrize("wire", ["anthropic_messages", "gemini", "ollama"])
def test_numbers_stay_in_a_whole_answer_that_is_written_anew(wire: str) -> None:
    second = Call("call_2", "read_file", "{}")
    raw = write_answer(wire, Answer((replace(CALL, arguments=OBJECT), second), "tool_calls"), False)
    body = load(write_request(wire, Request((HI,), (READ,))))
    line = Line(wire, wire)
    line.settings = replace(line.settings, reading=replace(line.settings.reading, parallel_calls=False))
    out = reply(line.open(dump(body).encode(), False), raw)
    assert out != raw
    assert [part.arguments for part in read_answer(wire, out, False).parts] == [OBJECT]


def test_a_setting_must_be_a_number_that_exists() -> None:
    digits = b"1" * 400
    for field in (b'"temperature":1e400', b'"max_completion_tokens":1e400', b'"seed":' + digits, b'"top_p":-' + digits):
        body = b'{"model":"m","messages":[{"role":"user","content":"hi"}],' + field + b"}"
        with pytest.raises(RequestError, match="must be a number"):
            Line("openai_chat", "gemini").open(body, False)


@in_one_test("streamed", [False, True])
@in_one_test(("client", "upstream"), [(client, upstream) for client in WIRES for upstream in WIRES])
def test_python_servers_write_nan(client: str, upstream: str, streamed: bool) -> None:
    """A field that is no JSON loses nothing of the answer beside it."""
    exchange = ask(client, upstream, Request((HI,), (READ,), stream=streamed))
    raw = write_answer(upstream, Answer((Text("one two three"),), "stop"), streamed, 4)
    payload = carry(exchange, re.sub(rb'(?m)^(data: |)\{"', rb'\1{"score":NaN,"', raw))
    got = read_answer(client, payload.replace(b'"score":NaN,', b""), streamed)
    assert merged(got.parts) == (Text("one two three"),)


def test_a_conversation_that_cannot_be_is_the_mistake_of_the_client() -> None:
    asked = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "read"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read", "\u2029"]}},
    }
    with pytest.raises(RequestError, match="a choice needs the name of a tool"):
        Line("gemini", "ollama").open(dump(asked).encode(), False)


def test_numerals_are_floats_that_know_their_text() -> None:
    data = decode(b'{"a":1e5,"b":[-0,0.5,3,-0.0],"c":"-0 "}')
    assert data == {"a": 1e5, "b": [0, 0.5, 3, 0], "c": "-0 "}
    assert isinstance(data["a"], ExactNumber) and type(data["b"][1]) is float and type(data["b"][2]) is int
    assert encode(data) == b'{"a":1e5,"b":[-0,0.5,3,-0.0],"c":"-0 "}'
    assert encode({"half": "\ud83d", "n": data["a"]}) == b'{"half":"\\ud83d","n":1e5}'
    with pytest.raises(TypeError):
        encode(object())


# -- empty texts, apart texts, empty arguments -------------------------------------------------------------------------


@in_one_test("upstream", [wire for wire in WIRES if wire != "openai_chat"])
@in_one_test("content", ["", [], [{"type": "text", "text": ""}], None])
def test_content_that_is_empty_beside_calls_invents_nothing(upstream: str, content: Json) -> None:
    calls = [{"id": "c", "type": "function", "function": {"name": "read_file", "arguments": ""}}]
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": content, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]
    exchange = Line("openai_chat", upstream).open(dump({"model": "m", "messages": messages}).encode(), False)
    got = read_request(upstream, path_of(upstream, "m", False), exchange.upstream_body)
    assert [part.arguments for part in got.turns[1].parts] == ["{}"]


@pytest.mark.parametrize("client", [wire for wire in WIRES if wire != "ollama"])
def test_texts_that_are_apart_stay_apart(client: str) -> None:
    got = arrive(client, "ollama", Request((Turn("user", (Text("one"), Text("two"))),)))
    assert got.turns[0].parts == (Text("one\n\ntwo"),)


# -- settings and counts -----------------------------------------------------------------------------------------------

LEVELS = {
    "openai_chat": {"max": "xhigh"},
    "openai_responses": {"max": "xhigh"},
    "anthropic_messages": {"none": "", "minimal": "low", "xhigh": "high"},
    "gemini": {"none": "minimal", "xhigh": "high", "max": "high"},
    "ollama": {"none": "", "minimal": "low", "xhigh": "high", "max": "high"},
}
"""What becomes of words that a wire does not have."""


@in_one_test(("client", "upstream"), OTHERS)
def test_how_much_to_think_is_carried(client: str, upstream: str) -> None:
    for word in ("none", "minimal", "low", "medium", "high", "xhigh", "max"):
        asked = Request((HI,), (READ,), effort=word)
        exchange = ask(client, upstream, asked)
        assert read_request(upstream, path_of(upstream, "m", False), exchange.upstream_body).effort == LEVELS[
            upstream
        ].get(word, word)
        assert not any("not carried" in note for note in exchange.recorder.notes)
    assert arrive(client, upstream, Request((HI,), (READ,))).effort == ""


def test_thinking_is_turned_off_for_ollama() -> None:
    exchange = ask("openai_chat", "ollama", Request((HI,), (READ,), effort="none"))
    assert json.loads(exchange.upstream_body)["think"] is False


def test_notes_name_only_what_was_not_carried() -> None:
    text = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 9, "logit_bias": {}}
    exchange = Line("openai_chat", "gemini").open(json.dumps(text).encode(), False)
    assert json.loads(exchange.upstream_body)["generationConfig"] == {"maxOutputTokens": 9}
    assert exchange.recorder.notes == ["not carried to another wire: logit_bias"]
    text = {"contents": [{"parts": [{"text": "hi"}]}], "generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}}
    exchange = Line("gemini", "openai_chat").open(json.dumps(text).encode(), False)
    assert exchange.recorder.notes == ["not carried to another wire: generationConfig.thinkingConfig.thinkingBudget"]
    text = {"model": "m", "input": "hi", "reasoning": {"effort": "low", "summary": "auto"}}
    exchange = Line("openai_responses", "openai_chat").open(json.dumps(text).encode(), False)
    assert json.loads(exchange.upstream_body)["reasoning_effort"] == "low"
    assert exchange.recorder.notes == ["not carried to another wire: reasoning.summary"]
    text = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "reasoning_effort": "auto"}
    exchange = Line("openai_chat", "openai_responses").open(json.dumps(text).encode(), False)
    assert exchange.recorder.notes == ["not carried to another wire: reasoning_effort"]


@in_one_test("stream", [False, True])
@in_one_test(("client", "upstream"), [pair for pair in OTHERS if "ollama" not in pair])
def test_cached_and_reasoning_tokens_are_reported(client: str, upstream: str, stream: bool) -> None:
    usage = Usage(100, 50, 64, 20)
    assert answer(client, upstream, Answer((Text("Hi"),), usage=usage), stream).usage == usage


# -- whole answers of one wire -----------------------------------------------------------------------------------------

SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CITED = {"type": "text", "text": "So.", "citations": [{"type": "char_location", "cited_text": "So"}]}


def enrich(wire: str, whole: dict[str, Any]) -> None:
    """Add what only this wire can express."""
    match wire:
        case "openai_chat":
            whole["choices"][0]["logprobs"] = {"content": [{"token": "I", "logprob": Num("-0.10")}]}
            whole["service_tier"] = "default"
        case "openai_responses":
            whole["output"].insert(0, {"type": "web_search_call", "id": "ws_1", "status": "completed"})
            whole["output"][1] |= {"phase": "commentary"}
            whole["output"][1]["content"][0]["annotations"] = [{"type": "url_citation", "url": "https://x"}]
        case "anthropic_messages":
            whole["content"][:0] = [SEARCH, FOUND, CITED]
            whole["usage"]["service_tier"] = "standard"
        case "gemini":
            whole["candidates"][0] |= {"groundingMetadata": {"webSearchQueries": ["x"]}, "safetyRatings": []}
        case _:
            whole |= {"load_duration": Num(12), "eval_duration": Num(34)}


@pytest.mark.parametrize("wire", WIRES)
def test_a_whole_answer_that_needs_nothing_passes_as_it_is(wire: str) -> None:
    for parts in ((Text("I'll look.\n\n"), CALL), (Text("I'll look."),)):
        whole = load(write_answer(wire, Answer(parts, "tool_calls" if CALL in parts else "stop"), False))
        enrich(wire, whole)
        raw = json.dumps(json.loads(dump(whole)), indent=None if wire == "ollama" else 1).encode()
        assert reply(ask(wire, wire, Request((HI,), (READ,))), raw) == raw


@pytest.mark.parametrize("wire", WIRES)
def test_a_leaked_call_in_a_whole_answer_is_still_read(wire: str) -> None:
    leaked = '<tool_call>\n{"name": "read_file", "arguments": {"path": "b"}}\n</tool_call>'
    raw = write_answer(wire, Answer((Text(leaked),)), False)
    [call] = read_answer(wire, reply(ask(wire, wire, Request((HI,), (READ,))), raw), False).parts
    assert (call.name, call.arguments) == ("read_file", '{"path":"b"}')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"id":"call_1",', b""),  # it could not be answered
        (b'"finish_reason":"tool_calls"', b'"finish_reason":"stop"'),  # clients would not run it
        (b'"finish_reason":"tool_calls"', b'"finish_reason":null'),
        (b'"{\\"path\\":\\"a\\"}"', b'{"path":"a"}'),
        (b'"{\\"path\\":\\"a\\"}"', b'""'),
    ],
)
def test_streams_that_need_a_correction_are_corrected(before: bytes, after: bytes) -> None:
    raw = write_answer("openai_chat", Answer((Text("Hi"), CALL), "tool_calls"), False)
    assert before in raw
    out = reply(ask("openai_chat", "openai_chat", Request((HI,), (READ,))), raw.replace(before, after))
    got = read_answer("openai_chat", out, False)
    _, call = got.parts
    assert got.finish == "tool_calls" and call.id and call.arguments in (CALL.arguments, "{}")


@pytest.mark.parametrize("wire", WIRES)
def test_random_answers_are_the_same_in_any_pieces(wire: str) -> None:
    """The oracle agrees with itself."""
    rng = Random(wire)
    given = Answer((Reasoning("Hm."), Text(BREAKS), CALL), "tool_calls", Usage(9, 7))
    for stream in (False, True):
        got = read_answer(wire, write_answer(wire, given, stream, rng.choice([1, 5])), stream)
        parts = [replace(part, id="call_1") if isinstance(part, Call) else part for part in got.parts]
        assert (tuple(parts), got.finish, got.usage) == (given.parts, given.finish, given.usage)


@pytest.mark.parametrize(
    ("client", "asked", "efforts"),
    [
        ("anthropic_messages", {"thinking": {"type": "enabled", "budget_tokens": 1024}}, ("low", "LOW", 1024)),
        ("anthropic_messages", {"thinking": {"type": "enabled", "budget_tokens": 10_000}}, ("medium", "MEDIUM", 8192)),
        ("anthropic_messages", {"thinking": {"type": "enabled", "budget_tokens": 31_999}}, ("high", "HIGH", 24576)),
        ("anthropic_messages", {"thinking": {"type": "disabled"}}, ("none", "MINIMAL", 128)),
        ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 100}}}, ("minimal", None, None)),
        ("gemini", {"generationConfig": {"thinkingConfig": {"thinking_budget": 0}}}, ("none", None, None)),
        ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": -1}}}, (None, None, None)),
        ("openai_chat", {"reasoning_effort": "xhigh"}, ("xhigh", "HIGH", 24576)),
        ("ollama", {"think": False}, ("none", "MINIMAL", 128)),
    ],
)
def test_budgets_of_reasoning_are_efforts(client: str, asked: dict[str, Any], efforts: tuple[Any, Any, Any]) -> None:
    message = {"role": "user", "content": "hi", "parts": [{"text": "hi"}]}
    wire = client_wires()[client]
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [message], "contents": [message], **asked}).encode()
    sampling = wire.decode_request(body, {"model": "m"}).conversation.sampling
    conversation = Conversation("m", (Message("user", (Words("hi"),)),), sampling=sampling)

    def encode(upstream: str, model: str) -> Any:
        named = Conversation(model, conversation.messages, sampling=sampling)
        return json.loads(all_wires()[upstream].encode_request(named, stream=False, wants_usage=False))

    effort, level, budget = efforts
    assert encode("openai_chat", "m").get("reasoning_effort") == effort
    if level is not None:
        assert encode("gemini", "gemini-3-pro")["generationConfig"]["thinkingConfig"] == {"thinkingLevel": level}
        assert encode("gemini", "gemini-2.5-pro")["generationConfig"]["thinkingConfig"] == {"thinkingBudget": budget}


def test_reasoning_and_sampling_of_one_wire_are_left_as_they_are() -> None:
    asked = {"thinking": {"type": "enabled", "budget_tokens": 9000}, "temperature": 1, "top_p": 0.5, "top_k": 3}
    content = [{"type": "text", "text": "hi"}]
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}], **asked})
    wire = all_wires()["anthropic_messages"]
    again = wire.encode_request(wire.decode_request(body.encode(), {}).conversation, stream=False, wants_usage=False)
    assert json.loads(again) == json.loads(body)
