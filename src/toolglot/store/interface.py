"""The interface of a store, and the rows that it holds.

A store keeps what has to outlive a request, a process or a host. There are two engines, ``sqlite`` (one file) and
``postgres`` (shared by many hosts); both pass the same tests.

Rules for callers:

- Every method may raise ``StoreError``. A request that does not need the store must succeed without it.
- ``owner`` separates the clients of a gateway: a keyed hash of the client key, empty if the gateway has no keys. No
  query returns the rows of another owner. ``owner=None`` asks for the rows of all owners (the operator's command line).
- Secrets are never passed to a store. Client keys are stored as hashes.
- Times are seconds since 1970 and come from the engine's own clock where replicas have to agree on them (leases).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

OK: Final = "ok"
FAILED: Final = "failed"
REFUSED: Final = "refused"
ABANDONED: Final = "abandoned"
OUTCOMES: Final = (OK, FAILED, REFUSED, ABANDONED)
"""How a request ended: answered; failed at the upstream or here; refused by the gateway (its own 4xx, or overload);
abandoned by the client."""

BODY_KINDS: Final = ("request", "upstream_request", "model", "reasoning", "answer")
"""The client's request, what the upstream was sent last, the model's own text and reasoning, what the client got. What
earlier attempts were sent is ``upstream_request.1``, ``upstream_request.2``, ...; ``native_calls`` are those that the
model made; ``trace`` is when the pieces came."""
UNANSWERED: Final = bytes(20)
"""The answer of a node whose request failed. No other answer has this length, which an index of the store relies on."""
ADMIN: Final = "admin"
"""The scope of a client key that may open the console."""

ROLLOUT_CHANGED: Final = "rollout"
KEYS_CHANGED: Final = "keys"
FAILURES_CHANGED: Final = "failures"
TOPICS: Final = (ROLLOUT_CHANGED, KEYS_CHANGED, FAILURES_CHANGED)
"""What ``Store.watch`` reports changes of."""


class TurnCounts(Struct, frozen=True, kw_only=True):
    """What one request adds to the totals of its session."""

    calls: int = 0
    repairs: int = 0
    rejected: int = 0
    retries: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


class RecordRow(Struct, frozen=True, kw_only=True):
    """One request. ``id`` sorts by time and is the cursor of queries; ``data`` is the complete record as JSON."""

    id: str
    request_id: str
    owner: bytes
    session: str
    time: float
    wire: str
    model: str
    upstream: str
    status: int
    outcome: str
    data: bytes
    bodies: Mapping[str, bytes] = {}
    """Redacted bodies by kind, uncompressed; the engine compresses them. ``list_records`` leaves them out."""
    client: str = ""
    """The name of the client's program. It and ``counts`` become part of the session and are not read back."""
    counts: TurnCounts | None = TurnCounts()
    """None for a request that is no turn of its session, such as a replay."""


class RecordQuery(Struct, frozen=True, kw_only=True):
    """Filters of a query of records; empty fields do not filter. ``before`` is the id of a record."""

    limit: int = 50
    before: str = ""
    model: str = ""
    session: str = ""
    outcome: str = ""
    after: str = ""
    """The id of a record; only newer ones are found."""


class SessionRow(Struct, frozen=True, kw_only=True):
    """A conversation recognised across requests. ``id`` sorts by the time of creation and is the cursor of queries;
    ``client_session`` is the id that the client itself sent, if any. ``client`` and ``outcome`` are those of the latest
    turn, the other fields after them are sums over all turns."""

    id: str
    owner: bytes
    created: float
    used: float
    turns: int
    model: str
    upstream: str
    client_session: str = ""
    client: str = ""
    outcome: str = ""
    calls: int = 0
    repairs: int = 0
    rejected: int = 0
    retries: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


class SessionQuery(Struct, frozen=True, kw_only=True):
    """Filters of a query of sessions; empty fields do not filter. ``text`` is looked for in the id, model, upstream,
    client and the client's own id. ``outcome`` is that of the latest turn; ``troubled``: only sessions with failed
    turns, repairs, rejected calls or retries."""

    limit: int = 50
    offset: int = 0
    text: str = ""
    outcome: str = ""
    troubled: bool = False


class SessionPage(Struct, frozen=True, kw_only=True):
    """Some of the sessions that match a query, and how many match."""

    total: int
    rows: list[SessionRow]


class Chat(Struct, frozen=True, kw_only=True):
    """A conversation that a stateful upstream holds. ``account`` names upstream and account; ``head`` is the id of the
    chat's latest message, empty while it is unknown (an answer was interrupted). Leases and turns update ``used``;
    0 means now."""

    id: str
    account: str
    session: str
    owner: bytes
    head: str = ""
    created: float = 0.0
    used: float = 0.0


