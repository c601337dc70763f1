"""One XML client: its tools, the tags it knows, and how it reads a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from msgspec import structs

from toolglot.clients.xml.parsers import TagGrammar, compile_openers
from toolglot.clients.xml.profile import ArgumentLimits, ClientTool, PromptLayout, XmlBlock, XmlCallBlock
from toolglot.clients.xml.value_decoding import decode_values
from toolglot.core import conversation


@dataclass(frozen=True, slots=True, eq=False)
class XmlClient:
    """A profile. Two clients that differ in anything that follows are two profiles."""

    name: str
    tools: Mapping[str, ClientTool]
    """The tools it documents, and those that only its parser knows."""
    grammar: TagGrammar
    parse: Callable[[TagGrammar, str], list[XmlBlock]]
    limits: ArgumentLimits
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names that models use for a tool."""
    ignored_arguments: frozenset[str] = frozenset()
    """Arguments that models add from other versions; without them the call means the same."""
    layouts: tuple[PromptLayout, ...] = ()
    leading_tags: frozenset[str] = frozenset()
    """Tags that the client takes for something else at the very beginning of a message."""
    reasoning_tags: frozenset[str] = frozenset({"thinking"})
    """Tags around reasoning that the client asks for, or knows, and takes out of the text that it shows."""

    @property
    def opener(self) -> re.Pattern[str]:
        """The opening tag of a tool; its group is the name."""
        return compile_openers(self.grammar.tools)

    @property
    def tags(self) -> frozenset[str]:
        """The names that open a call wherever they stand in a text."""
        return self.grammar.tools

    def find_tool(self, name: str) -> ClientTool | None:
        return self.tools.get(self.aliases.get(name, name))

    def read(self, text: str, model: str) -> list[XmlBlock]:
        """How this client reads an assistant message when the model it asked for has this id."""
        blocks: list[XmlBlock] = []
        for block in self.parse(self.grammar, text):
            if isinstance(block, XmlCallBlock):
                tool = self.tools.get(block.name) or ClientTool(block.name, "")
                params, complaint = decode_values(tool, block.tags, model)
                block = replace(block, params=params, complaint=complaint)
            blocks.append(block)
        return blocks

    def list_tools(self, lenient: bool = False) -> tuple[conversation.Tool, ...]:
        """All its tools; ``lenient`` with the names and keys that models use instead."""
        offered = [tool.as_tool(lenient) for tool in self.tools.values()]
        if lenient:
            offered += [
                structs.replace(self.tools[known].as_tool(True), name=alias) for alias, known in self.aliases.items()
            ]
        return tuple(offered)
