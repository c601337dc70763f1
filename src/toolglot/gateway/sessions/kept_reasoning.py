"""Reasoning that clients do not send back: kept with an answer, restored in the history.

Strategy. Some upstreams want the reasoning of earlier steps back, or its signatures; the wires of many clients have no
field for them, and many clients drop them. Reasoning belongs to the step that it precedes: a call, or the text of an
answer without calls. It is kept under that step. When the client sends the step again in its history, the reasoning is
inserted before it, unless the client has sent reasoning itself. A step is recognised by the id of the call or, for
clients without ids, by its position in the conversation (the last user message, and the number of answers since); in
both cases name and arguments must be the same (``core/identity.py``). A step that is not recognised is sent without
reasoning, and its wire decides what to send instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, field
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
from toolglot.core.identity import hash_call, hash_texts
from toolglot.gateway.sessions.kept_values import KeptReasoning, Thoughts
from toolglot.gateway.sessions.ttl_store import Key, OwnedStore

MAX_CHARS: Final = 1 << 19
RANDOM_ID: Final = re.compile(r"(?<![0-9A-Za-z])(?=[0-9]*+[A-Za-z])(?=[A-Za-z]*+[0-9])[0-9A-Za-z]{8,}+\Z")
"""The end of an id that only one call can have. Some models number the calls of each conversation instead."""
"""Reasoning of a step that is longer is not kept."""


class Keeping(Struct, frozen=True):
    """Which reasoning is kept: signed, unsigned. ``returned``: the upstream wants unsigned reasoning back; else it is
    kept in memory only."""

    signed: bool = True
    unsigned: bool = False
    returned: bool = False


KEEP_SIGNED: Final = Keeping()


class TurnKey(Struct, frozen=True):
    """The position of an answer in a conversation: a hash of the last user message, and the number of answers since."""

    user_text: bytes = b""
    answers: int = 0

    def after(self, message: Message) -> TurnKey:
        if message.role == "user":
            return TurnKey(hash_texts(self.user_text.hex(), message.text))
        return replace(self, answers=self.answers + 1) if message.role == "assistant" else self

    def keys_of(self, call_id: str, number: int) -> tuple[Key, ...]:
        """The keys of a call: its id, if no other conversation can have it, and its number within this answer."""
        here: Key = ("signature", self.user_text, self.answers, number)
        return (("signature", call_id), here) if RANDOM_ID.search(call_id) else (here,)

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


def _describe_call(call: ToolCall) -> bytes:
    return hash_call(call.name, call.arguments)


def _describe_text(text: str) -> bytes:
    return hash_texts(text.strip())


# -- storing: from an answer -------------------------------------------------------------------------------------------


class _OpenCall(Struct):
    id: str
    name: str
    thoughts: Thoughts
    fragments: list[str] = field(default_factory=list)


class ReasoningCollector:
    """Keeps the reasoning of one answer, from the events delivered to the client. The store is opened if there is
    some."""

    def __init__(self, open_store: Callable[[], OwnedStore], turn: TurnKey, keeping: Keeping = KEEP_SIGNED) -> None:
        self.open_store = open_store
        self.turn = turn
        self.keeping = keeping
        self.reasoning: list[str] = []
        self.reasoning_at = 0
        self.thoughts: list[tuple[Reasoning, int]] = []
        self.texts: list[str] = []
        self.calls: dict[int, _OpenCall] = {}

    def feed(self, events: list[Event]) -> list[Event]:
        """Keep the reasoning in these events; returns the same events (hot path)."""
        for event in events:
            if type(event) is TextDelta:
                self.texts.append(event.text)
            elif type(event) is CallArguments:
                if event.index in self.calls:
                    self.calls[event.index].fragments.append(event.fragment)
            elif type(event) is ReasoningDelta:
                self.reasoning.append(event.text)
                self.reasoning_at = len(self.texts)
            else:
                self.observe(event)
        return events

    def observe(self, event: Event) -> None:
        match event:
            case ReasoningSigned(signature=signature, kind=kind) if self.keeping.signed:
                self.thoughts.append((Reasoning("".join(self.reasoning), signature, kind), len(self.texts)))
                self.reasoning.clear()
            case CallStarted(index=index, id=call_id, name=name):
                self.calls[index] = _OpenCall(call_id, name, self.take_thoughts())
            case CallEnded(index=index) if index in self.calls:
                ended = self.calls.pop(index)
                if ended.thoughts:
                    call = ToolCall(ended.id, ended.name, "".join(ended.fragments))
                    self.keep(ended.thoughts, _describe_call(call), self.turn.keys_of(ended.id, index))
            case Finished():
                if thoughts := self.take_thoughts():
                    self.keep(thoughts, _describe_text("".join(self.texts)), [self.turn.key])

    def take_thoughts(self) -> Thoughts:
        """The reasoning that belongs to no step yet."""
        if not (self.reasoning or self.thoughts):
            return ()
        if self.reasoning and self.keeping.unsigned:
            self.thoughts.append((Reasoning("".join(self.reasoning)), self.reasoning_at))
        taken = tuple((thought, at < len(self.texts)) for thought, at in self.thoughts)
        self.thoughts.clear()
        self.reasoning.clear()
        return taken

    def keep(self, thoughts: Thoughts, step: bytes, keys: Iterable[Key]) -> None:
        size = sum(len(thought.text) + len(thought.signature) for thought, _ in thoughts)
        if size > MAX_CHARS:
            return
        store = self.open_store()
        durable = self.keeping.returned or any(thought.signature for thought, _ in thoughts)
        for key in keys:
            store.keep(key, KeptReasoning(step, thoughts), size, durable=durable)


# -- restoring: into the history ---------------------------------------------------------------------------------------


def restore(messages: Sequence[Message], store: OwnedStore, keeping: Keeping = KEEP_SIGNED) -> tuple[Message, ...]:
    """The messages with the reasoning that is kept for them; equal ones if there is none."""
    turn, restored = TurnKey(), []
    for message in messages:
        restored.append(_restore(message, turn, store, keeping) if message.role == "assistant" else message)
        turn = turn.after(message)
    return tuple(restored)


def _restore(message: Message, turn: TurnKey, store: OwnedStore, keeping: Keeping) -> Message:
    has_reasoning = any(isinstance(part, Reasoning) and part.text for part in message.parts)
    if has_reasoning and not keeping.signed:
        return message
    own = [part for part in message.parts if not isinstance(part, Reasoning)]
    find = partial(_find, store, keeping.returned)
    steps: list[Part] = []
    start = number = 0  # of the step, which is a call with the text before it
    for part in own:
        if isinstance(part, ToolCall):
            kept = find(turn.keys_of(part.id, number), partial(_describe_call, part))
            steps[start:] = _surround(steps[start:], kept, has_reasoning)
            number += 1
        steps.append(part)
        start = len(steps) if isinstance(part, ToolCall) else start
    if not message.calls and message.text:
        steps = _surround(steps, find([turn.key], partial(_describe_text, message.text)), has_reasoning)
    return replace(message, parts=tuple(steps)) if len(steps) > len(own) else message


def _surround(parts: Sequence[Part], thoughts: Thoughts, has_reasoning: bool) -> list[Part]:
    """The parts, between the reasoning that precedes the text and the reasoning that follows it. Without signatures,
    the client's own reasoning is preferred."""
    if has_reasoning and not any(thought.signature for thought, _ in thoughts):
        return list(parts)
    early = [thought for thought, before_text in thoughts if before_text]
    return [*early, *parts, *(thought for thought, before_text in thoughts if not before_text)]


def _find(store: OwnedStore, durable: bool, keys: Iterable[Key], describe: Callable[[], bytes]) -> Thoughts:
    """The reasoning of a step, if it is the same step."""
    for key in keys:
        kept = store.find(key, durable=durable)
        if isinstance(kept, KeptReasoning) and kept.step == describe():
            return kept.thoughts
    return ()
