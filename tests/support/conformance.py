"""What clients expect of a gateway. Each row is checked by a request and is a row of the table in docs/conformance.md."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

from support.gateway import ASK, READ, Answer, Gate, gateway
from toolglot.sim import SimOptions

CLAUDE_CODE = "Claude Code"
CODEX = "Codex"
AI_SDK = "AI SDK, OpenAI-compatible"
SDK = "OpenAI's Python SDK"
SOURCES = {
    CLAUDE_CODE: "Its documented gateway protocol, and the text that its own gateway serves at `GET /protocol` (2.1.325).",
    CODEX: 'What version 0.166.0 sends to and accepts from a provider with `wire_api = "responses"`.',
    AI_SDK: "The schemas of `@ai-sdk/openai-compatible` 3.0.90.",
    SDK: "What version 3.51.0 sends, and older versions that know no tools.",
}
KEY = "sk-client-key-1"
BEARER = {"Authorization": f"Bearer {KEY}"}
USER = {"role": "user", "content": "hi"}
READ_FILE = {"role": "user", "content": 'Read the file "package.json"'}
MESSAGES: dict[str, Any] = {"model": "sim", "max_tokens": 100, "messages": [USER]}
TOOL = {"name": "read", "description": "Read a file", "input_schema": READ["function"]["parameters"]}  # type: ignore[index]
FUNCTION = {"type": "function", "name": "read", "description": "", "parameters": TOOL["input_schema"], "strict": False}
RESPONSES: dict[str, Any] = {
    "model": "sim",
    "instructions": "",
    "input": [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
              {"type": "message", "role": "user", "content": [{"type": "input_text", "text": READ_FILE["content"]}]}],
    "tools": [FUNCTION, {"type": "web_search"}, {"type": "namespace", "name": "files", "tools": [FUNCTION | {"name": "list"}]}],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "client_metadata": {"x": "y"},
}  # fmt: skip
Check = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Row:
    client: str
    expectation: str
    met: str
    check: Check


ROWS: list[Row] = []


def row(client: str, expectation: str, met: str = "yes") -> Callable[[Check], Check]:
    def add(check: Check) -> Check:
        ROWS.append(Row(client, expectation, met, check))
        return check

    return add


def conformance_table() -> str:
    lines: list[str] = []
    for client, source in SOURCES.items():
        lines += ["", f"## {client}", "", source, "", "| expectation | met |", "|---|---|"]
        lines += [f"| {one.expectation} | {one.met} |" for one in ROWS if one.client == client]
    return "\n".join(lines) + "\n\n"


def events(answer: Answer) -> list[dict[str, Any]]:
    """The data of a stream's events."""
    return [json.loads(line[6:]) for line in answer.body.decode().splitlines() if line.startswith("data: {")]


