"""Calls that occur in the conversation: quoted ones stay text, one that is the whole answer is made, others are unaffected."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator
from itertools import cycle
from time import process_time
from typing import Any

import pytest
from support.growth import assert_growth
from support.line import Line
from support.rows import in_one_test
from support.samples import Sample, load_samples, load_tools

from toolglot.core import provenance
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolResult, Tools
from toolglot.core.events import CallArguments, CallEnded, CallStarted, Event, Finished, Reason, TextDelta
from toolglot.core.normal_forms import normal_forms
from toolglot.core.provenance import find_quotations
from toolglot.core.text_cache import TextCache
from toolglot.prompting.call_writer import to_definition, write_calls
from toolglot.prompting.mark_escaping import get_mark_escaper
from toolglot.reading.reader import Reader, Reading, collect, dialect_index, read

STRING = {"type": "string"}
TOOLS = Tools(
    Tool(name, "It does something.", {"type": "object", "properties": properties, "required": required})
    for name, properties, required in (
        ("read_file", {"path": STRING}, ["path"]),
        ("write_to_file", {"path": STRING, "content": STRING}, ["path", "content"]),
    )
)
DEFINED = [to_definition(tool) for tool in TOOLS]
NAMES = tuple(tool.name for tool in TOOLS)
CALLS = (
    ("read_file", {"path": "src/main.py"}),
    ("write_to_file", {"path": "a.md", "content": "# Title\n\n- item\n- if (a < b) { say('hi & \"bye\"') }\n"}),
)
DIALECTS = [record.name for record in dialect_index().dialects]


def prefix(text: str, head: Callable[[int], str]) -> str:
    return "\n".join(head(number) + line for number, line in enumerate(text.split("\n"), 9))


WAYS: dict[str, Callable[[str], str]] = {
    "inline": lambda x: f"The call {x} was in the file.",
    "behind a colon": lambda x: f"The file says: {x}",
    "double quotes": lambda x: f'The file contains "{x}".',
    "single quotes": lambda x: f"The file contains '{x}'.",
    "smart quotes": lambda x: f"The file contains “{x}”.",
    "own line": lambda x: f"The file contains this:\n{x}\nand nothing else.",
    "own line at the end": lambda x: f"The file contains a call.\n\n{x}",
    "own line at the start": lambda x: f"{x}\n\nThis is what the file contains.",
    "before words": lambda x: f"{x} is what the file contains.",
    "blockquote": lambda x: "It says:\n\n" + prefix(x, lambda _: "> ") + "\n\nThat is all.",
    "blockquote at the end": lambda x: "It says:\n\n" + prefix(x, lambda _: "> "),
    "added lines": lambda x: "The change:\n" + prefix(x, lambda _: "+") + "\nDone.",
    "removed lines": lambda x: "The change:\n" + prefix(x, lambda _: "-"),
    "lines with a bar": lambda x: "The lines:\n" + prefix(x, lambda number: f"{number:4} | ") + "\nDone.",
    "lines with a colon": lambda x: "The lines:\n" + prefix(x, lambda number: f"{number}: "),
    "lines with a tab": lambda x: "The lines:\n" + prefix(x, lambda number: f"{number}\t") + "\nDone.",
    "lines of a list": lambda x: "The lines:\n" + prefix(x, lambda number: f"{number}. ") + "\nDone.",
    "lines in brackets": lambda x: "The lines:\n" + prefix(x, lambda number: f"[{number}] ") + "\nDone.",
    "found lines": lambda x: "Found:\n" + prefix(x, lambda number: f"./src/a-b.py:{number}:") + "\nDone.",
    "lines around found ones": lambda x: "Found:\n" + prefix(x, lambda number: f"src/a.py-{number}-"),
    "lines of a log": lambda x: "The log:\n" + prefix(x, lambda number: f"2026-01-02 10:00:{number:02} INFO "),
    "comment": lambda x: "The file:\n" + prefix(x, lambda _: "# ") + "\nDone.",
    "other comment": lambda x: "The file:\n" + prefix(x, lambda _: "// ") + "\nDone.",
    "box": lambda x: "The file:\n" + prefix(x, lambda _: "│ ") + "\nDone.",
    "list of strings": lambda x: f"The lines are {json.dumps(x.splitlines(True), indent=1)}.",
    "cell with line breaks": lambda x: "| 1 | " + x.replace("\n", "<br>") + " |",
    "fence": lambda x: f"The file:\n```\n{x}\n```\nThat is all.",
    "labelled fence": lambda x: f"The file:\n```xml\n{x}\n```",
    "backticks": lambda x: f"The file has `{x}` in it.",
    "list item": lambda x: f"The file has:\n- one line\n- {x}\n- another line",
    "table": lambda x: f"| line | text |\n|---|---|\n| 1 | {x} |\n| 2 | end |",
    "JSON string": lambda x: f"The content is {json.dumps({'content': x})} as JSON.",
    "entities": lambda x: f"The file has {html.escape(x)} in it.",
    "indented": lambda x: "The file:\n\n" + prefix(x, lambda _: "    ") + "\n\nThat is all.",
    "twice": lambda x: f"First {x} and then {x} again.",
    "twice and nothing else": lambda x: f"{x}\n{x}",
    "split": lambda x: "The file says\n" + x.replace(" ", "\n") + "\nin it.",
    "with a result": lambda x: f"{x}\n<tool_response>\n1 file\n</tool_response>\n\nSo it ran.",
    "in reasoning": lambda x: f"<think>\nThe file says: {x}\n</think>\n\nIt holds a call.",
    "at the end of reasoning": lambda x: f"<think>\nThe file says: {x}",
}
"""Ways of quoting a call in an answer."""

SOURCES: dict[str, Callable[[str], str]] = {
    "as it is": lambda x: f"1 file\n{x}\nend",
    "numbered": lambda x: prefix(f"head\n{x}\nend", lambda number: f"{number:6}\t"),
    "JSON": lambda x: json.dumps({"content": f"head\n{x}", "ok": True}),
    "found": lambda x: prefix(x, lambda number: f"src/main.py:{number}:"),
    "log": lambda x: prefix(x, lambda number: f"[2026-01-02T10:00:{number:02}.123Z] DEBUG "),
    "notebook": lambda x: json.dumps({"source": x.splitlines(True)}, indent=1),
    "entities": lambda x: f"<pre>{html.escape(x)}</pre>",
}
"""How the call may stand in the conversation."""


def write(dialect: str, name: str, arguments: dict[str, Any]) -> str:
    return write_calls(dialect, [(name, json.dumps(arguments, ensure_ascii=False))], TOOLS)


def read_pieces(text: str, quoted: list[str], **options: Any) -> Reading:
    reader = Reader(DEFINED, quoted=quoted, **options)
    return collect([*(event for char in text for event in reader.feed(char)), *reader.close()], text)


def summarise(reading: Reading) -> tuple[Any, ...]:
    calls = [(call.name, call.arguments, call.span) for call in reading.calls]
    return reading.text, reading.reasoning, calls, [(one.reason, one.raw) for one in reading.rejected]


@in_one_test("dialect", DIALECTS)
def test_quoted_calls_stay_text(dialect: str) -> None:
    for name, arguments in CALLS:
        call = write(dialect, name, arguments)
        for (way, quote), source in zip(WAYS.items(), cycle(SOURCES), strict=False):
            text = quote(call)
            reading = read(text, DEFINED, quoted=[SOURCES[source](call)])
            assert not reading.calls, (source, way)
            if "reasoning" not in way and not reading.rejected:
                assert reading.text == text, (source, way)


@in_one_test("dialect", DIALECTS[::5])
def test_cutting_changes_nothing(dialect: str) -> None:
    for name, arguments in CALLS:
        call = write(dialect, name, arguments)
        for quote in WAYS.values():
            text, quoted = quote(call), [SOURCES["as it is"](call)]
            assert summarise(read_pieces(text, quoted)) == summarise(read(text, DEFINED, quoted=quoted))


@in_one_test("dialect", DIALECTS)
def test_an_answer_that_is_nothing_but_the_call_is_made(dialect: str) -> None:
    for name, arguments in CALLS:
        call = write(dialect, name, arguments)
        for text in (call, f"\n\n{call}\n", f"<think>\nI should do it.\n</think>\n\n{call}"):
            expected = summarise(read(text, DEFINED))
            assert len(expected[2]) == 1
            assert summarise(read(text, DEFINED, quoted=[SOURCES["as it is"](call)])) == expected
            assert summarise(read_pieces(text, [SOURCES["as it is"](call)])) == expected


@in_one_test("dialect", DIALECTS)
def test_another_call_is_made(dialect: str) -> None:
    """Some dialects count only as the whole answer."""
    other = write(dialect, "read_file", {"path": "src/main.pyx"})
    for name, arguments in CALLS:
        call = write(dialect, name, arguments)
        for answer_text in (
            f"The file holds a call.\n\n{call}\n\nLet me read another one.\n\n",
            "Let me read another one.\n\n",
        ):
            meant = bool(read(answer_text.replace(call, "It is long.") + other, DEFINED).calls)
            reading = read(answer_text + other, DEFINED, quoted=[SOURCES["as it is"](call)])
            assert [one.arguments for one in reading.calls] == ['{"path":"src/main.pyx"}'] * meant
            assert reading.text.rstrip() == (answer_text + other * (not meant)).rstrip()


def test_calls_in_one_wrapper_are_distinguished() -> None:
    quoted, meant = (json.dumps({"name": "read_file", "arguments": {"path": path}}) for path in ("a", "b"))
    for text in (f"<tool_call>\n{quoted}\n{meant}\n</tool_call>", f"[TOOL_CALLS][{quoted}, {meant}]"):
        for reading in (read(text, DEFINED, quoted=[quoted]), read_pieces(text, [quoted])):
            assert [call.arguments for call in reading.calls] == ['{"path":"b"}']
            assert quoted in reading.text
            assert [call.id for call in reading.calls] == ["call_1"]


def test_a_quotation_is_recorded() -> None:
    call = write("hermes", *CALLS[0])
    reader = Reader(DEFINED, quoted=[call])
    reader.feed(f"It says: {call}")
    reader.close()
    assert reader.left == [("hermes", Reason.QUOTATION)]


@in_one_test("dialect", DIALECTS)
@in_one_test("quote", ['"', "'"])
def test_a_quotation_ends_before_the_quote(dialect: str, quote: str) -> None:
    """The quote behind a call is no part of its last value."""
    for name, arguments in CALLS:
        call = write(dialect, name, arguments)
        text = f"The file contains {quote}{call}{quote} and more."
        for reading in (read(text, DEFINED, quoted=[call]), read_pieces(text, [call])):
            assert (reading.text, reading.calls, reading.rejected) == (text, [], [])


def test_a_call_on_the_line_behind_a_quotation_is_made() -> None:
    old, new = (write("functools", "read_file", {"path": path}) for path in ("old", "new"))
    for text in (f"It says\n{old}\n{new}", f"{old}\n{new}"):
        for reading in (read(text, DEFINED, quoted=[old]), read_pieces(text, [old])):
            assert [call.arguments for call in reading.calls] == ['{"path":"new"}']


@pytest.mark.parametrize("values", [("1-2", "3-4"), ("1. a", "1. b"), ("x:1: a", "x:1: b"), ("# a", "# b")])
def test_calls_that_differ_behind_a_prefix_are_made(values: tuple[str, str]) -> None:
    """What looks like the prefix of a line hides nothing behind it."""
    quoted, meant = (
        write("roo_xml", "write_to_file", {"path": "a", "content": f"{value}\n{value}\n"}) for value in values
    )
    assert len(read(f"I write it.\n{meant}", DEFINED, quoted=[quoted]).calls) == 1


def test_a_cut_answer_might_have_gone_on() -> None:
    call = write("hermes", *CALLS[0])
    assert read(call, DEFINED, truncated=True, quoted=[call]).text == call


def test_arguments_stream_as_soon_as_they_differ() -> None:
    call = write("hermes", "write_to_file", {"path": "a.md", "content": "0123456789" * 50})
    meant = write("hermes", "write_to_file", {"path": "a.md", "content": "0123456789" * 5 + "x" * 450})
    reader = Reader(DEFINED, quoted=[f"line\n{call}"])
    received: list[list[Event]] = [reader.feed(char) for char in f"I write it.\n{meant}"]
    started = next(at for at, events in enumerate(received) if any(isinstance(one, CallStarted) for one in events))
    assert started - len("I write it.\n") - meant.index("x") < 40
    later = received[started + 20 : -40]
    assert all(any(isinstance(one, CallArguments) for one in events) for events in later)


@in_one_test("sample", load_samples(), ids=str)
def test_other_markup_changes_nothing(sample: Sample) -> None:
    """Neither markup that has nothing to do with the answer, nor such that differs from it only in some letters."""
    tools = load_tools(sample.tools)
    plain = summarise(read(sample.text, tools, truncated=sample.truncated, **sample.options))
    for text in (
        '<tool_call>{"name": "zzz", "arguments": {}}</tool_call>',
        sample.text.replace("a", "b").replace("e", "i"),
    ):
        assert plain == summarise(read(sample.text, tools, truncated=sample.truncated, quoted=[text], **sample.options))


@in_one_test("sample", load_samples(), ids=str)
def test_markup_of_every_sample_is_found(sample: Sample) -> None:
    tools = load_tools(sample.tools)
    text = f"It says:\n{sample.text}"
    reading = read(sample.text, tools, truncated=sample.truncated, **sample.options)
    if reading.calls and reading.text.strip():
        assert not read(sample.text, tools, quoted=[text], **sample.options).calls


@in_one_test(
    ("one", "other"),
    [
        ("<a>\n> b\n>  c", "<a>b c"),
        ("+a\n+b", "a\nb"),
        ("# a\n//b", "a\nb"),
        ("x/a.py:9:a\nx/a.py-10-b", "a\nb"),
        ("L9: a\n[10] b\n(11) c\n12) d", "a b c d"),
        ("10:00:01 ERROR: a\n[2026-01-02T10:00:01+02:00] [INFO] b", "a b"),
        ('"a\\n",\n "b"', "a\nb"),
        ("a<br>b<br/>c", "a b c"),
        ("a\xa0b\u3000c", "a b c"),
        ("  9 | a\n 10 | b", "a b"),
        ("9: a\n10: b", "a b"),
        ("9\ta\n10\tb", "a\nb"),
        ('{\\"a\\": \\"b\\\\nc\\"}', '{"a": "b\\nc"}'),
        ("\\u003ca\\u003e \\ud83d\\ude00", "<a> 😀"),
        ("&lt;a&gt; &amp;lt;", "<a> <"),
        ("“a” ‘b’", "\"a\" 'b'"),
        ("<\u2060tool_call>", "<tool_call>"),
        ("read\\_file", "read_file"),
    ],
)
def test_normal_forms_are_the_same(one: str, other: str) -> None:
    assert normal_forms(f"\n{one}")[-1] == normal_forms(other)[-1]


def test_texts_without_markup_leave_nothing_to_compare() -> None:
    texts = [
        "The file was read. I will call you. Its function is to invoke a tool.",
        "def read_it(path): pass",
        "",
        "a < b",
    ]
    assert not find_quotations(texts, NAMES)
    assert find_quotations(["Use <read_file> to read."], NAMES)
    assert find_quotations([r"{\"name\": \"read_file\"}"], NAMES)
    assert find_quotations(["&lt;tool_call&gt;"], ())


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = TextCache[tuple[int, int]](1000)
    monkeypatch.setattr(provenance, "_NORMAL_FORMS", kept)
    for number in range(100):
        find_quotations([f"<tool_call>{number}" + "x" * 90], NAMES)
    assert 0 < kept.size <= 1000 and len(kept) < 100


@in_one_test("unit", [" ", "\n", "<", "\\", "&", "&lt;", "1", "1:\n", "read_file ", '"', "<tool_call>", "é<|"])
def test_long_texts_are_searched_once(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    begun = process_time()
    find_quotations([text], NAMES)
    first = process_time() - begun
    begun = process_time()
    quotations = find_quotations([text], NAMES)
    quotations.may_contain('<tool_call>{"name": "read_file"')
    assert first < 1
    assert process_time() - begun < 0.05


def test_a_long_quotation_takes_linear_time() -> None:
    def measure(size: int) -> float:
        call = write("hermes", "write_to_file", {"path": "a", "content": "some words of a file\n" * (size // 21)})
        begun = process_time()
        assert not read_pieces(f"It says: {call}", [call]).calls
        return process_time() - begun

    assert_growth(measure, 20_000, 200_000, limit=25, noise=0.02)


# -- through the gateway -----------------------------------------------------------------------------------------------


def converse(call: str) -> Iterator[tuple[Message, ...]]:
    """Conversations in which the call stands."""
    half = len(call) // 2
    asked = Message("user", (Text("Read it."),))
    made = Message("assistant", (ToolCall("c1", "read_file", '{"path":"x"}'),))
    yield (
        asked,
        made,
        Message("tool", (ToolResult("c1", "read_file", (Text(f"line\n{call[:half]}"), Text(call[half:]))),)),
    )
    yield (Message("user", (Text(f"What is this?\n{call[:3]}"), Text(call[3:half]), Text(call[half:]))),)


def answer(line: Line, messages: tuple[Message, ...], text: str, stream: bool) -> list[Event]:
    exchange = line.ask(Conversation("m", messages, TOOLS), stream)
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)] if stream else [text]
    return line.answer(exchange, [*map(TextDelta, pieces), Finished("stop")])


def count_calls(events: list[Event]) -> int:
    return sum(isinstance(event, CallEnded) for event in events)


@in_one_test("stream", [False, True])
@in_one_test(
    ("mode", "client", "upstream"),
    [
        ("native", "openai_chat", "openai_chat"),
        ("text", "openai_chat", "openai_chat"),
        ("native", "anthropic_messages", "openai_chat"),
        ("text", "openai_responses", "gemini"),
        ("native", "gemini", "anthropic_messages"),
        ("native", "ollama", "ollama"),
    ],
)
def test_the_gateway_makes_no_quoted_call(mode: str, client: str, upstream: str, stream: bool) -> None:
    line = Line(client, upstream, mode)
    for dialect in DIALECTS[::11]:
        call = write(dialect, *CALLS[0])
        for messages in converse(call):
            for way in ("inline", "own line", "own line at the end", "blockquote", "before words"):
                text = WAYS[way](call)
                received = answer(line, messages, text, stream)
                assert count_calls(received) == 0, (dialect, way)
                assert "".join(event.text for event in received if isinstance(event, TextDelta)) == text
            assert count_calls(answer(line, messages, call, stream)) == 1, dialect


@in_one_test("dialect", DIALECTS[::11])
def test_a_break_character_that_is_kept_or_dropped(dialect: str) -> None:
    """A mark is broken even if it is split over parts of a message."""
    line = Line("openai_chat", "openai_chat", "text")
    call = write(dialect, *CALLS[0])
    for messages in converse(call):
        exchange = line.ask(Conversation("m", messages, TOOLS), True)
        assert exchange.prompted is not None and exchange.prompted.break_character
        broken = get_mark_escaper(exchange.route.dialect, tuple(sorted(NAMES))).escape(
            call, exchange.prompted.break_character
        )
        sent = "".join(part["text"] for part in _user_parts(exchange.upstream_body))
        assert broken in sent.replace("\r", "")
        events = line.answer(exchange, [TextDelta(f"It says: {broken}"), Finished("stop")])
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == f"It says: {call}"


def _user_parts(request: bytes) -> Iterator[dict[str, str]]:
    for message in json.loads(request)["messages"]:
        if message["role"] == "user":
            content = message["content"]
            yield from [{"text": content}] if isinstance(content, str) else content


def test_a_quotation_is_counted() -> None:
    line = Line("openai_chat", "openai_chat")
    call = write("hermes", *CALLS[0])
    exchange = line.ask(Conversation("m", next(converse(call)), TOOLS), False)
    line.answer(exchange, [TextDelta(f"It says: {call}"), Finished("stop")])
    assert exchange.recorder.outcomes == {"rescue": {"quotation": 1}}
