"""Convert events to output items of the Responses wire, each with its sequence of stream events (steps).

    added -> part added -> deltas -> text done -> part done -> item done

Strategy. Clients take items from different steps (one only from the last, another only from the deltas), so every item
goes through all of them. A non-streamed response is the response object of the last step. Calls may be open at the
same time.

A truncated call is never done, because an agent runs every call that is; a call without an end fails the response.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from toolglot.core.error_guide import make_failure
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ProviderEvent,
    ReasoningDelta,
    ReasoningSigned,
    TextDelta,
    Usage,
)
from toolglot.wires.openai_responses.errors import encode_failure
from toolglot.wires.openai_responses.request_decoder import NAME
from toolglot.wires.openai_responses.stream_position import StreamMark
from toolglot.wires.openai_responses.tools import INPUT
from toolglot.wires.protocol import ClientRequest, ResponseIdentity
from toolglot.wires.translation import CACHE_WRITTEN, CACHED, REASONED, find_count, wrap_signature
from toolglot.wires.vendor_fields import level

Step: TypeAlias = tuple[str, dict[str, Any]]
_PART = level("type", "text")
_ITEM = level(
    *("id", "type", "status", "role", "call_id", "name", "namespace", "arguments", "input"),
    "encrypted_content",
    summary=_PART,
    content=_PART,
)
_COUNTS = level("cached_tokens", "cache_write_tokens"), level("reasoning_tokens")
_USAGE = level(
    *("input_tokens", "output_tokens", "total_tokens"),
    **{"input_tokens_details": _COUNTS[0], "output_tokens_details": _COUNTS[1]},
)
_RESPONSE = level(
    *("id", "object", "created_at", "status", "error", "model", "store", "instructions"),
    *("tools", "tool_choice", "parallel_tool_calls"),
    incomplete_details=level("reason"),
    output=_ITEM,
    usage=_USAGE,
)
_STEP = level(
    *("type", "sequence_number", "item_id", "output_index", "content_index", "summary_index", "delta"),
    *("arguments", "input", "name", "code", "message", "param"),
    **{"response": _RESPONSE, "item": _ITEM, "part": _PART, "text": {}},  # an object in answers, a string in events
)
_GIVEN = level("type", "text", "image_url", "detail")
KNOWN_REQUEST = level(
    tools=level("type", "name", "description", "parameters"),
    input=level(
        *("type", "role", "call_id", "name", "namespace", "arguments", "input", "output", "encrypted_content"),
        **{"summary": _PART, "content": _GIVEN},
    ),
)
"""The fields of items and tools that the encoder of requests writes."""
KNOWN_FIELDS = _RESPONSE | _STEP
"""The fields of an answer that this wire's encoder writes; see ``vendor_fields``. Others may echo the request as the
upstream got it, which is not the client's."""
CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass(slots=True)
class Item(ABC):
    """One output item. ``at`` is its index."""

    id: str
    at: int
    pieces: list[str] = field(default_factory=list)

    @abstractmethod
    def encode(self, status: str) -> dict[str, Any]: ...

    def start(self) -> list[Step]:
        return [self.move("added", "in_progress")]

    @abstractmethod
    def add(self, text: str) -> list[Step]: ...

    @abstractmethod
    def end(self, status: str = "completed") -> list[Step]: ...

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def move(self, step: str, status: str) -> Step:
        return f"response.output_item.{step}", {"output_index": self.at, "item": self.encode(status)}

    def step(self, kind: str, **fields: Any) -> Step:
        return f"response.{kind}", {"item_id": self.id, "output_index": self.at, **fields}


class TextItem(Item):
    """A message."""

    __slots__ = ()

    def part(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}

    def encode(self, status: str) -> dict[str, Any]:
        content = [] if status == "in_progress" else [self.part(self.text)]
        return {"id": self.id, "type": "message", "status": status, "role": "assistant", "content": content}

    def start(self) -> list[Step]:
        return [*Item.start(self), self.step("content_part.added", content_index=0, part=self.part(""))]

    def add(self, text: str) -> list[Step]:
        self.pieces.append(text)
        return [self.step("output_text.delta", content_index=0, delta=text, logprobs=[])]

    def end(self, status: str = "completed") -> list[Step]:
        return [
            self.step("output_text.done", content_index=0, text=self.text, logprobs=[]),
            self.step("content_part.done", content_index=0, part=self.part(self.text)),
            self.move("done", status),
        ]


@dataclass(slots=True)
class ReasoningItem(Item):
    """Reasoning, sent as a summary: the only form that every client shows."""

    signature: str = ""

    def part(self, text: str) -> dict[str, Any]:
        return {"type": "summary_text", "text": text}

    def encode(self, status: str) -> dict[str, Any]:
        encoded: dict[str, Any] = {"id": self.id, "type": "reasoning"}
        encoded["summary"] = [self.part(self.text)] if self.pieces and status != "in_progress" else []
        return encoded | {"encrypted_content": self.signature} if self.signature else encoded

    def add(self, text: str) -> list[Step]:
        first = not self.pieces
        self.pieces.append(text)
        opened = [self.step("reasoning_summary_part.added", summary_index=0, part=self.part(""))] if first else []
        return [*opened, self.step("reasoning_summary_text.delta", summary_index=0, delta=text)]

    def end(self, status: str = "completed") -> list[Step]:
        if not self.pieces:
            return [self.move("done", status)]
        return [
            self.step("reasoning_summary_text.done", summary_index=0, text=self.text),
            self.step("reasoning_summary_part.done", summary_index=0, part=self.part(self.text)),
            self.move("done", status),
        ]


