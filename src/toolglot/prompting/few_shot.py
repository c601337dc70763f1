"""Few-shot prompts and a grammar for a model that is too small to follow instructions.

Strategy. Two things make the embedded model useful, and both were measured (``bench/local.py``). A grammar makes its
calls valid. Examples make it choose a tool and fill in arguments: a few turns before the conversation, generated from
the tools, in which a user states a tool's purpose and some values and the assistant calls it. Some small talk among
them shows that not every answer is a call; without examples such a model answers everything with text. With examples,
one line per tool works as well as its schema and takes half the time to process. Nothing is random, so the same request
gets the same answer.

A model that is a little larger (``detailed``) makes use of schemas, of longer values and of an example with several
calls (``bench/models.py``). More than one example of a tool makes it copy their values, and an example with one call
makes it write one where several are due, so each tool is shown once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolChoice
from toolglot.prompting.call_writer import resolve_dialect, write_calls
from toolglot.prompting.conversation import PromptedConversation, list_offered_tools, render_as_text, write_call
from toolglot.prompting.example_arguments import ExampleArguments, properties_of
from toolglot.prompting.grammar.gbnf import build_grammar, build_text_grammar
from toolglot.prompting.output_format import add_output_format
from toolglot.prompting.tool_listing import list_tools

EXAMPLES_PER_TOOL = 2
"""With a single example, the model copies its values into the answer more often."""

MOST_EXAMPLES = 16
"""Each example takes the embedded model half a second to process."""

_SENTENCE = re.compile(r"[^\n]{1,100}?(?=[.:;]\s|[.:;]?$|\n)|[^\n]{1,100}")
_SMALL_TALK = (("Hello!", "Hello! What can I do for you?"), ("Thanks.", "You are welcome."))
_TITLE = "You can call these tools:"
_RULE = "Answer with a call if one of them fits the request, else with text."
_NO_TAGS = "root ::= [^<]+\n"


class AnswerKind(StrEnum):
    """What the model may answer with."""

    CALL = "a call"
    EITHER = "a call or text"
    TEXT = "text"


def choose_answer_kind(conversation: Conversation) -> AnswerKind:
    """Decide what the model may answer with, instead of leaving it to the model.

    A user message may be answered with a call or with text. Results are answered with text, because a model of this
    size would call again and again: tasks of several steps end after the first, unless the client requires a call.
    """
    if not conversation.tools or conversation.choice.mode == "none":
        return AnswerKind.TEXT
    if conversation.choice.mode == "required":
        return AnswerKind.CALL
    answers_results = bool(conversation.messages) and conversation.messages[-1].role == "tool"
    return AnswerKind.TEXT if answers_results else AnswerKind.EITHER


def render_for_small_model(
    conversation: Conversation, dialect: str, *, detailed: bool = False, parallel: bool = False
) -> PromptedConversation:
    """Render a conversation for a very small model: a short prompt, examples, a grammar and temperature 0.

    Parameters: ``detailed``: tools are listed with their schemas, and each is shown once; ``parallel``: one of these
    examples has several calls, and the grammar allows them. Other parameters, result and errors are those of
    ``render_as_text``. A temperature that the client sets stays.
    """
    sampling = conversation.sampling
    if sampling.temperature is None:
        conversation = replace(conversation, sampling=replace(sampling, temperature=0.0))
    tools = list_offered_tools(conversation, dialect)
    # this module describes the tools itself, or not at all if they must not be called
    without_tools = render_as_text(replace(conversation, choice=ToolChoice("none")), dialect)
    prompted = replace(without_tools, tools=tools)
    if not tools:
        return prompted
    kind = choose_answer_kind(conversation)
    if kind is AnswerKind.TEXT:
        return _add_grammar(prompted, build_text_grammar(tools, dialect) if detailed else _NO_TAGS)
    small_talk = _SMALL_TALK if kind is AnswerKind.EITHER else ()
    prepared = _prepare(tools, dialect, small_talk, detailed, detailed and parallel)
    messages = _insert_examples(prompted.conversation.messages, *prepared)
    with_examples = replace(prompted, conversation=replace(prompted.conversation, messages=messages))
    required = kind is AnswerKind.CALL
    grammar = build_grammar(tools, dialect, required=required, parallel=detailed and parallel, bare=not required)
    return _add_grammar(with_examples, grammar)


_Turns = tuple[tuple[str, str], ...]
"""Questions and answers."""


@lru_cache(maxsize=16)
def _prepare(
    tools: tuple[Tool, ...], dialect: str, small_talk: _Turns, detailed: bool, parallel: bool
) -> tuple[str, tuple[Message, ...]]:
    """The list of tools and the example turns, which are the same in every turn of a conversation."""
    if not detailed:
        return _list_briefly(tools), tuple(_write_examples(tools, dialect, small_talk))
    section = "\n".join([_TITLE, list_tools(tools, resolve_dialect(dialect)), _RULE])
    return section, tuple(_show_each_tool(tools, dialect, small_talk, parallel))


def _insert_examples(messages: Sequence[Message], section: str, examples: Sequence[Message]) -> tuple[Message, ...]:
    """Append the section to the system prompt and insert the examples after it."""
    if messages and messages[0].role == "system":
        return (Message("system", (*messages[0].parts, Text(f"\n\n{section}"))), *examples, *messages[1:])
    return (Message("system", (Text(section),)), *examples, *messages)


def _list_briefly(tools: Sequence[Tool]) -> str:
    """One line per tool: a word takes the embedded model 20 ms, and it makes no use of schemas."""
    lines = (
        f"- {tool.name}({', '.join(properties_of(tool.parameters, tool.parameters))}): {_purpose(tool)}"
        for tool in tools
    )
    return "\n".join([_TITLE, *lines, _RULE])


def _add_grammar(prompted: PromptedConversation, text: str | None) -> PromptedConversation:
    """Add a grammar to the request, unless there is none or the client sets an output format itself."""
    return (add_output_format(prompted, {"grammar": text}) if text else None) or prompted


def _write_examples(tools: Sequence[Tool], dialect: str, small_talk: Sequence[tuple[str, str]]) -> Iterator[Message]:
    """Example turns that ask for each tool and call it. Each round begins with some small talk."""
    rounds = max(1, min(EXAMPLES_PER_TOOL, MOST_EXAMPLES // len(tools)))
    for number in range(rounds):
        for question, answer in small_talk[number : number + 1]:
            yield from _turn(question, answer)
        for tool in tools[:MOST_EXAMPLES]:
            yield from _turn(*_show_call(tool, tools, dialect, number))


def _show_each_tool(tools: Sequence[Tool], dialect: str, small_talk: _Turns, parallel: bool) -> Iterator[Message]:
    """Example turns that show each tool once. With ``parallel`` the last one shows several calls."""
    alone = tools[1:-1] if parallel else tools
    turns = [*small_talk[:1], *(_show_call(tool, tools, dialect, 0) for tool in alone[:MOST_EXAMPLES])]
    if parallel:
        turns.append(show_calls(tools, dialect))
    for turn in turns:
        yield from _turn(*turn)


def _show_call(tool: Tool, tools: Sequence[Tool], dialect: str, number: int) -> tuple[str, str]:
    """A request for a call, and the call."""
    values = ExampleArguments(tool, number).make()
    return _write_request(tool, values), write_call(dialect, tool.name, json.dumps(values), tools)


def show_calls(tools: Sequence[Tool], dialect: str) -> tuple[str, str]:
    """A request for several calls and these calls: two of one tool, unless they would be equal, and one of another."""
    first, last = tools[0], tools[-1]
    made = [(first, ExampleArguments(first, number).make()) for number in range(2)]
    made = made[: 1 if made[0] == made[1] else 2]
    if last is not first:
        made.append((last, ExampleArguments(last, 2).make()))
    request = " ".join(_write_request(tool, values) for tool, values in made)
    return request, write_calls(dialect, [(tool.name, json.dumps(values)) for tool, values in made], tools)


def _turn(question: str, answer: str) -> Iterator[Message]:
    yield Message("user", (Text(question),))
    yield Message("assistant", (Text(answer),))


def _write_request(tool: Tool, values: Mapping[str, Any]) -> str:
    """How a user may ask for a call with these arguments."""
    named = [f"{key} {value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items()]
    return ", ".join([_purpose(tool), *named]) + "."


def _purpose(tool: Tool) -> str:
    """The first sentence of the description."""
    sentence = _SENTENCE.match(tool.description.strip())
    return sentence[0].rstrip(".:; ") if sentence else tool.name.replace("_", " ")
