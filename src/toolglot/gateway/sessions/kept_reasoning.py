"""Reasoning signatures for clients whose wire has no field for them: stored with an answer, restored in the history.

Strategy. A signature belongs to the step that it precedes: a call, or the text of an answer without calls. It is stored
under that step, together with the signed reasoning, and the client never sees it. When the client sends the step again
in its history, reasoning and signature are inserted before it. A step is recognised by the id of the call or, for
clients without ids, by its position in the conversation (the last user message, and the number of answers since); in
both cases name and arguments must be the same. A step that is not recognised is sent without signatures, and its wire
decides what to send instead.
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
from toolglot.gateway.sessions.ttl_store import Key, OwnedStore, digest

Thoughts: TypeAlias = tuple[tuple[Reasoning, bool], ...]
"""Signed reasoning; for each, whether it precedes the text (before the call or, without a call, all text)."""

Kept: TypeAlias = tuple[tuple[bytes, ...], Thoughts]
"""The hashes by which the step is recognised, and the signed reasoning before it."""


class TurnKey(Struct, frozen=True):
    """The position of an answer in a conversation: a hash of the last user message, and the number of answers since."""

    user_text: bytes = b""
    answers: int = 0

    def after(self, message: Message) -> TurnKey:
        if message.role == "user":
            return TurnKey(digest(message.text))
        return replace(self, answers=self.answers + 1) if message.role == "assistant" else self

    def keys_of(self, call_id: str, number: int) -> tuple[Key, ...]:
        """The keys of a call: its id, and its number within this answer."""
        here: Key = ("signature", self.user_text, self.answers, number)
        return (("signature", call_id), here) if call_id else (here,)

    @property
    def key(self) -> Key:
        """The key of an answer without calls."""
        return "signature", self.user_text, self.answers, "text"


def find_turn(messages: Iterable[Message]) -> TurnKey:
    """The position of the answer to these messages."""
    turn = TurnKey()
    for message in messages:
        turn = turn.after(message)
    return turn


def _describe(call: ToolCall) -> bytes:
    return digest(call.name, call.arguments)


def _describe_normalised(call: ToolCall) -> bytes:
    """A hash of a call that does not depend on how its arguments are formatted."""
    try:
        return digest(call.name, json.dumps(json.loads(call.arguments or "{}"), sort_keys=True))
    except (ValueError, RecursionError):
        return _describe(call)


def _describe_text(text: str) -> bytes:
    return digest(text.strip())


# -- storing: from an answer -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _OpenCall:
    id: str
    name: str
    thoughts: Thoughts
    fragments: list[str] = field(default_factory=list)


class ReasoningCollector:
    """Stores the signatures of one answer, from the events delivered to the client."""

    def __init__(self, store: OwnedStore, turn: TurnKey) -> None:
        self.store = store
        self.turn = turn
        self.reasoning: list[str] = []
        self.signed: list[tuple[Reasoning, int]] = []
        self.texts: list[str] = []
        self.calls: dict[int, _OpenCall] = {}

    def feed(self, events: list[Event]) -> list[Event]:
        """Store the signatures in these events; returns the same events."""
        self.observe(events)
        return events

    def observe(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case TextDelta(text=text):
                    self.texts.append(text)
                case ReasoningDelta(text=text):
                    self.reasoning.append(text)
                case ReasoningSigned(signature=signature, kind=kind):
                    self.signed.append((Reasoning("".join(self.reasoning), signature, kind), len(self.texts)))
                    self.reasoning.clear()
                case CallStarted(index=index, id=call_id, name=name):
                    self.calls[index] = _OpenCall(call_id, name, self.take_signed())
                case CallArguments(index=index, fragment=fragment) if index in self.calls:
                    self.calls[index].fragments.append(fragment)
                case CallEnded(index=index) if index in self.calls:
                    ended = self.calls.pop(index)
                    if ended.thoughts:
                        call = ToolCall(ended.id, ended.name, "".join(ended.fragments))
                        step = _describe(call), _describe_normalised(call)
                        self.keep(ended.thoughts, step, self.turn.keys_of(ended.id, index))
                case Finished():
                    self.keep(self.take_signed(), (_describe_text("".join(self.texts)),), [self.turn.key])

    def take_signed(self) -> Thoughts:
        """The signed reasoning that belongs to no step yet."""
        taken = tuple((thought, at < len(self.texts)) for thought, at in self.signed)
        self.signed.clear()
        self.reasoning.clear()
        return taken

    def keep(self, thoughts: Thoughts, step: tuple[bytes, ...], keys: Iterable[Key]) -> None:
        kept: Kept = (step, thoughts)
        size = sum(len(thought.text) + len(thought.signature) for thought, _ in thoughts)
        if thoughts:
            for key in keys:
                self.store.keep(key, kept, size)


# -- restoring: into the history ---------------------------------------------------------------------------------------


def restore(messages: Sequence[Message], store: OwnedStore) -> tuple[Message, ...]:
    """The messages with the signed reasoning that is stored for them."""
    turn, restored = TurnKey(), []
    for message in messages:
        restored.append(_restore(message, turn, store) if message.role == "assistant" else message)
        turn = turn.after(message)
    return tuple(restored)


def _restore(message: Message, turn: TurnKey, store: OwnedStore) -> Message:
    own = [part for part in message.parts if not isinstance(part, Reasoning)]
    steps: list[Part] = []
    start = number = 0  # of the step, which is a call with the text before it
    for part in own:
        if isinstance(part, ToolCall):
            steps[start:] = _surround(steps[start:], _find_call(store, part, turn.keys_of(part.id, number)))
            number += 1
        steps.append(part)
        start = len(steps) if isinstance(part, ToolCall) else start
    if not message.calls and message.text:
        kept: Kept | None = store.find(turn.key)
        if kept is not None and _describe_text(message.text) in kept[0]:
            steps = _surround(steps, kept[1])
    return replace(message, parts=tuple(steps)) if len(steps) > len(own) else message


def _surround(parts: Sequence[Part], thoughts: Thoughts) -> list[Part]:
    """The parts, between the reasoning that precedes the text and the reasoning that follows it."""
    early = [thought for thought, before_text in thoughts if before_text]
    return [*early, *parts, *(thought for thought, before_text in thoughts if not before_text)]


def _find_call(store: OwnedStore, call: ToolCall, keys: Iterable[Key]) -> Thoughts:
    for key in keys:
        kept: Kept | None = store.find(key)
        if kept is not None and (_describe(call) in kept[0] or _describe_normalised(call) in kept[0]):
            return kept[1]
    return ()
