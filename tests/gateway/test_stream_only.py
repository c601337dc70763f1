"""Upstreams that refuse requests which are not streamed: the gateway streams, and makes a whole answer of the stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.gateway import READ, gateway, run

PROFILES = """\
[[rule]]
name = "streams only"
address = ["127.0.0.1"]
native = true
quirks = ["stream_only"]
"""
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"filePath": "a"}'}}
CHUNKS: list[dict[str, Any]] = [
    {"delta": {"role": "assistant", "content": "I read."}, "finish_reason": None},
    {"delta": {"tool_calls": [CALL]}, "finish_reason": None},
    {"delta": {}, "finish_reason": "tool_calls"},
]


async def answer(request: web.Request) -> web.Response:
    body = await request.json()
    if not body.get("stream"):
        return web.json_response({"error": {"message": "This model only supports stream mode."}}, status=400)
    common = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "qwq-plus"}
    frames = [{**common, "choices": [{"index": 0, **chunk}]} for chunk in CHUNKS]
    if body.get("stream_options", {}).get("include_usage"):
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        frames.append({**common, "choices": [], "usage": usage})
    text = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"
    return web.Response(text=text, content_type="text/event-stream")


@pytest.mark.parametrize("tools", [[], [READ]], ids=["without_tools", "with_tools"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_whole_answer_is_made_of_a_stream(stream: bool, tools: list[Any], tmp_path: Path) -> None:
    profiles = tmp_path / "profiles.toml"
    profiles.write_text(PROFILES)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)

    async def test() -> None:
        async with gateway(app=app, mode="auto", profiles=str(profiles)) as gate:
            body: dict[str, Any] = {
                "model": "qwq-plus",
                "messages": [{"role": "user", "content": "Hi"}],
                "stream": stream,
            }
            answered = await gate.ask(body | ({"tools": tools} if tools else {}))
            assert answered.status == 200
            if stream:
                assert answered.joined[0] == "I read."
                return
            assert answered.message["content"] == "I read."
            [call] = answered.message["tool_calls"]
            assert json.loads(call["function"]["arguments"]) == {"filePath": "a"}
            assert answered.json["usage"]["total_tokens"] == 10

    run(test)
