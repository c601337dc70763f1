"""What is remembered of one client: answers that it may refer to, and seals that its wire cannot carry."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from toolglot.core.json_numbers import encode
from toolglot.gateway.sessions.ttl_store import Drawer, TtlStore
from toolglot.wires.json_fields import text_at
from toolglot.wires.protocol import ClientRequest, Wire


class ClientState(Struct, frozen=True):
    """The memory of one client, who is known by a key."""

    kept: TtlStore
    key: str

    def expand(self, wire: Wire, body: bytes, limit: int) -> bytes:
        """The request with what it refers to in the place of the reference, as far as that is known; at most so many
        bytes."""
        return body if wire.expand_request is None else wire.expand_request(body, self.find_answer, limit)

    def find_answer(self, answer_id: str) -> tuple[bytes, bytes] | None:
        """The request and the items of an earlier answer, by its id or by that of an item."""
        drawer = self.kept.open(self.key)
        found: tuple[bytes, bytes] | str | None = drawer.find(("answer", answer_id))
        if isinstance(found, str):
            whole: tuple[bytes, bytes] | None = drawer.find(("answer", found))
            return whole
        return found

    def listen(self, asked: ClientRequest, body: bytes) -> ClientRequest:
        """The request, whose answer will be known when the client refers to it."""
        drawer = self.kept.open(self.key)

        def keep(answer_id: str, items: list[dict[str, Any]]) -> None:
            told = encode(items)
            drawer.keep(("answer", answer_id), (body, told), len(body) + len(told))
            for item in items:
                drawer.keep(("answer", text_at(item, "id")), answer_id, 0)

        return replace(asked, on_complete=keep)

    def open_seals(self, address: str) -> Drawer:
        """The seals of one upstream."""
        return self.kept.open(self.key, address)
