"""Map a client's tools to those a model was trained on, and its calls back.

Strategy. A mapping is a pair of tool sets, the client's tools that belong to one of them, and what the client allows.
On the request path tools and history are mapped to the model's tools; a call in the history that cannot be mapped stays
unchanged, with a note, because it has happened and the conversation must continue. On the response path a call becomes
calls with the same effect, or is refused with the message of ``Untranslatable``. Results pass unchanged: how a tool
shows lines and reports errors is specific to the client and not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from toolglot.clients.toolsets import anthropic, roo
from toolglot.clients.toolsets import opencode_claude_code as coding
from toolglot.clients.toolsets.argument_renamer import ArgumentRenamer
from toolglot.clients.toolsets.operations import (
    Arguments,
    List,
    Operation,
    OperationType,
    Run,
    Target,
    ToolAdapter,
    ToolSet,
    Untranslatable,
)
from toolglot.core.conversation import Conversation, Message, Part, Tool, ToolCall, ToolChoice, ToolResult
from toolglot.core.lenient_json import dump

TOOLSETS: Final = {known.name: known for known in (anthropic.TOOLSET, roo.TOOLSET, coding.OPENCODE, coding.CLAUDE_CODE)}
TOOLSET_NAMES: Final = tuple(TOOLSETS)
KNOWN_TO: Final = {"claude": ("anthropic", "claude_code")}
"""The tool sets that models were trained on, by a part of their names."""
CallCheck: TypeAlias = Callable[[str, str], str]
"""Takes tool name and arguments; returns the problem, or an empty string."""


class MappedCalls(Struct, frozen=True):
    """Mapped calls as names and arguments, and notes on what was dropped."""

    calls: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()


class MappingSide(Struct, frozen=True):
    """One side of a mapping: its adapters and the tools they are for. ``check`` is as in ``ToolMapping``."""

    tools: tuple[tuple[ToolAdapter, Target], ...]
    check: CallCheck | None = None

    @property
    def kinds(self) -> frozenset[OperationType]:
        return frozenset(
            kind for adapter, target in self.tools for kind in adapter.kinds if _supports(adapter, target, kind)
        )

    def find_tool(self, tool: str) -> tuple[ToolAdapter, Target] | None:
        return next((pair for pair in self.tools if pair[0].tool == tool), None)

    def read(self, name: str, arguments: str) -> tuple[tuple[Operation, ...], tuple[str, ...]]:
        found = self.find_tool(name)
        if found is None:
            raise Untranslatable(f"{name} is not a tool for editing")
        given = Arguments(name, arguments)
        operations = found[0].read(given, found[1])
        given.finish()
        return operations, tuple(given.notes)

    def write(self, operation: Operation) -> tuple[str, str]:
        """The operation as a call of the first tool that can express it; raises ``Untranslatable``."""
        errors: list[Untranslatable] = []
        for adapter, target in self.tools:
            write = adapter.write.get(type(operation))
            if write is not None:
                try:
                    return self._check(target.tool.name, dump(dict(write(operation, target))))
                except Untranslatable as error:
                    errors.append(error)
        raise (
            errors[0] if errors else Untranslatable(f"the other side has no tool to {type(operation).__name__.lower()}")
        )

    def _check(self, name: str, arguments: str) -> tuple[str, str]:
        if self.check is not None and (problem := self.check(name, arguments)):
            raise Untranslatable(problem)
        return name, arguments


def _supports(adapter: ToolAdapter, target: Target, kind: OperationType) -> bool:
    """Whether a tool supports an operation type. Only listing folders depends on the declared tool."""
    if kind is not List:
        return True
    try:
        adapter.write[List](List("."), target)
    except Untranslatable:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class ToolMapping:
    """A client's tools, mapped to those that a model knows.

    ``parallel``: the client takes several calls in one answer. ``model_name``: the model id that the client uses.
    ``check`` returns why the client cannot take a call, or an empty string; then another tool is tried. With it, known
    changes that the client makes to values are not refused in advance (see ``Target``).
    """

    client: ToolSet
    model: ToolSet
    tools: tuple[Tool, ...]
    parallel: bool = False
    model_name: str = field(default="", repr=False)
    check: CallCheck | None = field(default=None, repr=False, compare=False)

    @cached_property
    def client_side(self) -> MappingSide:
        pairs = ((adapter, tool) for adapter in self.client.adapters for tool in self.tools if adapter.fits(tool))
        verified = self.check is not None
        return MappingSide(
            tuple((adapter, Target(tool, self.model_name, verified)) for adapter, tool in pairs), self.check
        )

    @cached_property
    def model_side(self) -> MappingSide:
        kinds = self.client_side.kinds
        taught = (
            adapter for adapter in self.model.adapters if adapter.tool in self.model.taught and adapter.kinds & kinds
        )
        return MappingSide(tuple((adapter, Target(self._define(adapter, kinds))) for adapter in taught))

    def _define(self, adapter: ToolAdapter, kinds: frozenset[OperationType]) -> Tool:
        tool = adapter.make_tool(kinds)
        running = (target.tool for one, target in self.client_side.tools if one.kinds & adapter.kinds == {Run})
        description = next(running, tool).description
        return replace(tool, description=description or tool.description)

    @cached_property
    def hidden_tools(self) -> frozenset[str]:
        """The client's tools that are hidden from the model."""
        kinds = {kind for adapter, _ in self.model_side.tools for kind in adapter.kinds}
        return frozenset(target.tool.name for adapter, target in self.client_side.tools if adapter.kinds & kinds)

    @property
    def offered_tools(self) -> tuple[str, ...]:
        """The tools that the model gets instead."""
        return tuple(target.tool.name for _, target in self.model_side.tools)

    def describe(self) -> str:
        """The mapping in one line."""
        pairs = (f"{', '.join(self._list_replaced(adapter))} as {adapter.tool}" for adapter, _ in self.model_side.tools)
        return f"{self.client.name} as {self.model.name}: {'; '.join(pairs)}"

    def _list_replaced(self, adapter: ToolAdapter) -> list[str]:
        """The client's tools that this tool of the model replaces."""
        return sorted(target.tool.name for one, target in self.client_side.tools if one.kinds & adapter.kinds)

    # -- request path --------------------------------------------------------------------------------------------------

    def map_call_to_model(self, name: str, arguments: str) -> MappedCalls:
        """Map a call of the client to the model's tools; raises ``Untranslatable``."""
        return _map_call(name, arguments, self.client_side, self.model_side)

    def map_request(self, conversation: Conversation, notes: list[str] | None = None) -> Conversation:
        """Map tools, tool choice and history to the model's tools. Notes are added to ``notes``."""
        offered = [target.tool for _, target in self.model_side.tools]
        hidden = self.hidden_tools.union(tool.name for tool in offered)
        kept = [tool for tool in conversation.tools if tool.name not in hidden]
        history = _HistoryMapper(self, [] if notes is None else notes)
        messages = tuple(map(history.map_message, conversation.messages))
        return replace(
            conversation, messages=messages, tools=(*offered, *kept), choice=self._choose(conversation.choice)
        )

    def _choose(self, choice: ToolChoice) -> ToolChoice:
        if not choice.only:
            return choice
        names = [name for name in choice.only if name not in self.hidden_tools]
        if len(names) < len(choice.only):
            names += self.offered_tools
        return ToolChoice(choice.mode, tuple(dict.fromkeys(names)))

    # -- response path -------------------------------------------------------------------------------------------------

    def map_call_to_client(self, name: str, arguments: str) -> MappedCalls:
        """Map a call of the model to the client's tools; raises ``Untranslatable``."""
        mapped = _map_call(name, arguments, self.model_side, self.client_side)
        if len(mapped.calls) > 1 and not self.parallel:
            raise Untranslatable(
                f"{name} does {len(mapped.calls)} things at once, and the client takes one call at a time"
            )
        return mapped

    def maps_tool(self, name: str) -> bool:
        """Whether calls to this tool must be mapped; all others are the client's own."""
        return self.model_side.find_tool(name) is not None

    def make_renamer(self, name: str) -> tuple[str, ArgumentRenamer] | None:
        """The client's tool name and a renamer for the arguments, if only names differ."""
        found = self.model_side.find_tool(name)
        for adapter, target in self.client_side.tools if found else ():
            fields = found[0].fields if found else {}
            if fields and adapter.fields.keys() == fields.keys() and target.declares(*adapter.fields.values()):
                return target.tool.name, ArgumentRenamer(
                    {fields[part]: key for part, key in adapter.fields.items()}, name
                )
        return None


