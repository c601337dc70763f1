"""Reasoning signatures and other fields that only some servers of the chat wire send.

    "tool_calls": [{"id": "...", "extra_content": {"google": {"thought_signature": "..."}}, "function": {...}}]

A signature is on the first call of a response, or next to its text, and must come back there. Other fields without a
neutral form pass unchanged to clients of this wire.
"""

from __future__ import annotations

from typing import Any

NAME = "openai_chat"
OTHERS = ("reasoning_details", "annotations")
"""Message fields that only pass between upstream and client of this wire."""


def read_signature(extra: object) -> str:
    """Return the signature in an ``extra_content``, or an empty string."""
    vendor = extra.get("google") if isinstance(extra, dict) else None
    signature = vendor.get("thought_signature") if isinstance(vendor, dict) else None
    return signature if isinstance(signature, str) else ""


def write_signature(signature: str) -> dict[str, Any]:
    return {"extra_content": {"google": {"thought_signature": signature}}} if signature else {}
