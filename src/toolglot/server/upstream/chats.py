"""Sends requests to stateful upstreams: creates and continues chats, retries in a new one, stops and deletes them.

``gateway.sessions.chats`` decides which chat is continued; the ``ChatProtocol`` of the wire knows the requests and what
errors mean. A request is sent again only while the client has received nothing of the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from secrets import token_urlsafe
from time import time
from typing import TYPE_CHECKING, Any, Final

from toolglot.config import Settings, Upstream
from toolglot.config.upstream_errors import KEY_STATUSES
from toolglot.core.errors import StoreError, ToolglotError, UpstreamError, UpstreamResponseError
from toolglot.gateway.context import Source
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.sessions.chats import LEASE_SECONDS, ChatIndex, ChatPlace, ChatPolicy
from toolglot.gateway.sessions.turns import ChatTurn, estimate_tokens
from toolglot.server.http_request import Request, Response
from toolglot.server.responder import Responder
from toolglot.server.upstream.connection import SMALL_BODY
from toolglot.server.upstream.discovery import default_headers
from toolglot.server.upstream.pool import ConnectionPool, PendingRequest
from toolglot.store.interface import Chat
from toolglot.wires import all_wires
from toolglot.wires.protocol import ChatCall, ChatFault, ChatPosition, ChatProtocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LOG = logging.getLogger("toolglot.sessions")
BLOCKED_SECONDS: Final = 900.0
BUSY_SECONDS: Final = 2.0
RETRIES: Final[Mapping[ChatFault, int]] = {ChatFault.GONE: 1, ChatFault.BUSY: 2, ChatFault.TRANSIENT: 1}
"""How often a request is sent again after each kind of error."""
BACKGROUND_SECONDS: Final = 20.0
"""Time limit of requests that no client waits for."""
CLEANUP_SECONDS: Final = 600.0
OFF: Final = "off"
Headers = Callable[[Upstream, str], dict[str, str]]


class ChatClient:
    """The chats of all stateful upstreams. ``make_headers(upstream, client_key)`` makes the headers of a request."""

    def __init__(
        self, settings: Settings, pool: ConnectionPool, index: ChatIndex, source: Source, make_headers: Headers
    ):
        self.settings = settings
        self.pool = pool
        self.index = index
        self.source = source
        self.make_headers = make_headers
        self.blocked_until: dict[str, float] = {}
        self.tasks: set[asyncio.Task[object]] = set()
        self.cleanup: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to clean up, if there are stateful upstreams and a store."""
        stateful = [one for one in self.settings.upstreams if all_wires()[one.wire].chat is not None]
        if stateful and self.index.store is not None:
            self.cleanup = asyncio.create_task(self.clean_up(max(one.chat_ttl_seconds for one in stateful)))

    async def close(self) -> None:
        """Wait for requests in the background."""
        if self.cleanup is not None:
            self.cleanup.cancel()
            await asyncio.wait([self.cleanup])
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=BACKGROUND_SECONDS)

    async def clean_up(self, ttl_seconds: float) -> None:
        """Forget chats that are not continued any more, and delete them upstream if the settings say so."""
        while True:
            with suppress(StoreError):
                expired = await self.index.expire(ttl_seconds)
                wanted = {one.name for one in self.settings.upstreams if one.delete_chats}
                await self.delete_chats([one for one in expired if one.account.partition("/")[0] in wanted])
            await asyncio.sleep(CLEANUP_SECONDS)

    async def answer(
        self, request: Request, exchange: Exchange, responder: Responder, on_send: Callable[[bytes], None]
    ) -> Response | None:
        """Send the turn of an exchange, and the response to the client. ``on_send`` is called with each request body.

        Raises: UpstreamError.
        """
        turn, upstream, chat = exchange.chat_turn, exchange.route.upstream, exchange.upstream_wire.chat
        assert turn is not None and chat is not None
        self.check_circuit(upstream)
        attempts: Counter[ChatFault] = Counter()
        continues = upstream.chaining != OFF
        while True:
            policy = ChatPolicy(
                continues=continues, branch_mode=upstream.branch_mode, ttl_seconds=upstream.chat_ttl_seconds
            )
            place = await self.index.begin(turn, policy)
            try:
                return await self.send(request, exchange, responder, place, on_send)
            except UpstreamError as error:
                fault = chat.classify(error)
                if fault is ChatFault.BLOCKED:
                    self.open_circuit(upstream)
                attempts[fault] += 1
                if turn.may_retry:
                    turn.restart()
                    responder.restart()
                if not turn.may_retry or attempts[fault] > RETRIES.get(fault, 0):
                    turn.may_retry = False
                    raise
                exchange.recorder.end_attempt(error.code)
            if fault is ChatFault.GONE:
                await self.index.forget(place)
            if fault is ChatFault.BUSY:
                continues = attempts[fault] < RETRIES[fault]
                await asyncio.sleep(BUSY_SECONDS)

    async def send(
        self,
        request: Request,
        exchange: Exchange,
        responder: Responder,
        place: ChatPlace,
        on_send: Callable[[bytes], None],
    ) -> Response | None:
        """Send the turn to a chat, which is created if necessary."""
        turn, upstream, chat = exchange.chat_turn, exchange.route.upstream, exchange.upstream_wire.chat
        assert turn is not None and chat is not None
        recorder = exchange.recorder
        answer = turn.answer

        async def conclude() -> None:
            """Before the client gets the end: from now on the next turn can continue here."""
            whole = answer.is_finished and not answer.is_intercepted and not recorder.rejected and not recorder.error
            if whole:
                await self.index.commit(place, turn)
            await self.index.end(place)

        complete = False
        async with self.leased(place):
            try:
                if not place.chat_id:
                    try:
                        created = await self.create_chat(chat, upstream, request.key, turn.conversation.model)
                    except UpstreamResponseError as error:
                        raise responder.redact_error(error) from None
                    await self.index.register(place, turn, created)
                recorder.session = place.session
                body = self.encode(exchange, chat, place)
                on_send(body)
                exchange.before_end.append(conclude)
                call = ChatCall(method="POST", path=chat.locate(place.chat_id), body=body)
                async with self.open(chat, call, upstream, request.key, place.chat_id) as received:
                    response = await responder.answer(received)
                complete = answer.is_finished and not answer.is_intercepted
                return response
            finally:
                if conclude in exchange.before_end:
                    exchange.before_end.remove(conclude)
                if not complete and answer.response_id:
                    self.spawn(self.call(chat, chat.stop(place.chat_id, answer.response_id), upstream, request.key))
                self.spawn(self.index.end(place))

    def encode(self, exchange: Exchange, chat: ChatProtocol, place: ChatPlace) -> bytes:
        """The body of a completion: the whole conversation for a new chat, else what follows its last answer."""
        turn: ChatTurn | None = exchange.chat_turn
        assert turn is not None
        if place.is_new:
            body = exchange.upstream_wire.encode_request(turn.conversation, stream=True, wants_usage=True)
            place.size = turn.size
        else:
            tail = turn.make_tail(place.with_context)
            body = chat.encode_tail(tail, stream=True, wants_usage=True)
            place.size += estimate_tokens(tail.messages)
        position = ChatPosition(
            chat_id=place.chat_id, parent=place.parent, fresh_id=self.source.uuid, now=self.source.now()
        )
        return chat.place(body, position)

    # -- requests ------------------------------------------------------------------------------------------------------

    def open(
        self, chat: ChatProtocol, call: ChatCall, upstream: Upstream, client_key: str, chat_id: str = ""
    ) -> PendingRequest:
        headers = self.make_headers(upstream, client_key)
        headers |= chat.headers(chat_id, self.source.uuid, self.source.now())
        url = upstream.endpoint(call.path, "")
        return self.pool.send(call.method, url, upstream, {**headers, **upstream.own_headers}, call.body or None)

    async def create_chat(self, chat: ChatProtocol, upstream: Upstream, client_key: str, model: str) -> str:
        call = chat.create(model, self.source.now())
        return chat.read_chat_id(await self.fetch(chat, call, upstream, client_key))

    async def fetch_models(self, upstream: Upstream, client_key: str) -> list[dict[str, Any]]:
        """The models of a stateful upstream. Raises: UpstreamError if it lists none and refuses a list."""
        self.check_circuit(upstream)
        chat = all_wires()[upstream.wire].chat
        assert chat is not None
        refusal: UpstreamError | None = None
        for call in chat.list_models:
            try:
                models = chat.read_models(await self.fetch(chat, call, upstream, client_key))
            except UpstreamResponseError as error:
                refusal = refusal or error
                continue
            if models:
                return models
        if refusal is not None:
            raise refusal
        return []

    async def check_key(self, upstream: Upstream) -> None:
        """Raise UpstreamResponseError if a stateful upstream refuses the gateway's own key."""
        chat = all_wires()[upstream.wire].chat
        assert chat is not None
        try:
            await self.fetch(chat, chat.check_key, upstream, "")
        except UpstreamResponseError as error:
            if error.status in KEY_STATUSES:
                raise

    async def ask_once(self, exchange: Exchange) -> bytes:
        """The answer of an exchange in a chat of its own, which is deleted. Raises: UpstreamError."""
        turn, upstream, chat = exchange.chat_turn, exchange.route.upstream, exchange.upstream_wire.chat
        assert turn is not None and chat is not None
        place = ChatPlace(chat_id=await self.create_chat(chat, upstream, "", turn.conversation.model))
        try:
            body = self.encode(exchange, chat, place)
            call = ChatCall(method="POST", path=chat.locate(place.chat_id), body=body)
            return await self.fetch(chat, call, upstream, "", place.chat_id)
        finally:
            await self.call(chat, chat.delete(place.chat_id), upstream)

    async def fetch(
        self, chat: ChatProtocol, call: ChatCall, upstream: Upstream, client_key: str, chat_id: str = ""
    ) -> bytes:
        """The body of a response. Raises: UpstreamError, also for one in a response with status 200."""
        async with self.open(chat, call, upstream, client_key, chat_id) as received:
            body = await received.read(SMALL_BODY)
            failed = received.status >= 400
        error = all_wires()[upstream.wire].decode_error(received.status, body) if failed else chat.read_error(body)
        if error is not None:
            raise error
        return body

    async def call(self, chat: ChatProtocol, call: ChatCall, upstream: Upstream, client_key: str = "") -> bool:
        """Send a request for which no client waits. Returns whether the upstream accepted it."""
        try:
            async with asyncio.timeout(BACKGROUND_SECONDS), self.open(chat, call, upstream, client_key) as received:
                return received.status < 400 and chat.read_error(await received.read(SMALL_BODY)) is None
        except (ToolglotError, TimeoutError) as error:
            LOG.info("%s %s failed: %s", call.method, call.path, getattr(error, "code", "timeout"))
            return False

    async def delete_chats(self, chats: Iterable[Chat]) -> None:
        """Delete chats of upstreams that are still configured."""
        known = {upstream.name: upstream for upstream in self.settings.upstreams}
        for one in chats:
            upstream = known.get(one.account.partition("/")[0])
            chat = all_wires()[upstream.wire].chat if upstream else None
            if upstream is None or chat is None:
                continue
            if not await self.call(chat, chat.delete(one.id), upstream):
                LOG.warning("chat %s of upstream %r could not be deleted in the account", one.id, upstream.name)

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Run in the background, even if the request is cancelled."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    @asynccontextmanager
    async def leased(self, place: ChatPlace) -> AsyncIterator[None]:
        """Renew the lease of a chat as long as the request runs."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(LEASE_SECONDS / 3)
                await self.index.renew(place)

        task = asyncio.get_running_loop().create_task(renew())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    # -- circuit breaker -----------------------------------------------------------------------------------------------

    def check_circuit(self, upstream: Upstream) -> None:
        """Raise UpstreamResponseError if the upstream is not asked for a while."""
        left = self.blocked_until.get(upstream.name, 0.0) - self.source.now()
        if left > 0:
            error = UpstreamResponseError(
                f"Upstream {upstream.name!r} at {upstream.address} suspects automated use and is not asked again for"
                f" {left / 60:.0f} minutes.",
                503,
                "upstream_blocked",
            )
            error.headers["retry-after"] = str(int(left) + 1)
            raise error

    def open_circuit(self, upstream: Upstream) -> None:
        LOG.error("upstream %r suspects automated use; it is not asked for %.0f s", upstream.name, BLOCKED_SECONDS)
        self.blocked_until[upstream.name] = self.source.now() + BLOCKED_SECONDS


def open_chats(settings: Settings, pool: ConnectionPool) -> ChatClient:
    """The chats of upstreams for checks: without a store, and with the gateway's own key."""
    source = Source(time, token_urlsafe)
    index = ChatIndex(None, source.now, source.token)
    return ChatClient(settings, pool, index, source, lambda upstream, _: default_headers(upstream))
