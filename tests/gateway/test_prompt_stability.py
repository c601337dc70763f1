"""Prompts that do not change from turn to turn: what is rendered, lines that clients change, and what records have."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from msgspec import structs
from support.fragments import SCALE
from support.rows import in_one_test

from toolglot.clients.volatile_lines import RULE_NAMES, split_changes
from toolglot.config import ModelSettings, PromptSettings, Settings, Upstream
from toolglot.core.conversation import Conversation, Image, Message, Part, Text, Tool, ToolCall, ToolResult
from toolglot.gateway.capabilities.learned import LearnedFailures
from toolglot.gateway.capabilities.profiles import load_profiles
from toolglot.gateway.context import GatewayContext, IncomingRequest, Source
from toolglot.gateway.exchange import Exchange, prepare
from toolglot.gateway.routing import Capabilities
from toolglot.gateway.sessions.conversation_state import count_common
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.gateway.telemetry.recorder import RequestRecorder
from toolglot.reading.reader import dialect_index
from toolglot.wires import all_wires, client_wires

DIALECTS = sorted(dialect_index().by_name)
UPSTREAM_WIRES = [name for name, wire in all_wires().items() if wire.chat is None]
LISTS = ("messages", "input", "contents")
STRING = {"type": "string"}
TOOLS = (
    Tool("read", "Read a file.", {"type": "object", "properties": {"path": STRING}, "required": ["path"]}),
    Tool("mcp.write", "Write.", {"type": "object", "properties": {"path": STRING, "lines": {"type": "integer"}}}),
    Tool("run it", "", {"type": "object", "properties": {}}),
)
NAMES = ("read", "mcp.write", "run it", "mcp_write", "unknown", "search")
TEXTS = (
    "Hello.",
    "Naïve ☕ <b>",
    '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>',
    "<read>\n<path>a</path>\n</read>",
    "<unknown>\n<path>a</path>\n</unknown>",
    "unknown(path='a') and search(path='b')",
    "[TOOL_CALLS] <|im_end|> </think>",
    "",
    " \n",
    "line\n" * 40,
)
ARGUMENTS = ('{"path":"a"}', '{"path": "b\\n", "lines": 1}', "{}", "[1]", "{broken", '{"path":"</read>"}')


class Talk:
    """A random conversation that grows."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.messages = [Message("system", (Text("Be brief.\n" * 300),)), self.user()]
        self.calls = 0

    def text(self) -> Text:
        return Text(self.random.choice(TEXTS))

    def user(self) -> Message:
        parts: list[Part] = [Text("Go on: "), self.text()]
        if self.random.random() < 0.2:
            parts.append(Image(data="AAAA", media_type="image/png"))
        return Message("user", tuple(parts))

    def grow(self) -> None:
        """One more turn: an answer, then what follows it."""
        made = [self.make_call() for _ in range(self.random.choice((0, 1, 1, 2)))]
        text = self.text()  # an answer without anything is dropped, and the messages around it become one
        written = (text if text.text.strip() else Text("Well."),) if self.random.random() < 0.6 or not made else ()
        self.messages.append(Message("assistant", (*written, *made)))
        self.random.shuffle(made)
        self.messages += [Message("tool", (self.make_result(call),)) for call in made]
        if not made:
            self.messages.append(self.user())
        elif self.random.random() < 0.2:
            self.messages.append(Message("system", (Text("Reminder: be brief."),)))

    def make_call(self) -> ToolCall:
        self.calls += 1
        return ToolCall(f"call_{self.calls}", self.random.choice(NAMES), self.random.choice(ARGUMENTS))

    def make_result(self, call: ToolCall) -> ToolResult:
        return ToolResult(call.id, call.name, (self.text(),), self.random.random() < 0.2)

    def write(self, wire: str) -> bytes:
        conversation = Conversation("m", tuple(self.messages), TOOLS)
        return all_wires()[wire].encode_request(conversation, stream=True, wants_usage=True)


