"""Runs cells of the fault matrix: a real client connection, a gateway, an upstream with a fault; and judges the outcome."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from faults.client_readers import Outcome, read_answer
from faults.faulty_upstream import TASK_NAME, faulty_upstream
from faults.network_faults import NETWORK_FAULTS, UNREACHABLE, End, Fault, PlannedResponse, Step
from faults.wire_data import ROOTS, TOOL, WIRES, make_answer, make_request

from toolglot.config import ModelSettings, Settings, Upstream, load
from toolglot.gateway.telemetry.record import Record
from toolglot.server.lifecycle import listening

MODES: Final = ("relay", "native", "text")
"""Without tools; with the tools of the wire; with tools in the prompt and calls as text."""
SILENCE: Final = 1.0
"""Seconds after which an upstream is given up that falls silent on purpose."""
PATIENCE: Final = 40.0
"""The same for all others, which may only be slow because the machine is busy."""
TIME_LIMIT: Final = 60.0
"""Seconds within which every cell must end; far more than needed, for a machine that is busy."""
AT_ONCE: Final = 24
FAULTS: Final[Mapping[str, Fault]] = {**NETWORK_FAULTS, **UNREACHABLE}


@dataclass(frozen=True)
class Cell:
    """One request under one fault."""

    fault: str
    client: str
    upstream: str
    mode: str
    stream: bool
    count: int = 6
    """Pieces of text in its answer."""
    number: int = 0
    """Distinguishes it from others of the same kind."""

    @property
    def name(self) -> str:
        form = "stream" if self.stream else "whole"
        return f"{self.fault}.{self.client}.{self.upstream}.{self.mode}.{form}.{self.count}.{self.number}"

    @classmethod
    def parse(cls, name: str) -> Cell:
        fault, client, upstream, mode, form, count, number = name.split(".")
        return cls(fault, client, upstream, mode, form == "stream", int(count), int(number))

    @property
    def kind(self) -> str:
        """The kind of upstream that it needs."""
        if self.fault in UNREACHABLE:
            return "down"
        steps = FAULTS[self.fault].make(self.plan_response())
        return "mute" if End.HANG in steps or End.DRIP in steps else "up"

    @property
    def pieces(self) -> list[str]:
        """The text of the answer; every piece names its cell."""
        return [f"{self.name}#{number} " for number in range(self.count)]

    @property
    def arguments(self) -> dict[str, str]:
        return {"filePath": self.name}

    @property
    def written(self) -> list[str]:
        """The call as text, where it is made so."""
        if self.mode != "text":
            return []
        call = json.dumps({"name": TOOL, "arguments": self.arguments})
        return ["\n<tool_call>\n", call[:20], call[20:], "\n</tool_call>"]

    def plan_response(self) -> PlannedResponse:
        """The response of the upstream without a fault."""
        call = (TOOL, self.arguments) if self.mode == "native" else None
        pieces = [*self.pieces, *self.written]
        return PlannedResponse(self.upstream, self.stream, make_answer(self.upstream, pieces, call, stream=self.stream))


def play(model: str) -> Iterable[Step]:
    """The steps of the upstream that was asked for a model."""
    cell = Cell.parse(model)
    return FAULTS[cell.fault].make(cell.plan_response())


def settle(port: int, closed_port: int) -> Settings:
    """Settings with an upstream for each wire, and models for each mode and upstream."""
    settings = load({"port": 0, "state_dir": "none", "base_url": "http://127.0.0.1:1/v1"}, {})
    upstreams, models = [], []
    for wire in WIRES:
        for kind, number, timeout in (("up", port, PATIENCE), ("mute", port, SILENCE), ("down", closed_port, PATIENCE)):
            base_url = f"http://127.0.0.1:{number}{ROOTS[wire]}"
            upstreams.append(Upstream(f"{kind}-{wire}", base_url, wire=wire, read_timeout=timeout))
            for mode in MODES:
                named = f"{kind}.{mode}.{wire}.*"
                how = "text" if mode == "text" else "native"
                models.append(
                    ModelSettings(name=named, upstream=f"{kind}-{wire}", model="*", mode=how, dialect="hermes")
                )

    return replace(settings, upstreams=tuple(upstreams), models=tuple(models))


class Records(logging.Handler):
    """The records of requests by their id, and every complaint of the server."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.by_request: dict[str, Record] = {}
        self.complaints: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if isinstance(record.msg, Record):
            self.by_request[record.msg.request_id] = record.msg
        elif record.levelno >= logging.WARNING:
            self.complaints.append(self.format(record))


@contextmanager
def recording() -> Iterator[Records]:
    log, records = logging.getLogger("toolglot"), Records()
    level, log.level = log.level, logging.INFO
    log.addHandler(records)
    log._cache.clear()  # type: ignore[attr-defined]
    try:
        log.setLevel(logging.INFO)
        yield records
    finally:
        log.removeHandler(records)
        log.setLevel(level)


