"""The XML client of a request, and what it needs from either kind of model.

    session = detect_session(conversation, headers)     None for native clients
    session.tools                                       tools for reading what a model wrote, in any dialect
    session.to_native(conversation)                     the request as a native client would send it
    session.make_renderer(native=True)                  renders the answer as the client's XML

A text-only model gets the request unchanged: the prompt already teaches the XML, and the history shows it. A second
format description would contradict the first. A model with native tools gets the native request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct, structs
from msgspec.structs import replace

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.call_renderer import render_call
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.detection import AUTO, DetectedClient, detect_client
from toolglot.clients.xml.history_parser import parse_history
from toolglot.clients.xml.profile import ClientParameter, ClientTool, ValueKind
from toolglot.clients.xml.prompt_parser import ClientPrompt, parse_prompt
from toolglot.clients.xml.prompt_sections import DocumentedTool
from toolglot.clients.xml.response_renderer import ResponseRenderer
from toolglot.clients.xml.tool_definitions import ToolDefinitions, define_lenient_tools, define_tools
from toolglot.clients.xml.verbatim_calls import VerbatimCalls
from toolglot.core.conversation import Conversation, Text, Tool, ToolChoice
from toolglot.core.events import Defect

CACHED_CONTEXTS: Final = 64
_VALUE_KINDS: Final = {
    "boolean": ValueKind.FLAG,
    "integer": ValueKind.NUMBER,
    "number": ValueKind.TEXT,
    "object": ValueKind.JSON,
    "array": ValueKind.LIST,
}


class XmlClientContext(Struct, frozen=True):
    """A client as described by its profile and its prompt."""

    client: XmlClient
    prompt: ClientPrompt
    definitions: ToolDefinitions
    tools: tuple[Tool, ...]


class XmlSession(Struct, frozen=True):
    """The XML client of one request. ``prompt_at``: message and part of its prompt; ``model``: the requested id."""

    context: XmlClientContext
    prompt_at: tuple[int, int] | None
    model: str

    @property
    def profile(self) -> str:
        return self.context.client.name

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Its tools with all names and keys that models are known to use."""
        return self.context.tools

    @property
    def offered(self) -> tuple[Tool, ...]:
        """Its tools as offered to a model with native tools."""
        return self.context.definitions.tools

    def add_tools(self, tools: Iterable[Tool], hidden: Collection[str]) -> tuple[Tool, ...]:
        """These tools and the client's own with all aliases. Of two with the same name the client's own wins, unless
        the name is hidden."""
        own = {tool.name: tool for tool in self.tools if tool.name not in hidden}
        return (*own.values(), *(tool for tool in tools if tool.name not in own))

    def check_call(self, name: str, arguments: str) -> str:
        """Why a call cannot be rendered for the client; an empty string if it can."""
        return "; ".join(map(str, self.find_call_defects(name, arguments)))

    def find_call_defects(self, name: str, arguments: str) -> tuple[Defect, ...]:
        """Why a call cannot be rendered for the client; empty if it can."""
        return render_call(self.context.client, self.model, name, arguments, servers=self.servers).defects

    @property
    def servers(self) -> dict[str, tuple[str, str]]:
        """Server and tool of the offered names of MCP tools."""
        members = self.context.definitions.members
        return {name: (member.server, member.name) for name, member in members.items()}

    def describe(self) -> str:
        documented = len(self.context.prompt.documents)
        return f"{self.profile}, takes calls as XML; {documented} tools are documented in its prompt"

    def to_native(self, conversation: Conversation) -> Conversation:
        """The conversation with native tools, calls and results, without the XML instructions. It allows one call per
        message."""
        context = self.context
        messages = list(conversation.messages)
        if self.prompt_at is not None:
            number, place = self.prompt_at
            parts = list(messages[number].parts)
            parts[place] = Text(context.prompt.rest)
            messages[number] = structs.replace(messages[number], parts=tuple(parts))
        turns = parse_history(messages, context.client, self.model, context.definitions.names)
        demanded = context.prompt.demands and conversation.choice == ToolChoice()
        return structs.replace(
            conversation,
            messages=turns,
            tools=context.definitions.tools,
            choice=ToolChoice("required") if demanded else conversation.choice,
            sampling=structs.replace(conversation.sampling, parallel_calls=False),
        )

    @property
    def verbatim_calls(self) -> VerbatimCalls:
        """How the client parses calls in its own XML."""
        return VerbatimCalls(self.context.client, self.model)

    def make_renderer(self, native: bool) -> ResponseRenderer:
        """A renderer for the answer. ``native``: put call ids into the XML; the client sends it back with the
        history."""
        return ResponseRenderer(self.context.client, self.model, carry_ids=native, servers=self.servers)


def detect_session(
    conversation: Conversation, headers: Mapping[str, str] | None = None, setting: str = AUTO
) -> XmlSession | None:
    """Detect the XML client of a request; None if there is none. A prompt that documents no tools does not count unless
    the setting names a profile."""
    found = detect_client(conversation, headers, setting)
    if found is None:
        return None
    context = load_context(found.profile, _prompt_text(conversation, found))
    if not context.prompt.documents and setting == AUTO:
        return None
    return XmlSession(context, found.at, conversation.model)


def _prompt_text(conversation: Conversation, found: DetectedClient) -> str:
    if found.at is None:
        return ""
    part = conversation.messages[found.at[0]].parts[found.at[1]]
    return part.text if isinstance(part, Text) else ""


@lru_cache(maxsize=CACHED_CONTEXTS)
def load_context(profile: str, text: str) -> XmlClientContext:
    """Parse the prompt and combine it with the profile. Cached: clients send the same prompt with every turn."""
    prompt = parse_prompt(text)
    client = _add_documented_tools(all_clients()[profile], prompt)
    return XmlClientContext(client, prompt, define_tools(client, prompt), define_lenient_tools(client, prompt))


def _add_documented_tools(client: XmlClient, prompt: ClientPrompt) -> XmlClient:
    """Add tools that the prompt documents and the profile lacks: the client may be newer, and users define their own.
    Of a tool that takes one of several parameters, keep only those that are documented."""
    new = {
        document.name: _define_tool(document)
        for document in prompt.documents
        if client.find_tool(document.name) is None
    }
    for document in prompt.documents:
        tool = client.tools.get(document.name)
        if tool is not None and tool.one_of and document.parameters is not None:
            new[tool.name] = _drop_undocumented(tool, {one.name for one in document.parameters})
    if not new:
        return client
    names = frozenset(parameter.name for tool in new.values() for parameter in tool.parameters)
    grammar = client.grammar
    grammar = replace(grammar, tools=grammar.tools | frozenset(new), parameters=grammar.parameters | names)
    return replace(client, tools={**client.tools, **new}, grammar=grammar)


def _drop_undocumented(tool: ClientTool, documented: set[str]) -> ClientTool:
    """Drop the first alternative parameter if only another is documented: for some models Roo has a tool that reads one
    file by its path, and no list of files."""
    first, *others = tool.one_of
    left = documented.intersection(others)
    if first in documented or not left:
        return tool
    parameters = (
        replace(one, required=True) if one.name in left else one for one in tool.parameters if one.name != first
    )
    return replace(tool, parameters=tuple(parameters), one_of=())


def _define_tool(document: DocumentedTool) -> ClientTool:
    parameters = (
        ClientParameter(
            one.name, one.description, one.required is not False, _VALUE_KINDS.get(one.type, ValueKind.TEXT)
        )
        for one in document.parameters or ()
    )
    return ClientTool(document.name, document.description, tuple(parameters))
