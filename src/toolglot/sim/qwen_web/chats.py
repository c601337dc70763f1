"""The chats of the simulated service. Each is a tree of messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SEMANTICS = ("path", "whole_chat")


class SeenMessage(NamedTuple):
    """A message as the model sees it."""

    role: str
    text: str


@dataclass(slots=True)
class ChatMessage:
    """A node of the tree."""

    id: str
    role: str
    content: str
    parent: str | None
    timestamp: int
    children: list[str] = field(default_factory=list)

    @property
    def seen(self) -> SeenMessage:
        return SeenMessage(self.role, self.content)

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "role": self.role,
            "content": self.content,
            "parentId": self.parent,
            "childrenIds": list(self.children),
            "timestamp": self.timestamp,
        }


@dataclass(slots=True)
class Chat:
    """A chat. ``answering`` is the id of the answer in progress, ``locked_until`` when the lock of an abort ends."""

    id: str
    title: str
    models: tuple[str, ...]
    chat_type: str
    created: int
    messages: dict[str, ChatMessage] = field(default_factory=dict)
    answering: str | None = None
    locked_until: float = 0
    completions: int = 0

    def add(self, message: ChatMessage) -> ChatMessage:
        """Add a message below its parent, or as a root."""
        self.messages[message.id] = message
        if message.parent is not None:
            self.messages[message.parent].children.append(message.id)
        return message

    def path(self, message_id: str | None) -> list[ChatMessage]:
        """The messages from the root to this one."""
        found: list[ChatMessage] = []
        while message_id is not None:
            message = self.messages[message_id]
            found.append(message)
            message_id = message.parent
        return found[::-1]

    def list_seen(self, parent: str | None, semantics: str) -> Iterator[SeenMessage]:
        """What a model sees before a new message below ``parent``."""
        messages = self.path(parent) if semantics == "path" else self.messages.values()
        return (message.seen for message in messages)

    def is_busy(self, now: float) -> bool:
        return self.answering is not None or now < self.locked_until

    @property
    def updated(self) -> int:
        return max((message.timestamp for message in self.messages.values()), default=self.created)

    def summary(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "updated_at": self.updated,
            "created_at": self.created,
            "chat_type": self.chat_type,
        }

    def to_json(self) -> dict[str, Any]:
        messages = [message.to_json() for message in self.messages.values()]
        history = {"messages": {message["id"]: message for message in messages}}
        return self.summary() | {"models": list(self.models), "chat": {"history": history, "messages": messages}}