class Gateway:
    """A gateway without a network, in which time stands still and every token is another one."""

    def __init__(self, wire: str = "openai_chat", address: str = "http://127.0.0.1:9", **changes: Any) -> None:
        self.tokens = iter(range(1_000_000))
        prompt = changes.pop("prompt", PromptSettings())
        upstream = Upstream(name="u", wire=wire, base_url=address, **changes)
        self.settings = Settings(upstreams=(upstream,), models=(ModelSettings(name="*"),), prompt=prompt)
        capabilities = Capabilities(load_profiles(), LearnedFailures(None, 60), lambda: 0.0)
        self.context = GatewayContext(self.settings, Source(lambda: 0.0, lambda: str(next(self.tokens))), capabilities)

    def send(self, body: bytes, wire: str, mode: str, dialect: str = "hermes") -> tuple[bytes, RequestRecorder]:
        models = (ModelSettings(name="*", dialect=dialect),)
        context = structs.replace(self.context, settings=replace(self.settings, models=models))
        recorder = Telemetry().begin("r", wire)
        path = {"model": "m", "method": "streamGenerateContent"}
        exchange = prepare(IncomingRequest(all_wires()[wire], body, recorder, path, mode), context)
        assert isinstance(exchange, Exchange)
        assert not exchange.conversation_state.conversation.messages, "an open response holds no messages"
        return exchange.upstream_body, recorder


def check_prefix(before: bytes, after: bytes) -> None:
    """Every message of the first request is the same in the second, and so is everything else."""
    one, other = json.loads(before), json.loads(after)
    assert one.keys() == other.keys()
    for name in one:
        if name in LISTS:
            assert other[name][: len(one[name])] == one[name]
        else:
            assert other[name] == one[name]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tools_as_text_are_rendered_the_same_in_every_turn(dialect: str) -> None:
    for seed in range(2 * SCALE):
        talk, gateway, before = Talk(seed), Gateway(), b""
        for _ in range(5):
            body, recorder = gateway.send(talk.write("openai_chat"), "openai_chat", "text", dialect)
            if before:
                check_prefix(before, body)
                assert recorder.stable_bytes and not recorder.unstable_at
            before = body
            talk.grow()


@in_one_test("mode", ["native", "text"])
@in_one_test("upstream", UPSTREAM_WIRES)
@in_one_test("client", sorted(client_wires()))
def test_requests_begin_as_the_one_before_on_all_wires(client: str, upstream: str, mode: str) -> None:
    for seed in range(2 * SCALE):
        talk, gateway, before = Talk(seed), Gateway(upstream), b""
        for _ in range(5):
            body, _ = gateway.send(talk.write(client), client, mode)
            if before:
                check_prefix(before, body)
            before = body
            talk.grow()


def test_calls_without_ids_get_the_same_ones_in_every_turn() -> None:
    call = {"type": "function", "function": {"name": "read", "arguments": "{}"}}
    history: list[dict[str, Any]] = [{"role": "user", "content": "Go"}]
    gateway, before = Gateway("anthropic_messages"), b""
    for number in range(4):
        history += [{"role": "assistant", "tool_calls": [call, call]}]
        history += [{"role": "tool", "content": f"{number}"}, {"role": "tool", "content": "x"}]
        body, _ = gateway.send(json.dumps({"model": "m", "messages": history}).encode(), "openai_chat", "native")
        if before:
            check_prefix(before, body)
        before = body
    turns = json.loads(before)["messages"]
    used = [block["id"] for turn in turns[1::2] for block in turn["content"]]
    assert len(set(used)) == len(used) == 8
    assert [block["tool_use_id"] for turn in turns[2::2] for block in turn["content"]] == used


# -- lines that clients change -----------------------------------------------------------------------------------------

LINE = "x-anthropic-billing-header: cc_version=2.1.177.01c; cc_entrypoint=cli; cch={};"
GUIDE = "You are an agent.\n" * 200