def _map_call(name: str, arguments: str, source: MappingSide, target: MappingSide) -> MappedCalls:
    operations, notes = source.read(name, arguments)
    return MappedCalls(tuple(map(target.write, operations)), notes)


class _HistoryMapper:
    """Maps earlier turns. If a call becomes several, each gets its result."""

    def __init__(self, mapping: ToolMapping, notes: list[str]) -> None:
        self.mapping = mapping
        self.notes = notes
        self.mapped_calls: dict[str, tuple[ToolCall, ...]] = {}

    def map_message(self, message: Message) -> Message:
        return replace(message, parts=tuple(mapped for part in message.parts for mapped in self.map_part(part)))

    def map_part(self, part: Part) -> Iterator[Part]:
        if isinstance(part, ToolCall) and part.name in self.mapping.hidden_tools:
            self.mapped_calls[part.id] = self.map_call(part)
            yield from self.mapped_calls[part.id]
        elif isinstance(part, ToolResult) and part.call_id in self.mapped_calls:
            yield from (replace(part, call_id=call.id, name=call.name) for call in self.mapped_calls[part.call_id])
        else:
            yield part

    def map_call(self, call: ToolCall) -> tuple[ToolCall, ...]:
        try:
            mapped = self.mapping.map_call_to_model(call.name, call.arguments)
        except Untranslatable as error:
            self.notes.append(f"a call to {call.name} in the history stays as it is: {error}")
            return (call,)
        self.notes += mapped.notes
        return tuple(
            ToolCall(derive_call_id(call.id, at), name, arguments) for at, (name, arguments) in enumerate(mapped.calls)
        )


