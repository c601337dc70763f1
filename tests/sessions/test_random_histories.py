"""Random histories: whatever clients do, and however often they do it at the same time, the model sees exactly the
history of the request, continued chats or not."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.chat_lab import Client, Lab, make_call, make_tool

from toolglot.sim.answer import Answer

Step = Callable[[Lab, Client, random.Random], Awaitable[None]]
STEPS = 14
FAULTS = (
    "internal_error",
    "parent_not_found",
    "chat_not_found",
    "chat_deleted",
    "in_progress",
    "internal_error_first",
    "too_many_requests",
)


async def talk(lab: Lab, client: Client, chance: random.Random) -> None:
    client.say()
    await client.ask()


async def use_tool(lab: Lab, client: Client, chance: random.Random) -> None:
    client.say()
    lab.answers = [Answer("Reading.", tuple(make_call(f"{lab.fact()}.txt") for _ in range(chance.choice((1, 1, 2)))))]
    for call in await client.ask():
        client.add_result(call)
    if chance.random() < 0.3:
        client.say("Reminder")
    await client.ask()


async def edit(lab: Lab, client: Client, chance: random.Random) -> None:
    """Replace a message of the user and all that follows."""
    at = chance.choice([at for at, message in enumerate(client.messages) if message["role"] == "user"] or [0])
    del client.messages[at:]
    await talk(lab, client, chance)


async def regenerate(lab: Lab, client: Client, chance: random.Random) -> None:
    if client.messages and client.messages[-1]["role"] == "assistant":
        del client.messages[-1]
        if client.messages[-1]["role"] != "assistant":
            await client.ask()
            return
    await talk(lab, client, chance)


async def compact(lab: Lab, client: Client, chance: random.Random) -> None:
    kept = chance.choice((0, 1))
    client.messages = [{"role": "user", "content": f"Summary {lab.fact()}"}] if kept else []
    await talk(lab, client, chance)


async def prune(lab: Lab, client: Client, chance: random.Random) -> None:
    results = [message for message in client.messages if message["role"] == "tool"]
    if results:
        chance.choice(results)["content"] = f"[pruned {lab.fact()}]"
    await talk(lab, client, chance)


async def reformat(lab: Lab, client: Client, chance: random.Random) -> None:
    """What clients do to answers without meaning anything by it."""
    for message in client.messages:
        if message["role"] == "assistant" and message.get("content"):
            message["content"] = chance.choice(("", "\n")) + message["content"] + chance.choice(("", " ", "\r\n"))
    await talk(lab, client, chance)


async def change_context(lab: Lab, client: Client, chance: random.Random) -> None:
    if chance.random() < 0.5:
        client.system += f" Rule {lab.fact()}."
    else:
        client.tools.append(make_tool(f"tool_{lab.fact()}", f"Tool {lab.fact()}"))
    await talk(lab, client, chance)


async def disconnect(lab: Lab, client: Client, chance: random.Random) -> None:
    client.say()
    lab.answers = [Answer("Never seen. " * 2000)]
    await client.disconnect()
    lab.answers = []
    await client.ask()


async def fork(lab: Lab, client: Client, chance: random.Random) -> None:
    """Two clients continue one history at the same time, as sub-agents do."""
    other = Client(lab, client.system, list(client.tools), copy.deepcopy(client.messages))
    for one in (client, other):
        one.say()
    await asyncio.gather(client.ask(), other.ask())


async def repeat(lab: Lab, client: Client, chance: random.Random) -> None:
    """The same request several times at once."""
    client.say()
    copies = [Client(lab, client.system, client.tools, list(client.messages)) for _ in range(3)]
    await asyncio.gather(client.ask(), *(other.ask() for other in copies))


async def restart(lab: Lab, client: Client, chance: random.Random) -> None:
    await lab.restart()
    await talk(lab, client, chance)


async def lose_chat(lab: Lab, client: Client, chance: random.Random) -> None:
    """The upstream fails, or has lost the chat."""
    lab.simulation.inject(chance.choice(FAULTS))
    await talk(lab, client, chance)


ACTIONS: tuple[Step, ...] = (
    *(talk,) * 4,
    *(use_tool,) * 3,
    *(edit, regenerate, compact, prune, reformat, change_context, disconnect, fork, repeat, restart, lose_chat),
)


def walk(seed: int, lab: Lab) -> None:
    chance = random.Random(seed)

    async def run() -> None:
        async with lab.open(lock=0.2):
            clients = [Client(lab, tools=[make_tool("read", "Read a file")]) for _ in range(3)]
            for number in range(STEPS):
                action, client = chance.choice(ACTIONS), chance.choice(clients)
                before = lab.score.sent - lab.score.seen, lab.score.foreign
                await action(lab, client, chance)
                after = lab.score.sent - lab.score.seen, lab.score.foreign
                assert after == before == (0, 0), f"step {number}: {action.__name__}"

    asyncio.run(asyncio.wait_for(run(), 120))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("semantics", "branch_mode"), [("path", "reseed"), ("whole_chat", "reseed"), ("path", "tree")])
def test_the_model_sees_exactly_the_history(seed: int, semantics: str, branch_mode: str, tmp_path: Path) -> None:
    walk(seed, Lab(tmp_path, semantics=semantics, branch_mode=branch_mode, stream=bool(seed % 2)))


@pytest.mark.parametrize("seed", range(20, 23))
def test_so_it_does_with_a_shared_database(seed: int, tmp_path: Path, postgres_url: str) -> None:
    walk(seed, Lab(tmp_path, store=postgres_url, stream=bool(seed % 2)))


@pytest.mark.parametrize("seed", range(3))
def test_so_it_does_without_chaining(seed: int, tmp_path: Path) -> None:
    walk(seed, Lab(tmp_path, chaining="off", stream=bool(seed % 2)))
