"""The operations of a store, as generators of queries (``store.sql``). ``Store`` documents what each of them does.

Locks of PostgreSQL are taken in the order chats, sessions, nodes, so that operations do not wait for each other in a
circle.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from toolglot.store.interface import (
    FAILURES_CHANGED,
    KEYS_CHANGED,
    ROLLOUT_CHANGED,
    ChainNode,
    Chat,
    FailureRow,
    FoundNode,
    KeptValue,
    KeyRow,
    RecordQuery,
    RecordRow,
    SessionPage,
    SessionQuery,
    SessionRow,
    TurnCounts,
)
from toolglot.store.sql import Engine, Query, Row, Steps, Value, insert, make, select_in

BATCH: Final = 200
"""Rows that one transaction deletes, so that writers do not wait for long."""

RECORD: Final = tuple(name for name in RecordRow.__struct_fields__ if name not in ("bodies", "client", "counts"))
COUNTS: Final = TurnCounts.__struct_fields__
ADD_TURNS: Final = f"""
    UPDATE sessions SET turns = turns + $1,
    {", ".join(f"{name} = {name} + ${number}" for number, name in enumerate(COUNTS, 7))},
    client = CASE WHEN used <= $2 AND $5 <> '' THEN $5 ELSE client END,
    outcome = CASE WHEN used <= $2 OR outcome = '' THEN $6 ELSE outcome END,
    used = CASE WHEN used < $2 THEN $2 ELSE used END
    WHERE id = $3 AND owner = $4
