"""Decides which chat of a stateful upstream a turn continues, and remembers where each chat is.

Strategy. The upstream holds each conversation as a chat, a tree of messages; a request adds one message to it. The
client sends the whole history. If the history up to its last answer is known as a position in a chat, only what follows
is sent, behind that position. In every other case (edited, pruned, compacted or imported history, another model, a
chat in use, a store that fails) a new chat is started with the whole history. That is always right; it only costs more
tokens.

    place = await chats.begin(turn)              a position in a known chat, leased to this request; or a new chat
    await chats.register(place, turn, chat_id)   a new chat has been created
    await chats.commit(place, turn)              the answer is complete: the next turn can continue here
    await chats.end(place)                       in any case: release the lease

A chat is leased to one request at a time. Before a message is sent its head becomes unknown, and ``commit`` sets it
again, before the client gets the end of the answer. So a request that dies in between leaves a chat that is
never continued. Fencing tokens keep a request whose lease has expired from committing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from toolglot.core.errors import StoreError
from toolglot.gateway.sessions.naming import find_session, make_session, make_session_id
from toolglot.gateway.sessions.turns import ChatTurn, estimate_tokens
from toolglot.store.interface import ChainNode, Chat, FoundNode, Store

LOG = logging.getLogger("toolglot.sessions")
LEASE_SECONDS: Final = 30.0
GROWTH: Final = 3
"""A chat that has grown to so many times of what its conversation needs is replaced by a new one."""
SMALL_CHAT: Final = 20_000
"""A chat of fewer tokens is never replaced for its size."""
PAUSE_SECONDS: Final = 10.0
"""Seconds without the store after a failure."""
TREE: Final = "tree"


class ChatPlace(Struct, eq=False):
    """Where a turn is sent. ``chat_id`` is empty for a chat that is still to be created; ``parent`` is the message that
    the next one follows. ``context`` is the hash of the system prompt and tools that it has after this turn;
    ``with_context``: these are sent. ``token`` is the fencing token of the
    lease; None if nothing is remembered of this turn. ``size`` estimates the tokens that the chat holds."""

    chat_id: str = ""
    parent: str = ""
    context: bytes = b""
    with_context: bool = True
    session: str = ""
    token: int | None = None
    size: int = 0
    is_remembered: bool = False

    @property
    def is_new(self) -> bool:
        return not self.parent


class ChatPolicy(Struct, frozen=True, kw_only=True):
    """Which chats may be continued: any (``continues``), used within ``ttl_seconds``, and from other messages than the
    latest one (``branch_mode``)."""

    continues: bool
    branch_mode: str
    ttl_seconds: float


class ChatIndex:
    """The chats of all stateful upstreams. ``holder`` names this process in leases."""

    def __init__(self, store: Store | None, now: Callable[[], float], token: Callable[[], str]) -> None:
        self.store = store
        self.now = now
        self.token = token
        self.holder = token()
        self.unused_until = 0.0
        """The store has failed and is not asked before this time: a request must not wait for every failure."""

    async def begin(self, turn: ChatTurn, policy: ChatPolicy) -> ChatPlace:
        """Choose the chat for a turn."""
        place = ChatPlace(size=turn.size, context=turn.context)
        if self.store is None or turn.session is None or self.now() < self.unused_until:
            return place
        place.is_remembered = True
        try:
            if policy.continues and turn.previous_key is not None:
                for found in await self.store.find_nodes([turn.previous_key]):
                    if self._fits(found, turn, policy) and (known := await self._lease(found, turn, policy)):
                        return known
            place.session = await find_session(turn.session, self.store)
        except StoreError as error:
            self._fail("a new chat is started", error)
            place.is_remembered = False
        return place

    async def _lease(self, found: FoundNode, turn: ChatTurn, policy: ChatPolicy) -> ChatPlace | None:
        """The place behind a node, leased; None if the chat is in use or has changed meanwhile."""
        store, chat_id = self.store, found.node.chat
        assert store is not None
        token = await store.acquire_lease(chat_id, self.holder, LEASE_SECONDS)
        if token is None:
            return None
        nodes = await store.find_nodes([found.node.key])
        current = next((one for one in nodes if one.node.chat == chat_id and one.node == found.node), None)
        fits = current is not None and self._fits(current, turn, policy)
        if not fits or not await store.interrupt_chat(chat_id, token):
            await store.release_lease(chat_id, token)
            return None
        node, kept = found.node, turn.keeps(found.node.context)
        return ChatPlace(
            chat_id=chat_id,
            parent=node.message,
            context=node.context if kept else turn.context,
            # a system message at the start of the tail would replace the prompt, so both are sent
            with_context=not kept or turn.tail[0].role == "system",
            session=node.session,
            token=token,
            size=node.size,
            is_remembered=True,
        )

    def _fits(self, found: FoundNode, turn: ChatTurn, policy: ChatPolicy) -> bool:
        """Whether a turn may continue at this node."""
        node, chat = found.node, found.chat
        if chat is None or not node.message or chat.account != turn.account:
            return False
        withdrawn = not turn.keeps(node.context) and not turn.has_context  # an empty prompt replaces nothing
        if withdrawn or not any(message.text.strip() for message in turn.tail):
            return False
        if chat.used < self.now() - policy.ttl_seconds or node.size > max(SMALL_CHAT, GROWTH * turn.size):
            return False
        return found.is_head or policy.branch_mode == TREE

    async def register(self, place: ChatPlace, turn: ChatTurn, chat_id: str) -> None:
        """A new chat was created for the turn: remember and lease it."""
        place.chat_id = chat_id
        now, session = self.now(), turn.session
        if self.store is None or session is None or not place.is_remembered:
            return
        try:
            if not place.session:
                place.session = make_session_id(now, self.token())
                await self.store.add_session(make_session(session, place.session, now), ())
            chat = Chat(
                id=chat_id, account=turn.account, session=place.session, owner=session.owner, created=now, used=now
            )
            place.token = await self.store.add_chat(chat, self.holder, LEASE_SECONDS)
        except StoreError as error:
            self._fail("a new chat is not remembered", error)

    async def renew(self, place: ChatPlace) -> bool:
        """Extend the lease. Returns False if it was lost."""
        if self.store is None or place.token is None:
            return False
        try:
            return await self.store.renew_lease(place.chat_id, place.token, LEASE_SECONDS)
        except StoreError:
            return True  # try again later; until then the lease may still be valid

    async def commit(self, place: ChatPlace, turn: ChatTurn) -> bool:
        """The answer is complete: remember it as a position that the next turn can continue. Returns False if it is
        not remembered; then the next turn starts a new chat."""
        answer, session = turn.answer, turn.session
        if self.store is None or session is None or place.token is None or not answer.response_id:
            return False
        key, digest = session.chain.extend(answer.message)
        size = place.size + estimate_tokens([answer.message])
        nodes = [
            ChainNode(
                key=key,
                session=place.session,
                chat=place.chat_id,
                message=answer.response_id,
                context=place.context,
                size=size,
            ),
            ChainNode(key=session.chain.end, session=place.session, answer=digest),
        ]
        try:
            return await self.store.commit_turn(nodes, place.chat_id, answer.response_id, place.token)
        except StoreError as error:
            self._fail("a turn is not remembered", error)
            return False

    def _fail(self, consequence: str, error: StoreError) -> None:
        """Note that the store failed; requests do without it for a while."""
        self.unused_until = self.now() + PAUSE_SECONDS
        LOG.warning("the store failed, %s; it is not asked for %.0f s: %s", consequence, PAUSE_SECONDS, error.message)

    async def end(self, place: ChatPlace) -> None:
        """Release the lease."""
        if self.store is not None and place.token is not None:
            token, place.token = place.token, None
            try:
                await self.store.release_lease(place.chat_id, token)
            except StoreError:
                pass  # it expires

    async def expire(self, ttl_seconds: float) -> list[Chat]:
        """Forget the chats that were not used for so long. Returns them, to be deleted upstream. Raises: StoreError."""
        return [] if self.store is None else await self.store.expire_chats(self.now() - ttl_seconds)

    async def forget(self, place: ChatPlace) -> None:
        """The upstream does not know the chat any more: never continue it."""
        place.token = None
        if self.store is not None and place.chat_id:
            try:
                await self.store.delete_chat(place.chat_id)
            except StoreError as error:
                self._fail("a lost chat is not forgotten", error)
