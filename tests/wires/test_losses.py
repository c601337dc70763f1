"""Fields that not all wires have: one test for each of the nineteen places where something could be lost.

The docs list the policies in a table with the same numbers.
"""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support.line import Line, sum_up
from support.rows import in_one_test
from support.wiring import USAGE, call

from toolglot.core.conversation import (
    Conversation,
    Image,
    JsonSchema,
    Message,
    Reasoning,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from toolglot.core.errors import RequestError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    TextDelta,
    Usage,
)
from toolglot.gateway.response_pipeline import reply
from toolglot.wires import all_wires, client_wires
from toolglot.wires.protocol import CARRIED_FIELDS, ClientRequest, ResponseIdentity

PAIRS = list(product(client_wires(), client_wires()))
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
READ, WRITE = Tool("read", "Reads", SCHEMA), Tool("write", "Writes", SCHEMA)
ASKED = Message("user", (Text("go"),))
PIXEL = Image(data="iVBORw0KGgo=", media_type="image/png")
PLACES = 19
DOCS = sorted((Path(__file__).parents[2] / "docs").rglob("*.md"))


def turn(*text: Any, content: tuple[Any, ...] = (Text("seen"),), error: bool = False) -> Conversation:
    """A conversation with one call that was answered."""
    answered = ToolResult("call_1", "read", content, error)
    parts = text or (ToolCall("call_1", "read", '{"path":"a"}'),)
    return Conversation("m", (ASKED, Message("assistant", parts), Message("tool", (answered,))), (READ, WRITE))


def ask_raw(client: str, upstream: str = "openai_chat", stream: bool = False, **body: Any) -> tuple[Line, Any]:
    line = Line(client, upstream)
    return line, line.open(json.dumps(body).encode(), stream)


CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
RESPONSES: dict[str, Any] = {"model": "m", "input": "go", "store": False}
MESSAGES: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
GEMINI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "go"}]}]}


def test_every_place_is_named_in_the_documents() -> None:
    text = "\n".join(page.read_text("utf-8") for page in DOCS)
    rows = re.findall(r"^\| (\d+) \|", text, re.MULTILINE)
    assert rows == [str(number) for number in range(1, PLACES + 1)]
    tests = {name for name in globals() if re.match(r"test_\d\d_", name)}
    assert {int(name[5:7]) for name in tests} == set(range(1, PLACES + 1))


# -- the fields of a request that each wire carries ----------------------------------------------------------------------

SAMPLES: dict[str, Any] = {
    "model": "other",
    "messages": (ASKED, ASKED),
    "tools": (READ,),
    "choice": ToolChoice.one("read"),
    "extra": {"user": "u"},
    "max_tokens": 9,
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 3,
    "seed": 7,
    "stop": ("END",),
    "parallel_calls": False,
    "effort": "low",
    "json_object": True,
    "json_schema": JsonSchema(SCHEMA, "path"),
}
"""A value for every field, other than its default."""
ELSEWHERE = {("gemini", "model"), *((wire, "parallel_calls") for wire in ("gemini", "ollama", "qwen_web"))}
"""Declared fields that are not part of the body: in the path, or enforced on the response."""


@in_one_test("field", CARRIED_FIELDS)
def test_every_field_is_declared_by_a_wire(field: str) -> None:
    assert field in SAMPLES, f"add a value of {field} to SAMPLES in tests/wires/test_losses.py"
    assert any(field in wire.carries for wire in all_wires().values()), (
        f"no wire carries {field}: encode it in wires/<wire>/request_encoder.py, add it to CARRIES there, decode it in "
        "request_decoder.py of that wire"
    )


@pytest.mark.parametrize("wire", all_wires())
def test_a_wire_declares_no_unknown_field(wire: str) -> None:
    unknown = set(all_wires()[wire].carries) - set(CARRIED_FIELDS)
    assert not unknown, f"CARRIES of wires/{wire}/request_encoder.py names no field of Conversation or Sampling"


@in_one_test("field", [field for field in CARRIED_FIELDS if field != "messages"])
@in_one_test("wire", all_wires())
def test_a_wire_encodes_what_it_declares(wire: str, field: str) -> None:
    plain = Conversation("m", (ASKED,), (READ, WRITE))
    if all_wires()[wire].chat:  # it refuses tools, which its prompts describe
        if field in ("tools", "choice"):
            return
        plain = replace(plain, tools=())
    if field in Sampling.__struct_fields__:
        changed = replace(plain, sampling=replace(plain.sampling, **{field: SAMPLES[field]}))
    else:
        changed = replace(plain, **{field: SAMPLES[field]})
    before, after = (all_wires()[wire].encode_request(one, stream=False, wants_usage=False) for one in (plain, changed))
    declared = field in all_wires()[wire].carries and (wire, field) not in ELSEWHERE
    assert (before != after) == declared, f"{field}: see encode_request and CARRIES of wires/{wire}/request_encoder.py"


