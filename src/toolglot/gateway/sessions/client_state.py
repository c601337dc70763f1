"""State kept for one client: responses that it may refer to, and reasoning that it does not send back."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from toolglot.config import owner_of
from toolglot.config.keys import NO_OWNER
from toolglot.core.errors import RequestError
from toolglot.core.json_numbers import encode
from toolglot.gateway.sessions.kept_values import AnswerReference, KeptAnswer, StoredUpstream
from toolglot.gateway.sessions.ttl_store import Lookup, OwnedStore, TtlStore
from toolglot.wires.id_references import ReferenceFields
from toolglot.wires.json_fields import parse_body, text_at
from toolglot.wires.protocol import ClientRequest


class ClientState(Struct, frozen=True):
    """The part of the store that belongs to one client, identified by its key. ``lookup`` is set if values that are not
    in memory may be in the store. ``owner``: of what is recorded; it is empty if the gateway has no client keys."""

    store: TtlStore
    key: str
    lookup: Lookup | None = None
    owner: bytes = NO_OWNER

    @property
    def is_known(self) -> bool:
        """Whether this is one of several clients. A replay has an owner of its own, and no key."""
        return bool(self.owner and self.key)

    def find_answer(self, answer_id: str) -> tuple[bytes, bytes] | None:
        """The request and the items of an earlier answer, by the id of the answer or of an item."""
        own = self._open()
        found = own.find(("answer", answer_id)) if answer_id else None
        if isinstance(found, AnswerReference):
            found = own.find(("answer", found.answer_id))
        return (found.request, found.items) if isinstance(found, KeptAnswer) else None

    def store_answer(self, asked: ClientRequest, body: bytes, references: ReferenceFields | None) -> ClientRequest:
        """The request with a callback that stores its answer, so that the client can refer to it later, or send back
        its items."""
        own = self._open()

        def keep(answer_id: str, items: list[dict[str, object]]) -> None:
            if asked.may_be_referenced:
                encoded = encode(items)
                own.keep(("answer", answer_id), KeptAnswer(body, encoded), len(body) + len(encoded))
                for item in items:
                    own.keep(("answer", text_at(item, "id")), AnswerReference(answer_id), 0)
            if references is not None:
                self.keep_ids(one.id for one in references.find({"input": items}))

        return replace(asked, on_complete=keep)

    def keep_ids(self, ids: Iterable[str]) -> None:
        """The client has received ids of what its upstream stores."""
        own = self._open()
        for given in ids if self.is_known else ():
            own.keep(("id", given), StoredUpstream(), 0)

    def check_ids(self, body: bytes, references: ReferenceFields | None) -> bytes:
        """The body of a request for an upstream that stores what its ids name.

        A body that may have ids is encoded again, so that the upstream reads what was checked: of two fields with the
        same name it could take the other one. Raises: RequestError if an id was not given to this client, whether it
        exists or not; nothing is raised yet if the store may know it.
        """
        if references is None or not references.may_be_in(body):
            return body
        fields, own = parse_body(body), self._open()
        unknown = [
            one for one in references.find(fields) if not (own.find(("id", one.id)) or own.find(("answer", one.id)))
        ]
        if unknown and not (self.lookup is not None and self.lookup.missing):
            problem = f"{unknown[0].id[:100]!r} is not known here (any more). Send the content itself."
            raise RequestError(f"{unknown[0].field} cannot be honoured: {problem}", unknown[0].field)
        return encode(fields)

    def open_reasoning(self, address: str) -> OwnedStore:
        """The reasoning that one upstream sent."""
        return self._open(address)

    def _open(self, *place: str) -> OwnedStore:
        return self.store.open(owner_of(self.key).hex(), *place, lookup=self.lookup)
