"""Writes the records of requests to the store, in the background.

*Strategy.* At its end a request appends its record to a bounded queue and waits for nothing. One task takes what has
gathered, finds the sessions it belongs to and writes all of it in one transaction; in a thread it first encodes the
records and redacts bodies. A store that
fails is tried again after growing pauses; when the queue is full, records are dropped and counted. The same task opens
the store and checks it while there is nothing to write; another one deletes what is too old (``retention``).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import Final, TypeVar

import msgspec

from toolglot.config import SECRET_LENGTH, StoreSettings
from toolglot.config.keys import REFUSED_OWNER
from toolglot.config.rollout import NEAR_MISS
from toolglot.config.store_settings import BODIES_ALL, BODIES_OFF
from toolglot.core import offload
from toolglot.core.errors import StoreError
from toolglot.core.redaction import mask, redact, redact_document, redact_stream
from toolglot.gateway.sessions.naming import EndedTurn, NamedTurns, find_names, make_session_id
from toolglot.gateway.sessions.turns import SessionTurn
from toolglot.gateway.telemetry.metrics import Metrics
from toolglot.gateway.telemetry.record import Record
from toolglot.gateway.telemetry.recorder import BODY_LENGTH, RequestRecorder
from toolglot.gateway.telemetry.retention import prune_regularly
from toolglot.gateway.telemetry.trace import Trace
from toolglot.store.interface import OK, EndedTurns, RecordRow, Store, TurnCounts

RECORD_ID: Final = re.compile("rec_[0-9a-f]{30}")
QUEUE_RECORDS: Final = 10_000
QUEUE_BYTES: Final = 64 << 20
"""Bytes of bodies in the queue."""
BATCH: Final = 500
BATCH_BYTES: Final = 8 << 20
GATHER_SECONDS: Final = 0.5
"""Seconds for which records gather before they are written."""
CALL_SECONDS: Final = 10.0
"""Seconds that the store may take for one call."""
OPEN_SECONDS: Final = 90.0
"""Seconds that the store may take to open, migrations included."""
PAUSES: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds between attempts while the store fails."""
CHECK_SECONDS: Final = 10.0
"""Seconds without a record after which the store is checked."""
LOG_SECONDS: Final = 60.0
"""Seconds between two messages about dropped records."""
TOKENS_AT_ONCE: Final = 64
REFUSED_PER_MINUTE: Final = 120
"""How many requests without a valid key are recorded: they must not crowd out the records of clients."""
INLINE: Final = 16
"""Records that are encoded on the event loop; more, and all with bodies, in a thread."""
MARGIN: Final = BODY_LENGTH
"""Bytes that are collected beyond the limit of a body, so that no secret is cut in two before it is redacted."""
CUT_TAIL: Final = 1 << 14
"""Characters that are removed from the end of a body that was cut: they may be a part of a secret."""

QUEUE_FULL: Final = "queue_full"
UNAUTHENTICATED: Final = "unauthenticated"
WRITE_FAILED: Final = "write_failed"
SHUTDOWN: Final = "shutdown"
DROP_REASONS: Final = (QUEUE_FULL, UNAUTHENTICATED, WRITE_FAILED, SHUTDOWN)

NO_NAMES: Final = NamedTurns(names=[], claims=[], sessions=[], nodes=[])
LOG = logging.getLogger("toolglot.store")
T = TypeVar("T")


class QueuedRecord(msgspec.Struct, frozen=True):
    """A record that waits to be written. ``bodies`` are not redacted yet."""

    id: str
    record: Record
    owner: bytes
    time: float
    key: str
    bodies: Mapping[str, bytes]
    size: int
    turn: SessionTurn | None = None
    trace: Trace | None = None


class Batch(msgspec.Struct):
    """Records that are being written. ``turns`` is what is written for those in ``queued``; if that fails, ``alone``
    are the records that are still to be written one by one."""

    queued: Sequence[QueuedRecord]
    turns: EndedTurns
    alone: list[RecordRow] | None = None

    @property
    def left(self) -> int:
        return len(self.queued) if self.alone is None else len(self.alone)