class Upstream:
    """An upstream of the Messages protocol. It records requests, and answers in two parts with a pause in between."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.headers: dict[str, str] = {}
        self.body: dict[str, Any] = {}
        self.go_on = asyncio.Event()
        self.app = web.Application()
        self.app.router.add_post("/v1/messages", self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.headers, self.body = dict(request.headers), await request.json()
        if self.status != 200:
            error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
            return web.json_response(error, status=self.status)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage}
        await self.write(response, "message_start", message=message | {"stop_reason": None, "stop_sequence": None})
        await self.write(response, "content_block_start", index=0, content_block={"type": "text", "text": ""})
        await self.write(response, "content_block_delta", index=0, delta={"type": "text_delta", "text": "Hel"})
        await asyncio.wait_for(self.go_on.wait(), 20)
        await self.write(response, "content_block_stop", index=0)
        await self.write(response, "message_delta", delta={"stop_reason": "end_turn"}, usage=usage)
        await self.write(response, "message_stop")
        return response

    async def write(self, response: web.StreamResponse, kind: str, **fields: Any) -> None:
        await response.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode())


async def ask_same_wire(body: dict[str, Any], **headers: str) -> Upstream:
    upstream = Upstream()
    upstream.go_on.set()
    async with gateway(app=upstream.app, upstream={"wire": "anthropic_messages"}) as gate:
        answer = await gate.ask(body | {"stream": True}, "/v1/messages?beta=true", **headers)
        assert answer.status == 200 and events(answer)[-1]["type"] == "message_stop"
    return upstream


async def post(gate: Gate, body: Any, path: str = "/v1/messages", **headers: str) -> Answer:
    return await gate.ask(body, path, **headers)


# -- Claude Code -------------------------------------------------------------------------------------------------------


@row(CLAUDE_CODE, "`POST /v1/messages?beta=true`: the path counts, not the query")
async def _() -> None:
    async with gateway() as gate:
        answer = await post(gate, MESSAGES, "/v1/messages?beta=true")
        assert answer.status == 200 and answer.json["type"] == "message" and answer.json["content"]


@row(CLAUDE_CODE, "`POST /v1/messages/count_tokens` (optional)", "yes, an estimate: four characters count as a token")
async def _() -> None:
    async with gateway() as gate:
        answer = await post(gate, MESSAGES, "/v1/messages/count_tokens?beta=true")
        assert answer.status == 200 and answer.json["input_tokens"] >= 1


@row(CLAUDE_CODE, "`anthropic-beta` and `anthropic-version` reach an upstream of the same protocol unchanged")
async def _() -> None:
    sent = {"anthropic-beta": "a-2026-01-01,b-2026-02-02", "anthropic-version": "2026-10-21"}
    got = (await ask_same_wire(MESSAGES, **sent)).headers
    assert {name: got.get(name) for name in sent} == sent


@row(CLAUDE_CODE, "body fields that the gateway does not know reach such an upstream unchanged")
async def _() -> None:
    extra = {"safeguards": {"a": [1, 2.50]}, "context_management": {"edits": []}, "future_field": None}
    got = (await ask_same_wire(MESSAGES | extra)).body
    assert {name: got.get(name, "missing") for name in extra} == extra


@row(
    CLAUDE_CODE,
    "headers that the gateway does not know (`x-app`, `x-stainless-*`, `X-Claude-Code-Session-Id`) do no harm",
)
async def _() -> None:
    await ask_same_wire(MESSAGES, **{"x-app": "cli", "x-stainless-lang": "js", "X-Claude-Code-Session-Id": "s"})


@row(CLAUDE_CODE, "streams are not buffered: events arrive while the upstream still answers")
async def _() -> None:
    upstream = Upstream()
    async with gateway(app=upstream.app, upstream={"wire": "anthropic_messages"}) as gate:
        data = json.dumps(MESSAGES | {"stream": True})
        async with gate.session.post(f"{gate.address}/v1/messages", data=data) as response:
            received = b""
            while b"Hel" not in received:
                received += await asyncio.wait_for(response.content.readany(), 10)
            assert b"message_stop" not in received
            upstream.go_on.set()
            assert b"message_stop" in await response.read()


@row(CLAUDE_CODE, "streams that wait are kept alive by `ping` events")
async def _() -> None:
    async with gateway(SimOptions(latency=500), heartbeat_seconds="0.1") as gate:
        kinds = [event["type"] for event in events(await post(gate, MESSAGES | {"stream": True}))]
        assert "ping" in kinds and kinds[-1] == "message_stop"


@row(
    CLAUDE_CODE, "a role `system` within `messages`, adaptive thinking, deferred tools and `cache_control` are accepted"
)
async def _() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    system = {"role": "system", "content": [{"type": "text", "text": "Be brief.", **mark}]}
    more = {
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "tools": [TOOL | {"defer_loading": True}],
    }
    async with gateway() as gate:
        assert (await post(gate, MESSAGES | more | {"messages": [system, USER]})).status == 200


@row(CLAUDE_CODE, "every call has an id of its own, and `stop_reason` is `tool_use`")
async def _() -> None:
    async with gateway() as gate:
        ids = set()
        for _ in range(2):
            answer = await post(gate, MESSAGES | {"messages": [READ_FILE], "tools": [TOOL]})
            assert answer.json["stop_reason"] == "tool_use"
            ids |= {block["id"] for block in answer.json["content"] if block["type"] == "tool_use"}
        assert len(ids) == 2


@row(CLAUDE_CODE, "the key comes as `Authorization: Bearer` or as `x-api-key`")
async def _() -> None:
    async with gateway(client_keys=KEY) as gate:
        assert (await post(gate, MESSAGES, **BEARER)).status == 200
        assert (await post(gate, MESSAGES, **{"x-api-key": KEY})).status == 200


@row(
    CLAUDE_CODE,
    'errors are `{"type": "error", "error": {"type", "message"}}`; the type goes with the status (400, 401, 403, 413, 429, 5xx)',
)
async def _() -> None:
    async with gateway(client_keys=KEY, limit_body_bytes=2000, limit_requests_per_minute=2) as gate:
        found = [await post(gate, MESSAGES), await post(gate, {}, **BEARER), await post(gate, b" " * 3000, **BEARER)]
        found.append(await post(gate, MESSAGES, **BEARER))
        assert int(found[-1].headers["retry-after"]) > 0
    async with gateway(upstream={"base_url": "http://127.0.0.1:9"}) as gate:
        found += [await post(gate, MESSAGES, Origin="https://other.test"), await post(gate, MESSAGES)]
    assert {answer.json["type"] for answer in found} == {"error"}
    assert [(answer.status, answer.json["error"]["type"]) for answer in found] == [
        *((401, "authentication_error"), (400, "invalid_request_error"), (413, "request_too_large")),
        *((429, "rate_limit_error"), (403, "permission_error"), (502, "api_error")),
    ]


@row(CLAUDE_CODE, "a 401 carries `x-should-retry: false`, else the client retries for minutes")
async def _() -> None:
    async with gateway(client_keys=KEY) as gate:
        assert (await post(gate, MESSAGES)).headers["x-should-retry"] == "false"
    async with gateway(SimOptions(faults=("http_401",))) as gate:
        assert (await post(gate, MESSAGES)).headers["x-should-retry"] == "false"


@row(CLAUDE_CODE, "a 529 of the upstream stays one, with the type `overloaded_error`")
async def _() -> None:
    async with gateway(app=Upstream(529).app, upstream={"wire": "anthropic_messages"}) as gate:
        answer = await post(gate, MESSAGES)
        assert (answer.status, answer.json["error"]["type"]) == (529, "overloaded_error")


@row(CLAUDE_CODE, "`HEAD /` and `HEAD /api/hello` answer")
async def _() -> None:
    async with gateway() as gate:
        assert {(await gate.get(path, "HEAD")).status for path in ("/", "/api/hello")} == {200}


@row(
    CLAUDE_CODE,
    "`GET /v1/models?limit=1000` lists `id` and `display_name`",
    "yes; the client shows names with claude or anthropic in them",
)
async def _() -> None:
    async with gateway() as gate:
        listed = (await gate.get("/v1/models?limit=1000")).json
        assert [(one["id"], one["display_name"]) for one in listed["data"]] == [("sim", "sim")]
        assert listed["has_more"] is False


@row(
    CLAUDE_CODE,
    "sign-in, managed settings, telemetry and `GET /protocol` (for `/login` only)",
    "no: clients use a key; these paths are a 404",
)
async def _() -> None:
    async with gateway() as gate:
        for path in ("/.well-known/oauth-authorization-server", "/managed/settings", "/v1/metrics", "/protocol"):
            assert (await gate.get(path)).status == 404


# -- Codex -------------------------------------------------------------------------------------------------------------


async def ask_codex(body: dict[str, Any], **settings: Any) -> list[dict[str, Any]]:
    async with gateway(settings.pop("options", None), **settings) as gate:
        answer = await post(gate, body, "/v1/responses")
        assert answer.status == 200, answer.body
        return events(answer)


def done_items(received: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event["item"] for event in received if event["type"] == "response.output_item.done"]


@row(
    CODEX,
    "its whole request is accepted: `developer` messages, empty `instructions`, `include`, `store`, `prompt_cache_key`, `client_metadata`, namespaces, hosted tools",
)
async def _() -> None:
    received = await ask_codex(RESPONSES)
    assert received[0]["type"] == "response.created"


@row(CODEX, "a stream ends with `response.completed`, with usage")
async def _() -> None:
    last = (await ask_codex(RESPONSES))[-1]
    assert last["type"] == "response.completed" and last["response"]["usage"]["total_tokens"] > 0


@row(CODEX, "each call is in `response.output_item.done` with `call_id`, `name` and `arguments`")
async def _() -> None:
    call = next(item for item in done_items(await ask_codex(RESPONSES)) if item["type"] == "function_call")
    assert call["call_id"] and call["name"] == "read" and json.loads(call["arguments"]) == {"filePath": "package.json"}


@row(CODEX, "items are announced (`added`, deltas, `done`) in order, with `sequence_number`")
async def _() -> None:
    received = await ask_codex(RESPONSES)
    assert [event["sequence_number"] for event in received] == list(range(len(received)))
    kinds = [event["type"] for event in received if event["type"].startswith("response.output_item")]
    assert kinds[::2] == ["response.output_item.added"] * (len(kinds) // 2) and len(kinds) % 2 == 0


@row(CODEX, "tools in an input item `additional_tools` can be called")
async def _() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [FUNCTION]}
    body = {key: value for key, value in RESPONSES.items() if key != "tools"}
    received = await ask_codex(body | {"input": [item, *RESPONSES["input"]]})
    assert [item["name"] for item in done_items(received) if item["type"] == "function_call"] == ["read"]


@row(CODEX, "calls of the history may have arguments that are not JSON")
async def _() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "read", "arguments": '{"filePath": '}
    result = {"type": "function_call_output", "call_id": "c", "output": "failed to parse"}
    received = await ask_codex(RESPONSES | {"input": [*RESPONSES["input"], call, result]})
    assert received[-1]["type"] == "response.completed"


@row(CODEX, "streams that wait are kept alive by events; comments do not help")
async def _() -> None:
    received = await ask_codex(RESPONSES, options=SimOptions(latency=500), heartbeat_seconds="0.1")
    first = next(at for at, event in enumerate(received) if event["type"] == "response.output_item.added")
    assert len(received[:first]) >= 3


@row(CODEX, "an answer that fails ends with `response.failed` or `error`, never with `response.completed`")
async def _() -> None:
    kinds = [event["type"] for event in await ask_codex(RESPONSES, options=SimOptions(faults=("error_after_first",)))]
    assert {"response.failed", "error"} & set(kinds) and "response.completed" not in kinds


@row(CODEX, 'errors are `{"error": {"message", "type", "code"}}`, a 429 with `Retry-After`')
async def _() -> None:
    async with gateway(SimOptions(faults=("http_429",))) as gate:
        answer = await post(gate, RESPONSES, "/v1/responses")
        assert answer.status == 429 and answer.headers["retry-after"]
        assert {"message", "type", "code"} <= set(answer.error)


# -- AI SDK ------------------------------------------------------------------------------------------------------------

STREAMED = ASK | {"stream": True}


@row(AI_SDK, "a streamed call begins with `index`, an `id` and `function.name`, whatever the upstream sends")
async def _() -> None:
    for faults in ((), ("no_id",), ("no_index",)):
        async with gateway(SimOptions(faults=faults), mode="native") as gate:
            choices = [choice for chunk in (await gate.ask(STREAMED)).chunks for choice in chunk["choices"]]
            first = next(choice["delta"]["tool_calls"][0] for choice in choices if choice["delta"].get("tool_calls"))
            assert first["index"] == 0 and first["id"] and first["function"]["name"] == "read", faults


@row(AI_SDK, "a stream has one `finish_reason`, then `[DONE]`")
async def _() -> None:
    async with gateway() as gate:
        answer = await gate.ask(STREAMED)
        reasons = [choice["finish_reason"] for chunk in answer.chunks for choice in chunk["choices"]]
        assert [reason for reason in reasons if reason] == ["tool_calls"]
        assert answer.body.endswith(b"data: [DONE]\n\n")


@row(AI_SDK, "`stream_options.include_usage` gives a chunk with `usage`")
async def _() -> None:
    async with gateway() as gate:
        chunks = (await gate.ask(STREAMED | {"stream_options": {"include_usage": True}})).chunks
        assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["total_tokens"] > 0


@row(AI_SDK, "a whole answer has `choices[0].message`, calls with ids and a `finish_reason`")
async def _() -> None:
    async with gateway() as gate:
        answer = await gate.ask()
        assert answer.finish == "tool_calls" and answer.message["tool_calls"][0]["id"]


@row(AI_SDK, 'errors are `{"error": {"message": TEXT}}`, as a response and as the last event of a stream that fails')
async def _() -> None:
    async with gateway(SimOptions(faults=("http_400",))) as gate:
        assert isinstance((await gate.ask()).error["message"], str)
    async with gateway(SimOptions(faults=("error_after_first",))) as gate:
        assert isinstance((await gate.ask(STREAMED)).chunks[-1]["error"]["message"], str)


@row(AI_SDK, "the base URL may end with `/v1` or not, and unknown fields are accepted")
async def _() -> None:
    async with gateway() as gate:
        for path in ("/v1/chat/completions", "/chat/completions", "/v1/v1/chat/completions"):
            assert (await gate.ask(ASK | {"x_future": {"a": 1}}, path)).status == 200


@row(AI_SDK, "`GET /v1/models` lists models with an `id`")
async def _() -> None:
    async with gateway() as gate, aiohttp.ClientSession() as session:
        async with session.get(f"{gate.address}/v1/models") as response:
            assert [one["id"] for one in (await response.json())["data"]] == ["sim"]


# -- OpenAI's SDK ------------------------------------------------------------------------------------------------------

FUNCTIONS = {key: value for key, value in ASK.items() if key != "tools"} | {"functions": [READ["function"]]}


@row(
    SDK, "a request with `functions` gets `message.function_call` and the finish reason `function_call`, also streamed"
)
async def _() -> None:
    for mode in ("native", "text"):
        async with gateway(mode=mode, dialect="hermes") as gate:
            answer = await gate.ask(FUNCTIONS)
            assert answer.finish == "function_call" and answer.message["function_call"]["name"] == "read"
            chunks = (await gate.ask(FUNCTIONS | {"stream": True})).chunks
            choices = [choice for chunk in chunks for choice in chunk["choices"]]
            pieces = [choice["delta"].get("function_call", {}) for choice in choices]
            assert "".join(piece.get("name", "") for piece in pieces) == "read"
            assert json.loads("".join(piece.get("arguments", "") for piece in pieces)) == {"filePath": "package.json"}
            assert choices[-1]["finish_reason"] == "function_call"


@row(SDK, "`response_format` with a schema (`parse`) reaches an upstream of another protocol")
async def _() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    upstream = Upstream()
    upstream.go_on.set()
    async with gateway(app=upstream.app, upstream={"wire": "anthropic_messages"}, mode="native") as gate:
        held = {"type": "json_schema", "json_schema": {"name": "out", "schema": schema, "strict": True}}
        await gate.ask({"model": "m", "messages": [USER], "response_format": held, "stream": True})
    assert upstream.body["output_config"] == {"format": {"type": "json_schema", "schema": schema}}