def test_the_documents_show_what_every_wire_carries() -> None:
    rows = [("field", *all_wires()), ("---",) * (1 + len(all_wires()))]
    for field in CARRIED_FIELDS:
        carried = (all_wires()[wire].carries.get(field) for wire in all_wires())
        rows.append((f"`{field}`", *("no" if how is None else how or "yes" for how in carried)))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    assert any(table in page.read_text("utf-8") for page in DOCS), f"put this table into the docs:\n{table}"


@in_one_test(("client", "upstream"), PAIRS)
def test_01_an_error_of_a_result(client: str, upstream: str) -> None:
    line = Line(client, upstream)
    for error in (True, False):
        seen = line.arrive(line.ask(turn(error=error), False))
        [result] = [part for message in seen.messages for part in message.parts if isinstance(part, ToolResult)]
        assert (result.error, result.content) == (error, (Text("seen"),))


@in_one_test(("client", "upstream"), PAIRS)
def test_02_an_image_of_a_result(client: str, upstream: str) -> None:
    """On the chat wire it follows in a message of the user that names the call."""
    line = Line(client, upstream)
    seen = line.arrive(line.ask(turn(content=(Text("seen"), PIXEL)), False))
    parts = [part for message in seen.messages for part in message.parts]
    shown = [part for part in parts if isinstance(part, Image)]
    shown += [one for part in parts if isinstance(part, ToolResult) for one in part.content if isinstance(one, Image)]
    assert shown == [PIXEL]
    if upstream == "openai_chat":
        assert "call_1" in seen.messages[-1].text and seen.messages[-1].role == "user"


@pytest.mark.parametrize("upstream", sorted(set(client_wires()) - {"openai_chat"}))
def test_03_a_signature_of_another_vendor_is_never_sent(upstream: str) -> None:
    """Signatures of the same vendor: tests/gateway/test_reasoning_signatures.py."""
    for kind in set(client_wires()) - {upstream}:
        text = (Reasoning("Hm.", "U0VBTA==", kind), ToolCall("call_1", "read", "{}"))
        body = all_wires()[upstream].encode_request(turn(*text), stream=False, wants_usage=False)
        assert b"U0VBTA==" not in body
        assert (b"Hm." in body) == (upstream == "ollama")


@in_one_test(("client", "upstream"), PAIRS)
def test_04_ids_of_calls(client: str, upstream: str) -> None:
    """Ids that a wire does not allow are replaced, the same one always by the same, and results follow."""
    odd = "functions.read:0"
    text = (ToolCall(odd, "read", "{}"), ToolCall("functions.read_0", "read", "{}"))
    results = tuple(Message("tool", (ToolResult(one.id, "read", (Text(one.id),)),)) for one in text)
    asked = Conversation("m", (ASKED, Message("assistant", text), *results), (READ,))
    line = Line(client, upstream)
    seen = line.arrive(line.ask(asked, False))
    calls = [one.id for message in seen.messages for one in message.calls]
    answered = [part.call_id for message in seen.messages for part in message.parts if isinstance(part, ToolResult)]
    assert calls == answered and len(set(calls)) == 2
    if upstream == "anthropic_messages":
        assert all(re.fullmatch("[a-zA-Z0-9_-]+", one) for one in calls)


@in_one_test("stream", [False, True])
@in_one_test(("client", "upstream"), [pair for pair in PAIRS if pair[0] != pair[1]])
def test_05_names_of_tools(client: str, upstream: str, stream: bool) -> None:
    """Replaced where a wire does not allow them, and restored for the client."""
    name = "files.server/" + "very_" * 20 + "long"
    line = Line(client, upstream)
    exchange = line.ask(Conversation("m", (ASKED,), (Tool(name, "Reads", SCHEMA),)), stream)
    [taught] = [tool.name for tool in line.arrive(exchange).tools]
    allowed = all_wires()[upstream].tool_name_pattern or ".+"
    assert re.fullmatch(allowed, taught)
    _, calls, _ = sum_up(line.answer(exchange, [*call(0, taught, '{"path":"a"}'), Finished("tool_calls", USAGE)]))
    assert calls == [(name, {"path": "a"})]