"""
SEARCHED: Final = ("id", "model", "upstream", "client", "client_session")
TROUBLED: Final = "failed + repairs + rejected + retries > 0"
SESSION: Final = SessionRow.__struct_fields__
CHAT: Final = Chat.__struct_fields__
NODE: Final = ChainNode.__struct_fields__
NODES_PER_KEY: Final = 16
"""How many nodes of one key are found, the newest first: any number of conversations begins alike."""
KEYS_PER_QUERY: Final = 64
NODE_KEY: Final = "key, session, coalesce(chat, ''), message"
KEPT: Final = KeptValue.__struct_fields__
FAILURE: Final = FailureRow.__struct_fields__
KEY: Final = KeyRow.__struct_fields__
READERS: Final = {names: attrgetter(*names) for names in (RECORD, COUNTS, SESSION, CHAT, KEPT, FAILURE, KEY)}
"""How rows are read in the order of their columns."""
CURRENT: Final = "id = $1 AND token = $2 AND leased_until > 0"
"""The chat $1, if $2 is the token of its latest lease and the lease was not released."""


class PackedRecord(NamedTuple):
    """A record with compressed bodies."""

    row: RecordRow
    bodies: Mapping[str, bytes]

    @property
    def size(self) -> int:
        return len(self.row.data) + sum(map(len, self.bodies.values()))


def pack(records: Iterable[RecordRow]) -> list[PackedRecord]:
    """Compress bodies, fast rather than small. A record that occurs twice is left out."""
    by_id = {row.id: row for row in records}
    return [
        PackedRecord(row, {kind: zlib.compress(body, 1) for kind, body in row.bodies.items()})
        for _, row in sorted(by_id.items())
    ]


def unpack(bodies: Iterable[Row]) -> dict[str, bytes]:
    return {kind: zlib.decompress(body) for kind, body in bodies}


# -- records -----------------------------------------------------------------------------------------------------------


def add_records(records: Sequence[PackedRecord]) -> Steps[None]:
    rows = [(*_read(record.row, RECORD), record.size) for record in records]
    added = yield from insert("records", (*RECORD, "size"), rows, "ON CONFLICT DO NOTHING RETURNING id")
    new = {row[0] for row in added}
    bodies = [(row.id, kind, body) for row, packed in records if row.id in new for kind, body in packed.items()]
    yield from insert("bodies", ("record", "kind", "data"), bodies)
    turns: dict[tuple[str, bytes], list[RecordRow]] = {}
    for row, _ in records:
        if row.id in new and row.session and row.counts is not None:
            turns.setdefault((row.session, row.owner), []).append(row)
    for (session, owner), rows_of in sorted(turns.items()):
        yield _add_turns(session, owner, rows_of)


def _add_turns(session: str, owner: bytes, rows: Sequence[RecordRow]) -> Query:
    """Add turns to the totals of their session."""
    latest = max(rows, key=attrgetter("time"))
    counts = [_read(row.counts, COUNTS) for row in rows]
    sums = counts[0] if len(counts) == 1 else map(sum, zip(*counts, strict=True))
    return Query(ADD_TURNS, (len(rows), latest.time, session, owner, latest.client, latest.outcome, *sums))


def list_records(owner: bytes | None, query: RecordQuery) -> Steps[list[RecordRow]]:
    filters = {
        "owner =": owner,
        "id <": query.before or None,
        "id >": query.after or None,
        "model =": query.model or None,
        "session =": query.session or None,
        "outcome =": query.outcome or None,
    }
    rows = yield _select_latest("records", RECORD, filters, query.limit)
    return [make(RecordRow, RECORD, row) for row in rows]


def get_record(owner: bytes | None, record_id: str) -> Steps[tuple[RecordRow, Sequence[Row]] | None]:
    """The record, and its bodies as they are stored."""
    chosen, values = ("", (record_id,)) if owner is None else ("AND owner = $2", (record_id, owner))
    sql = f"""
        SELECT {", ".join(RECORD)} FROM records WHERE (id = $1 OR request_id = $1) {chosen}
        ORDER BY id = $1 DESC, id DESC LIMIT 1
    """
    rows = yield Query(sql, values)
    if not rows:
        return None
    record = make(RecordRow, RECORD, rows[0])
    return record, (yield Query("SELECT kind, data FROM bodies WHERE record = $1", (record.id,)))


# -- sessions ----------------------------------------------------------------------------------------------------------


def add_sessions(sessions: Sequence[SessionRow], nodes: Sequence[ChainNode]) -> Steps[None]:
    yield from insert("sessions", SESSION, [_read(session, SESSION) for session in sessions], "ON CONFLICT DO NOTHING")
    yield from add_nodes(nodes)


def list_sessions(owner: bytes | None, limit: int, before: str) -> Steps[list[SessionRow]]:
    rows = yield _select_latest("sessions", SESSION, {"owner =": owner, "id <": before or None}, limit)
    return [make(SessionRow, SESSION, row) for row in rows]


def find_sessions(owner: bytes | None, query: SessionQuery) -> Steps[SessionPage]:
    values: list[Value] = []
    tests = [TROUBLED] if query.troubled else ["1 = 1"]
    if owner is not None:
        values.append(owner)
        tests.append(f"owner = ${len(values)}")
    if query.outcome:
        values.append(query.outcome)
        tests.append(f"outcome = ${len(values)}")
    if query.text:
        escaped = query.text.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
        values.append(f"%{escaped}%")
        found = " OR ".join(f"lower({name}) LIKE ${len(values)} ESCAPE '!'" for name in SEARCHED)
        tests.append(f"({found})")
    chosen, at = " AND ".join(tests), len(values)
    [(total, *_)] = yield Query(f"SELECT count(*) FROM sessions WHERE {chosen}", values)
    sql = f"""
        SELECT {", ".join(SESSION)} FROM sessions WHERE {chosen} ORDER BY used DESC, id DESC
        LIMIT ${at + 1} OFFSET ${at + 2}
    """
    rows = yield Query(sql, (*values, query.limit, query.offset))
    return SessionPage(total=total, rows=[make(SessionRow, SESSION, row) for row in rows])


def get_session(owner: bytes | None, session_id: str) -> Steps[SessionRow | None]:
    rows = yield _select_latest("sessions", SESSION, {"id =": session_id, "owner =": owner}, 1)
    return make(SessionRow, SESSION, rows[0]) if rows else None


def delete_session(owner: bytes | None, session_id: str) -> Steps[list[Chat] | None]:
    session = yield from get_session(owner, session_id)
    if session is None:
        return None
    delete_chats = Query(f"DELETE FROM chats WHERE session = $1 RETURNING {', '.join(CHAT)}", (session_id,))
    chats = list((yield delete_chats))
    # chats before the session, as commit_turn locks them; and again, for one that was added in between
    locked = yield Query("SELECT id FROM sessions WHERE id = $1 FOR UPDATE", (session_id,))
    if not locked:
        return None
    chats += yield delete_chats
    yield Query("DELETE FROM records WHERE session = $1 AND owner = $2", (session_id, session.owner))
    yield Query("DELETE FROM sessions WHERE id = $1", (session_id,))
    return [make(Chat, CHAT, row) for row in chats]


# -- chain nodes and chats ---------------------------------------------------------------------------------------------


def find_nodes(keys: Sequence[bytes]) -> Steps[list[FoundNode]]:
    node = ", ".join("coalesce(nodes.chat, '')" if name == "chat" else f"nodes.{name}" for name in NODE)
    chat = ", ".join(f"chats.{name}" for name in CHAT)
    latest = f"SELECT * FROM nodes WHERE key = {{key}} ORDER BY number DESC LIMIT {NODES_PER_KEY}"
    rows: list[Row] = []
    wanted = list(dict.fromkeys(keys))
    for start in range(0, len(wanted), KEYS_PER_QUERY):
        part = wanted[start : start + KEYS_PER_QUERY]
        part += part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))  # few different statements
        selects = (f"SELECT * FROM ({latest.format(key=f'${at}')}) AS key_{at}" for at in range(1, len(part) + 1))
        union = " UNION ".join(selects)
        joined = f"({union}) AS nodes LEFT JOIN chats ON chats.id = nodes.chat"
        rows += yield Query(f"SELECT nodes.number, {node}, {chat} FROM {joined}", tuple(part))
    places = {key: place for place, key in reversed(list(enumerate(keys)))}
    found = []
    for _, *fields in sorted(rows, key=lambda row: (places[row[1]], -row[0])):
        position = make(ChainNode, NODE, fields[: len(NODE)])
        held = make(Chat, CHAT, fields[len(NODE) :]) if position.chat else None
        found.append(FoundNode(node=position, chat=held))
    return found


def add_nodes(nodes: Sequence[ChainNode]) -> Steps[None]:
    if not nodes:
        return
    locked = "FOR KEY SHARE"
    chats = yield from select_in("SELECT id FROM chats WHERE id", (node.chat for node in nodes if node.chat), locked)
    sessions = yield from select_in("SELECT id FROM sessions WHERE id", (node.session for node in nodes), locked)
    exist, held = {row[0] for row in sessions}, {"", *(row[0] for row in chats)}
    yield from _insert_nodes([node for node in nodes if node.session in exist and node.chat in held])


def _insert_nodes(nodes: Sequence[ChainNode]) -> Steps[None]:
    """Sorted, because two transactions that insert the same nodes wait for each other."""
    latest = {(node.key, node.session, node.chat, node.message): node for node in nodes}
    rows = [
        (node.key, node.session, node.chat or None, node.message, node.context, node.answer, node.size)
        for node in sorted(latest.values(), key=lambda node: (node.key, node.session))
    ]
    yield from insert("nodes", NODE, rows, f"ON CONFLICT ({NODE_KEY}) DO UPDATE SET answer = excluded.answer")


def claim_node(node: ChainNode, answer: bytes) -> Steps[bool]:
    sql = """
        UPDATE nodes SET answer = $5
        WHERE key = $1 AND session = $2 AND coalesce(chat, '') = $3 AND message = $4
        AND (answer = $5 OR length(answer) = 0) RETURNING number
    """
    return bool((yield Query(sql, (node.key, node.session, node.chat, node.message, answer))))


def add_chat(chat: Chat, holder: str, ttl: float) -> Steps[int]:
    sql = f"""
        INSERT INTO chats ({", ".join(CHAT)}, token, holder, leased_until)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, CLOCK() + $9) RETURNING token
    """
    [(token,)] = yield Query(sql, (*_read(chat, CHAT), holder, ttl))
    return int(token)


def acquire_lease(chat_id: str, holder: str, ttl: float) -> Steps[int | None]:
    sql = """
        UPDATE chats SET token = token + 1, holder = $2, leased_until = CLOCK() + $3, used = CLOCK()
        WHERE id = $1 AND leased_until <= CLOCK() RETURNING token
    """
    rows = yield Query(sql, (chat_id, holder, ttl))
    return int(rows[0][0]) if rows else None


def renew_lease(chat_id: str, token: int, ttl: float) -> Steps[bool]:
    sql = f"UPDATE chats SET leased_until = CLOCK() + $3 WHERE {CURRENT} RETURNING id"
    return bool((yield Query(sql, (chat_id, token, ttl))))


def release_lease(chat_id: str, token: int) -> Steps[None]:
    yield Query(f"UPDATE chats SET leased_until = 0, holder = '' WHERE {CURRENT}", (chat_id, token))


def interrupt_chat(chat_id: str, token: int) -> Steps[bool]:
    sql = f"UPDATE chats SET head = '' WHERE {CURRENT} AND leased_until > CLOCK() RETURNING id"
    return bool((yield Query(sql, (chat_id, token))))


def commit_turn(nodes: Sequence[ChainNode], chat_id: str, head: str, token: int) -> Steps[bool]:
    sql = f"UPDATE chats SET head = $3, used = CLOCK() WHERE {CURRENT} RETURNING id"
    if not (yield Query(sql, (chat_id, token, head))):
        return False
    yield from _insert_nodes(nodes)
    return True


def delete_chat(chat_id: str) -> Steps[None]:
    yield Query("DELETE FROM chats WHERE id = $1", (chat_id,))


def expire_chats(unused_since: float, limit: int) -> Steps[list[Chat]]:
    sql = f"""
        DELETE FROM chats WHERE id IN (
            SELECT id FROM chats WHERE used < $1 AND leased_until <= CLOCK() ORDER BY used, id LIMIT $2
            FOR UPDATE SKIP LOCKED
        ) RETURNING {", ".join(CHAT)}
    """
    rows = yield Query(sql, (unused_since, limit))
    return sorted((make(Chat, CHAT, row) for row in rows), key=lambda chat: (chat.used, chat.id))


# -- kept values -------------------------------------------------------------------------------------------------------


def keep(values: Sequence[KeptValue]) -> Steps[None]:
    latest = {(value.owner, value.key): _read(value, KEPT) for value in values}
    ending = "ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value, expires = excluded.expires"
    yield from insert("kept", KEPT, [latest[place] for place in sorted(latest)], ending)


def find_kept(owner: bytes, keys: Sequence[bytes], now: float) -> Steps[dict[bytes, bytes]]:
    sql = "SELECT key, value FROM kept WHERE owner = $1 AND expires > $2 AND key"
    rows = yield from select_in(sql, keys, first=(owner, now))
    return {key: value for key, value in rows}


# -- shared settings ---------------------------------------------------------------------------------------------------


def save_failure(engine: Engine, failure: FailureRow) -> Steps[None]:
    yield from _save("failures", FAILURE, ("address", "model"), _read(failure, FAILURE))
    yield Query(engine.report_change, (FAILURES_CHANGED,))


def forget_failure(engine: Engine, address: str, model: str) -> Steps[None]:
    sql = "DELETE FROM failures WHERE address = $1 AND model = $2 RETURNING address"
    if (yield Query(sql, (address, model))):
        yield Query(engine.report_change, (FAILURES_CHANGED,))


def list_failures() -> Steps[list[FailureRow]]:
    rows = yield Query(f"SELECT {', '.join(FAILURE)} FROM failures ORDER BY address, model")
    return [make(FailureRow, FAILURE, row) for row in rows]


def save_rollout(engine: Engine, rollout: bytes) -> Steps[int]:
    sql = """
        INSERT INTO settings (name, version, value) VALUES ($1, 1, $2)
        ON CONFLICT (name) DO UPDATE SET version = settings.version + 1, value = excluded.value RETURNING version
    """
    [(version,)] = yield Query(sql, (ROLLOUT_CHANGED, rollout))
    yield Query(engine.report_change, (ROLLOUT_CHANGED,))
    return int(version)


def load_rollout() -> Steps[tuple[int, bytes] | None]:
    rows = yield Query("SELECT version, value FROM settings WHERE name = $1", (ROLLOUT_CHANGED,))
    return (rows[0][0], rows[0][1]) if rows else None


def save_key(engine: Engine, key: KeyRow) -> Steps[None]:
    yield from _save("client_keys", KEY, ("name",), _read(key, KEY))
    yield Query(engine.report_change, (KEYS_CHANGED,))


def delete_key(engine: Engine, name: str) -> Steps[bool]:
    deleted = yield Query("DELETE FROM client_keys WHERE name = $1 RETURNING name", (name,))
    if deleted:
        yield Query(engine.report_change, (KEYS_CHANGED,))
    return bool(deleted)


def list_keys() -> Steps[list[KeyRow]]:
    rows = yield Query(f"SELECT {', '.join(KEY)} FROM client_keys ORDER BY name")
    return [make(KeyRow, KEY, row) for row in rows]


# -- retention and health ----------------------------------------------------------------------------------------------

DELETE_VALUES: Final = """
    DELETE FROM kept WHERE (owner, key) IN (SELECT owner, key FROM kept WHERE expires <= $1 ORDER BY expires LIMIT $2)
    RETURNING key
