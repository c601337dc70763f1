"""An upstream that thinks, and wants its reasoning back, as the vendors document it.

With thinking on, every answer has ``reasoning_content``. In a request with tools, every answer of the history has to
come back with its reasoning; else the request is a 400. Without tools, none has to.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

DEEPSEEK = "The `reasoning_content` in the thinking mode must be passed back to the API."
MOONSHOT = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
FORGED = "this is not the reasoning of this call"
STEPS = (("read", '{"path": "a.txt"}'), ("read", '{"path": "b.txt"}'))
ANSWER = "Both are empty."


@dataclass
class Thinker:
    """``refusal`` is the message of the 400. ``asked`` are the bodies, ``refused`` how many of them were refused."""

    refusal: str = DEEPSEEK
    is_strict: bool = True
    steps: tuple[tuple[str, str], ...] = STEPS
    asked: list[Any] = field(default_factory=list)
    refused: int = 0
    reasoning: dict[str, str] = field(default_factory=dict)
    unnamed: tuple[str, ...] = ()
    """Reasoning that is accepted whatever the id of the call is."""

    def make_app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.answer)
        return app

    def find_fault(self, body: dict[str, Any]) -> str:
        if not self.is_strict or not body.get("tools"):
            return ""
        for index, message in enumerate(body["messages"]):
            if message["role"] != "assistant":
                continue
            given = message.get("reasoning_content")
            if not given:
                return self.refusal.format(index=index)
            calls = message.get("tool_calls")
            if calls and given not in (self.reasoning.get(calls[0]["id"]), *self.unnamed):
                return FORGED
        return ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        if fault := self.find_fault(body):
            self.refused += 1
            error = {"message": fault, "type": "invalid_request_error", "param": None, "code": "invalid_request_error"}
            return web.json_response({"error": error}, status=400)
        last = max(at for at, message in enumerate(body["messages"]) if message["role"] == "user")
        results = sum(message["role"] == "tool" for message in body["messages"][last:])
        number = len(self.asked)
        message: dict[str, Any] = {"role": "assistant", "content": ANSWER, "reasoning_content": f"Thought {number}."}
        if results < len(self.steps):
            name, arguments = self.steps[results]
            call_id = f"call_{number:04}"
            call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
            message |= {"content": None, "tool_calls": [call]}
            self.reasoning[call_id] = message["reasoning_content"]
        finish = "tool_calls" if "tool_calls" in message else "stop"
        head = {"id": f"c{number}", "created": 1, "model": "thinker"}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return web.json_response({**head, "object": "chat.completion", "choices": [choice]})
        return await self.stream(request, {**head, "object": "chat.completion.chunk"}, message, finish)

    async def stream(
        self, request: web.Request, head: dict[str, Any], message: dict[str, Any], finish: str
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        thought = message["reasoning_content"]
        deltas: list[dict[str, Any]] = [
            {"role": "assistant", "reasoning_content": thought[:4]},
            {"reasoning_content": thought[4:]},
        ]
        for call in message.get("tool_calls", ()):
            deltas.append({"tool_calls": [{**call, "index": 0}]})
        if message["content"]:
            deltas += [{"content": message["content"][:5]}, {"content": message["content"][5:]}]
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        for choice in [*choices, {"index": 0, "delta": {}, "finish_reason": finish}]:
            await response.write(b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n")
            await asyncio.sleep(0)
        await response.write(b"data: [DONE]\n\n")
        return response
