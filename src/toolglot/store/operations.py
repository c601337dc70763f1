"""The operations of a store but those on records, as generators of queries (``store.sql``). ``Store`` documents what
each of them does.

Locks of PostgreSQL are taken in the order chats, sessions, nodes, so that operations do not wait for each other in a
circle.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache
from typing import Any, Final

from toolglot.store.interface import (
    FAILURES_CHANGED,
    KEYS_CHANGED,
    ROLLOUT_CHANGED,
    UNANSWERED,
    ChainNode,
    Chat,
    FailureRow,
    FoundNode,
    KeptValue,
    KeyRow,
    NodeClaim,
    SessionPage,
    SessionQuery,
    SessionRow,
)
from toolglot.store.record_operations import ADD_TURNS, COUNTS, PackedRecord, insert_records, sum_turns
from toolglot.store.sql import (
    Engine,
    Query,
    Row,
    Steps,
    Value,
    insert,
    make,
    read_columns,
    select_in,
    select_latest,
    write_test,
)

BATCH: Final = 200
"""Rows that one transaction deletes at most, so that writers do not wait for long."""
STEP_BYTES: Final = 1 << 20
"""Bytes of records, with their bodies, after which a transaction deletes no more of them."""

ADD_TO_SESSION: Final = f"""
    ON CONFLICT (id) DO UPDATE SET turns = sessions.turns + excluded.turns,
    {", ".join(f"{name} = sessions.{name} + excluded.{name}" for name in COUNTS)},
    client = CASE WHEN sessions.used <= excluded.used AND excluded.client <> ''
        THEN excluded.client ELSE sessions.client END,
    outcome = CASE WHEN excluded.outcome <> '' AND (sessions.used <= excluded.used OR sessions.outcome = '')
        THEN excluded.outcome ELSE sessions.outcome END,
    used = CASE WHEN sessions.used < excluded.used THEN excluded.used ELSE sessions.used END
