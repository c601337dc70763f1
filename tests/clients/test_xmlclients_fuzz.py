"""Whatever a model writes, an XML client gets exactly that, or the call is refused, or the difference is recorded.

The calls are read back with the ports of the clients' parsers and compared with what the model wrote, not with what the
rendering thinks of it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from random import Random
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.event_order import check_order
from support.fragments import SCALE
from support.growth import assert_growth
from support.xmlcases import MODELS, PIECES, Case, deliver, make_case, make_own, make_text

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.call_renderer import RenderedCall, render_call
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.parsers import CallEndFinder
from toolglot.clients.xml.profile import JS_WHITESPACE, ContentRewrite, Tolerance, ValueKind, XmlCallBlock, XmlTextBlock
from toolglot.clients.xml.response_renderer import ResponseRenderer
from toolglot.clients.xml.text_escaping import unescape_text
from toolglot.clients.xml.value_encoding import BROKEN_OPENER
from toolglot.clients.xml.verbatim_calls import VerbatimCalls
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    ReasoningDelta,
    Started,
    TextDelta,
)
from toolglot.core.lenient_json import dump, parse

CLIENTS = all_clients()
CASES = 500 * SCALE
"""For each client and model, so 4 * 3 * 500 times the number of rounds below; versions of Roo between the first and the
last have one round."""
ROUNDS = 4
MAIN = ("roo-3.29", "roo-3.36", "kilo-4.145", "cline-legacy")

NUMBERED = re.compile(rf"[{JS_WHITESPACE}]*[0-9]+[{JS_WHITESPACE}]+\|(?!\|)")


def plain(value: Any) -> Any:
    """The value with numbers as their text, as the ports give them."""
    return parse(json.dumps(value)).value if isinstance(value, (dict, list)) else value


def allowed(case: Case, name: str, expected: str, got: str) -> str:
    """The note that must stand for this difference, or nothing if there is no excuse for it."""
    care = next(one.tolerance for one in case.tool.parameters if one.name == name)
    if care is Tolerance.TAIL and expected.rstrip(JS_WHITESPACE) == got:
        return f"{name}: trimmed"
    if care in (Tolerance.ENDS, Tolerance.PROSE) and expected.strip(JS_WHITESPACE) == got:
        return f"{name}: trimmed"
    broken = got.replace(f"{BROKEN_OPENER}/{name}>", f"</{name}>")
    return f"{name}: broken_tag" if care is Tolerance.PROSE and broken == expected.strip(JS_WHITESPACE) else ""


def judge(case: Case, rendered: RenderedCall) -> str:
    """exact, flagged or refused; anything else fails here."""
    if not rendered.text:
        assert rendered.defects
        return "refused"
    (call,) = case.client.read(rendered.text, case.model)
    assert isinstance(call, XmlCallBlock)
    assert (call.name, call.partial, call.complaint) == (case.tool.name, False, "")
    notes = set(rendered.notes)
    excused = set()
    for name, expected in case.expected.items():
        got = call.params.get(name)
        if isinstance(expected, str) and isinstance(got, str):
            if got != expected:
                note = allowed(case, name, expected, got)
                assert note, (case.client.name, case.model, case.tool.name, name, expected, got)
                excused.add(note)
        elif got is None and isinstance(expected, str) and not expected.strip(JS_WHITESPACE):
            assert not expected or f"{name} was blank and was left out" in notes
        elif f"{name}: trimmed" in notes:
            paths = [{**file, "path": file["path"].strip(JS_WHITESPACE)} for file in expected["file"]]
            assert dump(got) == dump(plain({"file": paths}))
        else:
            assert dump(got) == dump(plain(expected)), (case.client.name, case.tool.name, name)
    assert excused <= notes
    filled = {one.name for one in case.tool.parameters if one.default is not None or one.counts_lines_of}
    assert call.params.keys() - case.expected.keys() <= filled
    return "flagged" if notes else "exact"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "client, round_",
    [(client, at) for client in CLIENTS.values() for at in range(ROUNDS if client.name in MAIN else 1)],
)
def test_a_rendered_call_is_exact_or_recorded_or_refused(client: XmlClient, model: str, round_: int) -> None:
    random = Random(f"{client.name} {model} {round_}")
    tools = list(client.tools.values())
    seen: Counter[str] = Counter()
    for at in range(CASES):
        case = make_case(random, client, model, tools[at % len(tools)])
        rendered = render_call(client, model, case.tool.name, case.arguments)
        seen[judge(case, rendered)] += 1
    assert seen["exact"] > CASES // 4


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_ordinary_values_are_never_refused(client: XmlClient, model: str) -> None:
    random = Random(client.name + model)
    for tool in client.tools.values():
        for _ in range(5):
            case = make_case(random, client, model, tool)
            words = {
                name: "words & <b>more</b>"
                if isinstance(value, str) and one.kind in (ValueKind.TEXT, ValueKind.BLOCK)
                else value
                for name, value in case.given.items()
                for one in tool.parameters
                if one.name == name and one.kind in (ValueKind.TEXT, ValueKind.BLOCK, ValueKind.NUMBER, ValueKind.FLAG)
            }
            nested = {
                ValueKind.JSON: {"a": 1},
                ValueKind.LIST: ["a"],
                ValueKind.FILES: ["a.py"],
                ValueKind.SUGGESTIONS: ["yes", "no"],
            }
            more = {one.name: nested[one.kind] for one in tool.parameters if one.kind in nested}
            rendered = render_call(client, model, tool.name, json.dumps(words | more))
            assert rendered.text, (tool.name, rendered.defects)
            assert not rendered.notes


@pytest.mark.parametrize("name", ["roo-3.29", "roo-3.36", "kilo-4.145"])
def test_files_for_roo_are_exact_for_other_models(name: str) -> None:
    """Only a file in which every line is numbered, or that starts with a byte order mark, cannot be written."""
    client, random = CLIENTS[name], Random(name)
    tool = client.tools["write_to_file"]
    content = next(one for one in tool.parameters if one.name == "content")
    for _ in range(500 * SCALE):
        text = make_text(random, client, tool, content, hostile=True)
        rendered = render_call(client, "qwen3", tool.name, json.dumps({"path": "a", "content": text}))
        numbered = all(NUMBERED.match(line) for line in re.split("\r?\n", text))
        changed = numbered or text.startswith("\ufeff")
        assert len(text) > 90_000 or bool(rendered.text) is not changed, text[:200]
        assert not rendered.notes


def test_files_for_cline_are_exact_for_other_models() -> None:
    """Only a file with the character that Cline deletes, or a byte order mark, cannot be written. Its ends are kept."""
    client, random = CLIENTS["cline-legacy"], Random(7)
    tool = client.tools["write_to_file"]
    content = next(one for one in tool.parameters if one.name == "content")
    assert ContentRewrite.FENCES_TRIMMED in content.rewrites
    for path in ("a.py", "a.xml", "B.XML "):
        for _ in range(300 * SCALE):
            text = make_text(random, client, tool, content, hostile=True)
            if not text.strip("\ufeff"):
                continue
            rendered = render_call(client, "qwen3", tool.name, json.dumps({"path": path, "content": text}))
            changed = "\ufffd" in text or text.startswith("\ufeff")
            assert bool(rendered.text) is not changed, text[:200]
            assert [note for note in rendered.notes if note.startswith("content")] == []


@settings(max_examples=150 * SCALE, deadline=None)
@given(st.text(max_size=200), st.sampled_from(sorted(CLIENTS)), st.sampled_from(MODELS))
def test_any_text_is_read_back(text: str, name: str, model: str) -> None:
    client = CLIENTS[name]
    for tool, key in (("write_to_file", "content"), ("execute_command", "command"), ("attempt_completion", "result")):
        given_: dict[str, Any] = {key: text, **({"path": "a"} if key == "content" else {})}
        known = client.tools[tool]
        case = Case(client, model, known, given_, given_)
        judge(case, render_call(client, model, tool, case.arguments))


def cut(random: Random, text: str) -> list[str]:
    ends = sorted(random.choices(range(len(text) + 1), k=random.randint(0, 6)))
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def make_prose(random: Random, client: XmlClient) -> str:
    tags = random.choices(sorted(client.tags), k=3) + random.choices(sorted(client.grammar.parameters), k=2)
    marks = [f"<{tag}>" for tag in tags] + [f"</{tag}>" for tag in tags] + [f"<\u200b{tags[0]}>", f"<<{tags[1]}>"]
    pieces = random.choices((PIECES, marks, ("words ", "and more. ")), k=random.randint(0, 15))
    return "".join(map(random.choice, pieces))


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_prose_is_never_a_call(client: XmlClient) -> None:
    """The client finds the one call and no other, and the text is the model's to the byte."""
    random = Random(client.name)
    for at in range(1000 * SCALE):
        text, called = make_prose(random, client), at % 2
        rendering = ResponseRenderer(client, "qwen3")
        events: list[Event] = [Started(), *map(TextDelta, cut(random, text))]
        if called:
            fragments = cut(random, '{"path":"a.py"}')
            events += [CallStarted(0, "c", "list_code_definition_names" if "roo-3.29" == client.name else "list_files")]
            events += [CallArguments(0, fragment) for fragment in fragments]
            events += [CallEnded(0), TextDelta(make_prose(random, client))]
        events.append(Finished("tool_calls" if called else "stop"))
        received = [event for given_ in events for event in rendering.feed([given_])]
        check_order(received)
        assert received[-1] == Finished("stop")
        message = "".join(event.text for event in received if isinstance(event, TextDelta))
        assert message.strip(JS_WHITESPACE)
        blocks = client.read(message, "qwen3")
        assert [isinstance(block, XmlCallBlock) for block in blocks].count(True) == called
        assert not called or isinstance(blocks[-1], XmlCallBlock)
        if text.strip(JS_WHITESPACE):
            shown = next(block.text for block in blocks if isinstance(block, XmlTextBlock))
            assert unescape_text(client, shown) == text.strip(JS_WHITESPACE), text


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_own_xml_with_the_unexpected_in_it(client: XmlClient) -> None:
    """What the client reads as a call passes as it stands. Anything else is at most one call, and never an open one."""
    random, seen = Random(client.name), Counter[str]()
    for at in range(300 * SCALE):
        text = make_own(random, client, hostile=at % 2 == 1)
        message = random.choice(("", "Now.\n\n", "I do it.\n")) + text
        events = deliver(client, cut(random, message), MODELS[at % 3])
        blocks = client.read("".join(events), MODELS[at % 3])
        found = [block for block in blocks if isinstance(block, XmlCallBlock)]
        assert len(found) <= 1
        element = VerbatimCalls(client, MODELS[at % 3]).read(text)
        if element is not None and element.is_valid:
            seen["own"] += 1
            assert "".join(events) == message
        for end in range(len(events)):
            so_far = client.read("".join(events[: end + 1]), MODELS[at % 3])
            assert not any(isinstance(block, XmlCallBlock) and block.partial for block in so_far)
    assert seen["own"] > 120 * SCALE


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_the_end_of_a_call_is_found_where_the_parser_finds_it(client: XmlClient) -> None:
    random = Random(client.name)
    for at in range(400 * SCALE):
        text = make_own(random, client, hostile=True) + make_prose(random, client)
        if at % 40 == 0:
            text = text.replace("</", "😀" * random.choice((51_190, 51_200, 51_210)) + "</", 1)
        opener = client.opener.match(text)
        assert opener is not None
        boundary, behind, end = CallEndFinder(client.grammar, opener[1]), opener.end(), -1
        for piece in cut(random, text[behind:]):
            if (used := boundary.feed(piece)) >= 0:
                end = behind + used
                break
            behind += len(piece)
        first = client.parse(client.grammar, text)[0]
        assert isinstance(first, XmlCallBlock)
        assert first.partial is (end < 0)
        if end >= 0:
            assert client.parse(client.grammar, text[:end]) == [first]
            (shorter,) = client.parse(client.grammar, text[: end - 1])
            assert isinstance(shorter, XmlCallBlock) and shorter.partial