def derive_call_id(first: str, at: int) -> str:
    """The id of one of the calls that replace a call."""
    return f"{first}_{at + 1}" if at else first


def all_mappings() -> tuple[ToolMapping, ...]:
    """Every pair of tool sets, with all tools of the client's set."""
    pairs = ((client, model) for client in TOOLSETS.values() for model in TOOLSETS.values() if client is not model)
    return tuple(
        ToolMapping(client=client, model=model, tools=_all_tools(client), parallel=True) for client, model in pairs
    )


def _all_tools(known: ToolSet) -> tuple[Tool, ...]:
    kinds = frozenset(kind for adapter in known.adapters for kind in adapter.kinds)
    return tuple({tool.name: tool for tool in (adapter.make_tool(kinds) for adapter in known.adapters)}.values())


def find_mapping(
    client_tools: Iterable[Tool],
    wanted: str,
    *,
    only: Collection[str] = (),
    parallel: bool = False,
    model_name: str = "",
    check: CallCheck | None = None,
) -> ToolMapping | None:
    """The mapping from a client's tools to the wanted set; None if there is nothing to map.

    ``only``: the allowed tools, if not all are allowed; the others are as in ``ToolMapping``.
    """
    tools = tuple(client_tools)
    model = TOOLSETS.get(wanted)
    client = max(TOOLSETS.values(), key=lambda known: len(_recognise(known, tools)))
    recognised = _recognise(client, tools)
    if model is None or client is model:
        return None
    allowed = tuple(tool for tool in recognised if not only or tool.name in only)
    mapping = ToolMapping(
        client=client, model=model, tools=allowed, parallel=parallel, model_name=model_name, check=check
    )
    offered = set(mapping.offered_tools)
    if not offered or offered & {tool.name for tool in tools if tool not in recognised}:
        return None
    return mapping


def suggest_toolset(client_tools: Iterable[Tool], model_name: str, fails: bool = False) -> str:
    """The tool set that a model would do better with than with the client's, or an empty text: one that it was trained
    on, or, if its edits fail, the one with the plainest form of an edit."""
    known = next((names for part, names in KNOWN_TO.items() if part in model_name.lower()), ("anthropic",) * fails)
    mapping = find_mapping(client_tools, known[0]) if known else None
    return "" if mapping is None or mapping.client.name in known else mapping.model.name


def _recognise(known: ToolSet, tools: Sequence[Tool]) -> list[Tool]:
    return [tool for tool in tools if any(adapter.fits(tool) for adapter in known.adapters)]
