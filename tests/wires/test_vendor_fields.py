"""Fields of the vendor that toolglot does not know reach a client of the same wire, also if the answer is encoded anew."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from support.line import Line
from support.oracle.records import WIRES
from support.oracle.talks import make_answer, make_request
from support.oracle.wires import write_answer, write_request
from support.rows import in_one_test

from toolglot.core.conversation import Conversation
from toolglot.core.events import CallArguments, CallEnded, CallStarted, Event, Finished, TextDelta
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.response_streams import TranslatedStream, open_stream
from toolglot.wires import vendor_fields
from toolglot.wires.json_fields import parse_object
from toolglot.wires.protocol import ClientRequest, ResponseIdentity
from toolglot.wires.vendor_fields import level, restore_fields

TALKS = int(os.environ.get("TOOLGLOT_TALKS", "10"))
ARGUMENTS = ("input", "args", "arguments", "parameters")
MARK = "mark"
QUESTION = {"role": "user", "content": "hi"}
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}


@pytest.fixture(autouse=True)
def encode_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bytes of an upstream pass as they are."""
    monkeypatch.setattr(Exchange, "may_pass_through", property(lambda exchange: False))


def add_fields(value: Any, rng: Random, added: dict[str, tuple[str, ...]], path: tuple[str, ...] = ()) -> None:
    """Add unknown fields at random levels; ``added`` gets the path of each value."""
    if isinstance(value, list):
        for one in value:
            add_fields(one, rng, added, path)
    if not isinstance(value, dict):
        return
    for name in [name for name in value if name not in ARGUMENTS]:
        add_fields(value[name], rng, added, (*path, name))
    if rng.random() < 0.4:
        name, mark = f"x{len(added)}", f"{MARK}{len(added)}"
        added[mark] = (*path, name)
        value[name] = rng.choice([mark, [mark], {"deep": mark}, [{"deep": mark}]])


