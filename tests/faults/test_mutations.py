"""Mutated requests at every endpoint: each gets an answer or an error in its wire, and never a 500."""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from faults.cells import Cell, Records, closed_port, describe, exchange, recording, settle
from faults.client_readers import check_error
from faults.faulty_upstream import faulty_upstream
from faults.network_faults import NETWORK_FAULTS, Step
from faults.scale import MUTATIONS, SEED
from faults.wire_data import WIRES, make_request

from toolglot.server.lifecycle import listening

EXTRAS = {
    "/v1/messages/count_tokens": "anthropic_messages",
    "/api/show": "ollama",
    "/v1/models": "openai_chat",
    "/nowhere": "openai_chat",
}
"""Further endpoints, and the wire of their errors."""

STRANGE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 1e308, 10**30, "", "\x00", "\ud800", "x" * 5000, [], {}, [[]], {"": {}}, [None],
    {"type": "object"}, "auto", {"type": "function"}, [{"type": "text"}], {"role": "user"}, [["x"]], "data:image/png;base64,!!",
)  # fmt: skip
HISTORY: dict[str, Any] = {
    "openai_chat": {"messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "read", "arguments": "{\"filePath\": \"a\"}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "b"}]},
        {"role": "user", "content": [{"type": "text", "text": "c"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]},
    ], "tool_choice": "auto", "stop": ["x"], "max_tokens": 5, "temperature": 0.5, "response_format": {"type": "json_object"}},
    "anthropic_messages": {"system": "Be brief.", "messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "tool_use", "id": "a", "name": "read", "input": {"filePath": "a"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "b"}]}]},
    ], "tool_choice": {"type": "auto"}, "stop_sequences": ["x"], "thinking": {"type": "enabled", "budget_tokens": 1024}},
    "openai_responses": {"instructions": "Be brief.", "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "t"}]},
        {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "b"},
    ], "tool_choice": "auto", "reasoning": {"effort": "low"}, "text": {"format": {"type": "text"}}},
    "gemini": {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": [
        {"role": "user", "parts": [{"text": "a"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"filePath": "a"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "b"}}}]},
    ], "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}}, "generationConfig": {"stopSequences": ["x"], "maxOutputTokens": 5}},
    "ollama": {"messages": [
        {"role": "user", "content": "a", "images": ["iVBORw0KGgo="]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read", "arguments": {"filePath": "a"}}}]},
        {"role": "tool", "content": "b", "tool_name": "read"},
    ], "options": {"temperature": 0.5, "num_predict": 5, "stop": ["x"]}, "think": True, "format": "json"},
}  # fmt: skip


def places(value: Any, deep: int = 20) -> Iterator[tuple[Any, Any]]:
    """Every container in a value, with every key of it."""
    pairs: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield value, key
        if deep:
            yield from places(inner, deep - 1)


def put_strange(body: Any, chance: random.Random) -> None:
    holder, key = chance.choice(list(places(body)))
    holder[key] = copy.deepcopy(chance.choice(STRANGE))


def remove(body: Any, chance: random.Random) -> None:
    holder, key = chance.choice(list(places(body)))
    del holder[key]


def repeat(body: Any, chance: random.Random) -> None:
    holder, key = chance.choice(list(places(body)))
    if isinstance(holder, list):
        holder.insert(0, copy.deepcopy(holder[key]))
    else:
        holder[f"{key}_"] = holder[key]


def swap(body: Any, chance: random.Random) -> None:
    (first, one), (second, other) = (chance.choice(list(places(body))) for _ in range(2))
    first[one], second[other] = copy.deepcopy(second[other]), copy.deepcopy(first[one])


def nest(body: Any, chance: random.Random) -> None:
    holder, key = chance.choice(list(places(body)))
    for _ in range(chance.choice((3, 100))):
        holder[key] = [holder[key]] if chance.random() < 0.5 else {"a": holder[key]}


CHANGES: tuple[Callable[[Any, random.Random], None], ...] = (put_strange, put_strange, remove, repeat, swap, nest)


def damage(data: bytes, chance: random.Random) -> bytes:
    """Damage that JSON does not survive, or barely."""
    at = chance.randrange(len(data))
    return chance.choice(
        (
            data[:at],
            data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :],
            data[:at] + data[at:] * 2,
            data + b"{}",
            b"[" * 100_000,
            b'{"messages":' * 5000,
            b"\xef\xbb\xbf" + data,
            data.replace(b"1", b"NaN"),
            data.replace(b": 5", b": 1e999"),
            data.replace(b": 5", b": " + b"9" * 5000),
            data.decode().encode("utf-16"),
            b"",
        )
    )


