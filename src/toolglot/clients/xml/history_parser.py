"""Parse earlier turns of an XML client into native calls and results.

    assistant   Let me look. <read_file><path>a.txt</path></read_file>
    user        [read_file for 'a.txt'] Result:
                hello
                <environment_details> ... </environment_details>

becomes a text and a call, a result, and the remaining user text.

Strategy. The client's own parser decides what is a call, so a call here is what the client ran. Results are recognised
by their headings, which name the tool, and are assigned to the pending calls in order; heading and body may be one part
or two. A call keeps the id that was written into it; without one it gets an id derived from its content and its
repetition, so that the same history always has the same ids without stored state. A call without a result gets a note
as its result, because upstreams refuse unanswered calls. Anything not recognised stays text.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from typing import Final

from msgspec import Struct, field

from toolglot.clients.complaints import INTERRUPTED, NOT_EXECUTED_HEADING, is_error, strip_reminder
from toolglot.clients.xml.call_renderer import MCP_TOOL
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.profile import XmlCallBlock
from toolglot.clients.xml.text_escaping import unescape_text
from toolglot.core.conversation import Image, Message, Part, Text, ToolCall, ToolResult
from toolglot.core.lenient_json import dump

ID_TAG: Final = "id"
MAX_CACHED_LENGTH: Final = 1 << 15
"""Longer texts are parsed every time instead of cached."""
MISSING_RESULT: Final = "(No result of this call was recorded.)"
_HEADING: Final = re.compile(r"\s*\[(?P<name>[A-Za-z_]\w*)(?=[\s\]])")
_HEADING_END: Final = "] Result:"
_NO_TOOL_USED: Final = "[ERROR] You did not use a tool"
_ENVIRONMENT: Final = "<environment_details>"
_ENVIRONMENT_END: Final = "</environment_details>"
_WRITTEN_ID: Final = re.compile(rf"\s*<{ID_TAG}>([\w.:-]{{1,128}})</{ID_TAG}>")

_Piece = Text | Image


def parse_history(
    messages: Iterable[Message], client: XmlClient, model: str, members: Mapping[tuple[str, str], str] | None = None
) -> tuple[Message, ...]:
    """The messages with native calls and results. ``model`` is the id that the client requested, which decides how
    values are decoded."""
    return tuple(_HistoryParser(client, model, members or {}).parse(messages))


class _HistoryParser(Struct):
    client: XmlClient
    model: str
    members: Mapping[tuple[str, str], str]
    """Offered names of MCP tools, by server and tool."""
    made: Counter[str] = field(default_factory=Counter)
    used: set[str] = field(default_factory=set)

    def parse(self, messages: Iterable[Message]) -> Iterator[Message]:
        pending: list[ToolCall] = []
        for role, group in groupby(messages, lambda message: message.role):
            if role == "user":
                yield from self.match_results(list(group), pending)
                pending = []
                continue
            for message in group:
                if role != "tool":  # native results answer native calls; the other calls stay pending
                    yield from _missing_results(pending)
                    pending = []
                if role == "assistant":
                    native = {call.id for call in message.calls}
                    self.used |= native
                    message = Message("assistant", tuple(self.parse_parts(message.parts)))
                    pending = [call for call in message.calls if call.id not in native]
                yield message
        yield from _missing_results(pending)

    # -- assistant messages -------------------------------------------------------------------------------------------

    def parse_parts(self, parts: Sequence[Part]) -> Iterator[Part]:
        for part in parts:
            if isinstance(part, Text):
                yield from self.parse_text(part.text)
            else:
                yield part

    def parse_text(self, text: str) -> Iterator[Part]:
        read = _parse_answer if len(text) <= MAX_CACHED_LENGTH else _parse_answer.__wrapped__
        for piece in read(self.client, self.model, text):
            yield piece if isinstance(piece, Text) else self.make_call(piece)

    def make_call(self, made: _HistoryCall) -> ToolCall:
        name, arguments = made.name, made.arguments
        member = self.members.get(made.member) if made.member else None
        if member:
            name, arguments = member, made.inner
        return ToolCall(self.make_id(made.id, f"{name}{arguments}"), name, arguments)

    def make_id(self, given: str, made_of: str) -> str:
        if given and given not in self.used:
            self.used.add(given)
            return given
        digest = blake2b(made_of.encode("utf-8", "surrogatepass"), digest_size=10)
        self.made[made_of] += 1
        digest.update(str(self.made[made_of]).encode())
        return f"call_{digest.hexdigest()}"

    # -- user messages -------------------------------------------------------------------------------------------------

    def match_results(self, messages: Sequence[Message], pending: Sequence[ToolCall]) -> Iterator[Message]:
        """Turn the user messages up to the next answer into results and remaining user text. Results come first,
        wherever they were."""
        pending_by_tool: dict[str, deque[ToolCall]] = {}
        for call in pending:
            pending_by_tool.setdefault(self.heading_name(call), deque()).append(call)
        results: dict[str, ToolResult] = {}
        rests = [tuple(_take_results(message, pending_by_tool, results)) for message in messages]
        if pending:
            yield Message("tool", tuple(results.get(call.id) or _missing_result(call) for call in pending))
        yield from (Message("user", rest) for rest in rests if rest or not pending)

    def heading_name(self, call: ToolCall) -> str:
        """The tool name in the heading of a result."""
        return MCP_TOOL if call.name in self.members.values() else call.name


def _take_results(
    message: Message, pending_by_tool: Mapping[str, deque[ToolCall]], results: dict[str, ToolResult]
) -> Iterator[Part]:
    """Move the results in a message into ``results``, and yield its other parts."""
    parts = deque(single for part in message.parts for single in _split_environment(part))
    while parts:
        part = parts.popleft()
        name, body = _parse_heading(part, pending_by_tool)
        if not pending_by_tool.get(name):
            yield Text(strip_reminder(part.text)) if isinstance(part, Text) else part
            continue
        call = pending_by_tool[name].popleft()
        whole = body.strip()
        body_parts = [Text(strip_reminder(body))] if whole else list(_take_body(parts, pending_by_tool))
        results[call.id] = _make_result(call, body_parts)


class _HistoryCall(Struct, frozen=True, kw_only=True):
    """A call as the client ran it, with the id that was written into it. For an MCP tool also server and tool
    (``member``) and its arguments (``inner``)."""

    name: str
    arguments: str
    id: str = ""
    member: tuple[str, str] | None = None
    inner: str = ""


@lru_cache(maxsize=512)
def _parse_answer(client: XmlClient, model: str, text: str) -> tuple[Text | _HistoryCall, ...]:
    """Texts and calls of an answer. Cached: the history comes again with every turn."""
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
        return _HistoryCall(name=block.name, arguments=arguments, id=given)
    return _HistoryCall(
        name=block.name,
        arguments=arguments,
        id=given,
        member=(str(params.get("server_name")), str(params.get("tool_name"))),
        inner=dump(inner),
    )


def _parse_heading(part: Part, pending_by_tool: Mapping[str, deque[ToolCall]]) -> tuple[str, str]:
    """The tool name in the heading of a result, and the body of the result; empty for other parts."""
    if not isinstance(part, Text):
        return "", ""
    refused = NOT_EXECUTED_HEADING.match(part.text)
    if refused:
        return refused["name"], part.text
    heading = _HEADING.match(part.text)
    if heading is None or _HEADING_END not in part.text:
        return "", ""
    pending = pending_by_tool.get(heading["name"])
    end = _find_heading_end(part.text, pending[0].arguments if pending else "")
    return heading["name"], part.text[end:].removeprefix("\n")


def _find_heading_end(text: str, arguments: str) -> int:
    """Where the heading ends. It quotes arguments of the call, which may hold the same words."""
    end = text.find(_HEADING_END)
    if _HEADING_END in arguments:
        values = {value for value in _list_texts(json.loads(arguments)) if _HEADING_END in value}
        for at, length in sorted((text.find(f"'{value}'"), len(value)) for value in values):
            if 0 <= at <= end:
                end = max(end, text.find(_HEADING_END, at + 1 + length))
    return end + len(_HEADING_END)


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(item)


def _split_environment(part: Part) -> Iterator[Part]:
    """Split off environment details at the end of a text: clients that send one string join all parts."""
    if isinstance(part, Text) and part.text.rstrip().endswith(_ENVIRONMENT_END):
        at = part.text.rfind("\n" + _ENVIRONMENT)
        if at > 0:
            yield Text(part.text[:at])
            yield Text(part.text[at + 1 :])
            return
    yield part


def _take_body(parts: deque[Part], pending_by_tool: Mapping[str, deque[ToolCall]]) -> Iterator[_Piece]:
    """The body of a result whose heading is a part of its own: the next text, and images after it."""
    if parts and isinstance(body := parts[0], Text) and not _is_separate(body, len(parts) == 1, pending_by_tool):
        parts.popleft()
        yield Text(strip_reminder(body.text))
    while parts and isinstance(image := parts[0], Image):
        parts.popleft()
        yield image


def _is_separate(part: Text, last: bool, pending_by_tool: Mapping[str, deque[ToolCall]]) -> bool:
    """Whether a text behind a heading is no result: environment details at the end, a complaint, or the heading of
    another call. A result may begin like any of them."""
    text = part.text.lstrip()
    if text.startswith(_ENVIRONMENT):
        return last
    return text.startswith(_NO_TOOL_USED) or bool(pending_by_tool.get(_parse_heading(part, pending_by_tool)[0]))


def _make_result(call: ToolCall, body_parts: Sequence[_Piece]) -> ToolResult:
    first = next((piece.text for piece in body_parts if isinstance(piece, Text)), "")
    return ToolResult(call.id, call.name, tuple(body_parts), is_error(first))


def _missing_result(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, call.name, (Text(MISSING_RESULT),))


def _missing_results(pending: Sequence[ToolCall]) -> Iterator[Message]:
    if pending:
        yield Message("tool", tuple(map(_missing_result, pending)))
