"""Finds the session of a request, whatever its upstream is, so that records can be grouped by conversation.

Strategy. Each request adds a node: the key of all its messages. The next request of the conversation holds that prefix,
then the answer, then something new. So the session is that of the longest known prefix that ends right before an
answer. The answer decides between conversations that begin alike: the first request that continues a node claims it
for its answer, and a request with another answer does not match it.

A request that repeats an earlier one exactly starts a session of its own, unless the earlier one failed: then it is a
retry. What a client edits or compacts so that no prefix remains is a new session.

Requests that have ended are named many at a time: one query finds what the store knows of all of them, and one write
adds what is new. Only to claim a node takes a call of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.gateway.sessions.chain import HASH_BYTES
from toolglot.gateway.sessions.turns import SessionTurn
from toolglot.store.interface import ChainNode, SessionRow, Store

UNANSWERED = bytes(HASH_BYTES)
"""The answer of a node whose request failed."""
NEWEST: Final = 16
"""How many nodes with the same key are compared."""


class EndedTurn(Struct, frozen=True, kw_only=True):
    """A request that has ended, and when. ``failed``: it got no answer."""

    turn: SessionTurn
    time: float
    failed: bool


async def name_sessions(ended: Sequence[EndedTurn], store: Store, new_id: Callable[[], str]) -> list[str]:
    """The ids of the sessions of requests in the order in which they ended; a new session where there is none. Raises:
    StoreError."""
    nodes = _KnownNodes(store)
    await nodes.load([key for one in ended for key in _find_answers(one.turn)])
    names: list[str] = []
    for one in ended:
        known = await nodes.find_session(one.turn)
        session = known or new_id()
        node = ChainNode(key=one.turn.chain.end, session=session, answer=UNANSWERED if one.failed else b"")
        nodes.add(node, None if known else make_session(one.turn, session, one.time))
        names.append(session)
    await nodes.write()
    return names


async def find_session(turn: SessionTurn, store: Store) -> str:
    """The session that a request continues or retries; empty if there is none. Raises: StoreError."""
    nodes = _KnownNodes(store)
    await nodes.load(list(_find_answers(turn)))
    return await nodes.find_session(turn)


def _find_answers(turn: SessionTurn) -> dict[bytes, bytes]:
    """The keys of the nodes that a request may continue, the longest prefix first, and the answer after each."""
    chain, end = turn.chain, turn.chain.end
    answers = {chain.keys[at]: digest for at, digest in reversed(list(chain.answers.items()))}
    return {end: answers.get(end, UNANSWERED)} | answers


class _KnownNodes:
    """What the store knows of some requests, and what they add to it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.nodes: dict[bytes, list[ChainNode]] = {}
        """By key, newest first."""
        self.new_sessions: list[SessionRow] = []
        self.new_nodes: list[ChainNode] = []

    async def load(self, keys: Sequence[bytes]) -> None:
        for found in await self.store.find_nodes(keys):
            self.nodes.setdefault(found.node.key, []).append(found.node)

    async def find_session(self, turn: SessionTurn) -> str:
        for key, answer in _find_answers(turn).items():
            for node in self.nodes.get(key, ()):
                if await self._belongs(node, answer):
                    return node.session
        return ""

    async def _belongs(self, node: ChainNode, answer: bytes) -> bool:
        """Whether the request continues this node. An unclaimed node is claimed, unless the request only repeats it."""
        if node.answer == answer:
            return True
        if node.answer or node.chat or answer == UNANSWERED:
            return False
        await self.write()  # the node may be one of the new ones
        claimed = await self.store.claim_node(node, answer)
        if claimed:
            self._put(replace(node, answer=answer))
        return claimed

    def add(self, node: ChainNode, session: SessionRow | None) -> None:
        """Add the node of a request, and its session if that is new."""
        if session is not None:
            self.new_sessions.append(session)
        self.new_nodes.append(node)
        self._put(node)

    def _put(self, node: ChainNode) -> None:
        """A node that exists gets the new answer and stays in its place."""
        others = self.nodes.get(node.key, [])
        same = [at for at, one in enumerate(others) if _identity(one) == _identity(node)]
        at = same[0] if same else 0
        self.nodes[node.key] = [*others[:at], node, *others[at + len(same) :]][:NEWEST]

    async def write(self) -> None:
        """Write what is new."""
        sessions, nodes = self.new_sessions, self.new_nodes
        self.new_sessions, self.new_nodes = [], []
        if nodes:
            await self.store.add_sessions(sessions, nodes)


def _identity(node: ChainNode) -> tuple[bytes, str, str, str]:
    return node.key, node.session, node.chat, node.message


def make_session_id(now: float, token: str) -> str:
    """A session id; ids sort by time. ``token`` makes it unique."""
    return f"ses_{int(now * 1000):012x}{token[:12]}"


def make_session(turn: SessionTurn, session: str, now: float) -> SessionRow:
    return SessionRow(
        id=session,
        owner=turn.owner,
        created=now,
        used=now,
        turns=0,
        model=turn.model,
        upstream=turn.upstream,
        client_session=turn.client_session,
    )
