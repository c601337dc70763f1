"""Calls for wires that tell a call in one piece: each when it is complete, in the order in which they started."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from toolglot.core.events import CallArguments, CallEnded, CallStarted
from toolglot.core.json_numbers import decode

Told: TypeAlias = tuple[CallStarted, str]
"""A call and its arguments."""


class _Call:
    __slots__ = ("complete", "fragments", "started")

    def __init__(self, started: CallStarted) -> None:
        self.started = started
        self.fragments: list[str] = []
        self.complete = False

    def tell(self) -> Told:
        return self.started, "".join(self.fragments)

    def is_whole(self) -> bool:
        """Whether nothing can be missing: an object that is closed is not the beginning of another."""
        try:
            return self.complete or isinstance(decode("".join(self.fragments).encode()), dict)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False


class WholeCalls:
    """The calls of one answer that have not been told yet."""

    def __init__(self) -> None:
        self.calls: dict[int, _Call] = {}

    def start(self, event: CallStarted) -> None:
        self.calls[event.index] = _Call(event)

    def argue(self, event: CallArguments) -> None:
        if call := self.calls.get(event.index):
            call.fragments.append(event.fragment)

    def end(self, event: CallEnded) -> list[Told]:
        """A call is complete: those that can be told now."""
        if call := self.calls.get(event.index):
            call.complete = True
        return self._take(lambda call: call.complete)

    def settle(self) -> list[Told]:
        """Something else follows: calls before it that lack nothing but their end are told too."""
        return self._take(_Call.is_whole) if self.calls else []

    def drain(self) -> list[Told]:
        """The answer is over: complete calls, whatever became of those before them."""
        told = [call.tell() for call in self.calls.values() if call.complete]
        self.calls = {index: call for index, call in self.calls.items() if not call.complete}
        return told

    def unfinished(self) -> list[Told]:
        return [call.tell() for call in self.calls.values()]

    def _take(self, is_due: Callable[[_Call], bool]) -> list[Told]:
        told = []
        while self.calls and is_due(call := next(iter(self.calls.values()))):
            del self.calls[call.started.index]
            told.append(call.tell())
        return told
