"""Requests that are adapted for some servers, and servers that ignore what the client asked for."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from support.line import Line
from support.rows import in_one_test
from support.wiring import USAGE, call

from toolglot.core.conversation import (
    Conversation,
    Message,
    Reasoning,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from toolglot.core.errors import ToolglotError, UsageError
from toolglot.core.events import CallStarted, Event, Failed, Finished, TextDelta, merge_deltas
from toolglot.gateway.capabilities.profiles import BUILT_IN, QUIRKS, STRUCTURED, THOUGHTS, Rule, load_profiles
from toolglot.gateway.capabilities.workarounds import FIELDS, adapt_reasoning, restrict_tools
from toolglot.wires import client_wires

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ, WRITE, LIST = (Tool(name, f"To {name}", SCHEMA) for name in ("read", "write", "list"))
TOOLS = (READ, WRITE, LIST)
ASKED = Message("user", (Text("go"),))
WIRES = sorted(client_wires())
UNCHOSEN = sorted(set(WIRES) - {"ollama"})
"""Wires on which a client can choose."""


# -- what a server would not understand --------------------------------------------------------------------------------


@in_one_test(
    ("quirk", "choice", "offered", "left", "demand"),
    [
        ("", ToolChoice.one("read"), "read write list", ToolChoice.one("read"), ""),
        ("named_choice_is_auto", ToolChoice(), "read write list", ToolChoice(), ""),
        ("named_choice_is_auto", ToolChoice("required"), "read write list", ToolChoice("required"), ""),
        ("named_choice_is_auto", ToolChoice("none"), "read write list", ToolChoice("none"), ""),
        ("named_choice_is_auto", ToolChoice.one("read"), "read", ToolChoice("required"), ""),
        ("named_choice_is_auto", ToolChoice("auto", ("read", "list")), "read list", ToolChoice(), ""),
        ("choice_ignored", ToolChoice(), "read write list", ToolChoice(), ""),
        ("choice_ignored", ToolChoice("none"), "", ToolChoice(), ""),
        ("choice_ignored", ToolChoice.one("list"), "list", ToolChoice(), "Your next answer must be a call of list."),
        ("choice_ignored", ToolChoice("required"), "read write list", ToolChoice(), "Your next answer must be a call of read or write or list."),
        ("choice_ignored", ToolChoice("auto", ("read",)), "read", ToolChoice(), ""),
    ],
)  # fmt: skip
def test_a_choice_that_would_be_ignored(
    quirk: str, choice: ToolChoice, offered: str, left: ToolChoice, demand: str
) -> None:
    asked = Conversation("m", (ASKED,), TOOLS, choice)
    narrowed = restrict_tools(asked, Rule("r", quirks=(quirk,) if quirk else ()))
    assert " ".join(tool.name for tool in narrowed.tools) == offered
    assert narrowed.choice == left
    assert [message.text for message in narrowed.messages] == [*([demand] if demand else []), "go"]
    assert (narrowed is asked) == (quirk == "" or choice == ToolChoice() or (quirk[0] == "n" and not choice.only))


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"])
def test_the_server_is_offered_only_what_was_chosen(client: str) -> None:
    """Also where the client's own words would be passed on."""
    line = Line(client, "openai_chat", "auto")
    facts = {"server": ("llama.cpp",), "supports_tools": ("true",), "supports_tool_calls": ("true",)}
    line.capabilities.set_facts(line.settings.upstreams[0], "m", facts, 60)
    exchange = line.ask(Conversation("m", (ASKED,), TOOLS, ToolChoice.one("write"), Sampling(max_tokens=7)), False)
    received = json.loads(exchange.upstream_body)
    assert [tool["function"]["name"] for tool in received["tools"]] == ["write"]
    assert (received["tool_choice"], received["max_tokens"]) == ("required", 7)


THOUGHTFUL = (
    ASKED,
    Message("assistant", (Reasoning("Hm."), ToolCall("c", "read", "{}"))),
    Message("tool", (ToolResult("c"),)),
)


@pytest.mark.parametrize(
    ("base_url", "field"),
    [
        ("https://api.openai.com/v1", ""),
        ("https://api.mistral.ai/v1", ""),
        ("https://api.groq.com/openai/v1", "reasoning"),
        ("https://api.deepseek.com/v1", "reasoning_content"),
        ("http://127.0.0.1:1/v1", "reasoning_content"),
    ],
)
def test_thoughts_go_where_a_server_looks_for_them(base_url: str, field: str) -> None:
    """Some servers refuse a message with a field that they do not know, others a turn without its thoughts."""
    exchange = Line("ollama", "openai_chat", base_url=base_url).ask(Conversation("m", THOUGHTFUL, TOOLS), False)
    text = json.loads(exchange.upstream_body)["messages"][1]
    assert {key: value for key, value in text.items() if key.startswith("reasoning")} == (
        {field: "Hm."} if field else {}
    )


def test_a_conversation_without_reasoning_is_unchanged() -> None:
    asked = Conversation("m", (ASKED,), TOOLS)
    assert adapt_reasoning(asked, Rule("r")) is asked


