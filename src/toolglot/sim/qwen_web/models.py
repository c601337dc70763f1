"""The list of models."""

from __future__ import annotations

from typing import Any

CONTEXT_LENGTH, ANSWER_LENGTH, THINKING_LENGTH = 262144, 32768, 81920


def describe_model(name: str, created: int) -> dict[str, Any]:
    """A model as the service lists it."""
    thinks = "coder" not in name
    capabilities = {
        "vision": True,
        "document": True,
        "video": False,
        "audio": False,
        "citations": False,
        "thinking": thinks,
        "thinking_budget": thinks,
    }
    meta = {
        "description": "A simulated model.",
        "short_description": "Simulated",
        "capabilities": capabilities,
        "max_context_length": CONTEXT_LENGTH,
        "max_generation_length": ANSWER_LENGTH,
        "max_thinking_generation_length": THINKING_LENGTH,
        "abilities": {},
        "chat_type": ["t2t", "search"],
        "mcp": [],
        "modality": ["text", "image"],
    }
    info = {
        "id": name,
        "base_model_id": None,
        "name": name,
        "meta": meta,
        "is_active": True,
        "is_visitor_active": False,
        "updated_at": created,
        "created_at": created,
    }
    return {
        "id": name,
        "name": name,
        "object": "model",
        "owned_by": "qwen",
        "info": info,
        "preset": True,
        "action_ids": [],
    }
