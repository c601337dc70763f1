"""In mode auto a conversation keeps the mode that it began in; only a failed request changes it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.gateway import ASK, READ, gateway, run

from toolglot.config import Settings, load
from toolglot.core.conversation import Conversation, Message, Text, Tool
from toolglot.gateway.routing import Capabilities, Route, ToolMode, choose_route
from toolglot.gateway.sessions.conversation_state import NO_MESSAGES, ConversationMode, ConversationState
from toolglot.server.upstream.discovery import load_capabilities
from toolglot.sim import SimOptions
from toolglot.sim.server import make_app

ADDRESS = "https://api.groq.com/openai/v1"
USER, ANSWER = Message("user", (Text("Go"),)), Message("assistant", (Text("Well"),))
FIRST = Conversation("m", (USER,), (Tool("read"),))
LATER = Conversation("m", (USER, ANSWER, USER), (Tool("read"),))


@pytest.fixture
def gate() -> tuple[Settings, Capabilities]:
    settings = load({"base_url": ADDRESS, "state_dir": "none", "tool_calling_cool_down_seconds": "60"}, {})
    return settings, load_capabilities(settings, lambda: 0.0)


def route(
    gate: tuple[Settings, Capabilities], conversation: Conversation, session: str = "", owner: bytes = b""
) -> Route:
    settings, capabilities = gate
    state = ConversationState(capabilities.conversations, owner, {"x-session-id": session}, conversation)
    made = choose_route(conversation, settings, capabilities, state=state)
    assert isinstance(made, Route)
    return made


def learn(gate: tuple[Settings, Capabilities]) -> None:
    gate[1].failures.learn(ADDRESS, "m", "leaked", "calls came as text", 0.0)


def test_what_is_learned_applies_to_new_conversations(gate: tuple[Settings, Capabilities]) -> None:
    assert route(gate, FIRST).tool_mode is ToolMode.NATIVE
    learn(gate)
    kept = route(gate, LATER)
    assert kept.tool_mode is ToolMode.NATIVE and kept.failure is None and kept.can_fall_back
    other = route(gate, LATER, session="another-session")
    assert other.tool_mode is ToolMode.TEXT and other.failure is not None
    assert route(gate, LATER, owner=b"other").tool_mode is ToolMode.TEXT
    assert route(gate, FIRST).tool_mode is ToolMode.TEXT, "a conversation without answers begins anew"


def test_text_stays_text_when_a_failure_has_expired(gate: tuple[Settings, Capabilities]) -> None:
    learn(gate)
    assert route(gate, FIRST).tool_mode is ToolMode.TEXT
    gate[1].failures.replace_all(())
    kept = route(gate, LATER)
    assert kept.tool_mode is ToolMode.TEXT and kept.dialect == route(gate, FIRST).dialect
    assert route(gate, FIRST).tool_mode is ToolMode.NATIVE


def test_the_dialect_stays_too(gate: tuple[Settings, Capabilities]) -> None:
    state = ConversationState(gate[1].conversations, b"", None, LATER)
    state.set_mode(ConversationMode(native=False, dialect="glm45"))
    made = choose_route(LATER, *gate, state=state)
    assert isinstance(made, Route) and made.tool_mode is ToolMode.TEXT
    assert made.dialect == made.model.dialect == "glm45"


def test_a_refused_request_changes_the_mode_of_its_conversation() -> None:
    """The failure expires at once, so that only the conversation's own mode keeps it in text."""

    async def converse() -> None:
        app = make_app(SimOptions(faults=("no_tools_400",)))
        asked: dict[str, Any] = {"model": "gpt-4o", "tools": [READ], "messages": list(ASK["messages"])}
        async with gateway(app=app, tool_calling_cool_down_seconds="0.01") as gate:
            for _ in range(3):
                answer = await gate.ask(asked)
                assert answer.headers["x-toolglot-mode"] == "text"
                await asyncio.sleep(0.02)
                asked["messages"] += [{"role": "assistant", "content": "Well"}, {"role": "user", "content": "Go on"}]
            assert ["tools" in body for body in gate.record.bodies] == [True, False, False, False]
            answer = await gate.ask({**asked, "messages": [{"role": "user", "content": "Another one"}]})
            assert "tools" in gate.record.bodies[-2], "a new conversation tries native tools again"

    run(converse)


def test_a_mode_can_be_changed_when_the_messages_are_dropped(gate: tuple[Settings, Capabilities]) -> None:
    state = ConversationState(gate[1].conversations, b"", None, FIRST)
    state.begin_mode(ConversationMode(native=True, dialect=""))
    state.conversation = NO_MESSAGES
    state.set_mode(ConversationMode(native=False, dialect="hermes"))
    later = ConversationState(gate[1].conversations, b"", None, LATER)
    assert later.begin_mode(ConversationMode(native=True, dialect="")) == ConversationMode(
        native=False, dialect="hermes"
    )


def test_a_model_that_is_known_to_leak_begins_in_text(gate: tuple[Settings, Capabilities]) -> None:
    facts = {"server": ("llama.cpp",), **dict.fromkeys(("supports_tools", "supports_tool_calls"), ("true",))}
    find = gate[1].profiles.find
    for model in ("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf", "bartowski/qwen2.5-coder-7b"):
        assert not find("http://h/v1", model, facts).native
    assert find("http://h/v1", "qwen3-coder-30b", facts).native
