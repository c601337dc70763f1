"""The cost of a request does not depend on names, nothing is computed twice, and large work does not block the event loop."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from typing import Any

import pytest
from support.gateway import ASK, gateway, run
from support.rows import in_one_test

from toolglot.config import DEFAULT_DIALECT
from toolglot.core import offload
from toolglot.core.conversation import Tool
from toolglot.core.schema.toolset import compile_tool, compile_tools
from toolglot.dialects.codecs.parameter_marks import value_marks
from toolglot.gateway.exchange import Prepared
from toolglot.gateway.exchange import prepare as prepare_now
from toolglot.prompting import call_writer as writing
from toolglot.prompting import mark_escaping
from toolglot.prompting.mark_escaping import get_mark_escaper
from toolglot.prompting.named_calls import NAME_LINE
from toolglot.reading.reader import dialect_index
from toolglot.server import app as server

LARGE = {**ASK, "messages": [{"role": "user", "content": "x" * offload.LARGE_REQUEST}]}


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The expressions that are compiled during a test."""
    made: list[str] = []
    compile_one = re.compile

    def compile_and_note(pattern: str, flags: int = 0) -> re.Pattern[str]:
        made.append(pattern)
        return compile_one(pattern, flags)

    monkeypatch.setattr(re, "compile", compile_and_note)
    return made


def test_no_expression_is_compiled_for_the_name_of_a_tool(compiled: list[str]) -> None:
    get_mark_escaper("hermes", ("first",)).find_positions("Hello <first> " * 9)
    compiled.clear()
    names = tuple(f"tool_{number}" for number in range(500))
    marks = get_mark_escaper("hermes", names)
    assert list(marks.find_positions("<tool_499> " + "x" * 99)) == [1] and not compiled


def _spell(name: str) -> str:
    return re.escape(name).replace("_", r"\\*_")


def _oracle(names: tuple[str, ...]) -> re.Pattern[str]:
    """The same rules as one expression with all names in it."""
    known = "(?:" + "|".join(map(_spell, names)) + ")"
    called = rf"(?:\w{{1,64}}[.:]){{0,4}}{known}"
    rules = (
        rf"</?{known}>",
        rf"\[\s*(?:print\()?{called}\s?\(",
        rf":\s*[\"']\s*{called}",
        rf"Call:\s*{called}",
        rf"\[Calling\s*tool:\s*{called}\(",
        rf"{known}[:\d]*[ \t\r]*\n(?=\s*\{{\s*[\"'}}])",
        rf"(?:(?<=\n)|\A){known} ?\(",
    )
    return re.compile("|".join(rules))


NAMES = ("read", "read_file", "run", "run_all", "m.c.p", "print", "x1")


@in_one_test(
    "form",
    [
        *(
            "<@>",
            "</@>",
            "<@ >",
            "[@(",
            "[ print(@ (",
            ': "@',
            ":'@x",
            "Call: @",
            "@\n{'a'",
            '@:12 \r\n\n {"',
            "@\n(",
            "a @(",
        ),
        *(
            "\n@ (",
            "\n@(",
            "@(",
            "functions.@",
            ': "functions.@',
            "[a.b.@(",
            "[a.b.c.d.e.@(",
            "[Calling tool: @(",
            "x@\n{}",
        ),
    ],
)
@in_one_test("name", [*NAMES, r"read\_file", "other", "readx"])
def test_names_are_found_as_one_expression_would(form: str, name: str) -> None:
    marks, oracle = get_mark_escaper("hermes", tuple(sorted(NAMES))), _oracle(tuple(sorted(NAMES)))
    for text in (form.replace("@", name), f"so {form.replace('@', name)} and {form.replace('@', name)}"):
        assert list(marks.find_positions(text)) == [found.start() + 1 for found in oracle.finditer(text)], text


def test_one_mark_alone_begins_with_the_name_of_a_tool() -> None:
    """Where that changes, ``named_marks`` has to learn of it."""
    closers = [one for dialect in dialect_index().dialects for one in mark_escaping._closers(dialect)]
    assert not [one for one in closers if "{name" in one]
    assert {one for one in mark_escaping._list_marks() if one.startswith("{name}")} <= {NAME_LINE}
    assert not [one for one in mark_escaping._list_marks() if "{name_id}" in one]


def test_marks_of_texts_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    marks, texts = get_mark_escaper("hermes", ("read",)), ("a <tool_call> b " * 30, "nothing of the kind " * 30)
    found = [list(marks.find_positions(text)) for text in texts]
    monkeypatch.setattr(mark_escaping.MarkEscaper, "_search", None)
    assert [list(marks.find_positions(text)) for text in texts] == found


def test_keys_share_their_marks_where_the_spelling_does_not_name_them() -> None:
    body: Any = dialect_index().by_name["qwen3_coder"].call.body
    own = body.parameters[0]
    assert value_marks(own, "a") is value_marks(own, "b")
    assert value_marks(own, "a") is not value_marks(own, "old_string")
    element: Any = dialect_index().by_name["roo_xml"].call.body
    assert value_marks(element.parameters[0], "a") is not value_marks(element.parameters[0], "b")


