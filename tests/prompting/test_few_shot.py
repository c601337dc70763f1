"""Prompts for very small models: the kind of answer, the examples, and that a real model then calls."""

from __future__ import annotations

import json
from typing import Any

from support.embedded import ask, needs_model, start_model
from support.rows import in_one_test

from toolglot import read
from toolglot.core.conversation import (
    Conversation,
    Message,
    Role,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from toolglot.core.made_up_values import find_made_up, make_word
from toolglot.prompting.example_arguments import ExampleArguments
from toolglot.prompting.few_shot import MOST_EXAMPLES, AnswerKind, choose_answer_kind, render_for_small_model
from toolglot.prompting.grammar.gbnf import build_text_grammar

WEATHER = Tool(
    "get_weather",
    "Get the weather of a city. Not of the past.",
    {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]},
)
SETTINGS = Tool(
    "set_up",
    "",
    {
        "type": "object",
        "properties": {
            "mode": {"enum": ["fast", "slow"]},
            "count": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "on": {"type": "boolean"},
            "inner": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
        "required": ["mode", "count", "tags", "on", "inner"],
    },
)
CITY = make_word("get_weather", "city", "0").capitalize()
CALLED = Message("assistant", (ToolCall("c1", "get_weather", '{"city":"Oslo"}'),))
RESULT = Message("tool", (ToolResult("c1", "get_weather", (Text("12 degrees, light rain"),)),))


def message(role: Role, text: str) -> Message:
    return Message(role, (Text(text),))


def ask_for(*messages: Message, tools: tuple[Tool, ...] = (WEATHER,), **more: Any) -> Conversation:
    return Conversation("smollm2-135m", messages, tools, **more)


QUESTION = message("user", "What is the weather in Oslo?")


@in_one_test(
    ("conversation", "need"),
    [
        (ask_for(QUESTION), AnswerKind.EITHER),
        (ask_for(QUESTION, tools=()), AnswerKind.TEXT),
        (ask_for(QUESTION, choice=ToolChoice("none")), AnswerKind.TEXT),
        (ask_for(QUESTION, choice=ToolChoice("required")), AnswerKind.CALL),
        (ask_for(QUESTION, CALLED, RESULT), AnswerKind.TEXT),
        (ask_for(QUESTION, CALLED, RESULT, choice=ToolChoice.one("get_weather")), AnswerKind.CALL),
        (ask_for(QUESTION, CALLED, RESULT, message("user", "And in Rome?")), AnswerKind.EITHER),
        (ask_for(), AnswerKind.EITHER),
    ],
)
def test_what_the_answer_has_to_be(conversation: Conversation, need: AnswerKind) -> None:
    assert choose_answer_kind(conversation) is need


def test_what_depends_on_the_tools_alone_is_made_once() -> None:
    first = render_for_small_model(ask_for(QUESTION), "hermes").conversation
    later = render_for_small_model(ask_for(message("user", "And in Rome?")), "hermes").conversation
    assert len(first.messages) == len(later.messages) > 2
    assert all(one is other for one, other in zip(first.messages[1:-1], later.messages[1:-1], strict=True))
    assert first.extra["grammar"] is later.extra["grammar"]


def test_examples_are_between_the_system_prompt_and_the_conversation() -> None:
    rendered = render_for_small_model(ask_for(message("system", "Be brief."), QUESTION), "hermes").conversation
    roles = [message.role for message in rendered.messages]
    assert roles == ["system", *["user", "assistant"] * 4, "user"]
    assert rendered.messages[0].text == (
        "Be brief.\n\nYou can call these tools:\n- get_weather(city, days): Get the weather of a city\n"
        "Answer with a call if one of them fits the request, else with text."
    )
    assert [message.text for message in rendered.messages[1:5]] == [
        "Hello!",
        "Hello! What can I do for you?",
        f"Get the weather of a city, city {CITY}.",
        f'<tool_call>\n{{"name": "get_weather", "arguments": {{"city": "{CITY}"}}}}\n</tool_call>',
    ]
    assert rendered.messages[-1] == QUESTION
    assert (rendered.tools, rendered.sampling.temperature) == ((), 0.0)


def test_every_example_fits_its_tool_and_differs_from_the_last() -> None:
    rendered = render_for_small_model(
        ask_for(QUESTION, tools=(SETTINGS,), choice=ToolChoice("required")), "hermes"
    ).conversation
    definition = {"name": SETTINGS.name, "parameters": SETTINGS.parameters}
    shown = [read(message.text, [definition]) for message in rendered.messages if message.role == "assistant"]
    first, second = (json.loads(reading.calls[0].arguments) for reading in shown)
    assert [(made["mode"], made["on"]) for made in (first, second)] == [("fast", True), ("slow", False)]
    for key in ("count", "tags", "inner"):
        assert first[key] != second[key] and find_made_up(json.dumps(first[key])) and find_made_up(json.dumps(second))
    assert rendered.messages[1].text.startswith(f"set up, mode fast, count {first['count']}, ")


def test_many_tools_do_not_mean_many_examples() -> None:
    tools = tuple(Tool(f"tool_{number}") for number in range(100))
    assert (
        len(render_for_small_model(ask_for(QUESTION, tools=tools), "hermes").conversation.messages)
        < 2 * MOST_EXAMPLES + 6
    )


def test_results_are_answered_without_tools_and_tags() -> None:
    prompted = render_for_small_model(ask_for(QUESTION, CALLED, RESULT), "hermes")
    assert [message.role for message in prompted.conversation.messages] == ["user", "assistant", "user"]
    assert prompted.conversation.extra["grammar"] == "root ::= [^<]+\n"
    assert prompted.tools == (WEATHER,)


ADD = Tool(
    "add_numbers",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {key: {"type": "integer", "description": f"The number {key}"} for key in ("first", "second")},
        "required": ["first", "second"],
    },
)


