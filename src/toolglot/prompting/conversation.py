"""Render a conversation with tools as plain text, for models that take tool calls in a dialect.

Strategy. The system prompt describes the tools, past calls become text after the assistant's own text, results become
user messages, and the marks that quoted text happens to contain are escaped. The output has only system, user and
assistant messages with text and images, plus what the gateway needs to read the answer.

Reasoning of earlier turns is dropped: no dialect expects it back. The results of one turn share one user message, in
the order of the calls, and a user message after them is appended to it, because many chat templates require alternating
roles. Images in a result follow its text in the same message, after a line that names the call. Empty assistant
messages are dropped.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, count, pairwise
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from toolglot.core.conversation import (
    Conversation,
    Image,
    Message,
    Part,
    ProviderPart,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Tools,
)
from toolglot.core.tool_names import assign_names
from toolglot.prompting.call_writer import cache_calls, can_name, resolve_dialect, write_call, write_calls
from toolglot.prompting.mark_escaping import MarkEscaper, choose_break_character, get_mark_escaper
from toolglot.prompting.past_answers import find_imitable_marks
from toolglot.prompting.tool_prompt import tool_prompt

__all__ = [
    "NO_OUTPUT",
    "PromptedConversation",
    "render_as_text",
    "tool_prompt",
    "write_call",
    "write_calls",
    "write_result",
]

NO_OUTPUT = "(no output)"
RESULT_LABEL = "Tool Result"
ERROR_LABEL = "Error"
_IndexedCall = tuple[float, str]
"""The index of a call among all calls, and its name."""

_ANY_CHOICE = ToolChoice()
_UNKNOWN_CALL: _IndexedCall = (inf, "unknown")
_SLOT = re.compile(r"\{(verdict|name|content|json)\}")


class PromptedConversation(Struct, frozen=True):
    """A conversation rendered as text, and what is needed to read the answer."""

    conversation: Conversation
    """The rendered messages, without tools and tool choice."""
    tools: tuple[Tool, ...] = ()
    """The tools under the names that the prompt uses; pass them to the reader of the answer."""
    names: Mapping[str, str] = {}
    """The client's tool name for each name in the prompt, where the two differ."""
    break_character: str = ""
    """The invisible break character in quoted marks, or "". After reading, delete it from all text of the model."""
    notes: tuple[str, ...] = ()
    """What was left out, for the log."""


def render_as_text(conversation: Conversation, dialect: str, *, parallel: bool = False) -> PromptedConversation:
    """Render a conversation with tools as plain text in a dialect.

    Parameters: ``conversation`` is the client's conversation, ``dialect`` a dialect name or a model id. ``parallel``
    tells the model that it may make several calls in one answer.

    Returns: the rendered conversation. Tools with an unusable schema are skipped with a note.

    Raises: ``UsageError`` if ``dialect`` is neither a dialect nor a known model.
    """
    prompt = _prepare_for(conversation, dialect, parallel)
    renderer = _Renderer(prompt, conversation)
    messages = tuple(_add_tool_prompt(renderer.render(conversation.messages), prompt.section))
    rendered = replace(conversation, messages=messages, tools=(), choice=_ANY_CHOICE)
    return PromptedConversation(rendered, prompt.offered, prompt.names, renderer.break_character, prompt.notes)


def list_offered_tools(conversation: Conversation, dialect: str) -> tuple[Tool, ...]:
    """The ``tools`` of ``render_as_text``, without rendering the messages."""
    return _prepare_for(conversation, dialect, parallel=False).offered


def _prepare_for(conversation: Conversation, dialect: str, parallel: bool) -> _PreparedPrompt:
    past = {
        part.name: None
        for message in conversation.messages
        if message.role == "assistant"
        for part in message.parts
        if isinstance(part, ToolCall)
    }
    return _prepare(conversation.tools, tuple(past), resolve_dialect(dialect).name, conversation.choice, parallel)


class _PreparedPrompt(Struct, frozen=True, kw_only=True):
    """The parts of a rendering that are the same in every turn of a conversation."""

    dialect: str
    tools: Tools
    offered: tuple[Tool, ...]
    """The tools that the tool choice allows."""
    prompt_names: Mapping[str, str]
    """The name in the prompt for each of the client's names."""
    names: Mapping[str, str]
    """The reverse, where the two differ."""
    escaper: MarkEscaper
    section: str
    """The section of the system prompt that describes the tools."""
    notes: tuple[str, ...]


