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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, count, takewhile
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import (
    Call,
    Choice,
    Conversation,
    Foreign,
    Image,
    Message,
    Reasoning,
    Result,
    Role,
    Text,
    Tool,
)
from toolglot.errors import ToolSchemaError
from toolglot.joiner import choose_joiner, has_marks, neutralise
from toolglot.names import rename
from toolglot.schema import Toolbox
from toolglot.teaching import teach
from toolglot.writing import can_name, define, record_of, write_call, write_calls

__all__ = ["NO_OUTPUT", "Speech", "speak", "teach", "write_call", "write_calls", "write_result"]

NO_OUTPUT = "(no output)"
VERDICT = "Tool Result"
ERROR = "Error"
_Made = tuple[float, str]
"""The place of a call among all calls, and its name."""

_NEVER: _Made = (inf, "unknown")
_SLOT = re.compile(r"\{(verdict|name|content|json)\}")


class Speech(Struct, frozen=True):
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


def speak(conversation: Conversation, dialect: str, *, parallel: bool = False) -> Speech:
    """The conversation as a model that speaks the dialect can follow it."""
    past = dict.fromkeys(call.name for message in conversation.messages for call in message.calls)
    taught = _prepare(conversation.tools, tuple(past), record_of(dialect).name, conversation.choice, parallel)
    speaker = _Speaker(taught, conversation)
    messages = tuple(_instruct(list(speaker.say(conversation.messages)), taught.section))
    spoken = replace(conversation, messages=messages, tools=(), choice=Choice())
    return Speech(spoken, taught.offered, taught.names, speaker.joiner, taught.notes)


@dataclass(frozen=True, slots=True)
class _Taught:
    """Everything about a speech that is the same for every turn of a conversation. ``given`` leads from a tool's own
    name to the taught one, ``names`` back, where they differ; ``words`` are all taught names. ``offered`` are the tools
    that may be chosen."""

    dialect: str
    tools: tuple[Tool, ...]
    offered: tuple[Tool, ...]
    given: Mapping[str, str]
    names: Mapping[str, str]
    words: tuple[str, ...]
    section: str
    notes: tuple[str, ...]


@lru_cache(maxsize=256)
def _prepare(tools: tuple[Tool, ...], past: tuple[str, ...], dialect: str, choice: Choice, parallel: bool) -> _Taught:
    usable, notes = _check(tools)
    given = rename([*(tool.name for tool in usable), *past], partial(can_name, dialect))
    known = tuple(replace(tool, name=given[tool.name]) for tool in usable)
    choice = replace(choice, only=tuple(given.get(name, name) for name in choice.only))
    return _Taught(
        dialect,
        known,
        tuple(tool for tool in known if choice.allows(tool.name)),
        given,
        {taught: own for own, taught in given.items() if taught != own},
        tuple(sorted(given.values())),
        teach(known, dialect, choice=choice, parallel=parallel),
        (*notes, *_miss(choice, known)),
    )


def _miss(choice: Choice, tools: Sequence[Tool]) -> Iterator[str]:
    """A note for every tool that was chosen and is not there."""
    names = [tool.name for tool in tools]
    return (f"choice of {name} ignored: no such tool" for name in choice.only if name not in names)


def write_result(dialect: str, name: str, content: str, error: bool = False) -> str:
    """A tool's result as the models of the dialect expect it."""
    form = record_of(dialect).returns
    text = content if content.strip() else NO_OUTPUT
    if error and "{verdict}" not in form:
        text = f"{ERROR} from {name}:\n{text}"
    slots = {"verdict": ERROR if error else VERDICT, "name": name, "content": text}
    if "{json}" in form:
        slots["json"] = json.dumps(text, ensure_ascii=False)
    return _SLOT.sub(lambda found: slots[found[1]], form)


def _check(tools: Sequence[Tool]) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """The tools that can be taught, and a note for each of the others."""
    usable: list[Tool] = []
    notes: list[str] = []
    for number, tool in enumerate(tools):
        problem = _problem(tool)
        if problem:
            notes.append(f"tool #{number} skipped: {problem}")
        else:
            usable.append(tool)
    return tuple(usable), tuple(notes)


@lru_cache(maxsize=1024)
def _problem(tool: Tool) -> str:
    """What is wrong with the definition of a tool."""
    try:
        Toolbox([define(tool)])
    except ToolSchemaError as error:
        return error.message
    return ""


def _texts(conversation: Conversation) -> Iterator[str]:
    """All the text that goes to the model or that it may repeat."""
    for part in chain.from_iterable(message.parts for message in conversation.messages):
        for piece in part.content if isinstance(part, Result) else (part,):
            if isinstance(piece, (Text, Reasoning)):
                yield piece.text
            elif isinstance(piece, Call):
                yield piece.arguments
    yield from map(_definition, conversation.tools)


@lru_cache(maxsize=1024)
def _definition(tool: Tool) -> str:
    return tool.description + json.dumps(tool.parameters, ensure_ascii=False, default=str)