class RecordWriter:
    """The queue and the task. ``problem`` says why the store is unavailable; it is empty if all is well."""

    def __init__(
        self,
        store: Store,
        metrics: Metrics,
        settings: StoreSettings,
        secrets: Iterable[str] = (),
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.problem = "not open yet"
        self.collects_bodies = settings.bodies != BODIES_OFF
        self.body_limit = settings.max_body_bytes + MARGIN
        self._settings = settings
        self._secrets = (*secrets, *settings.url.secrets)
        self._known = list_spellings(self._secrets)
        self._now = now
        self._queue: deque[QueuedRecord] = deque()
        self._queued_bytes = 0
        self._batch: Batch | None = None
        self._last_id = 0
        self._tokens: list[str] = []
        self._added = self._settled = 0
        self._refused_minute = self._refused = 0
        self._dropped_since = 0
        self._last_drop_message = float("-inf")
        self._failures = 0
        self._is_open = False
        self._wake: asyncio.Event | None = None
        """Set by the next record, if the task waits for one."""
        self._hurry, self._closing, self._progress = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._pruning: asyncio.Task[None] | None = None
        self._available, self._queue_length = metrics.store_available, metrics.records_queued
        self._dropped = {reason: metrics.records_dropped[(reason,)] for reason in DROP_REASONS}

    # -- used by requests ----------------------------------------------------------------------------------------------

    def enqueue(self, recorder: RequestRecorder) -> None:
        """Queue the record of a finished request (hot path). Drops it if the queue is full."""
        record = recorder.record
        if record is None:
            return
        bodies = self._choose_bodies(recorder, record) if self.collects_bodies else {}
        size = sum(map(len, bodies.values())) if bodies else 0
        if recorder.owner == REFUSED_OWNER and not self._admit_refused():
            self._drop(UNAUTHENTICATED)
        elif len(self._queue) >= QUEUE_RECORDS or self._queued_bytes + size > QUEUE_BYTES:
            self._drop(QUEUE_FULL)
        else:
            turn = None if record.session else recorder.turn
            trace = recorder.trace if bodies else None
            entry = QueuedRecord(
                self._next_id(), record, recorder.owner, recorder.time, recorder.key, bodies, size, turn, trace
            )
            self._queue.append(entry)
            self._queued_bytes += size
            self._added += 1
            self._queue_length.total += 1
            if self._wake is not None:
                self._wake.set()

    async def flush(self, seconds: float = 1.0) -> None:
        """Wait until the records that are queued now are written; not if the store is unavailable, and not long."""
        target = self._added
        self._hurry.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._settled < target and not self.problem:
                    await self._progress.wait()

    def _next_id(self) -> str:
        """An id that sorts by the time at which requests end, and is unique among all replicas."""
        self._last_id = max(int(self._now() * 1e6), self._last_id + 1)
        return f"rec_{self._last_id:014x}{self._token()}"

    def _token(self) -> str:
        """Random digits; one call of the system yields many. Thread-safe."""
        while True:
            try:
                return self._tokens.pop()
            except IndexError:
                digits = token_hex(8 * TOKENS_AT_ONCE)
                self._tokens += [digits[at : at + 16] for at in range(0, len(digits), 16)]

    def _new_session_id(self) -> str:
        return make_session_id(self._now(), self._token())

    def _choose_bodies(self, recorder: RequestRecorder, record: Record) -> Mapping[str, bytes]:
        if self._settings.bodies != BODIES_ALL and not has_problem(record) and not record.replay_of:
            return {}
        return {kind: data for kind, data in (recorder.bodies or {}).items() if data}

    def _admit_refused(self) -> bool:
        minute = int(self._now() // 60)
        if minute != self._refused_minute:
            self._refused_minute, self._refused = minute, 0
        self._refused += 1
        return self._refused <= REFUSED_PER_MINUTE

    def _drop(self, reason: str, count: int = 1) -> None:
        self._dropped[reason].total += count
        self._dropped_since += count
        if time.monotonic() - self._last_drop_message >= LOG_SECONDS:
            self._last_drop_message = time.monotonic()
            LOG.warning("%d records were dropped (%s)", self._dropped_since, reason)
            self._dropped_since = 0

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self, seconds: float = 2.0) -> None:
        """Start the tasks, and wait a moment for the store to open."""
        self._task = asyncio.create_task(self._run())
        self._pruning = asyncio.create_task(prune_regularly(self.store, self._settings, self._now))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._progress.wait(), seconds)

    async def close(self, seconds: float) -> None:
        """Write what is queued, within some seconds, and close the store."""
        self._closing.set()
        self._hurry.set()
        if self._wake is not None:
            self._wake.set()
        if self._task is not None and self._pruning is not None:
            self._pruning.cancel()
            await asyncio.wait([self._task], timeout=seconds)
            self._task.cancel()
            await asyncio.wait([self._task, self._pruning])
        if left := self._added - self._settled:
            self._drop(SHUTDOWN, left)
        with suppress(StoreError, TimeoutError):
            await asyncio.wait_for(self.store.close(), CALL_SECONDS)

    async def _run(self) -> None:
        while not self._closing.is_set() or self._queue or self._batch is not None:
            try:
                await self._work()
            except StoreError as error:
                await self._fail(error.message)
            except Exception as error:
                LOG.exception("the task that writes records failed")
                await self._fail(type(error).__name__)
            else:
                self._succeed()

    async def _work(self) -> None:
        """Open the store; else write a batch; else check the store. Raises: StoreError if it fails."""
        if not self._is_open:
            await call_store(self.store.open(), OPEN_SECONDS)
            self._is_open = True
        elif self._batch is not None or await self._gather():
            assert self._batch is not None
            await self._write(self._batch)
        else:
            await call_store(self.store.check())

    async def _gather(self) -> bool:
        """Wait for records and take a batch of them. Returns False if there was none for a while."""
        if not self._queue and not self._closing.is_set():
            self._wake = asyncio.Event()
            await wait_for_event(self._wake, CHECK_SECONDS)
            self._wake = None
        if 0 < len(self._queue) < BATCH:
            await wait_for_event(self._hurry, GATHER_SECONDS)
        if not self._closing.is_set():
            self._hurry.clear()
        taken: list[QueuedRecord] = []
        size = 0
        while self._queue and len(taken) < BATCH and size < BATCH_BYTES:
            taken.append(self._queue.popleft())
            size += taken[-1].size
        if not taken:
            return False
        try:
            self._batch = await self._make_batch(taken)
        except StoreError:
            self._queue.extendleft(reversed(taken))
            raise
        self._queued_bytes -= size
        self._queue_length.total -= len(taken)
        return True

    async def _make_batch(self, queued: Sequence[QueuedRecord]) -> Batch:
        """Find the sessions that records belong to, and make their rows. Raises: StoreError."""
        ended = [
            EndedTurn(turn=one.turn, time=one.time, failed=one.record.outcome != OK)
            for one in queued
            if one.turn is not None
        ]
        named = await call_store(find_names(ended, self.store, self._new_session_id)) if ended else NO_NAMES
        large = len(queued) > INLINE or any(one.bodies for one in queued)
        rows = await offload.run(large, self._make_rows, queued, named.names)
        return Batch(queued, named.add_records(rows))

    async def _write(self, batch: Batch) -> None:
        """Write the batch. Raises: StoreError if the store is unavailable; then the batch is kept.

        If only the batch fails, its records are written one by one, and those that cannot be written are dropped.
        """
        if batch.alone is None:
            try:
                while not await call_store(self.store.add_turns(batch.turns)):
                    again = await self._make_batch(batch.queued)  # another process continues the same request
                    batch.turns = again.turns
            except StoreError:
                await call_store(self.store.check())
                batch.alone = await self._start_alone(batch)
            else:
                self._settled += batch.left
        while batch.alone:
            try:
                await call_store(self.store.add_records(batch.alone[:1]))
            except StoreError:
                await call_store(self.store.check())
                self._drop(WRITE_FAILED)
            del batch.alone[0]
            self._settled += 1
        self._batch = None

    async def _start_alone(self, batch: Batch) -> list[RecordRow]:
        """Add the sessions of a batch that cannot be written as a whole. Returns its records. Raises: StoreError if the
        store is unavailable."""
        try:
            await call_store(self.store.add_turns(msgspec.structs.replace(batch.turns, records=())))
        except StoreError:
            await call_store(self.store.check())  # the records are worth more than their sessions
        return list(batch.turns.records)

    async def _fail(self, message: str) -> None:
        """Note that the store is unavailable, and wait before the next attempt."""
        if not self.problem or not self._failures:
            LOG.error("the store is unavailable, requests are answered without it: %s", self._describe(message))
        self.problem = self._describe(message)
        self._available.total = 0
        self._note_progress()
        pause = PAUSES[min(self._failures, len(PAUSES) - 1)]
        self._failures += 1
        if self._closing.is_set():
            await asyncio.sleep(PAUSES[0])
        else:
            await wait_for_event(self._closing, pause)

    def _succeed(self) -> None:
        if self._failures:
            LOG.warning("the store is available again")
        self.problem, self._failures = "", 0
        self._available.total = 1
        self._note_progress()

    def _note_progress(self) -> None:
        self._progress.set()
        self._progress = asyncio.Event()

    def _describe(self, message: str) -> str:
        return " ".join(redact(message, self._secrets).split())[:300] or "unknown reason"

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _make_rows(self, queued: Sequence[QueuedRecord], names: Iterable[str]) -> list[RecordRow]:
        """The rows of records; ``names`` are the sessions of those that had none."""
        left = iter(names)
        return [self._make_row(one, one.record.session if one.turn is None else next(left)) for one in queued]

    def _make_row(self, queued: QueuedRecord, session: str) -> RecordRow:
        record, known = queued.record, self._known
        if len(queued.key) >= SECRET_LENGTH:
            known = (*known, *list_spellings((queued.key,)))
        if session != record.session:
            record = msgspec.structs.replace(record, session=session)
        bodies = self._make_bodies(queued, record, known) if queued.bodies else {}
        request_id, model, client = record.request_id, record.model, record.client or record.agent
        encoded = msgspec.json.encode(record)
        if [secret for secret in known if secret.encode() in encoded]:
            encoded = encode_masked(record, known)
            request_id, model, client = (mask(text, known) for text in (request_id, model, client))
        return RecordRow(
            id=queued.id,
            request_id=request_id,
            owner=queued.owner,
            session=record.session,
            time=queued.time,
            wire=record.wire,
            model=model,
            upstream=record.upstream,
            status=record.status,
            outcome=record.outcome,
            data=encoded,
            bodies=bodies,
            client=client,
            counts=None if record.replay_of else count_turn(record),
        )

    def _make_bodies(self, queued: QueuedRecord, record: Record, known: Sequence[str]) -> dict[str, bytes]:
        bodies = {kind: self._redact_body(kind, data, record, known) for kind, data in list_bodies(queued)}
        return {**bodies, **write_trace(queued.trace)}

    def _redact_body(self, kind: str, data: bytes, record: Record, known: Sequence[str]) -> bytes:
        text = data.decode("utf-8", "replace")
        if kind in ("model", "reasoning"):
            text = redact(text, known)
        else:
            streamed = kind == "answer" and record.stream
            text = (redact_stream if streamed else redact_document)(text, known)
        if len(data) >= self.body_limit:
            text = text[:-CUT_TAIL]
        shortened = text.encode("utf-8", "replace")[: self._settings.max_body_bytes]
        return shortened.decode("utf-8", "ignore").encode()


