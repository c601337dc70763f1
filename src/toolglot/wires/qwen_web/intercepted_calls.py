"""Calls that the platform took for its own.

    {"delta": {"role": "assistant", "content": "", "phase": "answer", "function_call": {"name": "f", "arguments": "{"}}}
    {"delta": {"role": "function", "name": "f", "content": "Tool f does not exists.", "phase": "answer"}}

The arguments are a snapshot that replaces the one before, and the last snapshot is sent twice. A new call begins with
another name, with empty arguments, or after a complete snapshot. A ``function_id`` marks a tool of the platform.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolglot.core.events import CallArguments, CallStarted, Event, Reason
from toolglot.wires.json_fields import end_call, find_fault, text_at, write_arguments
from toolglot.wires.translation import table_at


class InterceptedCalls:
    """Collects the snapshots of one response and emits each call when it is complete.

    ``count``: calls so far. ``results``: how many of them the platform has answered. ``cut``: a call was incomplete.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.new_id = new_id
        self.count = 0
        self.results = 0
        self.cut = False
        self._name = ""
        self._snapshot: str | None = None
        self._made: set[tuple[str, str]] = set()

    @property
    def answered(self) -> bool:
        """Whether the platform has answered every call, so that nothing of use follows."""
        return bool(self.count) and self.results >= self.count and self._snapshot is None

    def concerns(self, delta: Mapping[str, Any]) -> bool:
        """Whether a delta is about a call: of the model or of the platform."""
        is_call = isinstance(delta.get("function_call"), dict)
        return is_call or delta.get("role") == "function" or bool(delta.get("function_id"))

    def take(self, delta: Mapping[str, Any], events: list[Event]) -> None:
        """Take a snapshot of a call, or its result."""
        call = table_at(delta, "function_call")
        if delta.get("function_id") or call.get("function_id"):
            return
        if delta.get("role") == "function":
            self.complete(events)
            self.results += 1
            return
        given = call.get("arguments")
        snapshot = given if isinstance(given, str) else "" if given is None else write_arguments(given)
        name = text_at(call, "name") or self._name
        if self._is_next(name, snapshot):
            self.complete(events)
        self._name, self._snapshot = name, snapshot

    def _is_next(self, name: str, snapshot: str) -> bool:
        """Whether a snapshot belongs to another call than the one before."""
        known = self._snapshot
        if known is None or name != self._name:
            return known is not None
        if known.strip() == snapshot.strip():
            return False
        return not snapshot or (bool(known.strip()) and find_fault(known) is None)

    def complete(self, events: list[Event]) -> None:
        """Something else follows: emit the call."""
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is None or not self._name:
            return
        if self.results and (self._name, snapshot) in self._made:
            self.results -= 1  # the model repeats a call that the platform refused
            return
        self._made.add((self._name, snapshot))
        index, self.count = self.count, self.count + 1
        fault = find_fault(snapshot)
        self.cut = self.cut or fault is Reason.TRUNCATED
        events += (
            CallStarted(index, self.new_id(), self._name),
            CallArguments(index, snapshot if snapshot.strip() else "{}"),
            end_call(index, fault),
        )
