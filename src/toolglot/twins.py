"""One call, said twice: an upstream that knows tools makes it natively and writes it as text as well.

Strategy. A call to a tool that the other side has called already waits for the end of the answer. If the arguments are
the same then, it is dropped, because a client would execute it a second time; if not, it goes on as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

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

    def sift(self, event: Event, origin: str) -> Sequence[Event]:
        """What of it may go on now."""
        if not isinstance(event, CallStarted | CallArguments | CallEnded | CallRejected) or event.index is None:
            return (event,)
        key = (origin, event.index)
        if isinstance(event, CallStarted):
            if any(name == event.name and maker != origin for (maker, _), name in self._names.items()):
                self._waiting[key] = []
            self._names[key], self._arguments[key] = event.name, []
        elif isinstance(event, CallArguments):
            self._arguments[key].append(event.fragment)
        elif isinstance(event, CallEnded):
            self._complete.add(key)
        waiting = self._waiting.get(key)
        if waiting is None:
            return (event,)
        waiting.append(event)
        return ()

    def settle(self) -> Iterator[tuple[Event, str]]:
        """The answer is over: what waited and is no twin, and who made it."""
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
