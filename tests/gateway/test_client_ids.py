"""Ids of what an upstream stores: one client cannot open with them what another one was given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.gateway import Answer, Gate, gateway, run

from toolglot.gateway.sessions.client_state import ClientState
from toolglot.gateway.sessions.kept_values import StoredUpstream
from toolglot.gateway.sessions.ttl_store import SECONDS, TtlStore
from toolglot.wires import client_wires

KEYS = ("sk-of-client-a-0123456789", "sk-of-client-b-0123456789")
KEYED: dict[str, Any] = {"client_keys": ",".join(KEYS)}
TOOL = {
    "type": "function",
    "name": "read",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}


MADE = {
    "type": "bash_code_execution_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {
        "type": "bash_code_execution_result",
        "stdout": "",
        "stderr": "",
        "return_code": 0,
        "content": [{"type": "bash_code_execution_output", "file_id": "file_1"}],
    },
}


class StatefulUpstream:
    """Stores responses, as OpenAI does, and knows no clients. ``bodies`` are the requests that reached it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.stored: dict[str, str] = {}
        self.app = web.Application()
        self.app.router.add_post("/v1/responses", self.respond)
        self.app.router.add_post("/v1/messages", self.send_message)
        self.app.router.add_post("/v1/chat/completions", self.complete)
        self.app.router.add_post("/v1beta/models/{rest:.+}", self.generate)
        self.app.router.add_post("/v1/models/{rest:.+}", self.generate)

    async def read(self, request: web.Request) -> Any:
        self.bodies.append(await request.read())
        return json.loads(self.bodies[-1])

    async def respond(self, request: web.Request) -> web.StreamResponse:
        asked = await self.read(request)
        number, opened = len(self.stored) // 2, self.stored.get(asked.get("previous_response_id"), "nothing")
        given, item = f"resp_{number}", f"msg_{number}"
        self.stored[given] = self.stored[item] = f"a secret of {given}"
        part = {"type": "output_text", "text": f"opened {opened}", "annotations": []}
        message = {"type": "message", "id": item, "role": "assistant", "status": "completed", "content": [part]}
        code = {"type": "code_interpreter_call", "id": f"ci_{number}", "container_id": f"cntr_{number}", "code": "1"}
        summary = [{"type": "summary_text", "text": "Hm."}]
        thought = {"type": "reasoning", "id": f"rs_{number}", "summary": summary}
        response = {
            "id": given,
            "object": "response",
            "status": "completed",
            "model": "m",
            "output": [message, code, {"type": "image_generation_call", "id": f"ig_{number}"}, thought],
            "store": asked.get("store") is not False,
            "usage": None,
        }
        if not asked.get("stream"):
            return web.json_response(response)
        begun = {**response, "status": "in_progress", "output": []}
        at: dict[str, Any] = {"output_index": 0, "item_id": item, "content_index": 0}
        return await stream(
            request,
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}},
            {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
            {"type": "response.output_text.delta", **at, "delta": part["text"]},
            {"type": "response.output_text.done", **at, "text": part["text"]},
            {"type": "response.content_part.done", **at, "part": part},
            {"type": "response.output_item.done", "output_index": 0, "item": message},
            {"type": "response.completed", "response": response},
        )

    async def send_message(self, request: web.Request) -> web.StreamResponse:
        asked = await self.read(request)
        container = {"id": "container_1", "expires_at": "2030-01-01T00:00:00Z"}
        message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
        message |= {"stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        text = {"type": "text", "text": "Done."}
        if not asked.get("stream"):
            ended = {"content": [text, MADE], "stop_reason": "end_turn", "container": container}
            return web.json_response({**message, **ended})
        ended = {"stop_reason": "end_turn", "container": container}
        return await stream(
            request,
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": MADE},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        )

    async def complete(self, request: web.Request) -> web.StreamResponse:
        await self.read(request)
        message = {"role": "assistant", "content": "Done."}
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async def generate(self, request: web.Request) -> web.StreamResponse:
        await self.read(request)
        content = {"role": "model", "parts": [{"text": "Done."}]}
        return web.json_response({"candidates": [{"content": content, "finishReason": "STOP"}]})


async def stream(request: web.Request, *events: Mapping[str, Any]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for event in events:
        await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
    return response


PATHS = {
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/m:generateContent",
}


def open_gateway(upstream: StatefulUpstream, wire: str = "openai_responses", **arguments: Any) -> Any:
    settings = {**KEYED, "mode": "native", **arguments}
    return gateway(app=upstream.app, upstream={"wire": wire}, **settings)


async def ask(gate: Gate, key: int, body: Any, wire: str = "openai_responses") -> Answer:
    sent = body if isinstance(body, bytes) else {"model": "m", **body}
    return await gate.ask(sent, PATHS[wire], authorization=f"Bearer {KEYS[key]}")


async def respond(gate: Gate, key: int, **fields: Any) -> Answer:
    return await ask(gate, key, {"input": "hello", **fields})


def is_refused(answer: Answer, upstream: StatefulUpstream, given: str) -> bool:
    """Whether the client got an error in its own wire, and the upstream nothing."""
    assert answer.status == 400, answer.body
    assert "not known here" in json.dumps(answer.json)
    return not any(given.encode() in body for body in upstream.bodies)


# -- responses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tools", [[], [TOOL]], ids=["relay", "native"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_response_of_another_key_is_not_opened(streamed: bool, tools: list[Any]) -> None:
    async def test() -> None:
        upstream = StatefulUpstream()
        async with open_gateway(upstream) as gate:
            lane: dict[str, Any] = {"stream": streamed, **({"tools": tools} if tools else {})}
            assert (await respond(gate, 0, **lane)).status == 200
            answers = [
                await respond(gate, 1, **lane, previous_response_id=given) for given in ("resp_0", "resp_7", "msg_0")
            ]
            assert all(is_refused(answer, upstream, "previous_response_id") for answer in answers)
            texts = {answer.body.replace(b"resp_7", b"resp_0").replace(b"msg_0", b"resp_0") for answer in answers}
            assert len(texts) == 1, "nothing says whether it exists"
            own = await respond(gate, 0, **lane, previous_response_id="resp_0")
            assert own.status == 200 and b"opened a secret of resp_0" in own.body
            again = await respond(gate, 0, **lane, previous_response_id="resp_1")
            assert b"opened a secret of resp_1" in again.body

    run(test)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "item_reference", "id": "msg_0"},
        {"id": "msg_0"},
        {"type": None, "id": "msg_0"},
        {"Type": "item_reference", "ID": "msg_0"},
    ],
)
def test_an_item_of_another_key_is_not_opened(item: dict[str, Any]) -> None:
    async def test() -> None:
        upstream = StatefulUpstream()
        async with open_gateway(upstream) as gate:
            await respond(gate, 0)
            message = {"role": "user", "content": "hello"}
            refused = await respond(gate, 1, input=[item, message])
            assert is_refused(refused, upstream, "msg_0")
            present = {"type": "message", "id": "msg_0", "role": "assistant", "content": "mine"}
            if item.get("type"):
                assert is_refused(await respond(gate, 1, input=[present, item, message]), upstream, "msg_0")
            assert (await respond(gate, 0, input=[item, message])).status == 200
            assert (await respond(gate, 1, input=[present, message])).status == 200, "the id of an item is no reference"

    run(test)


