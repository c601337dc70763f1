"""One XML client: its tools, the tags that its parser knows, and how it parses a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from msgspec import Struct, field, structs

from toolglot.clients.xml.parsers import TagGrammar, compile_openers
from toolglot.clients.xml.profile import ArgumentLimits, ClientTool, PromptLayout, XmlBlock, XmlCallBlock
from toolglot.clients.xml.value_decoding import decode_values
from toolglot.core import conversation


class XmlClient(Struct, frozen=True, eq=False):
    """A client profile. Clients that differ in any of these fields need separate profiles."""

    name: str
    tools: Mapping[str, ClientTool]
    """Tools that its prompt documents, and tools that only its parser knows."""
    grammar: TagGrammar
    parse: Callable[[TagGrammar, str], list[XmlBlock]]
    limits: ArgumentLimits
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names that models use for a tool."""
    ignored_arguments: frozenset[str] = frozenset()
    """Arguments of other versions that models add; the call means the same without them."""
    layouts: tuple[PromptLayout, ...] = ()
    leading_tags: frozenset[str] = frozenset()
    """Tags with another meaning to the client at the very beginning of a message."""
    reasoning_tags: frozenset[str] = frozenset({"thinking"})
    """Tags around reasoning that the client requests, or knows, and removes from the text that it shows."""

    @property
    def opener(self) -> re.Pattern[str]:
        """Pattern for the opening tag of any tool; group 1 is the name."""
        return compile_openers(self.grammar.tools)

    @property
    def tags(self) -> frozenset[str]:
        """Tag names that open a call anywhere in a text."""
        return self.grammar.tools

    def find_tool(self, name: str) -> ClientTool | None:
        return self.tools.get(self.aliases.get(name, name))

    def read(self, text: str, model: str) -> list[XmlBlock]:
        """Parse an assistant message as the client does. ``model`` is the id that the client requested: what it
        un-escapes depends on that."""
        blocks: list[XmlBlock] = []
        for block in self.parse(self.grammar, text):
            if isinstance(block, XmlCallBlock):
                tool = self.tools.get(block.name) or ClientTool(block.name, "")
                params, complaint = decode_values(tool, block.tags, model)
                block = replace(block, params=params, complaint=complaint)
            blocks.append(block)
        return blocks

    def list_tools(self, lenient: bool = False) -> tuple[conversation.Tool, ...]:
        """Definitions of all its tools. ``lenient`` adds the alternative names and keys that models use."""
        offered = [tool.as_tool(lenient) for tool in self.tools.values()]
        if lenient:
            offered += [
                structs.replace(self.tools[known].as_tool(True), name=alias) for alias, known in self.aliases.items()
            ]
        return tuple(offered)
