"""A conversation with tools as a conversation of plain text, for models that only write text.

Strategy. The tools are taught in the system prompt, past calls become text behind what the assistant said, results
become user messages, and the marks that quoted text happens to contain are made harmless. What comes out holds only
system, user and assistant messages with text and images; what is needed to read the answer stands beside it.

Reasoning of earlier turns is dropped: no dialect expects it back. Results of one turn stand in one user message, in the
order of the calls, and a user message behind them is joined to it, because many chat templates want the roles to
alternate. Images in a result follow its text in the same message, behind a line that names the call. An assistant
message that holds nothing is left out.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from toolglot.core.schema.toolset import compile_tool
from toolglot.core.tool_names import assign_names
from toolglot.prompting.call_writer import can_name, record_of, write_ahead, write_call, write_calls
from toolglot.prompting.mark_escaping import MarkEscaper, choose_joiner, find_marks
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
VERDICT = "Tool Result"
ERROR = "Error"
_Made = tuple[float, str]
"""The place of a call among all calls, and its name."""

_ANY = ToolChoice()
_NEVER: _Made = (inf, "unknown")
_SLOT = re.compile(r"\{(verdict|name|content|json)\}")


class PromptedConversation(Struct, frozen=True):
    """A conversation as text, and what is needed to understand the answer.

    ``tools`` are the tools as they were taught: the reader of the answer is given these. ``names`` leads from a taught
    name to the client's own, where they differ. ``joiner`` is the character that was put into quoted marks, or nothing:
    delete it from everything the model writes, after reading. ``notes`` tell what was left out.
    """

    conversation: Conversation
    tools: tuple[Tool, ...] = ()
    names: Mapping[str, str] = {}
    joiner: str = ""
    notes: tuple[str, ...] = ()


def render_as_text(conversation: Conversation, dialect: str, *, parallel: bool = False) -> PromptedConversation:
    """The conversation as a model that speaks the dialect can follow it."""
    taught = _teach_once(conversation, dialect, parallel)
    speaker = _Renderer(taught, conversation)
    messages = tuple(_instruct(speaker.say(conversation.messages), taught.section))
    spoken = replace(conversation, messages=messages, tools=(), choice=_ANY)
    return PromptedConversation(spoken, taught.offered, taught.names, speaker.joiner, taught.notes)


def list_offered(conversation: Conversation, dialect: str) -> tuple[Tool, ...]:
    """The tools of the speech, for those who do not need the rest of it."""
    return _teach_once(conversation, dialect, parallel=False).offered


def _teach_once(conversation: Conversation, dialect: str, parallel: bool) -> _PreparedPrompt:
    past = {
        part.name: None
        for message in conversation.messages
        if message.role == "assistant"
        for part in message.parts
        if isinstance(part, ToolCall)
    }
    return _prepare(conversation.tools, tuple(past), record_of(dialect).name, conversation.choice, parallel)


@dataclass(frozen=True, slots=True)
class _PreparedPrompt:
    """Everything about a speech that is the same for every turn of a conversation. ``given`` leads from a tool's own
    name to the taught one, ``names`` back, where they differ. ``offered`` are the tools that may be chosen."""

    dialect: str
    tools: tuple[Tool, ...]
    offered: tuple[Tool, ...]
    given: Mapping[str, str]
    names: Mapping[str, str]
    marks: MarkEscaper
    section: str
    notes: tuple[str, ...]


@lru_cache(maxsize=64)
def _prepare(
    tools: tuple[Tool, ...], past: tuple[str, ...], dialect: str, choice: ToolChoice, parallel: bool
) -> _PreparedPrompt:
    usable, notes = _check(tools)
    given = assign_names([*(tool.name for tool in usable), *past], partial(can_name, dialect))
    known = Tools(replace(tool, name=given[tool.name]) for tool in usable)
    choice = replace(choice, only=tuple(given.get(name, name) for name in choice.only))
    return _PreparedPrompt(
        dialect,
        known,
        Tools(tool for tool in known if choice.allows(tool.name)),
        given,
        {taught: own for own, taught in given.items() if taught != own},
        find_marks(dialect, tuple(sorted(given.values()))),
        tool_prompt(known, dialect, choice=choice, parallel=parallel),
        (*notes, *_miss(choice, known)),
    )


def _miss(choice: ToolChoice, tools: Sequence[Tool]) -> Iterator[str]:
    """A note for every tool that was chosen and is not there."""
    names = [tool.name for tool in tools]
    return (f"choice of {name} ignored: no such tool" for name in choice.only if name not in names)


def write_result(dialect: str, name: str, content: str, error: bool = False) -> str:
    """A tool's result as the models of the dialect expect it."""
    told = list(_split_form(record_of(dialect).returns))
    slots = told[1::2]
    text = NO_OUTPUT if not content or content.isspace() else content
    if error and "verdict" not in slots:
        text = f"{ERROR} from {name}:\n{text}"
    given = {"verdict": ERROR if error else VERDICT, "name": name, "content": text}
    if "json" in slots:
        given["json"] = json.dumps(text, ensure_ascii=False)
    told[1::2] = [given[slot] for slot in slots]
    return "".join(told)


