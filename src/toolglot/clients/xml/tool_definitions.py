"""Build native tool definitions from the prompt of an XML client.

The prompt lists tools and parameters with descriptions. The client profile adds what it knows: types, nested schemas,
and whether a parameter is required where the prompt does not state it. Tools of MCP servers are offered one by one,
with the schemas of their servers; ``ToolDefinitions.members`` maps them back to the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import structs

from toolglot.clients.xml.call_renderer import MCP_TOOL
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.profile import ClientTool
from toolglot.clients.xml.prompt_parser import ClientPrompt
from toolglot.clients.xml.prompt_sections import DocumentedParameter, DocumentedTool, ServerTool
from toolglot.core.conversation import Tool
from toolglot.core.tool_names import assign_names

_VALID_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that every upstream accepts."""


@dataclass(frozen=True, slots=True)
class ToolDefinitions:
    """Tools for a model with native tools. ``members`` are tools of MCP servers by their offered name."""

    tools: tuple[Tool, ...] = ()
    members: Mapping[str, ServerTool] = field(default_factory=dict, hash=False)

    @property
    def names(self) -> dict[tuple[str, str], str]:
        """Offered names of the members, by server and tool."""
        return {(member.server, member.name): name for name, member in self.members.items()}


def define_tools(client: XmlClient, prompt: ClientPrompt) -> ToolDefinitions:
    """The tools of the prompt; if it documents none, all tools of the profile."""
    if not prompt.documents:
        return ToolDefinitions(client.list_tools())
    members = _name_server_tools(prompt.servers)
    hidden = MCP_TOOL if members and all(member.schema for member in prompt.servers) else ""
    tools = [
        define_tool(document, client.find_tool(document.name))
        for document in prompt.documents
        if document.name != hidden
    ]
    return ToolDefinitions((*tools, *_define_members(members)), members)


def define_lenient_tools(client: XmlClient, prompt: ClientPrompt) -> tuple[Tool, ...]:
    """All tools with all aliases, for reading what a model wrote, and the tools of MCP servers by their offered names.
    Clients document some tools in a later message, and themselves reject those that are not allowed."""
    unknown = [define_tool(document, None) for document in prompt.documents if client.find_tool(document.name) is None]
    members = _name_server_tools(prompt.servers) if prompt.documents else {}
    return (*client.list_tools(lenient=True), *unknown, *_define_members(members))


def _define_members(members: Mapping[str, ServerTool]) -> Iterator[Tool]:
    for name, member in members.items():
        yield Tool(name, member.description, member.schema or {"type": "object"})


def _name_server_tools(members: Iterable[ServerTool]) -> dict[str, ServerTool]:
    full = {f"mcp--{member.server}--{member.name}": member for member in members}
    given = assign_names(full, lambda name: _VALID_NAME.fullmatch(name) is not None)
    return {given[name]: member for name, member in full.items()}


def define_tool(document: DocumentedTool, known: ClientTool | None) -> Tool:
    """The tool definition for a documented tool."""
    base = known.as_tool() if known else Tool(document.name)
    properties = dict(base.parameters.get("properties", {}))
    required = {one.name for one in known.parameters if one.required} if known else set()
    listed = _list_parameters(document, properties)
    if known is not None:
        listed = [_lower_name(one, properties) for one in listed]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {one.name: _describe(one, properties.get(one.name)) for one in listed},
    }
    needed = [one.name for one in listed if _is_required(one, properties, required)]
    if needed:
        schema["required"] = needed
    return structs.replace(base, description=document.description or base.description, parameters=schema)


def _list_parameters(document: DocumentedTool, properties: Mapping[str, Any]) -> list[DocumentedParameter]:
    """Parameters that are listed, plus known ones in its examples; without a list, all known ones."""
    if document.parameters is None and properties:
        return [DocumentedParameter(name) for name in properties]
    if document.parameters is None:
        return [DocumentedParameter(name) for name in document.example_parameters]
    named = {one.name for one in document.parameters}
    example_parameters = (name for name in document.example_parameters if name in properties and name not in named)
    return [*document.parameters, *(DocumentedParameter(name, required=False) for name in example_parameters)]


def _lower_name(one: DocumentedParameter, properties: Mapping[str, Any]) -> DocumentedParameter:
    """Lower-case a parameter name: some prompts capitalise them, tags are lower case."""
    small = one.name.lower()
    return structs.replace(one, name=small) if one.name not in properties and small in properties else one


def _describe(one: DocumentedParameter, known: Mapping[str, Any] | None) -> dict[str, Any]:
    schema = dict(known) if known is not None else {"type": one.type or "string"}
    if one.description:
        schema["description"] = one.description
    return schema


def _is_required(one: DocumentedParameter, properties: Mapping[str, Any], required: set[str]) -> bool:
    """The prompt decides, then the profile. A parameter that neither calls optional is required."""
    if one.required is not None:
        return one.required
    return one.name in required if one.name in properties else True
