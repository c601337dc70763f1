"""Encode events as responses of the Responses wire, streamed or not.

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi",
       "logprobs":[],"sequence_number":4}
"""

from __future__ import annotations

from collections.abc import Iterable

from toolglot.core.errors import UpstreamError
from toolglot.core.events import Event, Failed
from toolglot.core.json_numbers import encode
from toolglot.wires.openai_responses.output_items import OutputItems, Step, encode_error_step
from toolglot.wires.openai_responses.stream_position import StreamPosition
from toolglot.wires.protocol import ClientRequest, ResponseIdentity


class StreamEncoder:
    """Encodes one streamed response."""

    def __init__(self, identity: ResponseIdentity, request: ClientRequest) -> None:
        self.items = OutputItems(identity, request)
        self.number = 0

    def write(self, events: Iterable[Event]) -> bytes:
        """Encode the events as joined server-sent events."""
        out: list[bytes] = []
        for event in events:
            steps = self.items.take(event)
            if steps and not self.number:
                out += map(self.encode_event, self.start())
            out += map(self.encode_event, steps)
        return b"".join(out)

    def resume(self, place: StreamPosition) -> None:
        """Continue after a beginning that was passed through."""
        self.number = place.number
        self.items.resume(place.response, place.marks[: place.length])

    def heartbeat(self) -> bytes:
        """A progress event: for some clients only data resets the timeout."""
        steps = [self.proceed()] if self.number else self.start()
        return b"".join(map(self.encode_event, steps))

    def start(self) -> list[Step]:
        return [("response.created", {"response": self.unfinished()}), self.proceed()]

    def proceed(self) -> Step:
        return "response.in_progress", {"response": self.unfinished()}

    def unfinished(self) -> dict[str, object]:
        """The response object without output."""
        return self.items.response | {"status": "in_progress", "output": [], "usage": None, "error": None}

    def encode_event(self, step: Step) -> bytes:
        encoded = _encode_event(step, self.number)
        self.number += 1
        return encoded


def _encode_event(step: Step, number: int) -> bytes:
    kind, fields = step
    data = encode({"type": kind, **fields, "sequence_number": number})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def interject(failure: Failed | None, *, begun: bool) -> bytes:
    """A heartbeat or a failure inside a relayed stream. It must not name a response: clients stop at a second id
    and at any event before the first."""
    if failure is not None:
        return _encode_event(encode_error_step(failure), 0)
    return _encode_event(("keepalive", {}), 0) if begun else b": waiting\n\n"


def encode_response(events: Iterable[Event], identity: ResponseIdentity, request: ClientRequest) -> bytes:
    """Encode a non-streamed response; calls that never ended are left out."""
    items = OutputItems(identity, request)
    for event in events:
        items.take(event)
    if items.failure is not None:
        raise UpstreamError(items.failure.message)
    return encode(items.response)
