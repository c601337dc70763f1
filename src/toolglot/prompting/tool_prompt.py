"""The section of the system prompt that describes the tools and how to call them in a dialect."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from toolglot.core.conversation import Tool, ToolChoice
from toolglot.dialects.spec import ToolListing
from toolglot.prompting.call_writer import resolve_dialect, write_call
from toolglot.prompting.example_arguments import ExampleArguments
from toolglot.prompting.tool_listing import list_tools

_ELEMENTS = """You have access to tools that help you accomplish tasks. You must use tools by outputting XML-formatted \
tool calls.

## Tool Use Rules
{rules}

## Tool Call Format
{form}

## Available Tools

{tools}"""

_GENERAL = """# Tools

You can call tools to do what the user asks. These are the tools, with the schema of their arguments:

{tools}

To call a tool, write the call exactly in this form:

{form}

Rules:
{rules}"""

FORM_TOOL: Final = Tool(
    "tool_name",
    "",
    {"type": "object", "properties": {key: {"type": "string"} for key in ("parameter1", "parameter2")}},
)
FORM_CALL: Final = (FORM_TOOL.name, json.dumps(ExampleArguments(FORM_TOOL, only_required=False).make()))
"""The call that shows the form of all calls."""
_ANY = ToolChoice()

_ONE = "Use exactly one tool per message"
_MANY = "You may use several tools in one message: write one complete call after the other"


def tool_prompt(tools: Sequence[Tool], dialect: str, *, choice: ToolChoice = _ANY, parallel: bool = False) -> str:
    """Describe tools, and how to call them, for the system prompt.

    Parameters: ``dialect`` is a dialect name or a model id, ``choice`` limits the tools or requires a call,
    ``parallel`` allows several calls in one answer.

    Returns: the section, or "" if there is no tool to call.

    Raises: ``UsageError`` if ``dialect`` is unknown.
    """
    return _build(tuple(tools), resolve_dialect(dialect).name, choice, parallel)


@lru_cache(maxsize=64)
def _build(tools: tuple[Tool, ...], dialect: str, choice: ToolChoice, parallel: bool) -> str:
    spec = resolve_dialect(dialect)
    offered = [tool for tool in tools if choice.allows(tool.name)]
    if not offered:
        return ""
    documents = spec.teach.listing is ToolListing.DOCUMENTS
    rules = _document_rules(parallel) if documents else _rules(parallel)
    return (_ELEMENTS if documents else _GENERAL).format(
        rules="\n".join(f"{number}. {rule}" for number, rule in enumerate([*rules, *_choice_rules(choice)], 1)),
        form=write_form(spec.name),
        tools=list_tools(offered, spec),
    )


def _document_rules(parallel: bool) -> list[str]:
    one = [_ONE, "Every assistant message with a tool request must include exactly one tool call"]
    return [
        *([_MANY] if parallel else one),
        "Format tool calls using XML with the tool name as the tag",
        "Include all required parameters within parameter tags",
        "Wait for tool results before proceeding",
    ]


def _rules(parallel: bool) -> list[str]:
    return [
        _MANY if parallel else _ONE,
        "Call only the tools listed above, and give every required argument",
        "Write text for the user before the call, never behind it",
        "Stop after the call and wait: the result comes in the next message, never write it yourself",
        "If no tool is needed, answer without a call",
    ]


def _choice_rules(choice: ToolChoice) -> list[str]:
    if choice.mode != "required":
        return []
    if len(choice.only) == 1:
        return [f"You must call the tool {choice.only[0]} now"]
    return ["You must call a tool now, do not answer without one"]


def write_form(dialect: str) -> str:
    """The form of a call in a dialect."""
    return write_call(dialect, *FORM_CALL, (FORM_TOOL,))
