"""The examples of "Tool Calling Transformation Examples" that name the Qwen web chat, with the bytes that are printed there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from aiohttp import web
from support.chat_lab import Client, Lab
from support.gateway import gateway, run

from toolglot.sim.answer import Answer

READ = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Read a file",
        "parameters": {"type": "object", "properties": {"filePath": {"type": "string"}}, "required": ["filePath"]},
    },
}
BASH = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
PRINTED = b"""data: {"choices":[{"delta":{"content":"I'll "}}]}

data: {"choices":[{"delta":{"content":"read "}}]}

data: {"choices":[{"delta":{"content":"the "}}]}

data: {"choices":[{"delta":{"content":"file.\\n\\n<read"}}]}

data: {"choices":[{"delta":{"content":">\\n<file"}}]}

data: {"choices":[{"delta":{"content":"Path>/src/app.js</filePath>\\n</read>"}}]}

data: [DONE]

"""


def test_examples_direction_2_example_5_the_printed_stream() -> None:
    """The stream has neither phases nor a finished frame. The answer is the printed one but for ids and times, and
    for the pieces that one read of the upstream brings, which are joined."""

    async def create(request: web.Request) -> web.Response:
        return web.json_response({"success": True, "data": {"id": "uuid-123"}})

    async def complete(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for event in PRINTED.split(b"\n\n")[:-1]:
            await response.write(event + b"\n\n")
            await asyncio.sleep(0.02)
        return response

    async def stop(request: web.Request) -> web.Response:
        return web.json_response({"success": True})

    app = web.Application()
    app.router.add_post("/v1/api/v2/chats/new", create)
    app.router.add_post("/v1/api/v2/chat/completions", complete)
    app.router.add_post("/v1/api/v2/chat/completions/stop", stop)

    async def test() -> None:
        upstream = {"wire": "qwen_web", "accept_terms": True}
        async with gateway(app=app, upstream=upstream, api_key="token") as gate:
            asked = {"model": "qwen3-max", "messages": [{"role": "user", "content": "Go"}], "tools": [READ]}
            answer = await gate.ask(asked | {"stream": True})
        choices = [chunk["choices"][0] for chunk in answer.chunks]
        assert all(
            chunk["object"] == "chat.completion.chunk" and chunk["model"] == "qwen3-max" for chunk in answer.chunks
        )
        deltas = [choice["delta"] for choice in choices]
        assert deltas[:4] == [
            {"role": "assistant", "content": "I'll "},
            {"content": "read "},
            {"content": "the "},
            {"content": "file."},
        ]
        call, *pieces = [delta["tool_calls"][0] for delta in deltas[4:-1]]
        assert call.pop("id").startswith("call_")
        assert call == {"index": 0, "type": "function", "function": {"name": "read", "arguments": ""}}
        assert "".join(piece["function"]["arguments"] for piece in pieces) == '{"filePath":"/src/app.js"}'
        assert choices[-1] == {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
        assert [choice["finish_reason"] for choice in choices[:-1]] == [None] * (len(choices) - 1)
        assert answer.body.endswith(b"data: [DONE]\n\n")

    run(test)


def sent(lab: Lab) -> list[dict[str, Any]]:
    """The completions that the upstream got."""
    return [body for body in lab.simulation.record.bodies if isinstance(body, dict) and body.get("messages")]


def test_examples_cycle_1_read_file_execute_continue(tmp_path: Path) -> None:
    """As printed: the follow-up offers no tools. The chat takes one message, so the system prompt is its beginning."""
    lab = Lab(tmp_path)
    final = "The package.json file contains 2 dependencies: express version ^4.18.0 and axios version ^1.4.0."
    content = '{"dependencies":{"express":"^4.18.0","axios":"^1.4.0"}}'

    async def test() -> None:
        async with lab.open():
            call = "<read>\n<filePath>/home/user/package.json</filePath>\n</read>"
            lab.answers = [Answer(f"I'll read the package.json file.\n\n{call}"), Answer(final)]
            client = Client(lab, tools=[READ])
            client.messages = [{"role": "user", "content": "What's in the package.json file?"}]
            status, message = await client.post()
            [made] = message["tool_calls"]
            assert (status, message["content"]) == (200, "I'll read the package.json file.")
            assert made["function"] == {"name": "read", "arguments": '{"filePath":"/home/user/package.json"}'}
            client.messages += [
                {"role": "assistant", **message, "tool_calls": [{**made, "id": "call_1"}]},
                {"role": "tool", "tool_call_id": "call_1", "content": content},
            ]
            client.tools = []
            assert await client.post() == (200, {"content": final})
            first, second = sent(lab)
            assert first["parent_id"] is None and "tools" not in first
            text = first["messages"][0]["content"]
            assert "You have access to tools" in text and "## read\nDescription: Read a file\n" in text
            assert text.endswith("What's in the package.json file?")
            assert second["chat_id"] == first["chat_id"] and second["stream"] is True
            assert second["parent_id"] in {
                node.id for chat in lab.simulation.chats.values() for node in chat.messages.values()
            }
            [result] = second["messages"]
            assert (result["role"], result["content"]) == ("user", f"Tool Result from read:\n{content}")

    asyncio.run(asyncio.wait_for(test(), 60))


def test_examples_cycle_2_multi_turn_with_bash_command(tmp_path: Path) -> None:
    """As printed: no step but the first offers tools, and an assistant message has no content."""
    lab = Lab(tmp_path, stream=False)

    async def test() -> None:
        async with lab.open():
            call = "<bash>\n<command>npm install lodash</command>\n<description>Install lodash utility library</description>\n</bash>"
            final = "Successfully installed lodash version 4.17.21."
            lab.answers = [Answer(f"I'll install lodash using npm.\n\n{call}"), Answer(final)]
            client = Client(lab, tools=[BASH])
            client.messages = [{"role": "user", "content": "Install the lodash package"}]
            _, message = await client.post()
            [made] = message["tool_calls"]
            assert json.loads(made["function"]["arguments"]) == {
                "command": "npm install lodash",
                "description": "Install lodash utility library",
            }
            client.messages += [
                {"role": "assistant", "tool_calls": [{**made, "id": "call_5"}]},
                {"role": "tool", "tool_call_id": "call_5", "content": "added 1 package in 2.3s"},
            ]
            client.tools = []
            status, answer = await client.post()
            assert (status, answer["content"]) == (200, final)
            assert sent(lab)[-1]["messages"][0]["content"].endswith("Tool Result from bash:\nadded 1 package in 2.3s")

    asyncio.run(asyncio.wait_for(test(), 60))
