"""Examples for fine-tuning from stored records: every client wire, streamed and whole, checked with OpenAI's types."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Literal, NotRequired

import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from pydantic import TypeAdapter
from support.gateway import gateway, run
from typing_extensions import TypedDict

from toolglot.gateway.telemetry.finetune import Skipped, make_example
from toolglot.sim import SimOptions
from toolglot.store import open_store
from toolglot.store.interface import RecordQuery, RecordRow

SCHEMA = {"type": "object", "properties": {"filePath": {"type": "string"}}, "required": ["filePath"]}
ASKED = 'Read the file "package.json"'
SYSTEM = "You help."
RESULT = "nothing is in there: {}"
CALL = ("read", {"filePath": "old.json"})


class Example(TypedDict):
    messages: list[ChatCompletionMessageParam]
    tools: NotRequired[list[ChatCompletionToolUnionParam]]
    parallel_tool_calls: NotRequired[bool]


EXAMPLE: TypeAdapter[Example] = TypeAdapter(Example)
"""What OpenAI documents for a line of a training file, by the types of its SDK."""


def chat(stream: bool) -> tuple[str, dict[str, Any]]:
    function = {"name": "read", "description": "Read a file", "parameters": SCHEMA}
    call = {"id": "call_1", "type": "function", "function": {"name": CALL[0], "arguments": json.dumps(CALL[1])}}
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "First old.json."},
        {"role": "assistant", "content": "I read it.", "tool_calls": [call], "reasoning_content": "Hm."},
        {"role": "tool", "tool_call_id": "call_1", "content": RESULT},
        {"role": "user", "content": ASKED},
    ]
    body = {"model": "sim", "messages": messages, "tools": [{"type": "function", "function": function}]}
    return "/v1/chat/completions", body | {"stream": stream, "temperature": 0.5}


def responses(stream: bool) -> tuple[str, dict[str, Any]]:
    items = [
        {"role": "user", "content": "First old.json."},
        {"role": "assistant", "content": "I read it."},
        {"type": "function_call", "call_id": "call_1", "name": CALL[0], "arguments": json.dumps(CALL[1])},
        {"type": "function_call_output", "call_id": "call_1", "output": RESULT},
        {"role": "user", "content": ASKED},
    ]
    tool = {"type": "function", "name": "read", "description": "Read a file", "parameters": SCHEMA}
    return "/v1/responses", {"model": "sim", "instructions": SYSTEM, "input": items, "tools": [tool], "stream": stream}


def anthropic(stream: bool) -> tuple[str, dict[str, Any]]:
    messages = [
        {"role": "user", "content": "First old.json."},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I read it."},
                {"type": "tool_use", "id": "call_1", "name": CALL[0], "input": CALL[1]},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": RESULT},
                {"type": "text", "text": ASKED},
            ],
        },
    ]
    tool = {"name": "read", "description": "Read a file", "input_schema": SCHEMA}
    body = {"model": "sim", "system": SYSTEM, "messages": messages, "tools": [tool], "max_tokens": 500}
    return "/v1/messages", body | {"stream": stream}


def gemini(stream: bool | Literal["list"]) -> tuple[str, dict[str, Any]]:
    contents = [
        {"role": "user", "parts": [{"text": "First old.json."}]},
        {"role": "model", "parts": [{"text": "I read it."}, {"functionCall": {"name": CALL[0], "args": CALL[1]}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": CALL[0], "response": {"output": RESULT}}}]},
        {"role": "user", "parts": [{"text": ASKED}]},
    ]
    function = {"name": "read", "description": "Read a file", "parametersJsonSchema": SCHEMA}
    method = "streamGenerateContent" if stream else "generateContent"
    return f"/v1beta/models/sim:{method}{'?alt=sse' if stream is True else ''}", {
        "systemInstruction": {"parts": [{"text": SYSTEM}]},
        "contents": contents,
        "tools": [{"functionDeclarations": [function]}],
    }


def ollama(stream: bool) -> tuple[str, dict[str, Any]]:
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "First old.json."},
        {
            "role": "assistant",
            "content": "I read it.",
            "tool_calls": [{"function": {"name": CALL[0], "arguments": CALL[1]}}],
        },
        {"role": "tool", "tool_name": CALL[0], "content": RESULT},
        {"role": "user", "content": ASKED},
    ]
    function = {"name": "read", "description": "Read a file", "parameters": SCHEMA}
    return "/api/chat", {
        "model": "sim",
        "messages": messages,
        "tools": [{"type": "function", "function": function}],
        "stream": stream,
    }


REQUESTS = {
    f"{make.__name__} {'streamed' if stream else 'whole'}": make(stream)
    for make in (chat, responses, anthropic, gemini, ollama)
    for stream in (False, True)
} | {"gemini streamed as a list": gemini("list")}


async def read_rows(folder: Path) -> list[RecordRow]:
    store = open_store("sqlite:toolglot.db", state_folder=folder, now=time.time)
    assert store is not None
    listed = await store.list_records(None, RecordQuery(limit=100))
    rows = [await store.get_record(None, row.id) for row in reversed(listed)]
    await store.close()
    return [row for row in rows if row is not None]


def check(example: object) -> dict[str, Any]:
    """The example, which has only what OpenAI's types allow."""
    assert isinstance(example, dict), example
    EXAMPLE.validate_python(example)
    assert set(example) <= {"messages", "tools", "parallel_tool_calls"}
    for message in example["messages"]:
        assert set(message) <= {"role", "content", "tool_calls", "tool_call_id", "name"}
    return example


