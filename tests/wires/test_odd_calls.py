"""Calls that servers send in an odd form: without a name, with an id that comes twice, in pieces, without an end."""

from __future__ import annotations

import json
from typing import Any

from support.line import Line
from support.rows import in_one_test
from support.wiring import new_ids, read_pieces

from toolglot.core.conversation import Conversation, Message, Text, Tool
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    Reason,
    ReasoningDelta,
    TextDelta,
    merge_deltas,
)
from toolglot.wires import all_wires
from toolglot.wires.json_fields import find_fault
from toolglot.wires.protocol import ToolAwareDecoder

CITY = '{"city":"Paris"}'
Calls = list[tuple[str, str, str]]


def events_of(*payloads: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in payloads)


def gemini(*parts: dict[str, Any], finish: str = "STOP") -> bytes:
    """A stream with one part in each event."""
    last = {"candidates": [{"finishReason": finish}]}
    return events_of(*({"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts), last)


def ollama(*calls: dict[str, Any]) -> bytes:
    lines = [{"message": {"role": "assistant", "tool_calls": [call]}, "done": False} for call in calls]
    return b"".join(json.dumps(line).encode() + b"\n" for line in [*lines, {"done": True, "done_reason": "stop"}])


def messages(*blocks: dict[str, Any], stops: bool = True, reason: str = "tool_use", text: str = CITY) -> bytes:
    """A stream of blocks, each with its input in one delta."""
    payloads: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "m", "content": []}}]
    for at, block in enumerate(blocks):
        delta = {"type": "input_json_delta", "partial_json": text}
        payloads.append({"type": "content_block_start", "index": at, "content_block": block})
        payloads.append({"type": "content_block_delta", "index": at, "delta": delta})
        payloads += [{"type": "content_block_stop", "index": at}] if stops else []
    payloads += [{"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]
    return events_of(*payloads)


def responses(*items: dict[str, Any]) -> bytes:
    done = [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(items)]
    created = {"type": "response.created", "response": {"id": "r"}}
    return events_of(created, *done, {"type": "response.completed", "response": {"id": "r", "output": list(items)}})


def chat(*deltas: dict[str, Any], finish: str = "tool_calls") -> bytes:
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    return events_of(*({"choices": [{"index": 0, "delta": delta}]} for delta in deltas), last) + b"data: [DONE]\n\n"


def chat_call(arguments: str, name: str | None = None) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "function": {"name": name, "arguments": arguments}}]}


def write_calls(wire: str, *calls: tuple[str, str]) -> bytes:
    """A stream with calls of the same arguments, given by id and name."""
    arguments = json.loads(CITY)
    match wire:
        case "gemini":
            return gemini(*({"functionCall": {"id": one, "name": name, "args": arguments}} for one, name in calls))
        case "ollama":
            return ollama(*({"id": one, "function": {"name": name, "arguments": arguments}} for one, name in calls))
        case "anthropic_messages":
            return messages(*({"type": "tool_use", "id": one, "name": name, "input": {}} for one, name in calls))
    kind = {"type": "function_call", "arguments": CITY, "status": "completed"}
    return responses(*({**kind, "call_id": one, "name": name} for one, name in calls))


def decode(wire: str, stream: bytes, size: int = 0) -> tuple[list[Event], bool]:
    reader = all_wires()[wire].open_decoder(new_ids())
    events = read_pieces(reader, stream, size)
    return events, reader.tidy


def calls_of(events: list[Event]) -> Calls:
    """The calls that were completed: id, name, arguments."""
    ended = {event.index for event in events if isinstance(event, CallEnded)}
    texts = {event.index: event.fragment for event in events if isinstance(event, CallArguments)}
    started = [event for event in events if isinstance(event, CallStarted) and event.index in ended]
    return [(call.id, call.name, texts[call.index]) for call in started]


OTHERS = ("anthropic_messages", "gemini", "ollama", "openai_responses")


@in_one_test("size", [0, 1])
@in_one_test("wire", OTHERS)
def test_a_call_without_a_name_is_text(wire: str, size: int) -> None:
    events, tidy = decode(wire, write_calls(wire, ("a", ""), ("b", "get_weather")), size)
    assert calls_of(events) == [("b", "get_weather", CITY)]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == CITY
    assert not tidy


