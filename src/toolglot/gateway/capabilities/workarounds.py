"""What has to be put differently for some servers, by the names that profiles give their quirks.

    strips_special_tokens   the marks of many dialects are special tokens; where tools are text they are asked for
    named_choice_is_auto    a choice among the tools is taken for none: only the chosen ones are offered
    choice_ignored          so is any choice: the same, and what must be done is said
    signed_calls            its calls carry signatures that must come back, also on a wire that usually has none

Thoughts of earlier turns go into the field that the server knows, and nowhere if it knows none. A call that is required
of a model that writes text is held to by a grammar, where the server takes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from toolglot.core.conversation import Conversation, Part, Reasoning, ToolChoice
from toolglot.gateway.capabilities.profiles import (
    CHOICE_IGNORED,
    GRAMMAR,
    NAMED_CHOICE_IS_AUTO,
    SIGNED_CALLS,
    STRIPS_SPECIAL_TOKENS,
    Rule,
)
from toolglot.prompting.conversation import PromptedConversation
from toolglot.prompting.few_shot import add_grammar
from toolglot.prompting.grammar import build_grammar
from toolglot.wires.translation import demand_call

FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {STRIPS_SPECIAL_TOKENS: {"skip_special_tokens": False}}
"""Quirks that are met with a further field where tools are text."""


def add_fields(rule: Rule | None) -> dict[str, Any]:
    """The fields that a server needs besides, where tools are text."""
    return {name: value for quirk in (rule.quirks if rule else ()) for name, value in FIELDS.get(quirk, {}).items()}


def narrow(conversation: Conversation, rule: Rule) -> Conversation:
    """The conversation with no tools but those that may be called, for a server that would not know; itself if that
    changes nothing."""
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


def retell_thoughts(conversation: Conversation, rule: Rule) -> Conversation:
    """Thoughts of earlier turns under the name of the field in which the server looks for them, or left out; and no
    signatures, unless it is one that signs."""
    if not any(isinstance(part, Reasoning) for message in conversation.messages for part in message.parts):
        return conversation
    messages = tuple(
        replace(message, parts=tuple(told for part in message.parts if (told := _retell(part, rule)) is not None))
        for message in conversation.messages
    )
    return replace(conversation, messages=messages)


def _retell(part: Part, rule: Rule) -> Part | None:
    if not isinstance(part, Reasoning):
        return part
    if part.signature and SIGNED_CALLS in rule.quirks:
        return part if rule.reasoning else replace(part, text="")
    return replace(part, kind=rule.reasoning, signature="") if rule.reasoning and part.text else None


def hold_to_call(speech: PromptedConversation, rule: Rule, dialect: str, *, parallel: bool) -> PromptedConversation:
    """The speech with a grammar in which there is nothing but calls, if the server takes one."""
    if rule.structured != GRAMMAR:
        return speech
    return add_grammar(speech, build_grammar(speech.tools, dialect, required=True, parallel=parallel))