def find_marks(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    if isinstance(value, dict | list):
        for name, one in value.items() if isinstance(value, dict) else [("", one) for one in value]:
            yield from find_marks(one, (*path, name) if name else path)
    elif isinstance(value, str) and value.startswith(MARK):
        yield value, path


def change_events(raw: bytes, rng: Random, added: dict[str, tuple[str, ...]]) -> Iterator[bytes]:
    """The lines of a stream, with more fields in every event."""
    for line in raw.split(b"\n"):
        prefix = b"data: " if line.startswith(b"data: {") else b""
        if not line[len(prefix) :].startswith(b"{"):
            yield line
            continue
        payload = json.loads(line[len(prefix) :])
        add_fields(payload, rng, added)
        yield prefix + json.dumps(payload).encode()


def read_stream(written: bytes) -> list[Any]:
    lines = [line.removeprefix(b"data: ") for line in written.split(b"\n")]
    return [json.loads(line) for line in lines if line[:1] == b"{"]


@in_one_test("stream", [False, True])
@in_one_test("mode", ["native", "text"])
@in_one_test("wire", WIRES)
def test_unknown_fields_of_every_level_arrive(wire: str, mode: str, stream: bool) -> None:
    for seed in range(TALKS):
        rng, added = Random(f"{wire} {mode} {stream} {seed}"), dict[str, tuple[str, ...]]()
        exchange = Line(wire, wire, mode=mode).open(write_request(wire, make_request(rng, stream)), stream)
        raw = write_answer(wire, make_answer(rng), stream, rng.choice([3, 7, 1000]))
        if stream:
            raw = b"\n".join(change_events(raw, rng, added))
            opened, size = open_stream(exchange), rng.choice([30, 200, 5000])
            out = b"".join([opened.feed(raw[at : at + size]) for at in range(0, len(raw), size)]) + opened.close()
            arrived = dict(mark for event in read_stream(out) for mark in find_marks(event))
        else:
            payload = json.loads(raw)
            add_fields(payload, rng, added)
            arrived = dict(find_marks(json.loads(reply(exchange, json.dumps(payload).encode()))))
        assert {mark: path[: len(added[mark])] for mark, path in arrived.items()} == added


@pytest.mark.parametrize("client", sorted(set(WIRES) - {"openai_chat"}))
def test_other_wires_never_see_them(client: str) -> None:
    rng, added = Random(client), dict[str, tuple[str, ...]]()
    exchange = Line(client, "openai_chat").open(write_request(client, make_request(rng, False)), False)
    payload = json.loads(write_answer("openai_chat", make_answer(rng), False))
    for name in ("usage",):  # its counts pass as the upstream sent them
        payload.pop(name)
    add_fields(payload, rng, added)
    assert added and MARK.encode() not in reply(exchange, json.dumps(payload).encode())


def chat(stream: bool, **more: Any) -> Exchange:
    asked = {"model": "m", "messages": [QUESTION], "tools": [TOOL], "stream": stream}
    return Line("openai_chat", "openai_chat", mode="text", **more).open(json.dumps(asked).encode(), stream)


def test_a_text_that_becomes_a_call_keeps_what_describes_the_answer() -> None:
    """Log probabilities describe what the model wrote, with the marks of its call."""
    text = '<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>'
    logprobs = {"content": [{"token": text, "logprob": -0.1}], "refusal": None}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "logprobs": logprobs}
    answer = {"id": "1", "system_fingerprint": "fp", "choices": [choice | {"finish_reason": "eos"}]}
    got = json.loads(reply(chat(False), json.dumps(answer).encode()))
    assert (got["system_fingerprint"], got["choices"][0]["logprobs"]) == ("fp", logprobs)
    assert (got["choices"][0]["finish_reason"], got["choices"][0]["message"]["content"]) == ("tool_calls", None)
    out, at = b"", open_stream(chat(True))
    for piece in [*text, ""]:
        token = {"content": [{"token": piece}]}
        choice = {
            "index": 0,
            "delta": {"content": piece},
            "logprobs": token,
            "finish_reason": None if piece else "stop",
        }
        event = {"id": "1", "object": "chat.completion.chunk", "system_fingerprint": "fp", "choices": [choice]}
        out += at.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    out += at.feed(b"data: [DONE]\n\n") + at.close()
    tokens = [one["token"] for event in read_stream(out) for choice in event["choices"]
              for one in (choice.get("logprobs") or {"content": []})["content"]]  # fmt: skip
    assert "".join(tokens) == text and all(event["system_fingerprint"] == "fp" for event in read_stream(out))


def test_words_of_the_vendor_are_kept_where_they_mean_the_same() -> None:
    message = {"role": "assistant", "content": None, "refusal": "No.", "reasoning": "Hm."}
    choice = {"index": 0, "message": message, "finish_reason": "eos", "native_finish_reason": "END"}
    got = json.loads(reply(chat(False), json.dumps({"id": "1", "choices": [choice]}).encode()))["choices"][0]
    assert (got["finish_reason"], got["native_finish_reason"]) == ("eos", "END")
    assert got["message"] == message | {"reasoning_content": None}
    body = {"content": [{"type": "text", "text": "Hi"}], "stop_reason": "stop_sequence", "stop_sequence": "x"}
    asked = {"model": "m", "max_tokens": 9, "messages": [QUESTION], "tools": [{"name": "read", "input_schema": {}}]}
    exchange = Line("anthropic_messages", "anthropic_messages").open(json.dumps(asked).encode(), False)
    got = json.loads(reply(exchange, json.dumps({"type": "message", "role": "assistant", **body}).encode()))
    assert (got["stop_reason"], got["stop_sequence"]) == ("stop_sequence", "x")


def test_settings_of_text_are_kept_in_whole_answers() -> None:
    """The encoder writes ``text`` in events only."""
    text = {"format": {"type": "text"}, "verbosity": "low"}
    asked = {"model": "m", "input": "hi", "tools": [{"type": "function", "name": "read", "parameters": {}}]}
    answer = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "text": text, "output": [
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}]}  # fmt: skip
    exchange = Line("openai_responses", "openai_responses").open(json.dumps(asked).encode(), False)
    assert json.loads(reply(exchange, json.dumps(answer).encode()))["text"] == text


