"""Output formats of a request: fields that hold the model to a grammar, a tag or a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from toolglot.core.conversation import Conversation
from toolglot.prompting.conversation import PromptedConversation

_FIELDS = frozenset(
    (
        "ebnf",
        "format",
        "grammar",
        "guided_choice",
        "guided_grammar",
        "guided_json",
        "guided_regex",
        "json_schema",
        "regex",
        "response_format",
        "structured_outputs",
    )
)
"""The fields with which clients ask servers for an output format. No server takes two of them."""


def has_output_format(conversation: Conversation) -> bool:
    """Whether the client asks for an output format itself."""
    return not _FIELDS.isdisjoint(conversation.extra)


def add_output_format(prompted: PromptedConversation, fields: Mapping[str, Any]) -> PromptedConversation | None:
    """Add the fields of an output format to a request; None if the client asks for one itself."""
    conversation = prompted.conversation
    if has_output_format(conversation):
        return None
    return replace(prompted, conversation=replace(conversation, extra={**conversation.extra, **fields}))