@lru_cache(maxsize=256)
def _split_form(form: str) -> tuple[str, ...]:
    """The form of a result in pieces: every second one names what stands there."""
    return tuple(_SLOT.split(form))


def _check(tools: Sequence[Tool]) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools that can be taught, and a note for each of the others."""
    usable: list[Tool] = []
    notes: list[str] = []
    for number, tool in enumerate(tools):
        problem = compile_tool(tool)[1]
        if problem:
            notes.append(f"tool #{number} skipped: {problem}")
        else:
            usable.append(tool)
    return tuple(usable), tuple(notes)


def _texts(conversation: Conversation) -> Iterator[str]:
    """All the text that goes to the model or that it may repeat."""
    for part in chain.from_iterable(message.parts for message in conversation.messages):
        for piece in part.content if isinstance(part, ToolResult) else (part,):
            if isinstance(piece, (Text, Reasoning)):
                yield piece.text
            elif isinstance(piece, ToolCall):
                yield piece.arguments
    yield from map(_definition, conversation.tools)


@lru_cache(maxsize=512)
def _definition(tool: Tool) -> str:
    return tool.description + json.dumps(tool.parameters, ensure_ascii=False, default=str)


def _instruct(messages: list[Message], section: str) -> list[Message]:
    """The messages with the section behind the client's own system prompt, unless it holds that section already."""
    parts: list[Iterable[Part]] = []
    taught = False
    for message in messages:
        if message.role != "system":
            break
        parts.append(message.parts)
        taught = taught or section in message.text
    rest = messages[len(parts) :]
    prompt = _joined(parts if taught else [*parts, (Text(section),)])
    return [Message("system", prompt), *rest] if prompt else rest


_PLAIN = (Text, Image, ProviderPart)
_SILENCE = Text("")


def _bare(parts: Iterable[Part]) -> tuple[Part, ...]:
    """What of some parts a plain message holds."""
    return tuple([part for part in parts if isinstance(part, _PLAIN) and part != _SILENCE])


def _joined(groups: Sequence[Iterable[Part]]) -> tuple[Part, ...]:
    """The parts of several messages as parts of one: texts that meet are parted by an empty line."""
    parts: list[Part] = []
    meeting: list[str] = []
    for group in groups:
        meets = True
        for part in group:
            if not isinstance(part, _PLAIN) or part == _SILENCE:
                continue
            if meeting and not (meets and isinstance(part, Text)):
                parts.append(Text("\n\n".join(meeting)))
                meeting = []
            if isinstance(part, Text):
                meeting.append(part.text)
            else:
                parts.append(part)
            meets = False
    return (*parts, Text("\n\n".join(meeting))) if meeting else tuple(parts)


