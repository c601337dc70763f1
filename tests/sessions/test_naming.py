"""Every request has a session, whatever its upstream: turns of one conversation share it, others never do."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.gateway import READ, Gate, gateway

from toolglot.clients.session_ids import find_session_id


class Agent:
    """A client that keeps its history."""

    def __init__(self, gate: Gate, tools: bool, stream: bool = False, **headers: str) -> None:
        self.gate, self.tools, self.stream, self.headers = gate, tools, stream, headers
        self.messages: list[dict[str, Any]] = []

    async def ask(self, text: str, model: str = "sim") -> int:
        self.messages.append({"role": "user", "content": text})
        return await self.repeat(model)

    async def repeat(self, model: str = "sim") -> int:
        body = {"model": model, "messages": self.messages, "stream": self.stream}
        if self.tools:
            body["tools"] = [READ]
        answer = await self.gate.ask(body, **self.headers)
        if answer.status == 200:
            if self.stream:
                text, calls, _ = answer.told
                made = [
                    {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
                    for n, (name, arguments) in enumerate(calls)
                ]
                message: dict[str, Any] = {"content": text, **({"tool_calls": made} if made else {})}
            else:
                message = answer.message
            self.messages.append({"role": "assistant", **message})
            for call in message.get("tool_calls") or ():
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": "contents"})
        return answer.status


async def list_sessions(gate: Gate, **headers: str) -> list[str]:
    """The session of each record, oldest first."""
    answer = await gate.get("/v1/records?limit=200", **headers)
    return [record["session"] for record in reversed(answer.json["data"])]


def run(test: Any, folder: Path, **arguments: Any) -> None:
    async def play() -> None:
        async with gateway(state_dir=str(folder), **arguments) as gate:
            await test(gate)

    asyncio.run(asyncio.wait_for(play(), 60))


WAYS = [("off", False), ("native", True), ("text", True), ("off", True)]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("mode", "tools"), WAYS)
def test_the_turns_of_a_conversation_share_a_session(mode: str, tools: bool, stream: bool, tmp_path: Path) -> None:
    async def test(gate: Gate) -> None:
        one, two = Agent(gate, tools, stream), Agent(gate, tools, stream)
        for turn in range(3):
            await one.ask(f'Read the file "one-{turn}.txt"')
            await two.ask(f'Read the file "two-{turn}.txt"')
        assert sorted(Counter(await list_sessions(gate)).values()) == [3, 3]
        assert "" not in await list_sessions(gate)
        answer = await gate.get("/v1/sessions")
        assert [session["turns"] for session in answer.json["data"]] == [3, 3]

    run(test, tmp_path, mode=mode)


def test_conversations_that_begin_alike_are_two(tmp_path: Path) -> None:
    """Same first request, different answers: the answer in the history tells them apart."""

    async def test(gate: Gate) -> None:
        one, two = Agent(gate, False), Agent(gate, False)
        await one.ask("Hello")
        await two.ask("Hello")
        two.messages[-1]["content"] = "Another answer."
        await one.ask("Go on")
        await two.ask("Go on")
        await one.ask("And on")
        await two.ask("And on")
        names = await list_sessions(gate)
        assert names[2] != names[3]
        assert names[4] == names[2] and names[5] == names[3]
        assert len(set(names)) == 2

    run(test, tmp_path)


def test_a_retry_after_a_failure_belongs_to_the_session(tmp_path: Path) -> None:
    async def test(gate: Gate) -> None:
        agent = Agent(gate, False)
        assert await agent.ask("Hello", "sim:native+http_500") >= 500
        assert await agent.repeat() == 200
        await agent.ask("Go on")
        names = await list_sessions(gate)
        assert len(names) == 3 and len(set(names)) == 1

    run(test, tmp_path)


def test_an_edit_stays_in_the_session_and_a_summary_does_not(tmp_path: Path) -> None:
    async def test(gate: Gate) -> None:
        agent = Agent(gate, False)
        await agent.ask("One")
        await agent.ask("Two")
        del agent.messages[2:]
        await agent.ask("Another two")
        agent.messages = []
        await agent.ask("Summary of all that")
        names = await list_sessions(gate)
        assert names[0] == names[1] == names[2] != names[3]

    run(test, tmp_path)


def test_two_clients_never_share_a_session(tmp_path: Path) -> None:
    keys = ("tg-one-0123456789abcdef0123456789abc", "tg-two-0123456789abcdef0123456789abc")

    async def test(gate: Gate) -> None:
        agents = [Agent(gate, False, authorization=f"Bearer {key}") for key in keys]
        for agent in agents:
            await agent.ask("Hello")
            await agent.ask("Go on")
        names = [await list_sessions(gate, authorization=f"Bearer {key}") for key in keys]
        assert [len(own) for own in names] == [2, 2]
        assert len({*names[0], *names[1]}) == 2

    run(test, tmp_path, client_keys=",".join(keys))


def test_the_id_of_a_client_narrows_and_labels(tmp_path: Path) -> None:
    async def test(gate: Gate) -> None:
        one, two = Agent(gate, False, x_session_id="first"), Agent(gate, False, x_session_id="second")
        for agent in (one, two, one, two):
            await agent.ask("Hello")
        sessions = (await gate.get("/v1/sessions")).json["data"]
        assert {session["client_session"]: session["turns"] for session in sessions} == {"first": 2, "second": 2}

    run(test, tmp_path)


@pytest.mark.parametrize(
    ("headers", "fields", "expected"),
    [
        ({}, {}, ""),
        ({"x-session-id": "a"}, {"prompt_cache_key": "b"}, "a"),
        ({}, {"prompt_cache_key": "b"}, "b"),
        ({"session_id": "c"}, {}, "c"),
        ({"x-claude-code-session-id": "d"}, {}, "d"),
        (
            {},
            {"metadata": {"user_id": "user_1_account__session_0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"}},
            "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
        ),
        ({}, {"metadata": {"user_id": json.dumps({"device_id": "x", "session_id": "0f1e2d3c-4b5a"})}}, "0f1e2d3c-4b5a"),
        ({"x-session-id": "x" * 101}, {}, ""),
        ({"x-session-id": "a\x00b"}, {}, ""),
        ({}, {"prompt_cache_key": 5, "metadata": "text"}, ""),
        (None, {"metadata": {"user_id": None}}, ""),
    ],
)
def test_where_clients_put_their_ids(headers: Any, fields: dict[str, Any], expected: str) -> None:
    assert find_session_id(headers, fields) == expected
