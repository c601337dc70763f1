"""Streams cut at every byte: a client is given a complete call only if all of it arrived, on every wire.

*Strategy.* An upstream answers with one word and one call, natively or as text, and its connection ends after so many
bytes: it is closed, reset, or the body ends as HTTP wants it. The call is complete when the event with its last byte is;
before that, no client may see a call that is declared complete, or arguments that are a whole JSON object. Behind it,
the answer is the call or an error, and nothing else. Clients of all wires take turns.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import cache
from typing import Final

import pytest
from faults.cells import closed_port, describe, exchange, recording, settle
from faults.client_readers import Outcome, read_answer
from faults.faulty_upstream import faulty_upstream
from faults.network_faults import End, PlannedResponse, Step, chunk
from faults.scale import CUT_STEP
from faults.wire_data import TOOL, WIRES, make_answer, make_request

from toolglot.server.lifecycle import listening

LAST: Final = "the-end"
"""The end of the last argument; it stands nowhere else before the call is complete."""
ARGUMENTS: Final = {"filePath": f'a "b"\n{LAST}'}
WORD: Final = "Look. "
ENDS: Final = ("closed", "reset", "ended")
STEP_BEHIND: Final = 7
AT_ONCE: Final = 16


@cache
def plan_response(upstream: str, mode: str) -> PlannedResponse:
    call = json.dumps({"name": TOOL, "arguments": ARGUMENTS})
    written = ["\n<tool_call>\n", call[:20], call[20:], "\n</tool_call>"] if mode == "text" else []
    native = (TOOL, ARGUMENTS) if mode == "native" else None
    return PlannedResponse(upstream, True, make_answer(upstream, [WORD, *written], native, stream=True))


@cache
def find_complete(upstream: str, mode: str) -> int:
    """How many bytes it takes until the event with the last byte of the call is complete, but for its line end."""
    size = 0
    for event in plan_response(upstream, mode).pieces:
        if LAST.encode() in event:
            return size + len(event.rstrip())
        size += len(event)
    raise AssertionError("there is no call")


def cut(model: str) -> list[Step]:
    """The steps of an upstream whose model is named after the wire, the mode, the number of bytes and the end."""
    upstream, mode, size, end = model.split(".")
    plan = plan_response(upstream, mode)
    body = plan.body[: int(size)]
    sent: list[Step] = [plan.chunked_head(), *(chunk([body]) if body else ())]
    if end == "ended":
        return [*sent, b"0\r\n\r\n"]
    return [*sent, 0.01, End.RESET] if end == "reset" else [*sent, End.CLOSE]


def judge(outcome: Outcome, *, complete: bool, whole: bool) -> str:
    """What is wrong with the answer of a client. ``complete``: the call came; ``whole``: so did the rest."""
    meant = [(TOOL, ARGUMENTS)]
    if outcome.end == "ok" and outcome.calls == meant and complete:
        return ""
    if whole:
        return f"the answer came, and the client got {outcome}"
    if outcome.end not in ("error", "error_event"):
        return f"the stream was cut, and the client got {outcome}"
    if complete:
        wrong = [call for call in outcome.closed if json.loads(call[1]) != ARGUMENTS]
        return f"a call that was not made: {wrong}" if wrong else ""
    if outcome.closed:
        return f"a call was declared complete: {outcome.closed}"
    if closed := [call for call in outcome.begun if is_object(call[1])]:
        return f"arguments were made complete: {closed}"
    beginning = outcome.text.strip()[: len(WORD.strip())]
    return "" if WORD.startswith(beginning) else f"text that was not written: {outcome.text!r}"


def is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


def list_cuts(upstream: str, mode: str) -> Iterator[tuple[str, int, str]]:
    """Clients, sizes and ends, in turn: every byte until the call is complete, some behind it, and all of them."""
    body, complete = plan_response(upstream, mode).body, find_complete(upstream, mode)
    for at in (*range(0, complete, CUT_STEP), *range(complete, len(body.rstrip()), STEP_BEHIND)):
        yield WIRES[at % len(WIRES)], at, ENDS[at // len(WIRES) % len(ENDS)]
    yield from ((client, len(body), end) for client in WIRES for end in ENDS)


@pytest.mark.parametrize("mode", ["native", "text"])
@pytest.mark.parametrize("upstream", WIRES)
def test_a_cut_call_is_never_complete(upstream: str, mode: str) -> None:
    wrong: list[str] = []
    complete, body = find_complete(upstream, mode), plan_response(upstream, mode).body

    async def run() -> None:
        cuts = list_cuts(upstream, mode)
        with recording():
            async with faulty_upstream(cut) as up, listening(settle(up, closed_port())) as address:
                port = int(address.rpartition(":")[2])

                async def work() -> None:
                    for client, size, end in cuts:
                        name = f"{upstream}.{mode}.{size}.{end}"
                        path, asked = make_request(client, f"up.{mode}.{upstream}.{name}", stream=True, tools=True)
                        status, got, http = await exchange(port, path, json.dumps(asked).encode(), name)
                        outcome = read_answer(client, status, got, stream=True, complete=http)
                        whole = size == len(body) and end == "ended"
                        if problem := judge(outcome, complete=size >= complete, whole=whole):
                            wrong.append(f"{client} {name} of {complete}, {len(body)}: {problem}")

                async with asyncio.timeout(300):
                    await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    asyncio.run(run())
    assert not wrong, describe(wrong)
