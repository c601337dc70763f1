"""The wire against the simulated web chat, which shares no code with it: what it sends is accepted, what the simulator
streams is read, and every error has a meaning."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from support.event_order import check_order
from support.rows import in_one_test

from toolglot.core.conversation import Conversation, Message, Sampling, Text
from toolglot.core.errors import UpstreamResponseError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    Started,
    TextDelta,
    merge_deltas,
)
from toolglot.sim.answer import Answer
from toolglot.sim.qwen_web import ChatSimOptions, ChatSimulation, make_app, running
from toolglot.sim.qwen_web.errors import ERRORS, PAGES
from toolglot.wires import all_wires
from toolglot.wires.protocol import ChatCall, ChatFault, ChatPosition, ChatProtocol

WIRE = all_wires()["qwen_web"]
assert WIRE.chat is not None
CHAT: ChatProtocol = WIRE.chat
TEXT = "Größe 🎉: the file has three lines; read all of it?\n\n```\n<a>&amp;</a>\n```"
NATIVE = (
    'I read both.\n<tool_call>\n{"name": "read", "arguments": {"path": "ä.txt"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "read", "arguments": {"path": "b.txt"}}\n</tool_call>'
)


def new_id() -> str:
    return str(uuid.uuid4())


@dataclass
class Client:
    """The smallest client that uses the wire."""

    http: aiohttp.ClientSession
    token: str = "sim-token"
    statuses: list[int] = field(default_factory=list)

    async def send(self, call: ChatCall, chat_id: str = "") -> bytes:
        headers = {**WIRE.authorize(self.token), **CHAT.headers(chat_id, new_id, time.time())}
        headers["Content-Type"] = "application/json"
        async with self.http.request(call.method, call.path, data=call.body or None, headers=headers) as response:
            self.statuses.append(response.status)
            return await response.read()

    async def create(self) -> str:
        return CHAT.read_chat_id(await self.send(CHAT.create("qwen3.7-plus", time.time())))

    async def complete(self, chat_id: str, body: bytes, parent: str = "") -> list[Event]:
        position = ChatPosition(chat_id=chat_id, parent=parent, fresh_id=new_id, now=time.time())
        call = ChatCall(method="POST", path=CHAT.locate(chat_id), body=CHAT.place(body, position))
        answer = await self.send(call, chat_id)
        if self.statuses[-1] >= 400:
            raise WIRE.decode_error(self.statuses[-1], answer)
        events = WIRE.decode_response(answer, new_id).events
        check_order(events)
        whole = list(merge_deltas(events))
        for size in (1, 7):
            decoder, pieces = WIRE.open_decoder(new_id), list[Event]()
            for at in range(0, len(answer), size):
                pieces += decoder.feed(answer[at : at + size])
            pieces += decoder.close()
            assert view(list(merge_deltas(pieces))) == view(whole)
        return whole

    async def ask(self, text: str = "hello", **limits: Any) -> list[Event]:
        return await self.complete(await self.create(), encode(("user", text), **limits))


def encode(*turns: tuple[Any, str], tail: bool = False, **limits: Any) -> bytes:
    messages = tuple(Message(role, (Text(text),)) for role, text in turns)
    conversation = Conversation("qwen3.7-plus", messages, sampling=Sampling(**limits))
    encoder = CHAT.encode_tail if tail else WIRE.encode_request
    return encoder(conversation, stream=True, wants_usage=True)


def view(events: Sequence[Event]) -> list[Event]:
    """The events without the ids of calls, which are random."""
    return [CallStarted(event.index, "", event.name) if isinstance(event, CallStarted) else event for event in events]


def text_of(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def simulate(
    test: Callable[[Client], Awaitable[None]], answer: str = TEXT, reasoning: str = "", **options: Any
) -> ChatSimulation:
    """Run a test against a simulated account; it must not break a rule of the protocol."""

    def brain(_: object) -> Answer:
        return Answer(answer, reasoning=reasoning)

    given: dict[str, Any] = {"brain": brain, "lock": 0, "hang": 0.05} | options
    simulation = ChatSimulation(ChatSimOptions(**given))

    async def run() -> None:
        async with running(make_app(simulation)) as address, aiohttp.ClientSession(address) as http:
            await test(Client(http))

    asyncio.run(run())
    assert simulation.violations == []
    return simulation


def read(answer: str = TEXT, reasoning: str = "", effort: str = "", **options: Any) -> list[Event]:
    found: list[Event] = []

    async def test(client: Client) -> None:
        found.extend(await client.ask(effort=effort))

    simulate(test, answer, reasoning, **options)
    return found


HARMLESS = [
    "done", "no_blank_lines", "no_phase", "finish_reason", "no_usage", "no_response_id", "keep_alive", "ping",
    "comments", "crlf", "no_content_type", "cumulative", "platform_tool", "web_search", "dual_response",
]  # fmt: skip


@in_one_test("chunk", [1, 5, 400])
@in_one_test("fault", ["", *HARMLESS])
def test_an_answer_is_read_whatever_the_form_of_the_stream(fault: str, chunk: int) -> None:
    events = read(faults=(fault,) if fault else (), chunk=chunk)
    assert isinstance(events[0], Started) and events[0].id
    assert text_of(events) == TEXT and len(events) == 3
    last = events[-1]
    assert isinstance(last, Finished) and last.reason == "stop"
    assert (last.usage is None) == (fault == "no_usage")


@in_one_test("fault", ["", "cumulative", "no_phase", "no_blank_lines", "done", "finish_reason"])
@in_one_test("chunk", [1, 4, 400])
def test_intercepted_calls_are_calls(fault: str, chunk: int) -> None:
    events = read(NATIVE, faults=(fault,) if fault else (), chunk=chunk)
    arguments = [event.fragment for event in events if isinstance(event, CallArguments)]
    assert arguments == ['{"path": "ä.txt"}', '{"path": "b.txt"}']
    assert sum(isinstance(event, CallEnded) for event in events) == 2
    assert text_of(events).strip() == "I read both."
    last = events[-1]
    assert isinstance(last, Finished) and last.reason == "tool_calls"


@pytest.mark.parametrize(("faults", "thought"), [((), "I think.\nThen I act."), (("thinking_summary",), None), (("cumulative",), "I think.\nThen I act.")])  # fmt: skip
def test_thinking_is_reasoning(faults: tuple[str, ...], thought: str | None) -> None:
    events = read(reasoning="I think.\nThen I act.", effort="high", faults=faults, chunk=3)
    shown = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    assert shown == (thought or "Step 1\nI think.\n\nStep 2\nThen I act.") and text_of(events) == TEXT
    last = events[-1]
    assert isinstance(last, Finished) and last.usage is not None
    assert last.usage.reported["output_tokens_details"]["reasoning_tokens"] > 0


@pytest.mark.parametrize("fault", ["no_finish"])
def test_an_answer_without_an_end_fails(fault: str) -> None:
    events = read(faults=(fault,))
    assert text_of(events) == TEXT and isinstance(events[-1], Failed) and events[-1].kind == "upstream_closed"


# -- errors ------------------------------------------------------------------------------------------------------------

MEANINGS = {
    "rate_limited": ("quota_exhausted", ChatFault.NONE),
    "parallel_limited": ("rate_limited", ChatFault.NONE),
    "too_many_requests": ("rate_limited", ChatFault.NONE),
    "quota_limited": ("quota_exhausted", ChatFault.NONE),
    "exceed_limit": ("quota_exhausted", ChatFault.NONE),
    "quota_exhausted": ("quota_exhausted", ChatFault.NONE),
    "allocated_quota": ("quota_exhausted", ChatFault.NONE),
    "too_many_messages": ("too_many_messages", ChatFault.NONE),
    "parent_not_exist": ("parent_not_found", ChatFault.GONE),
    "parent_not_found": ("parent_not_found", ChatFault.GONE),
    "not_found": ("chat_not_found", ChatFault.GONE),
    "chat_not_found": ("chat_not_found", ChatFault.GONE),
    "in_progress": ("chat_in_progress", ChatFault.BUSY),
    "unauthorized": ("upstream_unauthorized", ChatFault.NONE),
    "unauthorized_lowercase": ("upstream_unauthorized", ChatFault.NONE),
    "token_expired": ("upstream_unauthorized", ChatFault.NONE),
    "context_length_exceeded": ("context_length_exceeded", ChatFault.NONE),
    "internal_server_error": ("upstream_internal_error", ChatFault.TRANSIENT),
    "internal_error": ("upstream_internal_error", ChatFault.TRANSIENT),
    "waf_json": ("upstream_blocked", ChatFault.BLOCKED),
    "waf_html": ("upstream_blocked", ChatFault.BLOCKED),
    "empty_body": ("empty_answer", ChatFault.TRANSIENT),
    "bad_gateway": ("upstream_invalid", ChatFault.NONE),
}


def test_every_error_of_the_simulator_has_a_meaning() -> None:
    assert set(MEANINGS) == {*ERRORS, *PAGES}


def describe(failed: Failed) -> UpstreamResponseError:
    return UpstreamResponseError(failed.message, 502, failed.kind)


@in_one_test("name", MEANINGS)
def test_an_error_of_a_completion(name: str) -> None:
    forms = [name] if name in PAGES else [name, f"{name}_first", f"{name}_mid"]
    if name in ERRORS and ERRORS[name].status != 200:
        forms.append(f"{name}_status")
    for fault in forms:

        async def test(client: Client, fault: str = fault) -> None:
            try:
                last = (await client.ask())[-1]
                assert isinstance(last, Failed)
                error = describe(last)
            except UpstreamResponseError as caught:
                assert fault.endswith("_status")
                error = caught
            assert (error.code, CHAT.classify(error)) == MEANINGS[name], fault

        simulate(test, faults=(fault,))


@in_one_test("name", MEANINGS)
def test_an_error_when_a_chat_is_made(name: str) -> None:
    async def test(client: Client) -> None:
        with pytest.raises(UpstreamResponseError) as caught:
            await client.create()
        assert (caught.value.code, CHAT.classify(caught.value)) == MEANINGS[name]

    simulate(test, faults=(f"create_{name}",))


def test_a_wrong_token_is_refused() -> None:
    async def test(client: Client) -> None:
        client.token = "other"
        with pytest.raises(UpstreamResponseError) as caught:
            await client.create()
        assert caught.value.code == "upstream_unauthorized"

    simulate(test)


# -- chats -------------------------------------------------------------------------------------------------------------


def test_a_chat_is_continued_after_the_answer() -> None:
    async def test(client: Client) -> None:
        chat_id, parent = await client.create(), ""
        turns = [encode(("system", "Be brief."), ("user", "first")), encode(("user", "two"), tail=True)]
        turns.append(encode(("system", "Be long."), ("user", "three"), tail=True))
        for body in turns:
            started = (await client.complete(chat_id, body, parent))[0]
            assert isinstance(started, Started)
            parent = started.id

    simulation = simulate(test)
    seen = simulation.seen[-1].messages
    assert [role for role, _ in seen] == ["user", "assistant", "user", "assistant", "user"]
    assert [text for role, text in seen if role == "assistant"] == [TEXT, TEXT]
    assert "Be brief." in seen[0].text and seen[2].text == "two"
    assert "Be long." in seen[4].text and "first" not in seen[4].text


def test_an_unknown_parent_and_a_deleted_chat_are_gone() -> None:
    async def test(client: Client) -> None:
        chat_id = await client.create()
        [failed] = await client.complete(chat_id, encode(("user", "one")), "nobody")
        assert isinstance(failed, Failed) and CHAT.classify(describe(failed)) is ChatFault.GONE
        assert CHAT.read_error(await client.send(CHAT.delete(chat_id))) is None
        [failed] = await client.complete(chat_id, encode(("user", "one")))
        assert isinstance(failed, Failed) and CHAT.classify(describe(failed)) is ChatFault.GONE

    simulate(test)


def test_models_of_both_addresses() -> None:
    async def test(client: Client) -> None:
        for call in CHAT.list_models:
            body = await client.send(call)
            assert [model["id"] for model in CHAT.read_models(body)] == ["one", "two"]

    simulate(test, models=("one", "two"))


def test_an_answer_in_progress_is_stopped() -> None:
    async def test(client: Client) -> None:
        chat_id = await client.create()
        client.statuses.clear()
        body = CHAT.place(
            encode(("user", "one")), ChatPosition(chat_id=chat_id, parent="", fresh_id=new_id, now=time.time())
        )
        decoder, events = WIRE.open_decoder(new_id), list[Event]()
        headers = WIRE.authorize("sim-token")
        async with client.http.post(CHAT.locate(chat_id), data=body, headers=headers) as response:
            async for piece in response.content.iter_any():
                events += decoder.feed(piece)
                if events and isinstance(events[0], Started) and not client.statuses:
                    assert CHAT.read_error(await client.send(CHAT.stop(chat_id, events[0].id))) is None
        events += decoder.close()
        assert isinstance(events[-1], Finished) and len(text_of(events)) < len(TEXT) * 50

    simulate(test, TEXT * 50, pace=5)