def test_blocks_keep_their_borders_and_citations() -> None:
    cited = [{"type": "text", "text": text, "citations": [{"cited_text": text}]} for text in ("One.", "Two.")]
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    body = {"type": "message", "role": "assistant", "content": [search, *cited], "stop_reason": "end_turn"}
    asked = {"model": "m", "max_tokens": 9, "messages": [QUESTION], "tools": [{"name": "read", "input_schema": {}}]}
    exchange = Line("anthropic_messages", "anthropic_messages").open(json.dumps(asked).encode(), False)
    assert json.loads(reply(exchange, json.dumps(body).encode()))["content"] == [search, *cited]


def test_fields_of_a_call_that_is_not_delivered_are_dropped() -> None:
    known = level(calls=level("id", "type"))
    upstream = {"calls": [{"id": name, "type": "function", "x": name} for name in ("1", "2", "3")]}
    encoded = {"calls": [{"id": name, "type": "function"} for name in ("3", "1")]}
    got = json.loads(restore_fields(json.dumps(encoded).encode(), json.dumps(upstream).encode(), known))
    assert [call["x"] for call in got["calls"]] == ["3", "1"]


CACHED = {"cache_control": {"type": "ephemeral"}}


def test_fields_inside_a_request_that_is_healed_pass_on() -> None:
    """A call without a result makes the request be encoded anew."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}, "caller": {"type": "direct"}}
    asked: dict[str, Any] = {"model": "m", "max_tokens": 9, "x": 1, "system": [{"type": "text", "text": "Be brief."} | CACHED],
             "tools": [{"name": name, "input_schema": {"type": "object"}, "strict": True} | CACHED for name in ("read", "list")],
             "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"} | CACHED]},
                          {"role": "assistant", "content": [use]},
                          {"role": "user", "content": [{"type": "text", "text": "and?"} | CACHED]}]}  # fmt: skip
    line = Line("anthropic_messages", "anthropic_messages")
    sent = json.loads(line.open(json.dumps(asked).encode(), False).upstream_body)
    assert (sent["x"], sent["system"], sent["tools"]) == (1, asked["system"], asked["tools"])
    assert (
        sent["messages"][:2] == asked["messages"][:2]
        and sent["messages"][2]["content"][-1] == asked["messages"][2]["content"][0]
    )
    called = {"role": "assistant", "content": None, "reasoning_details": [{"data": "x"}],
              "tool_calls": [{"id": "a", "type": "function", "x": 2, "function": {"name": "read", "arguments": "{}"}}]}  # fmt: skip
    result = {"role": "tool", "tool_call_id": "b", "content": "seen"}
    chat = {"model": "m", "tools": [TOOL | {"y": 3}], "messages": [QUESTION | {"name": "Ann"}, called, result]}
    sent = json.loads(Line("openai_chat", "openai_chat").open(json.dumps(chat).encode(), False).upstream_body)
    assert sent["messages"][:2] == chat["messages"][:2] and sent["tools"] == chat["tools"]
    assert sent["messages"][2]["tool_call_id"] == "a"


WORDS = ("a ", "b% ", "\u4e16\u754c ", "\u2028", '"q" ', "<", "{", "\n", '},"finish_reason":null,"logprobs":', "<tool_call>",
         '{"name": "read", "arguments": {}}', "</tool_call>")  # fmt: skip
VALUES: tuple[Any, ...] = (
    None,
    -0.5,
    "\u4e16",
    {"content": [{"token": '"a"', "logprob": -1e-5}]},
    {"%s": {"delta": []}},
    [{"content": "a "}],
)


def write_chunks(rng: Random) -> list[bytes]:
    """Chunks with a text, and with fields of the vendor that change."""
    words, inside = (
        WORDS[: rng.choice([3, 7, len(WORDS)])],
        rng.sample(["logprobs", "x%d", "content"], rng.randint(0, 2)),
    )
    after = rng.sample(["obfuscation", "p%", "service_tier"], rng.randint(0, 2))
    ascii_only, separators, chunks = rng.random() < 0.5, rng.choice([(",", ":"), (", ", ": ")]), []
    for at in range(rng.randint(5, 40)):
        message = {"content": rng.choice(words)} if rng.random() < 0.95 else {"content": "c ", "y": at}
        choice = {"index": 0, "delta": message, **{name: rng.choice(VALUES) for name in inside}, "finish_reason": None}
        more = {name: [at, rng.choice(VALUES)] for name in after if rng.random() < 0.9}
        chunk = {"id": "1", "system_fingerprint": "f", "choices": [choice], **more}
        chunks.append(json.dumps(chunk, ensure_ascii=ascii_only, separators=separators).encode())
    end = {"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return [b"data: %b\n\n" % one for one in (*chunks, json.dumps(end).encode(), b"[DONE]")]


def test_chunks_that_match_a_pattern_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    matched = 0
    for seed in range(10 * TALKS):
        written, arrived = write_chunks(Random(f"pattern {seed}")), []
        for inferred in (range(0), vendor_fields.INFERRED):
            monkeypatch.setattr(vendor_fields, "INFERRED", inferred)
            opened = open_stream(chat(True, recovery_retries=1))
            assert isinstance(opened, TranslatedStream) and opened.fields is not None
            out = b"".join([opened.feed(chunk) for chunk in written[:-2]])
            matched += opened.fields.pattern is not None
            out += b"".join([opened.feed(chunk) for chunk in written[-2:]]) + opened.close()
            arrived.append([event | {"id": "", "created": 0} for event in read_stream(out)])
        assert arrived[0] == arrived[1], seed
    assert matched > TALKS


def test_chunks_with_changing_fields_are_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    chunks: list[dict[str, Any]] = [
        {"id": "1", "system_fingerprint": "f", "obfuscation": "x" * (at % 7),
         "choices": [{"index": 0, "delta": {"content": f"w{at} "}, "logprobs": {"content": [{"token": f"w{at}"}]}}]}
        for at in range(30)
    ]  # fmt: skip
    opened, parsed, out = open_stream(chat(True, recovery_retries=1)), list[bytes](), b""

    def note(data: bytes) -> dict[str, Any] | None:
        parsed.append(data)
        return parse_object(data)

    monkeypatch.setattr("toolglot.wires.vendor_fields.parse_object", note)
    for chunk in chunks:
        out += opened.feed(b"data: %b\n\n" % json.dumps(chunk).encode())
    assert len(parsed) < 10
    assert [event["obfuscation"] for event in read_stream(out)] == [chunk["obfuscation"] for chunk in chunks]
    assert [event["choices"][0]["logprobs"] for event in read_stream(out)] == [
        chunk["choices"][0]["logprobs"] for chunk in chunks
    ]


def ask_again(wire: str, asked: dict[str, Any]) -> Any:
    """The request that recovery sends after a call with a wrong argument."""
    exchange = Line(wire, wire, recovery_retries=1).open(json.dumps(asked).encode(), False)
    call: list[Event] = [
        CallStarted(0, "toolu_9", "read"),
        CallArguments(0, '{"pth": 1}'),
        CallEnded(0),
        Finished("tool_calls"),
    ]
    identity, request = ResponseIdentity("1", 1, "m"), ClientRequest(conversation=Conversation("m", ()), stream=False)
    reply(exchange, exchange.upstream_wire.encode_response([TextDelta("hm"), *call], identity, request))
    assert exchange.asks_again
    exchange.ask_again()
    return json.loads(exchange.upstream_body)


PATHS = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
LOOKED = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}, "caller": {"type": "direct"}}
SEEN = {
    "type": "tool_result",
    "tool_use_id": "toolu_1",
    "content": [{"type": "text", "text": "seen"} | CACHED],
} | CACHED
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic_messages": ("messages", {
        "model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "Be brief."} | CACHED],
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
                  {"name": "read", "input_schema": PATHS, "strict": True} | CACHED],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"} | CACHED]},
                     {"role": "assistant", "content": [LOOKED]}, {"role": "user", "content": [SEEN]}]}),
    "openai_chat": ("messages", {
        "model": "m",
        "tools": [{"type": "function", "y": 3, "function": {"name": "read", "parameters": PATHS, "strict": True}}],
        "messages": [QUESTION | {"name": "Ann"}, {"role": "assistant", "content": "Yes?", "reasoning_details": [{"data": "x"}]},
                     {"role": "user", "content": [{"type": "text", "text": "Go on."} | CACHED]}]}),
    "openai_responses": ("input", {
        "model": "m", "tools": [{"type": "web_search", "filters": {"a": 1}},
                                {"type": "function", "name": "list", "parameters": PATHS, "defer_loading": True},
                                {"type": "function", "name": "read", "parameters": PATHS, "strict": True}],
        "input": [{"role": "user", "content": "hi"},
                  {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
                      {"type": "output_text", "text": "Yes?", "annotations": [{"type": "url_citation"}], "logprobs": []}]},
                  {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on.", "x": 1}]}]}),
    "gemini": ("contents", {
        "systemInstruction": {"parts": [{"text": "Be brief.", "x": 1}]},
        "tools": [{"functionDeclarations": [{"name": "read", "behavior": "BLOCKING", "parametersJsonSchema": PATHS}]},
                  {"googleSearch": {}}],
        "contents": [{"role": "user", "parts": [{"text": "hi", "x": 1}]}, {"role": "model", "parts": [{"text": "Yes?"}]},
                     {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "n"}}]}]}),
    "ollama": ("messages", {
        "model": "m", "stream": False,
        "tools": [{"type": "function", "function": {"name": "read", "parameters": PATHS, "x": 2}}],
        "messages": [{"role": "user", "content": "hi", "x": 1}, {"role": "assistant", "content": "Yes?", "x": 2},
                     {"role": "user", "content": "Go on."}]}),
}  # fmt: skip


@pytest.mark.parametrize("wire", REQUESTS)
def test_fields_inside_a_request_that_recovery_repeats_pass_on(wire: str) -> None:
    messages, asked = REQUESTS[wire]
    sent = ask_again(wire, asked)
    assert contains(sent["tools"], asked["tools"])
    before = wire == "ollama"  # a message that demands the call
    assert len(sent[messages]) > len(asked[messages]) + before
    pairs = zip(sent[messages][before:], asked[messages], strict=False)
    assert all(contains(one, other) or (one["content"], other["content"]) == HI for one, other in pairs)
    assert (sent.get("system"), sent.get("systemInstruction")) == (asked.get("system"), asked.get("systemInstruction"))


HI = [{"type": "input_text", "text": "hi"}], "hi"
"""A text of one wire in its longer form."""


def contains(sent: Any, asked: Any) -> bool:
    """Whether an object has all that was asked, with the same values."""
    if isinstance(sent, dict) and isinstance(asked, dict):
        return all(name in sent and contains(sent[name], value) for name, value in asked.items())
    if isinstance(sent, list) and isinstance(asked, list):
        return len(sent) == len(asked) and all(map(contains, sent, asked))
    return bool(sent == asked)


@pytest.mark.parametrize("stream", [False, True])
def test_fields_of_other_answers_are_not_those_of_the_first(stream: bool) -> None:
    """With ``n`` = 2 there are two; the client gets the first one."""
    name, choices = "delta" if stream else "message", []
    for index, text in enumerate(("One.", "Two.")):
        message = {"role": "assistant", "content": text, "x": text}
        choices.append(
            {"index": index, name: message, "logprobs": {"content": [{"token": text}]}, "finish_reason": "stop"}
        )
    answers = [{"id": "1", "choices": [choice]} for choice in choices] if stream else [{"id": "1", "choices": choices}]
    raw = [json.dumps(answer).encode() for answer in answers]
    if stream:
        at = open_stream(chat(True))
        got = read_stream(at.feed(b"".join(b"data: %b\n\n" % one for one in raw) + b"data: [DONE]\n\n") + at.close())
    else:
        got = [json.loads(reply(chat(False), raw[0]))]
    assert "One." in str(got) and "Two." not in str(got)


def test_tokens_are_counted_once() -> None:
    """Those of the results of Gemini's own tools are input, too."""
    usage = {"promptTokenCount": 1, "toolUsePromptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 6}
    candidate = {"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}
    asked = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "read"}]}],
    }
    exchange = Line("gemini", "gemini", mode="text").open(json.dumps(asked).encode(), False)
    raw = json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()
    assert json.loads(reply(exchange, raw))["usageMetadata"] == usage
