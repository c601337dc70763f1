"""Checks earlier turns: every tool result must belong to a call.

Strategy. Walk through the messages once and keep the calls without a result. A result without an id gets the only
one it can mean (that of the first such call, of the tool it names), and a note; a result that belongs to no call, or
comes twice, cannot be repaired, and the request is refused, naming the message. The queues of calls, one for all and
one per name, are read from the front only; calls that were answered by id are dropped from them on the way.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable

from toolglot.core.conversation import Message, Part, ToolCall, ToolResult
from toolglot.core.errors import ToolResultsError

CALLING_ROLES = ("assistant", "tool")
"""Only messages of these roles hold calls or results."""


def match_results(
    messages: Iterable[Message], new_id: Callable[[], str]
) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """The messages with every result tied to its call by id and name, and notes on what was repaired.

    Raises: ToolResultsError if a result belongs to no call.
    """
    matched = list(messages)
    matcher = ToolResultMatcher(new_id)
    for at, message in enumerate(matched):
        if message.role in CALLING_ROLES:
            matched[at] = matcher.match(message, at)
    return tuple(matched), tuple(matcher.notes)


class ToolResultMatcher:
    def __init__(self, new_id: Callable[[], str]) -> None:
        self.new_id = new_id
        self.waiting: dict[str, ToolCall] = {}
        self.queue: deque[ToolCall] = deque()
        self.queues: defaultdict[str, deque[ToolCall]] = defaultdict(deque)
        self.answered: set[str] = set()
        self.notes: list[str] = []

    def match(self, message: Message, at: int) -> Message:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                part = self.add_call(part, at)
            elif isinstance(part, ToolResult):
                part = self.match_result(part, at)
            parts.append(part)
        matched = tuple(parts)
        return message if matched == message.parts else Message(message.role, matched)

    def add_call(self, call: ToolCall, at: int) -> ToolCall:
        if not call.id:
            call = ToolCall(self.new_id(), call.name, call.arguments)
            self.notes.append(f"messages[{at}]: a call to {call.name} without an id was given one")
        self.waiting[call.id] = call
        self.queue.append(call)
        self.queues[call.name].append(call)
        self.answered.discard(call.id)
        return call

    def match_result(self, result: ToolResult, at: int) -> ToolResult:
        call = self.waiting.pop(result.call_id, None) if result.call_id else self.guess_call(result, at)
        if call is None:
            raise ToolResultsError(f"Invalid tool results: {self.describe_problem(result, at)}.", f"messages[{at}]")
        self.answered.add(call.id)
        return ToolResult(call.id, call.name, result.content, result.error)

    def guess_call(self, result: ToolResult, at: int) -> ToolCall | None:
        """The only call that a result without an id can mean."""
        queue = self.queues.get(result.name) if result.name else self.queue
        while queue and queue[0] is not self.waiting.get(queue[0].id):
            queue.popleft()
        if not queue:
            return None
        self.notes.append(f"messages[{at}]: a tool result without an id was taken for that of {queue[0].name}")
        return self.waiting.pop(queue[0].id)

    def describe_problem(self, result: ToolResult, at: int) -> str:
        if not result.call_id:
            return f"messages[{at}] has no id of a call, and no call waits for it"
        if result.call_id in self.answered:
            return f"messages[{at}] is a second result for the call {result.call_id}"
        return f"messages[{at}] answers the call {result.call_id}, which no earlier message makes"
