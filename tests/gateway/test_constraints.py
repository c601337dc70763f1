"""Requests that hold the model to a call: by an output format where tools are text, by the tool choice otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.embedded import KEY, ask, needs_model, start_model
from support.gateway import gateway, run
from support.line import Line
from support.rows import in_one_test

from toolglot import read
from toolglot.core.conversation import Conversation, Message, Sampling, Text, Tool, ToolChoice
from toolglot.core.schema.strictness import allows_strict
from toolglot.gateway.capabilities.constraints import constrain
from toolglot.gateway.capabilities.profiles import NEEDS_EXAMPLES, STRUCTURED, Rule, load_profiles
from toolglot.prompting.conversation import render_as_text
from toolglot.prompting.grammar.answer_schema import build_answer_schema
from toolglot.server.upstream import embedded as local
from toolglot.wires import client_wires
from toolglot.wires.protocol import Wire

TEXT = {"type": "string"}
SCHEMA = {"type": "object", "properties": {"path": TEXT}, "required": ["path"]}
STRICT = {**SCHEMA, "additionalProperties": False}
READ, WRITE = (Tool(name, f"To {name}", STRICT) for name in ("read", "write"))
LIST = Tool("list", "To list", SCHEMA)
TOOLS = (READ, WRITE, LIST)
ASKED = Message("user", (Text("go"),))
NATIVE = Conversation("m", (ASKED,), TOOLS)
CHAT, OLLAMA = (client_wires()[name] for name in ("openai_chat", "ollama"))
FIELDS = {"grammar": "grammar", "structural_tag": "response_format", "json_schema": "response_format"}


def prompted(**extra: Any) -> Any:
    return render_as_text(Conversation("m", (ASKED,), TOOLS, extra=extra), "hermes")


# -- tools are text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STRUCTURED)
def test_a_rendered_conversation_gets_an_output_format(kind: str) -> None:
    rule = Rule("r", structured=kind)
    one = constrain(prompted(seed=1), rule, CHAT, "hermes", tool="write")
    every = constrain(prompted(), rule, CHAT, "hermes")
    assert one is not None and every is not None
    assert one.tools == every.tools == TOOLS
    assert set(one.conversation.extra) == {"seed", FIELDS[kind]}
    written, both = (json.dumps(each.conversation.extra) for each in (one, every))
    assert "write" in written and "read" not in written and "list" not in written
    assert all(tool.name in both for tool in TOOLS)


@in_one_test(
    ("wire", "field", "value", "stated"),
    [
        (
            "openai_chat",
            "response_format",
            {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
            True,
        ),
        ("openai_chat", "response_format", {"type": "json_object", "schema": SCHEMA}, True),
        ("openai_chat", "guided_json", SCHEMA, True),
        ("ollama", "format", SCHEMA, True),
        ("openai_chat", "response_format", {"type": "json_object"}, False),
        ("openai_chat", "response_format", {"type": "json_schema"}, False),
        ("ollama", "format", "json", False),
        ("openai_responses", "text.format", {"type": "json_schema", "name": "a", "schema": SCHEMA}, True),
        ("openai_responses", "text.format", {"type": "json_object"}, False),
        ("anthropic_messages", "output_config.format", {"type": "json_schema", "schema": SCHEMA}, True),
        ("anthropic_messages", "output_format", {"type": "json_schema", "schema": SCHEMA}, True),
        ("gemini", "generationConfig.responseMimeType", "application/json", False),
        ("gemini", "generationConfig.responseJsonSchema", SCHEMA, True),
    ],
)
def test_a_json_format_is_stated_where_tools_are_text(wire: str, field: str, value: Any, stated: bool) -> None:
    """A model that is held to it could never call a tool."""
    line = Line(wire, wire, mode="text")
    system = Message("system", (Text("Be brief."),))
    *holders, key = field.split(".")
    extra: dict[str, Any] = {key: value}
    for holder in reversed(holders):
        extra = {holder: {"other": 1, **extra}}
    exchange = line.ask(Conversation("m", (system, ASKED), TOOLS, extra=extra), stream=False)
    body, prompt = json.loads(exchange.upstream_body), line.arrive(exchange).messages[0].text
    for holder in holders:
        body = body[holder]
        assert body["other"] == 1
    assert key not in body
    assert prompt.startswith("Be brief.") and "your whole answer must be" in prompt
    assert (json.dumps(SCHEMA, separators=(",", ":")) in prompt.partition("# Tools")[0]) is stated
    assert any(field in note for note in exchange.recorder.notes)


@in_one_test(
    ("extra", "tools", "choice"),
    [
        ({"response_format": {"type": "json_object"}}, (), ToolChoice()),
        ({"response_format": {"type": "json_object"}}, TOOLS, ToolChoice("none")),
        ({"response_format": {"type": "text"}}, TOOLS, ToolChoice()),
        ({"guided_regex": "[ab]", "response_format": None}, TOOLS, ToolChoice()),
        ({"grammar": "root ::= [a]"}, TOOLS, ToolChoice()),
    ],
)
def test_other_formats_are_sent_as_they_are(extra: Any, tools: tuple[Tool, ...], choice: ToolChoice) -> None:
    line = Line("openai_chat", "openai_chat", mode="text")
    exchange = line.ask(Conversation("m", (ASKED,), tools, choice, extra=extra), stream=False)
    assert json.loads(exchange.upstream_body).items() >= extra.items()


def test_each_format_has_the_fields_that_servers_expect() -> None:
    def fields(kind: str, wire: Wire = CHAT) -> Any:
        made = constrain(prompted(), Rule("r", structured=kind), wire, "hermes", tool="read")
        assert made is not None
        return made.conversation.extra

    assert fields("grammar")["grammar"].startswith("root ::= calls")
    tag = fields("structural_tag")["response_format"]
    assert (tag["type"], tag["format"]["type"]) == ("structural_tag", "tags_with_separator")
    schema = fields("json_schema")["response_format"]
    assert (schema["type"], set(schema["json_schema"])) == ("json_schema", {"name", "schema"})
    assert fields("json_schema", OLLAMA) == {"format": schema["json_schema"]["schema"]}


@pytest.mark.parametrize("parallel", [False, True])
def test_several_calls_are_allowed_on_demand(parallel: bool) -> None:
    made = constrain(prompted(), Rule("r", structured="structural_tag"), CHAT, "hermes", parallel=parallel)
    assert made is not None
    assert made.conversation.extra["response_format"]["format"]["stop_after_first"] is not parallel


@in_one_test("own", ["response_format", "grammar", "structured_outputs", "ebnf", "json_schema"])
@in_one_test("kind", STRUCTURED)
def test_an_output_format_of_the_client_stays(kind: str, own: str) -> None:
    rule = Rule("r", structured=kind, native=True)
    assert constrain(prompted(**{own: "mine"}), rule, CHAT, "hermes") is None
    assert constrain(Conversation("m", (ASKED,), TOOLS, extra={own: "mine"}), rule, CHAT, "hermes") is None


def test_without_a_fitting_format_there_is_no_constraint() -> None:
    assert constrain(prompted(), Rule("r"), CHAT, "hermes") is None
    assert constrain(prompted(), Rule("r", structured="grammar"), OLLAMA, "hermes") is None
    assert constrain(prompted(), Rule("r", structured="grammar"), client_wires()["gemini"], "hermes") is None
    assert constrain(prompted(), Rule("r", structured="grammar"), CHAT, "pythonic") is None
    assert constrain(prompted(), Rule("r", structured="grammar"), CHAT, "hermes", tool="other") is None


# -- tools are native --------------------------------------------------------------------------------------------------


def test_a_native_call_is_required_and_strict_where_the_schema_allows_it() -> None:
    one = constrain(NATIVE, Rule("r", strict=True), CHAT, "", tool="read")
    assert one is not None
    assert (one.choice, one.sampling.parallel_calls) == (ToolChoice.one("read"), False)
    assert [tool.strict for tool in one.tools] == [True, False, False]
    every = constrain(NATIVE, Rule("r", strict=True), CHAT, "", parallel=True)
    assert every is not None
    assert (every.choice, every.sampling.parallel_calls) == (ToolChoice("required"), None)
    assert [tool.strict for tool in every.tools] == [True, True, False]
    plain = constrain(NATIVE, Rule("r"), CHAT, "", tool="read")
    assert plain is not None and not any(tool.strict for tool in plain.tools)


def test_only_what_the_client_chose_can_be_required() -> None:
    chosen = Conversation("m", (ASKED,), TOOLS, ToolChoice("auto", ("list",)))
    made = constrain(chosen, Rule("r"), CHAT, "")
    assert made is not None and made.choice == ToolChoice("required", ("list",))
    assert constrain(chosen, Rule("r"), CHAT, "", tool="other") is None
    assert constrain(Conversation("m", (ASKED,)), Rule("r"), CHAT, "") is None


def test_a_choice_that_the_server_ignores_or_refuses_is_no_constraint() -> None:
    assert constrain(NATIVE, Rule("r", quirks=("choice_ignored",)), CHAT, "", tool="read") is None
    thinks = Rule("r", quirks=("thinking_or_choice",))
    assert constrain(NATIVE, thinks, CHAT, "") is not None
    assert constrain(Conversation("m", (ASKED,), TOOLS, sampling=Sampling(effort="high")), thinks, CHAT, "") is None
    for kind, refused in (("adaptive", True), ("enabled", True), ("disabled", False)):
        thinking = Conversation("m", (ASKED,), TOOLS, extra={"thinking": {"type": kind}})
        assert (constrain(thinking, thinks, CHAT, "") is None) == refused


@in_one_test(
    ("wire", "where", "expected"),
    [
        ("openai_chat", ("tools", 0, "function", "strict"), True),
        ("openai_chat", ("tool_choice", "function", "name"), "read"),
        ("openai_chat", ("parallel_tool_calls",), False),
        ("openai_responses", ("tools", 0, "strict"), True),
        ("openai_responses", ("tools", 2, "strict"), False),
        ("openai_responses", ("tool_choice", "name"), "read"),
        ("anthropic_messages", ("tools", 0, "strict"), True),
        ("anthropic_messages", ("tool_choice", "name"), "read"),
        ("anthropic_messages", ("tool_choice", "disable_parallel_tool_use"), True),
        ("gemini", ("toolConfig", "functionCallingConfig", "mode"), "ANY"),
        ("gemini", ("toolConfig", "functionCallingConfig", "allowedFunctionNames"), ["read"]),
    ],
)
def test_every_wire_carries_a_required_call(wire: str, where: tuple[str | int, ...], expected: object) -> None:
    made = constrain(NATIVE, Rule("r", strict=True), client_wires()[wire], "", tool="read")
    assert made is not None
    found: Any = json.loads(client_wires()[wire].encode_request(made, stream=False, wants_usage=False))
    for step in where:
        found = found[step]
    assert found == expected


@pytest.mark.parametrize("wire", ["openai_chat", "anthropic_messages"])
def test_a_tool_is_not_strict_by_itself(wire: str) -> None:
    assert b"strict" not in client_wires()[wire].encode_request(NATIVE, stream=False, wants_usage=False)


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


DEEP: Any = TEXT
for _ in range(12):
    DEEP = closed(a=DEEP)


@in_one_test(
    ("schema", "strict"),
    [
        (STRICT, True),
        (closed(a=TEXT, b={"type": ["integer", "null"], "description": "n"}), True),
        (closed(a={"type": "array", "items": closed(b={"type": "string", "enum": ["x"]})}), True),
        (closed(a={"anyOf": [TEXT, {"type": "null"}]}), True),
        (SCHEMA, False),
        (closed(), False),
        (STRICT | {"required": []}, False),
        (STRICT | {"required": ["path", "other"]}, False),
        (STRICT | {"required": [["path"]]}, False),
        (STRICT | {"$schema": "http://json-schema.org/draft-07/schema#"}, False),
        (closed(a={"type": "string", "pattern": "a+"}), False),
        (closed(a={"type": "array"}), False),
        (closed(a={"type": "object"}), False),
        (closed(a={"type": "string", "properties": []}), False),
        (closed(a={"$ref": "#/properties/b"}, b=TEXT), False),
        (closed(a={}), False),
        (closed(a=True), False),
        (closed(a={"anyOf": 1}), False),
        ({"properties": 1}, False),
        ({"type": "object", "properties": [1]}, False),
        (DEEP, False),
        ({}, False),
    ],
)
def test_which_schemas_are_sent_as_strict(schema: dict[str, Any], strict: bool) -> None:
    assert allows_strict(schema) is strict


# -- in the gateway ----------------------------------------------------------------------------------------------------


def ask_as_text(
    choice: ToolChoice, *, server: str = "llama.cpp", wire: str = "openai_chat", **extra: Any
) -> dict[str, Any]:
    line = Line("openai_chat", wire, "text")
    line.capabilities.set_facts(line.settings.upstreams[0], "qwen3", {"server": (server,)}, 60)
    exchange = line.ask(Conversation("qwen3", (ASKED,), (READ,), choice, extra=extra), False)
    assert exchange.prompted is not None
    asked: dict[str, Any] = json.loads(exchange.upstream_body)
    return asked


@pytest.mark.parametrize(
    ("server", "wire", "field"),
    [
        ("llama.cpp", "openai_chat", "grammar"),
        ("vllm", "openai_chat", "response_format"),
        ("sglang", "openai_chat", "response_format"),
        ("lmstudio", "openai_chat", "response_format"),
        ("ollama", "openai_chat", "response_format"),
        ("ollama", "ollama", "format"),
    ],
)
def test_a_required_call_is_held_to_by_what_the_server_takes(server: str, wire: str, field: str) -> None:
    assert "read" in json.dumps(ask_as_text(ToolChoice("required"), server=server, wire=wire)[field])
    assert field not in ask_as_text(ToolChoice(), server=server, wire=wire)


def test_other_servers_are_sent_no_format() -> None:
    formats = {"grammar", "response_format", "format"}
    assert formats.isdisjoint(ask_as_text(ToolChoice("required"), server="something"))
    assert formats.isdisjoint(ask_as_text(ToolChoice("required"), wire="anthropic_messages"))


def test_the_format_of_a_client_reaches_the_server() -> None:
    received = ask_as_text(ToolChoice("required"), server="vllm", guided_regex="[ab]+")
    assert received["guided_regex"] == "[ab]+" and "response_format" not in received


def test_a_required_call_comes_before_a_json_format() -> None:
    received = ask_as_text(ToolChoice("required"), server="vllm", response_format={"type": "json_object"})
    assert received["response_format"]["type"] == "structural_tag"


def test_vendors_with_strict_tools_have_a_rule() -> None:
    rules = load_profiles()
    for address, model, strict in (
        ("https://api.openai.com/v1", "gpt-5", True),
        ("https://api.anthropic.com", "claude-sonnet-4-6", True),
        ("https://api.anthropic.com", "claude-3-5-haiku-latest", False),
        ("https://generativelanguage.googleapis.com", "gemini-3-pro", False),
    ):
        assert rules.find(address, model, {}).strict is strict


@pytest.fixture(scope="module")
def embedded() -> Iterator[local.EmbeddedModel]:
    with start_model() as running:
        yield running


@needs_model
def test_a_real_model_is_held_to_it(embedded: local.EmbeddedModel) -> None:
    """The smallest of models calls, if it is not allowed to do anything else."""
    function = {"name": "read", "description": "Read a file", "parameters": SCHEMA}
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "Read the file a.txt"}],
        "tools": [{"type": "function", "function": function}],
        "tool_choice": "required",
        "temperature": 0,
        "max_tokens": 200,
    }

    async def test() -> None:
        async with gateway(base_url=embedded.base_url, api_key=KEY, dialect="hermes", mode="auto") as gate:
            answer = await gate.ask(body)
            [made] = answer.message["tool_calls"]
            assert made["function"]["name"] == "read" and "path" in json.loads(made["function"]["arguments"])

    run(test)


@needs_model
def test_a_real_model_is_held_to_a_schema(embedded: local.EmbeddedModel) -> None:
    held = {"type": "json_schema", "json_schema": {"schema": build_answer_schema((READ, LIST))}}
    question = [{"role": "user", "content": "Read the file a.txt"}]
    answer = ask(embedded.base_url, question, response_format=held, max_tokens=200)
    definitions = [{"name": tool.name, "parameters": tool.parameters} for tool in (READ, LIST)]
    [call] = read(answer, definitions, "hermes").calls
    assert set(json.loads(call.arguments)) == {"path"}


def test_a_profile_can_ask_for_examples_and_a_grammar(tmp_path: Path) -> None:
    """A model that needs them gets both with a question; a result it answers in words, as it would call for ever."""
    profiles = tmp_path / "profiles.toml"
    profiles.write_text("[[rule]]\nname = 'x'\nnative = false\nstructured = 'grammar'\nquirks = ['needs_examples']\n")
    function = {"name": "read", "description": "Read a file", "parameters": SCHEMA}
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.txt"}'}}
    asked = [{"role": "user", "content": "Read the file a.txt and then b.txt"}]
    answered = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "A"}]

    async def test() -> None:
        async with gateway(profiles=str(profiles), dialect="hermes", mode="auto") as gate:
            for messages in (asked, [*asked, *answered]):
                tools = [{"type": "function", "function": function}]
                await gate.ask({"model": "m", "messages": messages, "tools": tools})
                sent = gate.record.bodies[-1]
                assert "tools" not in sent and sent["temperature"] == 0
                assert ('\\"read\\"' in sent.get("grammar", "")) is (messages is asked)
                assert (len(sent["messages"]) > 4) is (messages is asked), "examples"

    run(test)


def test_the_half_billion_model_gets_examples() -> None:
    facts = {"server": ("llama.cpp",)}
    find = load_profiles().find
    for model, needs in (
        ("qwen2.5-coder-0.5b", True),
        ("Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf", True),
        ("qwen2.5-coder-1.5b", False),
        ("qwen2.5-coder-7b-instruct", False),
    ):
        rule = find("http://h/v1", model, facts)
        assert (NEEDS_EXAMPLES in rule.quirks) is needs
        assert rule.dialect == "fenced_json" or not needs, "the form that it writes by itself"
