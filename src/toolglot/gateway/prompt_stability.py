"""Keeps prompts equal from turn to turn, and records how much of a prompt the upstream could take from its cache.

*Strategy.* What the gateway renders depends only on the messages so far, so the prompt of a turn begins with that of
the turn before, unless the client changes what it has sent. Two rules deal with that (``clients.volatile_lines``). A
line that means something to its vendor only is removed for other upstreams. Where tools are text, lines of the system
prompt in which a number or a date has changed keep their first form, and their present form follows the last message.

To measure the result, prompts are compared in one order (system prompt, tools, messages), whatever the wire's: that of
the body does not matter, and the bytes of a body may differ where the prompt does not.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from toolglot.clients.volatile_lines import (
    CHANGED_LINES,
    VolatileLine,
    find_volatile_lines,
    remove_lines,
    split_changes,
)
from toolglot.core.conversation import (
    Conversation,
    Image,
    Message,
    Part,
    ProviderPart,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from toolglot.gateway.routing import RELAY
from toolglot.gateway.sessions.chain import split_context
from toolglot.gateway.sessions.conversation_state import ConversationState
from toolglot.wires.system_prompt import edit_system_prompt

if TYPE_CHECKING:
    from toolglot.gateway.exchange import Exchange

SMALL_PROMPT: Final = 2048
"""Bytes of a request below which its prompt is not measured, and characters of a system prompt below which it may
change: processing so little takes no time."""


# -- volatile lines ----------------------------------------------------------------------------------------------------


def remove_volatile_lines(exchange: Exchange, conversation: Conversation, body: bytes) -> Conversation:
    """The conversation without lines that mean nothing to its upstream. What is relayed stays as it is."""
    settings, route = exchange.settings.prompt, exchange.route
    if not settings.stable or (exchange.same_wire and route.tool_mode is RELAY):
        return conversation
    rules = exchange.volatile_lines = find_volatile_lines(body, route.upstream.base_url, settings.unstable)
    if not rules:
        return conversation
    system, dialog = split_context(conversation.messages)
    edited = tuple(made for message in system if (made := _edit_message(message, rules)).parts)
    if edited == tuple(system):
        exchange.volatile_lines = ()  # the line is quoted somewhere else
        return conversation
    exchange.recorder.notes.append(f"line of the client removed: {', '.join(rule.name for rule in rules)}")
    return replace(conversation, messages=(*edited, *dialog))


_EMPTY: Final = Text("")


def _edit_message(message: Message, rules: Sequence[VolatileLine]) -> Message:
    parts = (Text(remove_lines(part.text, rules)) if isinstance(part, Text) else part for part in message.parts)
    return Message(message.role, tuple(part for part in parts if part != _EMPTY))


def remove_from_body(exchange: Exchange, body: bytes) -> bytes:
    """The client's own bytes without such lines."""
    for rule in exchange.volatile_lines:
        body = edit_system_prompt(body, rule.mark.encode(), rule.remove)
    return body


def pin_system_prompt(exchange: Exchange, conversation: Conversation) -> tuple[Conversation, str]:
    """The conversation with the first system prompt that it had, if only numbers and dates have changed in it since;
    and the changed lines, which belong behind the last message."""
    settings = exchange.settings.prompt
    system, dialog = split_context(conversation.messages)
    texts = tuple(part.text for message in system for part in message.parts if isinstance(part, Text))
    matters = sum(map(len, texts)) >= SMALL_PROMPT and dialog and dialog[-1].role != "assistant"
    if not matters or not settings.stable or CHANGED_LINES in settings.unstable:
        return conversation, ""
    first, changed = _find_changes(exchange.conversation_state, texts)
    if not changed:
        return conversation, ""
    pinned = iter(first)
    restored = tuple(
        Message("system", tuple(Text(next(pinned)) if isinstance(part, Text) else part for part in message.parts))
        for message in system
    )
    exchange.recorder.notes.append(f"{len(changed)} changed lines of the system prompt moved behind the messages")
    return replace(conversation, messages=(*restored, *dialog)), "\n".join(changed)


def _find_changes(state: ConversationState, texts: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The first system prompt of the conversation, and the lines that differ from it now. A prompt that differs too
    much becomes the first one."""
    first = state.find_system()
    if first == texts:
        return texts, ()
    changed = None if first is None else split_changes(first, texts)
    if first is None or changed is None:
        state.set_system(texts)
        return texts, ()
    return first, changed


def append_lines(conversation: Conversation, lines: str) -> Conversation:
    """The conversation with these lines at the end of its last message, which is the user's."""
    *earlier, last = conversation.messages
    *parts, end = last.parts or (_EMPTY,)
    added = (Text(f"{end.text}\n\n{lines}"),) if isinstance(end, Text) else (end, Text(lines))
    return replace(conversation, messages=(*earlier, Message(last.role, (*parts, *added))))


# -- measuring ---------------------------------------------------------------------------------------------------------


def measure_prompt(exchange: Exchange, conversation: Conversation) -> None:
    """Record how much of the prompt is the same as in the request before."""
    system, dialog = split_context(conversation.messages)
    texts = [*_list_all_texts(system), _write_tools(conversation.tools), *_list_all_texts(dialog)]
    prompt, recorder = _join(texts), exchange.recorder
    compared = exchange.conversation_state.compare_prompt(prompt)
    if exchange.is_retry:  # the record is about the client's request, not about the feedback
        return
    recorder.prompt_bytes, recorder.unstable_at = len(prompt), ""
    if compared is None:
        return
    recorder.stable_bytes, last = compared
    if recorder.stable_bytes < last:
        recorder.unstable_at = _name_place(conversation, recorder.stable_bytes)


def _name_place(conversation: Conversation, at: int) -> str:
    """The part of a prompt that has its byte ``at``."""
    system, dialog = split_context(conversation.messages)
    at -= len(_join([*_list_all_texts(system), ""])) if system else 0
    if at < 0:
        return "system"
    at -= len(_join([_write_tools(conversation.tools), ""]))
    if at < 0:
        return "tools"
    ends = accumulate(len(_join([*_list_all_texts((message,)), ""])) for message in dialog)
    return f"messages[{bisect_right(list(ends), at)}]"


def _join(texts: Iterable[str]) -> bytes:
    return "\0".join(texts).encode("utf-8", "surrogatepass")


def _list_all_texts(messages: Iterable[Message]) -> list[str]:
    texts: list[str] = []
    for message in messages:
        texts.append(message.role)
        for part in message.parts:
            if type(part) is Text:  # most are
                texts.append(part.text)
            else:
                texts += _list_texts(part)
    return texts


def _list_texts(part: Part) -> Iterator[str]:
    match part:
        case ToolCall(id=call_id, name=name, arguments=arguments):
            yield from (call_id, name, arguments)
        case ToolResult(call_id=call_id, content=content):
            yield call_id
            for inner in content:
                yield from _list_texts(inner)
        case Image(url=url, data=data):
            yield from (url, data)
        case ProviderPart(data=data):
            yield json.dumps(data, default=str)
        case _:
            yield part.text


@lru_cache(maxsize=64)
def _write_tools(tools: tuple[Tool, ...]) -> str:
    """Cached: clients send the same tools with every turn."""
    return "\n".join(f"{tool.name}\0{tool.description}\0{json.dumps(tool.parameters, default=str)}" for tool in tools)
