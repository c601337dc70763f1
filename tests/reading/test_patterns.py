"""Patterns: ways of writing calls that ordinary text has too, with a switch and a confidence for each.

The names, the defaults and the confidences are those of "Roo-Cline Response Transformer Specification" (Configuration).
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from support.gateway import gateway, run
from support.rows import in_one_test
from support.samples import chunkings, read_events

import toolglot
from toolglot.core.call_patterns import KEYS, PATTERNS, to_snake_case
from toolglot.core.errors import UsageError
from toolglot.core.events import Event, Reason, TextDelta
from toolglot.dialects.records import all_dialects
from toolglot.sim import Answer as SimAnswer
from toolglot.sim import ScriptedAnswer, SimOptions


def tool(name: str, *keys: str) -> dict[str, Any]:
    properties = {key: {"type": "string"} for key in keys}
    parameters = {"type": "object", "properties": properties, "required": list(keys[:1])}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


TOOLS = [tool("list_files", "path"), tool("execute_command", "command", "cwd")]
SHELL: dict[str, Any] = {"shell": ("npm",), "min_confidence": 0.8}
TEXTS = {
    "json_code_blocks": [
        'I\'ll look:\n\n```tool_code\n{"tool": "list_files", "path": "."}\n```',
        '```json\n{"name": "list_files", "arguments": {"path": "."}}\n```',
        '```json\n[{"function": "list_files", "parameters": {"path": "."}}]\n```',
        '```json\n{"action": "list_files", "action_input": {"path": "."}}\n```',
        'Action:\n```json\n[{"tool_name": "list_files", "parameters": {"path": "."}}]\n```',
    ],
    "shell_commands": ["Let me run the tests:\n\n```bash\nnpm test\n```", "```sh\nnpm test\n```"],
    "bare_json": [
        '{"name": "list_files", "arguments": {"path": "."}}',
        'Well.\n[{"name": "list_files", "arguments": {"path": "."}}]',
        '[{"list_files": {"path": "."}}]',
        '["list_files", {"path": "."}]',
    ],
    "python_calls": [
        '[list_files(path=".")]',
        'list_files(path=".")',
        "[\"list_files(path='.')\"]",
        '```python\n[list_files(path=".")]\n```',
        '```tool_code\nprint(default_api.list_files(path="."))\n```',
    ],
}
ROWS = [(name, text) for name, texts in TEXTS.items() for text in texts]
HINTS = ("auto", "hermes", "roo_xml", "qwen3-max", "bare_json", "fenced_json", "gemini-2.5-pro")


def left_of(text: str, pieces: list[str], **options: Any) -> tuple[list[Event], list[tuple[str, Reason]]]:
    reader = toolglot.Reader(TOOLS, **options)
    events = [event for piece in pieces for event in reader.feed(piece)] + reader.close()
    assert all(isinstance(event, TextDelta) for event in events), events
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text
    return events, reader.left


def test_every_pattern_is_made_of_dialects_that_are_ordinary_text_too() -> None:
    known = {dialect.name for dialect in all_dialects()}
    named = [dialect for dialects in PATTERNS.values() for dialect in dialects]
    assert set(named) <= known and len(named) == len(set(named))


@in_one_test("hint", HINTS)
@in_one_test(("name", "text"), ROWS)
def test_a_pattern_that_is_switched_off_stays_text(name: str, text: str, hint: str) -> None:
    options = SHELL | {"dialect": hint}
    (call,) = toolglot.read(text, TOOLS, **options).calls
    assert call.dialect in PATTERNS[name]
    off = options | {"patterns": {name: False}}
    for _, pieces in chunkings(text, "patterns"):
        _, left = left_of(text, list(pieces), **off)
        assert [reason for _, reason in left] == [Reason.SWITCHED_OFF]
    others = {other: False for other in PATTERNS if other != name}
    assert len(toolglot.read(text, TOOLS, **options | {"patterns": others}).calls) == 1


@in_one_test(("name", "text"), ROWS)
def test_a_confidence_takes_the_place_of_that_of_the_dialects(name: str, text: str) -> None:
    options: dict[str, Any] = {"shell": ("npm",), "min_confidence": 0.9}
    (call,) = toolglot.read(text, TOOLS, **options, patterns={f"{name}_confidence": 0.97}).calls
    assert call.confidence == 0.97
    _, left = left_of(text, [text], **options, patterns={f"{name}_confidence": 0.89})
    assert [reason for _, reason in left] == [Reason.LOW_CONFIDENCE]
    thresholds = dict.fromkeys(PATTERNS[name], 0.5)
    given: dict[str, Any] = {"patterns": {f"{name}_confidence": 0.6}, "thresholds": thresholds}
    assert toolglot.read(text, TOOLS, **options, **given).calls[0].confidence == 0.6


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "list_files", "arguments": {"path": "."}}\n</tool_call>',
        '<tool_call>\n```json\n{"name": "list_files", "arguments": {"path": "."}}\n```\n</tool_call>',
        "<list_files>\n<path>.</path>\n</list_files>",
        '<tool_code>\nprint(default_api.list_files(path="."))\n</tool_code>',
        '<|python_start|>[list_files(path=".")]<|python_end|>',
        "```xml\n<tool_call>\n{}\n</tool_call>\n```",
    ],
)
def test_calls_between_marks_belong_to_no_pattern(text: str) -> None:
    off: dict[str, Any] = {name: False for name in PATTERNS} | {f"{name}_confidence": 0.1 for name in PATTERNS}
    assert read_events([text], tools=TOOLS, patterns=off) == read_events([text], tools=TOOLS)


def test_what_surrounds_a_pattern_that_is_off_is_read_as_ever() -> None:
    fence, element = TEXTS["json_code_blocks"][0], "<list_files>\n<path>src</path>\n</list_files>"
    text = f"{fence}\n\nThen:\n\n{element}"
    rng = random.Random(7)
    whole = read_events([text], tools=TOOLS, patterns={"json_code_blocks": False})
    assert [event.name for event in whole if hasattr(event, "name")] == ["list_files"]
    for _ in range(20):
        cuts = sorted(rng.sample(range(1, len(text)), 5))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert read_events(pieces, tools=TOOLS, patterns={"json_code_blocks": False}) == whole


# a shell fence with a working directory


@pytest.mark.parametrize(("cwd", "keys"), [("", ("command", "cwd")), ("/src", ("command",)), ("", ("command",))])
def test_a_working_directory_can_be_required(cwd: str, keys: tuple[str, ...]) -> None:
    text = TEXTS["shell_commands"][0]
    offered = [tool("execute_command", *keys)]
    given = SHELL | {"shell_cwd": cwd}
    assert len(toolglot.read(text, offered, **given).calls) == 1
    reader = toolglot.Reader(offered, **given, patterns={"require_cwd": True})
    events = [*reader.feed(text), *reader.close()]
    assert events and all(isinstance(event, TextDelta) for event in events)
    assert [(miss.dialect, miss.defects[0].reason) for miss in reader.missed] == [
        ("shell_fence", Reason.MISSING_ARGUMENT)
    ]


def test_a_working_directory_that_is_given_is_enough() -> None:
    given = SHELL | {"shell_cwd": "/src", "patterns": {"require_cwd": True}}
    (call,) = toolglot.read(TEXTS["shell_commands"][0], TOOLS, **given).calls
    assert call.arguments == '{"command":"npm test","cwd":"/src"}'


# the spelling of the seed, and wrong ones


def test_camel_case_is_read() -> None:
    given = {"jsonCodeBlocks": False, "shellCommands": True, "naturalLanguage": False, "shellCommandsConfidence": 0.95}
    assert toolglot.read(TEXTS["json_code_blocks"][0], TOOLS, patterns=given).calls == []
    assert len(toolglot.read(TEXTS["shell_commands"][0], TOOLS, shell=("npm",), patterns=given).calls) == 1
    assert {to_snake_case(key) for key in KEYS} == set(KEYS)


@in_one_test(
    ("given", "error"),
    [
        ({"json": False}, "unknown key 'json'"),
        ({"json_code_blocks": "no"}, "must be true or false"),
        ({"json_code_blocks": 0.9}, "must be true or false"),
        ({"bare_json_confidence": True}, "a number from 0 to 1"),
        ({"bare_json_confidence": 1.5}, "a number from 0 to 1"),
        ({"bare_json_confidence": float("nan")}, "a number from 0 to 1"),
        ({"natural_language": True}, "prose is never read as a call"),
        ({"requireCwd": True, "require_cwd": False}, "twice"),
        (["json_code_blocks"], "a mapping"),
    ],
)
def test_wrong_patterns_are_refused(given: Any, error: str) -> None:
    with pytest.raises(UsageError) as caught:
        toolglot.Reader(TOOLS, patterns=given)
    assert error in caught.value.message


# through the gateway


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["json_code_blocks", "bare_json", "python_calls"])
def test_the_gateway_keeps_to_its_settings(name: str, stream: bool) -> None:
    text = TEXTS[name][0]

    async def check() -> None:
        sim = SimOptions(script=(ScriptedAnswer(SimAnswer(text)),), chunk=6)
        body = {"model": "sim", "messages": [{"role": "user", "content": "Go"}], "tools": TOOLS, "stream": stream}
        for switch in (True, False):
            given: dict[str, Any] = {f"patterns_{name}": switch}
            async with gateway(sim, mode="text", **given) as gate:
                answer = await gate.ask(body)
                report = (await gate.get("/metrics")).body.decode()
            if stream:
                calls, answer_text = answer.joined[1], answer.joined[0]
            else:
                calls, answer_text = answer.message.get("tool_calls") or [], answer.message.get("content")
            assert len(calls) == switch
            assert switch or answer_text == text
            assert ("switched_off" in report) is not switch

    run(check)


@pytest.mark.parametrize("stream", [False, True])
def test_the_gateway_requires_a_working_directory(stream: bool) -> None:
    text = TEXTS["shell_commands"][0]

    async def check() -> None:
        sim = SimOptions(script=(ScriptedAnswer(SimAnswer(text)),), chunk=6)
        body = {"model": "sim", "messages": [{"role": "user", "content": "Go"}], "tools": TOOLS, "stream": stream}
        given: dict[str, Any] = {
            "shell": "npm",
            "patterns_shell_commands_confidence": "0.95",
            "patterns_require_cwd": "true",
        }
        for cwd, made in (("", 0), ("/src", 1)):
            async with gateway(sim, mode="text", **given, shell_cwd=cwd) as gate:
                answer = await gate.ask(body)
            calls = answer.joined[1] if stream else answer.message.get("tool_calls") or []
            assert len(calls) == made

    run(check)
