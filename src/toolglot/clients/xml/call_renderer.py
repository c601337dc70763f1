"""Render one call as the XML of a client, verified by parsing it as the client does.

Strategy. Whatever the encoder assumes, the text is parsed with the port of the client's own parser and value decoding,
and must give the same call with the same values. Only whitespace at the ends, and a tag in text for people, may differ
where ``Tolerance`` allows it, and that is noted. Anything else is refused with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from toolglot.clients.xml.argument_conversion import convert_arguments
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.nested_parser import MalformedValue
from toolglot.clients.xml.parsers import utf16_length
from toolglot.clients.xml.profile import JS_WHITESPACE, ClientParameter, ClientTool, Tolerance, ValueKind, XmlCallBlock
from toolglot.clients.xml.value_decoding import parse_strict_json
from toolglot.clients.xml.value_encoding import BROKEN_OPENER, encode_parameter
from toolglot.core.events import Defect, Reason
from toolglot.core.lenient_json import Value, dump

TRIMMED, BROKEN_TAG = "trimmed", "broken_tag"
MCP_TOOL, MCP_PREFIX = "use_mcp_tool", "mcp--"
_PLAIN_ID = re.compile(r"[\w.:-]{1,128}\Z", re.ASCII)


class RenderedCall(Struct, frozen=True):
    """The XML of a call; or no text, and the defects. ``notes`` lists allowed differences."""

    tool: str
    text: str = ""
    defects: tuple[Defect, ...] = ()
    notes: tuple[str, ...] = ()


def render_call(
    client: XmlClient,
    model: str,
    name: str,
    arguments: str,
    call_id: str = "",
    servers: Mapping[str, tuple[str, str]] | None = None,
    fill: bool = True,
) -> RenderedCall:
    """Render a call. ``call_id`` is added in a tag that clients skip; ``servers`` maps names to MCP server and tool;
    ``fill`` adds the defaults of omitted parameters."""
    try:
        given = parse_strict_json(arguments or "{}")
    except MalformedValue:
        given = None
    if not isinstance(given, dict):
        return _refuse(name, Reason.MALFORMED, "arguments", "something else", "a JSON object")
    server = (servers or {}).get(name) or _split_mcp(client, name)
    if server is not None:
        name, given = MCP_TOOL, {"server_name": server[0], "tool_name": server[1], "arguments": given}
    tool = client.find_tool(name)
    if tool is None:
        return _refuse(name, Reason.UNKNOWN_TOOL, "name", name, f"a tool that {client.name} knows")
    converted = convert_arguments(client, tool, given, fill)
    if converted.defects:
        return RenderedCall(tool.name, "", tuple(converted.defects), tuple(converted.notes))
    text = _render_xml(client, model, tool, converted.values, call_id)
    defects, notes = verify(client, model, tool, text, converted.values)
    return RenderedCall(tool.name, "" if defects else text, defects, (*converted.notes, *notes))


def _refuse(name: str, reason: Reason, where: str, found: str, expected: str) -> RenderedCall:
    return RenderedCall(name, "", (Defect(reason=reason, where=where, found=found, expected=expected),))


def _split_mcp(client: XmlClient, name: str) -> tuple[str, str] | None:
    """Server and tool of a name like ``mcp--server--tool``."""
    server, mark, tool = name.removeprefix(MCP_PREFIX).partition("--")
    return (server, tool) if name.startswith(MCP_PREFIX) and mark and MCP_TOOL in client.tools else None


def _render_xml(client: XmlClient, model: str, tool: ClientTool, values: Mapping[str, Value], call_id: str) -> str:
    path = str(values.get("path", "")).strip(JS_WHITESPACE)
    lines = [f"<{tool.name}>"]
    if _PLAIN_ID.match(call_id) and "id" not in client.grammar.parameters:
        lines.append(f"<id>{call_id}</id>")
    lines += [
        encode_parameter(client, tool.name, parameter, values[parameter.name], model, path)
        for parameter in tool.parameters
        if parameter.name in values
    ]
    return "\n".join([*lines, f"</{tool.name}>"])


def verify(
    client: XmlClient, model: str, tool: ClientTool, text: str, values: Mapping[str, Value]
) -> tuple[tuple[Defect, ...], tuple[str, ...]]:
    """Parse the text as the client does: defects, and notes on allowed differences."""
    if client.limits.call and utf16_length(text) > client.limits.call:
        return (_difference_defect("call", f"{utf16_length(text)} characters", f"at most {client.limits.call}"),), ()
    blocks = client.read(text, model)
    call = blocks[0] if len(blocks) == 1 else None
    if not isinstance(call, XmlCallBlock) or call.partial or call.name != tool.name:
        return (_difference_defect("call", "text that ends the call early", "text that this client can parse"),), ()
    if call.complaint:
        return (_difference_defect(call.complaint.partition(":")[0], "malformed text", "text without a lone <"),), ()
    if strange := call.params.keys() - values.keys():
        return (_difference_defect(strange.pop(), "a tag inside another value", "no such tag"),), ()
    defects, notes = [], []
    for name, value in values.items():
        parameter = next(one for one in tool.parameters if one.name == name)
        difference = _compare(parameter, value, call.params.get(name))
        if difference in (TRIMMED, BROKEN_TAG):
            notes.append(f"{name}: {difference}")
        elif difference:
            defects.append(_difference_defect(name, difference, "a value that this client can parse"))
    return tuple(defects), tuple(notes)


def _difference_defect(where: str, found: str, expected: str) -> Defect:
    return Defect(reason=Reason.INVALID_VALUE, where=where, found=found, expected=expected)


def _compare(parameter: ClientParameter, value: Value, got: Value) -> str:
    """An empty string if they are equal; otherwise the difference."""
    if isinstance(value, str) and isinstance(got, str):
        return "" if value == got else _classify_difference(parameter, value, got)
    if type(value) is type(got) and _is_identical(value, got):
        return ""
    trimmed = parameter.kind is ValueKind.FILES and _is_identical(_trim_paths(value), got)
    return TRIMMED if trimmed else "a value that comes out differently"


def _classify_difference(parameter: ClientParameter, value: str, got: str) -> str:
    care, core, closer = parameter.tolerance, value.strip(JS_WHITESPACE), f"</{parameter.name}>"
    if care is Tolerance.TAIL and value.rstrip(JS_WHITESPACE) == got:
        return TRIMMED
    if care in (Tolerance.ENDS, Tolerance.PROSE) and got and core == got:
        return TRIMMED
    if care is Tolerance.PROSE and closer in core and core.replace(closer, BROKEN_OPENER + closer[1:]) == got:
        return BROKEN_TAG
    if core == got.strip(JS_WHITESPACE):
        return "whitespace at an end, which the client removes"
    return "text that the client would change or cut"


def _trim_paths(value: Value) -> Value:
    """The files with paths as the client trims them."""
    files = value.get("file") if isinstance(value, dict) else None
    if not isinstance(files, list):
        return value
    return {
        "file": [{**file, "path": str(file["path"]).strip(JS_WHITESPACE)} for file in files if isinstance(file, dict)]
    }


def _is_identical(value: Value, got: Value) -> bool:
    """Equal with the same types, the order of keys and the text of numbers."""
    return value is got or dump(value) == dump(got)
