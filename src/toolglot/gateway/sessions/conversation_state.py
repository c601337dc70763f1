"""What is kept of a conversation between its requests, in memory: its mode, its first system prompt, its last prompt.

*Strategy.* A conversation is recognised by the client's key, the id that the client gave its session (if any), the
model and the first user message. This needs no store and no answer that has ended, unlike the sessions of records; but
conversations of one client that begin alike are not distinguished, unless they have ids. So nothing here may matter for
correctness. The memory is bounded and belongs to one process: with several workers, a conversation that changes the
worker is new to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from toolglot.clients.session_ids import find_session_id
from toolglot.core.conversation import Conversation
from toolglot.core.identity import identify
from toolglot.gateway.sessions.ttl_store import OwnedStore, TtlStore

MEMORY_BYTES: Final = 32 << 20
MAX_PROMPT: Final = 4 << 20
"""Bytes of a prompt above which it is not compared with the next one."""

NO_MESSAGES: Final = Conversation("", ())


class ConversationMode(Struct, frozen=True):
    """How tools are passed on: native, or as text in a dialect."""

    native: bool
    dialect: str


class ConversationState(Struct, eq=False):
    """The state of one conversation. It is looked up when it is first needed. Afterwards, and once the request was
    sent, ``conversation`` is not needed: messages are not held while a response is open."""

    memory: TtlStore
    owner: bytes
    headers: Mapping[str, str] | None
    conversation: Conversation
    has_answers: bool = False
    own: OwnedStore | None = None

    def _open(self) -> OwnedStore:
        if self.own is None:
            conversation = self.conversation
            self.has_answers = any(message.role == "assistant" for message in conversation.messages)
            session = find_session_id(self.headers, conversation.extra)
            self.own = self.memory.open(self.owner.hex(), session, identify(conversation))
        return self.own

    def begin_mode(self, chosen: ConversationMode) -> ConversationMode:
        """The mode of this conversation: the one that its first request was sent in, or else the one chosen now. A
        request without any answer begins a conversation."""
        own = self._open()
        kept = own.find(("mode",)) if self.has_answers else None
        if isinstance(kept, ConversationMode):
            return kept
        self.set_mode(chosen)
        return chosen

    def set_mode(self, mode: ConversationMode) -> None:
        """From now on the conversation is in this mode."""
        self._open().keep(("mode",), mode, len(mode.dialect), durable=False)

    def find_system(self) -> Sequence[str] | None:
        """The texts of the first system prompt of this conversation."""
        own = self._open()
        kept = own.find(("system",)) if self.has_answers else None
        return kept if isinstance(kept, tuple) else None

    def set_system(self, texts: Sequence[str]) -> None:
        self._open().keep(("system",), tuple(texts), sum(map(len, texts)), durable=False)

    def compare_prompt(self, prompt: bytes) -> tuple[int, int] | None:
        """How many bytes of the last prompt begin this one, and the size of the last prompt; None if there is none. The
        last prompt is then this one."""
        own = self._open()
        last = own.find(("prompt",))
        if len(prompt) <= MAX_PROMPT:
            own.keep(("prompt",), prompt, len(prompt), durable=False)
        return (count_common(last, prompt), len(last)) if isinstance(last, bytes) and self.has_answers else None


def count_common(one: bytes, other: bytes) -> int:
    """The length of the longest common prefix."""
    if other.startswith(one):
        return len(one)
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
