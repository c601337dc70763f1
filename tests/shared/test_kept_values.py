"""Kept values in the store: answers that clients refer to, signatures, and what happens if the store fails."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.replicas import Client, make_settings, replica, write_profile
from support.stores import Place
from support.thinking_upstream import Thinker
from support.wiring import Replay

from toolglot.core.conversation import Reasoning
from toolglot.core.errors import StoreError
from toolglot.gateway.sessions import kept_values
from toolglot.gateway.sessions.kept_values import (
    AnswerReference,
    KeptAnswer,
    KeptReasoning,
    KeptValues,
    Value,
    decode_value,
    encode_key,
    pack,
)
from toolglot.gateway.sessions.ttl_store import Lookup, TtlStore
from toolglot.gateway.telemetry.metrics import Count, Metrics
from toolglot.sim import running
from toolglot.store.interface import KeptValue

VALUES = st.one_of(
    st.builds(KeptAnswer, st.binary(max_size=3000), st.binary(max_size=50)),
    st.builds(AnswerReference, st.text()),
    st.builds(
        KeptReasoning,
        st.binary(),
        st.lists(st.tuples(st.builds(Reasoning, st.text(), st.text(), st.text()), st.booleans()), max_size=3).map(
            tuple
        ),
    ),
)


@given(VALUES)
def test_a_value_is_read_as_it_was_written(value: Value) -> None:
    decoded = decode_value(pack(msgspec.msgpack.encode(value)))
    assert decoded is not None and decoded[0] == value and type(decoded[0]) is type(value)


@given(st.binary(max_size=100), st.sampled_from([b"\x01", b"\x02", b"\x03", b""]))
def test_a_damaged_value_is_missing(noise: bytes, form: bytes) -> None:
    decoded = decode_value(form + noise)
    assert decoded is None or isinstance(decoded[0], KeptAnswer | AnswerReference | KeptReasoning)
    assert form in (b"\x01", b"\x02") or noise[:1] in (b"\x01", b"\x02") or decoded is None


def test_a_compressed_value_does_not_grow_without_limit() -> None:
    huge = pack(msgspec.msgpack.encode(KeptAnswer(bytes(4 * kept_values.MAX_VALUE), b"")))
    assert len(huge) < 1 << 20 and decode_value(huge) is None


@given(st.lists(st.one_of(st.text(), st.binary(), st.integers(0, 1 << 40)), min_size=1, max_size=4).map(tuple))
def test_keys_differ_as_their_parts_do(key: tuple[Any, ...]) -> None:
    assert encode_key(key) == encode_key(tuple(key))
    assert encode_key(key) != encode_key((*key, "")) and encode_key(("", *key)) != encode_key(key)


# -- the queue ---------------------------------------------------------------------------------------------------------


class FailingStore:
    """A store that fails while ``problem`` is set, and does not answer while ``blocked`` is."""

    is_shared = True

    def __init__(self) -> None:
        self.problem = ""
        self.blocked = False
        self.batches: list[list[bytes]] = []
        self.rows: dict[tuple[bytes, bytes], bytes] = {}

    async def use(self) -> None:
        while self.blocked:
            await asyncio.sleep(0.01)
        if self.problem:
            raise StoreError(self.problem)

    async def check(self) -> None:
        await self.use()

    async def keep(self, values: Sequence[KeptValue]) -> None:
        await self.use()
        if any(b"poison" in value.value for value in values):
            raise StoreError("a row cannot be stored")
        self.batches.append([value.key for value in values])
        self.rows |= {(value.owner, value.key): value.value for value in values}

    async def find_kept(self, owner: bytes, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        await self.use()
        return {key: self.rows[owner, key] for key in keys if (owner, key) in self.rows}


@asynccontextmanager
async def connected(store: Any, memory: TtlStore | None = None) -> AsyncIterator[tuple[TtlStore, KeptValues, Count]]:
    memory = TtlStore(time.time) if memory is None else memory
    dropped = Metrics().kept_dropped
    kept = KeptValues(memory, store, dropped, shared=True)
    try:
        yield memory, kept, dropped
    finally:
        await kept.close(1)


def reference(name: str) -> AnswerReference:
    return AnswerReference(name)


def test_the_owner_of_stored_values_never_changes() -> None:
    """Or no client can refer to an answer that another version has stored."""
    assert TtlStore(time.time).open("key", "upstream").owner.hex() == "6de5aaa94ab3e7528c4020826027ee27"


async def test_values_are_written_together_and_found_by_others() -> None:
    store = FailingStore()
    async with connected(store) as (memory, kept, dropped):
        own = memory.open("anna")
        for number in range(100):
            own.keep(("answer", str(number)), reference(str(number)), 10)
        await kept.flush()
        assert len(store.batches) == 1 and len(store.rows) == 100 and dropped.total == 0
    async with connected(store) as (memory, kept, _):
        lookup = Lookup()
        own = memory.open("anna", lookup=lookup)
        assert own.find(("answer", "7")) is None and own.find(("answer", "none")) is None
        await kept.load(lookup)
        assert own.find(("answer", "7")) == reference("7") and own.find(("answer", "none")) is None
        assert not lookup.missing  # what the store does not have is not asked for again
        assert memory.open("anna").find(("answer", "7")) == reference("7")
        stranger = Lookup()
        assert memory.open("berta", lookup=stranger).find(("answer", "7")) is None
        await kept.load(stranger)
        assert memory.open("berta", lookup=stranger).find(("answer", "7")) is None


async def test_a_failing_store_blocks_no_request_and_gets_the_values_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_values, "RETRY_SECONDS", 0.01)
    store = FailingStore()
    store.problem = "down"
    async with connected(store) as (memory, kept, dropped):
        memory.open("anna").keep(("answer", "1"), reference("1"), 10)
        await asyncio.wait_for(kept.flush(60), 5)  # returns as soon as it is known to fail
        lookup = Lookup()
        assert memory.open("anna", lookup=lookup).find(("answer", "1")) == reference("1")
        assert memory.open("anna", lookup=lookup).find(("answer", "2")) is None
        await kept.load(lookup)
        store.problem = ""
        while not store.rows:
            await asyncio.sleep(0.01)
        assert dropped.total == 0


async def test_a_store_that_hangs_holds_an_answer_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_values, "LOAD_SECONDS", 0.05)
    store = FailingStore()
    store.blocked = True
    async with connected(store) as (memory, kept, _):
        memory.open("anna").keep(("answer", "1"), reference("1"), 10)
        await asyncio.wait_for(kept.flush(0.05), 5)
        lookup = Lookup()
        assert memory.open("anna", lookup=lookup).find(("answer", "2")) is None
        await asyncio.wait_for(kept.load(lookup), 5)
        store.blocked = False


async def test_the_queue_is_bounded_and_what_does_not_fit_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_values, "MAX_QUEUED", 10)
    monkeypatch.setattr(kept_values, "RETRY_SECONDS", 0.01)
    store = FailingStore()
    store.blocked = True
    async with connected(store) as (memory, kept, dropped):
        own = memory.open("anna")
        for number in range(30):
            own.keep(("answer", str(number)), reference(str(number)), 10)
            await asyncio.sleep(0)
        assert dropped.total >= 10 and all(own.find(("answer", str(number))) for number in range(30))
        lost = dropped.total
        own.keep(("answer", "huge"), reference("huge"), kept_values.MAX_VALUE + 1)
        assert dropped.total == lost + 1 and own.find(("answer", "huge")) == reference("huge")
        store.blocked = False
        await kept.flush()
        assert len(store.rows) == 30 - lost


async def test_a_value_that_the_store_refuses_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_values, "RETRY_SECONDS", 0.01)
    store = FailingStore()
    async with connected(store) as (memory, _, dropped):
        own = memory.open("anna")
        for name in ("a", "poison", "b"):
            own.keep(("answer", name), reference(name), 10)
        while len(store.rows) < 2 or not dropped.total:
            await asyncio.sleep(0.01)
        assert dropped.total == 1
        own.keep(("answer", "c"), reference("c"), 10)
        while len(store.rows) < 3:
            await asyncio.sleep(0.01)


async def test_values_in_use_do_not_expire_in_the_store(place: Place) -> None:
    now = [1000.0]
    place.now = lambda: now[0]
    async with place.opened() as store:
        async with connected(store, TtlStore(place.now, seconds=100)) as (memory, kept, _):
            own = memory.open("anna")
            own.keep(("answer", "1"), reference("1"), 10)
            own.keep(("answer", "2"), reference("2"), 10)
            for _ in range(5):
                now[0] += 60
                assert own.find(("answer", "1")) == reference("1")
                await kept.flush()
        async with connected(store, TtlStore(place.now, seconds=100)) as (memory, kept, _):
            lookup = Lookup()
            own = memory.open("anna", lookup=lookup)
            assert own.find(("answer", "1")) is own.find(("answer", "2")) is None
            await kept.load(lookup)
            assert (own.find(("answer", "1")), own.find(("answer", "2"))) == (reference("1"), None)


async def test_values_kept_in_threads_are_stored(place: Place) -> None:
    async with place.opened() as store, connected(store) as (memory, kept, _):
        own = memory.open("anna")
        keeping = [
            asyncio.to_thread(own.keep, ("answer", str(number)), KeptAnswer(b"x" * 5000, str(number).encode()), 5000)
            for number in range(50)
        ]
        await asyncio.gather(*keeping)
        await kept.flush()
        found = await store.find_kept(own.owner, [encode_key(("answer", str(number))) for number in range(50)])
        assert len(found) == 50


# -- answers that clients refer to -------------------------------------------------------------------------------------


async def post(address: str, body: Any, key: str = "k") -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession() as session:
        async with session.post(address + "/v1/responses", data=json.dumps(body), headers=headers) as response:
            raw = await response.read()
            if response.content_type != "text/event-stream":
                return response.status, json.loads(raw)
    last = [json.loads(line[6:]) for line in raw.decode().splitlines() if line.startswith("data: ")][-1]
    return response.status, last["response"]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_can_be_referred_to_after_a_restart(place: Place, stream: bool) -> None:
    thinker = Thinker(is_strict=False)
    async with running(thinker.make_app()) as upstream:
        settings = make_settings(place, upstream + "/v1")
        previous = None
        for number in range(4):
            async with replica(settings) as address:
                body = {"model": "m", "input": f"Question {number}", "stream": stream, "previous_response_id": previous}
                status, answer = await post(address, body)
                assert status == 200, answer
                previous = answer["id"]
        async with replica(settings) as address:
            items = [{"type": "item_reference", "id": answer["output"][-1]["id"]}, {"role": "user", "content": "Again"}]
            status, answer = await post(address, {"model": "m", "input": items, "stream": stream})
            assert status == 200, answer
            for key, known in (("other", previous), ("k", "resp_unknown")):
                status, answer = await post(
                    address, {"model": "m", "input": "?", "stream": stream, "previous_response_id": known}, key
                )
                assert status == 400, answer
    asked = [
        [message["content"] for message in body["messages"] if message["role"] == "user"] for body in thinker.asked
    ]
    assert asked == [[f"Question {number}" for number in range(last + 1)] for last in range(4)] + [["Again"]]
    assert thinker.asked[-1]["messages"][0]["role"] == "assistant"


async def test_another_replica_knows_an_answer_as_soon_as_it_ends(place: Place) -> None:
    thinker = Thinker(is_strict=False)
    async with running(thinker.make_app()) as upstream:
        settings = make_settings(place, upstream + "/v1", workers=2)
        async with replica(settings) as one, replica(settings) as other:
            previous = None
            for number in range(20):
                body = {"model": "m", "input": str(number), "stream": number % 3 > 0, "previous_response_id": previous}
                status, answer = await post((one, other)[number % 2], body)
                assert status == 200, answer
                previous = answer["id"]


async def test_signatures_survive_a_restart(place: Place) -> None:
    """Gemini signs its calls, and clients of openai_chat cannot send the signature back."""
    call = {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "c2VhbCBvbmU="}
    answer = {"candidates": [{"content": {"role": "model", "parts": [call]}, "finishReason": "STOP"}]}
    replay, client = Replay(), Client("openai_chat")
    replay.body, replay.content_type = json.dumps(answer).encode(), "application/json"
    client.say("Read it.")
    async with running(replay.app) as upstream:
        settings = make_settings(place, upstream + "/v1beta")
        settings = replace(settings, upstreams=(replace(settings.upstreams[0], wire="gemini"),))
        for _ in range(2):
            async with replica(settings) as address:
                status, events = await client.ask(address)
                assert status == 200, events
    assert ["c2VhbCBvbmU=" in json.dumps(sent) for _, _, sent in replay.asked] == [False, True]


async def test_a_request_that_needs_nothing_asks_the_store_for_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[Lookup] = []

    async def load(kept: KeptValues, lookup: Lookup) -> None:
        loaded.append(lookup)

    monkeypatch.setattr(KeptValues, "load", load)
    thinker, client = Thinker(), Client("openai_chat")
    async with running(thinker.make_app()) as upstream:
        settings = make_settings(place, upstream + "/v1", profiles=write_profile(place.folder))
        async with replica(settings) as address:
            client.say("What is in both?")
            for _ in range(3):
                assert (await client.ask(address))[0] == 200
            await post(address, {"model": "m", "input": "Hi"})
            assert loaded == []


async def test_a_dead_store_fails_no_request(place: Place) -> None:
    thinker, client = Thinker(), Client("openai_chat")
    async with running(thinker.make_app()) as upstream:
        dead = "postgresql://user:secret@127.0.0.1:1/none"
        settings = make_settings(place, upstream + "/v1", profiles=write_profile(place.folder), store_url=dead)
        async with replica(settings) as address:
            client.say("What is in both?")
            for _ in range(3):
                assert (await client.ask(address))[0] == 200
            status, answer = await post(address, {"model": "m", "input": "Hi"})
            assert status == 200
            status, answer = await post(address, {"model": "m", "input": "Ho", "previous_response_id": answer["id"]})
            assert status == 200
            status, answer = await post(address, {"model": "m", "input": "Ho", "previous_response_id": "resp_1"})
            assert status == 400
