"""A small client of a stateful web chat, written from the description of its protocol and from nothing else."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

PATIENCE = 20.0


def make_create(**changes: Any) -> dict[str, Any]:
    body = {
        "title": "New Chat",
        "models": ["qwen3.7-plus"],
        "chat_mode": "normal",
        "chat_type": "t2t",
        "timestamp": int(time.time() * 1000),
        "chatId": "",
        "project_id": "",
    }
    return body | changes


def make_completion(
    chat_id: str,
    text: str = "hello",
    parent: str | None = None,
    /,
    *,
    message: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """The body of a completion; ``message``, ``config`` and ``changes`` replace fields at each level."""
    now = int(time.time())
    features = {
        "thinking_enabled": False,
        "output_schema": "phase",
        "research_mode": "normal",
        "auto_thinking": False,
        "thinking_mode": "Fast",
        "auto_search": False,
    }
    sent = {
        "id": None,
        "fid": str(uuid.uuid4()),
        "parentId": parent,
        "parent_id": parent,
        "childrenIds": [str(uuid.uuid4())],
        "role": "user",
        "content": text,
        "user_action": "chat",
        "files": [],
        "timestamp": now,
        "models": ["qwen3.7-plus"],
        "model": "",
        "chat_type": "t2t",
        "sub_chat_type": "t2t",
        "feature_config": features | dict(config or {}),
        "extra": {"meta": {"subChatType": "t2t"}},
    }
    body = {
        "stream": True,
        "version": "2.1",
        "incremental_output": True,
        "chatId": chat_id,
        "parentId": parent or "",
        "chat_id": chat_id,
        "chat_mode": "normal",
        "model": "qwen3.7-plus",
        "parent_id": parent,
        "messages": [sent | dict(message or {})],
        "timestamp": now,
    }
    return body | changes


@dataclass(slots=True)
class ChatReply:
    """A response, read as the protocol says: the first answer only, the last usage, the new part of each array."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    data: bytes = b""
    reads: int = 0
    broken: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def error(self) -> dict[str, Any]:
        """The error of a body that is no stream, or of an event."""
        if not self.data.startswith(b"data:"):
            assert self.json["success"] is False
            return dict(self.json["data"])
        return next((dict(event["error"]) for event in self.events if "error" in event), {})

    @property
    def events(self) -> list[Any]:
        lines = [line.removesuffix("\r") for line in self.data.decode().split("\n")]
        payloads = [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]
        return [json.loads(payload) for payload in payloads if payload not in ("[DONE]", "{}")]

    @property
    def created(self) -> list[Any]:
        return [event["response.created"] for event in self.events if "response.created" in event]

    @property
    def response_id(self) -> str:
        return str(self.created[0]["response_id"])

    @property
    def own(self) -> list[Any]:
        """The events with a delta of the first answer."""
        mine = self.response_id
        return [event for event in self.events if "choices" in event and event.get("response_id", mine) == mine]

    @property
    def deltas(self) -> list[Any]:
        return [event["choices"][0]["delta"] for event in self.own]

    def phase(self, name: str) -> list[Any]:
        return [delta for delta in self.deltas if delta.get("phase", "answer") == name]

    @property
    def text(self) -> str:
        answers = [delta for delta in self.phase("answer") if delta["role"] == "assistant"]
        return "".join(delta["content"] for delta in answers)

    @property
    def is_finished(self) -> bool:
        return any(delta.get("status") == "finished" for delta in self.phase("answer")) or any(
            event["choices"][0].get("finish_reason") for event in self.own
        )

    @property
    def usage(self) -> list[Any]:
        return [event["usage"] for event in self.own if "usage" in event]


class ChatClient:
    """Asks a server, with a token unless ``headers`` say otherwise."""

    def __init__(self, address: str, headers: Mapping[str, str] | None = None, patience: float = PATIENCE) -> None:
        self._headers = {"authorization": "Bearer sim-token"} if headers is None else dict(headers)
        timeout = aiohttp.ClientTimeout(sock_read=patience)
        self.http = aiohttp.ClientSession(address, headers=self._headers, timeout=timeout)

    async def __aenter__(self) -> ChatClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.http.close()

    async def request(self, method: str, path: str, body: Any = None, **headers: str) -> ChatReply:
        reply = ChatReply()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            async with self.http.request(method, path, json=body, headers=sent) as response:
                reply.status, reply.headers = response.status, response.headers
                async for piece in response.content.iter_any():
                    reply.data += piece
                    reply.reads += 1
        except (aiohttp.ClientError, TimeoutError) as error:
            reply.broken = type(error).__name__
        return reply

    async def create(self, **changes: Any) -> str:
        reply = await self.request("POST", "/api/v2/chats/new", make_create(**changes))
        assert reply.json["success"], reply.data
        return str(reply.json["data"]["id"])

    async def complete(self, body: Mapping[str, Any], **headers: str) -> ChatReply:
        path = f"/api/v2/chat/completions?chat_id={body.get('chat_id', '')}"
        return await self.request("POST", path, body, **headers)

    async def ask(self, chat_id: str, text: str = "hello", parent: str | None = None, **changes: Any) -> ChatReply:
        return await self.complete(make_completion(chat_id, text, parent, **changes))

    async def stop(self, chat_id: str, response_id: str) -> ChatReply:
        body = {"chat_id": chat_id, "response_id": response_id}
        return await self.request("POST", "/api/v2/chat/completions/stop", body)