def test_a_call_is_written_in_one_form_if_that_reads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    forms = writing._write_forms

    def note_forms(*given: Any) -> Any:
        for form in forms(*given):
            written.append(form)
            yield form

    monkeypatch.setattr(writing, "_write_forms", note_forms)
    for dialect in ("hermes", "qwen3_coder"):
        written.clear()
        writing.write_call(dialect, "once", json.dumps({"text": f'say "{dialect}"'}))
        assert len(written) == 1


def test_long_calls_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = json.dumps({"text": "long " * 20_000})
    first = writing.write_call("hermes", "long", arguments)
    other = writing.write_call("hermes", "long", arguments, [Tool("long", "", {"properties": {"text": {}}})])
    monkeypatch.setattr(writing, "_write", None)
    assert writing.write_call("hermes", "long", arguments) == first == other


def test_a_schema_is_compiled_once_for_all_lists_of_tools() -> None:
    one, other = Tool("one", "", {"properties": {"a": {}}}), Tool("other", "", {"type": "nonsense"})
    boxes = [compile_tools((one,), ()), compile_tools((one, other), ())]
    assert boxes[0].find("one") is boxes[1].find("one") is compile_tool(one)
    assert boxes[1].find("other") is compile_tool(other)


def test_others_are_answered_while_a_large_request_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, released = threading.Event(), threading.Event()

    def prepare(*given: Any) -> Prepared:
        begun.set()
        assert released.wait(30)
        return prepare_now(*given)

    monkeypatch.setattr(server, "prepare_with_tools", prepare)

    async def check() -> None:
        async with gateway() as gate:
            large = asyncio.create_task(gate.ask(LARGE))
            await asyncio.to_thread(begun.wait, 30)
            assert (await gate.get("/health")).status == 200
            assert (await gate.ask()).status == 200
            assert not large.done()
            released.set()
            assert (await large).status == 200

    run(check)


def test_a_client_may_leave_while_its_request_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, released, done = threading.Event(), threading.Event(), threading.Event()

    def prepare(*given: Any) -> Prepared:
        try:
            begun.set()
            assert released.wait(30)
            return prepare_now(*given)
        finally:
            done.set()

    monkeypatch.setattr(server, "prepare_with_tools", prepare)

    async def check() -> None:
        async with gateway() as gate:
            large = asyncio.create_task(gate.ask(LARGE))
            await asyncio.to_thread(begun.wait, 30)
            large.cancel()
            with pytest.raises(asyncio.CancelledError):
                await large
            released.set()
            assert await asyncio.to_thread(done.wait, 30)
            asked = gate.record.total
            assert (await gate.ask()).status == 200
            assert (asked, gate.record.total) == (0, 1)

    run(check)


def test_large_work_is_done_in_threads() -> None:
    async def check() -> None:
        own = threading.get_ident()
        assert await offload.run(False, threading.get_ident) == own != await offload.run(True, threading.get_ident)

    run(check)


@pytest.mark.parametrize("dialect", [DEFAULT_DIALECT, "hermes", "qwen3_coder", "pythonic"])
def test_the_first_request_of_a_process_compiles_little(dialect: str) -> None:
    """In a process of its own, for nothing may have been compiled by another test."""
    done = subprocess.run([sys.executable, "-c", FIRST_REQUEST, dialect], capture_output=True, text=True, check=True)
    name, arguments, compiled = json.loads(done.stdout)
    assert (name, arguments) == ("read", {"path": "a.py"})
    assert sum(map(len, compiled)) < 5000  # less than one of the expressions for all dialects


FIRST_REQUEST = """
import json, re, sys

compiled, original = [], re._compiler.compile
re._compiler.compile = lambda pattern, flags=0: compiled.append(str(pattern)) or original(pattern, flags)

from toolglot.config import load
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolResult
from toolglot.reading.reader import Reader, collect
from toolglot.core.schema.toolset import compile_tools
from toolglot.server.lifecycle import warm_up
from toolglot.prompting.conversation import render_as_text

dialect = sys.argv[1]
warm_up(load({"base_url": "http://127.0.0.1:1/v1", "dialect": dialect}, {}))
compiled.clear()
kinds = {"path": {"type": "string"}, "lines": {"type": "integer"}, "all": {"type": "boolean"}}
tool = Tool("read", "Reads.", {"type": "object", "properties": kinds, "required": ["path"]})
call = ToolCall("1", "read", '{"path": "a.py"}')
result = ToolResult("1", "read", (Text("<b>1</b>\\n"),))
messages = (Message("user", (Text("Go"),)), Message("assistant", (call,)), Message("tool", (result,)))
written = render_as_text(Conversation("", messages, (tool,)), dialect).conversation.messages[-2].text
reader = Reader(compile_tools((tool, Tool("write", "", {})), ()), parallel=False)
events = [event for piece in written for event in reader.feed(piece)] + reader.close()
(made,) = collect(events, written).calls
print(json.dumps([made.name, json.loads(made.arguments), compiled]))
"""
