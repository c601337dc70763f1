"""Makes the turn of a request: what its conversation is recognised by, and its part of a chat."""

from __future__ import annotations

from toolglot.clients.session_ids import find_session_id
from toolglot.core.conversation import Conversation
from toolglot.gateway.context import GatewayContext, IncomingRequest
from toolglot.gateway.routing import Route
from toolglot.gateway.sessions.chain import hash_texts, make_chain, split_context
from toolglot.gateway.sessions.turns import ChatTurn, SessionTurn


def recognise(
    request: IncomingRequest, conversation: Conversation, route: Route, context: GatewayContext
) -> SessionTurn | None:
    """The turn of a request, before anything is changed in its messages; None if the gateway has no store."""
    if not context.chain_secret:
        return None
    owner = request.owner
    client_session = find_session_id(request.headers, conversation.extra)
    _, dialog = split_context(conversation.messages)
    return SessionTurn(
        owner=owner,
        client_session=client_session,
        chain=make_chain(dialog, context.chain_secret, owner.hex(), client_session),
        model=conversation.model,
        upstream=route.upstream.name,
    )


def make_chat_turn(turn: SessionTurn | None, route: Route, client_key: str, conversation: Conversation) -> ChatTurn:
    """The turn of a request to a stateful upstream. ``client_key`` is the key that the upstream gets if it has none."""
    upstream = route.upstream
    account = hash_texts(upstream.base_url, upstream.api_key.reveal() or client_key, route.model.model).hex()
    return ChatTurn(turn, f"{upstream.name}/{account}", conversation)
