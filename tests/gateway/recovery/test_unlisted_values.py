"""A value that the schema does not list: the feedback names the listed ones, and the model may answer in words."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web
from support.gateway import gateway, run
from support.rows import in_one_test

TOOL = {
    "type": "function",
    "function": {
        "name": "set_mode",
        "parameters": {
            "type": "object",
            "properties": {"mode": {"type": "string", "enum": ["eco", "boost"]}, "room": {"type": "string"}},
            "required": ["mode", "room"],
        },
    },
}
ASK = {"model": "sim", "messages": [{"role": "user", "content": "Set the hall to party mode."}], "tools": [TOOL]}
WORDS = "There is no party mode."


class Upstream:
    """Makes one native call, and answers in words afterwards."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self.requests: list[dict[str, Any]] = []

    @property
    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.answer)
        return app

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(await request.json())
        call = {"name": "set_mode", "arguments": json.dumps(self.arguments)}
        message: dict[str, Any] = {"role": "assistant", "content": WORDS}
        if len(self.requests) == 1:
            message = {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
        finish = "tool_calls" if len(self.requests) == 1 else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return web.json_response({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]})


@in_one_test(
    ("arguments", "forced"), [({"mode": "party", "room": "hall"}, False), ({"mode": "eco"}, True)], ids=["value", "key"]
)
def test_the_model_is_not_held_to_a_call_that_may_not_be_due(arguments: dict[str, Any], forced: bool) -> None:
    async def test() -> None:
        upstream = Upstream(arguments)
        async with gateway(app=upstream.app, mode="native", recovery_retries=1) as gate:
            answer = await gate.ask(ASK)
            assert answer.message["content"] == WORDS
            assert not answer.message.get("tool_calls")
        again = upstream.requests[1]
        assert (again.get("tool_choice", "auto") != "auto") is forced
        assert ("make no call" in again["messages"][-1]["content"]) is not forced

    run(test)
