"""The simulated model on every wire: its answers are read by strict clients that share no code with it."""

from __future__ import annotations

import asyncio
import json

import pytest
from faults.cells import exchange
from faults.client_readers import Outcome, read_answer
from faults.wire_data import WIRES, make_request
from support.rows import in_one_test

from toolglot.sim import SimOptions, make_app, running

QUESTION = 'call read with {"filePath": "a.txt"}'


def ask(wire: str, *, stream: bool, tools: bool = True, question: str = QUESTION, **options: object) -> Outcome:
    async def run() -> Outcome:
        async with running(make_app(SimOptions(**options))) as address:  # type: ignore[arg-type]
            path, body = make_request(wire, "sim", stream=stream, tools=tools, question=question)
            port = int(address.rpartition(":")[2])
            status, received, complete = await exchange(port, path, json.dumps(body).encode(), "x")
            return read_answer(wire, status, received, stream=stream, complete=complete)

    return asyncio.run(run())


@in_one_test("stream", [True, False])
@in_one_test("wire", WIRES)
def test_calls_and_text(wire: str, stream: bool) -> None:
    called = ask(wire, stream=stream, chunk=3)
    assert (called.end, called.calls) == ("ok", [("read", {"filePath": "a.txt"})])
    assert called.text == "I'll use the read tool."
    plain = ask(wire, stream=stream, tools=False, question="Hello")
    assert (plain.end, plain.calls) == ("ok", [])
    assert plain.text.endswith("You said: `Hello`")


@in_one_test("stream", [True, False])
@in_one_test("wire", WIRES)
def test_refusals_have_the_form_of_the_wire(wire: str, stream: bool) -> None:
    refused = ask(wire, stream=stream, faults=("http_500",))
    assert (refused.end, refused.status) == ("error", 500)


@in_one_test("stream", [True, False])
@in_one_test("wire", [wire for wire in WIRES if wire != "gemini"])
def test_a_parser_that_fails_is_an_error(wire: str, stream: bool) -> None:
    name = "parser_500_arguments" if wire == "ollama" else "parser_500_whole"
    for seed in range(4):  # half of the streams fail behind their text
        failed = ask(wire, stream=stream, defects=1, seed=seed, classes=(name,))
        assert failed.end in ("error", "error_event")
        assert failed.end == "error" or (failed.text and not failed.calls)


@pytest.mark.parametrize("wire", WIRES)
def test_arguments_that_are_no_object_come_only_where_they_can(wire: str) -> None:
    whole = ask(wire, stream=False, defects=1, classes=("words_for_arguments", "unknown_tool"))
    if wire in ("openai_chat", "openai_responses"):
        assert whole.end == "bad_call" or whole.calls[0][0] == "read_v2"
    else:
        assert whole.calls == [("read_v2", {"filePath": "a.txt"})]
