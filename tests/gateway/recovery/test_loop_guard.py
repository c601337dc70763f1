"""A model that repeats itself gets a note, once for each doubling of the run, and the same in every later request."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any

import pytest
from support.line import Line
from support.rows import in_one_test
from support.strict_history import check_request
from support.xmlprompts import write_roo

from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolResult
from toolglot.gateway.recovery.annotations import annotate
from toolglot.gateway.recovery.loop_guard import find_loops

TOOLS = (Tool("read", "To read", {"type": "object"}),)
ASKED = Message("user", (Text("go"),))
NOTE = "times in a row"


def turn(number: int, arguments: str = '{"path":"a"}', text: str = "no such file", name: str = "read") -> list[Message]:
    call = Message("assistant", (ToolCall(f"c{number}", name, arguments),))
    return [call, Message("tool", (ToolResult(f"c{number}", name, (Text(text),)),))]


def repeat(times: int, **changes: str) -> list[Message]:
    return [ASKED, *(message for number in range(times) for message in turn(number, **changes))]


def noted(messages: Iterable[Message], limit: int = 3) -> list[int]:
    return [one.at for one in find_loops(tuple(messages), limit)]


def test_the_model_gets_a_note_at_the_limit_and_at_each_doubling() -> None:
    assert noted(repeat(2)) == []
    assert noted(repeat(3)) == [6]
    assert noted(repeat(11)) == [6, 12]
    assert noted(repeat(24)) == [6, 12, 24, 48]
    assert noted(repeat(24), 0) == []
    assert noted(repeat(3), 1) == [4]  # one call is no repetition


def test_the_note_says_what_was_tried() -> None:
    messages = [*repeat(0), *turn(8, '{"path":"b"}'), *turn(9, "{}", "x", "list"), *repeat(3)[1:]]
    (one,) = find_loops(messages, 3)
    assert one.text == (
        "Note: you have made this call 3 times in a row, with the same arguments and the same result:\n"
        '- read {"path":"a"}\n'
        "Before that you tried:\n"
        '- read {"path":"b"}\n'
        "- list {}\n"
        "The same again will most likely give the same result. Try something else, or say what is missing."
    )
    (result,) = annotate(messages, [one])[one.at].parts
    assert isinstance(result, ToolResult) and result.content == (Text("no such file\n\n" + one.text),)


def test_the_form_of_arguments_does_not_matter() -> None:
    forms = ('{"a":1,"b":"x"}', '{"b": "x", "a": 1}', '{ "a":1, "b":"\\u0078" }')
    assert noted([ASKED, *(one for number, form in enumerate(forms) for one in turn(number, form))]) == [6]


def test_calls_for_ids_beyond_floats_are_not_the_same() -> None:
    calls = [one for number in range(3) for one in turn(number, f'{{"id":123456789012345678{number}}}')]
    assert noted([ASKED, *calls]) == []


@pytest.mark.parametrize(
    "other",
    [
        turn(9, '{"path":"b"}'),
        turn(9, text="another result"),
        turn(9, name="list"),
        [Message("assistant", (Text("Done."),)), Message("user", (Text("again"),))],
    ],
)
def test_something_else_in_between_ends_the_run(other: list[Message]) -> None:
    assert noted([*repeat(2), *other, *turn(3)]) == []


def test_reminders_of_the_client_do_not_end_the_run() -> None:
    reminder = Message("user", (Text("<environment_details>12:00</environment_details>"),))
    assert noted([ASKED, *turn(1), reminder, *turn(2), reminder, *turn(3), reminder]) == [7 + 1]


def test_turns_with_several_calls_are_compared_as_a_whole() -> None:
    def both(number: int) -> list[Message]:
        made = (ToolCall(f"a{number}", "read", "{}"), ToolCall(f"b{number}", "list", "{}"))
        return [Message("assistant", made), Message("tool", tuple(ToolResult(one.id, one.name) for one in made))]

    (one,) = find_loops([message for number in range(3) for message in both(number)], 3)
    assert (one.at, one.part) == (5, 1) and "these calls" in one.text


# -- requests ----------------------------------------------------------------------------------------------------------


def ask(line: Line, messages: list[Message]) -> Any:
    return line.ask(Conversation("m", tuple(messages), TOOLS), False)


@in_one_test("upstream", ["openai_chat", "anthropic_messages", "gemini", "openai_responses", "ollama"])
@in_one_test("mode", ["native", "text"])
def test_the_model_gets_a_note_in_the_next_request(upstream: str, mode: str) -> None:
    line = Line("openai_chat", upstream, mode)
    assert NOTE not in ask(line, repeat(2)).upstream_body.decode()
    exchange = ask(line, repeat(3))
    assert exchange.upstream_body.decode().count(NOTE) == 1
    assert "a note says that read was called 3 times in a row with the same result" in exchange.recorder.notes
    if mode == "native":
        check_request(upstream, exchange.upstream_body)
    later = ask(line, repeat(4))
    again = 0 if mode == "native" and upstream == "openai_chat" else 1  # own bytes; rendered prompts stay the same
    assert later.upstream_body.decode().count(NOTE) == again
    assert not [note for note in later.recorder.notes if "a note says" in note]


def test_a_rendered_prompt_stays_the_same() -> None:
    line = Line("openai_chat", "openai_chat", "text")
    sent = [json.loads(ask(line, repeat(times)).upstream_body)["messages"] for times in range(1, 14)]
    for before, after in itertools.pairwise(sent):
        assert after[: len(before)] == before


def test_the_guard_is_off() -> None:
    line = Line("openai_chat", "openai_chat", recovery_loop_guard="0")
    body = line.client.encode_request(Conversation("m", tuple(repeat(9)), TOOLS), stream=False, wants_usage=True)
    assert line.open(body, False).upstream_body == body


def test_the_rollout_decides() -> None:
    exchange = ask(Line("openai_chat", "openai_chat", rollout_recovery="off"), repeat(3))
    assert NOTE not in exchange.upstream_body.decode()
    assert exchange.recorder.arms["recovery"] == "off"


@pytest.mark.parametrize("as_parts", [False, True])
def test_xml_clients_get_the_note_behind_their_results(as_parts: bool) -> None:
    """Their results are user text, with details that change in every turn."""

    def result(number: int) -> Any:
        texts = [
            "[list_files for '.'] Result:\n",
            "no files",
            f"\n<environment_details>\n12:0{number}\n</environment_details>",
        ]
        return [{"type": "text", "text": text} for text in texts] if as_parts else "".join(texts)

    def sent(times: int) -> Any:
        turns = [
            {"role": role, "content": content}
            for number in range(times)
            for role, content in (
                ("assistant", "I look. <list_files><path>.</path></list_files>"),
                ("user", result(number)),
            )
        ]
        messages = [{"role": "system", "content": write_roo()}, {"role": "user", "content": "go"}, *turns]
        body = json.dumps({"model": "m", "messages": messages}).encode()
        exchange = Line("openai_chat", "openai_chat", "text").open(body, False)
        assert exchange.xml_session is not None
        return body, exchange.upstream_body

    asked, given = sent(2)
    assert given == asked
    asked, given = sent(3)
    last = json.loads(given)["messages"][-1]["content"]
    assert NOTE in (last[-1]["text"] if as_parts else last)
    assert json.loads(given)["messages"][:-1] == json.loads(asked)["messages"][:-1]
    asked, given = sent(4)
    assert given == asked
