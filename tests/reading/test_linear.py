"""No input makes the reader super-linear, and no history the prompt.

Each text is read at one size and at ten times that size, whole and in small chunks. Linear work takes ten times as long,
quadratic work a hundred times; the limit stands generously between, on the best of several rounds of CPU time. Floods of
marks are counted in calls of functions instead, because they would be linear at any price.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time
from types import FrameType

import pytest
from support.growth import assert_growth
from support.samples import load_samples, load_tools

import toolglot
from toolglot.clients.xml import all_clients
from toolglot.clients.xml.history_parser import parse_history
from toolglot.clients.xml.prompt_parser import parse_prompt
from toolglot.core.conversation import Conversation, Message, Role, Text, Tool, ToolCall, ToolResult
from toolglot.core.events import TextDelta
from toolglot.gateway.delivery import Delivery
from toolglot.gateway.delivery_plan import DeliveryPlan
from toolglot.gateway.recovery.edit_hints import find_edit_hints
from toolglot.gateway.recovery.history import heal_history
from toolglot.gateway.recovery.loop_guard import find_loops
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.prompting.conversation import render_as_text
from toolglot.reading.dialect_index import STRAY_THINKING
from toolglot.reading.reader import dialect_index

HOME_TOOLS = load_tools("house")
SMALL, LARGE = 5_000, 50_000
LIMIT = 25
NOISE = 0.02

UNITS = {
    "less-than": "<",
    "backtick": "`",
    "fence": "```",
    "fence lines": "```\n",
    "json fences": "```json\n",
    "brace": "{",
    "bracket": "[",
    "braces closed": "{}",
    "quote": '"',
    "backslash": "\\",
    "json opener": '{"name": "',
    "json opener of a tool": '{"name": "save_note", "arguments": {',
    "think": "<think>",
    "think closed": "<think></think>",
    "think closers": "</think>",
    "hermes opener": "<tool_call>",
    "hermes opener and line": "<tool_call>\n",
    "hermes closer": "</tool_call>",
    "hermes closed": "<tool_call></tool_call>",
    "hermes brace": "<tool_call>{",
    "function": "<function=save_note>",
    "parameter": "<function=save_note><parameter=body>",
    "parameters closed": "<parameter=body></parameter>",
    "tool tags": "<save_note>",
    "tool tags and elements": "<save_note><body>",
    "invoke": '<invoke name="save_note">',
    "arg keys": "<tool_call>save_note<arg_key>",
    "dsml": "<｜DSML｜",
    "kimi": "<|tool_call_begin|>",
    "harmony": "<|channel|>",
    "harmony recipients": "<|start|>assistant<|channel|>commentary to=functions.save_note ",
    "gemma": '<|tool_call>call:save_note{body:<|"|>',
    "mistral": "[TOOL_CALLS]",
    "mistral arguments": '[TOOL_CALLS]save_note[ARGS]{"body": "',
    "pythonic": "[save_note(",
    "pythonic in bold": "**[save_note(",
    "calls in strings": "['query_db(sql='S'), ",
    "pairs": "[('query_db', {'sql': 'S'}), ",
    "kimi counters": '<|tool_call_begin|>0<|tool_call_argument_begin|>{"sql": "S", ',
    "bare elements": "<query_db>\nS \n\t\n</query_db>\n",
    "bare elements opened": "<query_db>\nS\n",
    "calls and sentences": 'query_db(sql="S")\n\nThis.\n\n',
    "react": "Action: save_note\n",
    "react input": "Action: save_note\nAction Input: ",
    "alternating backticks": "` `` ",
    "quotes and escapes": '\\"\\',
    "seed 003": "<a_b><c>x</c>",
    "spaces": " ",
    "lines": "\n",
    "entities": "&lt;",
    "cdata": "<![CDATA[",
    "yaml": "save_note:\n  body: |\n",
}
HEADS = {
    "open json string": '<tool_call>\n{"name": "save_note", "arguments": {"body": "',
    "open parameter": "<tool_call>\n<function=save_note>\n<parameter=body>\n",
    "open element": "<save_note>\n<body>",
    "open arg value": "<tool_call>save_note<arg_key>body</arg_key><arg_value>",
    "open invoke": '<function_calls>\n<invoke name="save_note">\n<parameter name="body">',
    "open gemma string": '<|tool_call>call:save_note{body:<|"|>',
    "open fence": '```json\n{"name": "save_note", "arguments": {"body": "',
    "open bare json": '{"name": "save_note", "arguments": {"body": "',
    "open pythonic": '[save_note(body="',
    "open object": '<tool_call>\n{"name": "set_thermostat", "arguments": {"schedule": ',
    "open think": "<think>",
}
INNER = {
    "closers": "</parameter>",
    "all closers": '</body></save_note></arg_value></parameter></function></invoke></tool_call><|"|>',
    "openers": "<tool_call><function=save_note><save_note>",
    "quotes": '"',
    "quoted ends": '"}',
    "escapes": "\\\\",
    "braces": '{"a":',
    "fences": "\n```\n",
    "brackets": '")]',
}


def whole(text: str) -> None:
    toolglot.read(text, tools=HOME_TOOLS)


def streamed(text: str) -> None:
    reader = toolglot.Reader(tools=HOME_TOOLS)
    for start in range(0, len(text), 8):
        reader.feed(text[start : start + 8])
    reader.close()


def seconds(work: Callable[[str], None], text: str) -> float:
    start = process_time()
    work(text)
    return process_time() - start


def assert_linear(make: Callable[[int], str], work: Callable[[str], None]) -> None:
    assert_growth(lambda size: seconds(work, make(size)), SMALL, LARGE, LIMIT, NOISE)


def repeat(unit: str, head: str = "") -> Callable[[int], str]:
    return lambda size: head + unit * (size // len(unit))


both_ways = pytest.mark.parametrize("work", [whole, streamed], ids=["whole", "streamed"])


@both_ways
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS.keys())
def test_repeated_marks(unit: str, work: Callable[[str], None]) -> None:
    assert_linear(repeat(unit), work)


@both_ways
@pytest.mark.parametrize("inner", INNER.values(), ids=INNER.keys())
@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS.keys())
def test_repeated_marks_inside_an_open_value(head: str, inner: str, work: Callable[[str], None]) -> None:
    assert_linear(repeat(inner, head), work)


@both_ways
def test_deep_nesting_that_closes(work: Callable[[str], None]) -> None:
    head = '<tool_call>\n{"name": "set_thermostat", "arguments": {"room": "a", "celsius": 1, "schedule": '
    assert_linear(lambda size: head + '{"a":' * (size // 6) + "1" + "}" * (size // 6) + "}}\n</tool_call>", work)


@both_ways
def test_many_small_calls(work: Callable[[str], None]) -> None:
    assert_linear(repeat('<tool_call>\n{"name": "list_sensors", "arguments": {}}\n</tool_call>\n'), work)


def test_openers_repeated_a_hundred_thousand_times() -> None:
    assert_linear(lambda size: "<tool_call>" * (size // 2), whole)


@both_ways
@pytest.mark.parametrize("size", [100_000])
def test_deep_nesting_does_not_exhaust_the_stack(size: int, work: Callable[[str], None]) -> None:
    for text in (
        "[" * size,
        '{"a":' * size,
        '<tool_call>{"name": "save_note", "arguments": {"body": ' + "[" * size,
        "<a>" * size,
    ):
        work(text)


def calls_for_half(work: Callable[[str], None], text: str) -> int:
    """How many functions are called for the second half of a text."""
    return calls_of(work, text) - calls_of(work, text[: len(text) // 2])


def calls_of(work: Callable[[str], None], text: str) -> int:
    """How many functions are called for a text, those of the language itself included."""
    count = 0

    def watch(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    for read in ("x",) * 10, (text,):  # what is compiled for the ninth answer, and at first use
        for one in read:
            work(one)
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        work(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("unit", ["<", "<|", "<a", "</p", "[", "[a", "[\n", "\n[", "<\n", "<a\n", "<a>\n", "<a_b>x"])
def test_what_only_begins_like_a_mark_is_passed_without_a_look(unit: str) -> None:
    text = "x" + unit * (8000 // len(unit))
    assert calls_for_half(whole, text) < len(text) / 100


@pytest.mark.parametrize(
    "opener",
    ["<tool_call>", "<tool_call>\n", "[TOOL_CALLS] ", "<tool_code>", "<|tool_call|>", "<function_call>\n"],
)
def test_a_wrapper_in_a_wrapper_is_stepped_over_once(opener: str) -> None:
    assert calls_for_half(whole, opener * 500) < 250 * 180


@both_ways
def test_frames_that_fail_late_are_not_looked_at_again_for_ever(work: Callable[[str], None]) -> None:
    frames = "<tool_call>{" + """"x": '<tool_call>{"x": ', """ * 150 + "!"
    text = frames * 10
    assert calls_for_half(work, text) < 15 * len(text)


def test_a_call_behind_frames_that_fail_is_read() -> None:
    frames = "<tool_call>{" + """"x": '<tool_call>{"x": ', """ * 150 + "!"
    call = '\n<tool_call>\n{"name": "list_sensors", "arguments": {}}\n</tool_call>'
    for text in (frames * 10, "<tool_call>" * 500, "<" * 5000):
        reading = toolglot.read(text + call, tools=HOME_TOOLS)
        assert [found.name for found in reading.calls] == ["list_sensors"]
        assert reading.text.startswith(text[:-400])


def test_no_mark_is_passed_without_a_look() -> None:
    """The quick check, rough and exact, accepts every text that the marks match or may match with more input."""
    known = dialect_index()
    samples = load_samples()
    for sample in samples[:: max(1, len(samples) // 150)]:
        names = tuple(tool.get("function", tool)["name"] for tool in load_tools(sample.tools))
        exact, rough = (known._compile_marks(names, False, rough) for rough in (False, True))
        checks = [check.match for marks in (exact, rough) for check in (marks.stops, marks.heads)]
        at_mark, at_thinking = known.anywhere.choice.at, STRAY_THINKING.at
        at_element = exact.elements.at if exact.elements is not None else at_mark  # they only depend on the names
        for end in (*range(1, min(len(sample.text), 120)), len(sample.text)):
            text = sample.text[:end]
            for pos in range(max(0, end - 60), end):
                if (
                    at_element(text, pos, False) is not None
                    or at_thinking(text, pos, False) is not None
                    or at_mark(text, pos, False) is not None
                ):
                    for check in checks:
                        assert check(text, pos) is not None, (text, pos)


def test_no_mark_has_four_signs_of_a_tag_in_a_row() -> None:
    """Values rely on it: a run of them cannot end there."""
    for dialect in dialect_index().dialects:
        marks = [mark for call in dialect.calls for mark in (*call.header, *call.close)]
        assert not [
            mark for mark in (*marks, *(close for wrap in dialect.wrap for close in wrap.close)) if "<<<<" in mark
        ]


def message(role: Role, *parts: Text | ToolCall | ToolResult) -> Message:
    return Message(role, parts)


def call_all(count: int) -> Message:
    return message("assistant", *(ToolCall(str(number), "read") for number in range(count)))


def answer_all(count: int, text: str, named: bool = True) -> list[Message]:
    return [message("tool", ToolResult(str(at) if named else "", content=(Text(text),))) for at in range(count)]


PAGE = "lorem ipsum " * 100
USER, SYSTEM = message("user", Text(PAGE)), message("system", Text(PAGE))
HISTORIES: dict[str, Callable[[int], list[Message]]] = {
    "system messages": lambda count: [SYSTEM] * count,
    "user messages behind a result": lambda count: [call_all(1), *answer_all(1, "x"), *[USER] * count],
    "results of one turn": lambda count: [call_all(count), *answer_all(count, PAGE)],
    "results without ids": lambda count: [call_all(count), *answer_all(count, "x", named=False)],
    "calls without results": lambda count: [call_all(count), *[message("user", Text("x"))] * count],
    "results without calls": lambda count: answer_all(count, "x"),
    "repeated ids": lambda count: [message("assistant", *[ToolCall("a", "read")] * count), *[message("tool", ToolResult("a"))] * 2 * count],
    "turns in a row": lambda count: [message("assistant", ToolCall(str(number), "read")) for number in range(count)],
    "turns": lambda count: [turn for number in range(count) for turn in (message("assistant", ToolCall(str(number), "read")), message("tool", ToolResult(str(number))))],
}  # fmt: skip


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES.keys())
def test_long_histories(history: Callable[[int], list[Message]]) -> None:
    def measure(count: int) -> float:
        messages = history(count)
        began = process_time()
        healed = heal_history(messages).messages
        assert len([*find_loops(healed, 3), *find_edit_hints(healed)]) < count
        render_as_text(Conversation("m", healed, (Tool("read"),)), "roo_xml")
        return process_time() - began

    measure(10)
    assert_growth(measure, 500, 5000, LIMIT, NOISE)


PROMPTS = {
    "headings": "## name\n",
    "headings in fences": "```\n## name\n",
    "samples that never end": "<name>\n",
    "samples in the middle of lines": "x <name> ",
    "samples full of tags": "<name>\n<a>\n",
    "bullets": "- name: (required) text\n",
    "parameters": "Parameters:\n- name: text\n",
    "blanks": " ",
    "blank lines": "\n",
    "sentences": "XML. Not so. ",
    "bold names": "**name** \u2014 text. Params: a, b (optional).\n",
    "servers": "## server (`x`)\n### Available Tools\n- tool: text\n    Input Schema:\n    {}\n",
    "servers on a line": "## server (` (`",
    "labels": "Example: a:\n\n",
    "labels of colons": "Example" + ":" * 80 + "\n",
    "elements": "<a>\n</b>\n",
    "system information": "SYSTEM INFORMATION\n",
}


@pytest.mark.parametrize(
    "head", ["# Tools\n## name\n", "## TOOLS\n**name** - x\n", "# Connected MCP Servers\n## name\n"]
)
@pytest.mark.parametrize("unit", PROMPTS.values(), ids=PROMPTS.keys())
def test_prompts_of_xml_clients(unit: str, head: str) -> None:
    def measure(size: int) -> float:
        text = f"# Tools\n## name\nDescription: x\n{head}{unit * (size // len(unit))}</name>"
        began = process_time()
        parse_prompt.__wrapped__(text)
        return process_time() - began

    assert_growth(measure, SMALL, LARGE, LIMIT, NOISE)


NUMBERED = {
    "tools": lambda number: f"## t{number}\n",
    "tools of servers": lambda number: f"- t{number}: text\n\n",
    "elements that never end": lambda number: f"<t{number}>\n",
}


@pytest.mark.parametrize("tail", ["<t", "x"])
@pytest.mark.parametrize("unit", NUMBERED.values(), ids=NUMBERED.keys())
def test_prompts_that_name_many_things(unit: Callable[[int], str], tail: str) -> None:
    def measure(count: int) -> float:
        named = "".join(map(unit, range(count)))
        servers = f"# Connected MCP Servers\n## s\n### Available Tools\n{named}"
        text = f"# Tools\n## name\n{named}{servers}\n# Rules\n{named}{tail * count * 4}"
        began = process_time()
        parse_prompt.__wrapped__(text)
        return process_time() - began

    assert_growth(measure, 600, 6000, LIMIT, NOISE)


@pytest.mark.parametrize("unit", ["<list_files><path>a</path></list_files>", "<list_files>", "<path>", "<id>x</id>"])
def test_turns_of_xml_clients(unit: str) -> None:
    def measure(count: int) -> float:
        results = [Text("[list_files for 'a'] Result:\nx")] * count
        messages = (message("assistant", Text("<list_files>" + unit * count)), message("user", *results))
        began = process_time()
        parse_history(messages, all_clients()["roo-3.36"], "m")
        return process_time() - began

    assert_growth(measure, 500, 5000, LIMIT, NOISE)


def test_a_stream_that_is_gathered_to_a_whole_answer() -> None:
    def measure(count: int) -> float:
        delivery = Delivery(toolglot.Reader(), Telemetry().begin("r", "w"), DeliveryPlan(streamed=False))
        began = process_time()
        delivery.deliver([TextDelta("lorem ipsum dolor sit ")] * count)
        return process_time() - began

    assert_growth(measure, 10_000, 100_000, LIMIT, NOISE)
