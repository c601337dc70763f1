"""Validation of native arguments: only what a tool cannot accept is a defect."""

from __future__ import annotations

import builtins
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rows import in_one_test

from toolglot.core.conversation import Tool
from toolglot.core.events import Reason
from toolglot.core.schema import validation
from toolglot.core.schema.validation import MAX_DEFECTS, find_argument_defects

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "pattern": "^(a+)+$", "minLength": 3, "format": "uri"},
        "count": {"type": "integer", "minimum": 5},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "version": {"const": 2},
        "label": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "note": {"type": "string", "nullable": True},
        "edits": {
            "type": "array",
            "items": {"type": "object", "properties": {"old": {"type": "string"}}, "required": ["old"]},
        },
    },
    "required": ["path"],
}
TOOL = Tool("tool", "", SCHEMA)


def describe(arguments: str, tool: Tool = TOOL) -> list[str]:
    return [str(defect) for defect in find_argument_defects(tool, arguments)]


@pytest.fixture
def without_validator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if ``jsonschema-rs`` were not installed."""
    real = builtins.__import__

    def refuse(name: str, *others: Any) -> Any:
        if name == "jsonschema_rs":
            raise ImportError(name)
        return real(name, *others)

    validation._compile_validator.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refuse)
    yield
    validation._compile_validator.cache_clear()


VALID = [
    '{"path":"x"}',
    '{"path":"x","count":1}',
    '{"path":"x","count":7.0}',
    '{"path":"x","count":123456789012345678901234567890}',
    '{"path":"x","other":{"deep":[1,2]}}',
    '{"path":"x","label":null,"note":null,"version":2.0,"unit":"celsius"}',
    '{"path":"line\nbreak","edits":[]}',
    ' {"path": "x"} ',
]


@in_one_test("arguments", VALID)
def test_valid_arguments_have_no_defects(arguments: str) -> None:
    assert describe(arguments) == []


@pytest.mark.usefixtures("without_validator")
@pytest.mark.parametrize("arguments", VALID)
def test_valid_arguments_have_no_defects_without_the_validator(arguments: str) -> None:
    assert describe(arguments) == []


MISSING = "argument path: found nothing, expected text"
INVALID = [
    ("", MISSING),
    ("  \n", MISSING),
    ("{}", MISSING),
    ("null", MISSING),
    (
        '{"path":"x","unit":"C"}',
        'argument unit: found the text "C", expected one of "celsius", "fahrenheit"',
    ),
    ('{"path":"x","version":3.50}', "argument version: found the number 3.50, expected one of 2"),
    ('{"path":"x","count":"many"}', 'argument count: found the text "many", expected an integer such as 10'),
    ('{"path":["x","y"]}', "argument path: found a list of 2 values, expected text"),
    ('{"path":"x","edits":[{"old":"a"},{}]}', "argument edits[1].old: found nothing, expected text"),
    ('{"path":"x","label":[]}', "argument label: found an empty list, expected text or null"),
]


@in_one_test(("arguments", "defect"), INVALID)
def test_defects_name_the_place_and_the_value(arguments: str, defect: str) -> None:
    assert describe(arguments) == [defect]


@pytest.mark.usefixtures("without_validator")
@pytest.mark.parametrize(("arguments", "defect"), INVALID)
def test_defects_are_the_same_without_the_validator(arguments: str, defect: str) -> None:
    assert describe(arguments) == [defect]


@in_one_test(
    ("arguments", "reason", "found"),
    [
        ('{"path":"a"}{"path":"b"}', Reason.MALFORMED, "two JSON objects, one after the other"),
        ('{"path":"a"} done', Reason.MALFORMED, '"done" after the object'),
        ("{'path': 'a'}", Reason.MALFORMED, "\"'path': 'a'}\" at character 2"),
        ('{"path":"a', Reason.TRUNCATED, "an end in the middle"),
        ('{"path":"a",', Reason.TRUNCATED, "an end in the middle"),
        ('["a"]', Reason.MALFORMED, "a list"),
        ('"a"', Reason.MALFORMED, "a text"),
        ("3", Reason.MALFORMED, "a number"),
        ("true", Reason.MALFORMED, "true or false"),
    ],
)
def test_what_is_not_one_object_is_described(arguments: str, reason: Reason, found: str) -> None:
    (defect,) = find_argument_defects(TOOL, arguments)
    assert (defect.reason, defect.where, defect.found) == (reason, "arguments", found)


def test_a_number_as_text_is_of_the_wrong_type() -> None:
    assert describe('{"path":"x","count":"3"}') == [
        'argument count: found the text "3", expected an integer such as 10'
    ]


def test_unknown_arguments_are_defects_only_where_the_schema_forbids_them() -> None:
    closed = Tool("tool", "", {**SCHEMA, "additionalProperties": False})
    with_patterns = Tool("tool", "", {**SCHEMA, "additionalProperties": False, "patternProperties": {"^x": {}}})
    known = ", ".join(SCHEMA["properties"])
    assert describe('{"path":"x","pth":1}', closed) == [f"argument pth: found an unknown name, expected {known}"]
    assert describe('{"path":"x","x-y":1}', with_patterns) == []
    empty = Tool("tool", "", {"additionalProperties": False})
    assert describe('{"a":1}', empty) == ["argument a: found an unknown name, expected no argument at all"]


@pytest.mark.usefixtures("without_validator")
def test_unknown_arguments_are_found_without_the_validator() -> None:
    closed = Tool("tool", "", {**SCHEMA, "additionalProperties": False})
    assert [text.partition(",")[0] for text in describe('{"path":"x","pth":1}', closed)] == [
        "argument pth: found an unknown name"
    ]


def test_references_and_unions_are_followed() -> None:
    schema = {
        "type": "object",
        "$defs": {"size": {"type": "object", "properties": {"w": {"type": "number"}}, "required": ["w"]}},
        "properties": {"size": {"$ref": "#/$defs/size"}, "any": {"oneOf": [{"type": "string"}, {"type": "number"}]}},
    }
    tool = Tool("tool", "", schema)
    assert describe('{"size":{}}', tool) == ["argument size.w: found nothing, expected a number such as 1.5"]
    assert describe('{"any":true}', tool) == ["argument any: found true, expected text or a number such as 1.5"]
    assert describe('{"any":1}', tool) == []


ODD_SCHEMAS: list[Any] = [
    {"type": "blob", "required": ["a"]},
    {"$ref": "http://192.0.2.1/schema.json"},
    {"$ref": "other.json#/x", "required": ["a"]},
    {"$id": "http://192.0.2.1/", "properties": {"a": {"$ref": "b"}}},
    {"$schema": "http://192.0.2.1/draft", "properties": {"a": {"type": "string"}}},
    {"properties": {"a": {"$ref": "#/nowhere"}}},
    {"properties": {"a": {"enum": ["x"], "default": "1"}}},
    {"properties": {"a": {"items": [{"type": "number"}]}}},
    {"if": {"properties": {"a": {"pattern": "x"}}}, "then": {"required": ["b"]}},
    {"properties": {"a": {"pattern": "(?<!x)(["}}},
    {"not": {"required": ["a"]}},
    {"dependentRequired": {"a": ["b"]}},
    {"properties": {"a": {"type": "string", "format": "date", "minLength": 100}}},
    {"properties": {"a": True}, "minProperties": 5},
    {"required": "a"},
    {"properties": {"a": {"type": ["string", "strange"]}}},
]


@in_one_test("schema", ODD_SCHEMAS, ids=json.dumps)
def test_odd_schemas_block_no_call(schema: Any) -> None:
    assert find_argument_defects(Tool("tool", "", schema), '{"a":"1"}') == ()


def test_nothing_is_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema"
        for schema in ({"$ref": address}, {"$schema": address}, {"properties": {"a": {"$ref": f"{address}#/x"}}}):
            # the compiled schema refuses such references first, so both are asked
            with suppress(ValueError):
                validation._make_validator(Tool("tool", "", schema))
            assert find_argument_defects(Tool("tool", "", schema), '{"a":"1"}') == ()
        with pytest.raises(BlockingIOError):
            server.accept()


def test_there_are_few_defects_and_the_work_is_linear() -> None:
    assert len(find_argument_defects(TOOL, '{"path":"x","edits":[' + ",".join(["{}"] * 1000) + "]}")) == MAX_DEFECTS
    before = process_time()
    found = find_argument_defects(TOOL, '{"path":"x","edits":[' + ",".join(["{}"] * 300_000) + "]}")
    assert process_time() - before < 2
    assert [defect.where for defect in found] == ["argument edits[0].old"]


@in_one_test(
    "arguments",
    [
        '{"path":"\\ud800"}',
        '{"path":"\ud800"}',
        '{"count":' + "9" * 5000 + "}",
        '{"count":1e999}',
        '{"count":NaN}',
        '{"edits":' + "[" * 100_000,
        '{"edits":' + "[" * 500 + "]" * 500 + "}",
        "\x00",
    ],
)
def test_unusual_values_do_not_raise(arguments: str) -> None:
    find_argument_defects(TOOL, arguments)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "path"]), inner, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries({}, optional={"type": KINDS, "enum": st.lists(JSON, max_size=2), "const": JSON}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS,
            "properties": st.dictionaries(st.sampled_from(["a", "b", "path"]), inner, max_size=2),
            "required": st.lists(st.sampled_from(["a", "b"]), max_size=2),
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "allOf": st.lists(inner, max_size=2),
            "additionalProperties": st.booleans() | inner,
        },
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, st.dictionaries(st.sampled_from(["a", "b", "path"]), JSON, max_size=3) | JSON)
def test_any_schema_and_any_value_give_an_answer(schema: dict[str, Any], value: Any) -> None:
    defects = find_argument_defects(Tool("tool", "", schema), json.dumps(value))
    assert all(defect.where and defect.found and defect.expected for defect in defects)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_any_text_gives_an_answer(arguments: str) -> None:
    find_argument_defects(TOOL, arguments)
