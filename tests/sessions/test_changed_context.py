"""System prompt and tools that change, disappear or come in the middle of a chat: the model has those of the request."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.chat_lab import Client, Lab, make_call, make_tool

from toolglot.sim.answer import Answer
from toolglot.store.sqlite import SqliteStore


def play(lab: Lab, test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with lab.open():
            await test()

    asyncio.run(asyncio.wait_for(run(), 60))


async def say(client: Client) -> None:
    client.say()
    await client.ask()


def drop_system(client: Client) -> None:
    client.system = ""


def drop_tools(client: Client) -> None:
    client.tools = []


def drop_all(client: Client) -> None:
    client.system, client.tools = "", []


def forbid_tools(client: Client) -> None:
    client.extra = {"tool_choice": "none"}


@pytest.mark.parametrize(
    ("change", "with_system"),
    [
        *((change, True) for change in (drop_system, drop_tools, drop_all, forbid_tools)),
        *((change, False) for change in (drop_tools, forbid_tools)),
    ],
)
def test_what_is_withdrawn_is_not_in_force(change: Callable[[Client], None], with_system: bool, tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab, system="Rule A." if with_system else "", tools=[make_tool("read", "Canary B.")])
        await say(client)
        change(client)
        await say(client)
        seen = lab.simulation.seen[-1]
        last = seen.messages[-1].text
        replaced = "new instructions" in last
        whole = len(seen.messages) == 1
        assert whole or replaced, "the chat still has what was withdrawn"
        current = last
        assert ("Rule A." in current) == bool(client.system)
        if not client.tools or client.extra:
            assert "Canary B." not in current
        assert lab.score.seen == lab.score.sent

    play(lab, test)


@pytest.mark.parametrize("system", ["", "Rule A."])
def test_results_without_tools_go_on_with_the_tools_of_the_chat(system: str, tmp_path: Path) -> None:
    """The client repeats its history without ``tools``: what it sends is the result of a call, and nothing else."""
    lab = Lab(tmp_path)

    async def test() -> None:
        tools = [make_tool("read", "Canary B.")]
        client = Client(lab, system=system, tools=tools)
        for offered in ([], tools):
            lab.answers = [Answer("I read.", (make_call("a"),)), Answer("Done.")]
            client.tools = tools
            client.say()
            [call] = await client.ask()
            client.tools = offered
            client.add_result(call)
            await client.ask()
            assert lab.last_content == f"Tool Result from read:\n{client.messages[-2]['content']}"
        assert len(lab.simulation.chats) == 1 and lab.simulation.seen[-1].messages[0].text.count("Canary B.") == 1

    play(lab, test)


def test_results_without_tools_below_another_prompt_replace_it(tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab, system="Rule A.", tools=[make_tool("read", "Canary B.")])
        lab.answers = [Answer("I read.", (make_call("a"),))]
        client.say()
        [call] = await client.ask()
        client.system, client.tools = "Rule C.", []
        client.add_result(call)
        await client.ask()
        assert "new instructions" in lab.last_content and "Rule C." in lab.last_content

    play(lab, test)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_system_message_behind_an_answer_replaces_nothing(role: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab, system="Rule A.", tools=[make_tool("read", "Canary B.")])
        await say(client)
        client.messages.append({"role": role, "content": f"Note {lab.fact()}."})
        await say(client)
        last = lab.simulation.seen[-1].messages[-1].text
        assert "Rule A." in last and "Canary B." in last and "Note " in last
        await say(client)
        assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)

    play(lab, test)


def test_an_empty_message_starts_a_new_chat(tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab)
        await say(client)
        client.messages.append({"role": "user", "content": ""})
        status, answer = await client.post()
        assert status == 200, answer
        assert len(lab.simulation.chats) == 2

    play(lab, test)


def test_a_locked_store_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first request finds out; those after it do without the store."""
    lab = Lab(tmp_path)
    asked: list[str] = []
    find_nodes = SqliteStore.find_nodes

    async def count(self: SqliteStore, keys: Any, failed: Any = ()) -> Any:
        asked.append("find")
        return await find_nodes(self, keys, failed)

    async def test() -> None:
        client = Client(lab)
        await say(client)
        monkeypatch.setattr(SqliteStore, "find_nodes", count)
        with closing(sqlite3.connect(tmp_path / "toolglot.db", timeout=10)) as other:
            other.execute("DROP TABLE nodes")
            other.commit()
            for _ in range(4):
                await say(client)
        assert len(asked) == 1
        assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)

    play(lab, test)


def test_a_cookie_that_is_part_of_a_record_leaves_it_readable(tmp_path: Path) -> None:
    from toolglot.config import Secret

    lab = Lab(tmp_path, upstream={"cookies": Secret('acw="COOKIEVALUE123"; other=request_id; third=2026-11-17')})

    async def test() -> None:
        client = Client(lab)
        client.say()
        body = json.dumps(client.body | {"model": "COOKIEVALUE123"})
        headers = {"x-request-id": '"COOKIEVALUE123"', "x-session-id": "COOKIEVALUE123"}
        async with lab.session.post(lab.gateways[0] + "/v1/chat/completions", data=body, headers=headers) as response:
            await response.read()
        for path in ("/v1/records", "/v1/sessions"):
            async with lab.session.get(lab.gateways[0] + path) as response:
                assert response.status == 200
                text = await response.text()
                [row] = json.loads(text)["data"]
                assert "COOKIEVALUE123" not in text
        assert row["id"]

    play(lab, test)
