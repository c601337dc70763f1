"""What agents do with their histories, against the simulated web chat: the model sees all of it and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.chat_lab import Client, Lab, make_call, make_tool

from toolglot.sim.answer import Answer

Scenario = Callable[[Lab], Awaitable[None]]
SCENARIOS: dict[str, tuple[Scenario, int]] = {}


def scenario(facts: int) -> Callable[[Scenario], Scenario]:
    def register(function: Scenario) -> Scenario:
        SCENARIOS[function.__name__] = function, facts
        return function

    return register


async def talk(client: Client, turns: int) -> None:
    for _ in range(turns):
        client.say()
        await client.ask()


def reader(lab: Lab, system: str) -> Client:
    return Client(lab, system, [make_tool("read", "Read a file")])


@scenario(12)
async def linear(lab: Lab) -> None:
    client = Client(lab, system=f"Be brief {lab.fact()}")
    await talk(client, 3)
    lab.check_continued(client.messages[-2]["content"])


@scenario(15)
async def tool_loop(lab: Lab) -> None:
    client = Client(lab, system=f"Help {lab.fact()}", tools=[make_tool("read", f"Read {lab.fact()}")])
    client.say()
    for _ in range(2):
        lab.answers = [Answer("", (make_call(f"{lab.fact()}.txt"),))]
        [call] = await client.ask()
        client.add_result(call)
    await client.ask()


@scenario(18)
async def same_first_message_interleaved(lab: Lab) -> None:
    one = Client(lab, system=f"Be brief {lab.fact()}")
    one.say()
    two = Client(lab, system=one.system, messages=list(one.messages))
    await one.ask()
    await two.ask()
    await talk(one, 1)
    await talk(two, 1)
    await talk(one, 1)


@scenario(6)
async def parallel_results(lab: Lab) -> None:
    client = reader(lab, f"Help {lab.fact()}")
    client.say()
    lab.answers = [Answer("", tuple(make_call(f"{lab.fact()}.txt") for _ in range(2)))]
    calls = await client.ask(scored=False)
    assert len(calls) == 2
    for call in calls:
        client.add_result(call)
    await client.ask()


@scenario(5)
async def result_and_reminder(lab: Lab) -> None:
    client = reader(lab, f"Help {lab.fact()}")
    client.say()
    lab.answers = [Answer("", (make_call(f"{lab.fact()}.txt"),))]
    [call] = await client.ask(scored=False)
    client.add_result(call)
    client.say("Reminder")
    await client.ask()


@scenario(7)
async def edit_last_message(lab: Lab) -> None:
    client = Client(lab)
    await talk(client, 2)
    del client.messages[2:]
    await talk(client, 1)


@scenario(7)
async def regenerate(lab: Lab) -> None:
    client = Client(lab)
    await talk(client, 2)
    del client.messages[-1]
    await client.ask()


@scenario(6)
async def compaction(lab: Lab) -> None:
    client = Client(lab)
    await talk(client, 2)
    client.messages = [{"role": "user", "content": f"Summary {lab.fact()}"}]
    client.say()
    await client.ask()


@scenario(9)
async def server_restart(lab: Lab) -> None:
    client = Client(lab)
    await talk(client, 2)
    await lab.restart()
    await talk(client, 1)
    lab.check_continued()


@scenario(9)
async def client_adds_white_space(lab: Lab) -> None:
    client = Client(lab)
    for _ in range(3):
        await talk(client, 1)
        client.messages[-1]["content"] = "\n" + client.messages[-1]["content"] + " \r\n"
    lab.check_continued()


@scenario(4)
async def arguments_reformatted(lab: Lab) -> None:
    client = reader(lab, f"Help {lab.fact()}")
    client.say()
    lab.answers = [Answer("", (make_call(f"{lab.fact()}.txt"),))]
    [call] = await client.ask(scored=False)
    call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]), indent=4)
    client.messages[-1]["content"] = None
    client.add_result(call)
    await client.ask()
    lab.check_continued()


@scenario(7)
async def tools_change(lab: Lab) -> None:
    client = Client(lab, tools=[make_tool("read", f"Read {lab.fact()}")])
    await talk(client, 1)
    client.tools.append(make_tool("write", f"Write {lab.fact()}"))
    await talk(client, 1)
    assert len(lab.simulation.chats) == 1 or lab.chaining == "off"


@scenario(5)
async def disconnect_and_retry(lab: Lab) -> None:
    client = Client(lab)
    client.say()
    lab.answers = [Answer("Never seen. " * 2000)]
    lab.stream, before = True, lab.stream
    await client.disconnect()
    lab.score.add(json.dumps(client.body), lab.simulation.seen[-1].text)
    lab.stream = before
    await client.ask()
    await talk(client, 1)


@scenario(5)
async def imported_history(lab: Lab) -> None:
    client = Client(lab)
    for _ in range(2):
        client.say()
        client.messages.append({"role": "assistant", "content": f"Elsewhere {lab.fact()}"})
    await talk(client, 1)


@scenario(9)
async def client_prunes_old_output(lab: Lab) -> None:
    client = Client(lab)
    await talk(client, 2)
    client.messages[1]["content"] = f"[pruned {lab.fact()}]"
    await talk(client, 1)


@scenario(8)
async def two_tenants_with_the_same_opening(lab: Lab) -> None:
    one = Client(lab, key=KEYS[0])
    one.say()
    two = Client(lab, key=KEYS[1], messages=list(one.messages))
    for client in (one, two):
        await client.ask()
        await talk(client, 1)
    assert len(lab.simulation.chats) == 2 or lab.chaining == "off"


@scenario(9)
async def idle_for_half_an_hour(lab: Lab) -> None:
    client = Client(lab)
    await talk(client, 2)
    await lab.age_store(31 * 60)
    await talk(client, 1)
    lab.check_continued()


KEYS = ("tg-first-key-of-the-tests-0123456789", "tg-second-key-of-the-tests-012345678")
MODES = [("path", "reseed"), ("whole_chat", "reseed"), ("path", "tree")]


def run_scenario(name: str, lab: Lab) -> None:
    play, _ = SCENARIOS[name]
    lab.keys = ",".join(KEYS) if "tenants" in name else ""

    async def run() -> None:
        async with lab.open():
            await play(lab)

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(("semantics", "branch_mode"), MODES)
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_model_sees_the_history_and_nothing_else(
    name: str, semantics: str, branch_mode: str, stream: bool, tmp_path: Path
) -> None:
    lab = Lab(tmp_path, semantics=semantics, branch_mode=branch_mode, stream=stream)
    run_scenario(name, lab)
    assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)
    assert lab.score.sent == SCENARIOS[name][1]


@pytest.mark.parametrize("name", SCENARIOS)
def test_without_chaining_the_model_sees_the_same(name: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path, chaining="off")
    run_scenario(name, lab)
    assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)


def test_the_scenarios_hold_141_facts() -> None:
    assert len(SCENARIOS) == 17
    assert sum(facts for _, facts in SCENARIOS.values()) == 141
