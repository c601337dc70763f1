"""Errors of the web chat: each is reported as what it is, and those that a new chat or a second attempt cures are cured."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.chat_lab import Client, Lab, make_call, make_tool
from support.gateway import gateway

from toolglot.config import Secret
from toolglot.server.upstream import chats
from toolglot.sim.answer import Answer
from toolglot.sim.qwen_web.errors import ERRORS, RISK_PAGES

CURED = {
    *("chat_not_found", "not_found", "parent_not_exist", "parent_not_found", "in_progress"),
    *("internal_error", "internal_server_error"),
}
STATUS = {
    "allocated_quota": 429,
    "exceed_limit": 429,
    "quota_exhausted": 429,
    "quota_limited": 429,
    "rate_limited": 429,
    "parallel_limited": 429,
    "too_many_requests": 429,
    "context_length_exceeded": 400,
    "token_expired": 401,
    "unauthorized": 401,
    "unauthorized_lowercase": 401,
    "too_many_messages": 502,
}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chats, "BUSY_SECONDS", 0.01)


def play(lab: Lab, test: Any, **options: Any) -> None:
    async def run() -> None:
        async with lab.open(**options):
            await test()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_every_error_is_expected_to_be_cured_or_to_have_a_status() -> None:
    assert set(ERRORS) == CURED | set(STATUS)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("position", ["", "_first"])
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_before_the_answer(name: str, position: str, stream: bool, tmp_path: Path) -> None:
    lab = Lab(tmp_path, stream=stream)

    async def test() -> None:
        client = Client(lab)
        client.say()
        await client.ask()
        client.say()
        lab.simulation.inject(name + position)
        if name in CURED:
            await client.ask()
            assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)
            return
        status, error = await client.post()
        assert error["message"]
        assert status == STATUS[name], error
        if status == 429 and name == "rate_limited":
            assert "quota" in error["message"]

    play(lab, test)


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_in_the_middle_of_a_stream_is_reported(name: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab)
        client.say()
        lab.simulation.inject(f"{name}_mid")
        lab.answers = [Answer("A long answer. " * 40)]
        status, error = await client.post()
        assert status == 0 and error["message"], "the stream ends with an error"
        await client.ask()
        assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)

    play(lab, test)


@pytest.mark.parametrize("name", sorted(STATUS))
def test_an_error_in_the_middle_of_a_whole_answer_has_its_status(name: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path, stream=False)

    async def test() -> None:
        client = Client(lab)
        client.say()
        lab.simulation.inject(f"{name}_mid", times=3)
        lab.answers = [Answer("A long answer. " * 40) for _ in range(3)]
        status, error = await client.post()
        assert status == STATUS[name] and error["message"], error

    play(lab, test)


@pytest.mark.parametrize("listed", ["flat", "nested"])
def test_models_are_listed_wherever_the_service_has_them(listed: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        async with lab.session.get(f"{lab.gateways[0]}/v1/models") as response:
            names = {model["id"] for model in (await response.json())["data"]}
        assert {"one", "two"} <= names

    play(lab, test, model_list=listed, models=("one", "two"))


def test_a_list_of_models_that_is_refused_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        lab.simulation.inject("models_unauthorized", times=2)
        with caplog.at_level("INFO"):
            async with lab.session.get(f"{lab.gateways[0]}/v1/models") as response:
                assert response.status == 200
        assert "lists no models" in caplog.text and "token" in caplog.text

    play(lab, test)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("page", RISK_PAGES)
def test_a_risk_page_opens_the_circuit(page: str, stream: bool, tmp_path: Path) -> None:
    lab = Lab(tmp_path, stream=stream)

    async def test() -> None:
        client = Client(lab)
        client.say()
        lab.simulation.inject(page)
        status, error = await client.post()
        asked = lab.simulation.record.total
        assert (status, error["code"]) == (503, "upstream_blocked"), error
        status, error = await client.post()
        assert (status, error["code"]) == (503, "upstream_blocked")
        assert lab.simulation.record.total == asked, "it is not asked again"

    play(lab, test)


@pytest.mark.parametrize("fault", ["empty_answer", "empty_body", "no_finish", "reset", "cut_mid"])
def test_no_empty_success(fault: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path, stream=False)

    async def test() -> None:
        client = Client(lab)
        client.say()
        lab.simulation.inject(fault, times=5)
        status, answer = await client.post()
        assert status >= 500 or answer.get("content"), (status, answer)

    play(lab, test)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_intercepted_calls_reach_the_client(stream: bool, tmp_path: Path) -> None:
    """The model writes Qwen's own form, which the platform takes for its own tools: the client gets both calls, and no
    apology; the next turn starts a new chat, because this one holds the platform's answers."""
    lab = Lab(tmp_path, stream=stream)

    async def test() -> None:
        client = Client(lab, tools=[make_tool("read", "Read a file")])
        client.say()
        written = "".join(
            f'<tool_call>\n{{"name": "read", "arguments": {{"path": "{lab.fact()}"}}}}\n</tool_call>\n'
            for _ in range(2)
        )
        lab.answers = [Answer(written)]
        calls = await client.ask()
        assert [call["function"]["name"] for call in calls] == ["read", "read"]
        assert not client.messages[-1]["content"]
        for call in calls:
            client.add_result(call)
        await client.ask()
        assert (lab.score.seen, lab.score.foreign) == (lab.score.sent, 0)
        assert "does not exist" not in lab.simulation.seen[-1].text
        assert len(lab.simulation.chats) == 2

    play(lab, test)


