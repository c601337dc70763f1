"""One request as a turn of a conversation: what recognises it, and what a stateful upstream has to be sent for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from toolglot.core.conversation import Conversation, Message, Part, Text, ToolCall
from toolglot.core.events import CallArguments, CallStarted, Event, Finished, Started, TextDelta
from toolglot.core.identity import hash_texts
from toolglot.gateway.sessions.chain import Chain, split_context

BYTES_PER_TOKEN = 4


class SessionTurn(Struct, frozen=True, kw_only=True):
    """What a request is recognised by. ``client_session`` is the id that the client sent, if any; ``prompt`` is the
    hash of its own system prompt. ``only_results``: it offers no tools, and only results follow the last answer."""

    owner: bytes
    client_session: str
    chain: Chain
    model: str
    upstream: str
    prompt: bytes = b""
    only_results: bool = False


@dataclass(slots=True, eq=False)
class ChatTurn:
    """A turn with a stateful upstream.

    ``account`` names the upstream, its account and the model: a chat is continued only within the same one.
    ``conversation`` is rendered as text and consists of system, user and assistant messages. ``answer`` collects what
    the client is sent. ``session`` is None if nothing is remembered between turns.
    """

    session: SessionTurn | None
    account: str
    conversation: Conversation
    may_retry: bool = True
    """The client has received nothing of the answer, so the upstream may be asked again."""
    answer: AnswerCollector = field(init=False)
    context: bytes = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.restart()
        system, _ = split_context(self.conversation.messages)
        prompt = self.session.prompt if self.session is not None else b""
        self.context = prompt + hash_texts(*(message.text for message in system))
        self.size = estimate_tokens(self.conversation.messages)

    def restart(self) -> None:
        """The upstream is asked again."""
        self.answer = AnswerCollector()

    @property
    def previous_key(self) -> bytes | None:
        """The key of the dialog up to its last answer; None if there is no answer, or nothing follows it."""
        if self.session is None:
            return None
        chain = self.session.chain
        at = chain.last_answer
        return None if at is None or at + 2 == len(chain.keys) else chain.keys[at + 1]

    def keeps(self, context: bytes) -> bool:
        """Whether this context of a chat is still in force. A client may send results without tools: it has not taken
        these away."""
        if self.session is None or not self.session.only_results:
            return context == self.context
        return len(context) == len(self.context) and context.startswith(self.session.prompt)

    @property
    def has_context(self) -> bool:
        """Whether there is a system prompt; tools are described in it."""
        system, _ = split_context(self.conversation.messages)
        return any(message.text.strip() for message in system)

    @property
    def tail(self) -> Sequence[Message]:
        """The messages after the last answer."""
        _, dialog = split_context(self.conversation.messages)
        last = max((at for at, message in enumerate(dialog) if message.role == "assistant"), default=-1)
        return dialog[last + 1 :]

    def make_tail(self, with_context: bool) -> Conversation:
        """The messages after the last answer, behind the system prompt if ``with_context``."""
        system, _ = split_context(self.conversation.messages)
        return replace(self.conversation, messages=(*(system if with_context else ()), *self.tail))


def estimate_tokens(messages: Iterable[Message]) -> int:
    return sum(len(message.text) for message in messages) // BYTES_PER_TOKEN + 1


class AnswerCollector:
    """Collects the answer of a turn.

    ``response_id`` is the upstream's id of the answer. ``is_intercepted``: the upstream took a call for one of its own
    tools and answered it itself, so that its chat holds messages the client does not know.
    """

    def __init__(self) -> None:
        self.response_id = ""
        self.is_intercepted = False
        self.is_finished = False
        self.texts: list[str] = []
        self.calls: dict[int, tuple[str, str, list[str]]] = {}

    def observe(self, events: Iterable[Event]) -> None:
        """Note what only the upstream's own events tell."""
        for event in events:
            if type(event) is Started:
                self.response_id = event.id
            elif type(event) is CallStarted:
                self.is_intercepted = True

    def feed(self, events: list[Event]) -> list[Event]:
        """Collect what the client is sent; returns the same events."""
        for event in events:
            match event:
                case TextDelta(text=text):
                    self.texts.append(text)
                case CallStarted(index=index, id=call_id, name=name):
                    self.calls[index] = (call_id, name, [])
                case CallArguments(index=index, fragment=fragment) if index in self.calls:
                    self.calls[index][2].append(fragment)
                case Finished():
                    self.is_finished = True
        return events

    @property
    def message(self) -> Message:
        """The answer as the client sends it back."""
        text = "".join(self.texts)
        parts: list[Part] = [Text(text)] if text else []
        parts += [ToolCall(call_id, name, "".join(pieces)) for call_id, name, pieces in self.calls.values()]
        return Message("assistant", tuple(parts))
