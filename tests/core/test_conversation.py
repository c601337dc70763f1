from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, structs
from support.rows import in_one_test

from toolglot.core import conversation
from toolglot.core.conversation import (
    PARTS_OF_ROLE,
    Conversation,
    Image,
    Message,
    Part,
    Reasoning,
    Role,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Tools,
)

PARTS: list[Part] = [
    Text("hi"),
    Image(url="https://example.org/cat.png"),
    Reasoning("hm", signature="s3al"),
    ToolCall("c1", "read_file", '{"path":"a"}'),
    ToolResult("c1", "read_file", (Text("a line"),)),
]
ROLES: list[Role] = ["system", "user", "assistant", "tool"]
LAWFUL = {
    ("system", Text),
    ("system", Image),
    ("user", Text),
    ("user", Image),
    ("assistant", Text),
    ("assistant", Image),
    ("assistant", Reasoning),
    ("assistant", ToolCall),
    ("tool", ToolResult),
}


def nouns() -> list[type[Struct]]:
    return [
        noun
        for _, noun in inspect.getmembers(conversation, inspect.isclass)
        if noun.__module__ == conversation.__name__ and issubclass(noun, Struct)
    ]


def test_the_nouns_are_all_here() -> None:
    assert {noun.__name__ for noun in nouns()} == {
        "Text", "Image", "Reasoning", "ToolCall", "ToolResult", "ProviderPart", "Message", "Tool", "ToolChoice", "JsonSchema", "Sampling",
        "Conversation",
    }  # fmt: skip


@in_one_test("noun", nouns(), ids=lambda noun: noun.__name__)
def test_every_noun_is_frozen(noun: type[Struct]) -> None:
    assert noun.__struct_config__.frozen


@in_one_test("role", ROLES)
@in_one_test("part", PARTS, ids=lambda part: type(part).__name__)
def test_a_role_holds_only_its_own_parts(role: Role, part: Part) -> None:
    if (role, type(part)) in LAWFUL:
        assert Message(role, (part,)).parts == (part,)
    else:
        with pytest.raises(ValueError, match=f"role {role} cannot hold {type(part).__name__}"):
            Message(role, (part,))


def test_an_unknown_role_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(ValueError, match="'robot' is not a role; roles are system, user, assistant, tool"):
        Message("robot")  # type: ignore[arg-type]


def test_the_roles_are_those_of_the_type() -> None:
    assert list(PARTS_OF_ROLE) == ROLES


def test_a_message_gives_its_text_and_its_calls_in_order() -> None:
    first, second = ToolCall("c1", "a"), ToolCall("c2", "b")
    message = Message("assistant", (Reasoning("not this"), Text("one "), first, Text("two"), second))
    assert message.text == "one two"
    assert message.calls == (first, second)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "either a url or data"),
        ({"url": "https://example.org/a.png", "data": "AAAA", "media_type": "image/png"}, "either a url or data"),
        ({"data": "AAAA"}, "needs a media type"),
    ],
)
def test_an_image_has_one_source(fields: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Image(**fields)


def test_an_image_may_be_given_as_data() -> None:
    assert Image(data="AAAA", media_type="image/png").data == "AAAA"


@given(st.text())
def test_arguments_stay_the_text_they_were(arguments: str) -> None:
    assert ToolCall("c1", "read_file", arguments).arguments == arguments


@pytest.mark.parametrize("name", ["", " ", "\n"])
def test_a_blank_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a call needs"):
        ToolCall("c1", name)
    with pytest.raises(ValueError, match="a tool needs"):
        Tool(name)
    with pytest.raises(ValueError, match="a choice needs"):
        ToolChoice.one(name)


def test_a_choice_is_a_mode_and_the_tools_to_choose_from() -> None:
    assert ToolChoice() == ToolChoice("auto")
    assert ToolChoice.one("read_file") == ToolChoice("required", ("read_file",))


@pytest.mark.parametrize(
    ("choice", "allowed"),
    [
        (ToolChoice("auto"), {"a", "b", "c"}),
        (ToolChoice("required"), {"a", "b", "c"}),
        (ToolChoice("auto", ("a", "b")), {"a", "b"}),
        (ToolChoice("required", ("b", "c")), {"b", "c"}),
        (ToolChoice.one("c"), {"c"}),
        (ToolChoice("none"), set()),
    ],
)
def test_a_choice_allows_what_it_names(choice: ToolChoice, allowed: set[str]) -> None:
    assert {name for name in ("a", "b", "c") if choice.allows(name)} == allowed


def test_choices_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(ValueError, match="'any' is not a choice; choices are none, auto, required"):
        ToolChoice("any")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="leaves no tool"):
        ToolChoice("none", ("a",))
    with pytest.raises(ValueError, match="twice"):
        ToolChoice("auto", ("a", "a"))


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="same name"):
        Conversation("m", (), tools=(Tool("a"), Tool("a", "again")))


def test_tools_know_their_names_and_their_hash() -> None:
    listed = (Tool("a", "does a", {"type": "object"}), Tool("b"))
    tools = Tools(listed)
    assert tools.by_name == {"a": listed[0], "b": listed[1]}
    assert hash(tools) == hash(listed) and tools == listed
    assert Tools() == () and Conversation("m", (), tools) == Conversation("m", (), listed)
    with pytest.raises(ValueError, match="same name"):
        Tools([Tool("a"), Tool("a", "again")])


def test_equal_conversations_have_equal_hashes() -> None:
    def build() -> Conversation:
        return Conversation(
            model="m",
            messages=(Message("user", (Text("hi"),)), Message("tool", (ToolResult("c1", content=(Text("x"),)),))),
            tools=(Tool("a", "does a", {"type": "object", "properties": {}}),),
            choice=ToolChoice.one("a"),
            sampling=Sampling(max_tokens=100, stop=("END",), parallel_calls=False),
            extra={"user": "u1"},
        )

    assert build() == build()
    assert hash(build()) == hash(build())
    assert structs.replace(build(), model="n") != build()
    assert structs.replace(build(), extra={}) != build()


def test_sampling_parameters_default_to_the_decision_of_the_upstream() -> None:
    assert {value for value in structs.asdict(Sampling()).values()} == {None, (), ""}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"enum": [1]}, {"enum": [True]}),
        ({"enum": [1]}, {"enum": [1.0]}),
        ({"properties": {"a": {}, "b": {}}}, {"properties": {"b": {}, "a": {}}}),
    ],
)
def test_tools_are_equal_if_they_are_written_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """What is made of a tool is kept for the next one that is equal."""
    assert one == other
    assert Tool("f", "", one) != Tool("f", "", other) and Tool("f", "", one) == Tool("f", "", one | {})
    assert Tools([Tool("f", "", one)]) != Tools([Tool("f", "", other)])
