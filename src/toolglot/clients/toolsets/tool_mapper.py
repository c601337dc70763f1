"""From a client's tools to those a model was trained on, and back.

Strategy. A mapping is a pair of tool sets, the tools of the client that belong to one of them, and what the client
allows. On the way there tools and history are told in the model's words; a call of the history that cannot be told so
stays as it is, with a note, because it has happened and a conversation must go on. On the way back a call either
becomes calls that do the same, or is refused with the sentence of its ``Untranslatable``. Results pass as they are: how
a tool shows lines and reports errors is the client's own, and nothing certain is known about it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

from msgspec.structs import replace

from toolglot.clients.toolsets import anthropic, roo
from toolglot.clients.toolsets import opencode_claude_code as coding
from toolglot.clients.toolsets.argument_renamer import Renamer
from toolglot.clients.toolsets.operations import (
    Arguments,
    Kind,
    List,
    Operation,
    Run,
    Target,
    ToolAdapter,
    ToolSet,
    Untranslatable,
)
from toolglot.core.conversation import Conversation, Message, Part, Tool, ToolCall, ToolChoice, ToolResult
from toolglot.core.lenient_json import dump

SETS: Final = {known.name: known for known in (anthropic.SET, roo.SET, coding.OPENCODE, coding.CLAUDE_CODE)}
NAMES: Final = tuple(SETS)
Check: TypeAlias = Callable[[str, str], str]
"""Takes the name of a tool and its arguments."""


@dataclass(frozen=True, slots=True)
class MappedConversation:
    """Calls in the words of the other side, as names and arguments, and what was dropped on the way."""

    calls: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """One end of a mapping: the shapes at hand there and the tools they stand for. ``check`` is as in
    ``ToolMapping``."""

    tools: tuple[tuple[ToolAdapter, Target], ...]
    check: Check | None = None

    @property
    def kinds(self) -> frozenset[Kind]:
        return frozenset(kind for shape, target in self.tools for kind in shape.kinds if _can(shape, target, kind))

    def find(self, tool: str) -> tuple[ToolAdapter, Target] | None:
        return next((pair for pair in self.tools if pair[0].tool == tool), None)

    def read(self, name: str, arguments: str) -> tuple[tuple[Operation, ...], tuple[str, ...]]:
        found = self.find(name)
        if found is None:
            raise Untranslatable(f"{name} is not a tool for editing")
        given = Arguments(name, arguments)
        operations = found[0].read(given, found[1])
        given.finish()
        return operations, tuple(given.notes)

    def write(self, operation: Operation) -> tuple[str, str]:
        """The operation as a call of the first tool that can say it."""
        losses: list[Untranslatable] = []
        for shape, target in self.tools:
            write = shape.write.get(type(operation))
            if write is not None:
                try:
                    return self._check(target.tool.name, dump(dict(write(operation, target))))
                except Untranslatable as loss:
                    losses.append(loss)
        raise (
            losses[0] if losses else Untranslatable(f"the other side has no tool to {type(operation).__name__.lower()}")
        )

    def _check(self, name: str, arguments: str) -> tuple[str, str]:
        if self.check is not None and (problem := self.check(name, arguments)):
            raise Untranslatable(problem)
        return name, arguments


def _can(shape: ToolAdapter, target: Target, kind: Kind) -> bool:
    """Whether a tool does this. Only of folders some tools of the same shape know nothing."""
    if kind is not List:
        return True
    try:
        shape.write[List](List("."), target)
    except Untranslatable:
        return False
    return True


@dataclass(frozen=True)
class ToolMapping:
    """A client's tools as a model knows them.

    ``parallel``: the client takes several calls in one answer. ``known_as`` is what the client calls the model.
    ``check`` tells what is wrong with a call for the client, or nothing; another tool is tried then. With it, what the
    client is known to change in values is no loss by itself (see ``Target``).
    """

    client: ToolSet
    model: ToolSet
    tools: tuple[Tool, ...]
    parallel: bool = False
    known_as: str = field(default="", repr=False)
    check: Check | None = field(default=None, repr=False, compare=False)

    @cached_property
    def client_side(self) -> Side:
        pairs = ((shape, tool) for shape in self.client.shapes for tool in self.tools if shape.fits(tool))
        proved = self.check is not None
        return Side(tuple((shape, Target(tool, self.known_as, proved)) for shape, tool in pairs), self.check)

    @cached_property
    def model_side(self) -> Side:
        kinds = self.client_side.kinds
        taught = (shape for shape in self.model.shapes if shape.tool in self.model.taught and shape.kinds & kinds)
        return Side(tuple((shape, Target(self._define(shape, kinds))) for shape in taught))

    def _define(self, shape: ToolAdapter, kinds: frozenset[Kind]) -> Tool:
        tool = shape.define(kinds)
        running = (target.tool for one, target in self.client_side.tools if one.kinds & shape.kinds == {Run})
        told = next(running, tool).description
        return replace(tool, description=told or tool.description)

    @cached_property
    def replaced(self) -> frozenset[str]:
        """The client's tools that a model does not see."""
        kinds = {kind for shape, _ in self.model_side.tools for kind in shape.kinds}
        return frozenset(target.tool.name for shape, target in self.client_side.tools if shape.kinds & kinds)

    @property
    def offered(self) -> tuple[str, ...]:
        """The tools that a model sees instead."""
        return tuple(target.tool.name for _, target in self.model_side.tools)

    def describe(self) -> str:
        """Which tools stand for which, in one line."""
        pairs = (f"{', '.join(self._list_replaced(shape))} as {shape.tool}" for shape, _ in self.model_side.tools)
        return f"{self.client.name} as {self.model.name}: {'; '.join(pairs)}"

    def _list_replaced(self, shape: ToolAdapter) -> list[str]:
        """The client's tools that this tool of the model stands for."""
        return sorted(target.tool.name for one, target in self.client_side.tools if one.kinds & shape.kinds)

    # -- the way there -------------------------------------------------------------------------------------------------

    def there(self, name: str, arguments: str) -> MappedConversation:
        """A call of the client in the model's words; raises ``Untranslatable``."""
        return _carry(name, arguments, self.client_side, self.model_side)

    def offer(self, conversation: Conversation, notes: list[str] | None = None) -> Conversation:
        """The conversation with tools, choice and history in the model's words."""
        offered = [target.tool for _, target in self.model_side.tools]
        hidden = self.replaced.union(tool.name for tool in offered)
        kept = [tool for tool in conversation.tools if tool.name not in hidden]
        told = _History(self, [] if notes is None else notes)
        messages = tuple(map(told.tell, conversation.messages))
        return replace(
            conversation, messages=messages, tools=(*offered, *kept), choice=self._choose(conversation.choice)
        )

    def _choose(self, choice: ToolChoice) -> ToolChoice:
        if not choice.only:
            return choice
        names = [name for name in choice.only if name not in self.replaced]
        if len(names) < len(choice.only):
            names += self.offered
        return ToolChoice(choice.mode, tuple(dict.fromkeys(names)))

    # -- the way back --------------------------------------------------------------------------------------------------

    def back(self, name: str, arguments: str) -> MappedConversation:
        """A call of the model in the client's words; raises ``Untranslatable``."""
        carried = _carry(name, arguments, self.model_side, self.client_side)
        if len(carried.calls) > 1 and not self.parallel:
            raise Untranslatable(
                f"{name} says {len(carried.calls)} things at once, and the client takes one call at a time"
            )
        return carried

    def concerns(self, name: str) -> bool:
        """Whether a call of the model must be carried back; others are the client's own."""
        return self.model_side.find(name) is not None

    def renamer(self, name: str) -> tuple[str, Renamer] | None:
        """The client's name and the way for arguments, where only names differ."""
        found = self.model_side.find(name)
        for shape, target in self.client_side.tools if found else ():
            fields = found[0].fields if found else {}
            if fields and shape.fields.keys() == fields.keys() and target.declares(*shape.fields.values()):
                return target.tool.name, Renamer({fields[part]: key for part, key in shape.fields.items()}, name)
        return None


