"""Histories that strict upstreams would refuse are healed; healthy ones stay as they are; no text is lost."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from random import Random
from typing import Any

import pytest
from support.line import Line
from support.rows import in_one_test
from support.strict_history import check_arguments, check_chat, check_request

from toolglot.core.conversation import Conversation, Message, Part, Text, Tool, ToolCall, ToolResult
from toolglot.core.errors import UsageError
from toolglot.gateway.capabilities.profiles import load_profiles
from toolglot.gateway.recovery.call_ids import CallIds, check_form
from toolglot.gateway.recovery.history import HealedHistory, heal_arguments, heal_history
from toolglot.wires.translation import UNANSWERED

HISTORIES = int(os.environ.get("TOOLGLOT_TALKS", "40"))
TOOLS = tuple(Tool(name, f"To {name}", {"type": "object"}) for name in ("read", "write", "list"))
UPSTREAMS = ("openai_chat", "anthropic_messages", "gemini", "openai_responses", "ollama")


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def calls(*made: ToolCall | str, text: str = "") -> Message:
    parts: list[Part] = [Text(text)] if text else []
    return Message("assistant", (*parts, *(ToolCall(one, "read") if isinstance(one, str) else one for one in made)))


def result(call_id: str, text: str = "done", name: str = "read") -> Message:
    return Message("tool", (ToolResult(call_id, name, (Text(text),)),))


def heal(*messages: Message, form: str = "") -> HealedHistory:
    healed = heal_history(messages, form)
    again = heal_history(healed.messages, form)
    assert (again.messages, again.notes) == (healed.messages, [])
    return healed


MISSING = Message("tool", (ToolResult("a", "read", (Text(UNANSWERED),), True),))


# -- arguments ---------------------------------------------------------------------------------------------------------


@in_one_test(
    ("written", "healed"),
    [
        ('{ "a" : 1 }', '{ "a" : 1 }'),
        ('{"n":1.50,"m":1e5}', '{"n":1.50,"m":1e5}'),
        ("", "{}"),
        ("  ", "{}"),
        ("null", "{}"),
        ("[]", "{}"),
        ('""', "{}"),
        (r'"{\"a\":1}"', '{"a":1}'),
        (json.dumps(json.dumps('{"a":1}')), '{"a":1}'),
        ('{"a":"x\ny"}', r'{"a":"x\ny"}'),
        ("{'a': True, 'b': None,}", '{"a":true,"b":null}'),
        (r'{"a":"\ud83d!"}', r'{"a":"\ufffd!"}'),
        (r'{"a":"\ud83d\ude00"}', r'{"a":"\ud83d\ude00"}'),
        (r'{"a":"\\ud83d"}', r'{"a":"\\ud83d"}'),
        ('{"a":1}{"a":1}', '{"a":1}'),
        ('{"path":"a', r'{"arguments":"{\"path\":\"a"}'),
        ('{"a":NaN}', r'{"arguments":"{\"a\":NaN}"}'),
        ('{"a":1} or so', r'{"arguments":"{\"a\":1} or so"}'),
        ("[1,2]", '{"arguments":[1,2]}'),
        ('"words"', '{"arguments":"words"}'),
        ("words", '{"arguments":"words"}'),
    ],
)
def test_arguments_become_an_object(written: str, healed: str) -> None:
    arguments, problem, rest = heal_arguments(written)
    assert (arguments, rest) == (healed, "")
    assert bool(problem) == (written != healed)
    assert heal_arguments(arguments) == (arguments, "", "")
    check_arguments(arguments)


@pytest.mark.parametrize(
    "text", ["[" * 50_000, '{"a":' * 50_000, '"' * 50_000, "\\" * 50_000, "{}" * 50_000, "9" * 9_000]
)
def test_hostile_arguments_are_healed_too(text: str) -> None:
    arguments, _, _ = heal_arguments(text)
    assert isinstance(json.loads(arguments, parse_int=str), dict)
    assert heal_arguments(arguments) == (arguments, "", "")


def test_of_glued_objects_the_first_stays_and_the_result_tells_the_rest() -> None:
    healed = heal(user("go"), calls(ToolCall("a", "read", '{"p":1}{"p":2}')), result("a"))
    assert healed.messages[1] == calls(ToolCall("a", "read", '{"p":1}'))
    text = 'done\n\nThe arguments of this call were followed by more text, which was not used: {"p":2}'
    assert healed.messages[2] == result("a", text)
    assert healed.notes == ["messages[1]: the arguments of a call to read were several objects: the first one was kept"]


# -- calls and results -------------------------------------------------------------------------------------------------


def test_a_call_without_a_result_gets_one() -> None:
    healed = heal(user("go"), calls("a"), user("and?"))
    assert healed.messages == (user("go"), calls("a"), MISSING, user("and?"))
    assert healed.notes == ["a call to read without a result was given one"]


def test_the_last_call_gets_a_result_too() -> None:
    assert heal(user("go"), calls("a")).messages == (user("go"), calls("a"), MISSING)


def test_a_late_result_moves_behind_its_call() -> None:
    healed = heal(calls("a"), user("wait"), calls("b"), result("b"), result("a", "late"))
    assert healed.messages == (calls("a"), result("a", "late"), user("wait"), calls("b"), result("b"))


def test_turns_in_a_row_become_one() -> None:
    healed = heal(calls("a"), calls("b", text="and"), result("b"), result("a"))
    made = Message("assistant", (ToolCall("a", "read"), Text("and"), ToolCall("b", "read")))
    assert healed.messages == (made, result("b"), result("a"))


def test_a_turn_behind_a_result_stays_a_turn() -> None:
    healed = heal(calls("b", "a"), result("b"), calls("c"), result("c"))
    assert healed.messages == (calls("b", "a"), result("b"), MISSING, calls("c"), result("c"))


def test_a_result_without_a_call_becomes_a_user_message() -> None:
    healed = heal(result("x", "old words", name=""), user("go"))
    text = "Tool result, for the call x that is not in this conversation:\nold words"
    assert healed.messages == (user(text), user("go"))


def test_a_second_result_becomes_a_user_message() -> None:
    healed = heal(calls("a"), result("a"), result("a", "other"), user("go"))
    text = "Tool result of read, a second one for the call a:\nother"
    assert healed.messages == (calls("a"), result("a"), user(text), user("go"))


def test_a_repeated_result_is_dropped() -> None:
    healed = heal(calls("a"), result("a"), result("a"))
    assert healed.messages == (calls("a"), result("a"))
    assert healed.notes == ["messages[2]: a repeated result of read was dropped"]


def test_an_unknown_result_between_a_call_and_its_result() -> None:
    healed = heal(calls("a"), result("x", "?"), result("a"))
    assert [message.role for message in healed.messages] == ["assistant", "tool", "user"]


def test_a_result_with_an_unknown_id_belongs_to_the_only_open_call() -> None:
    assert heal(calls("a"), result("x")).messages == (calls("a"), result("a"))
    two = heal(calls("a", "b"), result("x")).messages  # it may belong to either
    assert [message.role for message in two] == ["assistant", "tool", "user"]
    named = heal(calls("a"), result("x", name="write")).messages
    assert [message.role for message in named] == ["assistant", "tool", "user"]


def test_results_without_ids_belong_to_calls_in_order() -> None:
    made = calls(ToolCall("a", "read"), ToolCall("b", "write"), ToolCall("c", "read"))
    healed = heal_history([made, result("", "1"), result("", "2"), result("", "3", name="")])
    assert healed.messages == (made, result("a", "1"), result("c", "2"), result("b", "3", name="write"))
    assert not healed.healings and len(healed.completions) == 3


def test_ids_that_come_again() -> None:
    healed = heal(calls("a"), result("a", "1"), calls("a"), result("a", "2"), calls("a", "a"), result("a"), result("a"))
    ids = [part.id for message in healed.messages for part in message.parts if isinstance(part, ToolCall)]
    answered = [part.call_id for message in healed.messages for part in message.parts if isinstance(part, ToolResult)]
    assert ids == answered == ["a", "a_2", "a_3", "a_4"]


def test_missing_ids_are_the_same_in_every_turn() -> None:
    history = [calls("", ""), result(""), result(""), user("go"), calls(""), result("")]
    short, long = heal_history(history[:3]), heal_history(history)
    assert long.messages[:3] == short.messages


# -- forms of ids ------------------------------------------------------------------------------------------------------


def ids_of(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    made = [part.id for message in messages for part in message.parts if isinstance(part, ToolCall)]
    answered = [part.call_id for message in messages for part in message.parts if isinstance(part, ToolResult)]
    return list(zip(made, answered, strict=True))


KIMI, MISTRAL = "functions.{name}:{index}", "{code9}"
FOREIGN = (calls("toolu_01"), result("toolu_01"), calls("call_x"), result("call_x"))


def test_ids_of_the_form_with_name_and_index() -> None:
    expected = [("functions.read:0",) * 2, ("functions.read:1",) * 2]
    assert ids_of(heal(*FOREIGN, form=KIMI).messages) == expected
    own = (calls("functions.read:0"), result("functions.read:0"), *FOREIGN[2:])
    assert ids_of(heal(*own, form=KIMI).messages) == expected
    assert heal(*own[:2], form=KIMI).notes == []


def test_ids_of_nine_letters_and_digits() -> None:
    healed = heal(*FOREIGN, form=MISTRAL)
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", made) and made == answered for made, answered in ids_of(healed.messages))
    assert heal(*FOREIGN[:2], form=MISTRAL).messages == healed.messages[:2]
    assert heal(calls("aB3dEf6h9"), result("aB3dEf6h9"), form=MISTRAL).notes == []


def test_a_form_needs_a_slot_that_tells_calls_apart() -> None:
    assert check_form(KIMI) == KIMI
    for wrong in ("", "call", "{name}", "{index}{other}"):
        with pytest.raises(ValueError):
            check_form(wrong)


def test_many_equal_ids_take_linear_time() -> None:
    for form in ("", KIMI, MISTRAL):
        ids = CallIds(form)
        given = {ids.give(ToolCall(call_id, "read")) for _ in range(20_000) for call_id in ("a", "")}
        assert len(given) == 40_000


@pytest.mark.parametrize(
    ("address", "model", "form"),
    [
        ("https://api.mistral.ai/v1", "any", MISTRAL),
        ("http://127.0.0.1:1/v1", "mistralai/Devstral-Small-2507", MISTRAL),
        ("https://openrouter.ai/api/v1", "moonshotai/kimi-k2-0905", KIMI),
        ("https://api.openai.com/v1", "gpt-5", ""),
    ],
)
def test_forms_are_data_of_the_profiles(address: str, model: str, form: str) -> None:
    assert load_profiles().find_id_form(address, model) == form


def test_own_forms_come_first_and_are_checked(tmp_path: Any) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[[ids]]\nform = "x{index}"\nmodel = ["kimi-*"]\n')
    assert load_profiles(str(own)).find_id_form("http://h", "kimi-k2") == "x{index}"
    own.write_text('[[ids]]\nform = "x"\n')
    with pytest.raises(UsageError, match="index"):
        load_profiles(str(own))


def test_foreign_ids_reach_a_model_in_its_form() -> None:
    asked = Conversation("kimi-k2-0905", (user("go"), *FOREIGN), TOOLS)
    line = Line("openai_chat", "openai_chat")
    assert check_chat(json.loads(line.ask(asked, False).upstream_body)) == ["functions.read:0", "functions.read:1"]
    own = Conversation("kimi-k2-0905", (user("go"), calls("functions.read:7"), result("functions.read:7")), TOOLS)
    body = line.client.encode_request(own, stream=False, wants_usage=True)
    assert line.open(body, False).upstream_body == body


# -- all wires ---------------------------------------------------------------------------------------------------------

ARGUMENTS = ("{}", '{"path":"a.txt"}', "", "null", '{"path":"a', '{"a":1}{"b":2}', r'"{\"a\":1}"', "words", "{'a': 1}")


def make_history(rng: Random, *, healthy: bool) -> tuple[Message, ...]:
    """A random conversation; unless it is healthy, with every kind of damage."""
    messages: list[Message] = [user("go")]
    made = 0
    for _ in range(rng.randint(1, 6)):
        turn = []
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            made += 1
            call_id = f"call_{made}"
            if not healthy:
                call_id = rng.choice((call_id, call_id, call_id, "", "same", "functions.read:0", "a b|c"))
            arguments = rng.choice(ARGUMENTS[:2] if healthy else ARGUMENTS)
            turn.append(ToolCall(call_id, rng.choice(("read", "write", "list")), arguments))
        messages.append(calls(*turn, text=rng.choice(("", "I look.")) if turn else "Done."))
        results = [result(call.id, f"out {made} {at}", call.name) for at, call in enumerate(turn)]
        if not healthy:
            results = [one for one in results if rng.random() > 0.2]
            results += [one for one in results if rng.random() < 0.2]
            results += [result(rng.choice(("lost", "same", "")), f"stray {made}", "")] if rng.random() < 0.2 else []
            rng.shuffle(results)
        messages += results
        if not turn or rng.random() < 0.3:
            messages.append(user("go on"))
    if not healthy and rng.random() < 0.5:
        taken = messages.pop(rng.randrange(1, len(messages)))
        messages.insert(rng.randrange(1, len(messages) + 1), taken)
    return tuple(messages)


@cache
def line_of(client: str, upstream: str) -> Line:
    return Line(client, upstream)


@in_one_test("upstream", UPSTREAMS)
@in_one_test("client", ["openai_chat", "openai_responses"])
def test_broken_histories_satisfy_strict_upstreams(client: str, upstream: str) -> None:
    for seed in range(HISTORIES):
        messages = make_history(Random(f"{client}{upstream}{seed}"), healthy=False)
        exchange = line_of(client, upstream).ask(Conversation("m", messages, TOOLS), False)
        check_request(upstream, exchange.upstream_body)
        sent = exchange.upstream_body.decode()
        texts = {part.content[0].text for one in messages for part in one.parts if isinstance(part, ToolResult)}  # type: ignore[union-attr]
        assert all(text in sent for text in texts), seed


@pytest.mark.parametrize("wire", UPSTREAMS)
def test_healthy_histories_pass_as_the_bytes_they_are(wire: str) -> None:
    line = line_of(wire, wire)
    for seed in range(HISTORIES):
        asked = Conversation("m", make_history(Random(f"{wire}{seed}"), healthy=True), TOOLS)
        body = line.client.encode_request(asked, stream=False, wants_usage=True)
        exchange = line.open(body, False)
        assert exchange.upstream_body == body
        assert not exchange.recorder.notes


def test_healing_is_idempotent_and_keeps_healthy_histories() -> None:
    for seed in range(HISTORIES * 5):
        healthy = make_history(Random(seed), healthy=True)
        assert heal_history(healthy) == HealedHistory(healthy)
        for form in ("", KIMI, MISTRAL):
            heal(*make_history(Random(seed), healthy=False), form=form)


def test_a_beginning_is_healed_like_the_whole() -> None:
    """What was sent before is sent again in the same bytes, as long as all its results are there."""
    for seed in range(HISTORIES * 5):
        messages = make_history(Random(seed), healthy=True)
        damaged = tuple(
            Message(
                one.role, tuple(ToolCall("same", p.name, "words") if isinstance(p, ToolCall) else p for p in one.parts)
            )
            if one.role == "assistant" and len(one.calls) == 1
            else one
            for one in messages
        )
        damaged = tuple(
            Message("tool", (ToolResult("same", "", one.parts[0].content),))  # type: ignore[union-attr]
            if one.role == "tool" and len(damaged[at - 1].calls) == 1
            else one
            for at, one in enumerate(damaged)
        )
        whole = heal_history(damaged).messages
        ends = [at for at, one in enumerate(damaged) if one.role == "assistant"]
        for end in ends:
            assert heal_history(damaged[:end]).messages == whole[:end]


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_text_model_gets_a_broken_history(upstream: str) -> None:
    for seed in range(HISTORIES // 4):
        messages = make_history(Random(seed), healthy=False)
        exchange = Line("openai_chat", upstream, "text").ask(Conversation("m", messages, TOOLS), False)
        assert exchange.upstream_body


def test_each_healing_is_in_the_record() -> None:
    exchange = Line("openai_chat", "openai_chat").ask(
        Conversation("m", (user("go"), calls("a"), result("x", "?", ""), result("x", "!", "")), TOOLS), False
    )
    assert exchange.recorder.notes == [
        "messages[2]: a result of the unknown call x was taken for that of read",
        "messages[3]: a tool result without a call was made a user message",
    ]


def test_a_request_that_refers_to_stored_turns_is_not_healed() -> None:
    items = [{"type": "function_call_output", "call_id": "c", "output": "x"}]
    body = json.dumps(
        {
            "model": "m",
            "previous_response_id": "resp_1",
            "input": items,
            "tools": [{"type": "function", "name": "read"}],
        }
    ).encode()
    assert Line("openai_responses", "openai_responses").open(body, False).upstream_body == body


def test_notes_are_few_and_short() -> None:
    notes = heal_history([calls(*(ToolCall("a" * 1000, "read") for _ in range(100)))]).notes
    assert len(notes) == 21 and all(len(note) <= 200 for note in notes)
    assert notes[-1] == "the history has 179 more problems"


def test_a_wire_that_needs_no_ids_keeps_its_bytes() -> None:
    called = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read", "arguments": {}}}]}
    messages = [{"role": "user", "content": "go"}, called, {"role": "tool", "tool_name": "read", "content": "x"}]
    tools = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
    body = json.dumps({"model": "m", "messages": messages, "tools": tools, "stream": False}).encode()
    assert Line("ollama", "ollama").open(body, False).upstream_body == body


def test_a_wire_that_needs_ids_gets_them() -> None:
    exchange = line_of("openai_chat", "openai_chat").ask(
        Conversation("m", (user("go"), calls(""), result("")), TOOLS), False
    )
    (call_id,) = check_request("openai_chat", exchange.upstream_body)
    assert re.fullmatch("call_[0-9A-Za-z]{9}", call_id)


def test_a_broken_history_of_every_client_wire_is_written_again() -> None:
    """Orphan results and unanswered calls, as each wire writes them."""
    orphan = {"type": "tool_result", "tool_use_id": "x", "content": "words"}
    used = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    bodies = {
        "anthropic_messages": {"max_tokens": 9, "messages": [{"role": "user", "content": [orphan]}, {"role": "assistant", "content": [used]}, {"role": "user", "content": "go"}], "tools": [{"name": "read", "input_schema": {"type": "object"}}]},
        "gemini": {"contents": [{"role": "user", "parts": [{"functionResponse": {"id": "x", "name": "read", "response": {"output": "words"}}}]}, {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}, {"role": "user", "parts": [{"text": "go"}]}], "tools": [{"functionDeclarations": [{"name": "read"}]}]},
        "openai_responses": {"input": [{"type": "function_call_output", "call_id": "x", "output": "words"}, {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{"}, {"role": "user", "content": "go"}], "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}]},
    }  # fmt: skip
    for wire, body in bodies.items():
        sent = Line(wire, wire).open(json.dumps({"model": "m", **body}).encode(), False).upstream_body
        assert len(check_request(wire, sent)) == 1
        assert b"words" in sent and UNANSWERED.encode() in sent


@in_one_test("client", ["anthropic_messages", "openai_chat"])
def test_what_only_the_messages_wire_refuses_is_written_again(client: str) -> None:
    """Arguments that are no object, ids of other wires, and an answer without content."""
    used: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "read", "input": {"path": "a"}}
    returned = {"type": "tool_result", "tool_use_id": "a", "content": "words"}
    inputs = [{**used, "input": '{"path": "a"}'}, {**used, "input": None}, {**used, "id": "functions.read:0"}]
    for block in inputs:
        result_block = {**returned, "tool_use_id": block["id"]}
        answers = [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result_block]}]
        (call,) = find_calls(send_messages(client, answers))
        assert call["input"] == ({"path": "a"} if block["input"] else {})
        assert re.fullmatch("[a-zA-Z0-9_-]+", call["id"])
    sent = send_messages(client, [{"role": "assistant", "content": []}, {"role": "user", "content": "again"}])
    assert all(message["content"] for message in sent)
    healthy = [{"role": "assistant", "content": [used]}, {"role": "user", "content": [returned]}]
    assert send_messages("anthropic_messages", healthy)[1:] == healthy


def send_messages(client: str, more: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What an upstream of the Messages wire gets of messages of this wire, sent by a client of another one, too."""
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}, *more], "tools": tools}
    body = json.dumps(asked).encode()
    if client != "anthropic_messages":
        body = line_of("anthropic_messages", client).open(body, False).upstream_body
    sent = Line(client, "anthropic_messages").open(body, False).upstream_body
    messages: list[dict[str, Any]] = json.loads(sent)["messages"]
    return messages


def find_calls(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    blocks = (block for message in messages for block in message["content"] if isinstance(message["content"], list))
    return [block for block in blocks if block["type"] == "tool_use"]


def test_an_answer_without_content_is_an_empty_text_of_the_chat_wire() -> None:
    """Servers refuse ``null`` in a message without calls."""
    turns = [{"role": "user", "content": "go"}, {"role": "assistant", "content": []}, {"role": "user", "content": "go"}]
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": turns, "tools": tools}).encode()
    sent = line_of("anthropic_messages", "openai_chat").open(body, False).upstream_body
    assert [message["content"] for message in json.loads(sent)["messages"]] == ["go", "", "go"]
