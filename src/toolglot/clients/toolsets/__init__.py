"""Tool sets for editing: a client's own tools told as those that a model was trained on, and back.

mapping = find(conversation.tools, "anthropic")
asked = mapping.offer(conversation)             tools and history as the model knows them
told = bring_back(mapping, events)              its answer as the client knows it; piece by piece: Return(mapping)
"""

from __future__ import annotations

from toolglot.clients.toolsets.operations import Untranslatable
from toolglot.clients.toolsets.response_mapper import ResponseMapper, map_response
from toolglot.clients.toolsets.tool_mapper import NAMES, SETS, MappedConversation, ToolMapping, find, mappings

__all__ = [
    "NAMES",
    "SETS",
    "MappedConversation",
    "ResponseMapper",
    "ToolMapping",
    "Untranslatable",
    "find",
    "map_response",
    "mappings",
]
