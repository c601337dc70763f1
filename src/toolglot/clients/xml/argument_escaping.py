"""For Roo and its successors with native tools: arguments that their tools would change, written so that they do not.

These clients un-escape the content of files, diffs and commands that arrive as JSON too, where nothing was escaped: a
file that should contain ``&apos;`` gets a quote, and one that starts with a code fence loses it. The same data that
renders XML tells what to escape.
"""

from __future__ import annotations

from collections.abc import Mapping

from toolglot.clients.xml import roo_tools
from toolglot.clients.xml.nested_parser import MalformedValue
from toolglot.clients.xml.profile import Parameter
from toolglot.clients.xml.value_decoding import read_json
from toolglot.clients.xml.value_encoding import escape_entities, guard_ends
from toolglot.core.lenient_json import dump

_GUARDED: Mapping[tuple[str, str], Parameter] = {
    (tool.name, parameter.name): parameter
    for tool in (roo_tools.WRITE_TO_FILE, roo_tools.APPLY_DIFF, roo_tools.EXECUTE_COMMAND)
    for parameter in tool.parameters
    if parameter.undoing.entities
}


def guard_value(tool: str, key: str, value: str, model: str) -> str:
    """The value of one argument, so that the client's tool uses what the model wrote."""
    parameter = _GUARDED.get((tool, key))
    if parameter is None:
        return value
    undoing = parameter.undoing.applying(model, "")
    escaped = escape_entities(value, undoing) if undoing.entities else value
    return guard_ends(escaped, parameter, undoing.vanishing)


def guard_arguments(tool: str, arguments: str, model: str) -> str:
    """The same for the JSON text of all arguments; text that needs nothing, or is no JSON object, stays as it is."""
    if not any(name == tool for name, _ in _GUARDED):
        return arguments
    try:
        given = read_json(arguments)
    except MalformedValue:
        return arguments
    if not isinstance(given, dict):
        return arguments
    guarded = {
        key: guard_value(tool, key, value, model) if isinstance(value, str) else value for key, value in given.items()
    }
    return arguments if guarded == given else dump(guarded)
