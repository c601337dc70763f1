"""Constrained decoding: hold the model to a call, by what its server supports.

    constrained = constrain(prompted, rule, wire, dialect, tool="read")        tools are text
    constrained = constrain(conversation, rule, wire, dialect, tool="read")    tools are native

Strategy. Where tools are text, ``structured`` of the rule names what the server takes: a grammar, a structural tag or a
schema, which becomes the output format of the request. Where tools are native, the tool choice requires the call, and
servers derive a constraint from it; some also want ``strict`` on the tool, which they refuse for many schemas. Only a
schema that all of them accept is sent as strict.

A constraint costs the model its choice and some servers much time, so it is meant for required calls and for asking
again, not for every request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, overload

from msgspec.structs import replace

from toolglot.core.conversation import Conversation, Tool, ToolChoice
from toolglot.core.schema.strictness import allows_strict
from toolglot.gateway.capabilities.profiles import (
    CHOICE_IGNORED,
    GRAMMAR,
    JSON_SCHEMA,
    STRUCTURAL_TAG,
    THINKING_OR_CHOICE,
    Rule,
)
from toolglot.prompting.conversation import PromptedConversation
from toolglot.prompting.grammar.answer_schema import build_answer_schema
from toolglot.prompting.grammar.gbnf import build_grammar
from toolglot.prompting.grammar.structural_tag import build_structural_tag
from toolglot.prompting.output_format import add_output_format, has_output_format
from toolglot.wires.protocol import Wire

BUILDERS: Final[Mapping[str, Callable[[tuple[Tool, ...], str, bool], object]]] = {
    GRAMMAR: lambda tools, dialect, parallel: build_grammar(tools, dialect, required=True, parallel=parallel),
    STRUCTURAL_TAG: lambda tools, dialect, parallel: build_structural_tag(tools, dialect, parallel=parallel),
    JSON_SCHEMA: lambda tools, dialect, parallel: build_answer_schema(tools),
}
"""What an output format consists of, by the values of ``structured``."""


@overload
def constrain(
    request: Conversation, rule: Rule, wire: Wire, dialect: str, *, tool: str | None = ..., parallel: bool = ...
) -> Conversation | None: ...


@overload
def constrain(
    request: PromptedConversation, rule: Rule, wire: Wire, dialect: str, *, tool: str | None = ..., parallel: bool = ...
) -> PromptedConversation | None: ...


def constrain(
    request: Conversation | PromptedConversation,
    rule: Rule,
    wire: Wire,
    dialect: str,
    *,
    tool: str | None = None,
    parallel: bool = False,
) -> Conversation | PromptedConversation | None:
    """Hold the model to a call.

    Parameters: ``request`` is a rendered conversation where tools are text, else a conversation with tools. ``rule``
    and ``wire`` are those of the upstream. ``tool`` names the only tool that may be called, as the request does;
    default: any of them. ``parallel`` allows several calls; a schema always means one.

    Returns: the request with the constraint, or None if the upstream has none that fits, or if the client asks for an
    output format itself.
    """
    if isinstance(request, PromptedConversation):
        return _constrain_text(request, rule, wire, dialect, tool, parallel)
    return _constrain_choice(request, rule, tool, parallel)


def _constrain_text(
    prompted: PromptedConversation, rule: Rule, wire: Wire, dialect: str, tool: str | None, parallel: bool
) -> PromptedConversation | None:
    write_fields = wire.output_formats.get(rule.structured)
    if write_fields is None:
        return None
    allowed = tuple(offered for offered in prompted.tools if tool in (None, offered.name))
    content = BUILDERS[rule.structured](allowed, dialect, parallel)
    return None if content is None else add_output_format(prompted, write_fields(content))


def _constrain_choice(conversation: Conversation, rule: Rule, tool: str | None, parallel: bool) -> Conversation | None:
    if CHOICE_IGNORED in rule.quirks or has_output_format(conversation):
        return None
    if THINKING_OR_CHOICE in rule.quirks and _asks_for_thinking(conversation):
        return None
    choice = ToolChoice.one(tool) if tool else ToolChoice("required", conversation.choice.only)
    if not any(choice.allows(offered.name) for offered in conversation.tools):
        return None
    tools = tuple(
        replace(offered, strict=rule.strict and choice.allows(offered.name) and allows_strict(offered.parameters))
        for offered in conversation.tools
    )
    sampling = conversation.sampling if parallel else replace(conversation.sampling, parallel_calls=False)
    return replace(conversation, tools=tools, choice=choice, sampling=sampling)


def _asks_for_thinking(conversation: Conversation) -> bool:
    thinking = conversation.extra.get("thinking")
    enabled = isinstance(thinking, Mapping) and thinking.get("type") != "disabled"
    return enabled or conversation.sampling.effort not in ("", "none")
