"""Arguments of the public API: a wrong type or value is refused at once, with a message that names the argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.rows import in_one_test

import toolglot
from toolglot.core.conversation import Conversation, Message, Text

TOOL: dict[str, Any] = {
    "name": "list_files",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}
CALL = '<tool_call>\n{"name": "list_files", "arguments": {"path": "a"}}\n</tool_call>'
REJECTED = toolglot.CallRejected(CALL, toolglot.Reason.MALFORMED, "list_files")
CONVERSATION = Conversation("m", (Message("user", (Text("go"),)),))

NOT_A_FLAG: tuple[object, ...] = (None, "x", "false", b"x", 0, 1, 1.5, [], ["x"], {}, object())
NOT_TEXT: tuple[object, ...] = (None, b"x", 1, 1.5, True, [], ["x"], {}, object())
NOT_A_CONFIDENCE: tuple[object, ...] = (None, "0.5", b"x", True, -0.1, 1.1, float("nan"), [], {}, object())
NOT_NAMES: tuple[object, ...] = ("ls", b"ls", 1, 1.5, True, [1], (None,), {1: "x"}, object())
NOT_A_MAPPING: tuple[object, ...] = ("x", b"x", 1, True, [], [("hermes", 0.5)], object())

OPTIONS: dict[str, tuple[object, ...]] = {
    "unknown_tools": ("maybe", "", *NOT_TEXT),
    "min_confidence": NOT_A_CONFIDENCE,
    "parallel": NOT_A_FLAG,
    "supported_tools": NOT_NAMES,
    "shell": NOT_NAMES,
    "shell_syntax": (*NOT_NAMES, ["tubes"]),
    "shell_cwd": NOT_TEXT,
    "thresholds": (*NOT_A_MAPPING, {1: 0.5}, {"hermes": "high"}, {"hermes": True}, {"hermes": 2}),
    "patterns": ("x", 1, ["bare_json"], {"bare_json": 1}, {"no_such": True}),
}
"""Wrong values of the options of a reader."""

ARGUMENTS: dict[str, tuple[object, ...]] = {
    "dialect": NOT_TEXT,
    "options": ("x", 1, [], {}, {"parallel": True}),
    "new_id": ("x", 1, [], {}),
    "quoted": NOT_NAMES,
    "truncated": NOT_A_FLAG,
}

OTHERS: list[tuple[str, Callable[..., object], tuple[object, ...]]] = [
    ("name", lambda name: toolglot.write(name), NOT_TEXT),
    (
        "arguments",
        lambda arguments: toolglot.write("list_files", arguments),
        (None, b"{}", 1, [], [("a", 1)], object()),
    ),
    ("dialect", lambda dialect: toolglot.write("list_files", dialect=dialect), NOT_TEXT),
    ("dialect", lambda dialect: toolglot.teach([TOOL], dialect), NOT_TEXT),
    ("parallel", lambda parallel: toolglot.teach([TOOL], parallel=parallel), NOT_A_FLAG),
    (
        "rejected",
        lambda rejected: toolglot.feedback(rejected, [TOOL]),
        (None, "x", b"x", 1, {}, ["x"], [None], object()),
    ),
    ("dialect", lambda dialect: toolglot.feedback(REJECTED, [TOOL], dialect), NOT_TEXT[1:]),
    ("conversation", lambda conversation: toolglot.speak(conversation, "hermes"), (None, "x", {}, [])),
    ("dialect", lambda dialect: toolglot.speak(CONVERSATION, dialect), NOT_TEXT),
    ("parallel", lambda parallel: toolglot.speak(CONVERSATION, "hermes", parallel=parallel), NOT_A_FLAG),
]


def describe_value(value: object) -> str:
    """A test id that is the same in every process."""
    return "object()" if type(value) is object else repr(value)


def pair_up(table: dict[str, tuple[object, ...]]) -> list[tuple[str, object]]:
    return [(name, value) for name, values in table.items() for value in values]


def refuse(name: str, call: Callable[[], object]) -> None:
    with pytest.raises(toolglot.UsageError) as caught:
        call()
    assert name in caught.value.message


@in_one_test(("name", "value"), pair_up(OPTIONS | ARGUMENTS), ids=describe_value)
def test_wrong_argument_of_reading_is_refused(name: str, value: Any) -> None:
    refuse(name, lambda: toolglot.read(CALL, tools=[TOOL], **{name: value}))


@in_one_test(("name", "value"), pair_up(OPTIONS), ids=describe_value)
def test_wrong_field_of_options_is_refused(name: str, value: Any) -> None:
    refuse(name, lambda: toolglot.Options(**{name: value}))


@in_one_test(("name", "call", "values"), OTHERS)
def test_wrong_argument_of_writing_is_refused(
    name: str, call: Callable[..., object], values: tuple[object, ...]
) -> None:
    for value in values:
        refuse(name, lambda value=value: call(value))  # type: ignore[misc]


def test_every_option_is_checked() -> None:
    unchecked = {"elements"}  # an interface that toolglot implements itself
    assert set(toolglot.Options.__dataclass_fields__) == OPTIONS.keys() | unchecked


@pytest.mark.parametrize("names", [["ls"], ("ls",), {"ls"}, frozenset(("ls",)), {"ls": 1}], ids=describe_value)
def test_any_collection_of_names_is_accepted(names: Any) -> None:
    assert toolglot.Options(shell=names).shell == ("ls",)
    assert len(toolglot.read(CALL, shell=names, supported_tools=names).calls) == 1


def test_none_means_the_default() -> None:
    none = dict.fromkeys(("supported_tools", "shell", "shell_syntax", "thresholds", "patterns"))
    options: Any = {"options": None, "new_id": None, "quoted": (), "tools": None, **none}
    assert len(toolglot.read(CALL, **(options | {"tools": [TOOL]})).calls) == 1