# -- the names are data ------------------------------------------------------------------------------------------------


def test_every_name_is_used() -> None:
    rules = load_profiles().rules
    assert {quirk for rule in rules for quirk in rule.quirks} == set(QUIRKS)
    assert {rule.reasoning for rule in rules} == {"", *THOUGHTS}
    assert {rule.structured for rule in rules} == {"", *STRUCTURED}
    assert set(FIELDS) <= set(QUIRKS)
    assert all(f"#   {name}" in BUILT_IN.read_text("utf-8") for name in ("reasoning", "structured", "strict", "quirks"))


@pytest.mark.parametrize("line", ["quirks = ['stateful']", "reasoning = 'thinking'", "structured = 'json'"])
def test_a_name_that_means_nothing_is_refused(tmp_path: Any, line: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"[[rule]]\nname = 'mine'\nnative = true\n{line}\n", "utf-8")
    with pytest.raises(UsageError, match=line.partition(" ")[0]):
        load_profiles(str(path))


# -- what a server did not keep to -------------------------------------------------------------------------------------

DONE = Finished("tool_calls", USAGE)
ONE_AND_TWO = [*call(0, "read"), *call(1, "write"), DONE]
TEXT_AND_CALL = [TextDelta("I look."), *call(0, "write"), DONE]
CASES: dict[str, tuple[ToolChoice, bool | None, list[Event], Any]] = {
    "all are wanted": (ToolChoice(), None, ONE_AND_TWO, ("", ["read", "write"], "tool_calls")),
    "none are wanted": (ToolChoice("none"), None, TEXT_AND_CALL, ("I look.", [], "stop")),
    "one is wanted": (ToolChoice.one("read"), None, ONE_AND_TWO, ("", ["read"], "tool_calls")),
    "another is wanted": (ToolChoice.one("read"), None, TEXT_AND_CALL, ("I look.", [], "stop")),
    "some are wanted": (ToolChoice("auto", ("write", "list")), None, ONE_AND_TWO, ("", ["write"], "tool_calls")),
    "only one is wanted": (ToolChoice(), False, ONE_AND_TWO, ("", ["read"], "tool_calls")),
    "nothing is left": (ToolChoice("none"), None, ONE_AND_TWO, "read, write"),
    "not even one": (ToolChoice.one("list"), None, [*call(0, "read"), DONE], "read"),
}
"""What the client chose, whether it takes several calls, what the upstream did, and what the client receives."""
NOT_ENFORCED = {"only one is wanted": {"gemini"}, "some are wanted": {"gemini", "anthropic_messages"}}
"""What clients of some wires cannot ask for."""

ROWS = [
    (client, upstream, case)
    for client, upstream, case in product(UNCHOSEN, WIRES, CASES)
    if client not in NOT_ENFORCED.get(case, ())
]


def events_of(line: Line, exchange: Any, events: list[Event]) -> list[Event]:
    try:
        return line.answer(exchange, events)
    except ToolglotError as error:
        return [Failed(error.code, error.message)]


@in_one_test("stream", [False, True])
@in_one_test(("client", "upstream", "case"), ROWS)
def test_calls_without_offered_tools(client: str, upstream: str, case: str, stream: bool) -> None:
    choice, parallel, events, expected = CASES[case]
    line = Line(client, upstream)
    asked = Conversation("m", (ASKED,), TOOLS, choice, Sampling(parallel_calls=parallel))
    exchange = line.ask(asked, stream)
    received = list(merge_deltas(events_of(line, exchange, events)))
    notes = [note for note in exchange.recorder.notes if "was not delivered" in note]
    calls = [event.name for event in received if isinstance(event, CallStarted)]
    if isinstance(expected, str):
        assert (
            isinstance(received[-1], Failed)
            and f"was a call of {expected}, which tool_choice does not allow" in received[-1].message
        )
        assert not calls and exchange.recorder.error == "forbidden_call" and len(notes) == expected.count(",") + 1
        return
    last = received[-1]
    assert isinstance(last, Finished)
    text = "".join(event.text for event in received if isinstance(event, TextDelta))
    assert (text, calls, last.reason) == expected
    made = sum(isinstance(event, CallStarted) for event in events)
    assert len(notes) == len(exchange.recorder.rejected) == made - len(calls) and exchange.recorder.tools == calls


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_leaks_is_text_unless_it_was_chosen(stream: bool) -> None:
    written = '<tool_call>\n{"name": "%s", "arguments": {"path": "a"}}\n</tool_call>'
    for name, calls in (("read", ["read"]), ("write", [])):
        line = Line("openai_chat", "openai_chat")
        exchange = line.ask(Conversation("m", (ASKED,), TOOLS, ToolChoice.one("read")), stream)
        events = line.answer(exchange, [TextDelta(written % name), Finished("stop", USAGE)])
        assert [event.name for event in events if isinstance(event, CallStarted)] == calls
        assert any(isinstance(event, TextDelta) for event in events) == (not calls)