def _instruct(messages: list[Message], section: str) -> Iterator[Message]:
    """The messages with the section behind the client's own system prompt, unless it holds that section already."""
    own = list(takewhile(lambda message: message.role == "system", messages))
    added = () if any(section in message.text for message in own) else (Text(section),)
    parts = _joined([*(message.parts for message in own), added])
    if parts:
        yield Message("system", parts)
    yield from messages[len(own) :]


_Part = Text | Image | Foreign


def _joined(groups: Iterable[Sequence[object]]) -> tuple[_Part, ...]:
    """The parts of several messages as parts of one: texts that meet are parted by an empty line."""
    parts: list[_Part] = []
    meeting: list[str] = []
    for group in groups:
        fresh = [part for part in group if isinstance(part, _Part) and part != Text("")]
        if meeting and fresh and isinstance(fresh[0], Text):
            meeting.append(fresh[0].text)
            fresh = fresh[1:]
        if meeting and fresh:
            parts.append(Text("\n\n".join(meeting)))
            meeting = []
        if fresh and isinstance(last := fresh[-1], Text):
            meeting.append(last.text)
            fresh.pop()
        parts += fresh
    return (*parts, Text("\n\n".join(meeting))) if meeting else tuple(parts)


class _Turn(Struct, frozen=True):
    """What one side says; ``told``: it holds results."""

    role: Role
    parts: tuple[_Part, ...]
    told: bool = False

    def adjoins(self, other: _Turn) -> bool:
        """Whether the other one goes on where this one stops: results and what the user says beside them."""
        return self.role == other.role == "user" and (self.told or other.told)


@dataclass(slots=True)
class _Speaker:
    """Turns the messages of one conversation into plain ones."""

    taught: _Taught
    conversation: Conversation
    joiner: str = ""

    def say(self, messages: Sequence[Message]) -> Iterator[Message]:
        rows: list[list[_Turn]] = []
        for turn in self.turns(messages):
            if not turn.parts:
                continue
            if rows and rows[-1][-1].adjoins(turn):
                rows[-1].append(replace(turn, told=True))
            else:
                rows.append([turn])
        for row in rows:
            parts = _joined(turn.parts for turn in row) if len(row) > 1 else row[0].parts
            yield Message(row[0].role, parts)

    def turns(self, messages: Sequence[Message]) -> Iterator[_Turn]:
        numbers = count()
        called: dict[str, _Made] = {}
        results: list[Result] = []
        for message in messages:
            if message.role == "tool":
                results += [part for part in message.parts if isinstance(part, Result)]
                continue
            yield _Turn("user", self.report(results, called), True)
            results = []
            # an id that is used again stands for the later call, in its place
            called |= {call.id: (next(numbers), call.name) for call in message.calls}
            if message.role == "user":
                yield _Turn("user", self.quote(message.parts))
            elif message.role == "system":
                yield _Turn("system", _joined([message.parts]))
            else:
                yield _Turn("assistant", self.recall(message))
        yield _Turn("user", self.report(results, called), True)

    def recall(self, message: Message) -> tuple[_Part, ...]:
        """What the assistant said, and behind it what it called."""
        calls = [(self.taught.given[call.name], call.arguments) for call in message.calls]
        written = (Text(write_calls(self.taught.dialect, calls, self.taught.tools)),) if calls else ()
        said = _joined([message.parts])
        if said and isinstance(said[-1], Text) and calls:
            said = (*said[:-1], Text(said[-1].text.rstrip()))
        return _joined([said, written])

    def report(self, results: Sequence[Result], called: Mapping[str, _Made]) -> tuple[_Part, ...]:
        """Results in the order of their calls, those without a call last."""
        ordered = sorted(results, key=lambda result: called.get(result.call_id, _NEVER)[0])
        return _joined([self.tell(result, called.get(result.call_id, _NEVER)[1]) for result in ordered])

    def tell(self, result: Result, called: str) -> tuple[_Part, ...]:
        own = result.name or called
        text = "".join(part.text for part in result.content if isinstance(part, Text))
        images = [part for part in result.content if isinstance(part, Image)]
        told = write_result(self.taught.dialect, self.taught.given.get(own, own), self.mute(text), result.error)
        return (Text(told + _announce(len(images), result.call_id)), *images)

    def quote(self, parts: Sequence[object]) -> tuple[_Part, ...]:
        return tuple(
            Text(self.mute(part.text)) if isinstance(part, Text) else part for part in parts if isinstance(part, _Part)
        )

    def mute(self, text: str) -> str:
        taught = self.taught
        if not has_marks(text, taught.dialect, taught.words):
            return text
        if not self.joiner:
            self.joiner = choose_joiner(_texts(self.conversation))
        return neutralise(text, taught.dialect, taught.words, self.joiner)


def _announce(images: int, call_id: str) -> str:
    """What stands between a result and its images."""
    if not images:
        return ""
    count = "An image" if images == 1 else f"{images} images"
    return f"\n\n{count} from the result of call {call_id}:"
