"""What the tests of every wire share: answers as events, streams in every cutting, and a server that replays bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from aiohttp import web

from support.event_order import check_order
from support.loopback import Loop
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
    Usage,
    merge_deltas,
)
from toolglot.sim.server import running
from toolglot.wires.protocol import ResponseDecoder

PATH = '{"path":"ä\\n"}'
USAGE = Usage(input_tokens=11, output_tokens=7, total_tokens=18)


def call(index: int, name: str = "read", arguments: str = PATH, *, ended: bool = True) -> list[Event]:
    """A call in small pieces."""
    pieces = [arguments[at : at + 5] for at in range(0, len(arguments), 5)]
    events: list[Event] = [CallStarted(index, f"call_{index}", name)]
    events += [CallArguments(index, piece) for piece in pieces]
    return [*events, CallEnded(index)] if ended else events


ANSWERS: dict[str, list[Event]] = {
    "text": [TextDelta("Grüß "), TextDelta("dich 😀"), Finished("stop", USAGE)],
    "call": [*call(0), Finished("tool_calls", USAGE)],
    "calls": [*call(0), *call(1, "write", '{"n":[1,null]}'), Finished("tool_calls", USAGE)],
    "text_call": [TextDelta("I read."), *call(0), Finished("tool_calls", USAGE)],
    "call_text": [*call(0), TextDelta("Done."), Finished("tool_calls", USAGE)],
    "reasoning": [ReasoningDelta("Hm, "), ReasoningDelta("so."), *call(0), Finished("tool_calls", USAGE)],
    "length": [TextDelta("I was cut"), Finished("length", USAGE)],
    "cut_call": [TextDelta("I read."), *call(0, arguments=PATH[:10], ended=False), Finished("length", USAGE)],
    "filtered": [TextDelta("No"), Finished("content_filter", USAGE)],
    "error": [TextDelta("I read."), Failed("upstream_closed", "gone")],
}


def new_ids() -> Callable[[], str]:
    numbers = iter(range(1, 1000))
    return lambda: f"made_{next(numbers)}"


def read_pieces(reader: ResponseDecoder, stream: bytes, size: int = 0) -> list[Event]:
    """The events of a stream that is cut into pieces of one size, in a lawful order, deltas joined."""
    size = size or len(stream) or 1
    events = [event for at in range(0, len(stream), size) for event in reader.feed(stream[at : at + size])]
    events += reader.close()
    check_order(events)
    return list(merge_deltas(events))


def settle(events: Iterable[Event]) -> list[Event]:
    """An answer with its deltas joined."""
    return list(merge_deltas(events))


class Replay:
    """A server that gives the same answer to whatever it is asked, and remembers what that was."""

    def __init__(self) -> None:
        self.body = b""
        self.content_type = "text/event-stream"
        self.status = 200
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.app = web.Application()
        self.app.router.add_route("*", "/{path:.*}", self.answer)

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        self.asked.append((request.path_qs, dict(request.headers), body))
        return web.Response(body=self.body, status=self.status, content_type=self.content_type)


@contextmanager
def replaying(loop: Loop) -> Iterator[tuple[Replay, str]]:
    """Such a server and its address."""
    replay = Replay()
    with loop.entered(_run(replay)) as address:
        yield replay, address


@asynccontextmanager
async def _run(replay: Replay) -> AsyncIterator[str]:
    async with running(replay.app) as address:
        yield address
