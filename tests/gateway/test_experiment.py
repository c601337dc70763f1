"""Requests in the arms of a rollout, through a running gateway: what is asked, what is delivered, what is recorded."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from support.gateway import ASK, READ, Gate, gateway, run

from toolglot.clients.toolsets import all_mappings
from toolglot.config.rollout import Arm, Plan, Rollout
from toolglot.core.identity import identify
from toolglot.gateway.dry_run import BROKEN, DryRun
from toolglot.gateway.telemetry.record import Record
from toolglot.sim import SimOptions
from toolglot.wires import all_wires

CALL = '<tool_call>\n{"name": "read", "arguments": {"filePath": "package.json"}}\n</tool_call>'
TEXT = f"Let me look.\n\n{CALL}\n"
SHELL_TEXT = "Now the tests:\n\n```bash\nnpm test\n```\n"
RUN = {
    "type": "function",
    "function": {
        "name": "execute_command",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}


class Records(logging.Handler):
    """The records of requests, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Record] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert isinstance(record.msg, Record)
        self.all.append(record.msg)

    @property
    def last(self) -> Record:
        return self.all[-1]


@pytest.fixture
def records() -> Iterator[Records]:
    logger, found = logging.getLogger("toolglot.requests"), Records()
    level = logger.level
    logger.addHandler(found)
    logger.setLevel(logging.INFO)
    yield found
    logger.removeHandler(found)
    logger.setLevel(level)