def ask_claude(nonce: str, *, blocks: bool = True, user: str = "Go", tools: bool = True) -> dict[str, Any]:
    """A request of Claude Code: its line is the first block of the system prompt, or the first line of it."""
    line = LINE.format(nonce)
    block = {"type": "text", "text": GUIDE, "cache_control": {"type": "ephemeral"}}
    offered = [{"name": "read", "description": "Read.", "input_schema": {"type": "object", "properties": {}}}]
    return {
        "model": "m",
        "messages": [{"role": "user", "content": user}],
        "system": [{"type": "text", "text": line}, block] if blocks else f"{line}\n{GUIDE}",
        **({"tools": offered} if tools else {}),
        "max_tokens": 100,
        "temperature": 1.0,
    }


def send_claude(gateway: Gateway, asked: dict[str, Any], mode: str) -> tuple[bytes, RequestRecorder]:
    return gateway.send(json.dumps(asked).encode(), "anthropic_messages", mode)


@in_one_test("blocks", [True, False])
@in_one_test("mode", ["native", "text"])
@in_one_test("wire", UPSTREAM_WIRES)
def test_other_upstreams_do_not_get_the_attribution_line(wire: str, mode: str, blocks: bool) -> None:
    gateway = Gateway(wire)
    sent = [send_claude(gateway, ask_claude(nonce, blocks=blocks), mode)[0] for nonce in ("01abc", "9f3d2")]
    assert sent[0] == sent[1]
    assert b"billing" not in sent[0] and b"You are an agent." in sent[0]


def test_nothing_else_in_the_clients_own_bytes_changes() -> None:
    asked = ask_claude("01abc", user="What is x-anthropic-billing-header: cch=1;?")
    body, recorder = send_claude(Gateway("anthropic_messages"), asked, "native")
    assert json.loads(body) == asked | {"system": asked["system"][1:]}
    assert recorder.notes == ["line of the client removed: attribution"]


@pytest.mark.parametrize(
    ("address", "mode", "changes", "asked"),
    [
        ("https://api.anthropic.com", "native", {}, ask_claude("01abc")),
        ("http://127.0.0.1:9", "native", {"stable": False}, ask_claude("01abc")),
        ("http://127.0.0.1:9", "native", {"unstable": ("attribution",)}, ask_claude("01abc")),
        ("http://127.0.0.1:9", "off", {}, ask_claude("01abc")),
        ("http://127.0.0.1:9", "native", {}, ask_claude("01abc", tools=False)),
        ("http://127.0.0.1:9", "native", {}, ask_claude("1", user=LINE) | {"system": f"Explain this: {LINE}"}),
    ],
    ids=["its vendor", "off", "rule off", "tools off", "relayed", "quoted"],
)
def test_the_clients_own_bytes_stay(address: str, mode: str, changes: Any, asked: dict[str, Any]) -> None:
    gateway = Gateway("anthropic_messages", address, prompt=PromptSettings(**changes))
    body, recorder = send_claude(gateway, asked, mode)
    if mode == "off":
        assert json.loads(body)["system"] == asked["system"]
    else:
        assert body == json.dumps(asked).encode()
    assert not recorder.notes


def ask_chat(system: str, turns: int) -> bytes:
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "Go"}]
    for number in range(turns):
        messages += [{"role": "assistant", "content": f"Well {number}"}, {"role": "user", "content": f"On {number}"}]
    return json.dumps({"model": "m", "messages": messages, "tools": [tool]}).encode()


def test_changed_lines_of_the_system_prompt_follow_the_last_message() -> None:
    gateway, prompts = Gateway(), []
    for minute in range(4):
        system = f"{GUIDE}Time: Tue Nov 17 2026 12:0{minute} PM\nBe brief."
        body, recorder = gateway.send(ask_chat(system, minute), "openai_chat", "text")
        prompts.append([message["content"] for message in json.loads(body)["messages"]])
    for minute, prompt in enumerate(prompts[1:], 1):
        assert prompt[0] == prompts[0][0] and "12:00 PM" in prompt[0]
        assert prompt[-1] == f"On {minute - 1}\n\nTime: Tue Nov 17 2026 12:0{minute} PM"
        assert prompt[1:-1] == [text.partition("\n\n")[0] for text in prompts[-1]][1 : len(prompt) - 1]
    assert recorder.notes == ["1 changed lines of the system prompt moved behind the messages"]
    assert recorder.unstable_at == "messages[4]"


