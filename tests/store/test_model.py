"""Random operations on chats by two users of one store, compared with a simple model in memory.

Leases last 60 seconds or none, so that a lease never expires in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from support.fragments import SCALE
from support.stores import Place, chat, node, session

from toolglot.core.errors import StoreError
from toolglot.store.interface import ChainNode

Some = TypeVar("Some")
SESSIONS = [f"s{at}" for at in range(3)]
CHATS = [f"c{at}" for at in range(4)]
KEYS = [b"k%d" % at for at in range(5)]
LONG, OVER = 60.0, 0.0
USERS = st.integers(0, 1)
AGES = st.sampled_from((0, 0, 0, -1, 1))
"""What is added to the current token."""


@dataclass
class ChatModel:
    session: str
    token: int
    leased: bool
    expired: bool
    head: str = ""

    def may_use(self, token: int) -> bool:
        return self.leased and token == self.token


@dataclass
class Model:
    sessions: set[str] = field(default_factory=set)
    chats: dict[str, ChatModel] = field(default_factory=dict)
    nodes: list[ChainNode] = field(default_factory=list)

    def add(self, added: ChainNode) -> None:
        known = [(one.key, one.session, one.chat, one.message) for one in self.nodes]
        exists = added.session in self.sessions and (not added.chat or added.chat in self.chats)
        if exists and (added.key, added.session, added.chat, added.message) not in known:
            self.nodes.append(added)

    def delete_chat(self, name: str) -> None:
        self.chats.pop(name, None)
        self.nodes = [one for one in self.nodes if one.chat != name]


class Machine(RuleBasedStateMachine):
    place: Place

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stores = [self.place.make(), self.place.make()]
        self.model = Model()
        for found in self.run(self.stores[0].list_sessions(None, 100)):
            self.run(self.stores[0].delete_session(None, found.id))

    def run(self, work: Coroutine[Any, Any, Some]) -> Some:
        return self.runner.run(work)

    def teardown(self) -> None:
        for store in self.stores:
            self.run(store.close())
        self.runner.close()

    @rule(user=USERS, name=st.sampled_from(SESSIONS), key=st.sampled_from(KEYS))
    def add_session(self, user: int, name: str, key: bytes) -> None:
        self.run(self.stores[user].add_session(session(name), [node(key, name)]))
        self.model.sessions.add(name)
        self.model.add(node(key, name))

    @rule(user=USERS, name=st.sampled_from(CHATS), of=st.sampled_from(SESSIONS), ttl=st.sampled_from((LONG, OVER)))
    def add_chat(self, user: int, name: str, of: str, ttl: float) -> None:
        adding = self.stores[user].add_chat(chat(name, session=of), f"{user}", ttl)
        if name in self.model.chats or of not in self.model.sessions:
            with pytest.raises(StoreError):
                self.run(adding)
        else:
            self.model.chats[name] = ChatModel(of, self.run(adding), leased=True, expired=ttl == OVER)

    @rule(user=USERS, name=st.sampled_from(CHATS), ttl=st.sampled_from((LONG, OVER)))
    def acquire(self, user: int, name: str, ttl: float) -> None:
        token = self.run(self.stores[user].acquire_lease(name, f"{user}", ttl))
        known = self.model.chats.get(name)
        if known is None or (known.leased and not known.expired):
            assert token is None
        else:
            assert token is not None
            assert token > known.token
            known.token, known.leased, known.expired = token, True, ttl == OVER

    @rule(user=USERS, name=st.sampled_from(CHATS), age=AGES, ttl=st.sampled_from((LONG, OVER)))
    def renew(self, user: int, name: str, age: int, ttl: float) -> None:
        known, token = self.find(name, age)
        renewed = self.run(self.stores[user].renew_lease(name, token, ttl))
        assert renewed == (known is not None and known.may_use(token))
        if renewed and known is not None:
            known.expired = ttl == OVER

    @rule(user=USERS, name=st.sampled_from(CHATS), age=AGES)
    def release(self, user: int, name: str, age: int) -> None:
        known, token = self.find(name, age)
        self.run(self.stores[user].release_lease(name, token))
        if known is not None and known.may_use(token):
            known.leased = False

    @rule(user=USERS, name=st.sampled_from(CHATS), age=AGES)
    def interrupt(self, user: int, name: str, age: int) -> None:
        known, token = self.find(name, age)
        interrupted = self.run(self.stores[user].interrupt_chat(name, token))
        assert interrupted == (known is not None and known.may_use(token) and not known.expired)
        if interrupted and known is not None:
            known.head = ""

    @rule(
        user=USERS,
        name=st.sampled_from(CHATS),
        age=AGES,
        head=st.sampled_from("mno"),
        keys=st.sets(st.sampled_from(KEYS)),
    )
    def commit(self, user: int, name: str, age: int, head: str, keys: set[bytes]) -> None:
        known, token = self.find(name, age)
        added = [node(key, known.session if known else "s0", chat=name, message=head) for key in sorted(keys)]
        committed = self.run(self.stores[user].commit_turn(added, name, head, token))
        assert committed == (known is not None and known.may_use(token))
        if committed and known is not None:
            known.head = head
            for one in added:
                self.model.add(one)

    @rule(user=USERS, key=st.sampled_from(KEYS), of=st.sampled_from(SESSIONS), name=st.sampled_from(["", *CHATS]))
    def add_nodes(self, user: int, key: bytes, of: str, name: str) -> None:
        added = node(key, of, chat=name, message="x" if name else "")
        self.run(self.stores[user].add_nodes([added, added]))
        self.model.add(added)

    @rule(user=USERS, key=st.sampled_from(KEYS), of=st.sampled_from(SESSIONS), answer=st.sampled_from((b"yes", b"no")))
    def claim(self, user: int, key: bytes, of: str, answer: bytes) -> None:
        claimed = self.run(self.stores[user].claim_node(node(key, of), answer))
        held = [one for one in self.model.nodes if (one.key, one.session, one.chat) == (key, of, "")]
        assert claimed == any(one.answer in (b"", answer) for one in held)
        if claimed:
            self.model.nodes[self.model.nodes.index(held[0])] = node(key, of, answer=answer)

    @rule(user=USERS, name=st.sampled_from(CHATS))
    def delete_chat(self, user: int, name: str) -> None:
        self.run(self.stores[user].delete_chat(name))
        self.model.delete_chat(name)

    @rule(user=USERS, name=st.sampled_from(SESSIONS))
    def delete_session(self, user: int, name: str) -> None:
        deleted = self.run(self.stores[user].delete_session(b"anna", name))
        held = sorted(one for one, known in self.model.chats.items() if known.session == name)
        assert (None if deleted is None else sorted(one.id for one in deleted)) == (
            held if name in self.model.sessions else None
        )
        for one in held:
            self.model.delete_chat(one)
        self.model.nodes = [one for one in self.model.nodes if one.session != name]
        self.model.sessions.discard(name)

    @rule(user=USERS, limit=st.integers(1, 3))
    def expire(self, user: int, limit: int) -> None:
        expired = [one.id for one in self.run(self.stores[user].expire_chats(self.place.now() + 1000, limit))]
        free = [one for one, known in self.model.chats.items() if not known.leased or known.expired]
        assert set(expired) <= set(free)
        assert len(expired) == min(limit, len(free))
        for one in expired:
            self.model.delete_chat(one)

    @invariant()
    def both_see_the_same(self) -> None:
        expected = [one for key in KEYS for one in reversed(self.model.nodes) if one.key == key]
        for store in self.stores:
            found = self.run(store.find_nodes(KEYS))
            assert [one.node for one in found] == expected
            for one in found:
                known = self.model.chats.get(one.node.chat)
                assert (one.chat is None) == (known is None)
                if one.chat is not None and known is not None:
                    assert (one.chat.head, one.chat.session) == (known.head, known.session)

    def find(self, name: str, age: int) -> tuple[ChatModel | None, int]:
        """The chat, and its token or another one."""
        known = self.model.chats.get(name)
        return known, (known.token if known else 1) + age


def test_the_store_does_what_the_model_does(place: Place) -> None:
    machine = type("PlacedMachine", (Machine,), {"place": place})
    count = 25 if place.is_sqlite else 12
    run_state_machine_as_test(machine, settings=settings(max_examples=count * SCALE, stateful_step_count=40))