def _carry(name: str, arguments: str, source: Side, target: Side) -> MappedConversation:
    operations, notes = source.read(name, arguments)
    return MappedConversation(tuple(map(target.write, operations)), notes)


class _History:
    """Earlier turns in the model's words. A call that became several gives each of them its result."""

    def __init__(self, mapping: ToolMapping, notes: list[str]) -> None:
        self.mapping = mapping
        self.notes = notes
        self.became: dict[str, tuple[ToolCall, ...]] = {}

    def tell(self, message: Message) -> Message:
        return replace(message, parts=tuple(told for part in message.parts for told in self.tell_part(part)))

    def tell_part(self, part: Part) -> Iterator[Part]:
        if isinstance(part, ToolCall) and part.name in self.mapping.replaced:
            self.became[part.id] = self.carry(part)
            yield from self.became[part.id]
        elif isinstance(part, ToolResult) and part.call_id in self.became:
            yield from (replace(part, call_id=call.id, name=call.name) for call in self.became[part.call_id])
        else:
            yield part

    def carry(self, call: ToolCall) -> tuple[ToolCall, ...]:
        try:
            carried = self.mapping.there(call.name, call.arguments)
        except Untranslatable as loss:
            self.notes.append(f"a call to {call.name} in the history stays as it is: {loss}")
            return (call,)
        self.notes += carried.notes
        return tuple(ToolCall(number_id(call.id, at), name, told) for at, (name, told) in enumerate(carried.calls))


def number_id(first: str, at: int) -> str:
    """The id of one of the calls that one call became."""
    return f"{first}_{at + 1}" if at else first


def mappings() -> tuple[ToolMapping, ...]:
    """Every pair of tool sets, with all the tools that the client's side can have."""
    pairs = ((client, model) for client in SETS.values() for model in SETS.values() if client is not model)
    return tuple(ToolMapping(client, model, _all_tools(client), parallel=True) for client, model in pairs)


def _all_tools(known: ToolSet) -> tuple[Tool, ...]:
    kinds = frozenset(kind for shape in known.shapes for kind in shape.kinds)
    return tuple({tool.name: tool for tool in (shape.define(kinds) for shape in known.shapes)}.values())


def find(
    client_tools: Iterable[Tool],
    wanted: str,
    *,
    only: Collection[str] = (),
    parallel: bool = False,
    known_as: str = "",
    check: Check | None = None,
) -> ToolMapping | None:
    """The mapping from a client's tools to the wanted set; None where there is nothing to map.

    ``only`` are the tools that may be called, if not all may; the others are as in ``ToolMapping``.
    """
    tools = tuple(client_tools)
    model = SETS.get(wanted)
    client = max(SETS.values(), key=lambda known: len(_recognise(known, tools)))
    recognised = _recognise(client, tools)
    if model is None or client is model:
        return None
    allowed = tuple(tool for tool in recognised if not only or tool.name in only)
    mapping = ToolMapping(client, model, allowed, parallel, known_as, check)
    offered = set(mapping.offered)
    if not offered or offered & {tool.name for tool in tools if tool not in recognised}:
        return None
    return mapping


def _recognise(known: ToolSet, tools: Sequence[Tool]) -> list[Tool]:
    return [tool for tool in tools if any(shape.fits(tool) for shape in known.shapes)]
