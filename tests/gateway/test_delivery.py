"""Delivery of answers with calls from two sources: native calls of the upstream, and calls in its text."""

from __future__ import annotations

import random
from typing import Any

from support.event_order import check_order
from support.rows import in_one_test
from support.samples import load_samples
from support.wiring import call

import toolglot
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    TextDelta,
    merge_deltas,
)
from toolglot.gateway.delivery import Delivery
from toolglot.gateway.delivery_plan import DeliveryPlan
from toolglot.gateway.telemetry.log import Telemetry

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS: list[dict[str, Any]] = [{"name": name, "parameters": SCHEMA} for name in ("read", "write")]
WRITTEN = '<tool_call>\n{"name": "write", "arguments": {"path": "b"}}\n</tool_call>'
AGAIN = WRITTEN.replace("write", "read")
CUT = '<tool_call>\n{"name": "write", "arguments": {"path": "b'
REFUSED = '<tool_call>\n{"name": "write", "arguments": {"path": ["b", {}], "path": 4}, "x"}\n</tool_call>'
ENDS = {CUT: "length"}


def deliver(events: list[Event], *, single: bool, native: bool, streamed: bool, size: int) -> list[Event]:
    reader = toolglot.Reader(TOOLS, parallel=not single)
    watch = Telemetry().begin("r", "w")
    delivery = Delivery(reader, watch, DeliveryPlan(single=single, native=native, streamed=streamed))
    received: list[Event] = []
    for event in events:
        text = event.text if isinstance(event, TextDelta) else ""
        pieces: list[Event] = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)] or [event]
        for piece in pieces:
            received += delivery.deliver([piece])
    check_order(received)
    return received


@in_one_test("size", [1000, 3])
@in_one_test("streamed", [False, True])
@in_one_test("native", [False, True])
@in_one_test("written", [WRITTEN, AGAIN, CUT, REFUSED], ids=["another", "the same", "cut", "refused"])
def test_at_most_one_call_from_any_source(written: str, native: bool, streamed: bool, size: int) -> None:
    events = [*call(0), TextDelta(written), Finished(ENDS.get(written, "tool_calls"))]
    received = deliver(events, single=True, native=native, streamed=streamed, size=size)
    started = [event for event in received if isinstance(event, CallStarted)]
    assert [(event.index, event.name) for event in started] == [(0, "read")]
    assert {event.index for event in received if isinstance(event, CallArguments | CallEnded)} == {0}
    assert received[-1] == Finished("tool_calls")


def test_several_calls_are_delivered_where_they_are_wanted() -> None:
    events = [*call(0), TextDelta(WRITTEN), Finished("tool_calls")]
    received = deliver(events, single=False, native=False, streamed=True, size=3)
    assert [event.name for event in received if isinstance(event, CallStarted)] == ["read", "write"]
    assert [event.index for event in received if isinstance(event, CallEnded)] == [0, 1]


def texts_of_samples() -> list[str]:
    """Texts of all dialects, without those that have a mark of a channel, which is dropped."""
    channels = ("<think", "</think", ">>>all", "<|END_THINKING|>", "[/THINK]", "<|channel|>final")
    return [
        sample.text
        for sample in load_samples()
        if len(sample.text) < 3000
        and not any(mark in sample.text for mark in channels)
        and not toolglot.read(sample.text, TOOLS).reasoning
    ]


def test_a_native_call_gives_back_every_text_in_its_place() -> None:
    """Whatever stands in the text, and wherever the call comes: the same text, before and behind the call."""
    chance = random.Random(7)
    for text in chance.sample(texts_of_samples(), 200):
        at, size = chance.randrange(len(text) + 1), chance.choice([1, 4, 50, 5000])
        events: list[Event] = [TextDelta(text[:at]), *call(0), TextDelta(text[at:]), Finished("tool_calls")]
        received = deliver(events, single=False, native=True, streamed=True, size=size)
        (place,) = [place for place, event in enumerate(received) if isinstance(event, CallStarted)]
        parts = received[:place], received[place:]
        texts = ["".join(event.text for event in part if isinstance(event, TextDelta)) for part in parts]
        assert texts == [text[:at], text[at:]], (text, at, size)


def test_a_number_that_an_upstream_uses_twice_is_another_call() -> None:
    delivery = Delivery(None, Telemetry().begin("r", "w"), DeliveryPlan(native=True))
    received = [
        event
        for given in (
            CallStarted(0, "a", "read"),
            CallArguments(0, '{"path"'),
            CallStarted(0, "b", "write"),
            CallArguments(0, '{"path": "b"}'),
        )
        for event in delivery.deliver([given])
    ]
    assert [event.index for event in received if isinstance(event, CallArguments)] == [0, 1]


def test_events_give_the_same_one_by_one_and_all_at_once() -> None:
    """The common case, a single event, has a path of its own."""
    rng = random.Random(7)
    texts = ("I look. ", " ", WRITTEN, AGAIN, "\n", "Done.", "<tool_", "call>")
    for _ in range(300):
        events: list[Event] = []
        for number in range(rng.randrange(3)):
            events += [TextDelta(rng.choice(texts)) for _ in range(rng.randrange(4))]
            events += call(number) if rng.random() < 0.5 else []
        events += [TextDelta(rng.choice(texts)) for _ in range(rng.randrange(4))]
        events.append(Finished("stop"))
        native = rng.random() < 0.5
        outcomes = []
        for batches in ([[event] for event in events], [events]):
            delivery = Delivery(toolglot.Reader(TOOLS), Telemetry().begin("r", "w"), DeliveryPlan(native=native))
            outcomes.append(list(merge_deltas(one for batch in batches for one in delivery.deliver(batch))))
        assert outcomes[0] == outcomes[1], events