@pytest.mark.parametrize(
    "field",
    [
        '"previous\\u005fresponse_id": "resp_0"',
        '"\\u0070revious_response_id": "resp_0"',
        '"Previous_Response_Id": "resp_0"',
        '"previous_response_id" : "resp_0", "previous_response_id": null',
        '"previous_response_id": null, "previous_response_id": "resp_0"',
        '"previous_response_id": "resp_0", "previous_response_id": ""',
        '"previous_response_id": {"id": "resp_0"}',
        '"previous_response_id": ["resp_0"]',
        '"previous_response_id": "resp\\u005f0"',
        '"PREVIOUS_RESPONSE_ID": "resp_0", "previous_response_id": null',
        '"conversation": "resp_0"',
        '"conversation": {"id": "resp_0"}',
    ],
)
def test_no_spelling_passes(field: str) -> None:
    async def test() -> None:
        upstream = StatefulUpstream()
        async with open_gateway(upstream) as gate:
            await respond(gate, 0)
            answer = await ask(gate, 1, f'{{"model": "m", "input": "hello", {field}}}'.encode())
            assert answer.status in (200, 400)
            assert b"secret" not in answer.body
            assert not any(b"resp_0" in body or b"resp\\u005f0" in body for body in upstream.bodies)

    run(test)


