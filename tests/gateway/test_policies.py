"""What a client receives of an answer, over all wires: every call, native calls before leaked ones, never an empty success."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from support.line import Line, sum_up
from support.rows import in_one_test
from support.wiring import USAGE, call

from toolglot.core.conversation import Conversation, Message, Sampling, Text, Tool, Tools
from toolglot.core.errors import ToolglotError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
    merge_deltas,
)
from toolglot.gateway.exchange import Exchange
from toolglot.wires import all_wires, client_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

WIRES = sorted(client_wires())
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = Tools(Tool(name, "", SCHEMA) for name in ("read", "write"))
DONE = Finished("stop", USAGE)
CALLED = Finished("tool_calls", USAGE)


def leak(name: str = "write", path: str = "b") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{"path": "{path}"}}}}\n</tool_call>'


def element(path: str) -> str:
    return f"<read>\n<path>{path}</path>\n</read>"


def ask(line: Line, stream: bool, parallel: bool | None = None) -> Exchange:
    asked = Message("user", (Text("go"),))
    return line.ask(Conversation("m", (asked,), TOOLS, sampling=Sampling(parallel_calls=parallel)), stream)


def answer_with(line: Line, exchange: Exchange, events: Iterable[Event]) -> list[Event]:
    """What the client reads; an error reply is a failure."""
    try:
        return list(merge_deltas(line.answer(exchange, list(events))))
    except ToolglotError as error:
        return [Failed(error.code, error.message)]


def pieces(text: str, size: int = 7) -> list[Event]:
    return [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]


EVERY = pytest.mark.parametrize(("client", "upstream", "stream"), list(product(WIRES, WIRES, [False, True])))

# -- every well-formed call is delivered -------------------------------------------------------------------------------

TWO = "\n".join(element(path) for path in "ab")
BOTH = [("read", {"path": "a"}), ("read", {"path": "b"})]
ONE_CALL = {"openai_chat", "openai_responses", "anthropic_messages"}
"""Wires whose clients can ask for one call at most."""


@EVERY
@in_one_test("mode", ["text", "native"])
def test_every_call_is_delivered_whatever_the_prompt_asks_for(
    mode: str, client: str, upstream: str, stream: bool
) -> None:
    line = Line(client, upstream, mode)
    exchange = ask(line, stream)
    assert not exchange.route.parallel and not exchange.route.single
    _, calls, finish = sum_up(answer_with(line, exchange, [*pieces(TWO), DONE]))
    assert (calls, finish) == (BOTH, "tool_calls")
    exchange = ask(line, stream)
    _, calls, _ = sum_up(answer_with(line, exchange, [*call(0, "read"), *call(1, "write"), CALLED]))
    assert [name for name, _ in calls] == ["read", "write"]


@EVERY
@in_one_test("mode", ["text", "native"])
def test_one_call_is_delivered_if_the_request_asks_for_one(mode: str, client: str, upstream: str, stream: bool) -> None:
    if client not in ONE_CALL:
        return
    line = Line(client, upstream, mode)
    for events in ([*pieces(TWO), DONE], [*call(0, "read"), *call(1, "write"), CALLED]):
        exchange = ask(line, stream, parallel=False)
        _, calls, _ = sum_up(answer_with(line, exchange, events))
        assert len(calls) == 1 and exchange.recorder.rejected == ["extra_call"]


@pytest.mark.parametrize(("setting", "asked", "expected"), [("false", None, 1), ("false", True, 2), ("true", None, 2)])
def test_the_setting_applies_if_the_request_has_no_preference(setting: str, asked: bool | None, expected: int) -> None:
    line = Line("openai_chat", "openai_chat", "text", parallel_calls=setting)
    _, calls, _ = sum_up(answer_with(line, ask(line, False, asked), [TextDelta(TWO), DONE]))
    assert len(calls) == expected


# -- native calls before calls in the text -----------------------------------------------------------------------------

LEAKS: dict[str, tuple[str, str]] = {
    "before": (f"I write.\n\n{leak()}", ""),
    "behind": ("I read.\n\n", leak()),
    "both": (f"{leak()}\nand", f"\n{leak('read')}"),
    "the same call": (leak("read", "ä\\n"), ""),
    "cut by the call": (leak()[:40], leak()[40:]),
    "a tail that may be a mark": ("I read <", "tool"),
    "a blank tail": ("I read.\n\n", ""),
    "bare JSON": ('So:\n\n{"name": "write", "arguments": {"path": "b"}}', ""),
    "with a made-up result": (f"{leak()}\n<tool_response>\nok\n</tool_response>\nDone.", ""),
    "rejected": ('Now\n\n<tool_call>\n{"name": "write", "arguments": {"path": }}\n</tool_call>', ""),
    "in ticks": ("See ``", "` x"),
}


@EVERY
@in_one_test("case", sorted(LEAKS))
def test_a_leak_beside_a_native_call_is_text(case: str, client: str, upstream: str, stream: bool) -> None:
    line = Line(client, upstream)
    exchange = ask(line, stream)
    before, behind = LEAKS[case]
    events = answer_with(line, exchange, [*pieces(before), *call(0, "read"), *pieces(behind), CALLED])
    text, calls, finish = sum_up(events)
    assert (text, finish) == (before + behind, "tool_calls")
    assert calls == [("read", {"path": "ä\n"})]
    watch = exchange.recorder
    assert (watch.calls, watch.tools, watch.read_as) == (1, ["read"], [])


@in_one_test("client", ["anthropic_messages", "openai_responses", "gemini"])
@in_one_test("stream", [False, True])
@in_one_test("before", ["I read.\n\n", "I read <", f"Now.\n{leak()}\n"])
def test_text_stays_before_the_native_call_that_followed_it(before: str, client: str, stream: bool) -> None:
    line = Line(client, "anthropic_messages")
    events = answer_with(line, ask(line, stream), [*pieces(before), *call(0, "read"), TextDelta("Done."), CALLED])
    order = [type(event) for event in events if isinstance(event, TextDelta | CallStarted)]
    assert order == [TextDelta, CallStarted, TextDelta]
    assert [event.text for event in events if isinstance(event, TextDelta)] == [before, "Done."]


@pytest.mark.parametrize("stream", [False, True])
def test_calls_that_stay_text_are_recorded(stream: bool) -> None:
    line = Line("openai_chat", "openai_chat")
    exchange = ask(line, stream)
    answer_with(line, exchange, [*pieces(leak()), *call(0, "read"), *pieces(leak()), CALLED])
    watch = exchange.recorder
    assert watch.outcomes["rescue"] == {"left_as_text": 2}
    assert "2 calls in the text beside native ones stay text: hermes" in watch.notes


@EVERY
def test_a_leak_without_a_native_call_is_delivered_in_its_place(client: str, upstream: str, stream: bool) -> None:
    line = Line(client, upstream)
    exchange = ask(line, stream)
    events = answer_with(line, exchange, [*pieces(f"I write.\n\n{leak()}\n\nThen I wait."), DONE])
    text, calls, finish = sum_up(events)
    assert (calls, finish) == ([("write", {"path": "b"})], "tool_calls")
    assert text.split() == ["I", "write.", "Then", "I", "wait."]
    assert exchange.recorder.read_as == ["hermes"]


def test_a_call_rehearsed_in_thoughts_stays_a_thought() -> None:
    thought = f"<think>\nPerhaps {leak()}\n</think>\n\n"
    for client in ("openai_chat", "anthropic_messages"):
        line = Line(client, "openai_chat")
        events = answer_with(line, ask(line, True), [*pieces(thought), *call(0, "read"), CALLED])
        text, calls, _ = sum_up(events)
        assert "tool_call" not in text and calls == [("read", {"path": "ä\n"})]
        assert leak() in "".join(event.text for event in events if isinstance(event, ReasoningDelta))


@pytest.mark.parametrize("upstream", WIRES)
def test_a_native_answer_holds_nothing_back(upstream: str) -> None:
    """Text and arguments of an upstream that does not leak leave with the piece that brought them."""
    from toolglot.gateway.response_streams import open_stream

    line = Line("anthropic_messages", upstream)
    exchange = ask(line, True)
    stream = open_stream(exchange)
    writer = all_wires()[upstream].open_encoder(
        ResponseIdentity("1", 1, "m"), ClientRequest(conversation=Conversation("m", ()), stream=True, wants_usage=True)
    )
    for word in ("I ", "read ", "it", " now."):
        assert word.encode() in stream.feed(writer.write([TextDelta(word)]))
    sent = stream.feed(writer.write(call(0, "read", '{"path":"abc"}')))
    assert b"bc" in sent


# -- never an empty success --------------------------------------------------------------------------------------------

EMPTY: dict[str, list[Event]] = {
    "nothing": [DONE],
    "nothing, though the finish reason is tool_calls": [CALLED],
    "reasoning alone": [ReasoningDelta("Hm."), DONE],
    "white space": [TextDelta(" \n"), TextDelta("\n"), DONE],
    "white space behind reasoning": [ReasoningDelta("Hm."), TextDelta("\n\n"), DONE],
}


@EVERY
@in_one_test("mode", ["text", "native"])
@in_one_test("case", sorted(EMPTY))
def test_an_empty_answer_is_an_error(case: str, mode: str, client: str, upstream: str, stream: bool) -> None:
    line = Line(client, upstream, mode)
    exchange = ask(line, stream)
    events = answer_with(line, exchange, EMPTY[case])
    assert isinstance(events[-1], Failed), events
    assert exchange.recorder.error in ("empty_answer", "upstream_invalid") or not stream


def broken_reply(wire: str, arguments: str, text: str = "", finish: bool = True) -> bytes:
    """A whole answer with a native call whose arguments are this text, for wires that carry them as text."""
    if wire == "openai_chat":
        made = {"id": "c", "type": "function", "function": {"name": "read", "arguments": arguments}}
        message = {"role": "assistant", "content": text or None, "tool_calls": [made]}
        return json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()
    if wire == "openai_responses":
        item = {"type": "function_call", "call_id": "c", "name": "read", "arguments": arguments, "status": "completed"}
        item_before = {"type": "message", "content": [{"type": "output_text", "text": text}]}
        output = [item_before, item] if text else [item]
        return json.dumps({"object": "response", "status": "completed", "output": output}).encode()
    if wire == "anthropic_messages":
        block = {"type": "tool_use", "id": "c", "name": "read", "input": arguments}
        content = [{"type": "text", "text": text}, block] if text else [block]
        return json.dumps({"type": "message", "content": content, "stop_reason": "tool_use"}).encode()
    if wire == "gemini":
        parts: list[Any] = [{"text": text}] if text else []
        parts.append({"functionCall": {"name": "read", "args": arguments}})
        return json.dumps({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}).encode()
    made = {"function": {"name": "read", "arguments": arguments}}
    message = {"role": "assistant", "content": text, "tool_calls": [made]}
    return json.dumps({"model": "m", "message": message, "done": True, "done_reason": "stop"}).encode()


@in_one_test(("client", "stream"), list(product(WIRES, [False, True])))
def test_a_content_filter_is_reported_as_such_or_is_an_error(client: str, stream: bool) -> None:
    """An Ollama client knows no such reason; it would take the empty answer for a success."""
    line = Line(client, "openai_chat", "native")
    exchange = ask(line, stream)
    events = answer_with(line, exchange, [Finished("content_filter")])
    assert sum_up(events)[2] == ("failed" if client == "ollama" else "content_filter")
    assert (exchange.recorder.error or exchange.recorder.finish) == "content_filter"


BROKEN = {
    "cut": '{"path": "a',
    "no JSON": "{path: a}",
    "words": "the file a",
    "one comma too many": '{"path": "a",}',
    "a list": '["a"]',
    "a number": "1",
    "two objects": '{"path": "a"}{"path": "b"}',
}


@in_one_test(("client", "upstream"), list(product(WIRES, WIRES)))
@in_one_test("case", sorted(BROKEN))
def test_native_arguments_that_are_no_json_are_an_error(case: str, client: str, upstream: str) -> None:
    line = Line(client, upstream)
    exchange = ask(line, False)
    with pytest.raises(ToolglotError, match="read") as raised:
        line.carry(exchange, broken_reply(upstream, BROKEN[case]))
    assert raised.value.code == exchange.recorder.error
    assert exchange.recorder.error in ("malformed_call", "truncated_call")
    assert exchange.recorder.rejected in (["malformed"], ["truncated"]) and not exchange.recorder.calls


@in_one_test(("client", "upstream"), list(product(WIRES, ["openai_chat", "openai_responses"])))
def test_a_cut_call_beside_text_is_recorded_and_never_looks_complete(client: str, upstream: str) -> None:
    line = Line(client, upstream)
    exchange = ask(line, False)
    events = line.carry(exchange, broken_reply(upstream, BROKEN["cut"], "I read."))
    assert sum_up(events) == (f"I read.\n\n({CUT})", [], "length")
    assert exchange.recorder.rejected == ["truncated"]


@in_one_test("client", WIRES)
@in_one_test("upstream", ["openai_chat", "openai_responses", "anthropic_messages"])
@in_one_test("case", ["no JSON", "words", "a list", "two objects"])
def test_a_stream_with_arguments_that_are_no_json_fails(case: str, client: str, upstream: str) -> None:
    line = Line(client, upstream)
    exchange = ask(line, True)
    made: list[Event] = [CallStarted(0, "c", "read"), CallArguments(0, BROKEN[case]), CallEnded(0)]
    events = answer_with(line, exchange, [TextDelta("I read."), *made, CALLED])
    assert isinstance(events[-1], Failed) and not any(isinstance(event, CallEnded) for event in events)
    assert (exchange.recorder.error, exchange.recorder.rejected) == ("malformed_call", ["malformed"])


@in_one_test("client", WIRES)
@in_one_test("upstream", ["openai_chat", "openai_responses", "anthropic_messages"])
@in_one_test("text", ["", "\n", "I read."])
def test_a_stream_with_a_cut_call_fails_if_a_part_of_it_was_sent(text: str, client: str, upstream: str) -> None:
    line = Line(client, upstream)
    exchange = ask(line, True)
    made: list[Event] = [CallStarted(0, "c", "read"), CallArguments(0, BROKEN["cut"]), CallEnded(0)]
    events = answer_with(line, exchange, [*pieces(text), *made, CALLED])
    assert not any(isinstance(event, CallEnded) for event in events) and exchange.recorder.rejected == ["truncated"]
    if text.strip() and all_wires()[client].sends_whole_calls:
        assert sum_up(events) == (f"{text}\n\n({CUT})", [], "length") and not exchange.recorder.error
    else:
        assert (type(events[-1]), exchange.recorder.error) == (Failed, "truncated_call")


@in_one_test(("client", "upstream"), list(product(WIRES, WIRES)))
@in_one_test("written", ["", "{}", "[]", "null"])
def test_no_arguments_are_no_defect(written: str, client: str, upstream: str) -> None:
    line = Line(client, upstream)
    exchange = ask(line, False)
    events = line.carry(exchange, broken_reply(upstream, written))
    ((name, arguments),) = sum_up(events)[1]
    assert (name, arguments or {}) == ("read", {}) and exchange.recorder.calls == 1


@in_one_test(("client", "upstream"), list(product(WIRES, WIRES)))
def test_line_breaks_in_arguments_are_not_escaped_by_every_server(client: str, upstream: str) -> None:
    line = Line(client, upstream)
    events = line.carry(ask(line, False), broken_reply(upstream, '{"path": "a\nb"}'))
    made = "".join(event.fragment for event in events if isinstance(event, CallArguments))
    assert json.loads(made, strict=False) == {"path": "a\nb"}


@in_one_test(("client", "upstream"), list(product(WIRES, WIRES)))
@in_one_test("mode", ["text", "native"])
@in_one_test("text", ["", "I read.", leak()])
def test_a_stream_without_a_finish_fails(text: str, mode: str, client: str, upstream: str) -> None:
    from toolglot.gateway.response_streams import open_stream

    line = Line(client, upstream, mode)
    exchange = ask(line, True)
    stream, reader = open_stream(exchange), line.client.open_decoder(line.source.token)
    writer = line.upstream.open_encoder(
        ResponseIdentity("1", 1, "m"), ClientRequest(conversation=Conversation("m", ()), stream=True, wants_usage=True)
    )
    sent = stream.feed(writer.write(pieces(text))) + stream.close()
    events = [*reader.feed(sent), *reader.close()]
    assert isinstance(events[-1], Failed) and exchange.recorder.error == "upstream_closed"


@pytest.mark.parametrize("status", ["in_progress", "cancelled", "failed", "queued"])
def test_a_response_that_is_not_finished_is_an_error(status: str) -> None:
    line = Line("openai_chat", "openai_responses")
    text = {"type": "message", "content": [{"type": "output_text", "text": "I"}]}
    body = json.dumps({"object": "response", "status": status, "output": [text]}).encode()
    with pytest.raises(ToolglotError):
        line.carry(ask(line, False), body)


CUT = "The call of read was cut off before it was complete, and was not made."
MISSING = "The call of open was not made: argument mode: found nothing, expected text."
OPEN = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "mode": {"type": "string"}},
    "required": ["path", "mode"],
}
REFUSED_OPEN = '<tool_call>\n{"name": "open", "arguments": {"path": "a"}}\n</tool_call>'
CUT_OPEN = REFUSED_OPEN[:50]


@in_one_test(("client", "upstream"), list(product(WIRES, WIRES)))
def test_a_call_that_was_refused_is_text_in_a_whole_answer(client: str, upstream: str) -> None:
    """Its name and some of its arguments were fine, so a stream would have begun with it."""
    line = Line(client, upstream, "text")
    conversation = Conversation("m", (Message("user", (Text("go"),)),), Tools([Tool("open", "", OPEN)]))
    exchange = line.ask(conversation, False)
    text = f"Now:\n{REFUSED_OPEN}"
    events = answer_with(line, exchange, [TextDelta(text), DONE])
    assert sum_up(events) == (f"{text}\n\n({MISSING})", [], "stop")
    assert exchange.recorder.rejected == ["missing_argument"]
    assert not any(isinstance(event, CallStarted) for event in events)


@in_one_test(("client", "upstream"), list(product(WIRES, WIRES)))
@in_one_test("cut", [False, True])
def test_a_refused_call_in_a_stream_is_text_or_a_failure(client: str, upstream: str, cut: bool) -> None:
    """Text where the wire has calls only whole, so that nothing of it was sent; else an error with the reason, or the
    limit that cut it."""
    line = Line(client, upstream, "text")
    conversation = Conversation("m", (Message("user", (Text("go"),)),), Tools([Tool("open", "", OPEN)]))
    exchange = line.ask(conversation, True)
    text = CUT_OPEN if cut else REFUSED_OPEN
    events = answer_with(
        line,
        exchange,
        [TextDelta("Now:\n"), *(TextDelta(piece) for piece in text), Finished("length" if cut else "stop")],
    )
    why = CUT.replace("read", "open") if cut else MISSING
    assert exchange.recorder.rejected == (["truncated"] if cut else ["missing_argument"])
    if all_wires()[client].sends_whole_calls:
        assert sum_up(events) == (f"Now:\n{text}\n\n({why})", [], "length" if cut else "stop")
        assert not any(isinstance(event, CallStarted) for event in events)
        return
    assert not any(isinstance(event, CallEnded) for event in events)
    if cut:
        assert sum_up(events)[1:] == ([], "length") and not exchange.recorder.error
    else:
        assert (
            isinstance(events[-1], Failed) and why in events[-1].message and exchange.recorder.error == "refused_call"
        )


@pytest.mark.parametrize("client", WIRES)
def test_a_refused_call_that_leaked_beside_native_tools_is_text(client: str) -> None:
    """There a call in the text waits for the end of the answer, so nothing of it was sent."""
    line = Line(client, "openai_chat", "native")
    conversation = Conversation("m", (Message("user", (Text("go"),)),), Tools([Tool("open", "", OPEN)]))
    events = answer_with(line, line.ask(conversation, True), [TextDelta("Now:\n"), *map(TextDelta, REFUSED_OPEN), DONE])
    assert sum_up(events) == (f"Now:\n{REFUSED_OPEN}\n\n({MISSING})", [], "stop")


def test_a_mentioned_mark_passes_without_a_note() -> None:
    line = Line("openai_chat", "openai_chat", "text")
    conversation = Conversation("m", (Message("user", (Text("go"),)),), Tools([Tool("open", "", OPEN)]))
    text = "Calls begin with <tool_call> and so on."
    assert sum_up(answer_with(line, line.ask(conversation, True), [TextDelta(text), DONE])) == (text, [], "stop")