def test_a_tag_that_is_only_mentioned_holds_nothing_back() -> None:
    """Words behind a tag show that it is no call. Tags behind it may make one, so they wait for the end."""
    client = CLIENTS["roo-3.36"]
    events = deliver(client, ["Use <read_file> to read. ", "Then ", "write.", "\n"])
    assert events[:3] == ["Use <\u200bread_file> to read. ", "Then ", "write."]
    text = "Use <read_file> <path> for it. " + "More words. " * 20
    assert unescape_text(client, "".join(deliver(client, list(text)))) == text


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_a_call_cut_anywhere_is_not_run(client: XmlClient) -> None:
    """Clients run what is open when the stream ends, so nothing of such a call may have left."""
    arguments = json.dumps({"command": "rm -r build && echo done", "requires_approval": True})
    for at in range(len(arguments) + 1):
        rendering = ResponseRenderer(client, "qwen3")
        events: list[Event] = [
            TextDelta("I clean up."),
            CallStarted(0, "c", "execute_command"),
            CallArguments(0, arguments[:at]),
        ]
        received = rendering.feed([ReasoningDelta("hm"), *events, Finished("length")])
        message = "".join(event.text for event in received if isinstance(event, TextDelta))
        assert not any(isinstance(block, XmlCallBlock) for block in client.read(message, "qwen3"))
        assert message.startswith("I clean up.\n\n(")
        assert received[-1] == Finished("length")
        assert [str(record) for record in rendering.reports] == ["execute_command truncated"]


