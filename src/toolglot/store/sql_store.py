"""A store on an SQL database: everything but the connection."""

from __future__ import annotations

import asyncio
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, ParamSpec, TypeVar

from msgspec.structs import replace

from toolglot.core import offload
from toolglot.core.errors import StoreError
from toolglot.store import operations, record_operations
from toolglot.store.interface import (
    ChainNode,
    Chat,
    EndedTurns,
    FailureRow,
    FoundNode,
    KeptValue,
    KeyRow,
    RecordQuery,
    RecordRow,
    SessionPage,
    SessionQuery,
    SessionRow,
)
from toolglot.store.record_operations import PackedRecord
from toolglot.store.sql import Engine, Steps

LARGE_BODIES: Final = 1 << 14
"""Bytes of bodies from which on they are compressed in a thread."""

SPARE: Final = 0.95
"""The part of its size limit to which a store is pruned, so that it is not pruned again at once."""
PRUNE_PAUSE: Final = 0.02
"""Seconds between two steps of pruning, so that requests come first."""
Params = ParamSpec("Params")
Result = TypeVar("Result")


class SqlStore(ABC):
    """Runs the operations of ``store.operations``. ``Store`` documents the methods."""

    engine: ClassVar[Engine]
    is_shared: ClassVar[bool]

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    @abstractmethod
    async def _read(
        self, operation: Callable[Params, Steps[Result]], *args: Params.args, **named: Params.kwargs
    ) -> Result:
        """Run an operation that only reads."""

    @abstractmethod
    async def _write(
        self, operation: Callable[Params, Steps[Result]], *args: Params.args, **named: Params.kwargs
    ) -> Result:
        """Run an operation in one transaction; all of it happens, or nothing."""

    async def check(self) -> None:
        await self._write(operations.check)

    async def add_records(self, records: Sequence[RecordRow]) -> None:
        await self._write(record_operations.add_records, self.engine, await self._pack(records))

    async def add_turns(self, turns: EndedTurns) -> bool:
        packed = await self._pack(turns.records)
        return await self._write(operations.add_turns, self.engine, turns.claims, turns.sessions, turns.nodes, packed)

    async def _pack(self, records: Sequence[RecordRow]) -> list[PackedRecord]:
        size = sum(len(body) for record in records for body in record.bodies.values())
        return await offload.run(size > LARGE_BODIES, record_operations.pack, records)

    async def list_records(self, owner: bytes | None, query: RecordQuery) -> list[RecordRow]:
        return await self._read(record_operations.list_records, owner, query)

    async def get_record(self, owner: bytes | None, record_id: str) -> RecordRow | None:
        found = await self._read(record_operations.get_record, owner, record_id)
        if found is None:
            return None
        record, bodies = found
        try:
            large = sum(len(body) for _, body in bodies) > LARGE_BODIES
            return replace(record, bodies=await offload.run(large, record_operations.unpack, bodies))
        except zlib.error:
            raise StoreError("the bodies of the record are damaged") from None

    async def add_session(self, session: SessionRow, nodes: Sequence[ChainNode]) -> None:
        await self.add_sessions([session], nodes)

    async def add_sessions(self, sessions: Sequence[SessionRow], nodes: Sequence[ChainNode]) -> None:
        await self._write(operations.add_sessions, sessions, nodes)

    async def list_sessions(self, owner: bytes | None, limit: int, before: str = "") -> list[SessionRow]:
        return await self._read(operations.list_sessions, owner, limit, before)

    async def find_sessions(self, owner: bytes | None, query: SessionQuery) -> SessionPage:
        return await self._read(operations.find_sessions, owner, query)

    async def get_session(self, owner: bytes | None, session_id: str) -> SessionRow | None:
        return await self._read(operations.get_session, owner, session_id)

    async def delete_session(self, owner: bytes | None, session_id: str) -> list[Chat] | None:
        return await self._write(operations.delete_session, owner, session_id)

    async def find_nodes(self, keys: Sequence[bytes], failed: Sequence[bytes] = ()) -> list[FoundNode]:
        return await self._read(operations.find_nodes, keys, failed) if keys or failed else []

    async def add_nodes(self, nodes: Sequence[ChainNode]) -> None:
        await self._write(operations.add_nodes, nodes)

    async def claim_node(self, node: ChainNode, answer: bytes) -> bool:
        return await self._write(operations.claim_node, node, answer)

    async def add_chat(self, chat: Chat, holder: str, ttl: float) -> int:
        return await self._write(operations.add_chat, replace(chat, used=chat.used or self._now()), holder, ttl)

    async def acquire_lease(self, chat_id: str, holder: str, ttl: float) -> int | None:
        return await self._write(operations.acquire_lease, chat_id, holder, ttl)

    async def renew_lease(self, chat_id: str, token: int, ttl: float) -> bool:
        return await self._write(operations.renew_lease, chat_id, token, ttl)

    async def release_lease(self, chat_id: str, token: int) -> None:
        await self._write(operations.release_lease, chat_id, token)

    async def interrupt_chat(self, chat_id: str, token: int) -> bool:
        return await self._write(operations.interrupt_chat, chat_id, token)

    async def commit_turn(self, nodes: Sequence[ChainNode], chat_id: str, head: str, token: int) -> bool:
        return await self._write(operations.commit_turn, nodes, chat_id, head, token)

    async def delete_chat(self, chat_id: str) -> None:
        await self._write(operations.delete_chat, chat_id)

    async def expire_chats(self, unused_since: float, limit: int = 100) -> list[Chat]:
        return await self._write(operations.expire_chats, unused_since, limit)

    async def keep(self, values: Sequence[KeptValue]) -> None:
        if values:
            await self._write(operations.keep, values)

    async def find_kept(self, owner: bytes, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return await self._read(operations.find_kept, owner, keys, self._now()) if keys else {}

    async def save_failure(self, failure: FailureRow) -> None:
        await self._write(operations.save_failure, self.engine, failure)

    async def forget_failure(self, address: str, model: str) -> None:
        await self._write(operations.forget_failure, self.engine, address, model)

    async def list_failures(self) -> list[FailureRow]:
        return await self._read(operations.list_failures)

    async def save_rollout(self, rollout: bytes) -> int:
        return await self._write(operations.save_rollout, self.engine, rollout)

    async def load_rollout(self) -> tuple[int, bytes] | None:
        return await self._read(operations.load_rollout)

    async def save_key(self, key: KeyRow) -> None:
        await self._write(operations.save_key, self.engine, key)

    async def delete_key(self, name: str) -> bool:
        return await self._write(operations.delete_key, self.engine, name)

    async def list_keys(self) -> list[KeyRow]:
        return await self._read(operations.list_keys)

    async def prune(self, *, records_before: float, sessions_before: float, max_bytes: int) -> int:
        deleted = await self._delete_all(operations.DELETE_VALUES, self._now())
        deleted += await self._delete_all(operations.DELETE_RECORDS, records_before)
        deleted += await self._delete_all(operations.DELETE_SESSIONS, sessions_before)
        while (size := await self._read(operations.count_bytes, self.engine)) > max_bytes:
            count = await self._write(operations.delete_oldest_records, size - int(max_bytes * SPARE))
            deleted += count
            if not count:
                break
            await asyncio.sleep(PRUNE_PAUSE)
        return deleted

    async def _delete_all(self, sql: str, before: float) -> int:
        """Delete rows in small transactions, so that other writers get their turn."""
        deleted = 0
        while count := await self._write(operations.delete_batch, sql, before):
            deleted += count
            await asyncio.sleep(PRUNE_PAUSE)
        return deleted