@pytest.mark.parametrize("mode", ["text", "native"])
@pytest.mark.parametrize("name", REQUESTS)
def test_every_wire_gives_the_same_example(tmp_path: Path, name: str, mode: str) -> None:
    path, body = REQUESTS[name]

    async def test() -> None:
        options = SimOptions(dialect="hermes" if mode == "text" else "native")
        async with gateway(options, state_dir=str(tmp_path), store_bodies="all", mode=mode, dialect="hermes") as gate:
            answer = await gate.ask(body, path)
            assert answer.status == 200, answer.body
        (row,) = await read_rows(tmp_path)
        example = check(make_example(row))
        *history, last = example["messages"]
        assert [message["role"] for message in history] == ["system", "user", "assistant", "tool", "user"]
        assert [history[at]["content"] for at in (0, 1, 2, 4)] == [SYSTEM, "First old.json.", "I read it.", ASKED]
        (earlier,) = history[2]["tool_calls"]
        assert (earlier["function"]["name"], json.loads(earlier["function"]["arguments"])) == CALL
        assert history[3]["tool_call_id"] == earlier["id"]
        assert "nothing is in there" in history[3]["content"]
        (call,) = last["tool_calls"]
        assert last["role"] == "assistant" and call["id"] not in ("", earlier["id"])
        assert json.loads(call["function"]["arguments"]) == {"filePath": "package.json"}
        (tool,) = example["tools"]
        assert tool["function"] == {"name": "read", "description": "Read a file", "parameters": SCHEMA}

    run(test)


def test_a_text_answer_and_unicode(tmp_path: Path) -> None:
    plain = {"model": "sim", "messages": [{"role": "user", "content": "Grüße 😀 \ud83d\ude00"}]}

    async def test() -> None:
        async with gateway(state_dir=str(tmp_path), store_bodies="all") as gate:
            texts = [(await gate.ask({**plain, "stream": True})).joined[0], (await gate.ask(plain)).message["content"]]
        for row, text in zip(await read_rows(tmp_path), texts, strict=True):
            example = check(make_example(row))
            assert example["messages"][0]["content"] == "Grüße 😀 😀"
            assert example["messages"][1:] == [{"role": "assistant", "content": text}]
            assert "tools" not in example

    run(test)


def test_what_makes_no_example(tmp_path: Path) -> None:
    path, body = chat(False)

    async def test() -> None:
        for settings in ({"store_bodies": "off"}, {"store_max_body_bytes": "200"}, {}):
            chosen: dict[str, Any] = {"store_bodies": "all", **settings}
            async with gateway(state_dir=str(tmp_path), **chosen) as gate:
                await gate.ask({**body, "stream": True}, path)
                if not settings:
                    await gate.ask(b"{", path)
                    ask = {"model": "sim", "input": "Hello", "previous_response_id": "resp_1"}
                    await gate.ask(ask, "/v1/responses")
        reasons = [make_example(row) for row in await read_rows(tmp_path)]
        assert reasons[:2] == [Skipped.NO_BODIES, Skipped.INCOMPLETE]
        assert isinstance(reasons[2], dict)
        assert reasons[3] == Skipped.NOT_ANSWERED

    run(test)


def test_a_request_that_refers_to_an_earlier_answer_is_skipped(tmp_path: Path) -> None:
    async def test() -> None:
        async with gateway(state_dir=str(tmp_path), store_bodies="all") as gate:
            first = await gate.ask({"model": "sim", "input": "Hello"}, "/v1/responses")
            again = {"model": "sim", "input": "Go on", "previous_response_id": first.json["id"]}
            assert (await gate.ask(again, "/v1/responses")).status == 200
        first_row, second = await read_rows(tmp_path)
        check(make_example(first_row))
        assert make_example(second) == Skipped.REFERENCE

    run(test)