@in_one_test(("client", "upstream"), PAIRS)
def test_06_arguments_in_one_big_piece(client: str, upstream: str) -> None:
    value = {"path": "ä\n" * 50_000}
    line = Line(client, upstream)
    events: list[Event] = [CallStarted(0, "c", "read"), CallArguments(0, json.dumps(value)), CallEnded(0)]
    _, calls, _ = sum_up(line.answer(line.ask(Conversation("m", (ASKED,), (READ,)), True), [*events, Finished("tool_calls")]))  # fmt: skip
    assert calls == [("read", value)]


@in_one_test(("client", "upstream"), PAIRS)
def test_07_the_end_of_a_call(client: str, upstream: str) -> None:
    """A call that another one follows, or text, or the end of the answer, has ended; and every one is delivered whole."""
    line = Line(client, upstream)
    events = [*call(0, "read"), TextDelta("and"), *call(1, "write"), Finished("tool_calls", USAGE)]
    _, calls, end = sum_up(line.answer(line.ask(Conversation("m", (ASKED,), (READ, WRITE)), True), events))
    assert [name for name, _ in calls] == ["read", "write"] and end == "tool_calls"


ORDERLESS = {"openai_chat", "ollama"}
"""Wires on which text comes first and calls follow, whatever the order was."""


@in_one_test(("client", "upstream"), PAIRS)
def test_08_text_after_a_call(client: str, upstream: str) -> None:
    """Delivered in its place; in a history it precedes the calls where a wire has only one place for text."""
    line = Line(client, upstream)
    events = [*call(0, "read"), TextDelta("Done."), Finished("tool_calls", USAGE)]
    text, calls, _ = sum_up(line.answer(line.ask(Conversation("m", (ASKED,), (READ,)), True), events))
    assert text == "Done." and len(calls) == 1
    seen = line.see(line.ask(turn(ToolCall("call_1", "read", "{}"), Text("Done.")), False))
    kinds = [type(part).__name__ for part in seen if not isinstance(part, Reasoning)]
    assert kinds == (["Text", "ToolCall"] if {client, upstream} & ORDERLESS else ["ToolCall", "Text"])


@in_one_test(("client", "upstream"), PAIRS)
def test_09_text_between_calls(client: str, upstream: str) -> None:
    answer_text = (Text("One."), ToolCall("call_1", "read", "{}"), Text("Two."), ToolCall("call_2", "read", "{}"))
    asked = turn(*answer_text)
    messages = (*asked.messages, Message("tool", (ToolResult("call_2", "read", (Text("seen"),)),)))
    line = Line(client, upstream)
    seen = [part for part in line.see(line.ask(replace(asked, messages=messages), False)) if not isinstance(part, Reasoning)]  # fmt: skip
    assert "".join(part.text for part in seen if isinstance(part, Text)) == "One.Two."
    kinds = [type(part).__name__ for part in seen]
    if not {client, upstream} & ORDERLESS:
        assert kinds == ["Text", "ToolCall", "Text", "ToolCall"]
    assert kinds.count("ToolCall") == 2


REFUSALS: dict[str, bytes] = {
    "openai_chat": b'{"choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"No."},"finish_reason":"stop"}]}',
    "openai_responses": b'{"id":"r","object":"response","status":"completed","output":[{"type":"message","id":"m","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]}',
    "anthropic_messages": b'{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"No."}],"stop_reason":"refusal","usage":{}}',
    "gemini": b'{"candidates":[{"content":{"role":"model","parts":[{"text":"No."}]},"finishReason":"PROHIBITED_CONTENT"}]}',
    "ollama": b'{"model":"m","message":{"role":"assistant","content":"No."},"done":true,"done_reason":"stop"}',
}  # fmt: skip
FLAGGED = {"anthropic_messages", "gemini"}
"""Wires with a finish reason for a refusal."""


@in_one_test(("client", "upstream"), PAIRS)
def test_10_a_refusal(client: str, upstream: str) -> None:
    """The refusal is text, and the reason is sent where a wire has one."""
    line = Line(client, upstream)
    text, _, end = sum_up(line.carry(line.ask(Conversation("m", (ASKED,), (READ,)), False), REFUSALS[upstream]))
    flagged = upstream in FLAGGED and client != "ollama"
    assert (text, end) == ("No.", "content_filter" if flagged else "stop")


CUSTOM = {"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"}}  # fmt: skip


