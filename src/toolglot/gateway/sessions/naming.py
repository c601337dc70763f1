"""Finds the session of a request, whatever its upstream is, so that records can be grouped by conversation.

Strategy. Each request adds a node: the key of all its messages. The next request of the conversation holds that prefix,
then the answer, then something new. So the session is that of the longest known prefix that ends right before an
answer. The answer decides between conversations that begin alike: the first request that continues a node claims it
for its answer, and a request with another answer does not match it.

A request that repeats an earlier one exactly starts a session of its own, unless the earlier one failed: then it is a
retry. What a client edits or compacts so that no prefix remains is a new session.
"""

from __future__ import annotations

from collections.abc import Callable

from toolglot.gateway.sessions.chain import HASH_BYTES
from toolglot.gateway.sessions.turns import SessionTurn
from toolglot.store.interface import ChainNode, FoundNode, SessionRow, Store

UNANSWERED = bytes(HASH_BYTES)
"""The answer of a node whose request failed."""


async def name_session(turn: SessionTurn, store: Store, now: float, new_id: Callable[[], str], *, failed: bool) -> str:
    """The id of the session of a request that has ended; a new session if there is none. ``failed``: the request got
    no answer. Raises: StoreError."""
    known = await find_session(turn, store)
    session = known or new_id()
    node = ChainNode(key=turn.chain.end, session=session, answer=UNANSWERED if failed else b"")
    if known:
        await store.add_nodes([node])
    else:
        await store.add_session(make_session(turn, session, now), [node])
    return session


async def find_session(turn: SessionTurn, store: Store) -> str:
    """The session that a request continues or retries; empty if there is none. Raises: StoreError."""
    chain = turn.chain
    answers = {chain.keys[at]: digest for at, digest in chain.answers.items()}
    keys = [chain.end, *reversed(list(answers))]
    for found in await store.find_nodes(keys):
        if await _belongs(found, answers.get(found.node.key, UNANSWERED), store):
            return found.node.session
    return ""


async def _belongs(found: FoundNode, answer: bytes, store: Store) -> bool:
    """Whether the request continues this node. An unclaimed node is claimed, unless the request only repeats it."""
    node = found.node
    if node.answer == answer:
        return True
    return not node.answer and not node.chat and answer != UNANSWERED and await store.claim_node(node, answer)


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