def mutate(wire: str, model: str, chance: random.Random) -> tuple[str, bytes]:
    path, body = make_request(wire, model, stream=chance.random() < 0.5, tools=True)
    body = copy.deepcopy(body | HISTORY[wire])
    for _ in range(chance.choice((1, 1, 2, 5))):
        with suppress(IndexError, KeyError):
            chance.choice(CHANGES)(body, chance)
    data = json.dumps(body).encode()
    return path, damage(data, chance) if chance.random() < 0.15 else data


def answer_anything(model: str) -> list[Step]:
    """An answer for any model; its first words name the wire."""
    wire = next((wire for wire in WIRES if wire in model), WIRES[0])
    return list(
        NETWORK_FAULTS["usual_sized"].make(Cell("usual_sized", wire, wire, "native", "stream" in model).plan_response())
    )


@asynccontextmanager
async def answering() -> AsyncIterator[tuple[int, Records]]:
    with recording() as records:
        async with faulty_upstream(answer_anything) as port, listening(settle(port, closed_port())) as address:
            yield int(address.rpartition(":")[2]), records


async def send(port: int, path: str, data: bytes, wire: str) -> str:
    """What is wrong with the answer."""
    try:
        async with asyncio.timeout(20):
            status, received, complete = await exchange(port, path, data, "x")
    except (TimeoutError, ConnectionError, asyncio.IncompleteReadError) as error:
        return repr(error)
    if not complete:
        return f"{status}, and the answer breaks off"
    if status < 400:
        return ""
    if status >= 500 and status not in (502, 504):
        return f"{status} {received[:200]!r}"
    try:
        check_error(wire, json.loads(received))
    except Exception as error:
        return f"{status} {received[:200]!r} is no error of {wire}: {error!r}"
    return ""


@pytest.mark.parametrize("upstream", WIRES)
@pytest.mark.parametrize("client", WIRES)
def test_mutated_requests_are_answered_or_refused(client: str, upstream: str) -> None:
    chance = random.Random(f"{SEED} {client} {upstream}")
    wrong: list[str] = []

    async def run() -> None:
        async with answering() as (port, records):
            for number in range(MUTATIONS):
                mode = chance.choice(("relay", "native", "text"))
                path, data = mutate(client, f"up.{mode}.{upstream}.{upstream}-stream", chance)
                if problem := await send(port, path, data, client):
                    wrong.append(f"{client} {upstream} {mode} {number}: {problem}: {data[:3000]!r}")
            wrong.extend(records.complaints)

    asyncio.run(run())
    assert not wrong, describe(wrong, 8)


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


BROKE_ONCE: dict[str, tuple[str, dict[str, Any], int]] = {
    "stop in a list": ("openai_chat", {"stop": [["x"]]}, 400),
    "stop is null": ("ollama", {"options": {"stop": [None]}}, 400),
    "stop is a number": ("anthropic_messages", {"stop_sequences": [7]}, 400),
    "thoughts in the system": ("anthropic_messages", {"system": [{"type": "thinking", "thinking": "t", "signature": "s"}]}, 400),
    "a call with nested arguments": (
        "anthropic_messages",
        {"messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {"filePath": nested(150)}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "b"}]},
        ]},
        200,
    ),
}  # fmt: skip
"""Requests that were answered with a 500, and how they are answered now."""


@pytest.mark.parametrize("name", BROKE_ONCE)
def test_requests_that_broke_once(name: str) -> None:
    wire, fields, expected = BROKE_ONCE[name]

    async def run() -> None:
        async with answering() as (port, records):
            for mode in ("native", "text"):
                path, body = make_request(
                    wire, f"up.{mode}.anthropic_messages.anthropic_messages", stream=False, tools=True
                )
                status, encoded, _ = await exchange(port, path, json.dumps(body | fields).encode(), "x")
                assert status == expected, encoded
            assert not records.complaints

    asyncio.run(run())


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/api/show"])
def test_nested_requests_at_other_endpoints_are_refused(path: str) -> None:
    async def run() -> None:
        async with answering() as (port, records):
            status, _, _ = await exchange(port, path, b'{"messages":' * 5000, "x")
            assert status == 400 and not records.complaints

    asyncio.run(run())


@pytest.mark.parametrize("path", EXTRAS)
def test_mutated_requests_at_other_endpoints(path: str) -> None:
    chance = random.Random(f"{SEED} {path}")
    wire = EXTRAS[path]
    wrong: list[str] = []

    async def run() -> None:
        async with answering() as (port, records):
            for number in range(MUTATIONS):
                _, data = mutate(wire, "up.native.openai_chat.x", chance)
                if problem := await send(port, path, data, wire):
                    wrong.append(f"{path} {number}: {problem}: {data[:3000]!r}")
            wrong.extend(records.complaints)

    asyncio.run(run())
    assert not wrong, describe(wrong, 8)
