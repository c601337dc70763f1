"""Buffer calls for wires that send a call in one piece, in the order in which the calls started."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from toolglot.core.events import CallArguments, CallEnded, CallStarted
from toolglot.core.json_numbers import decode

CompleteCall: TypeAlias = tuple[CallStarted, str]
"""A call and its arguments."""


class _Call:
    __slots__ = ("complete", "fragments", "started")

    def __init__(self, started: CallStarted) -> None:
        self.started = started
        self.fragments: list[str] = []
        self.complete = False

    def join(self) -> CompleteCall:
        return self.started, "".join(self.fragments)

    def is_whole(self) -> bool:
        """Whether the arguments are complete: a closed JSON object is no prefix of another."""
        try:
            return self.complete or isinstance(decode("".join(self.fragments).encode()), dict)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False


class WholeCalls:
    """The calls of one response that have not been sent yet."""

    def __init__(self) -> None:
        self.calls: dict[int, _Call] = {}

    def start(self, event: CallStarted) -> None:
        self.calls[event.index] = _Call(event)

    def add_arguments(self, event: CallArguments) -> None:
        if call := self.calls.get(event.index):
            call.fragments.append(event.fragment)

    def end(self, event: CallEnded) -> list[CompleteCall]:
        """A call has ended: return the calls that can be sent now."""
        if call := self.calls.get(event.index):
            call.complete = True
        return self._take(lambda call: call.complete)

    def settle(self) -> list[CompleteCall]:
        """Other content follows: also return calls whose arguments are complete without an end event."""
        return self._take(_Call.is_whole) if self.calls else []

    def drain(self) -> list[CompleteCall]:
        """The response has ended: return complete calls, even after unfinished ones."""
        complete = [call.join() for call in self.calls.values() if call.complete]
        self.calls = {index: call for index, call in self.calls.items() if not call.complete}
        return complete

    def unfinished(self) -> list[CompleteCall]:
        return [call.join() for call in self.calls.values()]

    def _take(self, is_due: Callable[[_Call], bool]) -> list[CompleteCall]:
        taken = []
        while self.calls and is_due(call := next(iter(self.calls.values()))):
            del self.calls[call.started.index]
            taken.append(call.join())
        return taken
