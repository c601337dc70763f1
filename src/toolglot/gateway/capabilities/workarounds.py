"""Changes to requests for servers with quirks, by the quirk names of the profiles.

    strips_special_tokens   the marks of many dialects are special tokens; where tools are text, ask to keep them
    named_choice_is_auto    the server ignores a choice of certain tools: offer only those
    choice_ignored          the server ignores any choice: offer only the chosen tools, and demand a call in the prompt
    signed_calls            calls carry signatures that must be sent back, even on a wire without signatures
    reasoning_returned      the reasoning before a call must be sent back with it; see sessions/kept_reasoning.py
    thinking_or_choice      the server refuses a required call of a model that thinks; see constraints.py

Reasoning of earlier turns goes into the field that the server supports, or is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from toolglot.core.conversation import Conversation, Part, Reasoning, ToolChoice
from toolglot.gateway.capabilities.profiles import (
    CHOICE_IGNORED,
    NAMED_CHOICE_IS_AUTO,
    SIGNED_CALLS,
    STRIPS_SPECIAL_TOKENS,
    Rule,
)
from toolglot.wires.translation import demand_call

FIELDS: Final[Mapping[str, Mapping[str, bool]]] = {STRIPS_SPECIAL_TOKENS: {"skip_special_tokens": False}}
"""Additional request fields for quirks, where tools are text."""


def quirk_fields(rule: Rule | None) -> dict[str, bool]:
    """The additional request fields that a server needs where tools are text."""
    return {name: value for quirk in (rule.quirks if rule else ()) for name, value in FIELDS.get(quirk, {}).items()}


def restrict_tools(conversation: Conversation, rule: Rule) -> Conversation:
    """The conversation with only the tools that may be called, for a server that ignores the tool choice; the same
    object if nothing changes."""
    choice, ignored = conversation.choice, CHOICE_IGNORED in rule.quirks
    if choice == ToolChoice() or not conversation.tools:
        return conversation
    if not (ignored or (choice.only and NAMED_CHOICE_IS_AUTO in rule.quirks)):
        return conversation
    tools = tuple(tool for tool in conversation.tools if choice.allows(tool.name))
    messages = conversation.messages
    if ignored and choice.mode == "required":
        messages = (demand_call(tools), *messages)
    return replace(conversation, messages=messages, tools=tools, choice=ToolChoice("auto" if ignored else choice.mode))


def adapt_reasoning(conversation: Conversation, rule: Rule) -> Conversation:
    """Reasoning of earlier turns under the field name that the server supports, or left out; signatures are removed
    unless the server signs."""
    if not any(isinstance(part, Reasoning) for message in conversation.messages for part in message.parts):
        return conversation
    messages = tuple(
        replace(message, parts=tuple(kept for part in message.parts if (kept := _adapt_part(part, rule)) is not None))
        for message in conversation.messages
    )
    return replace(conversation, messages=messages)


def _adapt_part(part: Part, rule: Rule) -> Part | None:
    if not isinstance(part, Reasoning):
        return part
    if part.signature and SIGNED_CALLS in rule.quirks:
        return part if rule.reasoning else replace(part, text="")
    return replace(part, kind=rule.reasoning, signature="") if rule.reasoning and part.text else None
