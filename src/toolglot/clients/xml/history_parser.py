"""Earlier turns of an XML client: its XML as calls, and what it told about them as results.

    assistant   Let me look. <read_file><path>a.txt</path></read_file>
    user        [read_file for 'a.txt'] Result:
                hello
                <environment_details> ... </environment_details>

becomes a text and a call, a result, and what is left for the user to say.

Strategy. The client's own parser says what the client ran, so a call here is what was run there. Results are known by
their headings, which name the tool, and are given to the waiting calls in order; some clients put the heading and the
body in parts of their own, some in one. A call keeps the id that was written into it; without one it gets an id made of
what was called and how often, so that the same history always has the same ids, with nothing to remember. A call whose
result is missing is answered by a note, because upstreams refuse calls that nobody answered. What is not understood
stays text.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from typing import Final

from toolglot.clients.complaints import INTERRUPTED, NOT_EXECUTED_HEADING, is_error, strip_reminder
from toolglot.clients.xml.call_renderer import MCP_TOOL
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.profile import XmlCallBlock
from toolglot.clients.xml.text_escaping import unescape_text
from toolglot.core.conversation import Image, Message, Part, Text, ToolCall, ToolResult
from toolglot.core.lenient_json import dump

ID_TAG: Final = "id"
MAX_CACHED_LENGTH: Final = 1 << 15
"""Longer texts are read every time, rather than kept."""
MISSING_RESULT: Final = "(No result of this call was recorded.)"
_HEADING: Final = re.compile(r"\s*\[(?P<name>[A-Za-z_]\w*)(?=[\s\]])")
_HEADING_END: Final = "] Result:"
_ENVIRONMENT: Final = "<environment_details>"
_ENVIRONMENT_END: Final = "</environment_details>"
_WRITTEN_ID: Final = re.compile(rf"\s*<{ID_TAG}>([\w.:-]{{1,128}})</{ID_TAG}>")

_Piece = Text | Image


def parse_history(
    messages: Iterable[Message], client: XmlClient, model: str, members: Mapping[tuple[str, str], str] | None = None
) -> tuple[Message, ...]:
    """The messages with calls and results. ``model`` is the id the client asked for: it decodes values by it."""
    return tuple(_HistoryParser(client, model, members or {}).read(messages))


@dataclass(slots=True)
class _HistoryParser:
    client: XmlClient
    model: str
    members: Mapping[tuple[str, str], str]
    """Tools of servers, with the names they are offered by."""
    made: Counter[str] = field(default_factory=Counter)
    used: set[str] = field(default_factory=set)

    def read(self, messages: Iterable[Message]) -> Iterator[Message]:
        waiting: list[ToolCall] = []
        for role, said in groupby(messages, lambda message: message.role):
            if role == "user":
                yield from self.answer(list(said), waiting)
                waiting = []
                continue
            for message in said:
                if role != "tool":  # native results answer native calls, and the others go on waiting
                    yield from _missing_results(waiting)
                    waiting = []
                if role == "assistant":
                    native = {call.id for call in message.calls}
                    self.used |= native
                    message = Message("assistant", tuple(self.recall(message.parts)))
                    waiting = [call for call in message.calls if call.id not in native]
                yield message
        yield from _missing_results(waiting)

    # -- what the model wrote ------------------------------------------------------------------------------------------

    def recall(self, parts: Sequence[Part]) -> Iterator[Part]:
        for part in parts:
            if isinstance(part, Text):
                yield from self.recall_text(part.text)
            else:
                yield part

    def recall_text(self, text: str) -> Iterator[Part]:
        read = _parse_answer if len(text) <= MAX_CACHED_LENGTH else _parse_answer.__wrapped__
        for piece in read(self.client, self.model, text):
            yield piece if isinstance(piece, Text) else self.make_call(piece)

    def make_call(self, made: _HistoryCall) -> ToolCall:
        name, arguments = made.name, made.arguments
        member = self.members.get(made.member) if made.member else None
        if member:
            name, arguments = member, made.inner
        return ToolCall(self.name_call(made.id, f"{name}{arguments}"), name, arguments)

    def name_call(self, given: str, made_of: str) -> str:
        if given and given not in self.used:
            self.used.add(given)
            return given
        digest = blake2b(made_of.encode("utf-8", "surrogatepass"), digest_size=10)
        self.made[made_of] += 1
        digest.update(str(self.made[made_of]).encode())
        return f"call_{digest.hexdigest()}"

    # -- what the client told ------------------------------------------------------------------------------------------

    def answer(self, messages: Sequence[Message], waiting: Sequence[ToolCall]) -> Iterator[Message]:
        """All that was said until the next answer. Results come first, wherever they stood."""
        rows: dict[str, deque[ToolCall]] = {}
        for call in waiting:
            rows.setdefault(self.shown(call), deque()).append(call)
        results: dict[str, ToolResult] = {}
        rests = [tuple(_take_results(message, rows, results)) for message in messages]
        if waiting:
            yield Message("tool", tuple(results.get(call.id) or _missing_result(call) for call in waiting))
        yield from (Message("user", rest) for rest in rests if rest or not waiting)

    def shown(self, call: ToolCall) -> str:
        """The name by which the client speaks of a call."""
        return MCP_TOOL if call.name in self.members.values() else call.name


def _take_results(
    message: Message, rows: Mapping[str, deque[ToolCall]], results: dict[str, ToolResult]
) -> Iterator[Part]:
    """Puts the results that a message tells to those of the waiting calls, and gives what else it says."""
    parts = deque(single for part in message.parts for single in _split_environment(part))
    while parts:
        part = parts.popleft()
        name, body = _parse_heading(part)
        if not rows.get(name):
            yield Text(strip_reminder(part.text)) if isinstance(part, Text) else part
            continue
        call = rows[name].popleft()
        told: list[_Piece] = [Text(strip_reminder(body))] if body.strip() else list(_take_body(parts))
        results[call.id] = _make_result(call, told)


@dataclass(frozen=True, slots=True)
class _HistoryCall:
    """A call as the client ran it, with the id that was written into it. Of a tool of an MCP server also which one that
    is, and what it was given."""

    name: str
    arguments: str
    id: str = ""
    member: tuple[str, str] | None = None
    inner: str = ""


@lru_cache(maxsize=512)
def _parse_answer(client: XmlClient, model: str, text: str) -> tuple[Text | _HistoryCall, ...]:
    """Texts and calls of an answer. A history comes again with every turn, so most of this was read before."""
    text = text.replace(INTERRUPTED, "").rstrip() if INTERRUPTED in text else text
    blocks = client.read(text, model)
    if not any(isinstance(block, XmlCallBlock) for block in blocks):
        return (Text(unescape_text(client, text)),)
    found: list[Text | _HistoryCall] = []
    at = 0
    for block in blocks:
        if isinstance(block, XmlCallBlock):
            at = text.find(f"<{block.name}>", at) + len(block.name) + 2
            written = _WRITTEN_ID.match(text, at)
            found.append(_make_history_call(block, written[1] if written else ""))
        elif block.text.strip():
            found.append(Text(unescape_text(client, block.text)))
    return tuple(found)


def _make_history_call(block: XmlCallBlock, given: str) -> _HistoryCall:
    params = dict(block.params)
    arguments = dump(params)
    inner = params.get("arguments") if block.name == MCP_TOOL else None
    if not isinstance(inner, dict):
        return _HistoryCall(block.name, arguments, given)
    return _HistoryCall(
        block.name, arguments, given, (str(params.get("server_name")), str(params.get("tool_name"))), dump(inner)
    )


def _parse_heading(part: Part) -> tuple[str, str]:
    """The tool whose result a part tells, by the name that the client calls it, and the result. Nothing for others."""
    if not isinstance(part, Text):
        return "", ""
    refused = NOT_EXECUTED_HEADING.match(part.text)
    if refused:
        return refused["name"], part.text
    heading = _HEADING.match(part.text)
    end = part.text.find(_HEADING_END) if heading else -1
    return (
        (heading["name"], part.text[end + len(_HEADING_END) :].removeprefix("\n")) if heading and end >= 0 else ("", "")
    )


def _split_environment(part: Part) -> Iterator[Part]:
    """A text whose end is the environment, in two: clients that send one string for all parts join them so."""
    if isinstance(part, Text) and part.text.rstrip().endswith(_ENVIRONMENT_END):
        at = part.text.rfind("\n" + _ENVIRONMENT)
        if at > 0:
            yield Text(part.text[:at])
            yield Text(part.text[at + 1 :])
            return
    yield part


def _take_body(parts: deque[Part]) -> Iterator[_Piece]:
    """The body of a result whose heading has a part of its own: the next text, and pictures behind it."""
    if parts and isinstance(body := parts[0], Text) and not _is_separate_message(body.text):
        parts.popleft()
        yield Text(strip_reminder(body.text))
    while parts and isinstance(picture := parts[0], Image):
        parts.popleft()
        yield picture


def _is_separate_message(text: str) -> bool:
    heading = _HEADING.match(text)
    return text.lstrip().startswith((_ENVIRONMENT, "[ERROR]")) or (heading is not None and _HEADING_END in text)


def _make_result(call: ToolCall, told: Sequence[_Piece]) -> ToolResult:
    first = next((piece.text for piece in told if isinstance(piece, Text)), "")
    return ToolResult(call.id, call.name, tuple(told), is_error(first))


def _missing_result(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, (Text(MISSING_RESULT),))


def _missing_results(waiting: Sequence[ToolCall]) -> Iterator[Message]:
    if waiting:
        yield Message("tool", tuple(map(_missing_result, waiting)))