class ChainNode(Struct, frozen=True, kw_only=True):
    """A position in a conversation: the keyed hash of all its messages up to there, and the session it belongs to.
    Key, session, chat and message identify a node; adding it again sets its ``answer``.

    With a stateful upstream, ``chat`` is the chat that holds the conversation up to this position, ``message`` the id
    of the message that the next one has to follow, ``context`` the hash of the system prompt and tools the chat has.
    ``answer`` is the hash of the answer that follows this position, if the position is the end of a request; empty
    while it is unknown.
    """

    key: bytes
    session: str
    chat: str = ""
    message: str = ""
    context: bytes = b""
    answer: bytes = b""
    size: int = 0
    """Estimated tokens of the conversation up to here."""


class FoundNode(Struct, frozen=True, kw_only=True):
    """A node and its chat; ``chat`` is None for a stateless upstream."""

    node: ChainNode
    chat: Chat | None = None

    @property
    def is_head(self) -> bool:
        """Whether the node is the latest message of its chat."""
        return self.chat is not None and self.chat.head != "" and self.chat.head == self.node.message


class NodeClaim(Struct, frozen=True, kw_only=True):
    """A request continues ``node``, whose answer was unknown until now."""

    node: ChainNode
    answer: bytes


class EndedTurns(Struct, frozen=True, kw_only=True):
    """What requests that have ended add to a store: claims of nodes, new sessions that have no turns yet, nodes of
    these and of other sessions, and records."""

    claims: Sequence[NodeClaim] = ()
    sessions: Sequence[SessionRow] = ()
    nodes: Sequence[ChainNode] = ()
    records: Sequence[RecordRow] = ()


class KeptValue(Struct, frozen=True, kw_only=True):
    """A value that a later request may need: an answer that a client refers to, reasoning that a client drops."""

    owner: bytes
    key: bytes
    value: bytes
    expires: float


class FailureRow(Struct, frozen=True, kw_only=True):
    """A learned failure of native tools (``gateway.capabilities.learned``)."""

    address: str
    model: str
    kind: str
    evidence: str
    learned: float
    expires: float


class KeyRow(Struct, frozen=True, kw_only=True):
    """A client key: the hash, never the key. ``expires`` 0 means never. ``scope`` is empty or ``ADMIN``."""

    name: str
    hash: str
    created: float
    expires: float = 0.0
    scope: str = ""


