"""Decode Chat Completions responses, streamed or not, into events.

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m",
           "choices":[{"index":0,"delta":{"role":"assistant","content":"I'll "},"finish_reason":null}]}

    data: [DONE]

Strategy. The decoder parses only the needed fields, typed, and falls back to lenient JSON parsing when a server sends
something unusual. Servers disagree about indexes and ids of calls; only this module distinguishes calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec

from toolglot.core.events import (
    CallArguments,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reason,
    ReasoningDelta,
    ReasoningSigned,
    Started,
    TextDelta,
    Usage,
)
from toolglot.core.json_numbers import decode as decode_json
from toolglot.core.json_numbers import decode_allowing_nan
from toolglot.wires.control_characters import ControlEscaper
from toolglot.wires.json_fields import end_call, find_fault, write_arguments
from toolglot.wires.openai_chat.chunk_template import ChunkTemplate, infer_template
from toolglot.wires.openai_chat.errors import describe
from toolglot.wires.openai_chat.finish_reasons import CUT, FAILED, FINISHES, unify_finish
from toolglot.wires.openai_chat.request_decoder import NAME, read_signature
from toolglot.wires.openai_chat.response_schema import (
    CallDelta,
    ChoiceDelta,
    Function,
    MessageDelta,
    ResponseBody,
    decode,
)
from toolglot.wires.protocol import DecodedResponse, ToolAwareDecoder
from toolglot.wires.sse import BLANK, DATA, EventStream

DONE = b"[DONE]"
MAX_TEMPLATES = 8
"""How many templates are inferred for one response."""
CHUNKS_BEFORE_TEMPLATE = 8
"""Chunks before the first attempt: for a short response a template does not pay off."""
NO_REASON = {"code": "upstream_failed", "message": "The upstream failed in the middle of its answer."}


class _Call(msgspec.Struct):
    """A call as received so far. It gets an index together with its name."""

    id: str
    given: str | None
    index: int = -1
    name: str = ""
    begun: str = ""
    early: str = ""
    pieces: list[str] = []
    escaper: ControlEscaper = msgspec.field(default_factory=ControlEscaper)

    def add(self, fragment: str) -> str:
        """Add a fragment of the arguments; return it as valid JSON."""
        if not fragment.isprintable():
            fragment = self.escaper.escape(self.pieces, fragment)
        self.pieces.append(fragment)
        return fragment

    def is_whole(self) -> bool:
        """Whether the arguments are complete: a closed JSON object is no prefix of another."""
        try:
            return isinstance(decode_json("".join(self.pieces).encode()), dict)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False


class PayloadDecoder(ToolAwareDecoder):
    """Decodes the JSON payloads of one response; a non-streamed response is a single payload."""

    whole = True

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.new_id = new_id
        self.started = False
        self.over = False
        self.tidy = True
        self.calls: list[_Call] = []
        self.known: dict[object, _Call] = {}
        self.ids: set[str] = set()
        self.named = 0
        self.finish_reason = ""
        self.usage: Usage | None = None

    def read(self, data: bytes, events: list[Event]) -> None:
        """Decode one payload."""
        try:
            payload = decode(data)
            usual = payload.choices is not None or payload.usage or payload.error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            usual = False
        if not usual:
            payload, self.tidy = _read_leniently(data), False
        if not self.started:
            self.start(payload, events)
        if payload.error:
            self.fail(events, *describe(payload.error))
            return
        if payload.usage:
            self.usage = _read_usage(payload.usage)
        for choice in payload.choices or ():
            if not choice.index:
                message = choice.delta or choice.message
                if message is not None:
                    self.take(message, events)
                if choice.finish_reason:
                    self.take_finish(choice, payload, events)

    def take_finish(self, choice: ChoiceDelta, payload: ResponseBody, events: list[Event]) -> None:
        """The last delta of a choice. Some servers report usage or a failure there."""
        reason = choice.finish_reason or ""
        if choice.error or reason == FAILED:
            self.fail(events, *describe(choice.error or NO_REASON))
            return
        if reason not in FINISHES:
            reason, self.tidy = unify_finish(reason), False
        self.finish_reason = reason
        other = choice.usage or (payload.x_groq or {}).get("usage")
        if isinstance(other, dict) and not payload.usage:
            self.usage = _read_usage(other)

    def start(self, payload: ResponseBody, events: list[Event]) -> None:
        self.started = True
        events.append(Started(payload.id or "", payload.model or ""))

    def take(self, message: MessageDelta, events: list[Event]) -> None:
        thought = message.reasoning_content or message.reasoning
        if thought:
            events.append(ReasoningDelta(thought))
        if message.content:
            events.append(TextDelta(message.content))
        elif message.refusal:
            events.append(TextDelta(message.refusal))
        if message.extra_content:
            self.add_signature(message.extra_content, events)
        for call in message.tool_calls or ():
            self.take_call(call, events)
        if message.function_call and not message.tool_calls:
            # the older field of single calls; some servers fill both
            self.take_call(CallDelta(0, None, message.function_call), events)
            self.tidy = False

    def take_call(self, call: CallDelta, events: list[Event]) -> None:
        payload = call.function or Function()
        name, arguments = payload.name or "", payload.arguments
        if type(arguments) is not str:
            arguments = self.flatten(arguments)
        known = self.find(call, name)
        if known is None:
            known = self.expect(call, name)
        elif name or call.id or call.index != known.index:
            self.tidy = False
        known.early += arguments
        if not known.name and (name or known.begun):
            self.take_name(known, call, name, events)
        if known.name and known.early:
            if known.pieces or known.early[0] != '"':
                self.add_arguments(known, events)
            else:
                self.tidy = False

    def add_arguments(self, call: _Call, events: list[Event]) -> None:
        fragment = call.add(call.early)
        self.tidy = self.tidy and fragment == call.early
        events.append(CallArguments(call.index, fragment))
        call.early = ""

    def unwrap_arguments(self, call: _Call) -> None:
        """Some models write the arguments as a string that holds the object. Such arguments wait for their end."""
        try:
            inner = decode_json(call.early.encode())
            if isinstance(inner, str) and isinstance(decode_json(inner.encode()), dict):
                call.early, self.tidy = inner, False
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass

    def take_name(self, known: _Call, call: CallDelta, name: str, events: list[Event]) -> None:
        if call.extra_content and not known.begun:
            self.add_signature(call.extra_content, events)
        known.begun = name if name.startswith(known.begun) else known.begun + name
        if not (name and self.may_continue(known.begun)):
            self.start_call(known, events)

    def start_call(self, call: _Call, events: list[Event]) -> None:
        call.name, call.index = call.begun, self.named
        self.named += 1
        events.append(CallStarted(call.index, call.id, call.name))

    def may_continue(self, name: str) -> bool:
        """Whether this may be the beginning of a name: some servers send names in pieces, like arguments."""
        longer = any(tool.name.startswith(name) for tool in self.tools) and all(
            tool.name != name for tool in self.tools
        )
        self.tidy = self.tidy and not longer
        return longer

    def add_signature(self, extra: object, events: list[Event]) -> None:
        if signature := read_signature(extra):
            events.append(ReasoningSigned(signature, NAME))

    def flatten(self, arguments: object) -> str:
        """Arguments as text, where a server sends an object or nothing."""
        if arguments is None:
            return ""
        self.tidy = False
        return write_arguments(arguments)

    def find(self, call: CallDelta, name: str) -> _Call | None:
        """Find the call that this delta continues. In a non-streamed response every entry is a new call."""
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

    def expect(self, call: CallDelta, name: str) -> _Call:
        known = _Call(call.id if call.id and call.id not in self.ids else self.new_id(), call.id)
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
        """The upstream has ended the response. A call with incomplete arguments counts as truncated."""
        if self.over:
            return
        self.over = True
        self.tidy = self.tidy and bool(self.finish_reason)
        finish = self.finish_reason or ("tool_calls" if self.named else "stop")
        if self.calls:
            finish = self.end_calls(finish, events)
        events.append(Finished(finish, self.usage))

    def end_calls(self, finish: str, events: list[Event]) -> str:
        """End the calls; return the finish reason that follows from them."""
        cut = finish in CUT
        for call in self.calls:
            if call.begun and not call.name:
                self.start_call(call, events)
            if call.name and call.early:
                self.unwrap_arguments(call)
                self.add_arguments(call, events)
            if not call.name:
                # a call without a name cannot be made; keep its text
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
    """Decodes a streamed response."""

    whole = False
    place = None
    handed_out = None

    def __init__(self, new_id: Callable[[], str]) -> None:
        super().__init__(new_id)
        self.stream = EventStream()
        self.template: ChunkTemplate | None = None
        self.read_text: Callable[[bytes], str] | None = None
        self.templates_left = MAX_TEMPLATES
        self.chunks_to_wait = CHUNKS_BEFORE_TEMPLATE

    def feed(self, piece: bytes) -> list[Event]:
        if self.template is not None and not (self.stream.waiting or self.over):
            events_read = self.template.read(piece)
            if events_read is not None:
                return events_read
        events: list[Event] = []
        calls, before, data = len(self.calls), 0, b""
        payloads = self.split(piece)
        for data in payloads:
            before = len(events)
            if data[:1] == b"{" and not self.over:
                self.read(data, events)
            else:
                self.accept(data, events)
        between = not (self.stream.waiting or self.over)
        if len(self.calls) > calls:  # also one without a name yet: further arguments may be its own
            self.template = None
        elif len(events) == before + 1 and between:
            self.template = self.infer_next(DATA + data + BLANK, events[-1], len(payloads))
        template, self.read_text = self.template, None
        if template is not None and template.is_text and between:
            self.read_text = template.read_string
        return events

    def split(self, piece: bytes) -> list[bytes]:
        """The data of the events that are complete now. Most chunks are one event."""
        stream = self.stream
        usual = piece[:6] == DATA and piece[-2:] == BLANK and piece.count(b"\n") == 2
        if usual and not (stream.waiting or stream.after_return) and b"\r" not in piece:
            return [piece[6:-2]]
        return stream.feed(piece)

    def infer_next(self, piece: bytes, event: Event, chunks: int) -> ChunkTemplate | None:
        """The template for the next chunks, inferred from one that became this event, the last of so many chunks."""
        if self.template is not None and self.template.read_string(piece):
            return self.template
        if self.chunks_to_wait > 0 or not self.templates_left:
            self.chunks_to_wait -= chunks
            return None
        self.templates_left -= 1
        if isinstance(event, TextDelta | ReasoningDelta):
            return infer_template(piece, event, type(event))
        return (
            infer_template(piece, event, self.continue_call(event.index)) if isinstance(event, CallArguments) else None
        )

    def continue_call(self, index: int) -> Callable[[str], Event]:
        """Return a function that emits further arguments of a call."""
        call = next(call for call in self.calls if call.index == index)

        def emit(given: str) -> Event:
            fragment = call.add(given)
            self.tidy = self.tidy and fragment == given
            return CallArguments(index, fragment)

        return emit

    @property
    def between(self) -> bool:
        return not (self.finish_reason or self.stream.waiting)

    def measure(self, pieces: Sequence[bytes]) -> int:
        return 0 if self.finish_reason else self.stream.measure(pieces)

    def accept(self, data: bytes, events: list[Event]) -> None:
        if self.over:
            return
        data = data.strip()
        if data == DONE:
            self.end(events)
        elif data:
            self.read(data, events)
        else:
            self.tidy = False  # a heartbeat that breaks clients

    def close(self) -> list[Event]:
        """End of the connection. A response without its own end was truncated and fails."""
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
    """Decode a non-streamed response."""
    reader = PayloadDecoder(new_id)
    events: list[Event] = []
    reader.read(body, events)
    if not reader.over and not reader.finish_reason and not events[1:]:
        reader.fail(events, "upstream_invalid", "The upstream's answer holds neither text nor calls.")
    reader.end(events)
    return DecodedResponse(events, reader.tidy)


def _read_leniently(data: bytes) -> ResponseBody:
    """Decode an unusual payload; take what fits."""
    text = data.decode(errors="replace")
    try:
        payload = decode_allowing_nan(text)
    except (ValueError, RecursionError):
        payload = None
    if not isinstance(payload, dict):
        problem = f"The upstream sent no reply but {text[:80]!r}."
        return ResponseBody(error={"code": "upstream_invalid", "message": problem})
    choices = [_read_choice(choice) for choice in _list(payload.get("choices")) if isinstance(choice, dict)]
    error = payload.get("error")
    if not choices and not error and isinstance(payload.get("message"), str):
        error = payload  # some servers send the error without a wrapper
    usage, other = (value if isinstance(value, dict) else None for value in map(payload.get, ("usage", "x_groq")))
    return ResponseBody(choices, usage=usage, error=error, x_groq=other)


def _read_choice(choice: Mapping[str, Any]) -> ChoiceDelta:
    message = choice.get("delta") or choice.get("message")
    message = message if isinstance(message, dict) else {}
    finish, index = choice.get("finish_reason"), choice.get("index")
    texts = {key: _flatten(message.get(key)) for key in ("content", "reasoning_content", "reasoning", "refusal")}
    texts["reasoning_content"] = texts["reasoning_content"] or _join_thinking(message.get("content"))
    listed = message.get("tool_calls")
    listed = [listed] if isinstance(listed, dict) else _list(listed)
    calls = [_read_call(call) for call in listed if isinstance(call, dict)]
    older = message.get("function_call")
    older = _read_call({"function": older}).function if isinstance(older, dict) else None
    index = index if isinstance(index, int) else None
    delta = MessageDelta(**texts, tool_calls=calls, function_call=older, extra_content=message.get("extra_content"))
    finish = finish if isinstance(finish, str) else None
    return ChoiceDelta(delta, None, finish, index, choice.get("usage"), choice.get("error"))


def _read_call(call: Mapping[str, Any]) -> CallDelta:
    payload = call.get("function")
    payload = payload if isinstance(payload, dict) else {}
    index, name = call.get("index"), payload.get("name")
    index = int(index) if isinstance(index, str) and index.isdigit() else index
    return CallDelta(
        index if isinstance(index, int) else None,
        str(call["id"]) if call.get("id") is not None else None,
        Function(name if isinstance(name, str) else None, payload.get("arguments")),
        call.get("extra_content"),
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _flatten(content: object) -> str | None:
    """Text, also where a server sends a list of parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else None


def _join_thinking(content: object) -> str | None:
    """The thoughts that Mistral's models send as parts of the content, before those of text."""
    thoughts = [part.get("thinking") for part in _list(content) if isinstance(part, dict)]
    return "".join(_flatten(thought) or "" for thought in thoughts) or None


def _read_count(count: object) -> int:
    """A number of tokens; 0 for anything else, such as a number that is too large."""
    return int(count) if isinstance(count, int) or (isinstance(count, float) and isfinite(count)) else 0


def _read_usage(payload: Mapping[str, Any]) -> Usage:
    counts = [payload.get(key) for key in ("prompt_tokens", "completion_tokens", "total_tokens")]
    prompt, completion, total = map(_read_count, counts)
    return Usage(input_tokens=prompt, output_tokens=completion, total_tokens=total, reported=payload)
