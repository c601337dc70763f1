"""Earlier turns: does every tool result belong to a call?

Strategy. Walk through the messages once and keep the calls that still wait for a result. A result without an id is
given the one it can only mean (the first call still waiting, of the tool it names) and that is noted; a result that
belongs to no call, or comes twice, cannot be mended and the request is refused, naming the message. Rows of calls, all
and by name, are looked at from their front only; what was answered by id falls out of them on the way.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable

from toolglot.core.conversation import Message, Part, ToolCall, ToolResult
from toolglot.core.errors import ToolResultsError

_CONCERNED = ("assistant", "tool")
"""Who calls and who answers: no other message holds calls or results."""


def match_results(
    messages: Iterable[Message], new_id: Callable[[], str]
) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """The messages with every result tied to its call by id and name, and notes on what that took."""
    mending = ToolResultMatcher(new_id)
    mended = list(messages)
    for at, message in enumerate(mended):
        if message.role in _CONCERNED:
            mended[at] = mending.look_at(message, at)
    return tuple(mended), tuple(mending.notes)


class ToolResultMatcher:
    def __init__(self, new_id: Callable[[], str]) -> None:
        self.new_id = new_id
        self.waiting: dict[str, ToolCall] = {}
        self.order: deque[ToolCall] = deque()
        self.named: defaultdict[str, deque[ToolCall]] = defaultdict(deque)
        self.answered: set[str] = set()
        self.notes: list[str] = []

    def look_at(self, message: Message, at: int) -> Message:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, ToolCall):
                part = self.expect(part, at)
            elif isinstance(part, ToolResult):
                part = self.settle(part, at)
            parts.append(part)
        mended = tuple(parts)
        return message if mended == message.parts else Message(message.role, mended)

    def expect(self, call: ToolCall, at: int) -> ToolCall:
        if not call.id:
            call = ToolCall(self.new_id(), call.name, call.arguments)
            self.notes.append(f"messages[{at}]: a call to {call.name} without an id was given one")
        self.waiting[call.id] = call
        self.order.append(call)
        self.named[call.name].append(call)
        self.answered.discard(call.id)
        return call

    def settle(self, result: ToolResult, at: int) -> ToolResult:
        call = self.waiting.pop(result.call_id, None) if result.call_id else self.guess(result, at)
        if call is None:
            raise ToolResultsError(f"Invalid tool results: {self.complain(result, at)}.", f"messages[{at}]")
        self.answered.add(call.id)
        return ToolResult(call.id, call.name, result.content, result.error)

    def guess(self, result: ToolResult, at: int) -> ToolCall | None:
        """The call that a result without an id can only mean."""
        row = self.named.get(result.name) if result.name else self.order
        while row and row[0] is not self.waiting.get(row[0].id):
            row.popleft()
        if not row:
            return None
        self.notes.append(f"messages[{at}]: a tool result without an id was taken for that of {row[0].name}")
        return self.waiting.pop(row[0].id)

    def complain(self, result: ToolResult, at: int) -> str:
        if not result.call_id:
            return f"messages[{at}] has no id of a call, and no call waits for it"
        if result.call_id in self.answered:
            return f"messages[{at}] is a second result for the call {result.call_id}"
        return f"messages[{at}] answers the call {result.call_id}, which no earlier message makes"
