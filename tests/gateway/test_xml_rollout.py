"""XML clients in the arms of a rollout: what is asked, what is delivered, what is recorded."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.gateway import gateway, run
from support.xmlprompts import write_cline, write_roo

from toolglot.gateway.telemetry.record import Record
from toolglot.sim import SimOptions
from toolglot.sim.script import parse_script

FENCE = 'Let me check:\n```tool_code\n{"tool": "list_files", "path": "."}\n```'
XML = "Let me check:\n\n<list_files>\n<path>.</path>\n<recursive>false</recursive>\n</list_files>"
PROMPT = write_roo()
COMPLAINT = "[ERROR] You did not use a tool in your previous response! Please retry with a tool use."


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.all: list[Record] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert isinstance(record.msg, Record)
        self.all.append(record.msg)


@pytest.fixture
def records() -> Iterator[list[Record]]:
    logger, kept = logging.getLogger("toolglot.requests"), Kept()
    level = logger.level
    logger.addHandler(kept)
    logger.setLevel(logging.INFO)
    yield kept.all
    logger.removeHandler(kept)
    logger.setLevel(level)


def ask(stream: bool = False, prompt: str = PROMPT, model: str = "sim", *more: dict[str, str]) -> dict[str, Any]:
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": "Go"}, *more]
    return {"model": model, "messages": messages, "stream": stream}


def sim(text: str = FENCE, **options: Any) -> SimOptions:
    return SimOptions(script=parse_script({"answer": [{"text": text, "times": 99}]}), **options)


STAGES: list[tuple[str, str, str]] = [("full", "on", XML), ("shadow", "dry_run", FENCE), ("off", "off", FENCE)]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("mode", ["text", "native"])
@pytest.mark.parametrize("stage, arm, expected", STAGES)
def test_stages(records: list[Record], stage: str, arm: str, expected: str, mode: str, stream: bool) -> None:
    """A transformation that is off changes nothing; a dry run records what it would have done."""

    async def check() -> None:
        async with gateway(sim(chunk=4), mode=mode, rollout_xml=stage) as gate:
            answer = await gate.ask(ask(stream))
            text = answer.joined[0] if stream else answer.message["content"]
            assert re.sub(r"<id>.*</id>\n", "", text) == expected
            if stage != "full":
                assert gate.record.requests[-1].body == ask(stream)

    run(check)
    (record,) = records
    assert record.client == "roo-3.29"
    assert record.arms == {"xml": arm}
    success = {"xml": {"success": 1}}
    if stage == "full":
        leaked = {"native": {"leaked": 1}} if record.mode == "native" else {}
        assert (record.outcomes, record.tools, record.would) == (success | leaked, ("list_files",), None)
        assert record.transformed == ("list_files",)
        assert record.confidences == (0.95,)
    elif stage == "shadow":
        assert (record.outcomes, record.calls) == ({}, 0)
        assert record.would is not None
        assert (record.would.outcomes, record.would.tools) == (success, ("list_files",))
    else:
        assert (record.outcomes, record.would) == ({}, None)


def test_outcomes_of_calls_that_cannot_be_sent(records: list[Record]) -> None:
    """A search with its own closing tag cannot be rendered for Cline; one without an expression is rejected by the reader."""
    calls = ['{"path": ".", "regex": "</regex>"}', '{"path": ".", "file_pattern": "*.ts"}']

    async def check() -> None:
        for arguments in calls:
            text = f'<tool_call>\n{{"name": "search_files", "arguments": {arguments}}}\n</tool_call>'
            async with gateway(sim(text), mode="text") as gate:
                answer = (await gate.ask(ask(prompt=write_cline()))).message["content"]
                assert "<search_files>" not in answer

    run(check)
    assert [record.outcomes for record in records] == [{"xml": {"invalid_value": 1}}, {"xml": {"missing_argument": 1}}]


def test_only_listed_tools_and_sure_calls(records: list[Record]) -> None:
    async def received(plan: dict[str, Any]) -> str:
        async with gateway(sim(), mode="text", rollout_xml=plan) as gate:
            return str((await gate.ask(ask())).message["content"])

    async def check() -> None:
        assert await received({"tools": ["list_files"]}) == XML
        assert await received({"tools": ["read_file"]}) == FENCE
        assert await received({"min_confidence": 0.95}) == XML
        assert await received({"min_confidence": 0.96}) == FENCE

    run(check)


def test_a_canary_keeps_conversations_apart(records: list[Record]) -> None:
    delivered: list[bool] = []

    async def check() -> None:
        async with gateway(sim(), mode="text", rollout_xml="canary-50") as gate:
            for number in range(20):
                body = ask()
                body["messages"][1]["content"] = f"Go {number}"
                for _ in range(2):
                    answer = (await gate.ask(body)).message["content"]
                    assert answer in (XML, FENCE)
                    delivered.append(answer == XML)

    run(check)
    arms = [record.arms["xml"] for record in records]
    assert [arm == "on" for arm in arms] == delivered
    assert arms[::2] == arms[1::2]
    assert 4 <= arms[::2].count("on") <= 16
    assert set(arms) == {"on", "control"}


def test_the_clients_complaint_is_recorded(records: list[Record]) -> None:
    async def check() -> None:
        async with gateway(sim(), mode="text") as gate:
            await gate.ask(
                ask(
                    False,
                    PROMPT,
                    "sim",
                    {"role": "assistant", "content": "Hm."},
                    {"role": "user", "content": COMPLAINT},
                )
            )

    run(check)
    assert records[0].complaints == ("no_tool",)


@pytest.mark.parametrize("stream", [False, True])
def test_a_dry_run_beside_an_answer_that_is_rendered(records: list[Record], stream: bool) -> None:
    """Shell fences in a dry run take nothing from what XML clients are given."""
    text = "I run it.\n\n```bash\nnpm test\n```"

    async def check() -> None:
        settings: dict[str, Any] = {"mode": "text", "rollout_shell": "shadow", "shell": "npm", "min_confidence": "0.8"}
        for answer_text, received in ((FENCE, XML), (text, text)):
            async with gateway(sim(answer_text), **settings) as gate:
                answer = await gate.ask(ask(stream))
                assert (answer.joined[0] if stream else answer.message["content"]) == received

    run(check)
    assert [record.arms for record in records] == [{"xml": "on", "shell": "dry_run"}] * 2
    assert [record.would.tools if record.would else () for record in records] == [("list_files",), ("execute_command",)]
