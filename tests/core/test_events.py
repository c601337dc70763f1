from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_order import OrderChecker, OrderError, check_order
from support.rows import in_one_test

from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Defect,
    Event,
    Failed,
    Finished,
    ProviderEvent,
    Reason,
    ReasoningDelta,
    ReasoningSigned,
    Started,
    TextDelta,
    merge_deltas,
)

STARTED_CALL = CallStarted(0, "c0", "read_file")
REJECTED = CallRejected("<tool_call>", Reason.MALFORMED)

LAWFUL: dict[str, list[Event]] = {
    "nothing at all": [],
    "a whole answer": [
        Started("r1", "m"),
        ReasoningDelta("hm"),
        ReasoningSigned("s3al"),
        TextDelta("I look."),
        STARTED_CALL,
        CallArguments(0, '{"path":'),
        CallArguments(0, '"a"}'),
        CallEnded(0),
        ProviderEvent("a_wire", {"ping": 1}),
        Finished("calls"),
    ],
    "text alone": [TextDelta("hi")],
    "a failure": [Started(), TextDelta("hi"), Failed("timeout", "no answer")],
    "calls that overlap": [
        STARTED_CALL,
        CallStarted(1, "c1", "read_file"),
        CallArguments(1, "{}"),
        CallArguments(0, "{}"),
        CallEnded(1),
        CallEnded(0),
    ],
    "a call that was cut": [STARTED_CALL, CallArguments(0, '{"pa'), Finished("length")],
    "a started call that is rejected": [STARTED_CALL, CallRejected("<x>", Reason.TRUNCATED, index=0)],
    "a rejected call that never started": [REJECTED, STARTED_CALL, CallEnded(0)],
}

UNLAWFUL: dict[str, tuple[list[Event], str]] = {
    "Started is late": ([TextDelta("hi"), Started()], "not the first"),
    "Started twice": ([Started(), Started()], "not the first"),
    "text after Finished": ([Finished("stop"), TextDelta("hi")], "after the end"),
    "text after Failed": ([Failed("timeout", "no answer"), TextDelta("hi")], "after the end"),
    "Finished twice": ([Finished("stop"), Finished("stop")], "after the end"),
    "counting from one": ([CallStarted(1, "c1", "a")], "call 1 started where call 0 was expected"),
    "a number left out": ([STARTED_CALL, CallStarted(2, "c2", "a")], "call 2 started where call 1 was expected"),
    "a number used twice": ([STARTED_CALL, CallEnded(0), STARTED_CALL], "call 0 started where call 1 was expected"),
    "arguments before the call": ([CallArguments(0, "{}")], "not open"),
    "arguments after the call": ([STARTED_CALL, CallEnded(0), CallArguments(0, "{}")], "not open"),
    "an end before the call": ([CallEnded(0)], "not open"),
    "an end twice": ([STARTED_CALL, CallEnded(0), CallEnded(0)], "not open"),
    "a rejection of an ended call": (
        [STARTED_CALL, CallEnded(0), CallRejected("<x>", Reason.TRUNCATED, index=0)],
        "not open",
    ),
    "an end after a rejection": (
        [STARTED_CALL, CallRejected("<x>", Reason.TRUNCATED, index=0), CallEnded(0)],
        "not open",
    ),
}


@in_one_test("events", LAWFUL.values(), ids=LAWFUL.keys())
def test_lawful_orders_pass(events: list[Event]) -> None:
    check_order(events)


@in_one_test(("events", "problem"), UNLAWFUL.values(), ids=UNLAWFUL.keys())
def test_unlawful_orders_are_found(events: list[Event], problem: str) -> None:
    with pytest.raises(OrderError, match=problem):
        check_order(events)


@in_one_test(("events", "problem"), UNLAWFUL.values(), ids=UNLAWFUL.keys())
def test_the_checker_complains_at_the_event_that_breaks_the_rule(events: list[Event], problem: str) -> None:
    checker = OrderChecker()
    for event in events[:-1]:
        checker.check(event)
    with pytest.raises(OrderError, match=problem):
        checker.check(events[-1])


def test_a_call_without_an_end_stays_open() -> None:
    checker = OrderChecker()
    for event in LAWFUL["a call that was cut"]:
        checker.check(event)
    assert checker.open == {0}


def test_adjacent_deltas_of_one_kind_are_joined() -> None:
    events: list[Event] = [
        ReasoningDelta("h"),
        ReasoningDelta("m"),
        TextDelta("I "),
        TextDelta("look."),
        STARTED_CALL,
        CallArguments(0, "{"),
        CallArguments(0, "}"),
        CallEnded(0),
        TextDelta("Done."),
    ]
    assert list(merge_deltas(events)) == [
        ReasoningDelta("hm"),
        TextDelta("I look."),
        STARTED_CALL,
        CallArguments(0, "{}"),
        CallEnded(0),
        TextDelta("Done."),
    ]


def test_arguments_of_different_calls_are_kept_apart() -> None:
    events: list[Event] = [CallArguments(0, "{"), CallArguments(1, "{"), CallArguments(1, "}"), CallArguments(0, "}")]
    assert list(merge_deltas(events)) == [CallArguments(0, "{"), CallArguments(1, "{}"), CallArguments(0, "}")]


def test_events_that_are_no_deltas_are_never_joined() -> None:
    assert list(merge_deltas([REJECTED, REJECTED])) == [REJECTED, REJECTED]


DELTAS = st.one_of(
    st.builds(TextDelta, st.text()),
    st.builds(ReasoningDelta, st.text()),
    st.builds(CallArguments, st.integers(0, 1), st.text()),
    st.builds(CallEnded, st.integers(0, 1)),
)


@given(st.lists(DELTAS))
def test_merging_loses_no_text_and_is_done_once(events: list[Event]) -> None:
    def written(kind: type, get: Callable[[Event], str], among: list[Event]) -> str:
        return "".join(get(event) for event in among if isinstance(event, kind))

    merged = list(merge_deltas(events))
    assert list(merge_deltas(merged)) == merged
    for kind in (TextDelta, ReasoningDelta):
        assert written(kind, lambda e: e.text, merged) == written(kind, lambda e: e.text, events)  # type: ignore[union-attr]
    for index in (0, 1):
        of_call = [[e for e in among if getattr(e, "index", None) == index] for among in (merged, events)]
        after, before = (written(CallArguments, lambda e: e.fragment, among) for among in of_call)  # type: ignore[union-attr]
        assert after == before


def test_a_defect_reads_as_a_sentence() -> None:
    defect = Defect(reason=Reason.INVALID_VALUE, where="days", found="'three'", expected="an integer")
    assert str(defect) == "days: found 'three', expected an integer"