@lru_cache(maxsize=64)
def _prepare(
    tools: tuple[Tool, ...], past: tuple[str, ...], dialect: str, choice: ToolChoice, parallel: bool
) -> _PreparedPrompt:
    prompt_names = assign_names([tool.name for tool in tools], partial(can_name, dialect), past)
    known = Tools(replace(tool, name=prompt_names[tool.name]) for tool in tools)
    choice = replace(choice, only=tuple(prompt_names.get(name, name) for name in choice.only))
    return _PreparedPrompt(
        dialect=dialect,
        tools=known,
        offered=Tools(tool for tool in known if choice.allows(tool.name)),
        prompt_names=prompt_names,
        names={in_prompt: own for own, in_prompt in prompt_names.items() if in_prompt != own},
        escaper=get_mark_escaper(dialect, tuple(sorted(tool.name for tool in known))),
        section=tool_prompt(known, dialect, choice=choice, parallel=parallel),
        notes=tuple(_note_missing_choices(choice, known)),
    )


def _note_missing_choices(choice: ToolChoice, tools: Sequence[Tool]) -> Iterator[str]:
    """A note for every tool that the tool choice names and the client does not offer."""
    names = [tool.name for tool in tools]
    return (f"choice of {name} ignored: no such tool" for name in choice.only if name not in names)


def write_result(dialect: str, name: str, content: str, error: bool = False) -> str:
    """Write a tool result in the form that models of the dialect expect.

    Parameters: ``name`` is the tool, ``content`` its output, ``error`` says that the tool failed.
    """
    pieces = list(_split_template(resolve_dialect(dialect).returns))
    slots = pieces[1::2]
    text = NO_OUTPUT if not content or content.isspace() else content
    if error and "verdict" not in slots:
        text = f"{ERROR_LABEL} from {name}:\n{text}"
    values = {"verdict": ERROR_LABEL if error else RESULT_LABEL, "name": name, "content": text}
    if "json" in slots:
        values["json"] = json.dumps(text, ensure_ascii=False)
    pieces[1::2] = [values[slot] for slot in slots]
    return "".join(pieces)


@lru_cache(maxsize=256)
def _split_template(template: str) -> tuple[str, ...]:
    """Split a result template into literal text and slot names, alternately."""
    return tuple(_SLOT.split(template))


def _all_texts(conversation: Conversation) -> Iterator[str]:
    """All text that the model is sent or may repeat."""
    for part in chain.from_iterable(message.parts for message in conversation.messages):
        for piece in part.content if isinstance(part, ToolResult) else (part,):
            if isinstance(piece, (Text, Reasoning)):
                yield piece.text
            elif isinstance(piece, ToolCall):
                yield piece.arguments
    yield from map(_definition_text, conversation.tools)


@lru_cache(maxsize=512)
def _definition_text(tool: Tool) -> str:
    return tool.description + json.dumps(tool.parameters, ensure_ascii=False, default=str)


def _add_tool_prompt(messages: list[Message], section: str) -> list[Message]:
    """Append the section to the client's system prompt, unless it is in there already."""
    parts: list[Iterable[Part]] = []
    is_present = False
    for message in messages:
        if message.role != "system":
            break
        parts.append(message.parts)
        is_present = is_present or section in message.text
    rest = messages[len(parts) :]
    prompt = _join_parts(parts if is_present else [*parts, (Text(section),)])
    return [Message("system", prompt), *rest] if prompt else rest


_PLAIN_PARTS = (Text, Image, ProviderPart)
_EMPTY_TEXT = Text("")


