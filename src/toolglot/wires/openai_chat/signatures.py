"""What only some servers of the chat wire say.

    "tool_calls": [{"id": "...", "extra_content": {"google": {"thought_signature": "..."}}, "function": {...}}]

A signature stands on the first call of an answer, or beside its text, and must come back there. Other fields that
nobody else knows are carried as they are, to clients of this wire.
"""

from __future__ import annotations

from typing import Any

NAME = "openai_chat"
OTHERS = ("reasoning_details", "annotations")
"""Fields of a message that are carried from this wire to this wire."""


def read_signature(extra: object) -> str:
    """The signature in an ``extra_content``, if there is one."""
    vendor = extra.get("google") if isinstance(extra, dict) else None
    seal = vendor.get("thought_signature") if isinstance(vendor, dict) else None
    return seal if isinstance(seal, str) else ""


def write_signature(seal: str) -> dict[str, Any]:
    return {"extra_content": {"google": {"thought_signature": seal}}} if seal else {}