@pytest.mark.parametrize("unstable", [("changed_lines",), ()])
def test_another_system_prompt_is_sent_as_it_is(unstable: tuple[str, ...]) -> None:
    gateway = Gateway(prompt=PromptSettings(unstable=unstable))
    gateway.send(ask_chat(f"{GUIDE}Mode: act 1", 0), "openai_chat", "text")
    second = f"{GUIDE}Mode: {'act 2' if unstable else 'plan 1'}"
    body, recorder = gateway.send(ask_chat(second, 1), "openai_chat", "text")
    messages = json.loads(body)["messages"]
    assert messages[0]["content"].startswith(second) and messages[-1]["content"] == "On 0"
    assert recorder.unstable_at == "system"
    assert recorder.stable_bytes == len("system\0") + len(GUIDE) + len("Mode: " if not unstable else "Mode: act ")


def test_changes_of_a_system_prompt() -> None:
    assert split_changes(["a", "x 1\ny 2"], ["a", "x 3\ny 2"]) == ["x 3"]
    assert split_changes(["1 May"], ["2 June"]) == ["2 June"]
    assert split_changes(["a"], ["a", "b"]) is split_changes(["a"], ["a\n"]) is split_changes(["a"], ["b"]) is None
    assert split_changes(["\n".join("1" * 9)], ["\n".join("2" * 9)]) is None
    assert RULE_NAMES == ("attribution", "changed_lines")


# -- what records have -------------------------------------------------------------------------------------------------


def test_records_have_the_first_byte_that_changed() -> None:
    gateway = Gateway(prompt=PromptSettings(stable=False))
    _, first = send_claude(gateway, ask_claude("01abc"), "native")
    assert first.stable_bytes is None and not first.unstable_at and first.prompt_bytes > len(GUIDE)
    asked = ask_claude("9f3d2")
    asked["messages"] += [{"role": "assistant", "content": "Well"}, {"role": "user", "content": "On"}]
    _, second = send_claude(gateway, asked, "native")
    assert second.unstable_at == "system"
    assert second.stable_bytes == len("system\0") + LINE.index("{}")
    line = Telemetry().finish(second, 200).as_line()
    assert f"prompt changed: system, byte {second.stable_bytes} of {second.prompt_bytes}" in line


def test_changed_tools_and_messages_are_named() -> None:
    gateway = Gateway()

    def send(tools: tuple[Tool, ...], *texts: str) -> str:
        messages = [Message("user", (Text(GUIDE),))]
        for text in texts:
            messages += [Message("assistant", (Text(text),)), Message("user", (Text("On"),))]
        conversation = Conversation("m", tuple(messages), tools)
        body = all_wires()["openai_chat"].encode_request(conversation, stream=True, wants_usage=True)
        return gateway.send(body, "openai_chat", "native")[1].unstable_at

    assert send(TOOLS) == ""
    assert send(TOOLS, "a") == ""
    assert send(TOOLS, "a", "b") == ""
    assert send(TOOLS, "a", "c", "d") == "messages[3]"
    assert send(TOOLS[1:], "a", "c", "d") == "tools"
    assert send(TOOLS[1:], "a") == "messages[2]", "the earlier prompt goes on where this one ends"


def test_small_prompts_are_not_measured() -> None:
    gateway = Gateway()
    for turns in range(2):
        _, recorder = gateway.send(ask_chat("Be brief.", turns), "openai_chat", "native")
        assert recorder.prompt_bytes == 0 and recorder.stable_bytes is None


def test_common_prefixes() -> None:
    random = Random(1)
    for _ in range(500):
        one, other = (bytes(random.choices(b"ab", (9, 1), k=random.randrange(40))) for _ in range(2))
        counted = count_common(one, other)
        assert one[:counted] == other[:counted]
        assert one[counted : counted + 1] != other[counted : counted + 1] or counted == min(len(one), len(other))
