"""A call that the model wrote in the client's own XML.

Strategy. What such a call means is what the client makes of it, entities, code fences and all: if the client's parser
reads what the reader read, the text goes on as it stands. If not (the parser would end a value early, or take a tag in
it for a parameter), the values that were meant are found by doing to each what the client would do, and rendered anew.
"""

from __future__ import annotations

from typing import Final

from toolglot.clients.calls import Rendered, render_call
from toolglot.clients.client import Client
from toolglot.clients.meaning import interpret, read_json
from toolglot.clients.nested import Spoiled
from toolglot.clients.parsers import trim_value
from toolglot.clients.record import CallBlock, ClientTool, Kind
from toolglot.jsontext import Number, Value, dump

NESTED: Final = (Kind.FILES, Kind.SUGGESTIONS)
"""Values made of elements. The reader knows no such element by its name, so only the client's parser is asked."""


def keep_call(client: Client, model: str, name: str, arguments: str, written: str) -> Rendered | None:
    """The call as it was written, or with the same meaning; None where nothing is known of the tool."""
    tool = client.find(name)
    try:
        given = read_json(arguments)
    except Spoiled:
        return None
    if tool is None or not isinstance(given, dict):
        return None
    meant = _interpret(client, tool, given, model)
    call = _read_whole(client, tool, model, written)
    if call is not None and _is_meant(client, tool, call, given, meant):
        return Rendered(tool.name, written)
    return render_call(client, model, name, dump(given | meant))


def _interpret(client: Client, tool: ClientTool, given: dict[str, Value], model: str) -> dict[str, Value]:
    """The values that stand between tags as text, as the client's tool would use them."""
    texts = {name: value for name, value in given.items() if isinstance(value, str) and not isinstance(value, Number)}
    named = {known.name if (known := tool.find(name)) else name: name for name in texts}
    tags = {
        name: texts[own] if name in client.grammar.kept else trim_value(client.grammar, name, texts[own])
        for name, own in named.items()
    }
    meant, complaint = interpret(tool, tags, model)
    return {} if complaint else {named.get(name, name): value for name, value in meant.items()}


def _read_whole(client: Client, tool: ClientTool, model: str, written: str) -> CallBlock | None:
    """The call as the client reads it, if it does not complain of anything."""
    blocks = client.read(written.strip(), model)
    call = blocks[0] if len(blocks) == 1 else None
    if not isinstance(call, CallBlock) or call.partial or call.complaint or call.name != tool.name:
        return None
    needed = {one.name for one in tool.parameters if one.required and one.name not in tool.one_of}
    return None if needed - call.params.keys() else call


def _is_meant(
    client: Client, tool: ClientTool, call: CallBlock, given: dict[str, Value], meant: dict[str, Value]
) -> bool:
    """Whether the client reads what the reader read. Tags that it does not know it skips, with or without us."""
    nested = {one.name for one in tool.parameters if one.kind in NESTED} & call.params.keys()
    strange = given.keys() - call.params.keys()
    if not nested and any(given[name] and name in client.grammar.parameters for name in strange):
        return False
    expected = given | meant
    return all(value == expected.get(name) for name, value in call.params.items() if name not in nested)