def test_ids_belong_to_their_key_after_a_restart_and_at_another_gateway(tmp_path: Path) -> None:
    async def test() -> None:
        upstream = StatefulUpstream()
        store: dict[str, Any] = {"state_dir": str(tmp_path), "workers": 2}  # the end waits until ids are stored
        async with open_gateway(upstream, **store) as one, open_gateway(upstream, **store) as other:
            for number, streamed in enumerate((False, True)):
                assert (await respond(one, 0, stream=streamed)).status == 200
                given = f"resp_{2 * number}"
                own = await respond(other, 0, previous_response_id=given)
                assert own.status == 200, own.body
                assert is_refused(await respond(other, 1, previous_response_id=given), upstream, f"{given}-")
        async with open_gateway(upstream, **store) as gate:
            assert (await respond(gate, 0, previous_response_id="resp_0")).status == 200
            assert (await respond(gate, 1, previous_response_id="resp_0")).status == 400

    run(test)


def test_a_response_that_passed_whole_and_is_not_stored_upstream_is_kept() -> None:
    """The gateway stands in for the upstream, whether the answer was streamed or not."""

    async def test() -> None:
        upstream = StatefulUpstream()

        async def forget(request: web.Request, handler: Any) -> Any:
            response = await handler(request)
            if isinstance(response, web.Response):
                response.text = (response.text or "").replace('"store": true', '"store": false')
            return response

        upstream.app.middlewares.append(web.middleware(forget))
        async with open_gateway(upstream) as gate:
            assert (await respond(gate, 0)).json["store"] is False
            assert (await respond(gate, 0, previous_response_id="resp_0")).status == 200
            assert b"previous_response_id" not in upstream.bodies[-1] and b"opened nothing" in upstream.bodies[-1]
            assert (await respond(gate, 1, previous_response_id="resp_0")).status == 400

    run(test)


def test_ids_pass_without_client_keys_and_on_demand() -> None:
    async def test() -> None:
        for arguments in ({"client_keys": ""}, {"unknown_ids": "pass"}):
            upstream = StatefulUpstream()
            async with open_gateway(upstream, **arguments) as gate:
                await respond(gate, 0)
                assert b"secret" in (await respond(gate, 1, previous_response_id="resp_0")).body
                assert (await respond(gate, 1, conversation="conv_of_another_program")).status == 200

    run(test)


@pytest.mark.parametrize(
    ("wire", "fields"),
    [
        ("openai_responses", '"input":[ {"role":"user","content":"TEXT"}]'),
        ("openai_chat", '"messages":[ {"role":"user","content":"TEXT"}]'),
        ("anthropic_messages", '"max_tokens" : 9,"messages":[ {"role":"user","content":"TEXT"}]'),
        ("gemini", '"contents":[ {"parts" :[{"text":"TEXT"}]}]'),
    ],
)
def test_bodies_without_ids_pass_as_they_are(wire: str, fields: str) -> None:
    async def test() -> None:
        upstream = StatefulUpstream()
        async with open_gateway(upstream, wire) as gate:
            text = 'previous_response_id, {\\"file_id\\": 1, \\"fileUri\\":1, \\"container\\": \\u00e9\\u001b}'
            body = f'{{"model" : "m",{fields.replace("TEXT", text)},"x":1.0}}'.encode()
            assert (await ask(gate, 0, body, wire)).status == 200
            assert upstream.bodies == [body]

    run(test)


# -- other ids and wires -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_containers_belong_to_their_key(streamed: bool) -> None:
    async def test() -> None:
        upstream = StatefulUpstream()
        body = {"max_tokens": 9, "messages": [{"role": "user", "content": "hello"}], "stream": streamed}
        async with open_gateway(upstream, "anthropic_messages") as gate:
            assert (await ask(gate, 0, body, "anthropic_messages")).status == 200
            for container in ("container_1", {"id": "container_1", "skills": []}):
                refused = await ask(gate, 1, {**body, "container": container}, "anthropic_messages")
                assert is_refused(refused, upstream, "container_1") and refused.json["type"] == "error"
            assert (await ask(gate, 0, {**body, "container": "container_1"}, "anthropic_messages")).status == 200
        upstream = StatefulUpstream()
        async with open_gateway(upstream) as gate:
            assert (await respond(gate, 0, stream=streamed, store=False)).status == 200
            tools = [{"type": "code_interpreter", "container": "cntr_0"}]
            assert is_refused(await respond(gate, 1, tools=tools), upstream, "cntr_0")
            assert (await respond(gate, 0, tools=tools)).status == 200

    run(test)