def show(*tools: Tool, **options: bool) -> tuple[str, list[tuple[str, list[tuple[str, Any]]]]]:
    """The system prompt, and the example requests with the names and arguments of the calls that answer them."""
    prompted = render_for_small_model(ask_for(QUESTION, tools=tools), "fenced_json", detailed=True, **options)
    system, *turns, _ = prompted.conversation.messages
    definitions = [{"name": tool.name, "parameters": tool.parameters} for tool in tools]
    calls = [
        [(call.name, json.loads(call.arguments)) for call in read(answer.text, definitions).calls]
        for answer in turns[1::2]
    ]
    return system.text, list(zip([asked.text for asked in turns[::2]], calls, strict=True))


def test_detailed_prompts_have_schemas_and_show_each_tool_once() -> None:
    system, turns = show(WEATHER, SETTINGS, ADD, parallel=True)
    for tool in (WEATHER, SETTINGS, ADD):
        assert json.dumps(dict(tool.parameters)) in system
    hello, alone, several = turns
    assert hello == ("Hello!", [])
    assert [name for name, _ in alone[1]] == ["set_up"]
    assert [name for name, _ in several[1]] == ["get_weather", "get_weather", "add_numbers"]
    assert [name for name, _ in show(WEATHER, SETTINGS, ADD)[1][-1][1]] == ["add_numbers"]
    assert [[name for name, _ in calls] for _, calls in show(WEATHER, parallel=True)[1]] == [[], ["get_weather"] * 2]


def test_detailed_examples_have_different_values() -> None:
    [_, (request, calls)] = show(ADD, parallel=True)[1]
    numbers = [value for _, arguments in calls for value in arguments.values()]
    assert len(set(numbers)) == len(numbers) == 4
    assert all(f" {number}" in request for number in numbers)
    plain = Tool("pay", "Pay.", {"type": "object", "properties": {"reason": {}}, "required": ["reason"]})
    [_, (_, paid)] = show(plain, parallel=True)[1]
    texts = [arguments["reason"] for _, arguments in paid]
    assert len(set(texts)) == 2 and all(" " in text for text in texts), "a single word teaches to shorten"


@in_one_test(("parallel", "several"), [(True, True), (False, False)])
def test_the_grammar_of_detailed_prompts_has_several_calls_only_where_they_are_taken(
    parallel: bool, several: bool
) -> None:
    prompted = render_for_small_model(ask_for(QUESTION), "fenced_json", detailed=True, parallel=parallel)
    assert ('("\\n" call)' in prompted.conversation.extra["grammar"]) is several


def test_detailed_prompts_have_results_answered_in_words() -> None:
    """Without the grammar the model repeats the call whose result it has; other text, tags too, stays possible."""
    prompted = render_for_small_model(ask_for(QUESTION, CALLED, RESULT), "fenced_json", detailed=True, parallel=True)
    assert prompted.conversation.extra["grammar"] == build_text_grammar((WEATHER,), "fenced_json")
    assert [message.role for message in prompted.conversation.messages] == ["user", "assistant", "user"]


def test_the_client_keeps_what_it_asked_for() -> None:
    mine = {"response_format": {"type": "json_object"}}
    rendered = render_for_small_model(
        ask_for(QUESTION, extra=mine, sampling=Sampling(temperature=0.7)), "hermes"
    ).conversation
    assert (rendered.extra, rendered.sampling.temperature) == (mine, 0.7)


def test_a_dialect_without_a_grammar_still_gets_a_prompt() -> None:
    rendered = render_for_small_model(ask_for(QUESTION), "pythonic").conversation
    assert "grammar" not in rendered.extra
    assert f'[get_weather(city="{CITY}")]' in [message.text for message in rendered.messages]


def request(conversation: Conversation) -> dict[str, Any]:
    return {
        "messages": [{"role": message.role, "content": message.text} for message in conversation.messages],
        "temperature": conversation.sampling.temperature,
        **conversation.extra,
    }


@needs_model
def test_the_embedded_model_calls_answers_and_talks() -> None:
    with start_model() as model:
        prompted = render_for_small_model(ask_for(QUESTION), "hermes")
        call = read(ask(model.base_url, **request(prompted.conversation)), [{"name": "get_weather"}]).calls[0]
        assert (call.name, call.arguments, call.repairs) == ("get_weather", '{"city":"Oslo"}', ())
        answer = ask(
            model.base_url, **request(render_for_small_model(ask_for(QUESTION, CALLED, RESULT), "hermes").conversation)
        )
        assert "rain" in answer
        talk = render_for_small_model(ask_for(message("user", "Hello!")), "hermes").conversation
        assert "<" not in ask(model.base_url, **request(talk))


def test_schema_that_refers_to_itself_is_filled_to_a_limit() -> None:
    node = {"type": "object", "properties": {"inner": {"$ref": "#"}}, "required": ["inner"]}
    made = ExampleArguments(Tool("walk", "", node)).make()
    assert made == {"inner": {"inner": {"inner": {"inner": {}}}}}


def test_references_below_the_root_are_followed() -> None:
    schema = {
        "type": "object",
        "properties": {
            "place": {"type": "object", "properties": {"city": {"$ref": "#/$defs/c"}}, "required": ["city"]}
        },
        "required": ["place"],
        "$defs": {"c": {"enum": ["Oslo", "Rome"]}},
    }
    assert ExampleArguments(Tool("go", "", schema), 1).make() == {"place": {"city": "Rome"}}
