"""Reasoning that clients drop comes back to upstreams that want it: after a restart, and from another replica."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace
from support.replicas import Client, decode, make_settings, replica, write_profile
from support.stores import Place
from support.thinking_upstream import ANSWER, DEEPSEEK, MOONSHOT, Thinker
from support.xmlprompts import write_roo

from toolglot.core.conversation import Message, ToolCall
from toolglot.core.events import TextDelta
from toolglot.sim import running

WIRES = ("openai_chat", "anthropic_messages", "openai_responses", "gemini", "ollama")


async def finish_turn(client: Client, address: str) -> None:
    while client.messages[-1].role != "assistant" or client.messages[-1].calls:
        status, events = await client.ask(address)
        assert status == 200, events


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_strict_upstream_gets_its_reasoning_after_every_restart(place: Place, wire: str, stream: bool) -> None:
    thinker, client = Thinker(), Client(wire, stream)
    async with running(thinker.make_app()) as upstream:
        settings = make_settings(place, upstream + "/v1", profiles=write_profile(place.folder))
        for question in ("What is in both?", "And now?"):
            client.say(question)
            for _ in range(3):
                async with replica(settings) as address:
                    status, events = await client.ask(address)
                assert status == 200, events
            assert client.answer_text == ANSWER
    assert thinker.refused == 0 and len(thinker.asked) == 6
    returned = [
        message.get("reasoning_content") for message in thinker.asked[-1]["messages"] if message["role"] == "assistant"
    ]
    assert returned == [f"Thought {number}." for number in range(1, 6)]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("refusal", [DEEPSEEK, MOONSHOT])
async def test_a_refusal_is_learned_and_the_request_repeated(place: Place, refusal: str, stream: bool) -> None:
    thinker = Thinker(refusal)
    async with running(thinker.make_app()) as upstream:
        settings = make_settings(place, upstream + "/v1")
        async with replica(settings) as address:
            client = Client("openai_chat", stream)
            client.say("What is in both?")
            await finish_turn(client, address)
            assert (thinker.refused, client.answer_text) == (1, ANSWER)
        async with replica(settings) as address:
            other = Client("anthropic_messages", stream)
            other.say("What is in both, then?")
            await finish_turn(other, address)
            client.say("And now?")
            await finish_turn(client, address)  # what was in memory only went to the store
    assert thinker.refused == 1


async def test_what_is_not_known_is_refused_once(place: Place) -> None:
    thinker, client = Thinker(), Client("openai_chat")
    async with running(thinker.make_app()) as upstream:
        async with replica(make_settings(place, upstream + "/v1")) as address:
            client.say("What is in both?")
            await client.ask(address)
            call = client.messages[1].calls[0]
            client.messages[1] = Message("assistant", (replace(call, arguments='{"path": "other.txt"}'),))
            status, _ = await client.ask(address)
    assert (status, thinker.refused, len(thinker.asked)) == (400, 1, 2)


async def test_another_client_gets_nothing(place: Place) -> None:
    thinker, client = Thinker(), Client("openai_chat", key="one")
    async with running(thinker.make_app()) as upstream:
        settings = make_settings(place, upstream + "/v1", profiles=write_profile(place.folder))
        async with replica(settings) as address:
            client.say("What is in both?")
            await client.ask(address)
            other = Client("openai_chat", key="two", messages=list(client.messages))
            assert (await other.ask(address))[0] == 400
            assert (await client.ask(address))[0] == 200


@pytest.mark.parametrize("change", ["name", "arguments"])
async def test_a_changed_step_gets_nothing(place: Place, change: str) -> None:
    thinker, client = Thinker(), Client("openai_chat")
    async with running(thinker.make_app()) as upstream:
        settings = make_settings(place, upstream + "/v1", profiles=write_profile(place.folder))
        async with replica(settings) as address:
            client.say("What is in both?")
            await client.ask(address)
            call = client.messages[1].calls[0]
            client.messages[1] = Message(
                "assistant", (replace(call, **{change: '{"path": ""}' if change == "arguments" else "write"}),)
            )
            assert (await client.ask(address))[0] == 400


async def test_a_client_that_keeps_its_reasoning_passes_unchanged(place: Place) -> None:
    """Its bytes are not encoded again: unknown members are still there."""
    thinker = Thinker()
    thinker.reasoning["mine"] = "My own thought."
    call = {"id": "mine", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.txt"}'}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "My own thought.", "mine": 1},
        {"role": "tool", "tool_call_id": "mine", "content": "empty"},
    ]
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    body = {"model": "m", "messages": messages, "tools": [tool]}
    async with running(thinker.make_app()) as upstream:
        settings = make_settings(place, upstream + "/v1", profiles=write_profile(place.folder))
        async with replica(settings) as address, aiohttp.ClientSession() as session:
            async with session.post(address + "/v1/chat/completions", data=json.dumps(body)) as response:
                assert response.status == 200, await response.text()
    assert thinker.asked[0]["messages"] == messages


async def test_another_replica_has_it_as_soon_as_the_answer_ends(place: Place) -> None:
    thinker, client = Thinker(), Client("openai_chat", stream=True)
    async with running(thinker.make_app()) as upstream:
        settings = make_settings(place, upstream + "/v1", profiles=write_profile(place.folder), workers=2)
        async with replica(settings) as one, replica(settings) as other:
            for turn in range(10):
                client.say(f"What is in both, the {turn}th time?")
                for address in (one, other, one):
                    status, events = await client.ask(address)
                    assert status == 200, events
    assert thinker.refused == 0


async def test_reasoning_of_lenient_upstreams_stays_in_memory(place: Place) -> None:
    thinker, client = Thinker(is_strict=False), Client("openai_chat")
    async with running(thinker.make_app()) as upstream:
        async with replica(make_settings(place, upstream + "/v1")) as address:
            client.say("What is in both?")
            await finish_turn(client, address)
    assert all("reasoning_content" not in message for message in thinker.asked[-1]["messages"])


async def test_a_call_without_an_id_is_found_by_its_place(place: Place) -> None:
    thinker, client = Thinker(unnamed=("Thought 1.",)), Client("gemini")
    async with running(thinker.make_app()) as upstream:
        settings = make_settings(place, upstream + "/v1", profiles=write_profile(place.folder))
        async with replica(settings) as address:
            client.say("What is in both?")
            await client.ask(address)
            client.messages = [
                replace(
                    one, parts=tuple(replace(part, id="") if isinstance(part, ToolCall) else part for part in one.parts)
                )
                for one in client.messages
            ]
        async with replica(settings) as address:
            assert (await client.ask(address))[0] == 200
    assert thinker.asked[-1]["messages"][1]["reasoning_content"] == "Thought 1."


@pytest.mark.parametrize("stream", [False, True])
async def test_an_xml_client_has_no_field_for_reasoning_at_all(place: Place, stream: bool) -> None:
    steps = (("read_file", '{"path": "a.txt"}'), ("read_file", '{"path": "b.txt"}'))
    thinker = Thinker(steps=steps, unnamed=("Thought 1.", "Thought 2."))
    messages = [
        {"role": "system", "content": write_roo()},
        {"role": "user", "content": "<task>\nWhat is in both?\n</task>"},
    ]
    async with running(thinker.make_app()) as upstream, aiohttp.ClientSession() as session:
        settings = make_settings(place, upstream + "/v1", profiles=write_profile(place.folder))
        for name in ("a.txt", "b.txt", ""):
            async with replica(settings) as address:
                body = {"model": "m", "messages": messages, "stream": stream}
                async with session.post(address + "/v1/chat/completions", json=body) as response:
                    raw = await response.read()
                    assert response.status == 200, raw
            text = "".join(event.text for event in decode("openai_chat", raw, stream) if isinstance(event, TextDelta))
            assert name in text
            messages += [
                {"role": "assistant", "content": text},
                {"role": "user", "content": f"[read_file for '{name}'] Result:\n\nempty"},
            ]
    assert thinker.refused == 0
    sent = thinker.asked[-1]["messages"]
    assert [one["reasoning_content"] for one in sent if one["role"] == "assistant"] == ["Thought 1.", "Thought 2."]