@dataclass(slots=True)
class _Renderer:
    """Turns the messages of one conversation into plain ones. One that is plain already stays as it is."""

    taught: _PreparedPrompt
    conversation: Conversation
    joiner: str = ""

    def say(self, messages: Sequence[Message]) -> list[Message]:
        """Results and what the user says beside them stand in one message."""
        made = [(self.taught.given[call.name], call.arguments) for message in messages for call in message.calls]
        write_ahead(self.taught.dialect, made, self.taught.tools)
        said: list[Message] = []
        rows: dict[int, list[Sequence[Part]]] = {}
        last, telling = "", False
        for message, told in self.turns(messages):
            if not message.parts:
                continue
            if message.role == last == "user" and (told or telling):
                rows.setdefault(len(said) - 1, [said[-1].parts]).append(message.parts)
                telling = True
            else:
                said.append(message)
                last, telling = message.role, told
        for at, parts in rows.items():
            said[at] = Message("user", _joined(parts))
        return said

    def turns(self, messages: Sequence[Message]) -> Iterator[tuple[Message, bool]]:
        """What each side says, and whether that holds results."""
        numbers = count()
        called: dict[str, _Made] = {}
        results: list[ToolResult] = []
        for message in messages:
            if message.role == "tool":
                results += [part for part in message.parts if isinstance(part, ToolResult)]
                continue
            if results:
                yield self.report(results, called), True
                results = []
            if message.role == "user":
                yield self.quote(message), False
                continue
            calls = message.calls if message.role == "assistant" else ()
            for call in calls:
                # an id that is used again stands for the later call, in its place
                called[call.id] = next(numbers), call.name
            parts = self.recall(message.parts, calls) if calls else _bare(message.parts)
            yield message if parts == message.parts else Message(message.role, parts), False
        if results:
            yield self.report(results, called), True

    def recall(self, parts: Sequence[Part], calls: Sequence[ToolCall]) -> tuple[Part, ...]:
        """What the assistant said, and behind it what it called."""
        made = [(self.taught.given[call.name], call.arguments) for call in calls]
        written = (Text(write_calls(self.taught.dialect, made, self.taught.tools)),)
        said = _bare(parts)
        if said and isinstance(last := said[-1], Text):
            said = (*said[:-1], Text(last.text.rstrip()))
        return _joined([said, written]) if said else written

    def report(self, results: Sequence[ToolResult], called: Mapping[str, _Made]) -> Message:
        """Results in the order of their calls, those without a call last."""
        if len(results) > 1:
            results = sorted(results, key=lambda result: called.get(result.call_id, _NEVER)[0])
        told = [self.tell(result, called.get(result.call_id, _NEVER)[1]) for result in results]
        return Message("user", told[0] if len(told) == 1 else _joined(told))

    def tell(self, result: ToolResult, called: str) -> tuple[Part, ...]:
        own = result.name or called
        text = "".join([part.text for part in result.content if isinstance(part, Text)])
        images = [part for part in result.content if isinstance(part, Image)]
        told = write_result(self.taught.dialect, self.taught.given.get(own, own), self.mute(text), result.error)
        return (Text(told + _announce(len(images), result.call_id)), *images)

    def quote(self, message: Message) -> Message:
        """What the user says, with marks that do nothing. A mark may be split over several parts."""
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        whole = texts[0] if len(texts) == 1 else "".join(texts)
        if not self.taught.marks.are_in(whole):
            return message
        places, joiner = self.taught.marks.find(whole), self.choose_joiner()
        parts: list[Part] = []
        start = 0
        for part in message.parts:
            if isinstance(part, Text):
                end = start + len(part.text)
                inside = places[bisect_right(places, start) : bisect_right(places, end)]
                cuts = [start, *inside, end]
                parts.append(Text(joiner.join(whole[one:other] for one, other in pairwise(cuts))))
                start = end
            else:
                parts.append(part)
        return Message("user", tuple(parts))

    def choose_joiner(self) -> str:
        self.joiner = self.joiner or choose_joiner(_texts(self.conversation))
        return self.joiner

    def mute(self, text: str) -> str:
        if not self.taught.marks.are_in(text):
            return text
        return self.taught.marks.neutralise(text, self.choose_joiner())


def _announce(images: int, call_id: str) -> str:
    """What stands between a result and its images."""
    if not images:
        return ""
    count = "An image" if images == 1 else f"{images} images"
    return f"\n\n{count} from the result of call {call_id}:"