LONG = {
    "closing tags of content": lambda n: "<write_to_file><path>a</path><content>" + "</content>" * (n // 10),
    "parameters that never close": lambda n: "<write_to_file>" + "<path>" * (n // 6),
    "opening tags": lambda n: "<read_file>" * (n // 11),
    "calls": lambda n: "<list_files><path>a</path></list_files>" * (n // 39),
    "a long value": lambda n: "<write_to_file><content>" + "x" * n + "</content></write_to_file>",
    "wide characters": lambda n: "<write_to_file><content>" + "😀" * n + "</content></write_to_file>",
    "suggestions": lambda n: "<ask_followup_question><follow_up>" + "<suggest><" * (n // 10) + "</follow_up>",
    "files": lambda n: "<read_file><args>" + "<file>" * (n // 6) + "</args></read_file>",
    "quotes": lambda n: "<ask_followup_question><follow_up>" + "<a '\"" * (n // 6) + "</follow_up>",
}


@pytest.mark.parametrize("name", ["roo-3.36", "cline-legacy"])
@pytest.mark.parametrize("kind", [*LONG, "mentions"])
def test_delivering_is_linear(kind: str, name: str) -> None:
    def measure(size: int) -> float:
        text = LONG[kind](size) if kind in LONG else "<read_file><a> words\n" * (size // 21)
        pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
        start = process_time()
        deliver(CLIENTS[name], pieces)
        return process_time() - start

    measure(1000)
    assert_growth(measure, 6_000, 48_000, limit=32, noise=0.1)  # quadratic work would take 64 times as long


@pytest.mark.parametrize("name", ["roo-3.36", "cline-legacy"])
@pytest.mark.parametrize("kind", LONG)
def test_reading_is_linear(kind: str, name: str) -> None:
    def measure(size: int) -> float:
        text = LONG[kind](size)
        start = process_time()
        CLIENTS[name].read(text, "qwen3")
        return process_time() - start

    measure(1000)
    assert_growth(measure, 15_000, 120_000, limit=24, noise=0.05)
