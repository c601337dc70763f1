"""The tools that an XML client's prompt offers, as every other client would send them.

The prompt says which tools and parameters there are, and tells about them. The profile of the client knows more of the
ones it has: types, nested shapes, and whether a parameter is needed where the prompt does not say. Tools of MCP servers
are offered one by one, with the schemas their servers gave; ``ToolDefinitions.members`` leads back to the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from msgspec import structs

from toolglot.clients.xml.call_renderer import MCP_TOOL
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.profile import ClientTool
from toolglot.clients.xml.prompt_parser import Prompt
from toolglot.clients.xml.prompt_sections import Document, Parameter, ServerTool
from toolglot.core.conversation import Tool
from toolglot.core.tool_names import assign_names

_FIT: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that every upstream takes."""


@dataclass(frozen=True, slots=True)
class ToolDefinitions:
    """Tools for a model that has native ones. ``members`` belong to a server, and are called as it is told here."""

    tools: tuple[Tool, ...] = ()
    members: Mapping[str, ServerTool] = field(default_factory=dict, hash=False)

    @property
    def names(self) -> dict[tuple[str, str], str]:
        """The names of the members by server and tool."""
        return {(member.server, member.name): name for name, member in self.members.items()}


def make_offer(client: XmlClient, prompt: Prompt) -> ToolDefinitions:
    """What the prompt offers; without documents in it, everything the client is known to have."""
    if not prompt.documents:
        return ToolDefinitions(client.offer())
    members = _name_members(prompt.servers)
    spared = MCP_TOOL if members and all(member.schema for member in prompt.servers) else ""
    tools = [
        make_tool(document, client.find(document.name)) for document in prompt.documents if document.name != spared
    ]
    tools += [Tool(name, member.description, member.schema or {"type": "object"}) for name, member in members.items()]
    return ToolDefinitions(tuple(tools), members)


def make_readable(client: XmlClient, prompt: Prompt) -> tuple[Tool, ...]:
    """All tools for reading what a model wrote who was taught by the prompt, in all their spellings. Clients document
    some of them in a later message, and say themselves which ones may not be used."""
    strange = [make_tool(document, None) for document in prompt.documents if client.find(document.name) is None]
    return (*client.offer(lenient=True), *strange)


def _name_members(members: Iterable[ServerTool]) -> dict[str, ServerTool]:
    full = {f"mcp--{member.server}--{member.name}": member for member in members}
    given = assign_names(full, lambda name: _FIT.fullmatch(name) is not None)
    return {given[name]: member for name, member in full.items()}


def make_tool(document: Document, known: ClientTool | None) -> Tool:
    """The tool that a document describes."""
    base = known.as_tool() if known else Tool(document.name)
    properties = dict(base.parameters.get("properties", {}))
    required = {one.name for one in known.parameters if one.required} if known else set()
    listed = _list_parameters(document, properties)
    if known is not None:
        listed = [_respell(one, properties) for one in listed]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {one.name: _describe(one, properties.get(one.name)) for one in listed},
    }
    needed = [one.name for one in listed if _is_needed(one, properties, required)]
    if needed:
        schema["required"] = needed
    return structs.replace(base, description=document.description or base.description, parameters=schema)


def _list_parameters(document: Document, properties: Mapping[str, Any]) -> list[Parameter]:
    """Those the document lists, and those of its samples that are known; without a list, all that are known."""
    if document.parameters is None and properties:
        return [Parameter(name) for name in properties]
    if document.parameters is None:
        return [Parameter(name) for name in document.sampled]
    named = {one.name for one in document.parameters}
    sampled = (name for name in document.sampled if name in properties and name not in named)
    return [*document.parameters, *(Parameter(name, required=False) for name in sampled)]


def _respell(one: Parameter, properties: Mapping[str, Any]) -> Parameter:
    """Some documents capitalise the names of parameters; tags are small."""
    small = one.name.lower()
    return replace(one, name=small) if one.name not in properties and small in properties else one


def _describe(one: Parameter, known: Mapping[str, Any] | None) -> dict[str, Any]:
    schema = dict(known) if known is not None else {"type": one.type or "string"}
    if one.description:
        schema["description"] = one.description
    return schema


def _is_needed(one: Parameter, properties: Mapping[str, Any], required: set[str]) -> bool:
    """What the prompt says counts; then what is known. A parameter that nobody calls optional is needed."""
    if one.required is not None:
        return one.required
    return one.name in required if one.name in properties else True
