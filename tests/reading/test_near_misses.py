"""Text that was intended as a call and is none: it is counted, or reported, and never lost."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from gateway.test_experiment import Records, records  # noqa: F401
from support.gateway import ASK, READ, gateway, run
from support.rows import in_one_test

import toolglot
from toolglot.reading.reader import Reading, collect
from toolglot.sim import ScriptedAnswer, SimOptions
from toolglot.sim.answer import Answer

PATH = {"path": {"type": "string"}}
TOOLS: list[dict[str, Any]] = [
    {"name": "read_file", "parameters": {"type": "object", "properties": PATH, "required": ["path"]}},
    {"name": "list_files", "parameters": {"type": "object", "properties": PATH}},
]
MISSES = {
    "a wrapper with broken JSON": "<tool_call>\n{invalid json}\n</tool_call>",
    "a wrapper with broken JSON behind text": "Now.\n\n<tool_call>\n{invalid json}\n</tool_call>",
    "a tool fence with broken JSON": "```tool_code\n{invalid json}\n```",
    "a fence with a wrong key": '```json\n{"tool": "read_file", "pth": "a"}\n```',
    "bare JSON with a wrong key": '{"name": "read_file", "arguments": {"pth": "a"}}',
    "name-keyed JSON with a wrong key": '{"read_file": {"pth": 3}}',
    "an action with a wrong key": 'Action: read_file\nAction Input: {"pth": 3}',
    "an element that is never closed": "Now:\n<read_file><pth>a</pth>",
    "an element with text between": "<read_file><pth>a</pth> and </read_file>",
    "a Python call with a wrong keyword": 'read_file(pth="a")',
    "a Python call with a wrong keyword behind a label": 'Action: read_file(pth="a")\n',
    "a Python call with a wrong keyword in a list": """["read_file(pth='a')"]""",
    "a Python call with a wrong keyword in a fence": '```python\nread_file(pth="a")\n```',
    "an envelope of its own": 'Now.\n\n{"toolCalls": [{"id": "call_7", "type": "read_file", "path": "a"}]}',
    "a call in entities": "Now.\n\n&lt;read_file&gt;\n&lt;path&gt;a&lt;/path&gt;\n&lt;/read_file&gt;",
    "JSON in marks in entities": '&lt;tool_call&gt;\n{"name": "read_file", "arguments": {"path": "a"}}\n&lt;/tool_call&gt;',
    "tags without their first character": "Now.\n\nread_file>\npath>a/path>\n/read_file>",
    "function tags without their first character": "tool_call>\nfunction=read_file>\nparameter=path>\na\n/parameter>\n/function>\n/tool_call>",
    "a tag without its last character": "<read_file\n<path>a</path>\n</read_file>",
    "a token without its last character": "<|tool_call_start|[read_file(path='a')]<|tool_call_end|>",
    "a description in place of the name": 'Now.\n\n```json\n{"name": "Use read_file for this", "arguments": {"path": "a"}}\n```',
    "a fence in a fence": '```json\n```json\n{"name": "read_file", "arguments": {"path": "a"}}\n```\n```',
    "an element of another version of the tool": '<read_file_v2>\n{"path": "a"}\n</read_file_v2>',
    "an element with a misspelt name": "<readfile_>\n<path>a</path>\n</readfile_>",
    "an element of a tool that is not offered": "<bash>\n<command>ls</command>\n</bash>",
    "a command in such an element": "Now I look.\n\n<bash>ls -la</bash>",
    "an element whose name has several words": "<execute_command>\n<command>ls</command>\n</execute_command>",
    "JSON of a tool that is not offered": '{"name": "shell", "arguments": {"command": "ls"}}',
    "a list of such calls": '[{"name": "shell", "arguments": {"command": "ls"}}, {"name": "cat", "arguments": {}}]',
    "a whole call in JSON after an introduction": 'Usage:\n\n{"name": "read_file", "arguments": {"path": "a"}}',
    "a whole call in a fence": 'The corrected file looks like this:\n\n```json\n{"name": "read_file", "arguments": {"path": "a"}}\n```',
    "a whole list of Python calls": 'Usage:\n\n[read_file(path="a")]',
    "a whole element": "The corrected file looks like this:\n\n<read_file>\n<path>a</path>\n</read_file>\n",
    "a whole call in a fence of code": 'Usage:\n\n```tool_code\nread_file(path="a")\n```',
    "the same in a fence": 'Now:\n\n```json\n{\n  "name": "shell",\n  "arguments": {"command": "ls"}\n}\n```',
}
NONE = {
    "HTML at the end": "<details>\n<summary>bash</summary>\n</details>",
    "XML at the end": "<note_list>some text <b>x</b></note_list>",
    "an answer in an element": "<final_answer>\n<text>42</text>\n</final_answer>",
    "an element of another tool in a fence": "```xml\n<bash>\n<command>ls</command>\n</bash>\n```",
    "an element of another tool in the middle": "<bash>\n<command>ls</command>\n</bash>\n\nThis is what I ran.",
    "JSON of another tool in the middle": '{"name": "shell", "arguments": {"command": "ls"}} is what I ran.',
    "a person in JSON": '{"name": "Bob", "age": 3}',
    "a definition of another tool": '{"name": "shell", "parameters": {"type": "object", "properties": {}}}',
    "an example of another tool": "For example:\n\n<bash>\n<command>ls</command>\n</bash>",
    "a mention": "Use <read_file> to read files.",
    "a mention at the start of a line": "<read_file>: reads a file. <list_files>: lists.",
    "inline code": "`<read_file><pth>a</pth></read_file>`",
    "a fence": "```\n<read_file><pth>a</pth></read_file>\n```",
    "an example": "For example:\n<read_file><pth>a</pth></read_file>",
    "an example in JSON": 'For example:\n{"name": "read_file", "arguments": {"pth": "a"}}',
    "a whole example in the middle": "Usage:\n\n<read_file>\n<path>a</path>\n</read_file>\n\nThat is all (really).",
    "a definition": '```json\n{"name": "read_file", "description": "reads", "parameters": {"type": "object"}}\n```',
    "a link": "[read_file(path)](docs/read.md) reads a file.",
    "other JSON": '{"answer": {"a": [1]}}',
    "a JSON fence": '```json\n{"a": 1,}\n```',
    "a wrapper in a sentence": "Put it into <tool_call> and {braces}.",
    "words in a wrapper": "<tool_call>hello</tool_call>",
    "HTML": "<details><summary>read_file</summary></details>",
    "code": "if (a < b) { read_file(b); }",
    "a Python call in a sentence": 'read_file(pth="a") reads a file.',
    "a Python call that is used": 'read_file(pth="a").strip()',
    "a Python call that is assigned": 'text = read_file(pth="a")',
    "a Python function": 'def read_file(pth="a"):\n    pass',
    "a signature": "read_file(path)",
    "a name as code writes it": "read_file()",
    "an envelope in the middle": '{"toolCalls": [{"type": "read_file", "path": "a"}]}\n\nThis is what I sent.',
    "an envelope in a fence": 'This is the file:\n\n```json\n{"steps": [{"type": "read_file", "path": "a"}]}\n```',
    "an envelope as an example": 'For example:\n\n{"toolCalls": [{"type": "read_file", "path": "a"}]}',
    "entities as an example": "A call looks like this:\n\n&lt;read_file&gt;\n&lt;path&gt;a&lt;/path&gt;\n&lt;/read_file&gt;",
    "entities in a sentence": "Write &lt;read_file&gt; with &lt;path&gt;a&lt;/path&gt; inside of &lt;/read_file&gt;",
    "a tag that lost a character in a fence": "```xml\n<read_file\n<path>a</path>\n</read_file>\n```",
    "documentation of a tool": "<tool>\n<name>read_file</name>\n<description>Reads.</description>\n<path>string</path>\n</tool>",
    "a schema": '{"type": "function", "name": "read_file", "parameters": {"properties": {"path": {"type": "string"}}}}',
    "a summary in JSON": '{"summary": "I used read_file with path=a", "files": ["path: a"]}',
    "a table": "| tool | argument |\n|---|---|\n| read_file | path: a |",
    "a list of tools": "- read_file(path): reads a file [docs]\n- list_files(path): lists [docs]",
    "code at the end": "Use it so:\n\n    data = [read_file(path=p) for p in names]",
    "assigned code": "data = [read_file(path=p) for p in names]",
}


def read(text: str, cuts: list[int], **options: Any) -> tuple[Reading, list[str]]:
    reader = toolglot.Reader(TOOLS, **options)
    events, at = [], 0
    for cut in [*cuts, len(text)]:
        events += reader.feed(text[at:cut])
        at = cut
    events += reader.close()
    return collect(events, text), [*(miss.dialect for miss in reader.missed), *(dialect for dialect, _ in reader.left)]


def every_way(text: str) -> list[list[int]]:
    chance = random.Random(len(text))
    return [[], list(range(1, len(text))), sorted(chance.randrange(len(text)) for _ in range(4))]


@in_one_test("name", sorted(MISSES))
def test_a_near_miss_is_counted_once_and_stays_text(name: str) -> None:
    for cuts in every_way(MISSES[name]):
        received, missed = read(MISSES[name], cuts)
        assert (received.text, received.calls, received.rejected) == (MISSES[name], [], [])
        assert len(missed) == 1


@in_one_test("name", sorted(NONE))
def test_what_only_looks_like_one_is_not_counted(name: str) -> None:
    for cuts in every_way(NONE[name]):
        received, missed = read(NONE[name], cuts)
        assert (received.text, received.calls, received.rejected, missed) == (NONE[name], [], [], [])


@in_one_test(
    ("text", "tool", "wrong"),
    [
        ('{"name": "read_file", "arguments": {"pth": "a"}}', "read_file", {"argument path": "text", "argument pth": "path"}),
        ('[read_file(path=["a"])]', "read_file", {"argument path": "text"}),
        ('read_file(pth="a")', "read_file", {"argument path": "text", "argument pth": "path"}),
        ("<bash>\n<command>ls</command>\n</bash>", None, {"tool name": "one of read_file, list_files"}),
        ('{"name": "read_fil", "arguments": {"path": "a"}}', "read_file", {"tool name": '"read_file"'}),
        ("&lt;read_file&gt;\n&lt;path&gt;a&lt;/path&gt;\n&lt;/read_file&gt;", "read_file", {}),
    ],
)  # fmt: skip
def test_a_near_miss_names_its_tool_and_what_is_wrong(text: str, tool: str | None, wrong: dict[str, str]) -> None:
    for cuts in every_way(text):
        reader = toolglot.Reader(TOOLS)
        for start, end in pairwise([0, *cuts, len(text)]):
            reader.feed(text[start:end])
        reader.close()
        (missed,) = reader.missed
        assert missed.tool == tool and missed.raw
        assert {defect.where: defect.expected for defect in missed.defects} == wrong


@in_one_test(
    "text",
    [
        '{"name": "shell", "arguments": {"a": "\ud800"}}',
        f'{{"name": "shell", "arguments": {{"a": {"[" * 9000}{"]" * 9000}}}}}',
        f"<bash>\n{'<a>' * 9000}</bash>",
        f"<run_it>\n{'<a></a>' * 9000}</run_it>",
    ],
    ids=["surrogate", "deep JSON", "open elements", "many elements"],
)
def test_hostile_text_at_the_end_is_text(text: str) -> None:
    received, _ = read(text, [])
    assert (received.text, received.calls, received.rejected) == (text, [], [])


# -- elements of a tool with wrong parameters --------------------------------------------------------------------------


@in_one_test("before", ["", "Now I read it.\n\n", "Now I read it: "])
@in_one_test("behind", ["", "\nDone.", " Done."])
@in_one_test(
    ("raw", "reason", "defects"),
    [
        ("<read_file><pth>a</pth></read_file>", "missing_argument", ["argument path", "argument pth"]),
        ("<read_file>\n<pth>a</pth>\n<x>b < c</x>\n</read_file>", "missing_argument", ["argument path", "argument pth", "argument x"]),
        ("<list_files><pth>a</pth></list_files>", "malformed", ["argument pth"]),
    ],
)  # fmt: skip
def test_an_element_with_wrong_parameters_is_rejected(
    raw: str, reason: str, defects: list[str], before: str, behind: str
) -> None:
    text = before + raw + behind
    for cuts in every_way(text):
        received, missed = read(text, cuts)
        (rejected,) = received.rejected
        assert (rejected.raw, rejected.reason, rejected.span) == (raw, reason, (len(before), len(before) + len(raw)))
        assert [defect.where for defect in rejected.defects] == defects
        assert (received.calls, missed) == ([], [])
        assert received.text.split() == (before + behind).split()


def test_an_element_with_wrong_parameters_stays_text_where_that_is_wished() -> None:
    text = "<read_file><pth>a</pth></read_file>"
    received, missed = read(text, [], unknown_tools="text")
    assert (received.text, received.rejected, len(missed)) == (text, [], 1)


def test_a_long_element_is_not_waited_for() -> None:
    text = f"<read_file><pth>{'a' * 3000}</pth></read_file>"
    for cuts in ([], list(range(1, len(text)))):
        received, missed = read(text, cuts)
        assert (received.text, received.rejected, len(missed)) == (text, [], 1)


def test_a_call_behind_a_near_miss_is_read() -> None:
    text = "<read_file><pth>a</pth></read_file>\n<read_file><path>b</path></read_file>"
    received, _ = read(text, [])
    assert [call.arguments for call in received.calls] == ['{"path":"b"}'] and len(received.rejected) == 1


# -- what is recorded --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("mode", "name"), [("text", "reading"), ("native", "rescue")])
def test_the_record_has_near_misses(records: Records, mode: str, name: str, streamed: bool) -> None:  # noqa: F811
    broken = '```json\n{"tool": "read", "path": "a"}\n```'

    async def test() -> None:
        async with gateway(SimOptions(script=(ScriptedAnswer(Answer(broken)),)), mode=mode) as gate:
            answer = await gate.ask(ASK | {"stream": streamed})
            assert answer.status == 200
            metrics = (await gate.get("/metrics")).body.decode()
            assert f'toolglot_attempts_total{{arm="on",outcome="near_miss",transformation="{name}"}} 1' in metrics

    assert READ["function"]["name"] == "read"  # type: ignore[index]
    run(test)
    assert records.last.outcomes[name] == {"near_miss": 1}


def test_near_misses_lower_the_recognition_of_tools() -> None:
    from toolglot.gateway.telemetry.report import Tally

    tally = Tally("on", answers=4)
    tally.outcomes.update({"success": 3, "near_miss": 1})
    assert tally.rates()["tool recognition"] == tally.rates()["success rate"] == 0.75


@pytest.mark.parametrize("streamed", [False, True])
def test_native_calls_have_a_success_rate(records: Records, streamed: bool) -> None:  # noqa: F811
    from toolglot.gateway.telemetry.report import read_log

    async def test() -> None:
        async with gateway(SimOptions(), mode="native") as gate:
            await gate.ask(ASK | {"stream": streamed})
            metrics = (await gate.get("/metrics")).body.decode()
            assert 'toolglot_attempts_total{arm="on",outcome="success",transformation="native"} 1' in metrics
        async with gateway(SimOptions(dialect="hermes"), mode="native") as gate:
            await gate.ask(ASK | {"stream": streamed})

    run(test)
    assert [record.outcomes["native"] for record in records.all] == [{"success": 1}, {"leaked": 1}]
    groups, _ = read_log(map(str, records.all))
    tally = groups["native"]["on"]
    assert (tally.answers, tally.attempts, tally.rates()["success rate"]) == (2, 2, 0.5)
    assert tally.tools == {"read": 1}


@pytest.mark.parametrize("streamed", [False, True])
def test_logged_bodies_show_the_request_and_the_answer_of_the_model(
    caplog: pytest.LogCaptureFixture, streamed: bool
) -> None:
    import json
    import logging

    text = '<tool_call>\n{"name": "read", "arguments": {"filePath": "sk-abcdefgh12345678"}}\n</tool_call>'

    async def test() -> None:
        async with gateway(SimOptions(script=(ScriptedAnswer(Answer(text)),)), mode="text", log_bodies=True) as gate:
            await gate.ask(ASK | {"stream": streamed})

    with caplog.at_level(logging.INFO, "toolglot.bodies"):
        run(test)
    logged = [json.loads(record.getMessage()) for record in caplog.records if record.name == "toolglot.bodies"]
    bodies = {one["what"]: one["body"] for one in logged}
    assert list(bodies) == ["request", "upstream_request", "model", "answer"]
    assert "exactly one" in bodies["upstream_request"] and bodies["model"] == text.replace("sk-abcdefgh12345678", "***")
    assert "sk-abcdefgh" not in "".join(bodies.values())