"""
"""A session that was added as a new one may exist: the call is repeated, or its first part was."""
SEARCHED: Final = ("id", "model", "upstream", "client", "client_session")
TROUBLED: Final = "failed + repairs + rejected + retries > 0"
SESSION: Final = SessionRow.__struct_fields__
CHAT: Final = Chat.__struct_fields__
NODE: Final = ChainNode.__struct_fields__
NODES_PER_KEY: Final = 16
"""How many nodes of one key are found, those of the newest sessions: any number of conversations begins alike."""
KEYS_PER_QUERY: Final = 64
HAS_FAILED: Final = f"length(answer) = {len(UNANSWERED)}"
"""Whether the request of a node failed; as the condition of an index has it."""
NODE_KEY: Final = "key, session, coalesce(chat, ''), message"
KEPT: Final = KeptValue.__struct_fields__
FAILURE: Final = FailureRow.__struct_fields__
KEY: Final = KeyRow.__struct_fields__
CURRENT: Final = "id = $1 AND token = $2 AND leased_until > 0"
"""The chat $1, if $2 is the token of its latest lease and the lease was not released."""


# -- turns -------------------------------------------------------------------------------------------------------------


def add_turns(
    engine: Engine,
    claims: Sequence[NodeClaim],
    sessions: Sequence[SessionRow],
    nodes: Sequence[ChainNode],
    records: Sequence[PackedRecord],
) -> Steps[bool]:
    """Sessions that are new get their totals with their row; the others are locked first, because of the order of
    locks."""
    new = {session.id for session in sessions}
    claimed = [claim.node for claim in claims]
    exist = yield from _lock_parents([*claimed, *nodes], new)
    for claim in sorted(claims, key=lambda claim: (claim.node.key, claim.node.session)):
        if not (yield from claim_node(claim.node, claim.answer)):
            return False
    totals = {(values[2], values[3]): values for values in sum_turns((yield from insert_records(engine, records)))}
    rows = [_start_session(session, totals.pop((session.id, session.owner), None)) for session in sessions]
    yield from insert("sessions", SESSION, rows, ADD_TO_SESSION)
    yield from _insert_nodes([node for node in nodes if exist.issuperset((node.session, node.chat))])
    for values in totals.values():
        yield Query(ADD_TURNS, values)
    return True


def _start_session(session: SessionRow, totals: tuple[Any, ...] | None) -> Sequence[Value]:
    """The row of a new session, with what its first turns add to it."""
    if totals is None:
        return read_columns(session, SESSION)
    turns, latest, _, _, client, outcome, *sums = totals
    used, names = max(session.used, latest), (session.model, session.upstream, session.client_session)
    return (session.id, session.owner, session.created, used, turns, *names, client, outcome, *sums)


# -- sessions ----------------------------------------------------------------------------------------------------------


def add_sessions(sessions: Sequence[SessionRow], nodes: Sequence[ChainNode]) -> Steps[None]:
    rows = [read_columns(session, SESSION) for session in sessions]
    yield from insert("sessions", SESSION, rows, "ON CONFLICT DO NOTHING")
    yield from add_nodes(nodes)


def list_sessions(owner: bytes | None, limit: int, before: str) -> Steps[list[SessionRow]]:
    rows = yield select_latest("sessions", SESSION, {"owner =": owner, "id <": before or None}, limit)
    return [make(SessionRow, SESSION, row) for row in rows]


def find_sessions(owner: bytes | None, query: SessionQuery) -> Steps[SessionPage]:
    values: list[Value] = []
    tests = [TROUBLED] if query.troubled else ["1 = 1"]
    if owner is not None:
        values.append(owner)
        tests.append(write_test("owner =", owner, len(values)))
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
    rows = yield select_latest("sessions", SESSION, {"id =": session_id, "owner =": owner}, 1)
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


def find_nodes(keys: Sequence[bytes], failed: Sequence[bytes] = ()) -> Steps[list[FoundNode]]:
    return (yield from _find_latest(keys)) + (yield from _find_latest(failed, HAS_FAILED))


def _find_latest(keys: Sequence[bytes], test: str = "1 = 1") -> Steps[list[FoundNode]]:
    """The latest nodes of each key, of those that pass a test."""
    rows: list[Row] = []
    wanted = list(dict.fromkeys(keys))
    for start in range(0, len(wanted), KEYS_PER_QUERY):
        part = wanted[start : start + KEYS_PER_QUERY]
        part += part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))  # few different statements
        rows += yield Query(_write_find_latest(len(part), test), part)
    places = {key: place for place, key in reversed(list(enumerate(keys)))}
    found = []
    for _, *fields in sorted(rows, key=lambda row: (places[row[1]], -row[0])):
        position = make(ChainNode, NODE, fields[: len(NODE)])
        held = make(Chat, CHAT, fields[len(NODE) :]) if position.chat else None
        found.append(FoundNode(node=position, chat=held))
    return found


@lru_cache(maxsize=16)
def _write_find_latest(keys: int, test: str) -> str:
    node = ", ".join("coalesce(nodes.chat, '')" if name == "chat" else f"nodes.{name}" for name in NODE)
    chat = ", ".join(f"chats.{name}" for name in CHAT)
    latest = f"SELECT * FROM nodes WHERE key = {{key}} AND {test} ORDER BY session DESC LIMIT {NODES_PER_KEY}"
    selects = (f"SELECT * FROM ({latest.format(key=f'${at}')}) AS key_{at}" for at in range(1, keys + 1))
    joined = f"({' UNION '.join(selects)}) AS nodes LEFT JOIN chats ON chats.id = nodes.chat"
    return f"SELECT nodes.number, {node}, {chat} FROM {joined}"


def add_nodes(nodes: Sequence[ChainNode]) -> Steps[None]:
    if not nodes:
        return
    exist = yield from _lock_parents(nodes)
    yield from _insert_nodes([node for node in nodes if exist.issuperset((node.session, node.chat))])


def _lock_parents(nodes: Sequence[ChainNode], new: Set[str] = frozenset()) -> Steps[set[str]]:
    """Keep the chats and sessions of nodes from being deleted. Returns the ids of those that exist, or are ``new``; the
    empty chat exists."""
    locked = "FOR KEY SHARE"
    chats = yield from select_in("SELECT id FROM chats WHERE id", (node.chat for node in nodes if node.chat), locked)
    wanted = (node.session for node in nodes if node.session not in new)
    sessions = yield from select_in("SELECT id FROM sessions WHERE id", wanted, locked)
    return {"", *new, *(row[0] for row in (*chats, *sessions))}


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
    [(token,)] = yield Query(sql, (*read_columns(chat, CHAT), holder, ttl))
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
    latest = {(value.owner, value.key): read_columns(value, KEPT) for value in values}
    ending = "ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value, expires = excluded.expires"
    yield from insert("kept", KEPT, [latest[place] for place in sorted(latest)], ending)


def find_kept(owner: bytes, keys: Sequence[bytes], now: float) -> Steps[dict[bytes, bytes]]:
    sql = "SELECT key, value FROM kept WHERE owner = $1 AND expires > $2 AND key"
    rows = yield from select_in(sql, keys, first=(owner, now))
    return {key: value for key, value in rows}


# -- shared settings ---------------------------------------------------------------------------------------------------


def save_failure(engine: Engine, failure: FailureRow) -> Steps[None]:
    yield from _save("failures", FAILURE, ("address", "model"), read_columns(failure, FAILURE))
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
    yield from _save("client_keys", KEY, ("name",), read_columns(key, KEY))
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
DELETE_RECORDS: Final = f"""
    DELETE FROM records WHERE id IN (
        SELECT id FROM (
            SELECT id, time, sum(size) OVER (ORDER BY id) - size AS bytes_before
            FROM (SELECT id, time, size FROM records ORDER BY id LIMIT $2) AS oldest
        ) AS summed
        WHERE time < $1 AND bytes_before < {STEP_BYTES}
    ) RETURNING id
"""
"""Ids are in the order in which requests ended. One that began long before it ended is deleted a little later."""
DELETE_SESSIONS: Final = """
    DELETE FROM sessions WHERE id IN (
        SELECT id FROM sessions WHERE used < $1 AND NOT EXISTS (SELECT 1 FROM chats WHERE chats.session = sessions.id)
        ORDER BY used LIMIT $2 FOR UPDATE SKIP LOCKED
    ) RETURNING id
"""


def delete_batch(sql: str, before: float) -> Steps[int]:
    """Delete some of the oldest rows. Returns how many; 0 if there are no more."""
    return len((yield Query(sql, (before, BATCH))))


def delete_oldest_records(size: int) -> Steps[int]:
    """Delete the oldest records, as many as hold so many bytes, but not more than ``BATCH`` or ``STEP_BYTES``. Returns
    how many."""
    size = min(size, STEP_BYTES)
    rows = yield Query("SELECT id, size FROM records ORDER BY id LIMIT $1", (BATCH,))
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


def _save(table: str, columns: Sequence[str], key: Sequence[str], values: Sequence[Value]) -> Steps[None]:
    changed = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    yield from insert(table, columns, [values], f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}")
