"""A whole call, a streamed call and the follow-up with its result, for each wire of upstreams.

Against the simulated model always; against a real server where its credentials are in the environment: ``LIVE_`` and the wire in
capitals, with ``_KEY`` (for ``qwen_web`` the name is ``QWEN_TOKEN``, and ``QWEN_COOKIES`` is used, too), ``_MODEL`` and, to ask another
address than the vendor's, ``_URL``. Such requests cost money.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from support.gateway import READ, Gate

from toolglot.config import Secret, load
from toolglot.server.lifecycle import listening
from toolglot.sim import Answer, RequestLog, ScriptedAnswer, SimCall, SimOptions, make_app, running
from toolglot.sim.qwen_web import ChatSimOptions, ChatSimulation
from toolglot.sim.qwen_web import make_app as make_chat_app

ADDRESSES = {
    "openai_chat": "https://api.openai.com/v1",
    "openai_responses": "https://api.openai.com/v1",
    "anthropic_messages": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
    "ollama": "https://ollama.com",
    "qwen_web": "https://chat.qwen.ai",
}
TASK = "Use the tool read to read the file notes.txt, then tell me the word in it."
FINAL = "The word is kumquat."
CALL = Answer("I look.", (SimCall("read", '{"filePath":"notes.txt"}'),))


def name_variable(wire: str, end: str) -> str:
    return "QWEN_TOKEN" if (wire, end) == ("qwen_web", "_KEY") else f"LIVE_{wire.upper()}{end}"


@asynccontextmanager
async def open_gateway(wire: str, address: str, key: str, cookies: str = "") -> AsyncIterator[Gate]:
    settings = load({"port": 0, "state_dir": "none", "base_url": address, "api_key": key}, {})
    changes: dict[str, Any] = {"wire": wire, "accept_terms": True, "delete_chats": True, "cookies": Secret(cookies)}
    settings = replace(settings, upstreams=tuple(replace(one, **changes) for one in settings.upstreams))
    async with listening(settings) as own, aiohttp.ClientSession() as session:
        yield Gate(own, RequestLog(), session)


async def call_and_follow_up(gate: Gate, model: str) -> None:
    """The two ways to get a call, then the result of the second one."""
    asked: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": TASK}], "tools": [READ]}
    whole = await gate.ask(asked)
    assert whole.status == 200, whole.body
    [call] = whole.message["tool_calls"]
    assert (call["function"]["name"], whole.finish) == ("read", "tool_calls")
    streamed = await gate.ask(asked | {"stream": True})
    text, calls, finish = streamed.joined
    assert [name for name, _ in calls] == ["read"] and finish == "tool_calls", streamed.body
    assert "notes.txt" in json.loads(calls[0][1])["filePath"]
    function = {"name": "read", "arguments": calls[0][1]}
    made = {"role": "assistant", "content": text or None, "tool_calls": [{**call, "function": function}]}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "the word is kumquat\n"}
    final = await gate.ask(asked | {"messages": [*asked["messages"], made, result]})
    assert final.status == 200, final.body
    assert "kumquat" in final.message["content"].lower() and final.finish == "stop"


@pytest.mark.parametrize("wire", ADDRESSES)
def test_a_call_and_its_result_with_the_simulated_model(wire: str) -> None:
    answers = [CALL, CALL, Answer(FINAL)]

    async def test() -> None:
        if wire == "qwen_web":
            app = make_chat_app(ChatSimulation(ChatSimOptions(brain=lambda _: answers.pop(0))))
        else:
            app = make_app(SimOptions(script=tuple(ScriptedAnswer(answer, times=1) for answer in answers)))
        async with running(app) as address:
            base = address + ("/v1" if wire.startswith("openai") else "")
            async with open_gateway(wire, base, "sim-token") as gate:
                await call_and_follow_up(gate, "sim")

    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.mark.parametrize("wire", ADDRESSES)
def test_a_call_and_its_result_with_a_real_server(wire: str) -> None:
    key, address, model = (os.environ.get(name_variable(wire, end), "") for end in ("_KEY", "_URL", "_MODEL"))
    missing = missing_of(wire, key, model)
    if missing:
        pytest.skip(f"{wire}: {' and '.join(missing)} not set")

    async def test() -> None:
        cookies = os.environ.get("QWEN_COOKIES", "") if wire == "qwen_web" else ""
        async with open_gateway(wire, address or ADDRESSES[wire], key, cookies) as gate:
            await call_and_follow_up(gate, model)

    asyncio.run(asyncio.wait_for(test(), 300))


def missing_of(wire: str, key: str, model: str) -> Sequence[str]:
    found = {name_variable(wire, "_KEY"): key, name_variable(wire, "_MODEL"): model}
    return [name for name, value in found.items() if not value]