@dataclass(slots=True)
class CallItem(Item):
    """A function call."""

    call: CallStarted = field(kw_only=True)
    name: str = ""
    namespace: str = ""

    def encode(self, status: str) -> dict[str, Any]:
        encoded = {"id": self.id, "type": "function_call", "status": status, "arguments": self.text}
        encoded |= {"call_id": self.call.id, "name": self.name}
        return encoded | {"namespace": self.namespace} if self.namespace else encoded

    def add(self, text: str) -> list[Step]:
        self.pieces.append(text)
        return [self.step("function_call_arguments.delta", delta=text)]

    def end(self, status: str = "completed") -> list[Step]:
        done = self.step("function_call_arguments.done", name=self.name, arguments=self.text)
        return [done, self.move("done", status)]


class CustomCallItem(CallItem):
    """A call of a custom tool: its text is inside the arguments and is extracted when they are complete."""

    __slots__ = ()

    def encode(self, status: str) -> dict[str, Any]:
        encoded = {"id": self.id, "type": "custom_tool_call", "status": status, "call_id": self.call.id}
        encoded |= {"name": self.name, "input": unwrap(self.text) if status != "in_progress" else ""}
        return encoded | {"namespace": self.namespace} if self.namespace else encoded

    def add(self, text: str) -> list[Step]:
        self.pieces.append(text)
        return []

    def end(self, status: str = "completed") -> list[Step]:
        text = unwrap(self.text)
        return [
            self.step("custom_tool_call_input.delta", delta=text),
            self.step("custom_tool_call_input.done", input=text),
            self.move("done", status),
        ]


def unwrap(arguments: str) -> str:
    """Extract the raw text from the arguments of a custom call, also if the model named the parameter differently."""
    try:
        encoded = json.loads(arguments)
    except ValueError:
        return arguments
    if not isinstance(encoded, dict):
        return encoded if isinstance(encoded, str) else arguments
    text = encoded.get(INPUT, next(iter(encoded.values()), "") if len(encoded) == 1 else None)
    return text if isinstance(text, str) else arguments


def _restore(at: int, item: Mapping[str, Any], index: int) -> Item:
    """Restore an item whose beginning was passed through."""
    if item["type"] == "function_call":
        call = CallStarted(index, item["call_id"], item["name"])
        return CallItem(item["id"], at, name=item["name"], namespace=str(item.get("namespace") or ""), call=call)
    return ReasoningItem(item["id"], at) if item["type"] == "reasoning" else TextItem(item["id"], at)


