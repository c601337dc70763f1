"""Tool sets for editing: offer a client's tools as those that a model was trained on, and map its calls back.

mapping = find_mapping(conversation.tools, "anthropic")
mapping.map_request(conversation)       tools and history as the model knows them
map_response(mapping, events)           a whole answer for the client; streaming: ResponseMapper(mapping).feed(events)
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
    suggest_toolset,
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
    "suggest_toolset",
]
