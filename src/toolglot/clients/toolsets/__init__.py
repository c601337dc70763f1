"""Tool sets for editing: a client's own tools told as those that a model was trained on, and back.

mapping = find(conversation.tools, "anthropic")
asked = mapping.offer(conversation)             tools and history as the model knows them
told = bring_back(mapping, events)              its answer as the client knows it; piece by piece: Return(mapping)
"""

from __future__ import annotations

from toolglot.clients.toolsets.operations import Untranslatable
from toolglot.clients.toolsets.response_mapper import ResponseMapper, map_response
from toolglot.clients.toolsets.tool_mapper import (
    TOOLSET_NAMES,
    TOOLSETS,
    MappedCalls,
    ToolMapping,
    all_mappings,
    find_mapping,
)

__all__ = [
    "TOOLSETS",
    "TOOLSET_NAMES",
    "MappedCalls",
    "ResponseMapper",
    "ToolMapping",
    "Untranslatable",
    "all_mappings",
    "find_mapping",
    "map_response",
]
