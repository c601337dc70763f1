"""Replays through the gateway, and turns as something to paste."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support import samples
from support.console import OpenedConsole, opened_console
from support.gateway import READ, run

from toolglot.sim import SimOptions


async def replay(console: OpenedConsole, turn: str, **choice: Any) -> Any:
    answer = await console.call(f"/turns/{turn}/replay", "POST", choice)
    assert answer.status == 200, answer.body
    return await console.get(f"/turns/{answer.json['id']}")


def test_a_turn_is_replayed_in_another_dialect(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask()
            found = await console.only_session()
            [turn] = found["turns"]
            again = await replay(console, turn["id"], dialect="qwen3_coder")
            assert again["record"]["replay_of"] == turn["id"]
            assert (again["record"]["dialect"], again["record"]["tools"]) == ("qwen3_coder", ["read"])
            assert "<function=read>" in again["attempts"][0]["text"]
            assert again["session"] == found["session"]["id"]
            after = await console.only_session()
            assert [one["replay_of"] for one in after["turns"]] == ["", turn["id"]]
            assert after["session"]["turns"] == 1  # a replay is no turn of the client
            third = await replay(console, turn["id"])
            assert third["record"]["dialect"] == "hermes"  # the settings of a replay are its own

    run(test)


def test_mode_model_and_streaming_can_be_changed(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask()
            [turn] = (await console.only_session())["turns"]
            native = await replay(console, turn["id"], mode="native", model="another", stream=False)
            record = native["record"]
            assert (record["mode"], record["model"], record["stream"]) == ("native", "another", False)
            assert json.loads(native["attempts"][0]["request"])["tools"]
            assert "tools" not in json.loads((await console.get(f"/turns/{turn['id']}"))["attempts"][0]["request"])

    run(test)


def test_recovery_can_be_changed(tmp_path: Path) -> None:
    """A model that first writes a call without its argument, and then a right one."""
    from aiohttp import web

    answers = ['<tool_call>\n{"name": "read", "arguments": {"path": 5}}\n</tool_call>'] * 2
    answers.append('<tool_call>\n{"name": "read", "arguments": {"filePath": "a"}}\n</tool_call>')
    texts = iter(answers)

    async def answer(request: web.Request) -> web.Response:
        message = {"role": "assistant", "content": next(texts)}
        return web.json_response({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async def test() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        async with opened_console(tmp_path, app=app) as console:
            await console.ask(stream=False)
            [turn] = (await console.only_session())["turns"]
            assert len(turn["attempts"]) == 1
            again = await replay(console, turn["id"], recovery={"retries": 1})
            assert len(again["record"]["attempts"]) == 2 and again["record"]["tools"] == ["read"]
            first, second = again["attempts"]
            assert first["feedback"] == [] and first["segments"][0][0] == "rejected"
            assert "`filePath`" in second["feedback"][-1]["text"]
            assert [kind for kind, _, _ in second["segments"]].count("call") > 0

    run(test)


@pytest.mark.parametrize(
    ("choice", "status"),
    [
        ({"dialect": "nonsense"}, 400),
        ({"mode": "nonsense"}, 400),
        ({"recovery": {"retries": 9}}, 400),
        ({"recovery": {"odd": 1}}, 400),
        ({"odd": 1}, 400),
        ([], 400),
    ],
    ids=str,
)
def test_a_choice_that_is_not_valid(tmp_path: Path, choice: object, status: int) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask()
            [turn] = (await console.only_session())["turns"]
            assert (await console.call(f"/turns/{turn['id']}/replay", "POST", choice)).status == status

    run(test)


def test_a_turn_without_texts_cannot_be_replayed(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, store_bodies="off") as console:
            await console.ask()
            [turn] = (await console.only_session())["turns"]
            detail = await console.get(f"/turns/{turn['id']}")
            assert not detail["recorded"] and "attempts" not in detail
            answer = await console.call(f"/turns/{turn['id']}/replay", "POST", {})
            assert answer.status == 400 and "store.bodies" in answer.error["message"]
            assert (await console.call("/turns/nothing/replay", "POST", {})).status == 404

    run(test)


def test_a_replay_that_the_upstream_refuses_is_recorded(tmp_path: Path) -> None:
    from aiohttp import web

    working = True

    async def answer(request: web.Request) -> web.Response:
        if not working:
            return web.json_response({"error": {"message": "no credits"}}, status=402)
        message = {"role": "assistant", "content": "Hello"}
        return web.json_response({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async def test() -> None:
        nonlocal working
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        async with opened_console(tmp_path, app=app) as console:
            await console.ask(stream=False)
            [turn] = (await console.only_session())["turns"]
            working = False
            again = await replay(console, turn["id"])
            assert (again["record"]["outcome"], again["record"]["status"]) == ("failed", 402)
            assert "no credits" in " ".join(again["record"]["notes"])

    run(test)


def test_requests_of_other_wires_are_replayed(tmp_path: Path) -> None:
    schema = READ["function"]["parameters"]  # type: ignore[index]
    tool = {"name": "read", "description": "Read", "parameters": schema}
    text = 'Read the file "package.json"'
    requests = {
        "/v1/messages": {"model": "sim", "max_tokens": 99, "messages": [{"role": "user", "content": text}],
                         "tools": [{"name": "read", "input_schema": schema}]},
        "/v1/responses": {"model": "sim", "input": text, "tools": [{"type": "function", **tool}]},
        "/v1beta/models/sim:generateContent": {"contents": [{"role": "user", "parts": [{"text": text}]}],
                                               "tools": [{"functionDeclarations": [tool]}]},
        "/v1beta/models/sim:streamGenerateContent?alt=sse": {"contents": [{"role": "user", "parts": [{"text": text}]}],
                                                             "tools": [{"functionDeclarations": [tool]}]},
        "/api/chat": {"model": "sim", "messages": [{"role": "user", "content": text}],
                      "tools": [{"type": "function", "function": tool}]},
    }  # fmt: skip

    async def test() -> None:
        async with opened_console(tmp_path) as console:
            for path, body in requests.items():
                async with console.http.post(console.address + path, json=body) as response:
                    assert response.status == 200, await response.text()
            await console.settle()
            sessions = (await console.get("/sessions"))["sessions"]
            assert len(sessions) == len(requests)
            for session in sessions:
                [turn] = (await console.get(f"/sessions/{session['id']}"))["turns"]
                detail = await console.get(f"/turns/{turn['id']}")
                assert "call" in [event["kind"] for event in detail["events"]], turn["wire"]
                again = await replay(console, turn["id"], dialect="glm45")
                record = again["record"]
                assert (record["wire"], record["tools"], record["dialect"]) == (turn["wire"], ["read"], "glm45")
                assert record["stream"] == turn["stream"]
                snippets = await console.get(f"/turns/{turn['id']}/snippets")
                assert console.address in snippets["curl"]

    run(test)


def test_snippets_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def execute(*command: str) -> str:
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        assert process.returncode == 0
        return output.decode()

    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask('Read the file "it\'s `$HOME` \\n %s.json"')
            [turn] = (await console.only_session())["turns"]
            snippets = await console.get(f"/turns/{turn['id']}/snippets")
            for output in (
                await execute("sh", "-c", snippets["curl"]),
                await execute(sys.executable, "-c", snippets["python"]),
            ):
                assert '"name":"read"' in output and "[DONE]" in output
            await console.settle()
            requests = [
                json.loads((await console.get(f"/turns/{one['id']}"))["request"])
                for session in (await console.get("/sessions"))["sessions"]
                for one in (await console.get(f"/sessions/{session['id']}"))["turns"]
            ]
            assert len(requests) == 3 and requests[0] == requests[1] == requests[2]
            check_sample(snippets)

    def check_sample(snippets: dict[str, Any]) -> None:
        [written] = snippets["samples"]
        (tmp_path / "tools").mkdir()
        (tmp_path / "tools" / "recorded.json").write_text(snippets["tools"], "utf-8")
        (tmp_path / "hermes").mkdir()
        file = tmp_path / "hermes" / "recorded.md"
        file.write_bytes(written.encode())
        monkeypatch.setattr(samples, "DATA", tmp_path)
        sample = samples.parse_sample(file)
        assert samples.render_sample(sample) == written
        assert samples.read_sample(sample) == sample.expected
        assert [name for name, _ in sample.expected.calls] == ["read"]

    run(test)


def test_a_long_request_as_curl(tmp_path: Path) -> None:
    """An argument of a command has at most 128 KiB on Linux."""

    async def test() -> None:
        async with opened_console(tmp_path) as console:
            await console.ask("END it's $HOME `x` \\" + 40_000 * "é")
            [turn] = (await console.only_session())["turns"]
            snippets = await console.get(f"/turns/{turn['id']}/snippets")
            process = await asyncio.create_subprocess_exec(
                "sh", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            output, _ = await process.communicate(snippets["curl"].encode())
            assert process.returncode == 0 and b"[DONE]" in output
            await console.settle()
            texts = [
                (await console.get(f"/turns/{one['id']}"))["request"]
                for session in (await console.get("/sessions"))["sessions"]
                for one in (await console.get(f"/sessions/{session['id']}"))["turns"]
            ]
            assert len(texts) == 2 and json.loads(texts[0]) == json.loads(texts[1])

    run(test)


def test_each_attempt_is_a_sample_of_its_own(tmp_path: Path) -> None:
    async def test() -> None:
        options = SimOptions(defects=1, classes=("missing_required",))
        async with opened_console(tmp_path, options, recovery_retries=1, recovery_hold_calls="always") as console:
            await console.ask()
            [turn] = (await console.only_session())["turns"]
            attempts = (await console.get(f"/turns/{turn['id']}"))["attempts"]
            written = (await console.get(f"/turns/{turn['id']}/snippets"))["samples"]
            assert len(attempts) == len(written) == 2
            for attempt, sample in zip(attempts, written, strict=True):
                assert f"## Written\n\n```text\n{attempt['text']}\n```" in sample
            assert "### Rejected `missing_argument`" in written[0] and "### Call `read`" in written[1]

    run(test)
