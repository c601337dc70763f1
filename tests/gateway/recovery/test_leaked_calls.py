"""``reading.leaked_calls = "feedback"``: a call that a native model writes as text is never made, over all wires."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from support.line import Line, sum_up
from support.rows import in_one_test
from support.wiring import USAGE

from toolglot.core.conversation import Conversation, Message, Text, Tool, Tools
from toolglot.core.events import CallArguments, CallEnded, CallStarted, Event, Finished, ReasoningDelta, TextDelta
from toolglot.gateway.exchange import Exchange
from toolglot.wires import client_wires

WIRES = sorted(client_wires())
EVERY = in_one_test(("client", "upstream"), [*product(WIRES, WIRES)], ids=map("-".join, product(WIRES, WIRES)))
STREAMED = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
READ = Tool("read_file", "", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
ASKED = Conversation("m", (Message("user", (Text("Read a.py"),)),), Tools((READ,)))
HERMES = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a.py"}}\n</tool_call>'
LEAKS = {
    "hermes": HERMES,
    "between prose": f"I look.\n\n{HERMES}\n\nThen I go on.",
    "two": f"{HERMES}\n\n{HERMES}",
    "qwen3_coder": "Now.\n<function=read_file>\n<parameter=path>\na.py\n</parameter>\n</function>\n</tool_call>",
    "element": "<read_file>\n<path>a.py</path>\n</read_file>",
    "bare JSON": '{"name": "read_file", "arguments": {"path": "a.py"}}',
    "special tokens": '[TOOL_CALLS]read_file[ARGS]{"path": "a.py"}',
}
MADE = [("read_file", {"path": "a.py"})]


def open_line(client: str, upstream: str, streamed: bool, retries: int = 1) -> tuple[Line, Exchange]:
    line = Line(client, upstream, "native", leaked_calls="feedback", recovery_retries=retries)
    return line, line.ask(ASKED, streamed)


def pieces(text: str, size: int = 5) -> list[Event]:
    return [*(TextDelta(text[at : at + size]) for at in range(0, len(text), size)), Finished("stop", USAGE)]


def made(name: str = "read_file", arguments: Any = MADE[0][1]) -> list[Event]:
    call: Iterator[Event] = iter(
        (CallStarted(0, "call_7", name), CallArguments(0, json.dumps(arguments)), CallEnded(0))
    )
    return [*call, Finished("tool_calls", USAGE)]


@in_one_test("text", LEAKS.values(), ids=LEAKS)
@EVERY
@STREAMED
def test_a_leaked_call_is_asked_for_again_natively(client: str, upstream: str, text: str, streamed: bool) -> None:
    line, exchange = open_line(client, upstream, streamed)
    events, requests = line.answer_in_turn(exchange, [pieces(text), made()])
    assert sum_up(events)[1:] == (MADE, "tool_calls")
    (request,) = requests
    assert request.tools and request.messages[-1].role == "user"
    feedback = request.messages[-1].text
    assert "written as text" in feedback and "through the tool-calling interface" in feedback and "a.py" in feedback
    assert "leaked" in exchange.recorder.rejected and exchange.recorder.attempts


@in_one_test("text", LEAKS.values(), ids=LEAKS)
@in_one_test("retries", [0, 1, 3])
@EVERY
@STREAMED
def test_it_is_text_if_the_model_never_makes_it(
    client: str, upstream: str, retries: int, text: str, streamed: bool
) -> None:
    line, exchange = open_line(client, upstream, streamed, retries)
    events, requests = line.answer_in_turn(exchange, [pieces(text)] * (retries + 1))
    answer, calls, reason = sum_up(events)
    assert (calls, reason) == ([], "stop") and len(requests) == retries
    assert answer.startswith(text) and "was not made: " in answer
    assert all(request.tools for request in requests), "the tools stay native"
    assert exchange.recorder.rejected[0] == "leaked" and exchange.recorder.calls == 0
    assert exchange.recorder.outcomes["native"]["leaked"] >= 1


@EVERY
@STREAMED
def test_words_are_the_answer_if_no_call_was_meant(client: str, upstream: str, streamed: bool) -> None:
    line, exchange = open_line(client, upstream, streamed)
    events, _ = line.answer_in_turn(exchange, [pieces(HERMES), pieces("There is nothing to read.")])
    answer, calls, reason = sum_up(events)
    assert (answer.strip(), calls, reason) == ("There is nothing to read.", [], "stop")


@STREAMED
def test_a_native_call_is_made_and_a_call_beside_it_is_text(streamed: bool) -> None:
    line, exchange = open_line("openai_chat", "openai_chat", streamed)
    events, requests = line.answer_in_turn(exchange, [[*pieces(HERMES)[:-1], *made()]])
    assert (sum_up(events), requests) == ((HERMES, MADE, "tool_calls"), [])


@STREAMED
def test_a_call_in_the_reasoning_is_not_made(streamed: bool) -> None:
    line, exchange = open_line("openai_chat", "openai_chat", streamed)
    thought: list[Event] = [ReasoningDelta(f"I read it.\n{HERMES}"), Finished("stop", USAGE)]
    events, requests = line.answer_in_turn(exchange, [thought, made()])
    assert sum_up(events)[1:] == (MADE, "tool_calls") and len(requests) == 1


def test_calls_are_executed_by_default() -> None:
    line = Line("openai_chat", "openai_chat", "native")
    assert sum_up(line.answer(line.ask(ASKED, True), pieces(HERMES)))[1] == MADE
