"""Encode events as Chat Completions responses, streamed or not.

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":
          {"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"read","arguments":""}}]},
          "finish_reason":null}]}

Strategy. Everything around a delta is the same in every chunk of a response, so a chunk is a prefix, an escaped string
and a suffix. Clients join strings that are sent twice: role, id and name are each sent once. Every response ends with
a finish reason, because agents retry forever when it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    ReasoningSigned,
    TextDelta,
    Usage,
)
from toolglot.core.json_numbers import encode
from toolglot.wires.chunk_pattern import ChunkPattern, Path, infer_pattern
from toolglot.wires.json_fields import dicts_in
from toolglot.wires.openai_chat.errors import encode_failure
from toolglot.wires.openai_chat.finish_reasons import unify_finish
from toolglot.wires.openai_chat.function_fields import FUNCTIONS
from toolglot.wires.openai_chat.request_decoder import NAME, write_signature
from toolglot.wires.protocol import ClientRequest, HeadedEncoder, ResponseIdentity
from toolglot.wires.translation import CACHED, REASONED, find_count, table_at
from toolglot.wires.vendor_fields import find_unknown, level

OPEN = b'},"finish_reason":null}]}\n\n'
"""Suffix of a chunk without a finish reason."""

DONE = b"data: [DONE]\n\n"
_SIGNED = level(google=level("thought_signature"))
_CALL = level("index", "id", "type", function=level("name", "arguments"), extra_content=_SIGNED)
_MESSAGE = level(
    *("role", "content", "function_call", "reasoning_content"),
    tool_calls=_CALL,
    refusal="content",
    reasoning="reasoning_content",
    extra_content=_SIGNED,
)
_PART = level("type", "text", image_url=level("url", "detail"))
_FUNCTION = level("type", function=level("name", "description", "parameters"))
KNOWN_REQUEST = level(tools=_FUNCTION, messages={**_MESSAGE, "tool_call_id": None, "content": _PART})
"""The fields of messages and tools that the encoder of requests writes."""
_CHOICE = level("index", finish_reason=unify_finish, message=_MESSAGE, delta=_MESSAGE)
KNOWN_FIELDS = level("id", "object", "created", "model", "usage", "error", choices=_CHOICE)
"""The fields of an answer that this wire's encoder writes; see ``vendor_fields``."""
ARGUMENTS = b'"tool_calls":[{"index":%d,"function":{"arguments":%b}}]'


class StreamEncoder(HeadedEncoder):
    """Encodes one streamed response."""

    def __init__(self, identity: ResponseIdentity, request: ClientRequest) -> None:
        self.head: dict[str, Any] = {
            "id": f"chatcmpl-{identity.id}",
            "object": "chat.completion.chunk",
            "created": identity.created,
            "model": identity.model,
        }
        self.keep_constant({})
        self.closing = OPEN
        self.role = b'"role":"assistant",'
        self.wants_usage = request.wants_usage
        self.signature = ""

    def keep_constant(self, fields: Mapping[str, Any]) -> None:
        """Add these fields to all further chunks."""
        self.bare = head = b"data: " + encode({**self.head, **fields})[:-1] + b',"choices":['
        self.prefix = head + b'{"index":0,"delta":{'

    def infer_pattern(self, chunk: bytes, payload: Mapping[str, Any], fields: Iterable[str]) -> ChunkPattern | None:
        """The pattern of further chunks; see ``HeadedEncoder``."""
        choice = _find_text(payload)
        inside = sorted(find_unknown(choice, _CHOICE, with_null=False).keys() - _CHOICE.keys())
        after = sorted(set(fields) - KNOWN_FIELDS.keys())
        paths: list[Path] = [("choices", 0, "delta", "content"), *(("choices", 0, name) for name in inside)]
        pattern = infer_pattern(chunk, [*paths, *((name,) for name in after)]) if choice else None
        if pattern is not None:
            self.closing = b'},"finish_reason":null' + _write_names(inside) + b"}]" + _write_names(after) + b"}\n\n"
        return pattern

    def add_values(self, written: bytes, values: tuple[bytes, ...]) -> bytes:
        """Add the values of fields after the text of a chunk."""
        return written[: -len(OPEN)] + self.closing % values

    def write(self, events: Sequence[Event]) -> bytes:
        """Encode the events as joined chunks."""
        return self.step(events[0]) if len(events) == 1 else b"".join(map(self.step, events))

    def step(self, event: Event) -> bytes:
        if type(event) is TextDelta:
            delta = b'"content":' + encode(event.text)
        elif type(event) is CallArguments:
            delta = ARGUMENTS % (event.index, encode(event.fragment))
        elif type(event) is ReasoningDelta:
            delta = b'"reasoning_content":' + encode(event.text)
        else:
            return STEPS[type(event)](self, event) if type(event) in STEPS else b""
        if self.role:
            delta, self.role = self.role + delta, b""
        return self.prefix + delta + OPEN

    def resume(self, place: object) -> None:
        """The beginning of the response was passed through: the role is sent."""
        self.role = b""

    def heartbeat(self) -> bytes:
        """An empty delta: for some clients only data resets the timeout."""
        return self.prefix + OPEN

    def put(self, encoded: dict[str, Any]) -> bytes:
        """Encode a delta with these fields."""
        first, self.role = self.role, b""
        return b"".join((self.prefix, first, encode(encoded)[1:-1], OPEN))

    def start_call(self, event: CallStarted) -> bytes:
        signature, self.signature = self.signature, ""
        function = {"name": event.name, "arguments": ""}
        encoded = {"index": event.index, "id": event.id, "type": "function", "function": function}
        return self.put({"tool_calls": [encoded | write_signature(signature) if signature else encoded]})

    def keep_signature(self, event: ReasoningSigned) -> bytes:
        """A signature of this wire waits for the next call; the chat wire has no field for others."""
        self.signature = event.signature if event.kind == NAME else self.signature
        return b""

    def finish(self, event: Finished) -> bytes:
        before = self.put(write_signature(self.signature)) if self.signature else b""
        first, self.role = self.role[:-1], b""
        encoded = before + self.prefix + first + b'},"finish_reason":' + encode(event.reason) + b"}]}\n\n"
        if self.wants_usage:
            encoded += self.bare + b'],"usage":' + encode(_encode_usage(event.usage)) + b"}\n\n"
        return encoded + DONE

    def fail(self, event: Failed) -> bytes:
        return b"data: " + encode_failure(event.kind, event.message) + b"\n\n"


