"""Makes the turn of a request: what its conversation is recognised by, and its part of a chat."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from toolglot.clients.session_ids import find_session_id
from toolglot.config import SECRET_LENGTH
from toolglot.core.conversation import Conversation
from toolglot.core.identity import hash_texts
from toolglot.core.redaction import mask, redact_printable
from toolglot.gateway.context import GatewayContext, IncomingRequest
from toolglot.gateway.routing import Route
from toolglot.gateway.sessions.chain import make_chain, split_context
from toolglot.gateway.sessions.turns import ChatTurn, SessionTurn


def recognise(
    request: IncomingRequest, conversation: Conversation, route: Route, context: GatewayContext
) -> SessionTurn:
    """The turn of a request, before anything is changed in its messages. The gateway has a store."""
    owner = request.owner
    client_session = find_session_id(request.headers, conversation.extra)
    system, dialog = split_context(conversation.messages)
    tail = takewhile(lambda message: message.role != "assistant", reversed(dialog))
    secrets = (*route.upstream.secrets, *([request.key] if len(request.key) >= SECRET_LENGTH else ()))
    return SessionTurn(
        owner=owner,
        client_session=_hide(client_session, secrets),
        chain=make_chain(dialog, context.chain_secret, owner.hex(), client_session),
        model=_hide(conversation.model, secrets),
        upstream=route.upstream.name,
        prompt=hash_texts(*(message.text for message in system)),
        only_results=not conversation.tools and all(message.role == "tool" for message in tail),
    )


def _hide(text: str, secrets: Iterable[str]) -> str:
    """A name that the client chose, for the store: clients may put a key anywhere."""
    return redact_printable(mask(text, secrets))


def make_chat_turn(turn: SessionTurn | None, route: Route, client_key: str, conversation: Conversation) -> ChatTurn:
    """The turn of a request to a stateful upstream. ``client_key`` is the key that the upstream gets if it has none."""
    upstream = route.upstream
    account = hash_texts(upstream.base_url, upstream.api_key.reveal() or client_key, route.model.model).hex()
    return ChatTurn(turn, f"{upstream.name}/{account}", conversation)
