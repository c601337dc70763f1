"""Tool sets for editing: a client's own tools told as those that a model was trained on, and back.

mapping = find(conversation.tools, "anthropic")
asked = mapping.offer(conversation)             tools and history as the model knows them
told = bring_back(mapping, events)              its answer as the client knows it; piece by piece: Return(mapping)
"""

from __future__ import annotations

from toolglot.clients.toolsets.operations import Loss
from toolglot.clients.toolsets.response_mapper import Return, bring_back
from toolglot.clients.toolsets.tool_mapper import NAMES, SETS, Carried, Mapping, find, mappings

__all__ = ["NAMES", "SETS", "Carried", "Loss", "Mapping", "Return", "bring_back", "find", "mappings"]
