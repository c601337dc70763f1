"""Escape native arguments that Roo and its successors would change (setting ``clients.guard``).

These clients un-escape the content of files, diffs and commands that arrive as JSON too, where nothing was escaped: a
file that should contain ``&apos;`` gets a quote, and one that starts with a code fence loses it. The parameter data
that renders XML also says what to escape here.

Arguments of the affected tools are buffered until they are complete; all others stream. A call that never ends is
passed on unchanged, so that the client sees that it was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.diff_repair import repair_diff
from toolglot.clients.xml.nested_parser import MalformedValue
from toolglot.clients.xml.profile import ClientParameter
from toolglot.clients.xml.value_decoding import parse_strict_json
from toolglot.clients.xml.value_encoding import escape_entities, protect_ends
from toolglot.core.events import CallArguments, CallEnded, CallStarted, Event, Failed, Finished
from toolglot.core.lenient_json import dump

ENTITIES, DIFFS = "entities", "diffs"
GUARD_OPTIONS: Final = (ENTITIES, DIFFS)
GUARDED_TOOLS: Final = frozenset(("write_to_file", "apply_diff", "execute_command"))
DIFF_TOOL, DIFF = "apply_diff", "diff"

_ESCAPED_PARAMETERS: Mapping[tuple[str, str], ClientParameter] = {
    (name, parameter.name): parameter
    for name in GUARDED_TOOLS
    for parameter in all_clients()["roo-3.36"].tools[name].parameters
    if parameter.unescaping.entities
}


def escape_value(tool: str, key: str, value: str, model: str) -> str:
    """Escape one argument so that the tool of the client uses what the model wrote."""
    parameter = _ESCAPED_PARAMETERS.get((tool, key))
    if parameter is None:
        return value
    undoing = parameter.unescaping.for_request(model, "")
    escaped = escape_entities(value, undoing) if undoing.entities else value
    return protect_ends(escaped, parameter, undoing.deleted)


def escape_arguments(tool: str, arguments: str, model: str) -> str:
    """Escape all arguments, given as JSON. Text that needs no escaping, or is no JSON object, stays unchanged."""
    if not any(name == tool for name, _ in _ESCAPED_PARAMETERS):
        return arguments
    try:
        given = parse_strict_json(arguments)
    except MalformedValue:
        return arguments
    if not isinstance(given, dict):
        return arguments
    escaped = {
        key: escape_value(tool, key, value, model) if isinstance(value, str) else value for key, value in given.items()
    }
    return arguments if escaped == given else dump(escaped)


class ArgumentEscaper:
    """Escapes the calls of one answer. ``model`` is the id that the client requested; changes are added to
    ``notes``."""

    def __init__(self, guards: Iterable[str], model: str, notes: list[str]) -> None:
        self.guards = frozenset(guards)
        self.model = model
        self.notes = notes
        self.held: dict[int, tuple[str, list[str]]] = {}

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """The events for the client."""
        out: list[Event] = []
        for event in events:
            match event:
                case CallStarted(index=index, name=name) if name in GUARDED_TOOLS:
                    self.held[index] = name, []
                case CallArguments(index=index, fragment=fragment) if index in self.held:
                    self.held[index][1].append(fragment)
                    continue
                case CallEnded(index=index) if index in self.held:
                    name, fragments = self.held.pop(index)
                    out.append(CallArguments(index, self.escape(name, "".join(fragments))))
                case Finished() | Failed():
                    out += [CallArguments(index, "".join(fragments)) for index, (_, fragments) in self.held.items()]
                    self.held.clear()
            out.append(event)
        return out

    def escape(self, tool: str, arguments: str) -> str:
        """Escape and repair the arguments, as far as the setting asks for it."""
        escaped = arguments
        if DIFFS in self.guards and tool == DIFF_TOOL:
            escaped = self.repair_diff(escaped)
        if ENTITIES in self.guards:
            protected = escape_arguments(tool, escaped, self.model)
            if protected != escaped:
                self.notes.append(f"{tool}: escaped what the client un-escapes")
            escaped = protected
        return escaped

    def repair_diff(self, arguments: str) -> str:
        try:
            given = parse_strict_json(arguments)
        except MalformedValue:
            return arguments
        if not isinstance(given, dict) or not isinstance(given.get(DIFF), str):
            return arguments
        repaired, repairs = repair_diff(str(given[DIFF]))
        if not repairs:
            return arguments
        self.notes.append(f"{DIFF_TOOL}: {', '.join(repairs)}")
        return dump(given | {DIFF: repaired})
