"""The JSON format of a whole answer between wires: where it is enforced, where the prompt asks for it, what is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.line import Line
from support.rows import in_one_test

from toolglot.wires.anthropic_messages.output_schema import adapt_schema

CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
MAP = {"type": "object", "additionalProperties": {"type": "string"}}
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
OLLAMA = CHAT | {"stream": False}
GEMINI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "go"}]}]}
FUNCTION = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}


def ask(client: str, upstream: str, mode: str = "native", **body: Any) -> tuple[Any, list[str]]:
    """The request of the upstream, and the notes."""
    exchange = Line(client, upstream, mode).open(json.dumps(body).encode(), False)
    return json.loads(exchange.upstream_body), exchange.recorder.notes


def held_to(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema} | more}}


@in_one_test(
    ("upstream", "field", "expected"),
    [
        ("openai_responses", "text", {"format": {"type": "json_schema", "name": "a", "schema": CLOSED, "description": "d", "strict": True}}),
        ("anthropic_messages", "output_config", {"format": {"type": "json_schema", "schema": CLOSED}}),
        ("gemini", "generationConfig", {"responseMimeType": "application/json", "responseJsonSchema": CLOSED}),
        ("ollama", "format", CLOSED),
    ],
)  # fmt: skip
def test_a_schema_has_its_place_on_every_wire(upstream: str, field: str, expected: Any) -> None:
    body, notes = ask("openai_chat", upstream, **CHAT, **held_to(CLOSED, description="d", strict=True))
    assert body[field] == expected and notes == []


@in_one_test(
    ("upstream", "field", "expected"),
    [
        ("openai_responses", "text", {"format": {"type": "json_object"}}),
        ("gemini", "generationConfig", {"responseMimeType": "application/json"}),
        ("ollama", "format", "json"),
    ],
)
def test_any_object_has_its_place_on_most_wires(upstream: str, field: str, expected: Any) -> None:
    body, notes = ask("openai_chat", upstream, **CHAT, response_format={"type": "json_object"})
    assert body[field] == expected and notes == []


def test_a_schema_without_a_word_on_strictness_is_strict_where_servers_accept_it() -> None:
    """Gemini, Ollama and Anthropic always enforce a schema; the chat wire only does with ``strict``."""
    body, _ = ask("ollama", "openai_chat", **OLLAMA, format=CLOSED | {"title": "My result!"})
    assert body["response_format"]["json_schema"] | {"schema": 0} == {"name": "My_result", "schema": 0, "strict": True}
    body, _ = ask("ollama", "openai_chat", **OLLAMA, format={"type": "object", "properties": {}})
    assert body["response_format"]["json_schema"].keys() == {"name", "schema"}
    body, _ = ask("openai_chat", "openai_responses", **CHAT, **held_to(CLOSED))
    assert "strict" not in body["text"]["format"]  # the client did not ask for it, and could have


@in_one_test("upstream", ["openai_chat", "openai_responses"])
@in_one_test(("text", "asked_for"), [("go", True), ("Answer in Json.", False)])
def test_a_request_for_any_object_contains_the_word(upstream: str, text: str, asked_for: bool) -> None:
    """Servers of these wires refuse it otherwise; those of others do not."""
    body, _ = ask("ollama", upstream, model="m", format="json", messages=[{"role": "user", "content": text}])
    assert ("The whole answer is one JSON object." in json.dumps(body)) is asked_for


def test_the_own_schemas_of_gemini_become_json_schema() -> None:
    own = {"type": "OBJECT", "properties": {"n": {"type": "INTEGER", "nullable": True}}, "propertyOrdering": ["n"]}
    config = {"response_mime_type": "application/json", "response_schema": own}
    body, notes = ask("gemini", "ollama", **GEMINI, generationConfig=config)
    assert body["format"] == {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}} and notes == []


def test_the_older_field_of_the_messages_wire_is_read() -> None:
    messages = CHAT | {"max_tokens": 9, "output_format": {"type": "json_schema", "schema": CLOSED}}
    body, notes = ask("anthropic_messages", "ollama", **messages)
    assert body["format"] == CLOSED and notes == []


@in_one_test(
    ("client", "body"),
    [
        ("openai_chat", CHAT | {"response_format": {"type": "text"}}),
        ("openai_chat", CHAT | {"response_format": None}),
        ("openai_responses", {"model": "m", "input": "go", "store": False, "text": {"format": {"type": "text"}}}),
        ("gemini", GEMINI | {"generationConfig": {"responseMimeType": "text/plain"}}),
        ("ollama", OLLAMA | {"format": ""}),
    ],
)
def test_plain_text_is_no_loss(client: str, body: dict[str, Any]) -> None:
    assert ask(client, "anthropic_messages", **body)[1] == []


@in_one_test(
    ("client", "body", "lost"),
    [
        ("openai_chat", CHAT | {"response_format": {"type": "json_object"}}, "json_object"),
        ("openai_chat", CHAT | {"response_format": {"type": "grammar", "grammar": "x"}}, "response_format"),
        ("openai_chat", CHAT | {"guided_regex": "[ab]"}, "guided_regex"),
        ("openai_responses", {"model": "m", "input": "go", "store": False, "text": {"verbosity": "low"}}, "text.verbosity"),
        ("gemini", GEMINI | {"generationConfig": {"responseMimeType": "text/x.enum"}}, "generationConfig.responseMimeType"),
    ],
)  # fmt: skip
def test_formats_without_an_equal_are_lost_with_a_note(client: str, body: dict[str, Any], lost: str) -> None:
    sent, notes = ask(client, "anthropic_messages", **body)
    assert notes == [f"not carried to another wire: {lost}"] and "output_config" not in sent


# -- tools and a format in one request ---------------------------------------------------------------------------------


@in_one_test(
    ("upstream", "model", "enforced"),
    [
        ("openai_responses", "", True),
        ("anthropic_messages", "", True),
        ("ollama", "", False),
        ("gemini", "gemini-2.5-pro", False),
        ("gemini", "gemini-3-pro", True),
        ("gemini", "publishers/google/models/gemini-3.5-flash", True),
    ],
)
def test_a_format_beside_native_tools(upstream: str, model: str, enforced: bool) -> None:
    """Models of Ollama cannot call if they are held to a format; older ones of Gemini refuse the request."""
    for choice in ("auto", "none"):
        asked = CHAT | held_to(CLOSED) | {"tools": [FUNCTION], "tool_choice": choice, "model": model or "m"}
        body, notes = ask("openai_chat", upstream, **asked)
        written = json.dumps(body).replace(" ", "")
        held = enforced or choice == "none"
        assert ("If you do not call a tool" in json.dumps(body)) is not held
        assert bool(notes) is not held and '"integer"' in written.replace('\\"', '"')


@in_one_test(
    ("client", "body"),
    [
        ("openai_chat", CHAT | held_to(CLOSED) | {"tools": [FUNCTION]}),
        ("ollama", OLLAMA | {"format": CLOSED, "tools": [FUNCTION]}),
        ("gemini", GEMINI | {"generationConfig": {"responseJsonSchema": CLOSED}, "tools": [{"functionDeclarations": [{"name": "read"}]}]}),
        ("anthropic_messages", CHAT | {"max_tokens": 9, "tools": [{"name": "read", "input_schema": {"type": "object"}}], "output_config": {"format": {"type": "json_schema", "schema": CLOSED}}}),
        ("openai_responses", {"model": "m", "input": "go", "store": False, "tools": [{"type": "function", "name": "read", "parameters": {}}], "text": {"format": {"type": "json_schema", "name": "a", "schema": CLOSED}}}),
    ],
)  # fmt: skip
@in_one_test("upstream", ["openai_chat", "openai_responses", "anthropic_messages", "gemini", "ollama"])
def test_a_format_never_holds_a_model_whose_calls_are_text(client: str, body: dict[str, Any], upstream: str) -> None:
    sent, notes = ask(client, upstream, "text", **body)
    assert not {"response_format", "text", "output_config", "format"} & sent.keys()
    assert "responseMimeType" not in (config := sent.get("generationConfig", {})) and "responseJsonSchema" not in config
    assert "your whole answer must be JSON" in json.dumps(sent)
    assert len(notes) == 1 and "stated in the prompt" in notes[0]


# -- the schemas of the Messages wire ----------------------------------------------------------------------------------


def test_a_schema_that_cannot_be_expressed_is_stated_in_the_prompt() -> None:
    body, notes = ask("openai_chat", "anthropic_messages", **CHAT, **held_to(MAP))
    assert "output_config" not in body
    assert (
        body["system"].startswith("Your whole answer must be JSON")
        and json.dumps(MAP, separators=(",", ":")) in body["system"]
    )
    assert notes == ["json_schema is stated in the prompt: the upstream cannot enforce it"]


@in_one_test(
    "schema",
    [
        MAP,
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": MAP}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}},
        {"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}}},
        {"anyOf": [CLOSED, True]},
        {},
    ],
)
def test_schemas_that_cannot_be_expressed(schema: dict[str, Any]) -> None:
    assert adapt_schema(schema) is None


def test_objects_are_closed_and_limits_described() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 5, "description": "How many", "default": 3},
            "s": {"type": "string", "format": "date", "minLength": 2},
            "l": {"type": "array", "items": {"$ref": "#/$defs/one"}, "minItems": 1},
            "o": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/one"}]},
        },
        "required": ["n"],
        "$defs": {"one": {"type": "object", "properties": {"a": {"enum": ["x", 1]}}, "additionalProperties": True}},
    }
    assert adapt_schema(schema) == {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": 'How many\n{"minimum":1,"maximum":5}'},
            "s": {"type": "string", "format": "date", "description": '{"minLength":2}'},
            "l": {"type": "array", "items": {"$ref": "#/$defs/one"}, "minItems": 1},
            "o": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/one"}]},
        },
        "required": ["n"],
        "$defs": {"one": {"type": "object", "properties": {"a": {"enum": ["x", 1]}}, "additionalProperties": False}},
        "additionalProperties": False,
    }


@pytest.mark.parametrize("effort", ["low", ""])
def test_the_format_stands_beside_the_effort(effort: str) -> None:
    asked = CHAT | held_to(CLOSED) | ({"reasoning_effort": effort} if effort else {})
    body, _ = ask("openai_chat", "anthropic_messages", **asked)
    assert body["output_config"] == ({"effort": effort} if effort else {}) | {
        "format": {"type": "json_schema", "schema": CLOSED}
    }