@in_one_test("size", [0, 1])
@in_one_test("wire", OTHERS)
def test_calls_with_the_same_id_get_different_ones(wire: str, size: int) -> None:
    events, tidy = decode(wire, write_calls(wire, ("a", "get_weather"), ("a", "get_weather")), size)
    assert [one for one, *_ in calls_of(events)] == ["a", "made_1"]
    assert not tidy


@in_one_test(
    ("reason", "text", "ended"),
    [
        *((reason, text, True) for reason, text in (("tool_use", CITY), ("end_turn", CITY), ("tool_use", ""))),
        *((reason, CITY, False) for reason in ("max_tokens", "refusal")),
        ("tool_use", '{"city":"Pa', False),
    ],
)
def test_a_block_without_an_end_ends_with_the_answer(reason: str, text: str, ended: bool) -> None:
    block = {"type": "tool_use", "id": "a", "name": "get_weather", "input": {}}
    events, tidy = decode("anthropic_messages", messages(block, stops=False, reason=reason, text=text))
    assert any(isinstance(event, CallEnded) for event in events) is ended
    assert not (ended and tidy)


def piece(path: str, more: bool = True, **value: Any) -> dict[str, Any]:
    return {"functionCall": {"partialArgs": [{"jsonPath": path, **value}], "willContinue": more}}


BEGIN = {"functionCall": {"name": "get_weather", "id": "a", "willContinue": True}}
END: dict[str, Any] = {"functionCall": {}}


@in_one_test("size", [0, 7])
@in_one_test(
    ("parts", "arguments"),
    [
        ([BEGIN, piece("$.city", stringValue="Pa"), piece("$.city", stringValue="ris"), END], CITY),
        ([BEGIN, piece("$.city", stringValue="Pa"), piece("$.city", more=False, stringValue="ris")], CITY),
        ([BEGIN, piece("$.city", stringValue="Paris")], CITY),
        ([BEGIN, END], "{}"),
        (
            [BEGIN, piece("$.a[0].b", numberValue=1.5), piece("$.a[1]['c']", boolValue=False), piece("$.n"), END],
            '{"a":[{"b":1.5},{"c":false}],"n":null}',
        ),
    ],
)
def test_arguments_that_come_in_pieces_are_joined(parts: list[dict[str, Any]], arguments: str, size: int) -> None:
    events, _ = decode("gemini", gemini(*parts), size)
    assert calls_of(events) == [("a", "get_weather", arguments)]


@in_one_test("path", ["", "city", "$", "$.a[5]", "$[0]", "$.a b]"])
def test_a_piece_without_a_place_rejects_the_call(path: str) -> None:
    events, tidy = decode("gemini", gemini(BEGIN, piece(path, stringValue="x"), END))
    assert calls_of(events) == [] and not tidy


def test_a_call_in_pieces_that_the_limit_cuts_is_not_made() -> None:
    events, _ = decode("gemini", gemini(BEGIN, piece("$.city", stringValue="Pa"), finish="MAX_TOKENS"))
    assert not any(isinstance(event, CallStarted) for event in events)
    assert isinstance(events[-1], Finished) and events[-1].reason == "length"


@in_one_test("arguments", ['{"a":NaN}', '{"a":[1,-Infinity]}'])
def test_numbers_that_are_no_json_make_arguments_malformed(arguments: str) -> None:
    assert find_fault(arguments) is Reason.MALFORMED


PRETTY = '{\n\t"a": "b\\\\",\r\n\t"c": "\\""\n}'
RAW = '{\n"a":"x\ny\t\\"\n","b\r":"\\\\","c":"\x00\u2028é"}'
ESCAPED = '{\n"a":"x\\ny\\t\\"\\n","b\\r":"\\\\","c":"\\u0000\u2028é"}'


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def stream_arguments(wire: str, pieces: list[str]) -> bytes:
    """A stream with one call whose arguments arrive in these pieces."""
    match wire:
        case "openai_chat":
            return chat(chat_call("", "f"), *(chat_call(fragment) for fragment in pieces))
        case "anthropic_messages":
            block = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": fragment} for fragment in pieces]
            payloads: list[dict[str, Any]] = [{"type": "content_block_start", "index": 0, "content_block": block}]
            payloads += [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas]
            end: list[dict[str, Any]] = [{"type": "content_block_stop", "index": 0}]
            end += [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
            return events_of({"type": "message_start", "message": {"id": "m", "content": []}}, *payloads, *end)
    item = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "", "status": "in_progress"}
    done = {**item, "arguments": "".join(pieces), "status": "completed"}
    return events_of(
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": one} for one in pieces),
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {"id": "r", "output": [done]}},
    )


