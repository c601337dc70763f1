"""An answer for Roo or a successor with native tools: arguments that it would change are written so that it does not.

Only where that is wished. Arguments of the tools in question are held until they are whole, all others stream. A call
that never ends is handed on as it came, for its receiver to see that it was cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolglot.clients.xml.argument_escaping import guard_arguments
from toolglot.clients.xml.diff_repair import repair_diff
from toolglot.clients.xml.nested_parser import MalformedValue
from toolglot.clients.xml.value_decoding import read_json
from toolglot.core.events import CallArguments, CallEnded, CallStarted, Event, Failed, Finished
from toolglot.core.lenient_json import dump

ENTITIES, DIFFS = "entities", "diffs"
GUARDS: Final = (ENTITIES, DIFFS)
TOOLS: Final = frozenset(("write_to_file", "apply_diff", "execute_command"))
DIFF_TOOL, DIFF = "apply_diff", "diff"


class ArgumentGuard:
    """One answer. ``model`` is the id that the client asked for; ``notes`` is told what was changed."""

    def __init__(self, guards: Iterable[str], model: str, notes: list[str]) -> None:
        self.guards = frozenset(guards)
        self.model = model
        self.notes = notes
        self.held: dict[int, tuple[str, list[str]]] = {}

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """What the client is told of these events."""
        out: list[Event] = []
        for event in events:
            match event:
                case CallStarted(index=index, name=name) if name in TOOLS:
                    self.held[index] = name, []
                case CallArguments(index=index, fragment=fragment) if index in self.held:
                    self.held[index][1].append(fragment)
                    continue
                case CallEnded(index=index) if index in self.held:
                    name, fragments = self.held.pop(index)
                    out.append(CallArguments(index, self.guard(name, "".join(fragments))))
                case Finished() | Failed():
                    out += [CallArguments(index, "".join(fragments)) for index, (_, fragments) in self.held.items()]
                    self.held.clear()
            out.append(event)
        return out

    def guard(self, tool: str, arguments: str) -> str:
        """The arguments, so that the client's tool uses what the model wrote."""
        guarded = arguments
        if DIFFS in self.guards and tool == DIFF_TOOL:
            guarded = self.repair(guarded)
        if ENTITIES in self.guards:
            escaped = guard_arguments(tool, guarded, self.model)
            if escaped != guarded:
                self.notes.append(f"{tool}: what the client un-escapes was escaped")
            guarded = escaped
        return guarded

    def repair(self, arguments: str) -> str:
        try:
            given = read_json(arguments)
        except MalformedValue:
            return arguments
        if not isinstance(given, dict) or not isinstance(given.get(DIFF), str):
            return arguments
        repaired, repairs = repair_diff(str(given[DIFF]))
        if not repairs:
            return arguments
        self.notes.append(f"{DIFF_TOOL}: {', '.join(repairs)}")
        return dump(given | {DIFF: repaired})