class OutputItems:
    """The output items of one response."""

    def __init__(self, identity: ResponseIdentity, request: ClientRequest) -> None:
        self.token = identity.id
        self.on_complete = request.on_complete
        self.custom = request.memory.get("custom", frozenset())
        self.namespaces: Mapping[str, tuple[str, str]] = request.memory.get("namespaces", {})
        self.response: dict[str, Any] = {
            "id": f"resp_{identity.id}",
            "object": "response",
            "created_at": identity.created,
            "status": "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": identity.model,
            "output": [],
            "parallel_tool_calls": request.conversation.sampling.parallel_calls is not False,
            "store": request.may_be_referenced,
            "temperature": request.conversation.sampling.temperature,
            "tool_choice": "auto",
            "tools": [],
            "top_p": request.conversation.sampling.top_p,
            "usage": None,
        }
        self.output: list[dict[str, Any] | None] = []
        self.open: Item | None = None
        self.calls: dict[int, CallItem] = {}
        self.failure: Failed | None = None

    def resume(self, response: Mapping[str, Any], marks: Iterable[StreamMark]) -> None:
        """Restore the state after a beginning that was passed through; ``marks`` are the changes of its items."""
        self.response |= response
        items: dict[int, Item] = {}
        calls: dict[int, int] = {}
        for at, encoded, done in marks:
            if isinstance(encoded, str):
                items[at].pieces.append(encoded)
            elif done:
                self.output[at] = dict(encoded)
                items.pop(at, None)
            else:
                self.output.append(None)
                if "call_id" in encoded:
                    calls[at] = len(calls)
                items[at] = _restore(at, encoded, calls.get(at, -1))
        self.calls = {item.call.index: item for item in items.values() if isinstance(item, CallItem)}
        self.open = next((item for item in items.values() if not isinstance(item, CallItem)), None)

    def take(self, event: Event) -> list[Step]:
        """Return the steps for an event."""
        known = _TAKEN.get(type(event))
        return known(self, event) if known is not None else []

    def reserve(self) -> tuple[str, int]:
        """Reserve an index for the next item; return its token and index."""
        self.output.append(None)
        return f"{self.token}_{len(self.output) - 1}", len(self.output) - 1

    def close(self, item: Item | None, status: str = "completed") -> list[Step]:
        if item is None:
            return []
        self.output[item.at] = item.encode(status)
        return item.end(status)

    def pause(self, status: str = "completed") -> list[Step]:
        """Close the open message or reasoning item."""
        item, self.open = self.open, None
        return self.close(item, status)

    def add_text(self, event: TextDelta) -> list[Step]:
        if isinstance(self.open, TextItem):
            return self.open.add(event.text)
        steps = self.pause()
        token, at = self.reserve()
        self.open = TextItem(f"msg_{token}", at)
        return [*steps, *self.open.start(), *self.open.add(event.text)]

    def add_reasoning(self, event: ReasoningDelta) -> list[Step]:
        steps, thought = self.open_reasoning()
        return [*steps, *thought.add(event.text)]

    def open_reasoning(self) -> tuple[list[Step], ReasoningItem]:
        if isinstance(self.open, ReasoningItem):
            return [], self.open
        steps = self.pause()
        token, at = self.reserve()
        self.open = thought = ReasoningItem(f"rs_{token}", at)
        return [*steps, *thought.start()], thought

    def add_signature(self, event: ReasoningSigned) -> list[Step]:
        steps, thought = self.open_reasoning()
        thought.signature = wrap_signature(event.signature, event.kind, NAME)
        return [*steps, *self.pause()]

    def start_call(self, event: CallStarted) -> list[Step]:
        steps = self.pause()
        token, at = self.reserve()
        namespace, name = self.namespaces.get(event.name, ("", event.name))
        if event.name in self.custom:
            call: CallItem = CustomCallItem(f"ctc_{token}", at, name=name, namespace=namespace, call=event)
        else:
            call = CallItem(f"fc_{token}", at, name=name, namespace=namespace, call=event)
        self.calls[event.index] = call
        return [*steps, *call.start()]

    def add_arguments(self, event: CallArguments) -> list[Step]:
        return self.calls[event.index].add(event.fragment)

    def end_call(self, event: CallEnded) -> list[Step]:
        return self.close(self.calls.pop(event.index))

    def carry(self, event: ProviderEvent) -> list[Step]:
        """Pass an item without a neutral form, such as a web search of the upstream."""
        if event.wire != NAME:
            return []
        steps = self.pause()
        _, at = self.reserve()
        self.output[at] = event.data
        encoded = {"output_index": at, "item": event.data}
        return [*steps, ("response.output_item.added", encoded), ("response.output_item.done", encoded)]

    # -- end of response -----------------------------------------------------------------------------------------------

    def finish(self, event: Finished) -> list[Step]:
        cut = CUT.get(event.reason)
        steps = self.pause("incomplete" if cut else "completed")
        left = [] if cut else list(self.calls.values())
        if left:
            names = ", ".join(call.name for call in left)
            failure = make_failure("refused_call", f"The call of {names} has no end and was not made.")
            return [*steps, *self.fail(failure)]
        if cut:
            self.response["incomplete_details"] = {"reason": cut}
        return [*steps, self.stop("incomplete" if cut else "completed", encode_usage(event.usage))]

    def fail(self, event: Failed) -> list[Step]:
        """Sent twice: some clients look for a failed response, others only for an error, flat or nested; some cannot
        parse a failed response without an error next to it."""
        self.failure = event
        encoded = {"code": event.kind, "message": event.message}
        self.response["error"] = encoded
        kind, failed = self.stop("failed")
        return [(kind, {**failed, "error": encoded}), encode_error_step(event)]

    def stop(self, status: str, usage: dict[str, Any] | None = None) -> Step:
        output = [item for item in self.output if item is not None]
        self.response |= {"status": status, "output": output, "usage": usage}
        if self.on_complete is not None and status != "failed":
            self.on_complete(self.response["id"], output)
        return f"response.{status}", {"response": self.response}


_TAKEN: Mapping[type, Callable[[OutputItems, Any], list[Step]]] = {
    TextDelta: OutputItems.add_text,
    ReasoningDelta: OutputItems.add_reasoning,
    ReasoningSigned: OutputItems.add_signature,
    CallStarted: OutputItems.start_call,
    CallArguments: OutputItems.add_arguments,
    CallEnded: OutputItems.end_call,
    ProviderEvent: OutputItems.carry,
    Finished: OutputItems.finish,
    Failed: OutputItems.fail,
}


def encode_error_step(failure: Failed) -> Step:
    encoded = encode_failure(failure.kind, failure.message)
    return "error", {**encoded, "type": "error", "error": encoded}


def encode_usage(usage: Usage | None) -> dict[str, Any]:
    usage = usage or Usage()
    details = {"cached_tokens": CACHED, "cache_write_tokens": CACHE_WRITTEN}
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {name: find_count(usage.reported, paths) for name, paths in details.items()},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": find_count(usage.reported, REASONED)},
        "total_tokens": usage.total_tokens or usage.input_tokens + usage.output_tokens,
    }
