"""Proofs of reasoning for clients whose wire has no place for them: taken from an answer, put back into the history.

Strategy. A seal belongs to the step that it stands before: a call, or the text of an answer without calls. It is kept
under that step, with the thoughts that it proves, and the client never sees it. When the client sends the step again
as part of its history, thoughts and seal go in front of it as they were. A step is known again by two marks: the id of
the call, or, for clients that know no ids, its place in the conversation (the words of the user before it, and how many
answers came since); with either, name and arguments must be the same. A step that is not known again goes without
seals, and its wire says what stands for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from toolglot.core.conversation import Message, Part, Reasoning, ToolCall
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    ReasoningDelta,
    ReasoningSigned,
    TextDelta,
)
from toolglot.gateway.sessions.ttl_store import Drawer, Key, digest

Thoughts: TypeAlias = tuple[tuple[Reasoning, bool], ...]
"""Sealed thoughts, and of each whether it stood before text: that before its call or, without a call, all of it."""

Kept: TypeAlias = tuple[tuple[bytes, ...], Thoughts]
"""What they stood before, in the ways in which it is known again, and the thoughts."""


class TurnKey(Struct, frozen=True):
    """Where in a conversation an answer stands: what the user said last, and how many answers came since."""

    words: bytes = b""
    answers: int = 0

    def after(self, message: Message) -> TurnKey:
        if message.role == "user":
            return TurnKey(digest(message.text))
        return replace(self, answers=self.answers + 1) if message.role == "assistant" else self

    def keys_of(self, call_id: str, number: int) -> tuple[Key, ...]:
        """The keys of a call: its id, and its number in this place."""
        here: Key = ("seal", self.words, self.answers, number)
        return (("seal", call_id), here) if call_id else (here,)

    @property
    def key(self) -> Key:
        """The key of an answer without calls."""
        return "seal", self.words, self.answers, "text"


def find_place(messages: Iterable[Message]) -> TurnKey:
    """The place of the answer to these messages."""
    place = TurnKey()
    for message in messages:
        place = place.after(message)
    return place


def _describe(call: ToolCall) -> bytes:
    return digest(call.name, call.arguments)


def _settle(call: ToolCall) -> bytes:
    """A call so that the same ones are equal, however their arguments are written."""
    try:
        return digest(call.name, json.dumps(json.loads(call.arguments or "{}"), sort_keys=True))
    except (ValueError, RecursionError):
        return _describe(call)


def _describe_text(text: str) -> bytes:
    return digest(text.strip())


# -- from an answer ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Called:
    id: str
    name: str
    thoughts: Thoughts
    pieces: list[str] = field(default_factory=list)


class SignatureCollector:
    """One answer, as the client is told it: its seals are kept."""

    def __init__(self, drawer: Drawer, place: TurnKey) -> None:
        self.drawer = drawer
        self.place = place
        self.thinking: list[str] = []
        self.sealed: list[tuple[Reasoning, int]] = []
        self.said: list[str] = []
        self.calls: dict[int, _Called] = {}

    def feed(self, events: list[Event]) -> list[Event]:
        """The same events; what they seal is kept."""
        self.see(events)
        return events

    def see(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case TextDelta(text=text):
                    self.said.append(text)
                case ReasoningDelta(text=text):
                    self.thinking.append(text)
                case ReasoningSigned(signature=seal, kind=kind):
                    self.sealed.append((Reasoning("".join(self.thinking), seal, kind), len(self.said)))
                    self.thinking.clear()
                case CallStarted(index=index, id=call_id, name=name):
                    self.calls[index] = _Called(call_id, name, self.take())
                case CallArguments(index=index, fragment=fragment) if index in self.calls:
                    self.calls[index].pieces.append(fragment)
                case CallEnded(index=index) if index in self.calls:
                    called = self.calls.pop(index)
                    if called.thoughts:
                        call = ToolCall(called.id, called.name, "".join(called.pieces))
                        self.keep(
                            called.thoughts, (_describe(call), _settle(call)), self.place.keys_of(called.id, index)
                        )
                case Finished():
                    self.keep(self.take(), (_describe_text("".join(self.said)),), [self.place.key])

    def take(self) -> Thoughts:
        """The thoughts that have no step yet."""
        taken = tuple((thought, at < len(self.said)) for thought, at in self.sealed)
        self.sealed.clear()
        self.thinking.clear()
        return taken

    def keep(self, thoughts: Thoughts, step: tuple[bytes, ...], keys: Iterable[Key]) -> None:
        kept: Kept = (step, thoughts)
        size = sum(len(thought.text) + len(thought.signature) for thought, _ in thoughts)
        if thoughts:
            for key in keys:
                self.drawer.keep(key, kept, size)


# -- into the history --------------------------------------------------------------------------------------------------


def restore(messages: Sequence[Message], drawer: Drawer) -> tuple[Message, ...]:
    """The messages with the seals that are kept for them."""
    place, restored = TurnKey(), []
    for message in messages:
        restored.append(_restore(message, place, drawer) if message.role == "assistant" else message)
        place = place.after(message)
    return tuple(restored)


def _restore(message: Message, place: TurnKey, drawer: Drawer) -> Message:
    said = [part for part in message.parts if not isinstance(part, Reasoning)]
    steps: list[Part] = []
    start = number = 0  # of the step, which is a call with the text before it
    for part in said:
        if isinstance(part, ToolCall):
            steps[start:] = _surround(steps[start:], _find_call(drawer, part, place.keys_of(part.id, number)))
            number += 1
        steps.append(part)
        start = len(steps) if isinstance(part, ToolCall) else start
    if not message.calls and message.text:
        kept: Kept | None = drawer.find(place.key)
        if kept is not None and _describe_text(message.text) in kept[0]:
            steps = _surround(steps, kept[1])
    return replace(message, parts=tuple(steps)) if len(steps) > len(said) else message


def _surround(parts: Sequence[Part], thoughts: Thoughts) -> list[Part]:
    """The parts between the thoughts that came before and those that came after."""
    early = [thought for thought, before_text in thoughts if before_text]
    return [*early, *parts, *(thought for thought, before_text in thoughts if not before_text)]


def _find_call(drawer: Drawer, call: ToolCall, keys: Iterable[Key]) -> Thoughts:
    for key in keys:
        kept: Kept | None = drawer.find(key)
        if kept is not None and (_describe(call) in kept[0] or _settle(call) in kept[0]):
            return kept[1]
    return ()