@in_one_test("size", [1, 2, 3, 7, 100])
@in_one_test(("given", "expected"), [(RAW, ESCAPED), (PRETTY, PRETTY)])
@in_one_test("wire", ["openai_chat", "anthropic_messages", "openai_responses"])
def test_raw_control_characters_in_strings_are_escaped(wire: str, given: str, expected: str, size: int) -> None:
    """Official clients fail on them. Blanks between values stay."""
    reader = all_wires()[wire].open_decoder(new_ids())
    events: list[Event] = []
    for frame in stream_arguments(wire, cut(given, size)).split(b"\n\n"):
        events += reader.feed(frame + b"\n\n")
    assert [arguments for *_, arguments in calls_of(list(merge_deltas(events)))] == [expected]
    assert given == expected or not reader.tidy
    assert json.loads(expected)


def test_a_call_in_the_older_field_is_read() -> None:
    older = {"name": "get_weather", "arguments": CITY}
    pieces = [{"function_call": {"name": "get_weather", "arguments": ""}}, {"function_call": {"arguments": CITY}}]
    both = {"function_call": older, "tool_calls": [{"index": 0, "id": "a", "function": older}]}
    for deltas in (pieces, [both], [{**pieces[0], "content": []}, pieces[1]]):
        events, _ = decode("openai_chat", chat(*deltas, finish="function_call"))
        assert [call[1:] for call in calls_of(events)] == [("get_weather", CITY)]
    whole = {"choices": [{"message": {"role": "assistant", "content": None, "function_call": older}}]}
    events = list(all_wires()["openai_chat"].decode_response(json.dumps(whole).encode(), new_ids()).events)
    assert [call[1:] for call in calls_of(events)] == [("get_weather", CITY)]


@in_one_test("thinking", [[{"type": "text", "text": "So."}], "So."])
def test_thoughts_among_the_parts_of_the_content_are_reasoning(thinking: object) -> None:
    parts = [{"type": "thinking", "thinking": thinking, "closed": True}, {"type": "text", "text": "Done."}]
    streamed, _ = decode("openai_chat", chat({"content": parts[:1]}, {"content": parts[1:]}, finish="stop"))
    whole = json.dumps({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}).encode()
    for events in (streamed, all_wires()["openai_chat"].decode_response(whole, new_ids()).events):
        assert [event.text for event in events if isinstance(event, ReasoningDelta)] == ["So."]
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["Done."]


@in_one_test("size", [0, 1])
@in_one_test(
    ("pieces", "called"),
    [
        ([("get_", ""), ("weather", ""), ("", CITY)], "get_weather"),
        ([("get_wea", CITY[:4]), ("ther", CITY[4:])], "get_weather"),
        ([("get_", ""), ("get_weather", CITY)], "get_weather"),
        ([("get", ""), ("", CITY)], "get"),
        ([("get", CITY)], "get"),
        ([("get_weather", ""), ("get_weather", CITY)], "get_weather"),
        ([("get_weather", ""), ("_now", CITY)], "get_weather"),
        ([("get", "")], "get"),
    ],
)
def test_a_name_that_comes_in_pieces_is_joined(pieces: list[tuple[str, str]], called: str, size: int) -> None:
    """Whole names are started at once; only what may be the beginning of an offered one waits."""
    reader = all_wires()["openai_chat"].open_decoder(new_ids())
    assert isinstance(reader, ToolAwareDecoder)
    reader.tools = (Tool("get_weather"), Tool("read"))
    events = read_pieces(reader, chat(*(chat_call(arguments, name) for name, arguments in pieces)), size)
    given = "".join(arguments for _, arguments in pieces) or "{}"
    assert [call[1:] for call in calls_of(events)] == [(called, given)]


def test_a_stream_knows_the_tools_that_were_offered() -> None:
    line = Line("gemini", "openai_chat")
    asked = Conversation("m", (Message("user", (Text("hi"),)),), (Tool("get_weather"),))
    raw = chat(chat_call("", "get_"), chat_call("", "weather"), chat_call(CITY))
    assert [call[1:] for call in calls_of(line.carry(line.ask(asked, stream=True), raw))] == [("get_weather", CITY)]
