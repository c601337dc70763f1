"""The log at ``debug`` says what was decided and why; ``explain`` and records suggest the mapping of editing tools."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from clients.test_toolsets import PAIRS
from support.gateway import ASK, gateway, run

from toolglot.clients.edit_failures import edits_fail
from toolglot.clients.toolsets import suggest_toolset
from toolglot.core.conversation import Message, Text, ToolResult
from toolglot.sim import Answer, ScriptedAnswer, SimOptions

BAD = "<read>\n<path>a</path>\n</read>"
GOOD = "<read>\n<filePath>a</filePath>\n</read>"


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
def test_decisions_are_logged_at_debug_before_each_request(level: int, caplog: pytest.LogCaptureFixture) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwx"

    async def test() -> None:
        script = tuple(ScriptedAnswer(Answer(text), times=1) for text in (BAD, GOOD))
        settings: Any = {"mode": "text", "dialect": "roo_xml", "recovery_retries": 1, "recovery_hold_calls": "always"}
        async with gateway(SimOptions(script=script), api_key=secret, **settings) as gate:
            answer = await gate.ask(ASK | {"model": f"m {secret}"})
            assert answer.message["tool_calls"]

    with caplog.at_level(level, "toolglot"):
        run(test)
    lines = [record.getMessage() for record in caplog.records if record.name == "toolglot.decisions"]
    assert len(lines) == (2 if level == logging.DEBUG else 0)
    for line, words in zip(lines, ("1 further requests", "0 further requests"), strict=False):
        assert "tools text (mode text, dialect roo_xml); because the mode text is set" in line and words in line
        assert "held until they are checked" in line and "package.json" not in line and secret not in line
    assert not lines or "asked again" in lines[1]


def result(text: str) -> Message:
    return Message("tool", (ToolResult("c", "edit", (Text(text),)),))


@pytest.mark.parametrize(
    "failed",
    [
        "String to replace not found in file.",
        "No match found for the specified 'old_string'",
        "Failed to find expected lines in a.py:",
        "0 occurrences found for old_string in a.py",
        "SEARCH block failed to exactly match lines in a.py",
    ],
)
def test_edits_that_fail_twice_are_noticed(failed: str) -> None:
    assert edits_fail([result(failed), Message("assistant", ()), result(failed)])
    assert not edits_fail([result(failed), Message("assistant", ()), result("done")])
    assert not edits_fail([result("done"), Message("assistant", ()), result(failed)])


@pytest.mark.parametrize(
    ("client", "model", "fails", "suggested"),
    [
        ("roo", "claude-sonnet-5", False, "anthropic"),
        ("claude_code", "claude-sonnet-5", True, ""),
        ("anthropic", "claude-sonnet-5", True, ""),
        ("roo", "qwen3-coder", False, ""),
        ("roo", "qwen3-coder", True, "anthropic"),
        ("anthropic", "qwen3-coder", True, ""),
    ],
)
def test_a_tool_set_is_suggested(client: str, model: str, fails: bool, suggested: str) -> None:
    other = next(pair for names, pair in PAIRS.items() if names[0] == client)
    tools = [target.tool for _, target in other.client_side.tools]
    assert suggest_toolset(tools, model, fails) == suggested


@pytest.mark.parametrize("editing", ["", "anthropic"])
def test_the_record_suggests_the_mapping_where_edits_fail(editing: str, caplog: pytest.LogCaptureFixture) -> None:
    tools: list[Any] = [
        {"type": "function", "function": {"name": target.tool.name, "parameters": target.tool.parameters}}
        for _, target in PAIRS["roo", "anthropic"].client_side.tools
    ]
    call = {"id": "c", "type": "function", "function": {"name": "edit", "arguments": "{}"}}
    failed = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "No match found for 'old_string'"},
    ]

    async def test() -> None:
        async with gateway(SimOptions(), mode="text", model={"editing": editing}) as gate:
            for turns in (1, 2):
                await gate.ask({"model": "m", "messages": [*ASK["messages"], *failed * turns], "tools": tools})

    with caplog.at_level(logging.INFO, "toolglot.requests"):
        run(test)
    notes = [json.loads(str(one.msg))["notes"] for one in caplog.records if one.name == "toolglot.requests"]
    found = [any('set editing = "anthropic"' in note for note in some) for some in notes]
    assert found == [False, not editing]