async def exchange(port: int, path: str, body: bytes, request_id: str) -> tuple[int, bytes, bool]:
    """Ask over a new connection: status, body, and whether the body is complete according to HTTP."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: {request_id}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        received = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(received.split()[1])
        if b"transfer-encoding: chunked" in received:
            return status, *await read_chunks(reader)
        found = re.search(rb"content-length: (\d+)", received)
        assert found is not None, received
        try:
            return status, await reader.readexactly(int(found[1])), True
        except asyncio.IncompleteReadError as error:
            return status, error.partial, False
    finally:
        writer.close()


async def read_chunks(reader: asyncio.StreamReader) -> tuple[bytes, bool]:
    received = b""
    with suppress(asyncio.IncompleteReadError, ConnectionError, ValueError):
        while size := int(await reader.readuntil(b"\r\n"), 16):
            received += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
        return received, True
    return received, False


async def run_cell(cell: Cell, port: int) -> Outcome:
    model = f"{cell.kind}.{cell.mode}.{cell.upstream}.{cell.name}"
    path, body = make_request(cell.client, model, stream=cell.stream, tools=cell.mode != "relay")
    try:
        async with asyncio.timeout(TIME_LIMIT):
            status, encoded, complete = await exchange(port, path, json.dumps(body).encode(), cell.name)
    except TimeoutError:
        return Outcome("endless")
    except (ConnectionError, asyncio.IncompleteReadError) as error:
        return Outcome("cut", why=repr(error))
    return read_answer(cell.client, status, encoded, stream=cell.stream, complete=complete)


def judge(cell: Cell, outcome: Outcome, record: Record | None) -> str:
    """What is wrong with an outcome; empty: nothing."""
    fault = FAULTS[cell.fault]
    expected = fault.streamed if cell.stream else fault.whole
    if outcome.end not in expected:
        return (
            f"the client got {outcome.end} ({outcome.status} {outcome.why}) instead of {' or '.join(sorted(expected))}"
        )
    if fault.status and outcome.end == "error" and outcome.status != fault.status:
        return f"the status is {outcome.status}, not {fault.status}"
    whole = "".join(cell.pieces).strip()
    calls = [] if cell.mode == "relay" else [(TOOL, cell.arguments)]
    if outcome.end == "ok" and (outcome.text.strip(), outcome.calls) != (whole, calls):
        return f"the answer differs from the plan: {outcome.text!r} {outcome.calls}"
    if not "".join([*cell.pieces, *cell.written]).startswith(outcome.text.strip()):
        return f"the text is not in the plan: {outcome.text!r}"
    return judge_record(outcome, record, may_fail=len(expected) > 1)


def judge_record(outcome: Outcome, record: Record | None, *, may_fail: bool) -> str:
    """Whether the record agrees with what the client saw. ``may_fail``: it may have a fault after the end."""
    if record is None:
        return "there is no record"
    if outcome.end == "ok" and (record.status != 200 or (record.error and not may_fail)):
        return f"the record has {record.status} {record.error!r} for an answer that is fine"
    if outcome.end in ("error", "error_event") and not record.error:
        return f"the record ({record.status}, finish {record.finish!r}) has no error"
    if outcome.end == "error" and record.status != outcome.status:
        return f"the record has {record.status}, the client {outcome.status}"
    return ""


@cache
def _bound_socket() -> socket.socket:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    return bound


def closed_port() -> int:
    """A port that refuses connections: it is bound and never listens, so that no other server can take it."""
    return int(_bound_socket().getsockname()[1])


@asynccontextmanager
async def matrix() -> AsyncIterator[tuple[int, Records]]:
    """A gateway before an upstream that plays faults: its port and the records."""
    with recording() as records:
        async with faulty_upstream(lambda model: list(play(model))) as port:
            async with listening(settle(port, closed_port())) as address:
                yield int(address.rpartition(":")[2]), records


async def run_cells(cells: Iterable[Cell], at_once: int = AT_ONCE) -> list[str]:
    """Run all cells, some at a time; what is wrong, a line for each."""
    wrong: list[str] = []
    todo = iter(cells)
    async with matrix() as (port, records):
        before = count_tasks()

        async def work() -> None:
            for cell in todo:
                began = time.monotonic()
                outcome = await run_cell(cell, port)
                problem = judge(cell, outcome, await find_record(records, cell.name))
                if problem:
                    wrong.append(f"{cell.name} ({time.monotonic() - began:.1f} s): {problem}")

        await asyncio.gather(*(work() for _ in range(at_once)))
        fine = Cell("usual_chunked", "openai_chat", "openai_chat", "native", True, number=1)
        if problem := judge(fine, await run_cell(fine, port), await find_record(records, fine.name)):
            wrong.append(f"afterwards the gateway does not answer as before: {problem}")
        wrong += [f"the log says: {line}" for line in records.complaints]
        if left := await count_left(before):
            wrong.append(f"{left} tasks are left")
    return wrong


def count_tasks() -> int:
    """The tasks of gateway and clients."""
    return sum(task.get_name() != TASK_NAME for task in asyncio.all_tasks())


async def count_left(before: int) -> int:
    """How many tasks there are more than before, when all have had time to end."""
    for _ in range(100):
        if (left := count_tasks() - before) <= 0:
            return 0
        await asyncio.sleep(0.05)
    return left


async def find_record(records: Records, name: str) -> Record | None:
    """The record is written right after the last byte."""
    for _ in range(100):
        if name in records.by_request:
            break
        await asyncio.sleep(0.01)
    return records.by_request.get(name)


def plan(client: str, upstream: str, faults: Iterable[str] = tuple(FAULTS)) -> list[Cell]:
    return [
        Cell(fault, client, upstream, mode, stream) for mode in MODES for fault in faults for stream in (True, False)
    ]


def describe(wrong: list[str], limit: int = 40) -> str:
    more = [f"... and {len(wrong) - limit} more"] if len(wrong) > limit else []
    return "\n".join([f"{len(wrong)} wrong:", *sorted(wrong)[:limit], *more])
