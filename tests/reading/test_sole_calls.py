"""Calls without marks of their own: they count only if the answer has nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.rows import in_one_test
from support.samples import random_cuts, read_events

import toolglot
from toolglot.reading.example_detection import introduces_call
from toolglot.reading.reader import collect

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def offer(name: str, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(required)}}


TOOLS = [
    offer("count", step=WHOLE, label=TEXT),
    offer("find", ("query",), query=TEXT, limit=WHOLE),
    offer("maps.zone", ("long",), long=TEXT, lat=TEXT),
    offer("ping"),
]
COUNT, FIND, ZONE = ("count", {"step": 1}), ("find", {"query": "q"}), ("maps.zone", {"long": "-80.75"})
PING: tuple[str, dict[str, Any]] = ("ping", {})

CALLS = [
    ("count(step=1)", [COUNT]),
    (" count(step=1)\n", [COUNT]),
    ("count(\n    step=1,\n)", [COUNT]),
    ('count(step=1)\nfind(query="q")', [COUNT, FIND]),
    ('count(step=1)\n\nfind(query="q")\n', [COUNT, FIND]),
    ("count(step=1), find(query='q')", [COUNT, FIND]),
    ("count(step=1); find(query='q')", [COUNT, FIND]),
    ("functions.count(step=1)", [COUNT]),
    ("ping()", [("ping", {})]),
    ("count(step=1)<|im_end|>", [COUNT]),
    ("<think>I count.</think>\ncount(step=1)", [COUNT]),
    ('maps.zone(long="-80.75")', [ZONE]),
    ('[maps_zone(long="-80.75")]', [ZONE]),
    ("[counting.count(step=1)]", [COUNT]),
    ("[count(step=1)]<|eot_id|>", [COUNT]),
    ("[count(step=1)]I'm counting now.", [COUNT]),
    ("[count(step=1)] I will count now.", [COUNT]),
    ('["count(step=1)"]', [COUNT]),
    ('["count(step=1)", "find(query=\'q\')"]', [COUNT, FIND]),
    ('["count(step=1)", "find(query=\\"q\\")"]', [COUNT, FIND]),
    ("['count(step=1)', 'find(query=\"q\")']", [COUNT, FIND]),
    ("```python\n[count(step=1)]\n```", [COUNT]),
    ("```python\ncount(step=1)\nfind(query='q')\n```", [COUNT, FIND]),
    ('```python\n["count(step=1)"]\n```', [COUNT]),
    ("```json\n[count(step=1)]\n```", [COUNT]),
    ("```\n[count(step=1)]\n```", [COUNT]),
    ("tools call: [count(step=1)]", [COUNT]),
    ("Function call: count(step=1)", [COUNT]),
    ("Action: count(step=1)", [COUNT]),
    ("Here is the function call: [count(step=1)]", [COUNT]),
    ("Here is the function call:\n\ncount(step=1)", [COUNT]),
    ("I'll look that up for you.\n\n```python\ncount(step=1)\n```", [COUNT]),
    ('{"maps.zone": {"long": "-80.75"}}', [ZONE]),
    ('[{"maps.zone": {"long": "-80.75"}}]', [ZONE]),
    ('{"count": {"step": 1}, "find": {"query": "q"}}', [COUNT, FIND]),
    ('[{"count": {"step": 1}}, {"find": {"query": "q"}}]', [COUNT, FIND]),
    ('```json\n{"count": {"step": 1}}\n```', [COUNT]),
    ('Here is the call:\n[{"count": {"step": 1}}]', [COUNT]),
    ('["find", {"query": "q"}]', [FIND]),
    ('[["count", {"step": 1}], ["find", {"query": "q"}]]', [COUNT, FIND]),
    ('{"tool_call": "find", "parameters": {"query": "q"}}', [FIND]),
    ('{"function_call": "find", "arguments": {"query": "q"}}', [FIND]),
    ('maps_zone(long="-80.75")', [ZONE]),
    ('maps\\_zone(long="-80.75")', [ZONE]),
    ("count(step=1);", [COUNT]),
    ("count(step=1);\nfind(query='q');\n", [COUNT, FIND]),
    ("Answer: count(step=1)", [COUNT]),
    ("Assistant: [count(step=1), find(query='q')]", [COUNT, FIND]),
    ("assistant\ncount(step=1)", [COUNT]),
    ("**Tool call:** count(step=1)", [COUNT]),
    ("```plaintext\n[count(step=1)]\n```", [COUNT]),
    ("find('q')", [FIND]),
    ("find('q', limit=2)", [("find", {"query": "q", "limit": 2})]),
    ("find('a, b=c')", [("find", {"query": "a, b=c"})]),
    ('Tool calls: [{"count": {"step": 1}}]', [COUNT]),
    ('Answer: {"count": {"step": 1}}', [COUNT]),
    ('```python\n[{"count": {"step": 1}}]\n```', [COUNT]),
    ('[{"count": "{\\"step\\": 1}"}]', [COUNT]),
    ("[{'find': '{\"query\": \"q\"}'}]", [FIND]),
    ("['find', {'query': 'q'}]", [FIND]),
    ("[['count', {'step': 1}], ['find', {'query': 'q'}]]", [COUNT, FIND]),
    ('{"api": "find", "payload": {"query": "q"}}', [FIND]),
    ('[{"method": "find", "inputs": {"query": "q"}}]', [FIND]),
    ('{"actions": [{"name": "find", "args": {"query": "q"}}]}', [FIND]),
    ('{"tools": [{"name": "find", "arguments": {"query": "q"}}, {"name": "ping", "arguments": {}}]}', [FIND, PING]),
    ('{"functions": [{"find": {"query": "q"}}]}', [FIND]),
    ('{"name": "find", "data": {"query": "q"}}', [FIND]),
    ('[{"tool": "find", "options": {"query": "q"}}, {"tool": "count", "body": {"step": 1}}]', [FIND, COUNT]),
    ('{"function": "find", "properties": {"query": "q"}}', [FIND]),
    ('{"name": "find", "arguments_json": "{\\"query\\": \\"q\\"}"}', [FIND]),
    ('{"tool": "ping", "data": {}}', [PING]),
    ('{"plugin": "find", "parameters": {"query": "q"}}', [FIND]),
    ('<tool_call>{"name": "find", "data": {"query": "q"}}</tool_call>', [FIND]),
    ("`count(step=1)`", [COUNT]),
    ("`[count(step=1), find(query='q')]`", [COUNT, FIND]),
    ("```[count(step=1)]```", [COUNT]),
    ('"count(step=1)"', [COUNT]),
    ('"find(query=\\"q\\")"', [FIND]),
    ("'find(query=\"q\")'\n", [FIND]),
    ("(count(step=1), find(query='q'))", [COUNT, FIND]),
    ("(count(step=1))", [COUNT]),
    ("[[count(step=1), find(query='q')]]", [COUNT, FIND]),
    ("- count(step=1)", [COUNT]),
    ("* count(step=1)\n* find(query='q')\n", [COUNT, FIND]),
    ("1. count(step=1)\n2. find(query='q')", [COUNT, FIND]),
    ("1) find(query='q')\n\n2) find(query='q')", [FIND, FIND]),
    ("Invoke: count(step=1)", [COUNT]),
    ("```python\n# count\ncount(step=1)\n```", [COUNT]),
    ("```python\n# First, count\ncount(step=1)  # once\n# then look\nfind(query='q')\n# done\n```", [COUNT, FIND]),
    ("```tool_code\n# Count.\nprint(count(step=1))\n```", [COUNT]),
]

TEXTS = [
    "You can call count(step=1) to do it.",
    "count(step=1) counts.",
    "count(step=1): counts.",
    "count(step=1).run()",
    "count(step=1) + 1",
    "count(step=1) == 3",
    "count(step=1) -> int",
    "count(step=1) # once",
    "count(step=1)\n\n- and so on",
    "count(step=1)\nand so on",
    "count(step=1), and so on",
    "> count(step=1)",
    ">>> count(step=1)",
    "total = count(step=1)",
    "print(count(step=1))",
    "return count(step=1)",
    "import counting\ncount(step=1)",
    "# count\ncount(step=1)",
    "for i in range(3):\n    count(step=1)",
    "for i in range(3):\ncount(step=1)",
    "def count(step=1):\n    pass",
    "count(step: int)",
    "find(query: str)",
    "find(query=text)",
    "count(step)",
    "count(1, 2)",
    "count(**options)",
    "count(pace=1)",
    "find(limit=1)",
    'count(step="many")',
    "other(step=1)",
    "count(step=1",
    "The signature is:\n\ncount(step=1)",
    "You would write it like this:\n\ncount(step=1)",
    "First this.\nThen that:\n\ncount(step=1)",
    "[count(step=1)](docs.md)",
    "[count(step=1)][0]",
    "[count(step=1)] and [find(query='q')]",
    "[count(step=1)] OR [find(query='q')]",
    "[count(step=i) for i in steps]",
    '["count(step=1)", "text"]',
    '["count(step=1)"] is a list',
    'The list:\n\nis\n["count(step=1)"]',
    '["count(step=1)"',
    "```python\ntotal = count(step=1)\n```",
    "```python\nimport counting\ncount(step=1)\n```",
    "```python\nprint(count(step=1))\n```",
    "```python\ncount(step=1)\nprint(1)\n```",
    "```python\nfor i in steps:\n    count(step=1)\n```",
    "Do this:\n```python\ncount(step=1)\n```\nand then that.",
    "```js\ncount(step=1)\n```",
    '{"count": {"step": 1}, "version": 2}',
    '{"count": {"pace": 1}}',
    '{"count": {"step": {"type": "integer"}}}',
    '{"count": 3}',
    '{"maps.zone": {"lat": "1"}}',
    '{"maps.zone": {"long": "1", "zone": "EST"}}',
    '{"settings": {"count": {"step": 1}}}',
    '{"count": {"step": 1}',
    '{"count": {"step": 1}}\n\nSave it as count.json.',
    '```json\n{"count": {"step": 1}}\n```\nSave this file.',
    'One line.\nAnother one:\n{"count": {"step": 1}}',
    '[{"count": {"step": 1}}, {"other": {"step": 1}}]',
    '["find", {"pace": 1}]',
    '["find", {"query": "q"}] is a pair',
    '["find", "count"]',
    '{"tool_call": "other", "parameters": {"query": "q"}}',
    "maps-zone(long='1')",
    "mapszone(long='1')",
    "count(step=1); count = 2",
    "count(step=1);\nimport os;",
    "Answer: total = count(step=1)",
    "Answer: count(step=1) counts.",
    "Assistant: I would run count(step=1)",
    "assistant\nprint(count(step=1))",
    "**Tool call:** other(step=1)",
    "```plaintext\ncount(step=1) counts\n```",
    "find('q', 2)",
    "[find('q', 2)]",
    "[find('q', 'r', limit=2)]",
    "find('q' + 'r')",
    "[find(query=...)]",
    "[find(query=input())]",
    "[find(query=query)]",
    'Answer: {"count": 3}',
    'Tool calls: [{"other": {"step": 1}}]',
    '```python\n{"count": {"pace": 1}}\n```',
    '[{"count": "1"}]',
    '[{"count": "step"}]',
    '[{"find": "{\\"limit\\": 1}"}]',
    "['find', {'pace': 1}]",
    "['find', 'count']",
    '{"api": "v2", "payload": {"query": "q"}}',
    '{"method": "GET", "inputs": {"query": "q"}}',
    '{"actions": [{"name": "other", "args": {"query": "q"}}]}',
    'Here is an example of the JSON:\n```json\n{"count": {"step": 1}}\n```',
    '{"tools": [{"name": "ping"}, {"name": "find"}]}',
    '{"tools": [{"name": "ping"}]}',
    '{"tools": [{"name": "ping", "description": "Answers.", "parameters": {}}]}',
    '{"tools": [{"name": "find", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}]}',
    '{"tools": ["ping", "find"]}',
    '{"name": "ping", "description": "Answers.", "parameters": {}}',
    '{"tool": "ping", "description": "Answers.", "parameters": {}}',
    '{"name": "ping", "age": 3}',
    '{"tools": [{"name": "find", "arguments": {"query": "q"}}], "version": 2}',
    '{"tools": [{"name": "find", "arguments": {"query": "q"}}]}\n\nSave it as tools.json.',
    '{"functions": {"find": {"query": "q"}}}',
    '{"name": "find", "properties": {"query": {"type": "string"}}}',
    '{"name": "ping", "properties": {}}',
    '{"name": "find", "data": {"query": "q", "hits": 3}}',
    '{"name": "find", "data": {"limit": 3}}',
    '{"name": "find", "data": {"query": "q"}, "status": "done"}',
    '{"name": "find", "data": {"query": "q"}, "result": 3}',
    '{"name": "find", "data": {"query": "q"}}\n\nThis is what was stored.',
    '{"name": "find", "data": [{"query": "q"}]}',
    '{"name": "find", "data": "q"}',
    '{"name": "other", "data": {"query": "q"}}',
    '{"skill": "juggling", "parameters": {"query": "q"}}',
    '{"skill": "find", "parameters": {"query": "q"}} is stored.',
    'Docs for the tool:\n\n{"skill": "find", "parameters": {"query": "q"}}',
    "Log:\n```python\ncount(step=1)\n```",
    "`count(step=1)` counts.",
    "Use `count(step=1)`",
    "Call:\n`count(step=1)`",
    "`count(step=1)`, `find(query='q')`",
    "`count(step=1)` or `find(query='q')`",
    "`count(step=1)`\n\nThis counts.",
    "``count(step=1)``",
    "`total = count(step=1)`",
    "`count(step=1`",
    "```[count(step=1)]``` is a list",
    '"count(step=1)" is a call.',
    '"count(step=1)", "find(query=\'q\')" and so on',
    '"count(step=1) and more"',
    '"count(step=n)"',
    '"count(step=1)',
    "(count(step=1)) counts.",
    "(count(step=1) + 1)",
    "(count(step=1), 2)",
    "(count(step=1), find(limit=1))",
    "((count(step=1)))",
    "[[count(step=1)], 2]",
    "[[count(step=1)], [other(step=1)]]",
    "- count(step=1) counts.",
    "- count(step=1)\n- and then more",
    "- count(step=1)\n+ count(step=2)",
    "-count(step=1)",
    "- [ ] count(step=1)",
    "1. count(step=1)\n2. Read the result.",
    "1. `count(step=1)`",
    "1. count(step=1): counts",
    "Steps:\n\n1. count(step=1)",
    "# Counting\n\ncount(step=1)",
    "```python\n# Example\ncount(step=1)\n```",
    "```python\n# Example usage:\ncount(step=1)\n```",
    "```python\n# The syntax of it\ncount(step=1)\n```",
    "```python\n# You would write\ncount(step=1)\n```",
    "```python\n# count\ntotal = count(step=1)\n```",
    "```python\ncount(step=1)\n# for i in range(3):\nprint(1)\n```",
    "```python\n# count\n```",
    "Invoke: count",
    "Invoke: count(step=1) counts.",
    "Tool: other(step=1)",
    "Function: count(step: int)",
]


def read_calls(events: list[Any]) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in collect(events).calls]


@in_one_test(("text", "calls"), CALLS)
def test_a_call_that_is_the_whole_answer_is_read(text: str, calls: list[tuple[str, Any]]) -> None:
    whole = read_events([text], tools=TOOLS)
    assert read_calls(whole) == calls
    assert read_events(list(text), tools=TOOLS) == whole
    for seed in range(5):
        assert read_events(random_cuts(text, seed), tools=TOOLS) == whole


@in_one_test("truncated", [False, True])
@in_one_test("text", TEXTS)
def test_what_only_looks_like_a_call_stays_text(text: str, truncated: bool) -> None:
    for pieces in ([text], list(text), random_cuts(text, 1)):
        reader = toolglot.Reader(TOOLS)
        events = [event for piece in pieces for event in reader.feed(piece)]
        reading = collect([*events, *reader.close(truncated)])
        assert (reading.text, reading.calls, reading.rejected) == (text, [], [])


@pytest.mark.parametrize("text", ["count(step=1)", '{"count": {"step": 1}}', '["count(step=1)"]'])
def test_an_answer_that_was_cut_is_not_known_to_be_whole(text: str) -> None:
    assert toolglot.read(text, TOOLS, truncated=True).calls == []


def test_prose_is_not_held_back_for_a_call_that_needs_the_whole_answer() -> None:
    reader = toolglot.Reader(TOOLS)
    assert collect(reader.feed("Counting is easy. ")).text == "Counting is easy. "
    assert collect(reader.feed("\ncount(step=1) and more")).text.endswith("and more")


@in_one_test(
    ("text", "introduces"),
    [
        ("", True),
        ("\n", True),
        ("Here is the function call:", True),
        ("**Function calls:**\n\n", True),
        ("Sure!", True),
        ("Okay, let me check the weather for you.\n", True),
        ("I'll look that up.", True),
        ("The weather is fine.", False),
        ("You would write:", False),
        ("The syntax is:", False),
        ("for i in range(3):", False),
        ("One.\nTwo:", False),
        ("word " * 60 + ":", False),
    ],
)
def test_only_one_short_line_introduces_a_call(text: str, introduces: bool) -> None:
    assert introduces_call(text) is introduces


@pytest.mark.parametrize("first", ["ping()", "```python\nping()\n```", "[('ping', {})]"])
@pytest.mark.parametrize("mark", ["<tool_call>{}</tool_call>", "<function_calls>{}</function_calls>"])
def test_a_marked_call_after_a_sole_one_is_not_lost_if_text_follows(first: str, mark: str) -> None:
    call = mark.format('\n{"name": "count", "arguments": {"step": 1}}\n')
    answer = f"{first}\n\n{call}\n\nThen I will go on."
    for chunks in ([answer], list(answer)):
        reading = collect(read_events(chunks, tools=TOOLS))
        assert [call.name for call in reading.calls] == ["count"]
        assert reading.text.startswith(first)
        assert reading.text.endswith("Then I will go on.")


def test_an_answer_is_read_the_same_however_often_its_tools_were_used() -> None:
    listed = '[{"name": "count", "arguments": {"step": 1}}]'
    answer = f'<tool_call>{{"name": "ping", "arguments": {{}}}}</tool_call>{listed}]</TOOLCALL>'
    readings = [toolglot.read(answer, TOOLS) for _ in range(20)]
    assert all(
        reading.text == readings[0].text and len(reading.calls) == len(readings[0].calls) for reading in readings
    )
