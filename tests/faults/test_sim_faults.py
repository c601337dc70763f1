"""Every fault of the simulated model x client wires x streamed or whole x relay, native or text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import product

import pytest
from faults.cells import MODES, PATIENCE, SILENCE, TIME_LIMIT, Records, describe, exchange, find_record, recording
from faults.client_readers import Outcome, read_answer
from faults.sim_faults import EXPECTED, REFUSED
from faults.wire_data import TOOL, WIRES, make_request

from toolglot.config import ModelSettings, load
from toolglot.server.lifecycle import listening
from toolglot.sim import SimOptions, make_app, running

DIALECTS = {"relay": "native", "native": "native", "text": "hermes"}
AT_ONCE = 16
TIMEOUTS = {"up": PATIENCE, "mute": SILENCE}

Row = tuple[str, str, bool]


@asynccontextmanager
async def simulated() -> AsyncIterator[tuple[int, Records]]:
    with recording() as records:
        async with running(make_app(SimOptions(chunk=5, hang=20))) as sim:
            settings = load({"port": 0, "state_dir": "none", "base_url": sim + "/v1"}, {})
            (upstream,) = settings.upstreams
            upstreams = [replace(upstream, name=kind, read_timeout=timeout) for kind, timeout in TIMEOUTS.items()]
            models = [
                ModelSettings(
                    name=f"{kind}.{mode}.*",
                    upstream=kind,
                    model="*",
                    mode="text" if mode == "text" else "native",
                    dialect="hermes",
                )
                for kind in TIMEOUTS
                for mode in MODES
            ]
            settings = replace(settings, upstreams=tuple(upstreams), models=tuple(models))
            async with listening(settings) as address:
                yield int(address.rpartition(":")[2]), records


async def ask(port: int, client: str, row: Row) -> Outcome:
    fault, mode, stream = row
    model = f"{'mute' if fault.startswith('hang') else 'up'}.{mode}.sim:{DIALECTS[mode]}" + (
        f"+{fault}" if fault != "none" else ""
    )
    path, body = make_request(client, model, stream=stream, tools=mode != "relay")
    try:
        async with asyncio.timeout(TIME_LIMIT):
            status, encoded, complete = await exchange(port, path, json.dumps(body).encode(), name_row(client, row))
    except TimeoutError:
        return Outcome("endless")
    except (ConnectionError, asyncio.IncompleteReadError) as error:
        return Outcome("cut", why=repr(error))
    return read_answer(client, status, encoded, stream=stream, complete=complete)


def name_row(client: str, row: Row) -> str:
    fault, mode, stream = row
    return f"{fault}.{client}.{mode}.{'stream' if stream else 'whole'}"


def judge(row: Row, outcome: Outcome, error: str | None) -> str:
    fault, mode, stream = row
    expected = EXPECTED[fault][mode, stream]
    if outcome.end not in expected:
        return (
            f"the client got {outcome.end} ({outcome.status} {outcome.why}) instead of {' or '.join(sorted(expected))}"
        )
    if fault in REFUSED and outcome.status != REFUSED[fault]:
        return f"the status is {outcome.status}"
    if (
        outcome.end == "ok"
        and expected == {"ok"}
        and [name for name, _ in outcome.calls] != ([] if mode == "relay" else [TOOL])
    ):
        return f"the calls are {outcome.calls}"
    if any(not isinstance(arguments, dict) for _, arguments in outcome.calls):
        return f"arguments that are no object: {outcome.calls}"
    if error is None:
        return "there is no record"
    if outcome.end in ("error", "error_event") and not error:
        return "the record tells no error"
    return ""


@pytest.mark.parametrize("client", WIRES)
def test_faults_of_the_model_have_the_expected_outcome(client: str) -> None:
    wrong: list[str] = []

    async def run() -> None:
        rows = iter(product(EXPECTED, MODES, (True, False)))
        async with simulated() as (port, records):

            async def work() -> None:
                for row in rows:
                    outcome = await ask(port, client, row)
                    record = await find_record(records, name_row(client, row))
                    problem = judge(row, outcome, record.error if record else None)
                    if problem:
                        wrong.append(f"{name_row(client, row)}: {problem}")

            await asyncio.gather(*(work() for _ in range(AT_ONCE)))
            wrong.extend(f"the log says: {line}" for line in records.complaints)

    asyncio.run(run())
    assert not wrong, describe(wrong)