class Store(Protocol):
    """All methods are coroutines that do not block the event loop."""

    @property
    def is_shared(self) -> bool:
        """Whether other hosts use the same store, so that what must be visible to them has to be written at once."""
        ...

    async def open(self) -> None:
        """Connect and migrate; can be repeated after a failure. Raises: StoreError."""
        ...

    async def close(self) -> None: ...

    async def check(self) -> None:
        """Raise StoreError if the store cannot be read and written now."""
        ...

    # -- records -------------------------------------------------------------------------------------------------------

    async def add_records(self, records: Sequence[RecordRow]) -> None:
        """Add records in one transaction; also updates ``used`` and ``turns`` of their sessions. Records that exist
        are left as they are, so that a call can be repeated."""
        ...

    async def add_turns(self, turns: EndedTurns) -> bool:
        """Add sessions, nodes and records in one transaction, as ``add_sessions`` and ``add_records`` do, if all claims
        succeed. Returns False if one was lost: another process has claimed the node for another answer, or has deleted
        it. Then nothing is added; claims that were not lost stay. A call can be repeated."""
        ...

    async def list_records(self, owner: bytes | None, query: RecordQuery) -> list[RecordRow]:
        """Newest first, without bodies."""
        ...

    async def get_record(self, owner: bytes | None, record_id: str) -> RecordRow | None:
        """A record with its bodies, by its id or its request id."""
        ...

    # -- sessions ------------------------------------------------------------------------------------------------------

    async def add_session(self, session: SessionRow, nodes: Sequence[ChainNode]) -> None: ...

    async def add_sessions(self, sessions: Sequence[SessionRow], nodes: Sequence[ChainNode]) -> None:
        """Add sessions, and nodes of these and of other sessions, as ``add_nodes`` does; all of them or none."""
        ...

    async def list_sessions(self, owner: bytes | None, limit: int, before: str = "") -> list[SessionRow]:
        """Most recently created first; ``before`` is the id of a session."""
        ...

    async def find_sessions(self, owner: bytes | None, query: SessionQuery) -> SessionPage:
        """Most recently used first."""
        ...

    async def get_session(self, owner: bytes | None, session_id: str) -> SessionRow | None: ...

    async def delete_session(self, owner: bytes | None, session_id: str) -> list[Chat] | None:
        """Delete a session with its nodes, chats and records. Returns the chats, which the caller deletes upstream;
        None if there is no such session."""
        ...

    # -- chain nodes and chats -----------------------------------------------------------------------------------------

    async def find_nodes(self, keys: Sequence[bytes], failed: Sequence[bytes] = ()) -> list[FoundNode]:
        """The nodes with one of these keys, in the order of ``keys``; for each key the 16 newest, newest first. Then
        those with a key in ``failed``, in the same way, but only if their request failed."""
        ...

    async def add_nodes(self, nodes: Sequence[ChainNode]) -> None:
        """Add nodes; one that exists gets the new ``answer``. Those of sessions or chats that do not exist (any more)
        are left out."""
        ...

    async def claim_node(self, node: ChainNode, answer: bytes) -> bool:
        """Set ``answer`` of a node if it is still unknown. Returns whether the node now has this answer."""
        ...

    async def add_chat(self, chat: Chat, holder: str, ttl: float) -> int:
        """Add a new chat, leased to ``holder``. Returns the fencing token of the lease.

        Raises: StoreError also if the session does not exist or the chat exists already.
        """
        ...

    async def acquire_lease(self, chat_id: str, holder: str, ttl: float) -> int | None:
        """Lease a chat for ``ttl`` seconds. Returns the fencing token, which grows with every lease of the chat; None
        if the chat is leased, even by the same holder, or does not exist. The name of the holder is for people."""
        ...

    async def renew_lease(self, chat_id: str, token: int, ttl: float) -> bool:
        """Extend a lease to ``ttl`` seconds from now. Returns False if the token is no longer the current one; a lease
        that has expired can be renewed until the chat is leased again."""
        ...

    async def release_lease(self, chat_id: str, token: int) -> None:
        """Release a lease; without effect if the token is no longer the current one."""
        ...

    async def interrupt_chat(self, chat_id: str, token: int) -> bool:
        """The holder of the lease sends a message: the head is unknown from now on, until ``commit_turn``. Returns
        False if the lease has expired or the token is no longer the current one: then nothing may be sent."""
        ...

    async def commit_turn(self, nodes: Sequence[ChainNode], chat_id: str, head: str, token: int) -> bool:
        """Add nodes of a chat and set its head, in one transaction, if the token is the current one: the lease is not
        released and the chat was not leased since. Returns whether that happened."""
        ...

    async def delete_chat(self, chat_id: str) -> None:
        """Delete a chat and its nodes: it is never continued again."""
        ...

    async def expire_chats(self, unused_since: float, limit: int = 100) -> list[Chat]:
        """Delete chats, with their nodes, that were not used since then and are not leased. Returns them, the longest
        unused first, to be deleted upstream."""
        ...

    # -- kept values ---------------------------------------------------------------------------------------------------

    async def keep(self, values: Sequence[KeptValue]) -> None: ...

    async def find_kept(self, owner: bytes, keys: Sequence[bytes]) -> dict[bytes, bytes]: ...

    # -- shared settings -----------------------------------------------------------------------------------------------

    async def save_failure(self, failure: FailureRow) -> None: ...

    async def forget_failure(self, address: str, model: str) -> None: ...

    async def list_failures(self) -> list[FailureRow]: ...

    async def save_rollout(self, rollout: bytes) -> int:
        """Save the rollout settings as JSON. Returns their version, which grows with each change."""
        ...

    async def load_rollout(self) -> tuple[int, bytes] | None: ...

    async def save_key(self, key: KeyRow) -> None: ...

    async def delete_key(self, name: str) -> bool: ...

    async def list_keys(self) -> list[KeyRow]: ...

    async def watch(self, changed: Callable[[str], None]) -> None:
        """Call ``changed(topic)`` on the event loop whenever another process changes one of ``TOPICS``, within a
        second, until the store is closed. All topics are reported at the start and after a failure of the store, so
        that no change is missed; changes of this process may be reported, too."""
        ...

    # -- retention -----------------------------------------------------------------------------------------------------

    async def prune(self, *, records_before: float, sessions_before: float, max_bytes: int) -> int:
        """Delete expired values, records and sessions that are older, then the oldest records until the store is
        smaller than ``max_bytes``. A session that has chats is kept: ``expire_chats`` comes first. Returns how many
        rows were deleted."""
        ...
