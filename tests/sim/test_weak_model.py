"""The weak model: its defects follow from the seed, are corrected when it is told to, and every class is real."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from support.rows import in_one_test

from toolglot.core.conversation import Tool
from toolglot.core.errors import UsageError
from toolglot.dialects.records import all_dialects
from toolglot.sim import RecordedRequest, SimCall, SimOptions, Simulation
from toolglot.sim.answer import NATIVE, RenderedAnswer
from toolglot.sim.defects import BOTH, DEFECTS, NATIVE_ONLY, TEXT, VAGUE, PlannedAnswer, is_spoiled, write_text
from toolglot.sim.drift import DRIFTS, apply_drift
from toolglot.sim.response_plan import ResponsePlan
from toolglot.sim.weak_model import MARK, Attempt

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "lines": {"type": "integer"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path", "lines", "kind"],
}
NOTE = Tool("note", "Take a note", SCHEMA)
ARGUMENTS = {"path": 'a "b"\nc', "lines": 3, "kind": "a", "tags": ["x"]}
OFFERED = [{"type": "function", "function": {"name": "note", "description": "Take a note", "parameters": SCHEMA}}]


def ask(number: int, *behind: dict[str, Any], **fields: Any) -> dict[str, Any]:
    question = f"Number {number}: call note with {json.dumps(ARGUMENTS | {'lines': number})}"
    return {"messages": [{"role": "user", "content": question}, *behind], "tools": OFFERED, **fields}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(simulation: Simulation, body: dict[str, Any]) -> tuple[Attempt, ResponsePlan]:
    seen = RecordedRequest("", {}, body, 0)
    plan = simulation.plan(body, 100, {}, seen)
    assert seen.attempt is not None
    return seen.attempt, plan


def calls_of(plan: ResponsePlan) -> list[tuple[str, Any]]:
    (body,) = plan.steps
    assert isinstance(body, bytes)
    message = json.loads(body)["choices"][0]["message"]
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message.get("tool_calls", ())
    ]


def weak(**options: Any) -> Simulation:
    return Simulation(SimOptions(**{"defects": 1, "seed": 3, **options}))


# Which turns


def test_the_share_of_defective_turns_is_kept() -> None:
    simulation = weak(defects=0.3)
    defects = [answer(simulation, ask(number))[0].defect for number in range(400)]
    assert 90 < sum(map(bool, defects)) < 150
    assert len(set(defects)) > 12


def test_defects_do_not_depend_on_the_order_of_requests() -> None:
    def draw(order: range) -> dict[int, str]:
        simulation = weak(defects=0.5)
        return {number: answer(simulation, ask(number))[0].defect for number in order}

    assert draw(range(100)) == draw(range(99, -1, -1))
    assert draw(range(100)) != {number: answer(weak(seed=4), ask(number))[0].defect for number in range(100)}


def test_another_conversation_has_its_own_turn() -> None:
    simulation = weak()
    first, _ = answer(simulation, ask(1))
    other, _ = answer(simulation, {**ask(1), "messages": [user("Hello."), *ask(1)["messages"]]})
    assert first.turn.id != other.turn.id


# What it heeds

FEEDBACK = {
    "names the tool": (user("That was wrong: note wants other arguments."),),
    "asks for a call": (user("Please make the call now."),),
    "a result": ({"role": "assistant", "content": "x"}, {"role": "tool", "tool_call_id": "a", "content": "error: no such tool"}),
    "twice": (user("Hm."), user("Use the tool.")),
}  # fmt: skip


@pytest.mark.parametrize("name", FEEDBACK)
def test_feedback_is_heeded(name: str) -> None:
    for number in range(30):
        simulation = weak()
        first, _ = answer(simulation, ask(number))
        second, plan = answer(simulation, ask(number, *FEEDBACK[name]))
        assert first.defect and not second.defect
        assert second.turn is first.turn and second.number == 2
        assert calls_of(plan) == [("note", ARGUMENTS | {"lines": number})]


def test_feedback_in_the_message_of_the_question_is_heeded() -> None:
    simulation = weak()
    answer(simulation, ask(1))
    body = ask(1)
    body["messages"][0]["content"] += "\n\nThe tool note was not called."
    assert not answer(simulation, body)[0].defect


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_choice": {"type": "function", "function": {"name": "note"}}},
        {"tool_choice": "required"},
        {"grammar": "root ::= x"},
        {"response_format": {"type": "json_schema"}},
    ],
    ids=str,
)
def test_another_form_of_the_same_request_is_heeded(fields: dict[str, Any]) -> None:
    simulation = weak()
    assert answer(simulation, ask(1))[0].defect
    assert not answer(simulation, ask(1, **fields))[0].defect


def test_without_a_reason_the_defect_is_repeated() -> None:
    simulation = weak(classes=("unknown_tool",))
    first, _ = answer(simulation, ask(1))
    for behind in ((), (user("Hm."),), (user("Go on."),)):
        again, plan = answer(simulation, ask(1, *behind))
        assert again.defect == first.defect == "unknown_tool"
        assert calls_of(plan)[0][0] == "note_v2"


def test_a_model_that_heeds_nothing_repeats_its_defect() -> None:
    simulation = weak(heeds=0, classes=("missing_required",))
    assert answer(simulation, ask(1))[0].defect
    assert answer(simulation, ask(1, user("Call the tool note.")))[0].defect


def test_an_empty_answer_is_chance() -> None:
    simulation = weak(classes=("empty_answer",))
    assert [answer(simulation, ask(1))[0].defect for _ in range(2)] == ["empty_answer", ""]


def test_the_result_of_a_corrected_call_begins_a_turn() -> None:
    simulation = weak(defects=1, classes=("unknown_tool",))
    feedback = user("There is no tool note_v2, call note.")
    answer(simulation, ask(1))
    corrected, _ = answer(simulation, ask(1, feedback))
    done, plan = answer(simulation, ask(1, {"role": "tool", "tool_call_id": "a", "content": "saved"}))
    assert corrected.turn is not done.turn and not calls_of(plan)


def test_every_answer_has_marks_of_its_own() -> None:
    simulation = weak()
    attempts = [answer(simulation, ask(number))[0] for number in range(50)]
    attempts += [answer(simulation, ask(number, user("call note")))[0] for number in range(50)]
    marks = [found[0] for attempt in attempts for found in MARK.finditer(attempt.answer.text)]
    assert len(marks) == len(set(marks)) == 300


# The classes


def plan_defect(dialect: str) -> PlannedAnswer:
    calls = (SimCall("note", json.dumps(ARGUMENTS)),)
    written = "" if dialect == NATIVE else write_text(calls, dialect, (NOTE,))
    clean = RenderedAnswer("I do it.\n\n" if written else "I do it.", written, () if written else calls)
    return PlannedAnswer(
        clean=clean, calls=calls, tools=(NOTE,), tool=NOTE, dialect=dialect, stream=False, random=Random(1)
    )  # fmt: skip


@in_one_test("name", DEFECTS)
def test_every_class_spoils_an_answer(name: str) -> None:
    dialects = [spec.name for spec in all_dialects()] if name in {*TEXT, *DRIFTS, *VAGUE} else []
    native = [NATIVE] if name in {*BOTH, *NATIVE_ONLY} else []
    plans = [plan_defect(dialect) for dialect in (*dialects, *native)]
    assert plans and any(is_spoiled(planned, DEFECTS[name](planned)) for planned in plans)


@in_one_test("name", BOTH)
def test_classes_of_the_call_spoil_text_too(name: str) -> None:
    planned = plan_defect("hermes")
    assert is_spoiled(planned, DEFECTS[name](planned))


@in_one_test(("name", "dialect"), [(name, one) for name in DRIFTS for one in sorted(DRIFTS[name].dialects)])
def test_every_drift_changes_every_dialect_it_names(name: str, dialect: str) -> None:
    written = write_text((SimCall("note", json.dumps(ARGUMENTS)),), dialect, (NOTE,))
    assert apply_drift(name, dialect, written) != written


def test_wrong_options_are_refused() -> None:
    for options in ({"defects": 2.0}, {"heeds": -0.1}, {"classes": ("nothing",)}):
        with pytest.raises(UsageError):
            SimOptions(**options)
