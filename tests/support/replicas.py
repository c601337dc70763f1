"""Gateways that share a store, and a client of any wire that sends back no reasoning."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from support.stores import Place
from toolglot.config import Settings, load
from toolglot.core.conversation import Conversation, Message, Part, Text, Tool, ToolCall, ToolResult
from toolglot.core.events import CallArguments, CallStarted, Event, Failed, TextDelta
from toolglot.server.lifecycle import listening
from toolglot.wires import all_wires

TOOL = Tool("read", "Read a file", {"type": "object", "properties": {"path": {"type": "string"}}})
PROFILE = """
[[rule]]
name = "a server that wants reasoning back"
address = ["127.0.0.1"]
native = true
reasoning = "reasoning_content"
quirks = ["reasoning_returned"]
"""


def make_settings(place: Place, base_url: str, config: Path | None = None, **more: Any) -> Settings:
    given = {"port": 0, "state_dir": str(place.folder / "state"), "base_url": base_url, "mode": "native", **more}
    url = f"sqlite:{place.file}" if place.is_sqlite else place.url
    return load({"store_url": url} | given, {}, config)


def write_profile(folder: Path) -> str:
    path = folder / "profiles.toml"
    path.write_text(PROFILE, "utf-8")
    return str(path)


@asynccontextmanager
async def replica(settings: Settings) -> AsyncIterator[str]:
    async with listening(settings) as address:
        yield address


@dataclass
class Client:
    """A conversation over one wire. ``messages`` are what the client sends: text, calls and results, no reasoning."""

    wire: str
    stream: bool = False
    key: str = "k"
    messages: list[Message] = field(default_factory=list)

    def say(self, text: str) -> None:
        self.messages.append(Message("user", (Text(text),)))

    def encode(self) -> bytes:
        conversation = Conversation("m", tuple(self.messages), (TOOL,))
        return all_wires()[self.wire].encode_request(conversation, stream=self.stream, wants_usage=False)

    async def ask(self, address: str) -> tuple[int, list[Event]]:
        """Ask, and add the answer and the results of its calls to the conversation."""
        wire = all_wires()[self.wire]
        url = address + wire.base_path + wire.locate("m", stream=self.stream)
        headers = {**wire.authorize(self.key), "content-type": "application/json"}
        async with aiohttp.ClientSession() as session:
            async with session.post(url, data=self.encode(), headers=headers) as response:
                body = await response.read()
        if response.status != 200:
            return response.status, [Failed("refused", body.decode())]
        events = list(decode(self.wire, body, self.stream))
        self.add(events)
        return response.status, events

    def add(self, events: Iterable[Event]) -> None:
        text, calls = "", {}
        for event in events:
            match event:
                case TextDelta(text=more):
                    text += more
                case CallStarted(index=index, id=call_id, name=name):
                    calls[index] = [call_id, name, ""]
                case CallArguments(index=index, fragment=fragment):
                    calls[index][2] += fragment
        made = [ToolCall(one, name, json.dumps(json.loads(written), indent=1)) for one, name, written in calls.values()]
        parts: tuple[Part, ...] = (*((Text(text),) if text else ()), *made)
        self.messages.append(Message("assistant", parts))
        if made:
            results = tuple(ToolResult(call.id, call.name, (Text("empty"),)) for call in made)
            self.messages.append(Message("tool", results))

    @property
    def answer_text(self) -> str:
        return self.messages[-1].text


def decode(wire: str, body: bytes, stream: bool) -> Iterable[Event]:
    numbers = iter(range(1000))

    def new_id() -> str:
        return f"made_{next(numbers)}"

    if not stream:
        return all_wires()[wire].decode_response(body, new_id).events
    decoder = all_wires()[wire].open_decoder(new_id)
    return [*decoder.feed(body), *decoder.close()]