def list_spellings(secrets: Iterable[str]) -> tuple[str, ...]:
    """Secrets, as they are and as JSON writes them; without those that are so short that they may be any text."""
    known = [text for text in secrets if len(text) >= SECRET_LENGTH]
    return (*known, *[escaped for text in known if (escaped := json.dumps(text)[1:-1]) != text])


def has_problem(record: Record) -> bool:
    """Whether a request failed, or a call of its answer was repaired, rejected or missed."""
    missed = any(NEAR_MISS in ends for ends in record.outcomes.values())
    return record.outcome != OK or bool(record.rejected or record.repairs) or missed


def list_bodies(queued: QueuedRecord) -> Iterator[tuple[str, bytes]]:
    """The bodies of a request, with the native calls of the model."""
    yield from queued.bodies.items()
    if queued.trace is not None and (calls := queued.trace.encode_calls()):
        yield "native_calls", calls


def write_trace(trace: Trace | None) -> dict[str, bytes]:
    """The body that holds a trace, which is numbers only."""
    return {} if trace is None or trace.is_empty else {"trace": trace.encode()}


def count_turn(record: Record) -> TurnCounts:
    """What a request adds to the totals of its session."""
    usage = record.usage or {}
    return TurnCounts(
        calls=record.calls,
        repairs=len(record.repairs),
        rejected=len(record.rejected),
        retries=max(0, len(record.attempts) - 1),
        failed=int(record.outcome != OK),
        input_tokens=usage.get("input_tokens", 0),
        output_tokens=usage.get("output_tokens", 0),
        seconds=record.duration,
    )


def encode_masked(record: Record, known: Sequence[str]) -> bytes:
    """A record as JSON, without known secrets. They are masked in values only, so that it stays a record."""
    fields = {name: mask_all(value, known) for name, value in msgspec.to_builtins(record).items()}
    return msgspec.json.encode({**fields, "time": record.time})


def mask_all(value: object, known: Iterable[str]) -> object:
    """A value of JSON with secrets masked in all of its texts."""
    if isinstance(value, str):
        return mask(value, known)
    if isinstance(value, list | tuple):
        return [mask_all(item, known) for item in value]
    if isinstance(value, dict):
        return {name: mask_all(item, known) for name, item in value.items()}
    return value


async def call_store(call: Awaitable[T], seconds: float = CALL_SECONDS) -> T:
    """The result of a call, which may not take long. Raises: StoreError."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError:
        raise StoreError(f"The store did not answer within {seconds:g} s.") from None


async def wait_for_event(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