def whole(text: str) -> bytes:
    """An answer with a field that no one models and white space of its own: both must arrive."""
    message = {"role": "assistant", "content": text, "odd": [1.0, 1e3]}
    received = {"id": "x", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": message}]}
    received["choices"][0]["finish_reason"] = "stop"  # type: ignore[index]
    return json.dumps(received, indent=3).encode() + b"\n\n"


def stream(text: str, size: int = 5) -> list[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        received = {"id": "x", "object": "chat.completion.chunk", "odd": 1e3, "choices": [choice]}
        return b"data:  " + json.dumps(received).encode() + b"\r\n\r\n"

    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return [
        b": a comment\n\n",
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": piece}) for piece in pieces),
        chunk({}, "stop"),
        b"data: [DONE]\n\n",
    ]


class Upstream:
    """Gives the same bytes every time, cut in an awkward way, and keeps what it was asked."""

    def __init__(self, text: str = TEXT) -> None:
        self.text = text
        self.asked: list[Any] = []
        self.app = web.Application()
        self.app.router.add_post("/v1/chat/completions", self.answer)

    @property
    def streamed(self) -> bytes:
        return b"".join(stream(self.text))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        if not self.asked[-1].get("stream"):
            return web.Response(body=whole(self.text), content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        data = self.streamed
        for at in range(0, len(data), 37):
            await response.write(data[at : at + 37])
        await response.write_eof()
        return response


async def ask(gate: Gate, text: str = "Read it", *, streamed: bool = False, tools: Any = (READ,)) -> bytes:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "tools": list(tools), "stream": streamed}
    answer = await gate.ask(body)
    assert answer.status == 200
    return answer.body


# Arms that change nothing


@pytest.mark.parametrize("mode", ["text", "native"])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("stage", ["shadow", "off"])
def test_answers_pass_byte_for_byte(records: Records, stage: str, streamed: bool, mode: str) -> None:
    upstream = Upstream()

    async def test() -> None:
        async with gateway(app=upstream.app, mode=mode, rollout_stage=stage) as gate:
            assert await ask(gate, streamed=streamed) == (upstream.streamed if streamed else whole(TEXT))

    run(test)
    transformation = "reading" if mode == "text" else "rescue"
    record, (asked,) = records.last, upstream.asked
    assert asked["tools"] == [READ] and asked["messages"] == [{"role": "user", "content": "Read it"}]
    assert record.arms == {transformation: "dry_run" if stage == "shadow" else "off"}
    assert (record.calls, record.outcomes, record.mode) == (0, {}, "relay")
    if stage == "off":
        assert record.would is None
        return
    assert record.would is not None
    assert (record.would.tools, record.would.read_as) == (("read",), ("hermes",))
    assert record.would.outcomes == {transformation: {"success": 1}}
    assert record.would.confidences == (1.0,)


def test_what_would_be_delivered_is_what_is_delivered(records: Records) -> None:
    """The same answers, once in a dry run and once for real."""
    texts = [
        TEXT,
        CALL.replace("package.json", "a\\nb"),
        "No call.",
        CALL[:-20],
        CALL.replace('"read"', '"reed"'),
        CALL * 2,
    ]

    async def test() -> None:
        for text in texts:
            for stage in ("shadow", "full"):
                async with gateway(app=Upstream(text).app, mode="native", rollout_stage=stage) as gate:
                    for streamed in (False, True):
                        await ask(gate, streamed=streamed)

    run(test)
    assert len(records.all) == 4 * len(texts)
    for at in range(0, len(records.all), 4):
        for dry, real in zip(records.all[at : at + 2], records.all[at + 2 : at + 4], strict=True):
            assert dry.would is not None
            for name in ("calls", "tools", "read_as", "repairs", "rejected", "confidences", "error"):
                assert getattr(dry.would, name) == getattr(real, name)
            transformed = {name: ends for name, ends in real.outcomes.items() if name != "native"}
            assert dry.would.outcomes == transformed  # nothing was asked natively


def test_a_dry_run_between_two_wires_reads_the_events(records: Records) -> None:
    upstream = Upstream()
    body = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Read it"}]}
    body["tools"] = [{"name": "read", "input_schema": READ["function"]["parameters"]}]  # type: ignore[index]

    async def test() -> None:
        async with gateway(app=upstream.app, mode="text", rollout_stage="shadow") as gate:
            for streamed in (False, True):
                answer = await gate.ask(body | {"stream": streamed}, "/v1/messages")
                assert b"tool_use" not in answer.body

    run(test)
    for record in records.all:
        assert record.would is not None and record.would.tools == ("read",)
    assert upstream.asked[0]["tools"][0]["function"]["name"] == "read"


def test_a_failing_dry_run_does_not_affect_the_answer(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = Upstream()

    def break_down(*given: object) -> None:
        raise RuntimeError("a mistake of ours")

    async def test() -> None:
        async with gateway(app=upstream.app, mode="text", rollout_stage="shadow") as gate:
            monkeypatch.setattr("toolglot.reading.reader.Reader.feed", break_down)
            assert await ask(gate, streamed=True) == upstream.streamed
            assert await ask(gate) == whole(TEXT)

    run(test)
    for record in records.all:
        assert record.status == 200 and record.error == ""
        assert record.would is not None and record.would.error == BROKEN


def test_an_answer_that_cannot_be_parsed_passes_unchanged(records: Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 000, error handling: always the original content on error."""

    def break_down(*given: object) -> None:
        raise RuntimeError("a mistake of ours")

    async def test() -> None:
        async with gateway(app=Upstream().app, mode="text") as gate:
            await ask(gate)  # teaching reads what it writes, once
            monkeypatch.setattr("toolglot.reading.reader.Reader.close", break_down)
            choice = json.loads(await ask(gate))["choices"][0]
            assert (choice["message"]["content"], choice["finish_reason"]) == (TEXT, "stop")

    run(test)
    assert records.last.calls == 0 and records.last.outcomes == {} and records.last.tools == ()
    assert records.last.notes == ("the answer could not be read and is left as it is",)


def test_logged_bodies_show_what_would_have_been_delivered(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        settings: dict[str, Any] = {"mode": "text", "rollout_stage": "shadow", "log_bodies": True}
        async with gateway(app=Upstream().app, **settings) as gate:
            for streamed in (False, True):
                await ask(gate, streamed=streamed)

    with caplog.at_level(logging.INFO, "toolglot.bodies"):
        run(test)
    logged = [json.loads(record.getMessage()) for record in caplog.records if record.name == "toolglot.bodies"]
    assert [one["what"] for one in logged] == ["request", "upstream_request", "answer", "dry_run"] * 2
    for one in logged[3::4]:
        assert json.loads(one["body"]) == {
            "original": TEXT,
            "text": "Let me look.",
            "calls": [{"name": "read", "arguments": '{"filePath":"package.json"}'}],
        }


def test_an_upstream_error_passes_unchanged(records: Records) -> None:
    async def test() -> None:
        async with gateway(SimOptions(faults=("no_tools_400",)), mode="auto", rollout_stage="shadow") as gate:
            assert (await gate.ask(ASK | {"model": "qwen3"})).status == 400
        async with gateway(SimOptions(faults=("cut_mid_call",), dialect="hermes"), rollout_stage="shadow") as gate:
            await gate.ask(ASK | {"stream": True})

    run(test)
    refused, cut = records.all
    assert refused.would is None
    assert cut.would is not None and cut.would.calls == 0


# Arms side by side


def test_a_canary_divides_conversations_and_keeps_them(records: Records) -> None:
    answer_text = [f"Task {number}" for number in range(40)]
    wire = all_wires()["openai_chat"]

    async def test() -> None:
        async with gateway(app=Upstream().app, mode="text", rollout_reading="canary-50") as gate:
            for text in answer_text:
                first = {"role": "user", "content": text}
                turns = [
                    [first],
                    [first, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Go on"}],
                ]
                turns.append([{"role": "system", "content": "It is late."}, *turns[1]])
                arms = set()
                for turn in turns:
                    body = {"model": "m", "messages": turn, "tools": [READ]}
                    answer = await gate.ask(body)
                    arms.add("tool_calls" in answer.message)
                    asked = wire.decode_request(json.dumps(body).encode(), {}).conversation
                    arm = Rollout(plans={"reading": Plan(50)}).decide("reading", identify(asked))
                    assert ("tool_calls" in answer.message) is (arm is Arm.ON)
                    assert records.last.arms == {"reading": arm.value}
                    assert records.last.conversation == identify(asked)
                assert len(arms) == 1

    run(test)
    on = sum(record.arms["reading"] == "on" for record in records.all) / len(records.all)
    assert 0.25 < on < 0.75


def test_control_does_not_ask_twice(records: Records, tmp_path: Path) -> None:
    """In mode auto a model that refuses tools is asked again as text, but not where that is not on."""
    profiles = tmp_path / "profiles.toml"
    profiles.write_text('[[rule]]\nname = "all"\nmodel = ["*"]\nnative = true\n')

    async def test() -> None:
        for stage, status in (("full", 200), ("off", 400)):
            options = SimOptions(faults=("no_tools_400",))
            async with gateway(options, mode="auto", rollout_reading=stage, profiles=str(profiles)) as gate:
                assert (await gate.ask(ASK)).status == status

    run(test)
    assert [record.arms for record in records.all] == [{"rescue": "on", "reading": "on"}, {"rescue": "on"}]


# Carefulness


def test_only_listed_tools_are_made_out_of_text(records: Records) -> None:
    other = CALL.replace('"read"', '"write"')
    tools = (READ, {"type": "function", "function": {"name": "write", "parameters": READ["function"]["parameters"]}})  # type: ignore[index]

    async def test() -> None:
        for text, called in ((CALL, 1), (f"Look:\n\n{other}\n\nDone.\n", 0)):
            for streamed in (False, True):
                plan = {"stage": "full", "tools": ["read"]}
                async with gateway(app=Upstream(text).app, mode="text", rollout_reading=plan) as gate:
                    answer = await ask(gate, streamed=streamed, tools=tools)
                assert records.last.calls == called
                assert records.last.outcomes == {"reading": {"success" if called else "unknown_tool": 1}}
                if not called and not streamed:
                    assert json.loads(answer)["choices"][0]["message"]["content"] == text

    run(test)


def test_confidence_is_set_for_each_transformation(records: Records) -> None:
    fenced = '```tool_code\n{"tool": "read", "filePath": "a"}\n```'

    async def test() -> None:
        for least, called in ((0.95, 1), (0.96, 0)):
            plan = {"min_confidence": least}
            async with gateway(app=Upstream(fenced).app, mode="text", rollout_reading=plan) as gate:
                await ask(gate)
            assert records.last.calls == called

    run(test)
    assert records.all[0].confidences == (0.95,)
    assert records.all[1].outcomes == {"reading": {"low_confidence": 1}}


@pytest.mark.parametrize(
    ("stage", "delivered", "would"), [("full", ("execute_command",), None), ("shadow", (), 1), ("off", (), None)]
)
def test_shell_fences_have_an_arm_of_their_own(records: Records, stage: str, delivered: Any, would: int | None) -> None:
    async def test() -> None:
        settings: dict[str, Any] = {"mode": "text", "shell": "npm", "min_confidence": "0.8", "rollout_shell": stage}
        async with gateway(app=Upstream(SHELL_TEXT).app, **settings) as gate:
            for streamed in (False, True):
                await ask(gate, streamed=streamed, tools=[RUN])

    run(test)
    for record in records.all:
        assert record.arms == {"reading": "on", "shell": {"full": "on", "shadow": "dry_run", "off": "off"}[stage]}
        assert record.transformed == delivered
        assert (record.would and record.would.calls) == would
        if would:
            assert record.would is not None and record.would.outcomes == {"shell": {"success": 1}}


def test_a_confidence_of_their_own_lets_shell_fences_in(records: Records) -> None:
    """Seed 000, configuration: 0.80 for shell commands under a general 0.90."""

    async def test() -> None:
        for plan, called in (({"min_confidence": 0.8}, 1), ("full", 0)):
            async with gateway(app=Upstream(SHELL_TEXT).app, mode="text", shell="npm", rollout_shell=plan) as gate:
                await ask(gate, tools=[RUN])
            assert records.last.calls == called

    run(test)
    assert [record.outcomes for record in records.all] == [{"shell": {"success": 1}}, {"shell": {"low_confidence": 1}}]
    assert any("npm test" in note for note in records.all[0].notes)


# Tool sets


@pytest.mark.parametrize("stage", ["full", "shadow", "off"])
def test_tool_sets_are_mapped_where_that_is_on(records: Records, stage: str) -> None:
    client = next(one for one in all_mappings() if (one.client.name, one.model.name) == ("opencode", "claude_code"))
    names = {tool.name for tool in client.tools}
    tools = [{"type": "function", "function": {"name": one.name, "parameters": one.parameters}} for one in client.tools]

    async def test() -> None:
        settings: dict[str, Any] = {"model": {"editing": "claude_code"}, "mode": "native", "rollout_editing": stage}
        async with gateway(SimOptions(dialect="native"), **settings) as gate:
            body = {"model": "m", "messages": [{"role": "user", "content": 'Read the file "a.txt"'}], "tools": tools}
            (call,) = (await gate.ask(body)).message["tool_calls"]
            assert call["function"]["name"] == "read"
            asked = {tool["function"]["name"] for tool in gate.record.bodies[-1]["tools"]}
            assert ("Read" in asked) is (stage == "full")
            assert (asked == names) is (stage != "full")

    run(test)
    assert records.last.arms == {"rescue": "on", "editing": {"full": "on", "shadow": "dry_run", "off": "off"}[stage]}
    mapped = {"editing": {"success": 1}} if stage == "full" else {}
    assert records.last.outcomes == mapped | {"native": {"success": 1}}
    assert records.last.would is None


# Complaints


def test_a_complaint_is_recorded_with_the_arm(records: Records) -> None:
    text = [
        {"role": "user", "content": "<task>Fix it</task>"},
        {"role": "assistant", "content": "I would look first."},
        {"role": "user", "content": "[ERROR] You did not use a tool in your previous response! Please retry."},
    ]

    async def test() -> None:
        async with gateway(app=Upstream().app, mode="text") as gate:
            await gate.ask({"model": "m", "messages": text, "tools": [READ]})
            await gate.ask({"model": "m", "messages": text})
            metrics = (await gate.get("/metrics")).body.decode()
        for labels in (
            'arm="on",complaint="no_tool",transformation="reading"',
            'arm="off",complaint="no_tool",transformation="none"',
        ):
            assert f"toolglot_complaints_total{{{labels}}} 1.0" in metrics

    run(test)
    assert [record.complaints for record in records.all] == [("no_tool",), ("no_tool",)]


# Dry runs


@given(st.lists(st.binary(max_size=30), max_size=5))
def test_any_bytes_pass_a_dry_run(pieces: list[bytes]) -> None:
    from toolglot.gateway.delivery import Delivery
    from toolglot.gateway.telemetry.log import Telemetry

    watch = Telemetry().begin("r", "openai_chat").start_dry_run("text")
    dry_run = DryRun(Delivery(None, watch), all_wires()["openai_chat"].open_decoder(lambda: "call"))
    for piece in pieces:
        dry_run.feed(piece)
    dry_run.close()