def _find_text(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The choice of a chunk that has nothing that its wire knows but text; empty if it has more."""
    choices = dicts_in(payload.get("choices"))
    alone = len(choices) == 1 and not (payload.get("usage") or payload.get("error"))
    return choices[0] if alone and _is_only_text(choices[0]) else {}


def _is_only_text(choice: Mapping[str, Any]) -> bool:
    delta = table_at(choice, "delta")
    fields = set(filter(choice.get, ("index", "finish_reason", "message"))), set(filter(delta.get, delta)) - {"role"}
    return fields == (set(), {"content"}) and not find_unknown(delta, _MESSAGE, with_null=False)


def _write_names(names: Iterable[str]) -> bytes:
    return b"".join([b"," + encode(name).replace(b"%", b"%%") + b":%b" for name in names])


STEPS: dict[type, Callable[[StreamEncoder, Any], bytes]] = {
    CallStarted: StreamEncoder.start_call,
    ReasoningSigned: StreamEncoder.keep_signature,
    Finished: StreamEncoder.finish,
    Failed: StreamEncoder.fail,
}


class FunctionCallEncoder(StreamEncoder):
    """Encodes a streamed response for a client that offers functions: its call is a ``function_call``. There is one at
    most."""

    call: CallStarted | None = None

    def step(self, event: Event) -> bytes:
        if isinstance(event, CallStarted):
            if self.call is not None:
                return b""
            self.call = event
            started = {"function_call": {"name": event.name, "arguments": ""}}
            return self.put({"content": None, **started} if self.role else started)
        if isinstance(event, CallArguments):
            known = self.call is not None and event.index == self.call.index
            return self.put({"function_call": {"arguments": event.fragment}}) if known else b""
        return super().step(_name_finish(event) if isinstance(event, Finished) else event)


def _name_finish(event: Finished) -> Finished:
    return Finished("function_call", event.usage) if event.reason == "tool_calls" else event


def open_encoder(identity: ResponseIdentity, request: ClientRequest) -> StreamEncoder:
    """Open the encoder of one streamed response."""
    return (FunctionCallEncoder if request.memory.get(FUNCTIONS) else StreamEncoder)(identity, request)


def encode_response(events: Iterable[Event], identity: ResponseIdentity, request: ClientRequest) -> bytes:
    """Encode a non-streamed response; calls that never ended are left out."""
    texts: dict[type, list[str]] = {TextDelta: [], ReasoningDelta: []}
    calls: dict[int, tuple[CallStarted, list[str]]] = {}
    complete: dict[int, dict[str, Any]] = {}
    finished, signature = Finished("stop"), ""
    signed: dict[int, str] = {}
    for event in events:
        match event:
            case TextDelta() | ReasoningDelta():
                texts[type(event)].append(event.text)
            case ReasoningSigned(kind=kind) if kind == NAME:
                signature = event.signature
            case CallStarted():
                calls[event.index] = (event, [])
                signed[event.index], signature = signature, ""
            case CallArguments():
                calls[event.index][1].append(event.fragment)
            case CallEnded():
                complete[event.index] = _encode_call(*calls[event.index]) | write_signature(signed[event.index])
            case Finished():
                finished = event
    text, thought = "".join(texts[TextDelta]), "".join(texts[ReasoningDelta])
    message: dict[str, Any] = {"role": "assistant", "content": text if text or not complete else None}
    message |= write_signature(signature)
    if thought:
        message["reasoning_content"] = thought
    if complete:
        message |= _write_calls([complete[index] for index in sorted(complete)], request)
    finished = _name_finish(finished) if request.memory.get(FUNCTIONS) else finished
    response = {
        "id": f"chatcmpl-{identity.id}",
        "object": "chat.completion",
        "created": identity.created,
        "model": identity.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finished.reason}],
        "usage": _encode_usage(finished.usage),
    }
    return encode(response)


def _write_calls(calls: list[dict[str, Any]], request: ClientRequest) -> dict[str, Any]:
    """The field of the calls; a client that offers functions gets one, in the older field."""
    return {"function_call": calls[0]["function"]} if request.memory.get(FUNCTIONS) else {"tool_calls": calls}


def _encode_call(started: CallStarted, fragments: list[str]) -> dict[str, Any]:
    function = {"name": started.name, "arguments": "".join(fragments)}
    return {"id": started.id, "type": "function", "function": function}


def _encode_usage(usage: Usage | None) -> dict[str, Any]:
    usage = usage or Usage()
    encoded: dict[str, Any] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens or usage.input_tokens + usage.output_tokens,
    }
    if "prompt_tokens" in usage.reported:
        return encoded | {**usage.reported}
    if cached := find_count(usage.reported, CACHED):
        encoded["prompt_tokens_details"] = {"cached_tokens": cached}
    if thought := find_count(usage.reported, REASONED):
        encoded["completion_tokens_details"] = {"reasoning_tokens": thought}
    return encoded
