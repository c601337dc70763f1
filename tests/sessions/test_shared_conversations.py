"""Several requests and several gateways on one conversation: no chat is used twice at once, no lease stays behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.chat_lab import FACT, Client, Lab, make_tool

from toolglot.gateway.sessions import chats
from toolglot.server.upstream import chats as service
from toolglot.sim.answer import Answer


def play(lab: Lab, test: Any, replicas: int = 1, **options: Any) -> None:
    async def run() -> None:
        async with lab.open(replicas, **options):
            await test()

    asyncio.run(asyncio.wait_for(run(), 60))


async def request_json(lab: Lab, path: str, method: str = "GET") -> tuple[int, Any]:
    async with lab.session.request(method, lab.gateways[0] + path) as response:
        return response.status, json.loads(await response.text())


def test_fifty_requests_at_once_on_one_conversation(tmp_path: Path, store_url: str) -> None:
    lab = Lab(tmp_path, store=store_url)

    async def test() -> None:
        client = Client(lab, tools=[make_tool("read", "Read a file")])
        client.say()
        await client.ask()
        clones = [
            Client(lab, client.system, client.tools, list(client.messages), replica=number % 2) for number in range(50)
        ]
        for clone in clones:
            clone.say()
        await asyncio.gather(*(clone.ask() for clone in clones))
        for clone in clones:
            clone.say()
        await asyncio.gather(*(clone.ask() for clone in clones))
        assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)
        assert lab.simulation.refused == [], "nothing was sent to a chat in use"

    play(lab, test, replicas=2, pace=0.002)


def test_a_conversation_goes_on_at_another_replica(tmp_path: Path, store_url: str) -> None:
    lab = Lab(tmp_path, store=store_url)

    async def test() -> None:
        client = Client(lab)
        for turn in range(4):
            client.replica = turn % 2
            client.say()
            await client.ask()
        lab.check_continued(client.messages[-2]["content"])
        assert len(lab.simulation.chats) == 1

    play(lab, test, replicas=2)


def test_a_chat_of_a_dead_request_is_free_after_its_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chats, "LEASE_SECONDS", 0.4)
    lab = Lab(tmp_path, branch_mode="tree")

    async def test() -> None:
        client = Client(lab)
        client.say()
        await client.ask()
        [chat] = lab.simulation.chats
        store = lab.read_store("SELECT token FROM chats")
        lab.write_store("UPDATE chats SET holder = 'dead', leased_until = 9e9, token = token + 1")
        client.say()
        await client.ask()
        assert len(lab.simulation.chats) == 2, "a chat in use is not continued"
        lab.write_store("UPDATE chats SET leased_until = 1 WHERE holder = 'dead'")
        del client.messages[-1]
        await client.ask()
        assert lab.simulation.seen[-1].chat_id == chat, "an expired lease does not count"
        assert lab.read_store("SELECT max(token) FROM chats") > store
        assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)

    play(lab, test)


def test_a_long_answer_keeps_its_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (chats, service):
        monkeypatch.setattr(module, "LEASE_SECONDS", 0.3)
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab)
        client.say()
        lab.answers = [Answer(f"Slow {lab.fact()} " * 40)]
        await client.ask()
        client.say()
        await client.ask()
        lab.check_continued(client.messages[-2]["content"])

    play(lab, test, pace=0.02)


def test_a_deleted_session_is_deleted_upstream_and_never_asked_again(tmp_path: Path, store_url: str) -> None:
    lab = Lab(tmp_path, store=store_url)

    async def test() -> None:
        client = Client(lab)
        client.say()
        await client.ask()
        [chat] = lab.simulation.chats
        _, listed = await request_json(lab, "/v1/sessions")
        [session] = listed["data"]
        status, _ = await request_json(lab, f"/v1/sessions/{session['id']}", "DELETE")
        assert status == 200
        assert chat in lab.simulation.deleted
        client.say()
        await client.ask()
        assert lab.simulation.seen[-1].chat_id != chat
        assert lab.simulation.refused == []
        assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)

    play(lab, test)


def test_an_old_chat_is_not_continued_and_is_deleted(tmp_path: Path) -> None:
    lab = Lab(tmp_path, upstream={"chat_ttl_seconds": 3600.0, "delete_chats": True})

    async def test() -> None:
        client = Client(lab)
        client.say()
        await client.ask()
        [chat] = lab.simulation.chats
        await lab.age_store(4000)
        client.say()
        await client.ask()
        assert lab.simulation.seen[-1].chat_id != chat
        await lab.restart()
        async with asyncio.timeout(10):
            while chat not in lab.simulation.deleted:
                await asyncio.sleep(0.02)
        assert len(lab.simulation.chats) == 1
        assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)

    play(lab, test)


def test_a_disconnected_client_stops_the_answer(tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab)
        client.say()
        lab.answers = [Answer("Never seen. " * 2000)]
        await client.disconnect()
        async with asyncio.timeout(10):
            while not any(seen.path.endswith("/stop") for seen in lab.simulation.record.requests):
                await asyncio.sleep(0.02)

    play(lab, test, pace=0.005)


def test_a_broken_store_only_costs_new_chats(tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab)
        client.say()
        await client.ask()
        lab.write_store("DROP TABLE nodes")
        for _ in range(2):
            client.say()
            await client.ask()
        assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)

    play(lab, test)


def test_every_request_has_a_session(tmp_path: Path, store_url: str) -> None:
    """Two conversations with the same first request, one of them with an edit."""
    lab = Lab(tmp_path, store=store_url)

    async def test() -> None:
        one = Client(lab)
        one.say()
        two = Client(lab, messages=list(one.messages))
        for client in (one, two):
            await client.ask()
        for client in (one, two, one):
            client.say()
            await client.ask()
        _, listed = await request_json(lab, "/v1/records?limit=100")
        sessions: dict[str, int] = {}
        for record in listed["data"]:
            sessions[record["session"]] = sessions.get(record["session"], 0) + 1
        assert sorted(sessions.values()) == [2, 3]

    play(lab, test)


def test_the_tool_prompt_reaches_the_model(tmp_path: Path) -> None:
    """The canary of the tool description is in what the upstream is sent, in whatever way the conversation comes."""
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab, system=f"Rules {lab.fact()}", tools=[make_tool("read", f"Canary {lab.fact()}")])
        for _ in range(2):
            client.say()
            await client.ask()
            client.messages = [{"role": "user", "content": "Imported."}, {"role": "assistant", "content": "Yes."}]
        for seen in lab.simulation.seen:
            assert {"F0001", "F0002"} <= set(FACT.findall(seen.text))
            assert "<tool_call>" not in seen.text

    play(lab, test)
