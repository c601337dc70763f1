"""What XML clients receive of answers with an unusual end."""

from __future__ import annotations

from typing import Any

import pytest
from support.rows import in_one_test

from toolglot import Reader
from toolglot.clients.xml import all_clients
from toolglot.clients.xml.profile import XmlCallBlock
from toolglot.clients.xml.response_renderer import ResponseRenderer
from toolglot.core.conversation import Tool
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
)
from toolglot.core.schema.toolset import compile_tools
from toolglot.gateway.delivery_plan import DeliveryPlan
from toolglot.gateway.telemetry.recorder import RequestRecorder
from toolglot.gateway.xml_delivery import XmlDelivery

ROO = all_clients()["roo-3.29"]
RUN = "<execute_command>\n<command>rm</command>\n</execute_command>"
STOP, CUT, FAILED = Finished("stop"), Finished("length"), Failed("upstream_closed", "gone")
NATIVE: tuple[Event, ...] = (
    CallStarted(0, "call_1", "list_files"),
    CallArguments(0, '{"path":"."}'),
    CallEnded(0),
)


def render(*events: Event, native: bool = False) -> str:
    tools: tuple[Tool, ...] = ROO.list_tools(lenient=True)
    reader = Reader(compile_tools(tools, ()), "roo_xml", unknown_tools="reject", parallel=False)
    recorder = RequestRecorder("req", "openai_chat", 0, 0, lambda: 0.0)
    renderer = ResponseRenderer(ROO, "qwen", carry_ids=native)
    rendition = XmlDelivery(renderer, reader, recorder, DeliveryPlan(native=native))
    out = [received for event in events for received in rendition.deliver([event])]
    return "".join(event.text for event in out if isinstance(event, TextDelta))


def calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(block.name, dict(block.params)) for block in ROO.read(text, "qwen") if isinstance(block, XmlCallBlock)]


@in_one_test("end", [STOP, CUT, FAILED], ids=["whole", "cut", "failed"])
@in_one_test(
    "events",
    [
        [TextDelta(f"Hi.\n```xml\n{RUN}\n```\n")],
        [ReasoningDelta(f"Perhaps:\n{RUN}")],
        [TextDelta(f"<think>Perhaps:\n{RUN}")],
    ],
    ids=["fence", "reasoning", "think"],
)
def test_what_counts_only_at_the_end_needs_an_end(events: list[Event], end: Event) -> None:
    assert [name for name, _ in calls(render(*events, end))] == (["execute_command"] if end is STOP else [])


def test_a_call_from_reasoning_is_executed_as_written() -> None:
    file = "<write_to_file>\n<path>a</path>\n<content>\nif a &lt; b\n</content>\n<line_count>1</line_count>\n</write_to_file>"
    ((_, text),) = calls(render(TextDelta(file), STOP))
    ((_, thought),) = calls(render(ReasoningDelta(f"I write.\n{file}"), STOP))
    assert text["content"] == thought["content"] == "if a < b"


@pytest.mark.parametrize(
    "text",
    [
        "I use <execute_command> now",
        'Config:\n```json\n{"a":1}\n```',
        "compare a <",
        "I emit <tool_call> next",
        "x [TOOL_CALLS] y",
        "See:\n```",
    ],
)
def test_no_text_before_a_native_call_is_lost(text: str) -> None:
    events = render(TextDelta(text), *NATIVE, Finished("tool_calls"), native=True)
    assert [name for name, _ in calls(events)] == ["list_files"]
    assert events.replace("\u200b", "").startswith(text)


def test_a_native_call_of_an_answer_that_failed_is_not_made() -> None:
    assert calls(render(TextDelta("Now."), *NATIVE, FAILED, native=True)) == []


def test_other_names_of_tags_mean_the_same() -> None:
    ((_, usual),) = calls(render(TextDelta(RUN.replace("rm", "make &amp;&amp; make test")), STOP))
    other = (
        RUN.replace("rm", "make &amp;&amp; make test")
        .replace("command>", "cmd>")
        .replace("execute_cmd", "execute_command")
    )
    ((_, alias),) = calls(render(TextDelta(other), STOP))
    assert usual["command"] == alias["command"] == "make && make test"
