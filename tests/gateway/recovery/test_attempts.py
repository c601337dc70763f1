"""Defective answers, and what the client gets after the model was asked again, between all wires."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest
from msgspec.structs import replace
from support.line import Line, sum_up
from support.rows import in_one_test

from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolResult, Tools
from toolglot.core.errors import ToolglotError, UpstreamError, UpstreamResponseError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    TextDelta,
    Usage,
)
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.recovery.attempts import add_usage
from toolglot.gateway.recovery.retry_messages import copies_feedback
from toolglot.gateway.response_pipeline import reply_to_failure
from toolglot.wires import client_wires

WIRES = sorted(client_wires())
PAIRS = [(client, upstream) for client in WIRES for upstream in WIRES]
STREAMED = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
WRITE = Tool(
    "write_file",
    "Write a file",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "content": {"type": "string"},
            "mode": {"type": "string", "enum": ["create", "append"]},
        },
        "required": ["path", "content"],
    },
)
READ = Tool(
    "read_file",
    "Read a file",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
ASKED = Conversation("m", (Message("user", (Text("Write the notes into a.txt"),)),), Tools((WRITE, READ)))
AFTER_RESULT = Conversation(
    "m",
    (
        *ASKED.messages,
        Message("assistant", (ToolCall("call_1", "read_file", '{"path": "a.txt"}'),)),
        Message("tool", (ToolResult("call_1", "read_file", (Text("x"),)),)),
    ),
    ASKED.tools,
)
GOOD = {"path": "a.txt", "content": "notes <b>"}
USAGE = Usage(input_tokens=10, output_tokens=5, total_tokens=15)


def written(text: str, reason: str = "stop") -> list[Event]:
    return [TextDelta(text), Finished(reason, USAGE)]


def hermes(name: str, arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def native(name: str, arguments: str, text: str = "", reason: str = "tool_calls") -> list[Event]:
    words: list[Event] = [TextDelta(text)] if text else []
    return [*words, CallStarted(0, "call_9", name), CallArguments(0, arguments), CallEnded(0), Finished(reason, USAGE)]


def ask(
    client: str, upstream: str, mode: str, streamed: bool, asked: Conversation = ASKED, **more: Any
) -> tuple[Line, Exchange]:
    given = {"recovery_retries": 1, **({"dialect": "hermes"} if mode == "text" else {}), **more}
    line = Line(client, upstream, mode, **given)
    return line, line.ask(asked, streamed)


BROKEN_TEXTS = {
    "broken JSON": '<tool_call>\n{"name": "write_file", "arguments": {"path" "a.txt" content}}\n</tool_call>',
    "a missing argument": hermes("write_file", {"path": "a.txt"}),
    "a wrong enum": hermes("write_file", {**GOOD, "mode": "truncate"}),
    "an unknown tool": hermes("write_files", GOOD),
    "a cut call": '<tool_call>\n{"name": "write_file", "arguments": {"path": "a.txt", "content": "not',
}


@in_one_test("text", BROKEN_TEXTS.values(), ids=BROKEN_TEXTS)
@in_one_test(("client", "upstream"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@STREAMED
def test_a_defective_text_call_is_written_again(client: str, upstream: str, text: str, streamed: bool) -> None:
    line, exchange = ask(client, upstream, "text", streamed)
    attempts = [written(f"I write the file.\n{text}"), written(f"Sorry.\n{hermes('write_file', GOOD)}")]
    events, requests = line.answer_in_turn(exchange, attempts)
    text_before, calls, reason = sum_up(events)
    assert (text_before.strip(), calls, reason) == ("I write the file.", [("write_file", GOOD)], "tool_calls")
    assert len(requests) == 1
    feedback = requests[0].messages[-1]
    assert feedback.role == "user" and "write_file" in feedback.text
    assert requests[0].messages[-2].role == "assistant"
    assert len(exchange.recorder.attempts) == 1
    assert exchange.recorder.usage is not None and exchange.recorder.usage.total_tokens == 30
    assert exchange.recorder.tools == ["write_file"] and exchange.recorder.calls == 1
    assert not exchange.recorder.error


@in_one_test("arguments", ['{"path": "a.txt"}', '{"path": "a.txt", "content": ["x"]}', "{}"])
@in_one_test(("client", "upstream"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@STREAMED
def test_defective_native_arguments_are_written_again(
    client: str, upstream: str, arguments: str, streamed: bool
) -> None:
    line, exchange = ask(client, upstream, "native", streamed, recovery_hold_calls="always")
    attempts = [native("write_file", arguments, "I write."), native("write_file", json.dumps(GOOD), "Sorry.")]
    events, requests = line.answer_in_turn(exchange, attempts)
    assert sum_up(events) == ("I write.", [("write_file", GOOD)], "tool_calls")
    assert len(requests) == 1
    call, result = requests[0].messages[-2:]
    assert call.role == "assistant" and [part.name for part in call.calls] == ["write_file"]
    assert result.role == "tool"
    assert "content" in "".join(part.text for part in result.parts[0].content)
    assert exchange.recorder.calls == 1


@STREAMED
def test_an_unknown_native_tool_is_asked_once_then_delivered(streamed: bool) -> None:
    line, exchange = ask("openai_chat", "openai_chat", "native", streamed)
    wrong = native("write", json.dumps(GOOD))
    events, requests = line.answer_in_turn(exchange, [wrong, wrong])
    assert sum_up(events) == ("", [("write", GOOD)], "tool_calls")
    assert len(requests) == 1
    assert exchange.recorder.tools == ["write"] and exchange.recorder.calls == 1


@STREAMED
def test_words_replace_a_call_of_an_unknown_tool(streamed: bool) -> None:
    line, exchange = ask("openai_chat", "openai_chat", "text", streamed)
    attempts = [written(hermes("calculate", {"x": 1})), written("The result is 2.")]
    events, requests = line.answer_in_turn(exchange, attempts)
    assert sum_up(events) == ("The result is 2.", [], "stop")
    assert len(requests) == 1


@in_one_test("mode", ["text", "native"])
@in_one_test(("client", "upstream"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@STREAMED
def test_a_narrated_stop_is_followed_by_the_call(client: str, upstream: str, mode: str, streamed: bool) -> None:
    line, exchange = ask(client, upstream, mode, streamed, AFTER_RESULT)
    text_before = "The file holds one letter. Let me write the notes now:"
    call = native("write_file", json.dumps(GOOD)) if mode == "native" else written(hermes("write_file", GOOD))
    events, requests = line.answer_in_turn(exchange, [written(text_before), call])
    assert sum_up(events) == (text_before, [("write_file", GOOD)], "tool_calls")
    assert len(requests) == 1


@STREAMED
def test_a_narrated_stop_stands_if_words_follow(streamed: bool) -> None:
    line, exchange = ask("openai_chat", "anthropic_messages", "native", streamed, AFTER_RESULT)
    text_before = "Let me write the notes now:"
    events, requests = line.answer_in_turn(exchange, [written(text_before), written("Done.")])
    assert sum_up(events) == (text_before, [], "stop")
    assert len(requests) == 1


@in_one_test("mode", ["text", "native"])
@in_one_test(("client", "upstream"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@STREAMED
def test_an_empty_answer_is_asked_again(client: str, upstream: str, mode: str, streamed: bool) -> None:
    line, exchange = ask(client, upstream, mode, streamed)
    events, requests = line.answer_in_turn(exchange, [[Finished("stop", USAGE)], written("All done.")])
    assert sum_up(events) == ("All done.", [], "stop")
    assert len(requests) == 1
    assert requests[0].messages[-1].role == "user"
    assert not exchange.recorder.error


@in_one_test(("client", "upstream"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@STREAMED
def test_a_model_that_stays_silent_behind_a_result_ends_the_turn(client: str, upstream: str, streamed: bool) -> None:
    line, exchange = ask(client, upstream, "native", streamed, AFTER_RESULT)
    empty: list[Event] = [Finished("stop", USAGE)]
    events, requests = line.answer_in_turn(exchange, [empty, empty])
    assert sum_up(events) == ("", [], "stop")
    assert len(requests) == 1
    assert not exchange.recorder.error
    assert any("nothing to add" in note for note in exchange.recorder.notes)


def test_a_model_that_stays_silent_otherwise_fails() -> None:
    line, exchange = ask("openai_chat", "openai_chat", "native", False)
    empty: list[Event] = [Finished("stop", USAGE)]
    with pytest.raises(ToolglotError, match="empty"):
        line.answer_in_turn(exchange, [empty, empty])
    line, exchange = ask("openai_chat", "openai_chat", "native", True)
    events, _ = line.answer_in_turn(exchange, [empty, empty])
    assert sum_up(events)[2] == "failed"
    assert exchange.recorder.error == "empty_answer"


# -- streams: what was sent cannot be retracted ------------------------------------------------------------------------


def test_a_corrected_call_that_contradicts_what_was_sent_fails() -> None:
    line, exchange = ask("openai_chat", "openai_chat", "text", True)
    attempts = [written(hermes("write_file", {"path": "a.txt"})), written(hermes("read_file", {"path": "a.txt"}))]
    events, _ = line.answer_in_turn(exchange, attempts)
    assert sum_up(events)[1:] == ([], "failed")
    assert exchange.recorder.error == "refused_call"


def test_no_text_follows_a_call_that_goes_on() -> None:
    line, exchange = ask("anthropic_messages", "openai_chat", "text", True)
    attempts = [written("I write.\n" + hermes("write_file", {"path": "a.txt"})), written(hermes("write_file", GOOD))]
    events, _ = line.answer_in_turn(exchange, attempts)
    assert sum_up(events) == ("I write.", [("write_file", GOOD)], "tool_calls")


def test_calls_are_held_after_a_defect() -> None:
    line, exchange = ask("openai_chat", "openai_chat", "text", True)
    line.answer_in_turn(exchange, [written(hermes("write_file", {"path": "a"})), written(hermes("write_file", GOOD))])
    exchange = line.ask(ASKED, True)
    attempts = [written(hermes("write_file", {"path": "a.txt"})), written(hermes("read_file", {"path": "a.txt"}))]
    events, _ = line.answer_in_turn(exchange, attempts)
    assert sum_up(events) == ("", [("read_file", {"path": "a.txt"})], "tool_calls")


def test_a_call_that_the_client_has_is_not_sent_twice() -> None:
    read, broken = hermes("read_file", {"path": "b"}), BROKEN_TEXTS["broken JSON"]
    line, exchange = ask("openai_chat", "openai_chat", "text", True, parallel_calls=True)
    attempts = [written(f"{read}\n{broken}"), written(f"{read}\n{hermes('write_file', GOOD)}")]
    events, requests = line.answer_in_turn(exchange, attempts)
    assert sum_up(events)[1:] == ([("read_file", {"path": "b"}), ("write_file", GOOD)], "tool_calls")
    assert "do not repeat" in requests[0].messages[-1].text


@STREAMED
@in_one_test("client", WIRES)
def test_ids_of_all_attempts_differ(client: str, streamed: bool) -> None:
    read: list[Event] = [CallStarted(0, "call_0", "read_file"), CallArguments(0, '{"path":"b"}'), CallEnded(0)]
    line, exchange = ask(client, "openai_chat", "native", streamed, parallel_calls=True, recovery_hold_calls="always")
    write: list[Event] = [CallStarted(1, "call_1", "write_file"), CallArguments(1, '{"path":"a"}'), CallEnded(1)]
    again: list[Event] = [CallStarted(0, "call_0", "write_file"), CallArguments(0, json.dumps(GOOD)), CallEnded(0)]
    end = Finished("tool_calls", USAGE)
    events, _ = line.answer_in_turn(exchange, [[*read, *write, end], [*again, end]])
    assert sum_up(events)[1] == [("read_file", {"path": "b"}), ("write_file", GOOD)]
    assert len({event.id for event in events if isinstance(event, CallStarted)}) == 2


# -- attempts that break off -------------------------------------------------------------------------------------------

LOST = Failed("server_error", "the connection was lost")


@pytest.mark.parametrize("mode", ["native", "text"])
@pytest.mark.parametrize("words", ["I cannot", "Now:\n" + hermes("write_file", GOOD), "<tool_call>\n{"])
def test_nothing_counts_of_an_attempt_that_breaks_off(words: str, mode: str) -> None:
    line, exchange = ask("openai_chat", "openai_chat", mode, True, recovery_hold_calls="always")
    first = native("write_file", '{"path": "a"}', "Hi.") if mode == "native" else written(hermes("save_notes", GOOD))
    events, _ = line.answer_in_turn(exchange, [first, [TextDelta(words), LOST]])
    made = [("write_file", {"path": "a"})] if mode == "native" else [("save_notes", GOOD)]
    assert sum_up(events) == ("Hi." if mode == "native" else "", made, "tool_calls")
    assert exchange.recorder.calls == 1


def test_a_native_call_of_an_attempt_that_breaks_off_is_not_made() -> None:
    line, exchange = ask("openai_chat", "anthropic_messages", "native", True, recovery_hold_calls="always")
    attempts = [native("write_file", '{"path": "a"}'), [*native("write_file", json.dumps(GOOD))[:-1], LOST]]
    events, _ = line.answer_in_turn(exchange, attempts)
    assert sum_up(events)[1:] == ([("write_file", {"path": "a"})], "tool_calls")


@STREAMED
def test_an_attempt_without_usage_adds_none(streamed: bool) -> None:
    line, exchange = ask("openai_chat", "openai_chat", "text", streamed, recovery_hold_calls="always")
    again: list[Event] = [TextDelta(hermes("write_file", GOOD)), Finished("stop")]
    events, _ = line.answer_in_turn(exchange, [written(hermes("write_file", {"path": "a"})), again])
    assert isinstance(events[-1], Finished) and events[-1].usage is not None
    assert events[-1].usage.total_tokens == USAGE.total_tokens


def test_usage_of_different_wires_is_added() -> None:
    reported = {"prompt_tokens": 10, "completion_tokens": 5}
    chat = replace(USAGE, reported=reported)
    messages = Usage(input_tokens=3, output_tokens=2, total_tokens=5, reported={"input_tokens": 3, "output_tokens": 2})
    assert add_usage(chat, messages) == Usage(input_tokens=13, output_tokens=7, total_tokens=20)
    both = add_usage(chat, chat)
    assert both is not None and both.reported == {"prompt_tokens": 20, "completion_tokens": 10}


BROKEN = BROKEN_TEXTS["broken JSON"]


def explain(events: list[Event]) -> str:
    """What the client reads about a call that was not made."""
    last = events[-1]
    return last.message if isinstance(last, Failed) else sum_up(events)[0]


@pytest.mark.parametrize("mode", ["text", "native"])
@STREAMED
def test_calls_behind_a_defective_one_are_asked_for_again(mode: str, streamed: bool) -> None:
    line, exchange = ask("openai_chat", "anthropic_messages", mode, streamed, recovery_hold_calls="always")
    read, path = '{"path": "b"}', '{"path": "a.txt"}'
    if mode == "text":
        first = written(f"{hermes('write_file', {'path': 'a.txt'})}\n{hermes('read_file', {'path': 'b'})}")
        second = written(f"{hermes('write_file', GOOD)}\n{hermes('read_file', {'path': 'b'})}")
    else:
        later: list[Event] = [CallStarted(1, "call_2", "read_file"), CallArguments(1, read), CallEnded(1)]
        first = [*native("write_file", path)[:-1], *later, Finished("tool_calls", USAGE)]
        second = [*native("write_file", json.dumps(GOOD))[:-1], *later, Finished("tool_calls", USAGE)]
    events, requests = line.answer_in_turn(exchange, [first, second])
    assert sum_up(events) == ("", [("write_file", GOOD), ("read_file", {"path": "b"})], "tool_calls")
    assert "write them again too" in str(requests[0].messages)


@pytest.mark.parametrize("mode", ["text", "native"])
@STREAMED
def test_a_corrected_call_may_differ_in_the_last_digit_of_an_id(mode: str, streamed: bool) -> None:
    kinds = {"type": "object", "properties": {"id": {"type": "integer"}, "why": {"type": "string"}}}
    tool = Tool("delete", "", {**kinds, "required": ["id", "why"]})
    line, exchange = ask(
        "openai_chat", "openai_chat", mode, streamed, replace(ASKED, tools=Tools((tool,))), recovery_hold_calls="always"
    )
    one, other = {"id": 1234567890123456789, "why": "x"}, {"id": 1234567890123456788, "why": "x"}
    if mode == "text":
        first = written(f"{hermes('delete', one)}\n{hermes('delete', {'id': other['id']})}")
        second = written(hermes("delete", other))
    else:
        cut: list[Event] = [CallStarted(1, "call_2", "delete"), CallArguments(1, '{"id": 12}'), CallEnded(1)]
        first = [*native("delete", json.dumps(one))[:-1], *cut, Finished("tool_calls", USAGE)]
        second = native("delete", json.dumps(other))
    events, _ = line.answer_in_turn(exchange, [first, second])
    assert sum_up(events) == ("", [("delete", one), ("delete", other)], "tool_calls")


# -- bounds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["text", "native"])
@STREAMED
def test_good_answers_cost_no_further_request(mode: str, streamed: bool) -> None:
    call = native("write_file", json.dumps(GOOD)) if mode == "native" else written(hermes("write_file", GOOD))
    for answer in (call, written("I have written the notes. Let me know if you need more."), written("x", "length")):
        line, exchange = ask("openai_chat", "anthropic_messages", mode, streamed, AFTER_RESULT)
        _, requests = line.answer_in_turn(exchange, [answer])
        assert not requests


@STREAMED
def test_a_call_cut_by_the_token_limit_is_not_asked_again(streamed: bool) -> None:
    line, exchange = ask("openai_chat", "openai_chat", "text", streamed)
    events, requests = line.answer_in_turn(exchange, [written(BROKEN_TEXTS["a cut call"], "length")])
    assert not requests
    assert sum_up(events)[1:] == ([], "length")


@STREAMED
def test_limits_end_the_attempts(streamed: bool) -> None:
    broken = written(BROKEN)
    for limits in ({"recovery_retries": 0}, {"recovery_tokens": 10}, {"rollout_recovery": "off"}):
        line, exchange = ask("openai_chat", "openai_chat", "text", streamed, **limits)
        events, requests = line.answer_in_turn(exchange, [broken])
        assert not requests
        assert "was not made" in explain(events)


@STREAMED
def test_a_dry_run_only_records(streamed: bool) -> None:
    line, exchange = ask("openai_chat", "openai_chat", "text", streamed, rollout_recovery="shadow")
    events, requests = line.answer_in_turn(exchange, [written(BROKEN)])
    assert not requests
    assert "was not made" in explain(events)
    assert exchange.recorder.outcomes["recovery"] == {"rejected_call": 1}


@STREAMED
def test_the_client_gets_the_feedback_if_nothing_is_retried(streamed: bool) -> None:
    line, exchange = ask("openai_chat", "openai_chat", "text", streamed, recovery_feedback_only="true")
    events, requests = line.answer_in_turn(exchange, [written(BROKEN)])
    assert not requests
    assert "Write the call again" in explain(events)


@STREAMED
def test_the_steps_end_with_one_tool_and_another_dialect(streamed: bool) -> None:
    line, exchange = ask("openai_chat", "openai_chat", "text", streamed, recovery_retries=3)
    broken = written(BROKEN_TEXTS["a wrong enum"])
    call = "<tool_call>\n<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\nnotes <b>\n"
    call += "</parameter>\n</function>\n</tool_call>"
    events, requests = line.answer_in_turn(exchange, [broken, broken, broken, written(call)])
    assert sum_up(events)[1:] == ([("write_file", GOOD)], "tool_calls")
    prompts = [request.messages[0].text for request in requests]
    assert ["read_file" in prompt for prompt in prompts] == [True, False, True]
    assert "<function=" in prompts[2]
    assert [one.error for one in exchange.recorder.attempts] == ["invalid_arguments"] * 3 or all(
        one.error in ("invalid_arguments", "rejected_call") for one in exchange.recorder.attempts
    )


# -- answers that were cut ---------------------------------------------------------------------------------------------


@in_one_test("overlap", [0, 12])
@in_one_test(("client", "upstream"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@STREAMED
def test_a_cut_call_is_continued_if_the_settings_say_so(
    client: str, upstream: str, streamed: bool, overlap: int
) -> None:
    whole = f"I write.\n{hermes('write_file', GOOD)}"
    for cut in (40, 70, len(whole) - 20):
        line, exchange = ask(client, upstream, "text", streamed, recovery_continue_cut="true")
        attempts = [written(whole[:cut], "length"), written(whole[cut - overlap :])]
        events, requests = line.answer_in_turn(exchange, attempts)
        text, calls, reason = sum_up(events)
        assert (text.strip(), calls, reason) == ("I write.", [("write_file", GOOD)], "tool_calls")
        assert len(requests) == 1
        assert requests[0].messages[-2].text == whole[:cut]


@STREAMED
def test_a_call_that_stays_cut_is_never_made(streamed: bool) -> None:
    whole = hermes("write_file", GOOD)
    line, exchange = ask("openai_chat", "openai_chat", "text", streamed, recovery_continue_cut="true")
    attempts = [written(whole[:60], "length"), written(whole[60:70], "length")]
    events, requests = line.answer_in_turn(exchange, attempts)
    assert sum_up(events)[1:] == ([], "length")
    assert len(requests) == 1


@in_one_test("client", WIRES)
@in_one_test("mode", ["text", "native"])
def test_a_broken_connection_is_an_error_and_not_a_defect(client: str, mode: str) -> None:
    """The client gets the error at once, in the middle of a call too; the model did nothing wrong."""
    line, exchange = ask(client, "openai_chat", mode, True)
    begun = native("write_file", '{"path": "a.txt", "content": "no')[:2]
    cut: list[Event] = [TextDelta(BROKEN_TEXTS["a cut call"])] if mode == "text" else begun
    events = line.break_off(exchange, cut, UpstreamError("The connection broke."))
    assert sum_up(events)[1:] == ([], "failed") and not exchange.asks_again
    assert "connection broke" in str(events[-1])


@pytest.mark.parametrize(
    ("arguments", "copied"),
    [
        ('{"command": "make the next tool call, or if nothing is left to do, say so"}', True),
        ('{"content": "Your last answer was empty."}', True),
        ('{"path": "[... write your value of path here ...]"}', True),
        ('{"command": "make all", "content": "Nothing is left to do. Go on."}', False),
        ('{"path": "a.txt"}', False),
    ],
)
def test_a_call_that_copies_the_feedback_is_not_meant(arguments: str, copied: bool) -> None:
    assert copies_feedback(arguments) is copied


@pytest.mark.parametrize("mode", ["text", "native"])
@STREAMED
def test_a_call_made_of_the_feedback_is_never_delivered(mode: str, streamed: bool) -> None:
    line, exchange = ask("openai_chat", "openai_chat", mode, streamed)
    copied = {"path": "a.txt", "content": "make the next tool call, or if nothing is left to do, say so in words."}
    answer = written(hermes("write_file", copied)) if mode == "text" else native("write_file", json.dumps(copied))
    empty: list[Event] = [Finished("stop", USAGE)]
    if streamed:
        events, _ = line.answer_in_turn(exchange, [empty, answer])
        assert sum_up(events)[1:] == ([], "failed")
    else:
        with pytest.raises(ToolglotError, match="empty"):
            line.answer_in_turn(exchange, [empty, answer])


MISSED = {
    "a bare call of a tool that is not offered": ("<bash>\n<command>ls</command>\n</bash>", "no tool `bash`"),
    "JSON with a damaged key": ('{"name": "read_file", "arguments": {"path" "a.txt"}}', "`read_file`"),
    "an element with a wrong parameter": ("<read_file>\n<paht>a.txt</paht>\n</read_file>", "`paht`"),
}


@in_one_test(("text", "named"), MISSED.values(), ids=MISSED)
@in_one_test("mode", ["text", "native"])
@STREAMED
def test_feedback_on_a_near_miss_names_what_is_wrong(mode: str, text: str, named: str, streamed: bool) -> None:
    line, exchange = ask("openai_chat", "openai_chat", mode, streamed)
    good = (
        written(hermes("read_file", {"path": "a.txt"})) if mode == "text" else native("read_file", '{"path": "a.txt"}')
    )
    events, requests = line.answer_in_turn(exchange, [written(f"I look.\n\n{text}"), good])
    assert sum_up(events)[1:] == ([("read_file", {"path": "a.txt"})], "tool_calls")
    feedback = requests[0].messages[-1].text
    assert named in feedback and "read_file" in feedback
    assert ("through the tool-calling interface" in feedback) == (mode == "native")


@pytest.mark.parametrize("retries", [0, 1, 2])
@pytest.mark.parametrize("text", ["", "I read."])
@STREAMED
def test_a_cut_native_call_ends_alike_with_recovery_and_without(retries: int, text: str, streamed: bool) -> None:
    line, exchange = ask("openai_chat", "openai_chat", "native", streamed, recovery_retries=retries)
    cut = native("read_file", '{"path": "a', text)
    if streamed or not text:
        with pytest.raises(ToolglotError, match="end in the middle") if not streamed else nullcontext():
            events, _ = line.answer_in_turn(exchange, [cut] * (retries + 1))
            assert sum_up(events)[1:] == ([], "failed")
    else:
        events, _ = line.answer_in_turn(exchange, [cut] * (retries + 1))
        note = "(The call of read_file was cut off before it was complete, and was not made.)"
        assert sum_up(events) == (f"{text}\n\n{note}", [], "length")


def test_feedback_on_a_call_in_a_servers_error_names_what_is_wrong() -> None:
    line, exchange = ask("openai_chat", "openai_chat", "text", False)
    error = UpstreamResponseError(f"Failed to parse input at pos 0: {hermes('read_file', {'pth': 'a.txt'})}", 500)
    assert exchange.is_unparsed(error) and reply_to_failure(exchange, error) == b"" and exchange.asks_again
    exchange.ask_again()
    assert "`pth`" in line.arrive(exchange).messages[-1].text


MISSPELT = {
    "first": '<tool_call>\n{"name": "write_file", "arguments": {"paht": "a.txt", "content": "notes <b>"}}\n</tool_call>',
    "second": "<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=contnet>\nnotes <b>\n</parameter>\n</function>",
}


@in_one_test("text", MISSPELT.values(), ids=MISSPELT)
def test_a_misspelt_argument_of_a_streamed_call_is_corrected(text: str) -> None:
    line, exchange = ask("openai_chat", "openai_chat", "text", True, recovery_hold_calls="never")
    events, requests = line.answer_in_turn(exchange, [written(text), written(hermes("write_file", GOOD))])
    assert sum_up(events)[1:] == ([("write_file", GOOD)], "tool_calls") and len(requests) == 1