def _plain_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts that a plain message can hold."""
    return tuple([part for part in parts if isinstance(part, _PLAIN_PARTS) and part != _EMPTY_TEXT])


def _join_parts(groups: Sequence[Iterable[Part]]) -> tuple[Part, ...]:
    """Join the parts of several messages; an empty line separates texts where two messages touch."""
    parts: list[Part] = []
    texts: list[str] = []
    for group in groups:
        is_first = True
        for part in group:
            if not isinstance(part, _PLAIN_PARTS) or part == _EMPTY_TEXT:
                continue
            if texts and not (is_first and isinstance(part, Text)):
                parts.append(Text("\n\n".join(texts)))
                texts = []
            if isinstance(part, Text):
                texts.append(part.text)
            else:
                parts.append(part)
            is_first = False
    return (*parts, Text("\n\n".join(texts))) if texts else tuple(parts)


class _Renderer(Struct):
    """Renders the messages of one conversation. Messages that are plain already stay as they are."""

    prompt: _PreparedPrompt
    conversation: Conversation
    break_character: str = ""

    def render(self, messages: Sequence[Message]) -> list[Message]:
        """The messages as text; tool results and the user messages next to them share one message."""
        answers = [message for message in messages if message.role == "assistant"]
        made = [(self.prompt.prompt_names[call.name], call.arguments) for answer in answers for call in answer.calls]
        if len(made) > 1:
            cache_calls(self.prompt.dialect, made, self.prompt.tools)
        rendered: list[Message] = []
        merged: dict[int, list[Sequence[Part]]] = {}
        last_role, last_has_results = "", False
        for message, has_results in self.turns(messages):
            if not message.parts:
                continue
            if message.role == last_role == "user" and (has_results or last_has_results):
                merged.setdefault(len(rendered) - 1, [rendered[-1].parts]).append(message.parts)
                last_has_results = True
            else:
                rendered.append(message)
                last_role, last_has_results = message.role, has_results
        for at, parts in merged.items():
            rendered[at] = Message("user", _join_parts(parts))
        return rendered

    def turns(self, messages: Sequence[Message]) -> Iterator[tuple[Message, bool]]:
        """Each rendered message, and whether it holds tool results."""
        numbers = count()
        called: dict[str, _IndexedCall] = {}
        results: list[ToolResult] = []
        for message in messages:
            if message.role == "tool":
                results += [part for part in message.parts if isinstance(part, ToolResult)]
                continue
            if results:
                yield self.render_results(results, called), True
                results = []
            if message.role == "user":
                yield self.escape_message(message), False
                continue
            if message.role == "assistant":
                message = self.escape_answer(message)
            calls = message.calls if message.role == "assistant" else ()
            for call in calls:
                # a reused id refers to the latest call
                called[call.id] = next(numbers), call.name
            parts = self.render_calls(message.parts, calls) if calls else _plain_parts(message.parts)
            yield message if parts == message.parts else Message(message.role, parts), False
        if results:
            yield self.render_results(results, called), True

    def render_calls(self, parts: Sequence[Part], calls: Sequence[ToolCall]) -> tuple[Part, ...]:
        """The assistant's text, followed by its calls."""
        made = [(self.prompt.prompt_names[call.name], call.arguments) for call in calls]
        written = (Text(write_calls(self.prompt.dialect, made, self.prompt.tools)),)
        plain = _plain_parts(parts)
        if plain and isinstance(last := plain[-1], Text):
            plain = (*plain[:-1], Text(last.text.rstrip()))
        return _join_parts([plain, written]) if plain else written

    def render_results(self, results: Sequence[ToolResult], called: Mapping[str, _IndexedCall]) -> Message:
        """One user message with the results in the order of their calls; results without a call come last."""
        if len(results) > 1:
            results = sorted(results, key=lambda result: called.get(result.call_id, _UNKNOWN_CALL)[0])
        rendered = [self.render_result(result, called.get(result.call_id, _UNKNOWN_CALL)[1]) for result in results]
        return Message("user", rendered[0] if len(rendered) == 1 else _join_parts(rendered))

    def render_result(self, result: ToolResult, called: str) -> tuple[Part, ...]:
        name = result.name or called
        text = "".join([part.text for part in result.content if isinstance(part, Text)])
        images = [part for part in result.content if isinstance(part, Image)]
        prompt_name = self.prompt.prompt_names.get(name, name)
        written = write_result(self.prompt.dialect, prompt_name, self.escape(text), result.error)
        return (Text(written + _introduce_images(len(images), result.call_id)), *images)

    def escape_answer(self, message: Message) -> Message:
        """The message of the assistant, with marks escaped that the model must not imitate."""
        parts = tuple([self.escape_past(part) if isinstance(part, Text) else part for part in message.parts])
        return message if parts == message.parts else Message("assistant", parts)

    def escape_past(self, part: Text) -> Text:
        prompt, text = self.prompt, part.text
        positions = find_imitable_marks(text, prompt.dialect, prompt.tools, prompt.escaper)
        if not positions:
            return part
        cuts = (0, *positions, len(text))
        return Text(self.choose_break_character().join([text[start:end] for start, end in pairwise(cuts)]))

    def escape_message(self, message: Message) -> Message:
        """The user message with its marks escaped. A mark may be split over several parts."""
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        whole = texts[0] if len(texts) == 1 else "".join(texts)
        if not self.prompt.escaper.has_marks(whole):
            return message
        positions, break_character = self.prompt.escaper.find_positions(whole), self.choose_break_character()
        parts: list[Part] = []
        start = 0
        for part in message.parts:
            if isinstance(part, Text):
                end = start + len(part.text)
                inside = positions[bisect_right(positions, start) : bisect_right(positions, end)]
                cuts = [start, *inside, end]
                parts.append(Text(break_character.join(whole[one:other] for one, other in pairwise(cuts))))
                start = end
            else:
                parts.append(part)
        return Message("user", tuple(parts))

    def choose_break_character(self) -> str:
        self.break_character = self.break_character or choose_break_character(_all_texts(self.conversation))
        return self.break_character

    def escape(self, text: str) -> str:
        if not self.prompt.escaper.has_marks(text):
            return text
        return self.prompt.escaper.escape(text, self.choose_break_character())


def _introduce_images(images: int, call_id: str) -> str:
    """The line between a result and its images."""
    if not images:
        return ""
    count = "An image" if images == 1 else f"{images} images"
    return f"\n\n{count} from the result of call {call_id}:"
