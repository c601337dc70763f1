"""The functions of the library that are more than one class: list, write and teach dialects, render conversations, and
tell a model what was wrong. ``toolglot`` exports them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolglot.core.conversation import Conversation
from toolglot.core.events import CallRejected
from toolglot.core.options import check_dialect, check_flag, check_type
from toolglot.dialects.spec import Dialect
from toolglot.prompting.call_writer import parse_tools, write_call
from toolglot.prompting.conversation import PromptedConversation as Speech
from toolglot.prompting.conversation import render_as_text
from toolglot.prompting.feedback import write_feedback
from toolglot.prompting.tool_prompt import tool_prompt
from toolglot.reading.plugins import known_dialects
from toolglot.reading.reader import RejectedCall


def list_dialects() -> list[Dialect]:
    """List the dialects that toolglot reads and writes.

    Returns: a new list of dialect records; ``name``, ``family`` and ``sample`` describe each.
    """
    return list(known_dialects())


def write(
    name: str,
    arguments: str | Mapping[str, Any] = "{}",
    dialect: str = "hermes",
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> str:
    """Write a tool call as text. ``read`` with the same tools returns the same call.

    Parameters:
        name: the tool to call.
        arguments: JSON text or a mapping.
        dialect: a dialect name, or a model id to use the dialect of that model.
        tools: the offered tools, as OpenAI or Anthropic definitions; their schemas decide how values are written.

    Returns: the call in the dialect, or in a JSON form if the dialect cannot carry the arguments.

    Raises:
        UsageError: ``dialect`` is neither a dialect nor a known model, or an argument has the wrong type.
        ToolSchemaError: a tool definition is invalid.
    """
    check_dialect(dialect)
    check_type(name, str, "name", "the name of a tool")
    if not isinstance(arguments, str):
        check_type(arguments, Mapping, "arguments", "JSON text or a mapping")
        arguments = json.dumps(dict(arguments), ensure_ascii=False)
    return write_call(dialect, name, arguments, parse_tools(tools))


def teach(tools: Sequence[Mapping[str, Any]], dialect: str = "hermes", parallel: bool = False) -> str:
    """Write the section of a system prompt that describes tools and how to call them in a dialect.

    Parameters:
        tools: the tools to offer, as OpenAI or Anthropic definitions.
        dialect: a dialect name, or a model id to use the dialect of that model.
        parallel: allow several calls in one answer.

    Returns: the section, or "" if there are no tools.

    Raises:
        UsageError: ``dialect`` is neither a dialect nor a known model, or an argument has the wrong type.
        ToolSchemaError: a tool definition is invalid.
    """
    check_dialect(dialect)
    check_flag(parallel, "parallel")
    return tool_prompt(parse_tools(tools), dialect, parallel=parallel)


def speak(conversation: Conversation, dialect: str, *, parallel: bool = False) -> Speech:
    """Render a conversation with tools as plain text in a dialect.

    Parameters:
        conversation: the client's conversation.
        dialect: a dialect name, or a model id to use the dialect of that model.
        parallel: allow several calls in one answer.

    Returns: the rendered conversation. Tools with an unusable schema are skipped with a note.

    Raises:
        UsageError: ``dialect`` is neither a dialect nor a known model, or an argument has the wrong type.
    """
    check_type(conversation, Conversation, "conversation", "a Conversation")
    check_dialect(dialect)
    check_flag(parallel, "parallel")
    return render_as_text(conversation, dialect, parallel=parallel)


def feedback(
    rejected: CallRejected | RejectedCall | Sequence[CallRejected | RejectedCall],
    tools: Sequence[Mapping[str, Any]],
    dialect: str | None = "hermes",
) -> str:
    """Tell a model what was wrong with its calls, so that it writes them again.

    Parameters:
        rejected: a rejected call or several of one answer, as in ``Reading.rejected``. Of a native call, ``raw`` is
            the text of its arguments.
        tools: the tools on offer, as OpenAI or Anthropic definitions.
        dialect: a dialect name, or a model id to use the dialect of that model; None if the model makes native calls.

    Returns: what is wrong and what is right, followed by a correct call of the same tool with the good arguments of
    the model. Send it as the next user message, or as the result of a native call. "" if no call is given.

    Raises:
        UsageError: ``dialect`` is neither a dialect nor a known model, or an argument has the wrong type.
        ToolSchemaError: a tool definition is invalid.
    """
    if dialect is not None:
        check_dialect(dialect)
    calls = (rejected,) if isinstance(rejected, (CallRejected, RejectedCall)) else rejected
    check_type(calls, (list, tuple), "rejected", "a rejected call or a list of them")
    for call in calls:
        check_type(call, (CallRejected, RejectedCall), "rejected", "a rejected call or a list of them")
    return write_feedback(calls, parse_tools(tools), dialect)
