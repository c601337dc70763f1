"""Errors that upstreams report within an answer, with the status 200: clients learn what they would have learnt from the
status."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.line import Line
from support.rows import in_one_test

from toolglot.core.conversation import Conversation, Message, Text, Tool
from toolglot.core.errors import ToolglotError, UpstreamResponseError, read_status
from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.response_streams import open_stream
from toolglot.wires import client_wires

ASKED = Conversation("m", (Message("user", (Text("hi"),)),), (Tool("read"),))


def error(code: object) -> dict[str, Any]:
    return {"error": {"message": "It is too much.", "code": code}}


def carry_whole(client: str, code: object) -> ToolglotError:
    line = Line(client, "openai_chat")
    with pytest.raises(ToolglotError) as raised:
        reply(line.ask(ASKED, stream=False), json.dumps(error(code)).encode())
    return raised.value


def carry_stream(client: str, code: object) -> str:
    line = Line(client, "openai_chat")
    stream = open_stream(line.ask(ASKED, stream=True))
    beginning = {"choices": [{"index": 0, "delta": {"content": "one"}}]}
    raw = b"".join(b"data: " + json.dumps(payload).encode() + b"\n\n" for payload in (beginning, error(code)))
    return (stream.feed(raw) + stream.close()).decode()


@in_one_test(("code", "status"), [(429, 429), ("404", 404), (503, 503), ("rate_limit_exceeded", 429)])
@in_one_test("client", sorted(client_wires()))
def test_a_whole_answer_has_the_status_that_its_error_names(client: str, code: object, status: int) -> None:
    failed = carry_whole(client, code)
    assert isinstance(failed, UpstreamResponseError) and failed.status == status
    limited = "[toolglot errors upstream_limited]" in failed.explanation
    assert limited is (status == 429)


@in_one_test("code", [None, "boom", 1000, 200, "4 4", "٤٢٩"])
def test_any_other_error_is_a_failure_of_the_upstream(code: object) -> None:
    failed = carry_whole("openai_chat", code)
    assert failed.status == 502 and "[toolglot errors upstream_failed]" in failed.explanation
    assert "[toolglot errors upstream_failed]" in carry_stream("openai_chat", code)


@in_one_test(
    ("client", "words"),
    [
        ("anthropic_messages", ['"type":"rate_limit_error"']),
        ("gemini", ['"code":429', '"RESOURCE_EXHAUSTED"']),
        ("openai_chat", ['"type":"rate_limit_error"', '"code":"429"']),
        ("openai_responses", ['"code":"429"']),
        ("ollama", ["It is too much."]),
    ],
)
def test_a_limit_within_a_stream_is_known_as_one(client: str, words: list[str]) -> None:
    written = carry_stream(client, 429)
    assert all(word in written for word in [*words, "[toolglot errors upstream_limited]"])


@in_one_test(
    ("code", "status"),
    [("429", 429), ("599", 599), ("399", 0), ("600", 0), ("4290", 0), ("", 0), ("RESOURCE_EXHAUSTED", 429)],
)
def test_codes_that_name_a_status(code: str, status: int) -> None:
    assert read_status(code) == status
