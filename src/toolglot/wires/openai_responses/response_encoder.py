"""Answers on the Responses wire, whole and streamed, written from events.

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi",
       "logprobs":[],"sequence_number":4}
"""

from __future__ import annotations

from collections.abc import Iterable

from toolglot.core.errors import UpstreamError
from toolglot.core.events import Event, Failed
from toolglot.core.json_numbers import encode
from toolglot.wires.openai_responses.output_items import OutputItems, Step, tell_error
from toolglot.wires.openai_responses.stream_position import StreamPosition
from toolglot.wires.protocol import ClientRequest, ResponseIdentity


class StreamEncoder:
    """Writes one streamed answer."""

    def __init__(self, answerer: ResponseIdentity, asked: ClientRequest) -> None:
        self.ladder = OutputItems(answerer, asked)
        self.number = 0

    def write(self, events: Iterable[Event]) -> bytes:
        """The steps for these events, in one piece."""
        out: list[bytes] = []
        for event in events:
            steps = self.ladder.take(event)
            if steps and not self.number:
                out += map(self.frame, self.greet())
            out += map(self.frame, steps)
        return b"".join(out)

    def resume(self, place: StreamPosition) -> None:
        """Somebody else took the steps as far as here."""
        self.number = place.number
        self.ladder.resume(place.response, place.marks[: place.length])

    def heartbeat(self) -> bytes:
        """The response is still in progress: some clients count only data as a sign of life."""
        steps = [self.proceed()] if self.number else self.greet()
        return b"".join(map(self.frame, steps))

    def greet(self) -> list[Step]:
        return [("response.created", {"response": self.unfinished()}), self.proceed()]

    def proceed(self) -> Step:
        return "response.in_progress", {"response": self.unfinished()}

    def unfinished(self) -> dict[str, object]:
        """The response as it was before anything was said."""
        return self.ladder.response | {"status": "in_progress", "output": [], "usage": None, "error": None}

    def frame(self, step: Step) -> bytes:
        framed = _frame(step, self.number)
        self.number += 1
        return framed


def _frame(step: Step, number: int) -> bytes:
    kind, fields = step
    data = encode({"type": kind, **fields, "sequence_number": number})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def interject(failure: Failed | None, *, begun: bool) -> bytes:
    """A sign of life, or a failure, inside a stream that an upstream writes. Nothing of it may name a response: clients
    stop at a second identity, and at anything that comes before the first."""
    if failure is not None:
        return _frame(tell_error(failure), 0)
    return _frame(("keepalive", {}), 0) if begun else b": waiting\n\n"


def encode_response(events: Iterable[Event], answerer: ResponseIdentity, asked: ClientRequest) -> bytes:
    """A whole answer. Calls that were cut are not in it."""
    ladder = OutputItems(answerer, asked)
    for event in events:
        ladder.take(event)
    if ladder.failure is not None:
        raise UpstreamError(ladder.failure.message)
    return encode(ladder.response)
