"""The arm of a conversation: stages, stable shares, and turns of one conversation in one arm."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rows import in_one_test

from toolglot.clients.complaints import COMPLAINT_PATTERNS, EMPTY_ANSWER
from toolglot.config import load
from toolglot.config.rollout import STAGES, TRANSFORMATIONS, Arm, Plan, Rollout, read_plan
from toolglot.config.settings import RolloutSettings
from toolglot.core.conversation import Conversation, Image, Message, Text, ToolCall, ToolResult
from toolglot.core.errors import UsageError
from toolglot.core.identity import identify

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "ROLLOUT.md").read_text("utf-8")
KEYS = [f"conversation {number}" for number in range(10_000)]

PLANS: list[tuple[Any, Plan, str]] = [
    ("off", Plan(0), "off"),
    ("shadow", Plan(100, True), "shadow"),
    ("shadow-20", Plan(20, True), "shadow-20"),
    ("canary", Plan(10), "canary-10"),
    ("canary-5", Plan(5), "canary-5"),
    ("canary-0.5", Plan(0.5), "canary-0.5"),
    ("canary-100", Plan(100), "full"),
    ("canary-0", Plan(0), "off"),
    (" Full ", Plan(100), "full"),
    (25, Plan(25), "canary-25"),
    ("25", Plan(25), "canary-25"),
    (0.25, Plan(0.25), "canary-0.25"),
    ({"percent": 30}, Plan(30), "canary-30"),
    ({"stage": "canary"}, Plan(10), "canary-10"),
    ({"stage": "canary-5", "dry_run": True}, Plan(5, True), "shadow-5"),
    ({"stage": "full", "tools": ["read", "list"]}, Plan(tools=("read", "list")), "full (tools read, list)"),
    ({"min_confidence": 0.95}, Plan(min_confidence=0.95), "full (min_confidence 0.95)"),
]
REFUSED: list[Any] = [
    "",
    "on",
    "canary-",
    "canary-101",
    "-5",
    "full-5",
    "off-5",
    True,
    None,
    101,
    -1,
    [],
    {"stages": "full"},
    {"percent": "10"},
    {"percent": True},
    {"percent": 101},
    {"dry_run": 1},
    {"tools": "read"},
    {"tools": [""]},
    {"min_confidence": 2},
    {"min_confidence": "high"},
    {"stage": "on"},
]


@in_one_test(("raw", "plan", "expected"), PLANS)
def test_plans_are_parsed_and_described(raw: Any, plan: Plan, expected: str) -> None:
    assert read_plan(raw) == plan
    assert str(plan) == expected
    assert read_plan(plan.stage) == Plan(plan.percent, plan.dry_run)


@in_one_test("raw", REFUSED)
def test_anything_else_is_no_plan(raw: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        read_plan(raw)


@given(st.text() | st.integers() | st.floats() | st.dictionaries(st.text(), st.text()))
def test_no_plan_raises_another_error(raw: Any) -> None:
    try:
        read_plan(raw)
    except ValueError:
        pass


# Arms


@in_one_test("percent", [0.5, 1, 5, 10, 25, 50, 90, 99])
@in_one_test("transformation", TRANSFORMATIONS)
def test_a_share_is_the_share_that_was_asked_for(transformation: str, percent: float) -> None:
    rollout = Rollout(Plan(percent))
    arms = Counter(rollout.decide(transformation, key) for key in KEYS)
    assert set(arms) == {Arm.ON, Arm.CONTROL}
    # four standard deviations: the hash is fixed, so this holds always or never
    assert abs(arms[Arm.ON] / len(KEYS) - percent / 100) < 4 * (percent / 100 * (1 - percent / 100) / len(KEYS)) ** 0.5


@pytest.mark.parametrize(
    ("plan", "arm"),
    [(STAGES["off"], Arm.OFF), (STAGES["shadow"], Arm.DRY_RUN), (STAGES["full"], Arm.ON), (Plan(0, True), Arm.OFF)],
)
def test_whole_stages_apply_to_every_conversation(plan: Plan, arm: Arm) -> None:
    assert {Rollout(plan).decide("xml", key) for key in KEYS[:500]} == {arm}


def test_a_dry_run_has_a_share_too() -> None:
    assert {Rollout(read_plan("shadow-50")).decide("xml", key) for key in KEYS[:500]} == {Arm.DRY_RUN, Arm.CONTROL}


def test_a_larger_share_contains_the_smaller_one() -> None:
    before: set[str] = set()
    for percent in (1, 5, 10, 50, 100):
        now = {key for key in KEYS if Rollout(Plan(percent)).decide("reading", key) is Arm.ON}
        assert before < now
        before = now


def test_transformations_are_drawn_independently() -> None:
    rollout = Rollout(Plan(50))
    both = sum(rollout.decide("reading", key) is rollout.decide("xml", key) for key in KEYS)
    assert 0.48 < both / len(KEYS) < 0.52


def test_a_decision_is_the_same_in_every_process() -> None:
    rollout = Rollout(Plan(50))
    assert [rollout.decide("reading", key) is Arm.ON for key in KEYS[:8]] == [
        False,
        True,
        True,
        True,
        False,
        True,
        True,
        True,
    ]


# Conversations


def message(role: Any, text: str) -> Message:
    return Message(role, (Text(text),))


OPENING = (message("system", "It is 10:01."), message("user", "Fix the bug"))


def test_all_turns_of_a_conversation_have_one_key() -> None:
    turns: list[tuple[Message, ...]] = [OPENING]
    turns.append((*OPENING, Message("assistant", (Text("Look."), ToolCall("1", "read")))))
    turns.append((*turns[-1], Message("tool", (ToolResult("1", content=(Text("text"),)),)), message("user", "Go on")))
    turns.append((message("system", "It is 10:02."), *turns[-1][1:]))
    assert len({identify(Conversation("m", turn)) for turn in turns}) == 1


def test_other_messages_and_other_models_are_other_conversations() -> None:
    long = "x" * 10_000
    conversations = [
        Conversation("m", OPENING),
        Conversation("n", OPENING),
        Conversation("m", (message("user", "Fix the bugs"),)),
        Conversation("m", (message("user", long),)),
        Conversation("m", (message("user", long + "x"),)),
        Conversation("m", (message("system", "Only this"),)),
        Conversation("m", ()),
    ]
    assert len(set(map(identify, conversations))) == len(conversations)


def test_a_first_message_may_be_a_picture() -> None:
    def shown(data: str) -> Message:
        return Message("user", (Image(data=data, media_type="image/png"),))

    answer = message("assistant", "A cat.")
    turns = [(shown("AAAA"),), (shown("AAAA"), answer, message("user", "Sure?"))]
    assert len({identify(Conversation("m", turn)) for turn in turns}) == 1
    others = [(shown("AAAB"),), (message("user", ""), message("user", "Hi")), (message("user", "Hi"),)]
    assert len({identify(Conversation("m", turn)) for turn in (turns[0], *others)}) == 4


def test_lone_surrogates_do_no_harm() -> None:
    assert identify(Conversation("m", (message("user", "\ud800"),)))


# Settings


def test_every_transformation_has_its_setting() -> None:
    assert [one.name for one in fields(RolloutSettings)] == ["stage", *TRANSFORMATIONS]


def test_a_file_sets_stages_and_tables(tmp_path: Path) -> None:
    path = tmp_path / "toolglot.toml"
    path.write_text(
        "[rollout]\nstage = 'shadow'\nreading = 'canary-5'\n"
        "[rollout.shell]\nstage = 'full'\ntools = ['execute_command']\nmin_confidence = 0.8\n"
    )
    rollout = load({}, {}, path).rollout_now
    assert rollout.plan_of("reading") == Plan(5)
    assert rollout.plan_of("shell") == Plan(tools=("execute_command",), min_confidence=0.8)
    assert rollout.plan_of("xml") == Plan(dry_run=True)


def test_a_bad_stage_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "toolglot.toml"
    path.write_text("[rollout]\nreading = 'canary-200'\n")
    with pytest.raises(UsageError, match=r"rollout\.reading is 'canary-200'; it must be auto, or what"):
        load({}, {}, path)


def test_changes_are_listed() -> None:
    before, after = Rollout(), Rollout(plans={"xml": Plan(5), "shell": Plan()})
    assert before.compare(after) == ["xml: full -> canary-5"]


# The guide


def test_the_guide_names_everything() -> None:
    named = set(re.findall(r"^\| `([a-z_]+)[-`]", GUIDE, re.MULTILINE))
    assert named >= {*TRANSFORMATIONS, *STAGES, *COMPLAINT_PATTERNS, EMPTY_ANSWER}


def test_the_example_of_the_guide_is_a_file_that_loads(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert example is not None
    path = tmp_path / "toolglot.toml"
    path.write_text(example[1])
    rollout = load({}, {}, path).rollout_now
    assert rollout.plan_of("reading") == Plan(25, tools=("read_file", "list_files"), min_confidence=0.95)
    assert rollout.plan_of("shell") == Plan(5, True, min_confidence=0.8)
    assert rollout.plan_of("xml").stage == "shadow"
    assert rollout.plan_of("editing").stage == "full"
