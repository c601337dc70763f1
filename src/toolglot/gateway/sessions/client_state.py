"""State kept for one client: responses that it may refer to, and signatures that its wire cannot carry."""

from __future__ import annotations

from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from toolglot.core.json_numbers import encode
from toolglot.gateway.sessions.ttl_store import OwnedStore, TtlStore
from toolglot.wires.json_fields import text_at
from toolglot.wires.protocol import ClientRequest, Wire


class ClientState(Struct, frozen=True):
    """The part of the store that belongs to one client, identified by its key."""

    store: TtlStore
    key: str

    def expand(self, wire: Wire, body: bytes, limit: int) -> bytes:
        """The request with references to earlier responses replaced by their content, as far as it is stored and the
        request stays within ``limit`` bytes."""
        return body if wire.expand_request is None else wire.expand_request(body, self.find_answer, limit)

    def find_answer(self, answer_id: str) -> tuple[bytes, bytes] | None:
        """The request and the items of an earlier answer, by the id of the answer or of an item."""
        own = self.store.open(self.key)
        found = own.find(("answer", answer_id))
        if isinstance(found, str):
            found = own.find(("answer", found))
        return cast("tuple[bytes, bytes] | None", found)

    def store_answer(self, asked: ClientRequest, body: bytes) -> ClientRequest:
        """The request with a callback that stores its answer, so that the client can refer to it later."""
        own = self.store.open(self.key)

        def keep(answer_id: str, items: list[dict[str, object]]) -> None:
            encoded = encode(items)
            own.keep(("answer", answer_id), (body, encoded), len(body) + len(encoded))
            for item in items:
                own.keep(("answer", text_at(item, "id")), answer_id, 0)

        return replace(asked, on_complete=keep)

    def open_signatures(self, address: str) -> OwnedStore:
        """The signatures of one upstream."""
        return self.store.open(self.key, address)
