"""One call, said twice: an upstream that knows tools makes it natively and writes it as text as well.

Strategy. A call to a tool that the other side has called already waits for the end of the answer. If the arguments are
the same then, it is dropped, because a client would execute it a second time; if not, it goes on as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from toolglot.events import CallArguments, CallEnded, CallRejected, CallStarted, Event

Key = tuple[str, int]
"""Who made a call, and its number there."""


class Twins:
    """Sifts the calls of one answer, by whoever made them."""

    def __init__(self) -> None:
        self.dropped = 0
        self._names: dict[Key, str] = {}
        self._arguments: dict[Key, list[str]] = {}
        self._complete: set[Key] = set()
        self._waiting: dict[Key, list[Event]] = {}

    def admit(self, event: Event, origin: str) -> bool:
        """Whether it may go on now."""
        match event:
            case CallArguments(index=index, fragment=fragment):
                self._arguments[origin, index].append(fragment)
            case CallStarted(index=index, name=name):
                if [maker for (maker, _), known in self._names.items() if known == name and maker != origin]:
                    self._waiting[origin, index] = []
                self._names[origin, index], self._arguments[origin, index] = name, []
            case CallEnded(index=index):
                self._complete.add((origin, index))
            case CallRejected(index=int(index)):
                pass
            case _:
                return True
        waits = (origin, index) in self._waiting
        if waits:
            self._waiting[origin, index].append(event)
        return not waits

    def settle(self) -> Iterator[tuple[Event, str]]:
        """The answer is over: what waited and is no twin, and who made it."""
        if not self._waiting:
            return
        told = {self._describe(key) for key in self._complete if key not in self._waiting}
        for key, events in self._waiting.items():
            if key in self._complete and self._describe(key) in told:
                self.dropped += 1
            else:
                yield from ((event, key[0]) for event in events)

    def _describe(self, key: Key) -> tuple[str, str]:
        """A call so that the same ones are equal."""
        arguments = "".join(self._arguments[key])
        try:
            arguments = json.dumps(json.loads(arguments or "{}"), sort_keys=True)
        except ValueError:
            pass
        return self._names[key], arguments
