"""The API of the view Playground: read any text with any tools, and show the answer on every wire.

GET  /dialects
POST /playground     {"text", "tools", "dialect", "size", "truncated", "unknown_tools"}

Nothing is stored and no model is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from msgspec import Struct, to_builtins

import toolglot
from toolglot.console import work
from toolglot.console.app import ConsoleContext
from toolglot.console.parameters import encode_json, make_response, read_body
from toolglot.console.spans import find_shown, list_regions, split
from toolglot.core.conversation import Conversation
from toolglot.core.errors import ClientError, RequestError
from toolglot.core.events import CallRejected, Event, Finished, Started, merge_deltas
from toolglot.core.schema.toolset import CompiledTools, compile_declared
from toolglot.gateway.mounting import HttpRequest, Response, Route
from toolglot.reading.reader import Reading, collect
from toolglot.wires import client_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

MAX_TEXT: Final = 1_000_000
MAX_EVENTS: Final = 2000
"""Events that are listed; the rest is counted only."""
MAX_PARSED: Final = 100_000
"""Characters above which a text is not read in chunks of a few characters, which takes long."""
AUTO: Final = "auto"
FEEDBACK_DIALECT: Final = "hermes"
"""The dialect of feedback on calls whose own dialect is unknown."""
UNKNOWN_TOOLS: Final = ("allow", "text", "reject")
STOP, TOOL_CALLS, LENGTH = "stop", "tool_calls", "length"


class PlaygroundInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text and how it is read. ``size`` is that of the chunks; 0 reads the text whole."""

    text: str
    tools: list[Any] = []
    dialect: str = AUTO
    size: int = 0
    truncated: bool = False
    unknown_tools: str = "allow"


class PlaygroundView:
    """Reads texts that a person pastes."""

    def __init__(self, context: ConsoleContext) -> None:
        self.context = context

    def routes(self) -> Iterable[Route]:
        yield "GET", "/dialects", self.list_dialects
        yield "POST", "/playground", self.read

    async def list_dialects(self, request: HttpRequest) -> Response:
        return make_response([{"name": one.name, "sample": one.sample} for one in toolglot.list_dialects()])

    async def read(self, request: HttpRequest) -> Response:
        given = await read_body(request, PlaygroundInput)
        check_input(given)
        return Response(await work.run(read_input, given))


def check_input(given: PlaygroundInput) -> None:
    """Raises: RequestError."""
    if len(given.text) > MAX_TEXT:
        raise RequestError(f"text must have at most {MAX_TEXT:,} characters.", "text")
    if given.unknown_tools not in UNKNOWN_TOOLS:
        raise RequestError(f"unknown_tools must be one of {', '.join(UNKNOWN_TOOLS)}.", "unknown_tools")
    if given.size < 0:
        raise RequestError("size must be 0 or the number of characters of a chunk.", "size")
    if 0 < given.size < 16 and len(given.text) > MAX_PARSED:
        raise RequestError(f"texts of more than {MAX_PARSED:,} characters need chunks of at least 16.", "size")


def read_input(given: PlaygroundInput) -> bytes:
    """What the page shows, as JSON. Raises: RequestError if tools or dialect cannot be used."""
    try:
        tools = compile_declared(given.tools, ())
        reader = toolglot.Reader(tools, given.dialect, unknown_tools=given.unknown_tools)
    except ClientError as error:
        raise RequestError(error.message) from None
    text, size = given.text, given.size or max(len(given.text), 1)
    steps = [reader.feed(text[at : at + size]) for at in range(0, len(text), size)]
    steps.append(reader.close(truncated=given.truncated))
    events = [event for step in steps for event in step]
    reading = collect(events, text)
    regions = list(list_regions(text, reading))
    regions += find_shown(text, regions, tools.names, partial(read_alone, given, tools))
    shown = [(at, event) for at, step in enumerate(steps) for event in step][:MAX_EVENTS]
    return encode_json(
        {
            "segments": split(text, regions),
            "text": reading.text,
            "reasoning": reading.reasoning,
            "calls": [describe_call(call) for call in reading.calls],
            "rejected": [describe_rejected(rejected, given) for rejected in reading.rejected],
            "events": [{"chunk": at, "event": type(event).__name__, **to_builtins(event)} for at, event in shown],
            "event_count": len(events),
            "wires": encode_answer(events, reading, given.truncated),
        }
    )


def read_alone(given: PlaygroundInput, tools: CompiledTools, piece: str) -> Reading:
    """A piece of the text as if there were nothing around it."""
    return toolglot.read(piece, tools, given.dialect, unknown_tools=given.unknown_tools)


def describe_call(call: toolglot.Call) -> dict[str, Any]:
    return {
        "name": call.name,
        "arguments": call.arguments,
        "dialect": call.dialect,
        "confidence": call.confidence,
        "repairs": call.repairs,
    }


def describe_rejected(rejected: toolglot.RejectedCall, given: PlaygroundInput) -> dict[str, Any]:
    """A rejected call with the feedback for the model."""
    dialect = rejected.dialect or (FEEDBACK_DIALECT if given.dialect == AUTO else given.dialect)
    return {
        "raw": rejected.raw,
        "reason": rejected.reason,
        "tool": rejected.tool,
        "dialect": rejected.dialect,
        "defects": [str(defect) for defect in rejected.defects],
        "feedback": toolglot.feedback(rejected, given.tools, dialect),
    }


def encode_answer(events: list[Event], reading: Reading, truncated: bool) -> dict[str, str]:
    """The whole answer as each client wire carries it."""
    finish = LENGTH if truncated else TOOL_CALLS if reading.calls else STOP
    delivered = [event for event in merge_deltas(events) if not isinstance(event, CallRejected)]
    ended = {event.index for event in delivered if isinstance(event, toolglot.CallEnded)}
    complete = [event for event in delivered if getattr(event, "index", None) in (None, *ended)]
    identity = ResponseIdentity("playground", 0, "model")
    request = ClientRequest(conversation=Conversation("model", ()))
    answer = [Started("", "model"), *complete, Finished(finish)]
    return {name: wire.encode_response(answer, identity, request).decode() for name, wire in client_wires().items()}
