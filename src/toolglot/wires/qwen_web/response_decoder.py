"""Decode the stream of a Qwen web chat into events.

    data: {"response.created":{"chat_id":"c-1","parent_id":"u-1","response_id":"a-1","response_index":"0"}}

    data: {"choices":[{"delta":{"role":"assistant","content":"Hel","phase":"answer","status":"typing"}}],
           "usage":{"input_tokens":33,"output_tokens":1,"total_tokens":34},"response_id":"a-1"}

    data: {"choices":[{"delta":{"content":"","role":"assistant","status":"finished","phase":"answer"}}]}

Strategy. Every line with JSON is an event of its own, because blank lines may be missing. Only the first response of a
stream counts; ``finished`` ends it in the phase ``answer`` only. Phases other than thinking and answer belong to tools
of the platform and are skipped. A body that does not begin as a stream is an error or a page.

The platform takes calls in the model's native syntax for its own: it streams them as ``function_call``, answers that
there is no such tool, and lets the model apologise (``InterceptedCalls``). These calls are for the client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from toolglot.core.events import Event, Failed, Finished, ReasoningDelta, Started, TextDelta, Usage
from toolglot.wires.json_fields import count_at, dicts_in, parse_object, text_at
from toolglot.wires.protocol import DecodedResponse
from toolglot.wires.qwen_web.deltas import DeltaReader
from toolglot.wires.qwen_web.errors import find_error, read_error
from toolglot.wires.qwen_web.intercepted_calls import InterceptedCalls
from toolglot.wires.translation import table_at

DONE: Final = b"[DONE]"
ANSWER, THINK, SUMMARY = "answer", "think", "thinking_summary"
SUMMARIES: Final = (("summary_title", "\n\n"), ("summary_thought", "\n"))
"""The lists of a summary, and what separates an entry from the text before it."""
FIELDS: Final = (b"event:", b"id:", b"retry:", b":")
BODY_LIMIT: Final = 1 << 20
"""How much of a body that is no stream is kept."""
CLOSED: Final = "The upstream closed the connection in the middle of its answer."


class StreamDecoder:
    """Decodes one response line by line; chunks may be cut anywhere."""

    place = None
    finish_reason = None
    handed_out = None
    read_text = None
    tidy = False
    between = False

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.over = False
        self.id = ""
        self.others: set[str] = set()
        self.started = False
        self.rest: list[bytes] = []
        self.body: bytearray | None = None
        self.begun = False
        self.texts = {ANSWER: DeltaReader(), THINK: DeltaReader()}
        self.summaries: dict[str, list[str]] = {name: [] for name, _ in SUMMARIES}
        self.calls = InterceptedCalls(new_id)
        self.usage: Usage | None = None

    def measure(self, pieces: Sequence[bytes]) -> int:
        return 0

    def feed(self, piece: bytes) -> list[Event]:
        events: list[Event] = []
        if self.over or not piece:
            return events
        if not self.begun:
            start = piece.lstrip(b"\xef\xbb\xbf \r\n\t")
            if not start:
                return events
            self.begun, piece = True, start
            self.body = bytearray() if start[:1] in b"{<" else None
        if self.body is not None:
            self.body += piece[: max(0, BODY_LIMIT - len(self.body))]
        elif b"\n" in piece or b"\r" in piece:
            *lines, tail = b"".join((*self.rest, piece)).replace(b"\r", b"\n").split(b"\n")
            self.rest = [tail] if tail else []
            for line in lines:
                self.read_line(line, events)
        else:
            self.rest.append(piece)
        return events

    def close(self) -> list[Event]:
        """End of the connection. A response that has not ended by itself fails."""
        events: list[Event] = []
        if self.over:
            return events
        if self.body is not None or not self.begun:
            self.read_body(bytes(self.body or b""), events)
            return events
        self.read_line(b"".join(self.rest), events)
        if not self.over and self.calls.answered:
            self.end(events)
        elif not self.over:
            self.flush(events)
            self.fail(events, "upstream_closed", CLOSED)
        return events

    def read_body(self, body: bytes, events: list[Event]) -> None:
        error = read_error(body)
        if error is None:
            shown = body[:80].decode(errors="replace")
            self.fail(events, "upstream_invalid", f"The upstream sent no stream but {shown!r}.")
        else:
            self.fail(events, error.code, error.message)

    def read_line(self, line: bytes, events: list[Event]) -> None:
        line = line.strip()
        if self.over or not line or line.startswith(FIELDS):
            return
        data = line.removeprefix(b"data:").strip()
        if data == DONE:
            self.end(events)
        elif data:
            self.read(data, events)

    def read(self, data: bytes, events: list[Event]) -> None:
        payload = parse_object(data)
        if payload is None:
            if data[:1] == b"{":
                self.fail(events, "upstream_invalid", "The upstream sent an event that is not JSON.")
            return
        if isinstance(created := payload.get("response.created"), dict):
            self.start(text_at(created, "response_id"), events)
            return
        response_id = text_at(payload, "response_id")
        if response_id in self.others:
            return
        if error := find_error(payload):
            self.fail(events, error.code, error.message)
        elif "response.stopped" in payload:
            self.end(events)
        elif not (response_id and self.id and response_id != self.id):
            self.take(payload, response_id, events)

    def start(self, response_id: str, events: list[Event]) -> None:
        """A response begins. A second one is an alternative to the first."""
        if not self.started:
            self.started, self.id = True, response_id
            events.append(Started(response_id))
        elif response_id and response_id != self.id:
            self.others.add(response_id)

    def take(self, payload: Mapping[str, Any], response_id: str, events: list[Event]) -> None:
        if isinstance(usage := payload.get("usage"), dict):
            self.usage = _read_usage(usage)
        choices = dicts_in(payload.get("choices"))
        if not choices:
            return
        self.start(response_id, events)
        choice = choices[0]
        delta = table_at(choice, "delta")
        phase = text_at(delta, "phase") or ANSWER
        if phase == ANSWER:
            self.take_answer(delta, events)
        elif phase in (THINK, SUMMARY):
            self.take_thought(delta, phase, events)
        if self.over:
            return
        reason = text_at(choice, "finish_reason") or text_at(delta, "finish_reason")
        if reason or (phase == ANSWER and delta.get("status") == "finished"):
            self.end(events, reason)

    def take_answer(self, delta: Mapping[str, Any], events: list[Event]) -> None:
        if self.calls.concerns(delta):
            self.flush(events)
            self.calls.take(delta, events)
            return
        text = self.texts[ANSWER].feed(text_at(delta, "content"))
        if not text:
            return
        if self.calls.answered and not text.isspace():
            self.end(events)  # the model apologises for a tool that the platform does not know
        elif not self.calls.results:
            self.flush_thought(events)
            self.calls.complete(events)
            events.append(TextDelta(text))

    def take_thought(self, delta: Mapping[str, Any], phase: str, events: list[Event]) -> None:
        if phase == THINK:
            thought = self.texts[THINK].feed(text_at(delta, "content"))
        else:
            thought = self.read_summary(table_at(delta, "extra"))
        if thought and self.calls.answered:
            self.end(events)
        elif thought:
            events.append(ReasoningDelta(thought))

    def read_summary(self, extra: Mapping[str, Any]) -> str:
        """The new part of a summary, whose lists are sent again and again as they grow."""
        new = []
        for name, separator in SUMMARIES:
            known, content = self.summaries[name], table_at(extra, name).get("content")
            for at, entry in enumerate(content if isinstance(content, list) else ()):
                if not isinstance(entry, str):
                    continue
                if at >= len(known):
                    new.append((separator if any(self.summaries.values()) else "") + entry)
                    known.append(entry)
                elif entry.startswith(known[at]):
                    new.append(entry[len(known[at]) :])
                    known[at] = entry
        return "".join(new)

    def flush(self, events: list[Event]) -> None:
        """Emit text that was held back."""
        self.flush_thought(events)
        if (text := self.texts[ANSWER].close()) and not self.calls.results:
            events.append(TextDelta(text))

    def flush_thought(self, events: list[Event]) -> None:
        if thought := self.texts[THINK].close():
            events.append(ReasoningDelta(thought))

    def end(self, events: list[Event], reason: str = "") -> None:
        """The response has ended."""
        self.start("", events)
        self.flush(events)
        self.calls.complete(events)
        self.over = True
        cut = reason == "length" or self.calls.cut
        finish = "length" if cut else "tool_calls" if self.calls.count else "stop"
        events.append(Finished(finish, self.usage))

    def fail(self, events: list[Event], kind: str, message: str) -> None:
        self.over = True
        events.append(Failed(kind, message))


def decode_response(body: bytes, new_id: Callable[[], str]) -> DecodedResponse:
    """Decode a whole response, which is a stream, too."""
    decoder = StreamDecoder(new_id)
    return DecodedResponse([*decoder.feed(body), *decoder.close()])


def _read_usage(usage: Mapping[str, Any]) -> Usage:
    given, made = count_at(usage, "input_tokens"), count_at(usage, "output_tokens")
    total = count_at(usage, "total_tokens") or given + made
    return Usage(input_tokens=given, output_tokens=made, total_tokens=total, reported=usage)