@pytest.mark.parametrize("upstream", client_wires())
def test_11_tools_that_take_raw_text(upstream: str) -> None:
    patch = '*** Begin Patch\n+"quoted" </input>\n'
    line, exchange = ask_raw("openai_responses", upstream, **RESPONSES, tools=[CUSTOM])
    [tool] = line.arrive(exchange).tools
    if upstream != "openai_responses":
        assert list(tool.parameters["properties"]) == ["input"] and "start: X" in str(tool.parameters)
    events = [*call(0, "apply_patch", json.dumps({"input": patch})), Finished("tool_calls", USAGE)]
    raw = reply(exchange, answer_of(line, events))
    [item] = json.loads(raw)["output"]
    assert (item["type"], item["input"]) == ("custom_tool_call", patch)


def answer_of(line: Line, events: list[Event]) -> bytes:
    asked = ClientRequest(conversation=Conversation("m", ()), memory={"thoughts": True, "list": False})
    return line.upstream.encode_response(events, ResponseIdentity("1", 1, "m"), asked)


@pytest.mark.parametrize("upstream", sorted(set(client_wires()) - {"openai_responses"}))
def test_12_namespaces(upstream: str) -> None:
    inner = {"type": "function", "name": "spawn", "parameters": SCHEMA}
    space = {"type": "namespace", "name": "agents", "tools": [inner]}
    line, exchange = ask_raw("openai_responses", upstream, **RESPONSES, tools=[space])
    assert [tool.name for tool in line.arrive(exchange).tools] == ["agents__spawn"]
    raw = reply(exchange, answer_of(line, [*call(0, "agents__spawn"), Finished("tool_calls", USAGE)]))
    [item] = json.loads(raw)["output"]
    assert (item["namespace"], item["name"]) == ("agents", "spawn")


UNFINISHED = {
    "anthropic_messages": (b'{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"Hm"}],"stop_reason":"pause_turn","usage":{}}', "stop"),
    "gemini": (b'{"candidates":[{"content":{"role":"model","parts":[{"text":"Hm"}]},"finishReason":"CONTINUATION"}]}', "length"),
}  # fmt: skip


@in_one_test(("client", "upstream"), [pair for pair in PAIRS if pair[1] in UNFINISHED])
def test_13_answers_that_want_to_go_on(client: str, upstream: str) -> None:
    raw, expected = UNFINISHED[upstream]
    line = Line(client, upstream)
    assert sum_up(line.carry(line.ask(Conversation("m", (ASKED,), (READ,)), False), raw)) == ("Hm", [], expected)


def test_13_phases_are_dropped_between_wires() -> None:
    text = {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "Hm"}]}  # fmt: skip
    asked = RESPONSES | {"input": [{"role": "user", "content": "go"}, text, {"role": "user", "content": "on"}]}
    _, exchange = ask_raw("openai_responses", "openai_chat", **asked)
    assert b"phase" not in exchange.upstream_body and b'"Hm"' in exchange.upstream_body


KNOBS = Sampling(max_tokens=9, temperature=1.5, top_p=0.5, top_k=3, seed=7, stop=("END",))
TAKEN: dict[str, Sampling] = {
    "openai_chat": replace(KNOBS, top_k=None),
    "openai_responses": replace(KNOBS, top_k=None, seed=None, stop=()),
    "anthropic_messages": replace(KNOBS, temperature=1.0, top_p=None, seed=None),
    "gemini": KNOBS,
    "ollama": KNOBS,
}


@pytest.mark.parametrize("upstream", client_wires())
def test_14_sampling(upstream: str) -> None:
    """What a wire has no word for is not sent, and what it has a limit for is kept within."""
    line = Line("gemini" if upstream != "gemini" else "ollama", upstream)
    asked = Conversation("m", (ASKED,), (READ,), sampling=KNOBS)
    assert line.arrive(line.ask(asked, False)).sampling == TAKEN[upstream]


@pytest.mark.parametrize("upstream", client_wires())
def test_14_a_note_names_every_lost_limit(upstream: str) -> None:
    line = Line("gemini" if upstream != "gemini" else "ollama", upstream)
    exchange = line.ask(Conversation("m", (ASKED,), (READ,), sampling=KNOBS), False)
    lost = [name for name in ("top_k", "seed", "stop") if name not in all_wires()[upstream].carries]
    assert exchange.recorder.notes == ([f"not carried to another wire: {', '.join(lost)}"] if lost else [])


def test_14_other_settings_stay_with_their_wire() -> None:
    _, exchange = ask_raw("openai_chat", "gemini", **CHAT, logit_bias={"1": 2}, user="u")
    assert b"logit_bias" not in exchange.upstream_body
    assert exchange.recorder.notes == ["not carried to another wire: logit_bias, user"]


