"""State kept for one client: responses that it may refer to, and reasoning that it does not send back."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from toolglot.config import owner_of
from toolglot.core.json_numbers import encode
from toolglot.gateway.sessions.kept_values import AnswerReference, KeptAnswer
from toolglot.gateway.sessions.ttl_store import Lookup, OwnedStore, TtlStore
from toolglot.wires.json_fields import text_at
from toolglot.wires.protocol import ClientRequest


class ClientState(Struct, frozen=True):
    """The part of the store that belongs to one client, identified by its key. ``lookup`` is set if values that are not
    in memory may be in the store."""

    store: TtlStore
    key: str
    lookup: Lookup | None = None

    def find_answer(self, answer_id: str) -> tuple[bytes, bytes] | None:
        """The request and the items of an earlier answer, by the id of the answer or of an item."""
        own = self._open()
        found = own.find(("answer", answer_id)) if answer_id else None
        if isinstance(found, AnswerReference):
            found = own.find(("answer", found.answer_id))
        return (found.request, found.items) if isinstance(found, KeptAnswer) else None

    def store_answer(self, asked: ClientRequest, body: bytes) -> ClientRequest:
        """The request with a callback that stores its answer, so that the client can refer to it later."""
        own = self._open()

        def keep(answer_id: str, items: list[dict[str, object]]) -> None:
            encoded = encode(items)
            own.keep(("answer", answer_id), KeptAnswer(body, encoded), len(body) + len(encoded))
            for item in items:
                own.keep(("answer", text_at(item, "id")), AnswerReference(answer_id), 0)

        return replace(asked, on_complete=keep)

    def open_reasoning(self, address: str) -> OwnedStore:
        """The reasoning that one upstream sent."""
        return self._open(address)

    def _open(self, *place: str) -> OwnedStore:
        return self.store.open(owner_of(self.key).hex(), *place, lookup=self.lookup)
