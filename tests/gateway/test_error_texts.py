"""Every kind of error in the format of every client wire: status, code, what failed, at which upstream, who acts next.

The upstream of these tests does what the name of the model says.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from aiohttp import web
from support.error_texts import ErrorText, parse_text
from support.gateway import Answer, Gate, gateway, run
from support.rows import check_rows

from toolglot.core.error_guide import find_status, load_guide
from toolglot.wires import client_wires

USER = {"role": "user", "content": "hi"}
SECRETS = ("hunter2hunter2", "sk-query-secret-1", "sk-upstream-secret-1", "sk-client-secret-1")


class Sent(NamedTuple):
    """How a client of a wire asks, and where it finds an error."""

    path: str
    body: dict[str, Any]
    read_error: Callable[[Any], tuple[str, str | None]]
    """Text and code of an error body; it checks the format."""


def read_openai(body: Any) -> tuple[str, str | None]:
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return body["error"]["message"], body["error"]["code"]


def read_anthropic(body: Any) -> tuple[str, str | None]:
    assert body["type"] == "error" and set(body["error"]) == {"type", "message"}
    return body["error"]["message"], None


def read_gemini(body: Any) -> tuple[str, str | None]:
    assert body["error"]["status"].isupper() and isinstance(body["error"]["code"], int)
    return body["error"]["message"], body["error"]["details"][0]["reason"]


def read_ollama(body: Any) -> tuple[str, str | None]:
    assert set(body) == {"error"}
    return body["error"], None


CLIENTS = {
    "openai_chat": Sent("/v1/chat/completions", {"messages": [USER]}, read_openai),
    "openai_responses": Sent("/v1/responses", {"input": "hi"}, read_openai),
    "anthropic_messages": Sent("/v1/messages", {"messages": [USER], "max_tokens": 9}, read_anthropic),
    "gemini": Sent("/v1beta/models/MODEL:generateContent", {"contents": [{"parts": [{"text": "hi"}]}]}, read_gemini),
    "ollama": Sent("/api/chat", {"messages": [USER]}, read_ollama),
}
ALL = pytest.mark.parametrize("wire", CLIENTS)


def test_all_wires_are_tried() -> None:
    assert set(CLIENTS) == set(client_wires())


async def ask(gate: Gate, wire: str, model: str = "ok", stream: bool = False, **headers: str) -> Answer:
    sent = CLIENTS[wire]
    path = sent.path.replace("MODEL", model)
    if wire == "gemini":
        path = path.replace(":generateContent", ":streamGenerateContent?alt=sse") if stream else path
        return await gate.ask(sent.body, path, **headers)
    return await gate.ask(sent.body | {"model": model, "stream": stream}, path, **headers)


def check(answer: Answer, wire: str, entry: str, status: int = 0, code: str = "") -> ErrorText:
    """Check an error response: the status, the code, and the entry of the guide that its text ends with."""
    text, given = CLIENTS[wire].read_error(answer.json)
    assert answer.status == (status or find_status(load_guide()[entry])), text
    assert given in (None, code or entry), text
    return check_text(text, entry)


def check_text(text: str, entry: str) -> ErrorText:
    parsed = parse_text(text)
    assert parsed.code == entry, text
    assert parsed.actor == load_guide()[entry].actor
    assert not any(secret in text for secret in SECRETS), text
    assert len(text) < 700, text
    return parsed


def names_upstream(text: ErrorText, address: str) -> bool:
    shown = f"upstream '{text.upstream}' at {text.address} " if text.address else text.message
    return f"pstream 'default' at {address} " in shown


# -- refused by the gateway --------------------------------------------------------------------------------------------


@ALL
def test_requests_that_the_gateway_refuses(wire: str) -> None:
    async def test() -> None:
        settings: dict[str, Any] = {"client_keys": SECRETS[3], "limit_body_bytes": 2000, "limit_requests_per_minute": 3}
        async with gateway(model={"name": "coder"}, **settings) as gate:
            keyed: Any = {"Authorization": f"Bearer {SECRETS[3]}"}
            path = CLIENTS[wire].path
            none = check(await ask(gate, wire), wire, "invalid_api_key")
            assert none.message == "An API key of this gateway is needed, and none was presented."
            wrong = await ask(gate, wire, Authorization="Bearer sk-upstream-secret-1")
            assert "is not a client key of this gateway" in check(wrong, wire, "invalid_api_key").message
            assert wrong.headers["www-authenticate"] == "Bearer"
            unknown = check(await ask(gate, wire, "gpt-5", **keyed), wire, "model_not_found")
            assert unknown.message == "There is no model 'gpt-5' here; known are: coder."
            broken = check(await gate.ask(b"{", path, **keyed), wire, "invalid_request")
            assert "not valid JSON" in broken.message
            large = check(await gate.ask(b" " * 3000, path, **keyed), wire, "request_too_large")
            assert "2000 bytes" in large.message
            limited = await ask(gate, wire, **keyed)
            check(limited, wire, "rate_limit_exceeded")
            assert int(limited.headers["retry-after"]) > 0
            refused = await gate.get(path, "PUT", **keyed)
            assert "POST" in refused.headers["allow"].split(", ")
            assert "PUT is not allowed" in check(refused, wire, "method_not_allowed").message

    run(test)


@ALL
def test_pages_of_other_sites_are_refused(wire: str) -> None:
    async def test() -> None:
        async with gateway() as gate:
            check(await ask(gate, wire, Origin="https://evil.test"), wire, "forbidden_origin")

    run(test)


@pytest.mark.parametrize("wire", [name for name, wire in client_wires().items() if wire.own_prefix])
def test_an_unknown_path_is_refused_in_the_wire_of_its_prefix(wire: str) -> None:
    async def test() -> None:
        async with gateway() as gate:
            answer = await gate.get(client_wires()[wire].own_prefix + "/nothing")
            assert "is not served here" in check(answer, wire, "unknown_path").message

    run(test)


@ALL
def test_a_full_gateway_and_a_bug(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        settings: dict[str, Any] = {"limit_open_requests": 1, "limit_queued_requests": 0}
        async with gateway(app=make_upstream(), **settings) as gate:
            first = asyncio.create_task(ask(gate, wire, "slow"))
            await asyncio.sleep(0.3)
            full = await ask(gate, wire)
            check(full, wire, "overloaded")
            assert full.headers["retry-after"] == "5"
            await first
            monkeypatch.setattr("toolglot.server.app.prepare", lambda *_: 1 / 0)
            check(await ask(gate, wire), wire, "internal_error")

    run(test)


# -- errors of the upstream --------------------------------------------------------------------------------------------


def make_upstream() -> web.Application:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer_as_the_model_says)
    app.router.add_get("/v1/models", list_models)
    return app


async def list_models(request: web.Request) -> web.Response:
    return web.json_response({"data": [{"id": f"served-{number}"} for number in range(12)]})


async def answer_as_the_model_says(request: web.Request) -> web.StreamResponse:
    asked = await request.json()
    model = asked["model"]
    if model.startswith("status-"):
        message = {"context": "This model's maximum context length is 10 tokens"}.get(model.rpartition("-")[2], "No.")
        error = {"message": message + " " + request.headers.get("Authorization", ""), "code": "invalid_api_key"}
        return web.json_response({"error": error}, status=int(model.split("-")[1]))
    if model == "moved":
        return web.Response(status=302, headers={"Location": "/elsewhere"})
    if model == "silent":
        await wait_for_disconnect(request)
    if model == "slow":
        await asyncio.sleep(1)
    if model.startswith("packed-"):
        _, encoding, *status = model.split("-")
        return web.Response(
            body=b"\x0b\x02", status=int(status[0]) if status else 200, headers={"Content-Encoding": encoding}
        )
    if model == "page":
        return web.Response(text="<html>", content_type="text/html")
    if not asked.get("stream"):
        content = "" if model == "empty" else "Hello"
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        return web.json_response({"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})  # fmt: skip
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await write(response, choices=[{"index": 0, "delta": {"content": "" if model == "empty" else "Hel"}}])
    if model == "error-event":
        await write(response, error={"message": "It broke.", "code": "server_error"})
    elif model == "broken":
        assert request.transport is not None
        request.transport.abort()
    elif model == "pause":
        await wait_for_disconnect(request)
    elif model != "cut":
        await write(response, choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
        await response.write(b"data: [DONE]\n\n")
    return response


async def wait_for_disconnect(request: web.Request) -> None:
    while request.transport is not None and not request.transport.is_closing():
        await asyncio.sleep(0.05)


async def write(response: web.StreamResponse, **fields: Any) -> None:
    chunk = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m", **fields}
    await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    await asyncio.sleep(0.02)


KEYS: dict[str, Any] = {"api_key": SECRETS[2]}
REFUSALS = {
    "status-400": ("upstream_refused", 400, "invalid_api_key"),
    "status-400-context": ("context_length_exceeded", 400, "invalid_api_key"),
    "status-401": ("upstream_key_refused", 401, ""),
    "status-403": ("upstream_key_refused", 403, ""),
    "status-404": ("upstream_not_found", 404, "invalid_api_key"),
    "status-422": ("upstream_refused", 422, "invalid_api_key"),
    "status-429": ("upstream_limited", 429, "invalid_api_key"),
    "status-500": ("upstream_failed", 500, "invalid_api_key"),
    "status-503": ("upstream_failed", 503, "invalid_api_key"),
    "moved": ("upstream_failed", 502, ""),
    "packed-br": ("upstream_encoding", 502, ""),
    "packed-zstd": ("upstream_encoding", 502, ""),
    "packed-br-401": ("upstream_key_refused", 401, ""),
    "packed-br-429": ("upstream_limited", 429, "upstream_refused"),
    "page": ("upstream_invalid", 502, ""),
    "empty": ("empty_answer", 502, ""),
}


@ALL
def test_errors_of_an_upstream(wire: str) -> None:
    async def test() -> None:
        async with gateway(app=make_upstream(), **KEYS) as gate:
            for model, (entry, status, code) in REFUSALS.items():
                text = check(await ask(gate, wire, model), wire, entry, status, code)
                assert names_upstream(text, gate.upstream), text
                if model.startswith("status-4") and status not in (401, 403):
                    assert (text.status, text.message[:2]) == (str(status), "Th" if "context" in model else "No")
                if entry == "upstream_encoding":
                    assert f"with {model[7:]!r}" in text.message and "gzip" in text.step
                if status == 404:
                    assert text.message.endswith("It serves: served-0, served-1, served-2, served-3, served-4, served-5, served-6, served-7, served-8, served-9 and 2 more.")  # fmt: skip

    run(test)


@ALL
def test_whose_key_was_refused(wire: str) -> None:
    async def test() -> None:
        client_key: Any = {"Authorization": f"Bearer {SECRETS[3]}"}
        async with gateway(app=make_upstream(), **KEYS) as gate:
            own = check(await ask(gate, wire, "status-401", **client_key), wire, "upstream_key_refused")
            assert own.message.startswith(
                f"Upstream 'default' at {gate.upstream} refused the gateway's own API key, not"
            )
            assert "api_key of upstream 'default' (TOOLGLOT_API_KEY or OPENAI_API_KEY)" in own.step
        async with gateway(app=make_upstream()) as gate:
            passed = check(await ask(gate, wire, "status-401", **client_key), wire, "client_key_refused")
            assert "refused the client's API key, which the gateway passed on" in passed.message
            check(await ask(gate, wire, "status-403"), wire, "upstream_key_missing", 403)
        async with gateway(app=make_upstream(), client_keys=SECRETS[3]) as gate:
            missing = check(await ask(gate, wire, "status-401", **client_key), wire, "upstream_key_missing")
            assert "the gateway has none for it" in missing.message
        async with gateway(app=make_upstream(), upstream={"headers": {"X-Api-Key": SECRETS[2]}}) as gate:
            assert (
                "headers of upstream" in check(await ask(gate, wire, "status-401"), wire, "upstream_key_refused").step
            )

    run(test)


@ALL
@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_is_not_there(wire: str, stream: bool) -> None:
    async def test() -> None:
        url = f"http://user:{SECRETS[0]}@127.0.0.1:9/v1?key={SECRETS[1]}"
        async with gateway(upstream={"base_url": url}) as gate:
            text = check(await ask(gate, wire, stream=stream), wire, "upstream_unreachable")
            assert text.message == "Upstream 'default' at http://127.0.0.1:9/v1 cannot be reached (Connection refused)."
            assert "base_url" in text.step

    run(test)


@ALL
def test_a_gateway_behind_a_gateway_explains_its_own_errors(wire: str) -> None:
    """The advice that is nearer to the cause counts; the outer gateway adds where it comes from."""

    async def test() -> None:
        async with gateway(app=make_upstream(), **KEYS) as inner:
            async with gateway(upstream={"base_url": f"{inner.address}/v1"}) as outer:
                answer = await ask(outer, wire, "status-401")
                text, _ = CLIENTS[wire].read_error(answer.json)
                end = f"[toolglot errors upstream_key_refused] (upstream 'default' at {inner.address}/v1, status 401)"
                assert answer.status == 401 and text.endswith(end)
                assert text.startswith(f"Upstream 'default' at {inner.upstream} refused the gateway's own API key")
        async with gateway(app=make_upstream(), client_keys=SECRETS[3]) as inner:
            async with gateway(upstream={"base_url": f"{inner.address}/v1"}) as outer:
                text, _ = CLIENTS[wire].read_error((await ask(outer, wire)).json)
                assert text.startswith(f"Upstream 'default' at {inner.address}/v1 wants an API key")

    run(test)


# -- errors within a stream --------------------------------------------------------------------------------------------


def read_stream(answer: Answer, wire: str) -> tuple[str, str | None]:
    """Text and code of the error that ends a stream."""
    lines = answer.body.decode().splitlines()
    if wire == "ollama":
        return read_ollama(json.loads(lines[-1]))
    last = json.loads([line for line in lines if line.startswith("data: {")][-1][6:])
    if wire == "openai_responses":
        failed = [json.loads(line[6:]) for line in lines if line.startswith('data: {"type":"error"')][-1]
        return failed["message"], failed["code"]
    if wire == "anthropic_messages":
        assert "event: error" in lines
    return CLIENTS[wire].read_error(last)


BROKEN = {
    "error-event": ("upstream_failed", "It broke.", "server_error"),
    "broken": ("upstream_failed", "The connection to the upstream broke while it was answering.", ""),
    "cut": ("upstream_closed", "The upstream closed the connection in the middle of its answer.", ""),
    "empty": ("empty_answer", "The model's answer was empty.", ""),
}


@ALL
@pytest.mark.parametrize("tools", [False, True])
def test_errors_within_a_stream(wire: str, tools: bool) -> None:
    """With tools, the answer is decoded; without, it is relayed where the wires are the same."""

    async def test() -> None:
        settings: dict[str, Any] = KEYS | ({"mode": "native", "tool_calling_supported_tools": "read"} if tools else {})
        async with gateway(app=make_upstream(), **settings) as gate:
            for model, (entry, message, code) in BROKEN.items():
                answer = await ask(gate, wire, model, stream=True)
                assert answer.status == 200, answer.body
                text, given = read_stream(answer, wire)
                assert given in (None, code or entry), (model, given)
                parsed = check_text(text, entry)
                assert (parsed.message, parsed.upstream, parsed.address) == (message, "default", gate.upstream), model

    run(test)


def test_an_upstream_that_is_silent() -> None:
    """All wires wait at the same time."""

    async def test() -> None:
        async with gateway(app=make_upstream(), upstream={"read_timeout": 3.0}, **KEYS) as gate:
            whole = asyncio.gather(*(ask(gate, wire, "silent") for wire in CLIENTS))
            streamed = asyncio.gather(*(ask(gate, wire, "pause", stream=True) for wire in CLIENTS))
            answers = zip(CLIENTS, await whole, await streamed, strict=True)
            check_rows(answers, lambda row: check_silence(gate, *row), lambda row: row[0])

    run(test)


def check_silence(gate: Gate, wire: str, whole: Answer, streamed: Answer) -> None:
    text = check(whole, wire, "upstream_timeout")
    assert text.message == "The upstream was silent for 3 s, its read_timeout, before it answered."
    assert names_upstream(text, gate.upstream)
    within, code = read_stream(streamed, wire)
    assert code in (None, "upstream_timeout")
    assert names_upstream(check_text(within, "upstream_timeout"), gate.upstream)


# -- models that are not known ------------------------------------------------------------------------------------------


def one_model() -> web.Application:
    async def complete(request: web.Request) -> web.StreamResponse:
        if (await request.json())["model"] != "only":
            return web.json_response({"error": {"message": "The model does not exist."}}, status=404)
        return await answer_as_the_model_says(request)

    async def list_one(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "only"}]})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    app.router.add_get("/v1/models", list_one)
    return app


@ALL
@pytest.mark.parametrize("stream", [False, True])
def test_the_only_model_answers_for_unknown_names_if_the_setting_says_so(wire: str, stream: bool) -> None:
    async def test() -> None:
        async with gateway(app=one_model()) as gate:
            text = check(await ask(gate, wire, "gpt-5", stream), wire, "upstream_not_found", code="upstream_refused")
            assert text.message == "The model does not exist. It serves: only."
        async with gateway(app=one_model(), unknown_model="only_model") as gate:
            for _ in range(2):
                answer = await ask(gate, wire, "gpt-5", stream)
                assert answer.status == 200 and b"Hel" in answer.body
        async with gateway(app=make_upstream(), unknown_model="only_model") as gate:
            answer = await ask(gate, wire, "status-404", stream)
            check(answer, wire, "upstream_not_found", code="invalid_api_key")

    run(test)