CACHED: dict[str, bytes] = {
    "anthropic_messages": b'{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"Hm"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"cache_read_input_tokens":8,"cache_creation_input_tokens":2,"output_tokens":7}}',
    "openai_chat": b'{"choices":[{"index":0,"message":{"role":"assistant","content":"Hm"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":8}}}',
}  # fmt: skip


@in_one_test(("client", "upstream"), [pair for pair in PAIRS if pair[1] in CACHED])
def test_15_usage_counts_what_came_from_a_cache(client: str, upstream: str) -> None:
    line = Line(client, upstream)
    events = line.carry(line.ask(Conversation("m", (ASKED,), (READ,)), False), CACHED[upstream])
    last = events[-1]
    assert isinstance(last, Finished) and last.usage == Usage(input_tokens=11, output_tokens=7, total_tokens=18)


HOSTED: dict[str, dict[str, Any]] = {
    "openai_responses": RESPONSES | {"tools": [{"type": "web_search"}]},
    "anthropic_messages": MESSAGES | {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    "gemini": GEMINI | {"tools": [{"googleSearch": {}}]},
}


@pytest.mark.parametrize("client", HOSTED)
def test_16_tools_of_the_provider(client: str) -> None:
    """They are left out with a note, because agents offer them to every server, and stay where the wire is the same."""
    _, exchange = ask_raw(client, "ollama", **HOSTED[client])
    assert b"earch" not in exchange.upstream_body and any("earch" in note for note in exchange.recorder.notes)
    _, same = ask_raw(client, client, **HOSTED[client])
    assert b"earch" in same.upstream_body


@pytest.mark.parametrize("upstream", client_wires())
def test_17_a_choice_that_a_wire_cannot_express(upstream: str) -> None:
    """More of it: tests/test_quirks.py."""
    line = Line("openai_chat", upstream)
    for choice in (ToolChoice.one("read"), ToolChoice("auto", ("read",)), ToolChoice("none")):
        seen = line.arrive(line.ask(Conversation("m", (ASKED,), (READ, WRITE), choice), False))
        callable_tools = [tool.name for tool in seen.tools if seen.choice.allows(tool.name)]
        assert callable_tools == (["read"] if choice.only else [])


@pytest.mark.parametrize(
    ("client", "body", "where"),
    [
        ("openai_chat", CHAT | {"n": 2}, "n"),
        ("gemini", GEMINI | {"generationConfig": {"candidateCount": 2}}, "generationConfig.candidateCount"),
    ],
)
def test_18_several_answers(client: str, body: dict[str, Any], where: str) -> None:
    with pytest.raises(RequestError) as refused:
        ask_raw(client, client, **body)
    assert refused.value.where == where


def test_18_probabilities_and_sounds_stay_with_their_wire() -> None:
    asked = CHAT | {"logprobs": True, "modalities": ["text", "audio"], "audio": {"voice": "a"}}
    _, exchange = ask_raw("openai_chat", "anthropic_messages", **asked)
    assert exchange.recorder.notes == ["not carried to another wire: logprobs, modalities, audio"]
    _, same = ask_raw("openai_chat", "openai_chat", **asked)
    assert json.loads(same.upstream_body) == asked


def test_19_any_json_object_where_a_wire_only_has_schemas() -> None:
    """More of it: test_output_formats.py."""
    _, exchange = ask_raw("openai_chat", "anthropic_messages", **CHAT, response_format={"type": "json_object"})
    assert exchange.recorder.notes == ["not carried to another wire: json_object"]


# -- and what is never lost: that an answer broke off --------------------------------------------------------------------


@in_one_test(("client", "upstream"), PAIRS)
def test_a_stream_that_breaks_off_is_no_answer(client: str, upstream: str) -> None:
    """Wherever it ends early: complete parts are delivered, nothing else is, and the client gets an error."""
    events = [TextDelta("I read."), *call(0, "read", '{"path":"abcdefgh"}'), Finished("tool_calls", USAGE)]
    line = Line(client, upstream)
    received = ClientRequest(
        conversation=Conversation("m", ()), stream=True, wants_usage=True, memory={"thoughts": True, "list": False}
    )
    writer = line.upstream.open_encoder(ResponseIdentity("1", 1, "m"), received)
    *before_end, _ = (writer.write([event]) for event in events)
    raw = b"".join(before_end)
    for size in range(0, len(raw), max(1, len(raw) // 25)):
        exchange = line.ask(Conversation("m", (ASKED,), (READ,)), True)
        text, calls, end = sum_up(line.carry(exchange, raw[:size]))
        assert end == "failed" and "I read.".startswith(text)
        assert calls in ([], [("read", {"path": "abcdefgh"})])
