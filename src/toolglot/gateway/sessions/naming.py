"""Finds the session of a request, whatever its upstream is, so that records can be grouped by conversation.

Strategy. Each request adds a node: the key of all its messages. The next request of the conversation holds that prefix,
then the answer, then something new. So the session is that of the longest known prefix that ends right before an
answer. The answer decides between conversations that begin alike: the first request that continues a node claims it
for its answer, and a request with another answer does not match it.

A request that repeats an earlier one exactly starts a session of its own, unless the earlier one failed: then it is a
retry. What a client edits or compacts so that no prefix remains is a new session.

Requests that have ended are named many at a time: one query finds what the store knows of all of them, and one write
makes the claims and adds what is new. If another process was faster with a claim, nothing is added, and the requests
are named again. The query asks for the end of each request and for the position before its last answer, which is where
an agent was; for earlier positions only if there is nothing. Of the end it asks only for requests that failed, the only
ones that are retried: many conversations may begin alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from toolglot.core import offload
from toolglot.gateway.sessions.turns import SessionTurn
from toolglot.store.interface import UNANSWERED, ChainNode, EndedTurns, NodeClaim, RecordRow, SessionRow, Store

NEWEST: Final = 16
"""How many nodes with the same key are compared."""
FIRST_KEYS: Final = 2
"""How many keys of each request are looked up first."""
INLINE: Final = 64
"""Requests that are named on the event loop; more, in a thread."""
_Identity: TypeAlias = tuple[bytes, str, str, str]
_identity: Final[Callable[[ChainNode], _Identity]] = attrgetter("key", "session", "chat", "message")


class EndedTurn(Struct, frozen=True, kw_only=True):
    """A request that has ended, and when. ``failed``: it got no answer."""

    turn: SessionTurn
    time: float
    failed: bool


class NamedTurns(Struct, frozen=True, kw_only=True):
    """The ids of the sessions of requests, in their order, and what is to be written for that."""

    names: list[str]
    claims: list[NodeClaim]
    sessions: list[SessionRow]
    nodes: list[ChainNode]

    def add_records(self, records: Sequence[RecordRow]) -> EndedTurns:
        return EndedTurns(claims=self.claims, sessions=self.sessions, nodes=self.nodes, records=records)


async def find_names(ended: Sequence[EndedTurn], store: Store, new_id: Callable[[], str]) -> NamedTurns:
    """Find the sessions of requests in the order in which they ended; a new session where there is none. Raises:
    StoreError."""
    answers = [_find_answers(one.turn) for one in ended]
    later = [each for each in answers if len(each) > 1]
    first = {key for each in later for key in islice(each, 1, FIRST_KEYS)}
    continued = {key for each in later for key in islice(each, 1, None)}
    ends = {one.turn.chain.end for one in ended}
    known = _KnownNodes(store)
    await known.load(first | (ends & continued), failed=ends - continued)
    await known.load(key for each in later if known.has_none(islice(each, FIRST_KEYS)) for key in each)
    while True:
        naming = _Naming(known.nodes)
        named = await offload.run(len(ended) > INLINE, naming.name, ended, answers, new_id)
        if named is not None:
            return named
        await known.load(naming.missing)


async def find_session(turn: SessionTurn, store: Store) -> str:
    """The session that a request continues or retries; empty if there is none. Raises: StoreError."""
    answers = _find_answers(turn)
    while True:
        known = _KnownNodes(store)
        await known.load(answers)
        naming = _Naming(known.nodes)
        session = naming.find_session(answers)
        if all([await store.claim_node(claim.node, claim.answer) for claim in naming.claims]):
            return session


def _find_answers(turn: SessionTurn) -> dict[bytes, bytes]:
    """The keys of the nodes that a request may continue, the longest prefix first, and the answer after each."""
    chain = turn.chain
    earlier = {chain.keys[at]: digest for at, digest in reversed(list(chain.answers.items()))} if chain.answers else {}
    return {chain.end: UNANSWERED} | earlier


class _KnownNodes:
    """What the store knows: nodes by key, newest first; an empty list if there is none that matters."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.nodes: dict[bytes, list[ChainNode]] = {}

    async def load(self, keys: Iterable[bytes], failed: Collection[bytes] = ()) -> None:
        """Load the nodes of these keys, and of those in ``failed`` the ones whose request failed."""
        new = [key for key in dict.fromkeys(keys) if key not in self.nodes]
        found = await self.store.find_nodes(new, list(failed)) if new or failed else ()
        self.nodes |= {key: [] for key in (*new, *failed)}
        for one in found:
            self.nodes[one.node.key].append(one.node)

    def has_none(self, keys: Iterable[bytes]) -> bool:
        return not any(map(self.nodes.get, keys))


class _Naming:
    """Names requests one after the other, as if each had been written before the next one. ``known`` is not changed."""

    def __init__(self, known: Mapping[bytes, list[ChainNode]]) -> None:
        self.known = known
        self.changed: dict[bytes, list[ChainNode]] = {}
        self.missing: list[bytes] = []
        """Keys that the store has to be asked for."""
        self.claims: list[NodeClaim] = []
        self.new_sessions: list[SessionRow] = []
        self.new_nodes: dict[_Identity, ChainNode] = {}

    def name(
        self, ended: Sequence[EndedTurn], answers: Sequence[Mapping[bytes, bytes]], new_id: Callable[[], str]
    ) -> NamedTurns | None:
        """Name requests; None if keys are missing."""
        names: list[str] = []
        for one, each in zip(ended, answers, strict=True):
            known = self.find_session(each)
            if self.missing:
                return None
            session = known or new_id()
            node = ChainNode(key=one.turn.chain.end, session=session, answer=UNANSWERED if one.failed else b"")
            if not known:
                self.new_sessions.append(make_session(one.turn, session, one.time))
            self.new_nodes[_identity(node)] = node
            self._put(node)
            names.append(session)
        nodes = list(self.new_nodes.values())
        return NamedTurns(names=names, claims=self.claims, sessions=self.new_sessions, nodes=nodes)

    def find_session(self, answers: Mapping[bytes, bytes]) -> str:
        for key, answer in answers.items():
            nodes = self.changed.get(key) or self.known.get(key)
            if nodes is None:
                self.missing = [key for key in answers if key not in self.known]
                return ""
            for node in nodes:
                if self._belongs(node, answer):
                    return node.session
        return ""

    def _belongs(self, node: ChainNode, answer: bytes) -> bool:
        """Whether the request continues this node. An unclaimed node is claimed, unless the request only repeats it."""
        if node.answer == answer:
            return True
        if node.answer or node.chat or answer == UNANSWERED:
            return False
        claimed, identity = replace(node, answer=answer), _identity(node)
        if identity in self.new_nodes:  # no other process knows it yet
            self.new_nodes[identity] = claimed
        else:
            self.claims.append(NodeClaim(node=node, answer=answer))
        self._put(claimed)
        return True

    def _put(self, node: ChainNode) -> None:
        """A node that exists gets the new answer and stays in its place."""
        others = self.changed.get(node.key) or self.known.get(node.key)
        if not others:
            self.changed[node.key] = [node]
            return
        same = [at for at, one in enumerate(others) if _identity(one) == _identity(node)]
        at = same[0] if same else 0
        self.changed[node.key] = [*others[:at], node, *others[at + len(same) :]][:NEWEST]


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