def vary(wire: str, body: dict[str, Any], variants: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Requests of a wire that differ in some fields."""
    return [(wire, body | fields) for fields in variants]


USER = {"role": "user", "content": "hello"}
FOREIGN: list[tuple[str, dict[str, Any]]] = [
    ("openai_responses", {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "ID"}]}]}),
    ("openai_responses", {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "ID"}]}]}),
    ("openai_responses", {"input": "x", "tools": [{"type": "file_search", "vector_store_ids": ["a", "ID"]}]}),
    (
        "openai_responses",
        {"input": "x", "tools": [{"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["ID"]}}]},
    ),
    (
        "anthropic_messages",
        {
            "messages": [
                {"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "ID"}}]}
            ]
        },
    ),
    (
        "anthropic_messages",
        {"messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "ID"}]}]},
    ),
    ("openai_chat", {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "ID"}}]}]}),
    ("openai_chat", {"messages": [USER, {"role": "assistant", "audio": {"id": "ID"}}, USER]}),
    ("openai_chat", {"messages": [USER], "previous_response_id": "ID"}),
    ("gemini", {"contents": [{"parts": [{"text": "x"}]}], "cachedContent": "cachedContents/ID"}),
    ("gemini", {"contents": [{"parts": [{"text": "x"}]}], "cached_content": "cachedContents/ID"}),
    ("gemini", {"contents": [{"parts": [{"text": "x"}, {"fileData": {"fileUri": "files/ID"}}]}]}),
    (
        "gemini",
        {
            "contents": [
                {
                    "parts": [
                        {"file_data": {"file_uri": "https://generativelanguage.googleapis.com/v1beta/files/ID"}},
                        {"text": "x"},
                    ]
                }
            ]
        },
    ),
]
SHELL: dict[str, Any] = {"type": "container_reference", "container_id": "ID"}
FOREIGN += [
    ("openai_responses", {"input": [USER, item]})
    for item in [
        {"type": "image_generation_call", "id": "ID"},
        {"type": "image_generation_call", "id": "ID", "call_id": "x", "status": "completed"},
        {"type": "reasoning", "id": "ID", "summary": []},
        {"type": "reasoning", "id": "ID", "summary": [], "encrypted_content": None},
        {"type": "web_search_call", "id": "ID", "status": "completed"},
        {"type": "file_search_call", "id": "ID", "queries": ["x"], "results": None},
        {"type": "function_call", "id": "ID", "call_id": "call_1", "name": "read"},
        {"type": "message", "id": "ID", "role": "assistant"},
        {"type": "item_reference", "": "x", "id": "ID"},
        {"type": "message", "Type": "item_reference", "role": "user", "content": "x", "id": "ID"},
        {"type": "message", "role": "user", "content": "x", "id": "own", "ID": "ID", "Content": None},
        {"type": "code_interpreter_call", "container_id": "ID", "code": "1"},
        {"type": "shell_call", "call_id": "1", "action": {"commands": ["ls"]}, "environment": SHELL},
        {"type": "computer_call_output", "call_id": "1", "output": {"type": "computer_screenshot", "file_id": "ID"}},
        {"type": "mcp_approval_response", "approval_request_id": "ID", "approve": True},
    ]
]
FOREIGN += vary(
    "openai_responses",
    {"input": "x"},
    [
        {"tools": [{"type": "shell", "environment": SHELL}]},
        {"tools": [{"type": "shell", "environment": {"type": "container_auto", "file_ids": ["ID"]}}]},
        {"prompt": {"id": "pmpt_1", "variables": {"file": {"type": "input_file", "file_id": "ID"}}}},
        {"conversation": {"id": "", "ID": "ID"}},
        {"extra_body": {"Previous_ResponseId": "ID"}},
    ],
)
CONTENT: dict[str, Any] = {
    "type": "content",
    "content": [{"type": "image", "source": {"type": "file", "file_id": "ID"}}],
}
FOREIGN += vary(
    "anthropic_messages",
    {"messages": [USER]},
    [
        {"container": {"id": "", "ID": "ID"}},
        {"container": {"ID": "ID"}},
        {"system": [{"type": "text", "text": "x", "source": {"type": "file", "file_id": "ID"}}]},
        {"messages": [{"role": "user", "content": [{"type": "document", "source": CONTENT}]}]},
        {
            "messages": [
                USER,
                {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "run", "input": {}}]},
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_1",
                            "content": [{"type": "document", "source": CONTENT}],
                        }
                    ],
                },
            ]
        },
    ],
)
PARTS = [{"parts": [{"text": "x"}]}]
FOREIGN += vary(
    "gemini",
    {"contents": PARTS},
    [
        {"systemInstruction": {"parts": [{"text": "x"}, {"fileData": {"fileUri": "files/ID"}}]}},
        {"system_instruction": {"parts": [{"text": "x"}, {"file_data": {"file_uri": "files/ID"}}]}},
        {"tools": [{"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/ID"]}}]},
        {"tools": [{"file_search": {"file_search_store_names": ["fileSearchStores/ID"]}}]},
        *(
            {"contents": [{"parts": [{"text": "x"}, {"fileData": {"fileUri": f"{link}/v1beta/files/ID"}}]}]}
            for link in (
                "https://generativelanguag%65.googleapis.com",
                "HTTPS://GenerativeLanguage.googleapis.com",
                "https://generative\u00adlanguage.googleapis.com",
                "https://\uff47enerativelanguage.googleapis.com",
                "gs://bucket",
            )
        ),
    ],
)
FOREIGN += vary(
    "openai_chat",
    {"messages": [USER]},
    [
        {"messages": [{"role": "user", "content": [{"type": "file", "file_id": "ID"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"File_ID": "ID"}}]}]},
        {"messages": [USER, {"role": "assistant", "content": "x", "audio": {"id": "", "ID": "ID"}}, USER]},
        {"tools": [{"type": "file_search", "vector_store_ids": ["ID"]}]},
        {"tool_resources": {"file_search": {"vector_store_ids": ["ID"]}}},
        {"attachments": [{"file_id": "ID", "tools": []}]},
        {"extra_body": {"conversation": "ID"}},
    ],
)
CALL = {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {"container": "web", "file_id": "7", "source": {}}}
OWN: list[tuple[str, dict[str, Any]]] = [
    (
        "anthropic_messages",
        {
            "messages": [
                USER,
                {"role": "assistant", "content": [CALL]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]},
            ],
            "tools": [
                {"name": "run", "input_schema": {"type": "object", "properties": {"container": {"type": "string"}}}}
            ],
        },
    ),
    (
        "openai_responses",
        {"input": "x", "tools": [{**TOOL, "parameters": {"type": "object", "properties": {"conversation": {}}}}]},
    ),
    ("openai_responses", {"input": [{"role": "user", "content": '{"file_id": "file-1"}'}], "prompt": {"id": "pmpt_1"}}),
    (
        "gemini",
        {"contents": [{"parts": [{"text": "x"}, {"fileData": {"fileUri": "https://example.com/files/a.pdf"}}]}]},
    ),
]
SCHEMA = {
    "type": "object",
    "properties": {"file_id": {"type": "string", "default": "x"}, "container": {"id": "x"}},
    "dependentRequired": {"container": ["file_id"]},
}
WHOLE: list[dict[str, Any]] = [
    {"type": "message", "id": "msg_9", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
    {"id": "msg_8", "role": "user", "content": "x"},
    {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "x"},
    {"type": "function_call", "id": "fc_9", "call_id": "call_1", "name": "read", "arguments": '{"file_id": "x"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": '{"container": "x"}'},
    {"type": "mcp_call", "id": "mcp_9", "name": "x", "server_label": "x", "arguments": "{}", "output": "x"},
    {"type": "local_shell_call", "id": "ls_9", "call_id": "call_2", "action": {"env": {"CONTAINER": "x"}}},
    {"type": "local_shell_call_output", "id": "call_2", "output": "x"},
]
OWN += [("openai_responses", {"input": [USER, *WHOLE[: at + 1]]}) for at in (0, 1, 2, 4, 5, 7)]
OWN += vary(
    "openai_responses",
    {"input": "x"},
    [
        {"prompt": {"id": "pmpt_1", "variables": {"container": "x", "conversation": "x"}}},
        {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]},
        {"metadata": {"conversation": "x"}, "previous_response_id": None, "conversation": None},
        {"tools": [{**TOOL, "parameters": SCHEMA}]},
        {"text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://example.com/a.png"}]}]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,eA=="}]}]},
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_data": "data:x", "filename": "a"}]}]},
    ],
)
IMAGE = {"type": "base64", "media_type": "image/png", "data": "eA=="}
OWN += vary(
    "anthropic_messages",
    {"messages": [USER]},
    [
        {"metadata": {"user_id": "x"}, "container": None},
        {"container": {"skills": [{"type": "anthropic", "skill_id": "pptx"}]}},
        {"tools": [{"name": "run", "input_schema": SCHEMA, "input_examples": [{"container": "x", "file_id": "x"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "image", "source": IMAGE}]}]},
        {
            "messages": [
                {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://a/b"}}]}
            ]
        },
        {"system": [{"type": "text", "text": '{"file_id": "x"}'}]},
    ],
)
OWN += vary(
    "gemini",
    {"contents": PARTS},
    [
        {"tools": [{"functionDeclarations": [{"name": "run", "parametersJsonSchema": SCHEMA}]}]},
        {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
        {"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "eA=="}}]}]},
        {"contents": [{"parts": [{"fileData": {"fileUri": "https://www.youtube.com/watch?v=a%20b"}}]}]},
        {
            "contents": [
                *PARTS,
                {"role": "model", "parts": [{"functionCall": {"name": "run", "args": {"file_uri": "x"}}}]},
                {"parts": [{"functionResponse": {"name": "run", "response": {"container": "x", "fileIds": ["x"]}}}]},
            ]
        },
    ],
)
LINK = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
OWN += vary(
    "openai_chat",
    {"messages": [USER]},
    [
        {"messages": [{"role": "user", "content": [LINK, {"type": "text", "text": '{"conversation": "x"}'}]}]},
        {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}},
        {"messages": [{"role": "user", "content": [{"type": "audio", "audio": "UklGRg=="}]}]},
        {"tools": [{"type": "function", "function": {"name": "run", "parameters": SCHEMA}}]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}},
        {"metadata": {"container": "x"}, "user": "x"},
        {
            "messages": [
                USER,
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": "1", "type": "function", "function": {"name": "x", "arguments": '{"file_id": "x"}'}}
                    ],
                },
                {"role": "tool", "tool_call_id": "1", "content": '{"container": "x"}'},
            ]
        },
    ],
)
DUPLICATES = [
    (
        "openai_responses",
        '{"model": "m", "input": [{"type": "item_reference", "type": "message", "role": "user", "content": "x",'
        ' "id": "ID", "id": null}]}',
    ),
    (
        "openai_responses",
        '{"model": "m", "input": [{"type": "image_generation_call", "id": "ID"}], "input": "x"}',
    ),
    (
        "anthropic_messages",
        '{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "container_upload",'
        ' "file_id": "ID", "type": "text", "file_\\u0069d": null, "text": "x"}]}]}',
    ),
    (
        "gemini",
        '{"contents": [{"parts": [{"fileData": {"fileUri": "files/ID"}}]}], "contents": [{"parts": [{"text": "x"}]}]}',
    ),
    (
        "gemini",
        '{"cached\\u0043ontent": "ID", "cachedContent": null, "contents": [{"parts": [{"text": "x"}]}]}',
    ),
    (
        "openai_chat",
        '{"model": "m", "messages": [{"role": "user", "content": [{"file_id": "ID"}], "content": "x"}]}',
    ),
    ("openai_chat", '{"model": "m", "messages": [{"role": "user", "content": "x"}], "conver\u017fation": "ID"}'),
]


@pytest.mark.parametrize(("wire", "body"), FOREIGN)
def test_what_was_not_given_to_a_key_is_refused(wire: str, body: dict[str, Any]) -> None:
    async def test() -> None:
        upstream = StatefulUpstream()
        async with open_gateway(upstream, wire) as gate:
            assert is_refused(await ask(gate, 0, {"max_tokens": 9, **body}, wire), upstream, "ID")
        async with open_gateway(upstream, wire, client_keys="") as gate:
            assert (await ask(gate, 0, {"max_tokens": 9, **body}, wire)).status == 200

    run(test)


@pytest.mark.parametrize(("wire", "body"), OWN)
def test_arguments_schemas_and_links_are_no_ids(wire: str, body: dict[str, Any]) -> None:
    async def test() -> None:
        upstream = StatefulUpstream()
        async with open_gateway(upstream, wire) as gate:
            answer = await ask(gate, 0, {"max_tokens": 9, **body}, wire)
            assert answer.status == 200, answer.body
            sent, given = json.loads(upstream.bodies[-1]), json.loads(json.dumps(body))
            assert {key: sent[key] for key in given} == given

    run(test)


@pytest.mark.parametrize(("wire", "body"), DUPLICATES)
def test_upstreams_read_what_was_checked(wire: str, body: str) -> None:
    """Of names that occur twice an upstream could take the other one."""

    async def test() -> None:
        upstream = StatefulUpstream()
        async with open_gateway(upstream, wire) as gate:
            answer = await ask(gate, 0, body.encode(), wire)
            assert answer.status in (200, 400)
            assert not any(b"ID" in passed for passed in upstream.bodies)

    run(test)


@pytest.mark.parametrize(("stored", "streamed"), [(True, False), (False, False), (True, True), (False, True)])
def test_items_of_an_answer_may_be_sent_back(stored: bool, streamed: bool) -> None:
    async def test() -> None:
        upstream = StatefulUpstream()
        body = {"store": stored, "stream": streamed}
        async with open_gateway(upstream) as gate:
            first = await respond(gate, 0, **body)
            end = first.body.decode().rstrip().rpartition("data: ")[2]
            output = json.loads(end)["response"]["output"] if streamed else first.json["output"]
            assert {item["type"] for item in output} >= {"message", "code_interpreter_call", "image_generation_call"}
            assert (await respond(gate, 0, **body, input=[USER, *output, USER])).status == 200
            for item in output[1:]:
                assert is_refused(await respond(gate, 1, **body, input=[item, USER]), upstream, "never")

    run(test)


@pytest.mark.parametrize("stored", [False, True])
def test_items_that_the_gateway_wrote_may_be_sent_back(stored: bool) -> None:
    async def test() -> None:
        upstream = StatefulUpstream()
        async with open_gateway(upstream, mode="text") as gate:
            lane: dict[str, Any] = {"store": stored, "tools": [TOOL]}
            answer = await respond(gate, 0, **lane)
            assert answer.json["store"] is stored
            thought = next(item for item in answer.json["output"] if item["type"] == "reasoning")
            assert (await respond(gate, 0, **lane, input=[USER, thought, USER])).status == 200
            assert is_refused(await respond(gate, 1, **lane, input=[USER, thought, USER]), upstream, thought["id"])

    run(test)


@pytest.mark.parametrize("streamed", [False, True])
def test_files_that_tools_of_an_answer_made_may_be_named(streamed: bool) -> None:
    async def test() -> None:
        upstream, wire = StatefulUpstream(), "anthropic_messages"
        body = {"max_tokens": 9, "messages": [USER], "stream": streamed}
        content = [MADE, {"type": "text", "text": "Done."}]
        again = {**body, "messages": [USER, {"role": "assistant", "content": content}, USER]}
        async with open_gateway(upstream, wire) as gate:
            assert (await ask(gate, 0, body, wire)).status == 200
            assert (await ask(gate, 0, again, wire)).status == 200
            assert is_refused(await ask(gate, 1, again, wire), upstream, "never")

    run(test)


def test_every_wire_of_clients_says_where_ids_are() -> None:
    without = {wire.name for wire in client_wires().values() if wire.references is None}
    assert without == {"ollama"}, "its servers store nothing"


def test_ids_are_known_longer_than_answers_are_kept() -> None:
    """Also after they were loaded from the store, which writes them again."""
    now, kept = [1000.0], list[float]()
    memory = TtlStore(lambda: now[0])

    def note_expiry(key: object, value: object, size: int, expires: float) -> bool:
        kept.append(expires)
        return True

    memory.on_keep = note_expiry
    memory.keep((b"owner", "id"), StoredUpstream(), 0)
    memory.add((b"owner", "loaded"), StoredUpstream(), 0, stored_until=now[0] + 1)
    now[0] += 10 * SECONDS
    for name in ("id", "loaded"):
        assert memory.find((b"owner", name)) == StoredUpstream()
    assert min(kept) >= 1000.0 + StoredUpstream.lifetime


def test_replays_of_the_operator_pass() -> None:
    """A replay has no key; who may open the console sees everything anyway."""
    assert not ClientState(TtlStore(lambda: 0.0), "", owner=b"replay 1").is_known
    assert not ClientState(TtlStore(lambda: 0.0), "key of an upstream").is_known
    assert ClientState(TtlStore(lambda: 0.0), KEYS[0], owner=b"owner").is_known