@pytest.mark.parametrize("fault", ["platform_tool", "web_search", "dual_response", "thinking_summary"])
def test_what_only_the_platform_does_is_no_call(fault: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab, tools=[make_tool("read", "Read a file")])
        client.say()
        lab.simulation.inject(fault)
        assert await client.ask() == []
        assert client.messages[-1]["content"].startswith("Answer F")
        assert client.messages[-1]["content"].count("Answer") == 1

    play(lab, test)


def test_a_call_that_was_not_delivered_is_not_remembered(tmp_path: Path) -> None:
    """The chat holds a call that the client does not know, so the next turn starts a new one."""
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab, tools=[make_tool("read", "Read a file")])
        client.extra = {"parallel_tool_calls": False}
        client.say()
        secret = lab.fact()
        lab.answers = [Answer("", (make_call(f"{lab.fact()}.txt"), make_call(f"{secret}.txt")))]
        [call] = await client.ask()
        client.add_result(call)
        await client.ask()
        assert secret not in lab.simulation.seen[-1].text

    play(lab, test)


def test_an_expired_token_is_reported_to_the_operator(tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab)
        client.say()
        lab.simulation.expired = True
        status, error = await client.post()
        assert status == 401
        assert "QWEN_TOKEN" in error["message"]

    play(lab, test)


def test_every_attempt_is_recorded(tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    async def test() -> None:
        client = Client(lab)
        client.say()
        lab.simulation.inject("internal_error")
        await client.ask()
        async with lab.session.get(lab.gateways[0] + "/v1/records") as response:
            [record] = (await response.json())["data"]
        errors = [attempt["error"] for attempt in record["attempts"]]
        assert errors == ["upstream_internal_error", ""]
        assert {attempt["upstream"] for attempt in record["attempts"]} == {record["upstream"]}
        assert sum(attempt["duration"] for attempt in record["attempts"]) <= record["duration"] + 0.001

    play(lab, test)


@pytest.mark.parametrize("path", ["/api/v2/chats/new", "/api/v2/chat/completions"])
@pytest.mark.parametrize("status", [200, 401, 500])
def test_an_upstream_that_repeats_its_token_reveals_nothing(path: str, status: int) -> None:
    async def answer(request: web.Request) -> web.Response:
        if not request.path.endswith(path):
            return web.json_response({"success": True, "data": {"id": "c-1"}})
        details = f"bad {request.headers['Authorization']}"
        body = {"success": False, "data": {"code": "Unauthorized", "details": details}}
        return web.json_response(body, status=status)

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/{path:.*}", answer)
        upstream = {"wire": "qwen_web", "accept_terms": True, "api_key": Secret("planted-token-4711")}
        async with gateway(app=app, upstream=upstream) as gate:
            refused = await gate.ask({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
            assert refused.status == 401 and b"bad " in refused.body
            assert b"planted-token-4711" not in refused.body

    asyncio.run(asyncio.wait_for(run(), 60))