"""
DELETE_RECORDS: Final = """
    DELETE FROM records WHERE id IN (SELECT id FROM records WHERE time < $1 ORDER BY time LIMIT $2) RETURNING id
"""
DELETE_SESSIONS: Final = """
    DELETE FROM sessions WHERE id IN (
        SELECT id FROM sessions WHERE used < $1 AND NOT EXISTS (SELECT 1 FROM chats WHERE chats.session = sessions.id)
        ORDER BY used LIMIT $2 FOR UPDATE SKIP LOCKED
    ) RETURNING id
"""


def delete_batch(sql: str, before: float) -> Steps[int]:
    """Delete the oldest rows. Returns how many; fewer than ``BATCH`` if there are no more."""
    return len((yield Query(sql, (before, BATCH))))


def delete_oldest_records(size: int) -> Steps[int]:
    """Delete the oldest records, as many as hold so many bytes, but not more than ``BATCH``. Returns how many."""
    rows = yield Query("SELECT id, size FROM records ORDER BY time LIMIT $1", (BATCH,))
    chosen: list[str] = []
    for record_id, held in rows:
        if size <= 0:
            break
        chosen.append(record_id)
        size -= held
    yield from select_in("DELETE FROM records WHERE id", chosen)
    return len(chosen)


def count_bytes(engine: Engine) -> Steps[int]:
    [(size, *_)] = yield Query(engine.count_bytes)
    return int(size)


def check() -> Steps[None]:
    yield Query("UPDATE schema_version SET checked = CLOCK()")


ONE_STATEMENT: Final = frozenset(
    {
        claim_node,
        add_chat,
        acquire_lease,
        renew_lease,
        release_lease,
        interrupt_chat,
        delete_chat,
        expire_chats,
        delete_batch,
        check,
    }
)
"""Operations that need no transaction around their only statement."""


def _read(row: object, columns: tuple[str, ...]) -> tuple[Value, ...]:
    values: tuple[Value, ...] = READERS[columns](row)
    return values


def _save(table: str, columns: Sequence[str], key: Sequence[str], values: Sequence[Value]) -> Steps[None]:
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    yield from insert(table, columns, [values], f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}")


def _select_latest(table: str, columns: Sequence[str], filters: Mapping[str, Value], limit: int) -> Query:
    """The rows that match the filters which have a value, the largest ids first."""
    chosen = {test: value for test, value in filters.items() if value is not None}
    tests = " AND ".join(f"{test} ${number}" for number, test in enumerate(chosen, 1)) or "1 = 1"
    sql = f"SELECT {', '.join(columns)} FROM {table} WHERE {tests} ORDER BY id DESC LIMIT ${len(chosen) + 1}"
    return Query(sql, (*chosen.values(), limit))
