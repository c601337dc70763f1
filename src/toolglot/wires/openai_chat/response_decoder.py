"""What comes back on the chat wire, whole and streamed, read into events.

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",
           "choices":[{"index":0,"delta":{"role":"assistant","content":"I'll "},"finish_reason":null}]}

    data: [DONE]

Strategy. Reading takes only the fields that matter, typed, and falls back to a patient look at the JSON when a server
puts something unusual there. Servers disagree about indexes and ids of calls; what arrives is told apart here, so that
nobody else has to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from toolglot.core.events import (
    CallArguments,
    CallStarted,
    Event,
    Failed,
    Finished,
    ProviderEvent,
    Reason,
    ReasoningDelta,
    ReasoningSigned,
    Started,
    TextDelta,
    Usage,
)
from toolglot.core.json_numbers import decode as decode_json
from toolglot.core.json_numbers import decode_anything
from toolglot.wires.json_fields import end_call, find_fault, write_arguments
from toolglot.wires.openai_chat.chunk_template import ChunkTemplate, cast
from toolglot.wires.openai_chat.errors import describe
from toolglot.wires.openai_chat.response_schema import CallDelta, Function, Reply, ReplyChoice, ReplyMessage, decode
from toolglot.wires.openai_chat.signatures import NAME, OTHERS, read_signature
from toolglot.wires.protocol import DecodedResponse
from toolglot.wires.sse import EventStream

DONE = b"[DONE]"
CUT = {"length", "content_filter"}
CASTS = 8
"""How often in one answer it is tried to tell what its chunks have in common."""
PATIENCE = 8
"""How many chunks are read before that: a short answer would not earn it back."""
FINISHES = {"stop", "length", "tool_calls", "content_filter"}


class _Told(msgspec.Struct):
    """A call as far as the upstream has told of it. It has a number as soon as it has a name."""

    id: str
    given: str | None
    index: int = -1
    name: str = ""
    early: str = ""
    pieces: list[str] = []

    def is_whole(self) -> bool:
        """Whether nothing can be missing: an object that is closed is not the beginning of another."""
        try:
            return isinstance(decode_json("".join(self.pieces).encode()), dict)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False


class PayloadDecoder:
    """Reads the replies of one answer into events; a whole reply is an answer of one piece."""

    whole = True

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.new_id = new_id
        self.started = False
        self.over = False
        self.tidy = True
        self.calls: list[_Told] = []
        self.known: dict[object, _Told] = {}
        self.ids: set[str] = set()
        self.named = 0
        self.finish_reason = ""
        self.usage: Usage | None = None

    def read(self, data: bytes, events: list[Event]) -> None:
        """What one reply, or one piece of it, says."""
        try:
            reply = decode(data)
            usual = reply.choices is not None or reply.usage or reply.error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            usual = False
        if not usual:
            reply, self.tidy = _read_patiently(data), False
        if not self.started:
            self.start(reply, events)
        if reply.error:
            self.fail(events, *describe(reply.error))
            return
        if reply.usage:
            self.usage = _read_usage(reply.usage)
        for choice in reply.choices or ():
            if not choice.index:
                said = choice.delta or choice.message
                if said is not None:
                    self.take(said, events)
                self.finish_reason = choice.finish_reason or self.finish_reason

    def start(self, reply: Reply, events: list[Event]) -> None:
        self.started = True
        events.append(Started(reply.id or "", reply.model or ""))

    def take(self, said: ReplyMessage, events: list[Event]) -> None:
        thought = said.reasoning_content or said.reasoning
        if thought:
            events.append(ReasoningDelta(thought))
        if said.content:
            events.append(TextDelta(said.content))
        elif said.refusal:
            events.append(TextDelta(said.refusal))
        if said.extra_content:
            self.seal(said.extra_content, events)
        for call in said.tool_calls or ():
            self.take_call(call, events)
        if said.reasoning_details or said.annotations:
            events.append(ProviderEvent(NAME, {key: value for key in OTHERS if (value := getattr(said, key))}))

    def take_call(self, call: CallDelta, events: list[Event]) -> None:
        told = call.function or Function()
        name, arguments = told.name or "", told.arguments
        if type(arguments) is not str:
            arguments = self.flatten(arguments)
        known = self.find(call, name)
        if known is None:
            known = self.expect(call, name)
        elif name or call.id or call.index != known.index:
            self.tidy = False
        known.early += arguments
        if name and not known.name:
            known.name, known.index = name, self.named
            self.named += 1
            if call.extra_content:
                self.seal(call.extra_content, events)
            events.append(CallStarted(known.index, known.id, name))
        if known.name and known.early:
            known.pieces.append(known.early)
            events.append(CallArguments(known.index, known.early))
            known.early = ""

    def seal(self, extra: object, events: list[Event]) -> None:
        if seal := read_signature(extra):
            events.append(ReasoningSigned(seal, NAME))

    def flatten(self, arguments: object) -> str:
        """Arguments as text, where a server writes them as an object or not at all."""
        if arguments is None:
            return ""
        self.tidy = False
        return write_arguments(arguments)

    def find(self, call: CallDelta, name: str) -> _Told | None:
        """The call that this goes on with, if it does. In a whole reply every entry is a call of its own."""
        if self.whole:
            return None
        if call.index is None:
            if call.id:
                return self.known.get(call.id)
            return self.calls[-1] if self.calls and not name else None
        known = self.known.get(call.index)
        if known is None or not name:
            return known
        if call.id and call.id != known.given:
            return self.known.get((call.index, call.id))
        return None if known.pieces and name != known.name else known

    def expect(self, call: CallDelta, name: str) -> _Told:
        known = _Told(call.id if call.id and call.id not in self.ids else self.new_id(), call.id)
        if not name or call.id != known.id or (call.index != len(self.calls) and not self.whole):
            self.tidy = False
        self.ids.add(known.id)
        self.calls.append(known)
        self.known |= {call.index: known, call.id: known, (call.index, call.id): known}
        return known

    def fail(self, events: list[Event], kind: str, message: str) -> None:
        self.over, self.tidy = True, False
        events.append(Failed(kind, message))

    def end(self, events: list[Event]) -> None:
        """The upstream says that this was all. A call without its end was cut, whatever is said of it."""
        if self.over:
            return
        self.over = True
        self.tidy = self.tidy and bool(self.finish_reason)
        finish = self.finish_reason or ("tool_calls" if self.named else "stop")
        if self.calls:
            finish = self.end_calls(finish, events)
        events.append(Finished(finish if finish in FINISHES else "stop", self.usage))

    def end_calls(self, finish: str, events: list[Event]) -> str:
        """How the calls ended, and so the answer."""
        cut = finish in CUT
        for call in self.calls:
            if not call.name:
                # nobody can be called without a name; what was said is not lost
                events += [TextDelta(call.early)] if call.early else []
            elif not cut or call.is_whole():
                fault = None if cut else find_fault("".join(call.pieces))
                self.tidy = self.tidy and fault is None and bool(call.pieces)
                finish = "length" if fault is Reason.TRUNCATED else finish
                if not call.pieces:
                    events.append(CallArguments(call.index, "{}"))
                events.append(end_call(call.index, fault))
        return finish


class StreamDecoder(PayloadDecoder):
    """Reads a streamed answer."""

    whole = False
    place = None
    unstored = None

    def __init__(self, new_id: Callable[[], str]) -> None:
        super().__init__(new_id)
        self.stream = EventStream()
        self.mould: ChunkTemplate | None = None
        self.casts = CASTS
        self.patience = PATIENCE

    def feed(self, piece: bytes) -> list[Event]:
        if self.mould is not None and not (self.stream.waiting or self.over):
            told = self.mould.read(piece)
            if told is not None:
                return told
        events: list[Event] = []
        calls = len(self.calls)
        for data in self.stream.feed(piece):
            if data[:1] == b"{" and not self.over:
                self.read(data, events)
            else:
                self.accept(data, events)
        if events or len(self.calls) > calls:  # a call that has no name yet is not told, and yet arguments may be its
            self.mould = self.cast(piece, events[0]) if len(events) == 1 and self.casts else None
        return events

    def cast(self, piece: bytes, event: Event) -> ChunkTemplate | None:
        """The mould of the chunks that are to come, if this one is like them."""
        if self.stream.waiting or self.over:
            return None
        if self.patience:
            self.patience -= 1
            return None
        self.casts -= 1
        if isinstance(event, TextDelta | ReasoningDelta):
            return cast(piece, event, type(event))
        return cast(piece, event, self.go_on(event.index)) if isinstance(event, CallArguments) else None

    def go_on(self, index: int) -> Callable[[str], Event]:
        """How further arguments of a call are told."""
        call = next(call for call in self.calls if call.index == index)

        def tell(fragment: str) -> Event:
            call.pieces.append(fragment)
            return CallArguments(index, fragment)

        return tell

    @property
    def between(self) -> bool:
        return not (self.finish_reason or self.stream.waiting)

    def measure(self, pieces: Sequence[bytes]) -> int:
        return 0 if self.finish_reason else self.stream.measure(pieces)

    def accept(self, data: bytes, events: list[Event]) -> None:
        if self.over:
            return
        if data.rstrip() == DONE:
            self.end(events)
        else:
            self.read(data, events)

    def close(self) -> list[Event]:
        """The connection is over. An answer that did not say so itself was cut."""
        if self.over:
            return []
        events: list[Event] = []
        for data in self.stream.close():
            self.accept(data, events)
        self.tidy = self.tidy and self.over
        if self.finish_reason:
            self.end(events)
        elif not self.over:
            self.fail(events, "upstream_closed", "The upstream closed the connection in the middle of its answer.")
        return events


def decode_response(body: bytes, new_id: Callable[[], str]) -> DecodedResponse:
    """A whole answer."""
    reader = PayloadDecoder(new_id)
    events: list[Event] = []
    reader.read(body, events)
    if not reader.over and not reader.finish_reason and not events[1:]:
        reader.fail(events, "upstream_invalid", "The upstream's answer holds neither text nor calls.")
    reader.end(events)
    return DecodedResponse(events, reader.tidy)


def _read_patiently(data: bytes) -> Reply:
    """A reply with something unusual in it: what fits is taken."""
    text = data.decode(errors="replace")
    try:
        told = decode_anything(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        return Reply(error={"code": "upstream_invalid", "message": f"The upstream sent no reply but {text[:80]!r}."})
    choices = [_read_choice(choice) for choice in _list(told.get("choices")) if isinstance(choice, dict)]
    usage, error = told.get("usage"), told.get("error")
    if not choices and not error and isinstance(told.get("message"), str):
        error = told  # an error that is not wrapped, as some servers send it
    return Reply(choices, usage=usage if isinstance(usage, dict) else None, error=error)


def _read_choice(choice: Mapping[str, Any]) -> ReplyChoice:
    said = choice.get("delta") or choice.get("message")
    said = said if isinstance(said, dict) else {}
    finish, index = choice.get("finish_reason"), choice.get("index")
    texts = {key: _flatten(said.get(key)) for key in ("content", "reasoning_content", "reasoning", "refusal")}
    calls = [_read_call(call) for call in _list(said.get("tool_calls")) if isinstance(call, dict)]
    index = index if isinstance(index, int) else None
    others = {key: said.get(key) for key in ("extra_content", *OTHERS)}
    return ReplyChoice(
        ReplyMessage(**texts, tool_calls=calls, **others), None, finish if isinstance(finish, str) else None, index
    )


def _read_call(call: Mapping[str, Any]) -> CallDelta:
    told = call.get("function")
    told = told if isinstance(told, dict) else {}
    index, name = call.get("index"), told.get("name")
    index = int(index) if isinstance(index, str) and index.isdigit() else index
    return CallDelta(
        index if isinstance(index, int) else None,
        str(call["id"]) if call.get("id") is not None else None,
        Function(name if isinstance(name, str) else None, told.get("arguments")),
        call.get("extra_content"),
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _flatten(content: object) -> str | None:
    """Text, also where a server writes it as parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else None


def _read_usage(told: Mapping[str, Any]) -> Usage:
    counts = [told.get(key) for key in ("prompt_tokens", "completion_tokens", "total_tokens")]
    prompt, completion, total = (count if isinstance(count, int) else 0 for count in counts)
    return Usage(prompt, completion, total, told)
