"""How schemas type arguments: compiling, bare text, JSON values, nested elements, and finding tools."""

from __future__ import annotations

import json
import sys
import time
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rows import in_one_test

from toolglot.core.errors import ToolSchemaError
from toolglot.core.events import Reason
from toolglot.core.lenient_json import Number, Value, dump
from toolglot.core.schema.toolset import (
    ANY,
    UNTYPED,
    CompiledTool,
    CompiledTools,
    SchemaType,
    Typed,
    coerce_text,
    coerce_text_leaves,
    coerce_value,
    compile_declared,
)

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
NULL = {"type": "null"}
STRINGS = {"type": "array", "items": STRING}
INTEGERS = {"type": "array", "items": INTEGER}
POINT = {"type": "object", "properties": {"x": INTEGER, "y": INTEGER}, "required": ["x"]}
FILES = {"type": "array", "items": {"type": "object", "properties": {"path": STRING, "line": INTEGER}}}
TREE = {
    "$ref": "#/$defs/tree",
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"value": INTEGER, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "required": ["value"],
        }
    },
}


def make_tool(**properties: Any) -> CompiledTool:
    return tool_of({"type": "object", "properties": properties})


def tool_of(parameters: Any) -> CompiledTool:
    tool = CompiledTools([{"name": "t", "parameters": parameters}]).find("t")
    assert tool is not None
    return tool


def shape_of(schema: Any) -> SchemaType:
    """The shape of a parameter; definitions move to where references look for them."""
    definitions = schema.get("$defs", {}) if isinstance(schema, dict) else {}
    return tool_of({"type": "object", "properties": {"a": schema}, "$defs": definitions}).type_of("a")


def same(one: object, other: object) -> bool:
    """Equal, and numbers only to numbers."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return type(one) is type(other) and one == other


def expect(typed: Typed, value: object, *repairs: str) -> None:
    assert typed.defects == ()
    assert same(typed.value, value), (typed.value, value)
    assert typed.repairs == repairs


def expect_defect(typed: Typed, found: str = "", expected: str = "", where: str = "argument a") -> None:
    assert len(typed.defects) == 1, typed
    (defect,) = typed.defects
    assert (defect.reason, defect.where) == (Reason.INVALID_VALUE, where)
    assert found in defect.found
    assert expected in defect.expected


# -- bare text: one kind -----------------------------------------------------------------------------------------------


@in_one_test("text", ["007", "true", "null", "1e5", "", "  a\n", '"quoted"', "{}", "None", "[1]", "\r\n\t"])
@in_one_test("schema", [STRING, {"anyOf": [STRING]}, {"type": ["string"]}, {"allOf": [STRING]}])
def test_text_for_a_string_is_kept_to_the_letter(text: str, schema: Any) -> None:
    shape = shape_of(schema)
    assert shape.streams
    expect(coerce_text(text, shape, "argument a"), text)


@in_one_test(
    ("text", "value", "repairs"),
    [
        ("5", "5", ()),
        ("  -5\n", "-5", ()),
        ("0", "0", ()),
        ("-0", "-0", ()),
        ("9" * 5000, "9" * 5000, ()),
        ("007", "7", ("normalized_number",)),
        ("-007", "-7", ("normalized_number",)),
        ("000", "0", ("normalized_number",)),
        ("+5", "5", ("normalized_number",)),
        ("5.0", "5", ("normalized_number",)),
        ("5.", "5", ("normalized_number",)),
        ("1e3", "1000", ("normalized_number",)),
        ("1.5e1", "15", ("normalized_number",)),
        ("50e-1", "5", ("normalized_number",)),
        ('"5"', "5", ("unquoted_value",)),
        ("'5'", "5", ("unquoted_value",)),
        ('"05"', "5", ("unquoted_value", "normalized_number")),
    ],
)
def test_text_for_an_integer(text: str, value: str, repairs: tuple[str, ...]) -> None:
    expect(coerce_text(text, shape_of(INTEGER), "argument a"), Number(value), *repairs)


@in_one_test(
    "text",
    [
        "",
        " ",
        "ten",
        "1_000",
        "5.5",
        "1e-1",
        "5 6",
        "--5",
        "+",
        ".",
        "0x10",
        "true",
        "null",
        "[5]",
        "٣",
        "1e99999",
        "NaN",
    ],
)
def test_text_that_is_no_integer(text: str) -> None:
    expect_defect(coerce_text(text, shape_of(INTEGER), "argument a"), "the text", "an integer such as 10")


@in_one_test(
    ("text", "value", "repairs"),
    [
        ("0.50", "0.50", ()),
        ("5", "5", ()),
        ("-1.5E+10", "-1.5E+10", ()),
        ("1e99999", "1e99999", ()),
        (" 2.5 ", "2.5", ()),
        (".5", "0.5", ("normalized_number",)),
        ("-.5", "-0.5", ("normalized_number",)),
        ("5.", "5.0", ("normalized_number",)),
        ("00.5", "0.5", ("normalized_number",)),
        ("+1.5", "1.5", ("normalized_number",)),
    ],
)
def test_text_for_a_number(text: str, value: str, repairs: tuple[str, ...]) -> None:
    expect(coerce_text(text, shape_of(NUMBER), "argument a"), Number(value), *repairs)


@in_one_test("text", ["NaN", "Infinity", "-Infinity", "inf", "1,5", "", "1e", "e5", "."])
def test_text_that_is_no_number(text: str) -> None:
    expect_defect(coerce_text(text, shape_of(NUMBER), "argument a"), "the text", "a number such as 1.5")


@in_one_test(
    ("text", "value", "repairs"),
    [
        *((text, True, ()) for text in ("true", "True", "TRUE", " true\n")),
        *((text, False, ()) for text in ("false", "False", "FALSE")),
        *((text, True, ("coerced_boolean",)) for text in ("yes", "on", "1", "YES")),
        *((text, False, ("coerced_boolean",)) for text in ("no", "off", "0")),
        ('"true"', True, ("unquoted_value",)),
    ],
)
def test_text_for_a_boolean(text: str, value: bool, repairs: tuple[str, ...]) -> None:
    expect(coerce_text(text, shape_of(BOOLEAN), "argument a"), value, *repairs)


@pytest.mark.parametrize("text", ["", "t", "maybe", "null", "2", "truee"])
def test_text_that_is_no_boolean(text: str) -> None:
    expect_defect(coerce_text(text, shape_of(BOOLEAN), "argument a"), "the text", "true or false")


@pytest.mark.parametrize("text", ["null", "None", "", " null "])
def test_text_for_null_alone(text: str) -> None:
    expect(coerce_text(text, shape_of(NULL), "argument a"), None)


@in_one_test(
    ("schema", "text", "value", "repairs"),
    [
        (STRINGS, '["a", "b"]', ["a", "b"], ()),
        (STRINGS, ' \n["a"]\n', ["a"], ()),
        (STRINGS, "['a', 'b',]", ["a", "b"], ("single_quotes", "trailing_comma")),
        (STRINGS, "abc", ["abc"], ("wrapped_in_list",)),
        (STRINGS, '"abc"', ["abc"], ("unquoted_value", "wrapped_in_list")),
        (STRINGS, "[1, true]", ["1", "true"], ("coerced_type",)),
        (STRINGS, "[]", [], ()),
        (INTEGERS, "[1, 2]", [Number("1"), Number("2")], ()),
        (INTEGERS, '["1", 2.0]', [Number("1"), Number("2")], ("coerced_type",)),
        (INTEGERS, "5", [Number("5")], ("wrapped_in_list",)),
        (INTEGERS, "05", [Number("5")], ("normalized_number", "wrapped_in_list")),
        ({"type": "array"}, "[1, 'a']", [Number("1"), "a"], ("single_quotes",)),
        ({"type": "array"}, "5", [Number("5")], ("wrapped_in_list",)),
        (FILES, '{"path": "a"}', [{"path": "a"}], ("wrapped_in_list",)),
        (FILES, '[{"path": "a", "line": 3}]', [{"path": "a", "line": Number("3")}], ()),
        (POINT, '{"x": 1, "extra": 0.50}', {"x": Number("1"), "extra": Number("0.50")}, ()),
        (POINT, '"{\\"x\\": 1}"', {"x": Number("1")}, ("unquoted_value",)),
        (POINT, "{'x': 1}", {"x": Number("1")}, ("single_quotes",)),
        ({"type": "object"}, "{}", {}, ()),
    ],
)
def test_text_for_lists_and_objects(schema: Any, text: str, value: Value, repairs: tuple[str, ...]) -> None:
    expect(coerce_text(text, shape_of(schema), "argument a"), value, *repairs)


@in_one_test(
    ("schema", "text", "expected"),
    [
        (POINT, "abc", 'a JSON object such as {"x": ..., "y": ...}'),
        (POINT, "[1]", "a JSON object"),
        (POINT, "5", "a JSON object"),
        (POINT, '{"x": 1', "a JSON object"),
        (POINT, "", "a JSON object"),
        ({"type": "object"}, "abc", 'a JSON object such as {"key": ...}'),
        (STRINGS, '["a"', 'a JSON list such as ["a", "b"]'),
        (STRINGS, "", "a JSON list"),
        (INTEGERS, "abc", "a JSON list such as [1, 2]"),
        (FILES, "abc", "a JSON list such as [{...}]"),
        ({"type": "array", "items": STRINGS}, "abc", "a JSON list"),
    ],
)
def test_text_that_is_no_list_or_object(schema: Any, text: str, expected: str) -> None:
    expect_defect(coerce_text(text, shape_of(schema), "argument a"), "", expected)


def test_defects_inside_parsed_text_name_the_place() -> None:
    typed = coerce_text('[{"line": 1}, {"line": "two"}]', shape_of(FILES), "argument a")
    expect_defect(typed, 'the text "two"', "an integer", where="argument a[1].line")


# -- bare text: enums, unions, nothing declared ------------------------------------------------------------------------


@in_one_test(
    ("schema", "text", "value", "repairs"),
    [
        ({"enum": ["a", "b"]}, "a", "a", ()),
        ({"enum": ["a", "b"]}, " b\n", "b", ("trimmed_value",)),
        ({"enum": [" b"]}, " b", " b", ()),
        ({"enum": ["abc"]}, '"abc"', "abc", ("unquoted_value",)),
        ({"enum": ['"abc"', "abc"]}, '"abc"', '"abc"', ()),
        ({"enum": [1, 2, 3]}, "2", Number("2"), ()),
        ({"enum": [0.5]}, "0.50", Number("0.50"), ()),
        ({"enum": ["true", "false", "auto"]}, "true", "true", ()),
        ({"enum": [True, "auto"]}, "true", True, ()),
        ({"enum": ["auto", True]}, "True", True, ()),
        ({"enum": ["auto", 1]}, "1", Number("1"), ()),
        ({"enum": ["1", 1]}, "1", "1", ()),
        ({"enum": ["a", None]}, "null", None, ()),
        ({"type": "string", "enum": ["a"], "nullable": True}, "null", None, ()),
        ({"type": ["string", "null"], "enum": ["a"]}, "None", None, ()),
        ({"const": "x"}, "x", "x", ()),
        ({"const": 7}, "7", Number("7"), ()),
        ({"enum": [[1], {"a": 1}]}, '{"a": 1}', {"a": Number("1")}, ()),
        ({"oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}, "b", "b", ()),
        ({"type": "string", "oneOf": [{"const": "a"}, {"const": "b"}]}, "a", "a", ()),
    ],
)
def test_text_for_an_enum(schema: Any, text: str, value: Value, repairs: tuple[str, ...]) -> None:
    shape = shape_of(schema)
    assert not shape.streams
    assert not shape.nullable_text
    expect(coerce_text(text, shape, "argument a"), value, *repairs)


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"enum": ["red", "green"]}, "Red", 'one of "red", "green"'),
        ({"enum": ["red", 1, None, True]}, "2", 'one of "red", 1, null, true'),
        ({"type": "string", "oneOf": [{"const": "a"}, {"const": "b"}]}, "c", 'one of "a", "b"'),
        ({"anyOf": [{"enum": ["a"]}, INTEGER]}, "x", 'one of "a" or an integer'),
        (False, "x", "no value at all"),
    ],
)
def test_a_value_outside_an_enum_lists_the_members(schema: Any, text: str, expected: str) -> None:
    expect_defect(coerce_text(text, shape_of(schema), "argument a"), f'the text "{text}"', expected)


@in_one_test(
    ("schema", "text", "value", "repairs"),
    [
        ({"type": ["string", "null"]}, "null", None, ()),
        ({"type": ["string", "null"]}, "None", None, ()),
        ({"type": ["string", "null"]}, " null", " null", ()),
        ({"type": ["string", "null"]}, "NULL", "NULL", ()),
        ({"type": ["string", "null"]}, "", "", ()),
        ({"type": "string", "nullable": True}, "null", None, ()),
        ({"anyOf": [STRING, NULL]}, "null", None, ()),
        ({"anyOf": [STRING, NULL]}, "5", "5", ()),
        ({"type": ["integer", "null"]}, " null ", None, ()),
        ({"type": ["integer", "null"]}, "5", Number("5"), ()),
        ({"anyOf": [INTEGER, NULL]}, "None", None, ()),
        ({"anyOf": [INTEGER, NULL]}, '"5"', Number("5"), ("unquoted_value",)),
        ({"type": ["integer", "string"]}, "5", Number("5"), ()),
        ({"type": ["integer", "string"]}, "05", "05", ()),
        ({"type": ["integer", "string"]}, "5.0", "5.0", ()),
        ({"type": ["string", "integer"]}, "5", "5", ()),
        ({"anyOf": [NUMBER, STRING]}, "0.50", Number("0.50"), ()),
        ({"anyOf": [STRING, NUMBER]}, "0.50", "0.50", ()),
        ({"type": ["boolean", "string"]}, "true", True, ()),
        ({"type": ["string", "boolean"]}, "true", "true", ()),
        ({"type": ["boolean", "string"]}, "yes", "yes", ()),
        ({"type": ["boolean", "integer"]}, "1", Number("1"), ()),
        ({"type": ["boolean", "integer"]}, "on", True, ("coerced_boolean",)),
        ({"type": ["integer", "number"]}, "5.0", Number("5.0"), ()),
        ({"anyOf": [STRING, STRINGS]}, '["a"]', ["a"], ()),
        ({"anyOf": [STRING, STRINGS]}, "['a']", "['a']", ()),
        ({"anyOf": [STRING, STRINGS]}, "[draft] a", "[draft] a", ()),
        ({"anyOf": [STRING, POINT]}, '{"x": 1}', {"x": Number("1")}, ()),
        ({"anyOf": [STRING, POINT]}, '{"x"=1}', '{"x"=1}', ()),
        ({"anyOf": [STRING, POINT]}, '{"y": 1}', '{"y": 1}', ()),
        ({"anyOf": [INTEGER, STRINGS]}, "abc", ["abc"], ("wrapped_in_list",)),
        ({"anyOf": [POINT, FILES]}, '{"path": "a", "x": 2}', {"path": "a", "x": Number("2")}, ()),
        ({"anyOf": [INTEGER, {}]}, "abc", "abc", ()),
        ({"anyOf": [{"anyOf": [INTEGER, NULL]}, BOOLEAN]}, "true", True, ()),
    ],
)
def test_text_for_a_union(schema: Any, text: str, value: Value, repairs: tuple[str, ...]) -> None:
    expect(coerce_text(text, shape_of(schema), "argument a"), value, *repairs)


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"type": ["integer", "null"]}, "", "an integer such as 10 or null"),
        ({"anyOf": [INTEGER, BOOLEAN]}, "abc", "an integer such as 10 or true or false"),
        ({"anyOf": [POINT, NULL]}, "abc", "a JSON object"),
    ],
)
def test_text_that_fits_no_branch(schema: Any, text: str, expected: str) -> None:
    expect_defect(coerce_text(text, shape_of(schema), "argument a"), "the text", expected)


@pytest.mark.parametrize("text", ["5", "true", "null", "[1]", '{"a": 1}', "", " x "])
def test_text_for_what_was_not_declared_stays_text(text: str) -> None:
    tool = make_tool(b=STRING)
    assert tool.type_of("a") is ANY
    expect(coerce_text(text, tool.type_of("a"), "argument a"), text)


@in_one_test(
    ("text", "value"),
    [
        ("5", Number("5")),
        ("0.50", Number("0.50")),
        ("true", True),
        ("null", None),
        (' [1, "a"] ', [Number("1"), "a"]),
        ('{"a": null}', {"a": None}),
        *(
            (text, text)
            for text in ("True", "None", "007", "(1, 2)", "[1,]", '"a"', "-x", "", " a ", "-Infinity", "[NaN]")
        ),
    ],
)
@in_one_test("schema", [{}, True, {"description": "anything"}])
def test_text_for_a_declared_parameter_without_a_type(schema: Any, text: str, value: Value) -> None:
    shape = shape_of(schema)
    assert shape is UNTYPED
    expect(coerce_text(text, shape, "argument a"), value)


def test_long_text_is_shortened_in_a_defect() -> None:
    (defect,) = coerce_text("x" * 10_000, shape_of(INTEGER), "argument a").defects
    assert len(defect.found) < 100
    assert defect.found.endswith('..."')


# -- what streams ------------------------------------------------------------------------------------------------------

STREAMING: list[tuple[Any, bool, bool]] = [
    (STRING, True, False),
    ({"type": "string", "minLength": 3, "format": "uri"}, True, False),
    ({"type": "string", "enum": ["a"]}, False, False),
    ({"const": "a"}, False, False),
    ({"type": ["string", "null"]}, False, True),
    ({"anyOf": [STRING, NULL]}, False, True),
    ({"type": "string", "nullable": True}, False, True),
    ({"anyOf": [{"enum": ["a"]}, NULL]}, False, False),
    ({"anyOf": [{"enum": ["a"]}, STRING]}, True, False),
    ({"anyOf": [STRING, INTEGER]}, False, False),
    (INTEGER, False, False),
    ({}, False, False),
    (False, False, False),
]


@in_one_test(("schema", "streams", "nullable"), STREAMING)
def test_which_text_may_stream(schema: Any, streams: bool, nullable: bool) -> None:
    shape = shape_of(schema)
    assert (shape.streams, shape.nullable_text) == (streams, nullable)
    assert not ANY.streams


@given(st.text() | st.sampled_from(["null", "None", '"a"', "[]", "5"]))
def test_streaming_is_safe(text: str) -> None:
    for schema, streams, nullable in STREAMING:
        if streams or (nullable and text not in ("null", "None")):
            expect(coerce_text(text, shape_of(schema), "argument a"), text)


# -- values that have JSON types ---------------------------------------------------------------------------------------


@in_one_test(
    ("schema", "value", "wanted", "repairs"),
    [
        (STRING, "5", "5", ()),
        (STRING, Number("0.50"), "0.50", ("coerced_type",)),
        (STRING, True, "true", ("coerced_type",)),
        ({"type": ["string", "null"]}, Number("5"), "5", ("coerced_type",)),
        ({"type": ["string", "null"]}, "null", "null", ()),
        (INTEGER, Number("5"), Number("5"), ()),
        (INTEGER, Number("5.0"), Number("5"), ("coerced_type",)),
        (INTEGER, Number("1e2"), Number("100"), ("coerced_type",)),
        (INTEGER, Number("1_000"), Number("1000"), ("coerced_type",)),
        (INTEGER, "5", Number("5"), ("coerced_type",)),
        (INTEGER, "5.0", Number("5"), ("coerced_type",)),
        (NUMBER, Number("5"), Number("5"), ()),
        (NUMBER, Number("0.50"), Number("0.50"), ()),
        (NUMBER, "0.50", Number("0.50"), ("coerced_type",)),
        (BOOLEAN, True, True, ()),
        (BOOLEAN, "false", False, ("coerced_type",)),
        (NULL, None, None, ()),
        ({"enum": [1, 2]}, "2", Number("2"), ("coerced_type",)),
        ({"enum": ["1"]}, Number("1"), "1", ("coerced_type",)),
        ({"enum": [1]}, Number("1.0"), Number("1"), ("coerced_type",)),
        (STRINGS, ["a"], ["a"], ()),
        (STRINGS, "a", ["a"], ("wrapped_in_list",)),
        (STRINGS, '["a"]', ["a"], ("double_encoded",)),
        (STRINGS, "['a']", ["a"], ("double_encoded", "single_quotes")),
        (FILES, {"path": "a"}, [{"path": "a"}], ("wrapped_in_list",)),
        (FILES, '{"path": "a"}', [{"path": "a"}], ("double_encoded", "wrapped_in_list")),
        (FILES, [{"line": "3"}], [{"line": Number("3")}], ("coerced_type",)),
        (POINT, '{"x": "1"}', {"x": Number("1")}, ("double_encoded", "coerced_type")),
        (POINT, {"z": "5", "y": Number("1"), "x": Number("2")}, {"z": "5", "y": Number("1"), "x": Number("2")}, ()),
        ({**POINT, "additionalProperties": False}, {"x": Number("1"), "z": "1"}, {"x": Number("1"), "z": "1"}, ()),
        ({"additionalProperties": INTEGER}, {"k": "5"}, {"k": Number("5")}, ("coerced_type",)),
        ({"type": "array", "items": False}, [], [], ()),
        ({"type": "array", "items": [STRING, INTEGER]}, ["a", Number("1")], ["a", Number("1")], ()),
        ({}, {"a": [None]}, {"a": [None]}, ()),
        ({"anyOf": [STRING, INTEGER]}, Number("5"), Number("5"), ()),
        ({"anyOf": [BOOLEAN, INTEGER]}, "5", Number("5"), ("coerced_type",)),
        ({"anyOf": [INTEGER, NUMBER]}, Number("5.0"), Number("5.0"), ()),
        ({"anyOf": [INTEGERS, STRINGS]}, ["1"], ["1"], ()),
        ({"anyOf": [INTEGERS, POINT]}, ["1"], [Number("1")], ("coerced_type",)),
        ({"type": "object", "anyOf": [{"required": ["p"]}, {"required": ["q"]}]}, {"q": "1"}, {"q": "1"}, ()),
        (TREE, {"value": "1", "children": []}, {"value": Number("1"), "children": []}, ("coerced_type",)),
    ],
)
def test_values_conform(schema: Any, value: Value, wanted: Value, repairs: tuple[str, ...]) -> None:
    expect(coerce_value(value, shape_of(schema), "argument a"), wanted, *repairs)


@in_one_test(
    ("schema", "value", "where", "found", "expected"),
    [
        (INTEGER, None, "argument a", "null", "an integer"),
        (STRING, None, "argument a", "null", "text"),
        (STRING, ["a"], "argument a", "a list of 1 value", "text"),
        (STRING, {}, "argument a", "an empty object", "text"),
        (INTEGER, "ten", "argument a", 'the text "ten"', "an integer such as 10"),
        (INTEGER, " 5", "argument a", 'the text " 5"', "an integer"),
        (INTEGER, Number("5.5"), "argument a", "the number 5.5", "an integer"),
        (INTEGER, True, "argument a", "true", "an integer"),
        (BOOLEAN, "yes", "argument a", 'the text "yes"', "true or false"),
        (BOOLEAN, Number("1"), "argument a", "the number 1", "true or false"),
        (POINT, "abc", "argument a", 'the text "abc"', "a JSON object"),
        (POINT, [], "argument a", "an empty list", "a JSON object"),
        (POINT, {"x": "a"}, "argument a.x", 'the text "a"', "an integer"),
        (STRINGS, "[broken", "argument a", 'the text "[broken"', "a JSON list"),
        (INTEGERS, [Number("1"), "b"], "argument a[1]", 'the text "b"', "an integer"),
        (FILES, [{"line": {"a": "b"}}], "argument a[0].line", "an object with the keys a", "an integer"),
        ({"enum": ["a"]}, "b", "argument a", 'the text "b"', 'one of "a"'),
        ({"anyOf": [INTEGER, POINT]}, {"x": "a"}, "argument a.x", 'the text "a"', "an integer"),
        ({"anyOf": [INTEGER, POINT]}, "b", "argument a", 'the text "b"', "an integer such as 10 or a JSON object"),
        ({"type": "array", "items": False}, ["a"], "argument a[0]", 'the text "a"', "no value at all"),
    ],
)
def test_values_that_do_not_conform(schema: Any, value: Value, where: str, found: str, expected: str) -> None:
    typed = coerce_value(value, shape_of(schema), "argument a")
    expect_defect(typed, found, expected, where)
    if not isinstance(value, (list, dict)):
        assert typed.value is value


def test_what_is_missing_inside_is_named_by_its_path() -> None:
    schema = {"type": "array", "items": POINT}
    (defect,) = coerce_value([{"x": Number("1")}, {}], shape_of(schema), "argument a").defects
    assert (defect.reason, defect.where) == (Reason.MISSING_ARGUMENT, "argument a[1].x")
    assert (defect.found, defect.expected) == ("nothing", "an integer such as 10")


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers().map(lambda n: Number(str(n))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(JSON_VALUES)
def test_any_value_conforms_where_anything_goes(value: Value) -> None:
    everything = {"type": ["object", "array", "string", "number", "boolean", "null"]}
    for shape in (ANY, UNTYPED, shape_of(everything), shape_of({"anyOf": [{"type": t} for t in everything["type"]]})):
        expect(coerce_value(value, shape, "argument a"), value)


SCHEMAS: list[Any] = [
    *(STRING, INTEGER, NUMBER, BOOLEAN, NULL, STRINGS, INTEGERS, POINT, FILES, TREE, {"enum": ["a", 1, None]}),
    *({"anyOf": [INTEGER, STRINGS]}, {"anyOf": [POINT, FILES, BOOLEAN]}, {"type": ["integer", "string"]}, {}, False),
]


@given(JSON_VALUES, st.text() | JSON_VALUES.map(dump), st.sampled_from(SCHEMAS))
def test_what_was_typed_stays_as_it_is(value: Value, text: str, schema: Any) -> None:
    shape = shape_of(schema)
    for typed in (
        coerce_text(text, shape, "a"),
        coerce_value(value, shape, "a"),
        coerce_text_leaves(value, shape, "a"),
    ):
        if not typed.defects:
            expect(coerce_value(typed.value, shape, "a"), typed.value)


# -- nested elements ---------------------------------------------------------------------------------------------------


@in_one_test(
    ("schema", "value", "wanted"),
    [
        (POINT, {"x": " 1 ", "y": "02"}, {"x": Number("1"), "y": Number("2")}),
        (POINT, {"x": "1", "other": "2"}, {"x": Number("1"), "other": "2"}),
        (STRINGS, {"item": ["a", "b"]}, ["a", "b"]),
        (STRINGS, {"item": "a"}, ["a"]),
        (STRINGS, {"tag": ["a", "b"]}, ["a", "b"]),
        (STRINGS, {"tag": "a"}, ["a"]),
        (STRINGS, "a", ["a"]),
        (STRINGS, "", []),
        (STRINGS, " \n", []),
        (STRINGS, '["a"]', ["a"]),
        (STRINGS, ["a", ""], ["a", ""]),
        (INTEGERS, {"n": ["1", "2"]}, [Number("1"), Number("2")]),
        (INTEGERS, "5", [Number("5")]),
        (
            FILES,
            {"file": [{"path": "a"}, {"path": "b", "line": "3"}]},
            [{"path": "a"}, {"path": "b", "line": Number("3")}],
        ),
        (FILES, {"file": {"path": "a", "line": "3"}}, [{"path": "a", "line": Number("3")}]),
        (FILES, {"path": "a", "line": "3"}, [{"path": "a", "line": Number("3")}]),
        (FILES, {"path": "a"}, [{"path": "a"}]),
        ({"type": "array"}, {"item": ["a", "5"]}, ["a", "5"]),
        ({"type": "array"}, {"a": "1"}, ["1"]),
        ({"type": "array"}, {"a": ["1", "2"]}, ["1", "2"]),
        ({"type": "array"}, {"a": "1", "b": "2"}, [{"a": "1", "b": "2"}]),
        ({"type": "array"}, {"a": {"b": "1"}}, [{"a": {"b": "1"}}]),
        ({"type": "array", "items": {"type": "object"}}, {"a": "1"}, [{"a": Number("1")}]),
        ({"type": "object"}, "", {}),
        ({"type": ["array", "null"]}, "", []),
        ({"anyOf": [STRINGS, NULL]}, {"item": "a"}, ["a"]),
        ({"anyOf": [STRINGS, NULL]}, "null", None),
        (BOOLEAN, "yes", True),
        ({"enum": ["a"]}, " a ", "a"),
        ({"type": "object", "properties": {"tags": STRINGS}}, {"tags": {"tag": ["x", "y"]}}, {"tags": ["x", "y"]}),
        ({"type": "array", "items": {"properties": {"tags": STRINGS}}}, {"tags": ["x", "y"]}, [{"tags": ["x", "y"]}]),
        (
            {"type": "array", "items": INTEGERS},
            {"row": [{"n": ["1", "2"]}, "3"]},
            [[Number("1"), Number("2")], [Number("3")]],
        ),
        (
            TREE,
            {"value": "1", "children": {"child": {"value": "2"}}},
            {"value": Number("1"), "children": [{"value": Number("2")}]},
        ),
        ({}, {"a": "5"}, {"a": "5"}),
    ],
)
def test_text_leaves_are_typed_without_repairs(schema: Any, value: Value, wanted: Value) -> None:
    expect(coerce_text_leaves(value, shape_of(schema), "argument a"), wanted)


def test_text_leaves_have_defects_too() -> None:
    expect_defect(coerce_text_leaves({"x": "a"}, shape_of(POINT), "argument a"), '"a"', "an integer", "argument a.x")
    expect_defect(coerce_text_leaves(["a"], shape_of(STRING), "argument a"), "a list of 1 value", "text")
    (defect,) = coerce_text_leaves("", shape_of(POINT), "argument a").defects
    assert (defect.reason, defect.where) == (Reason.MISSING_ARGUMENT, "argument a.x")


# -- compiling ---------------------------------------------------------------------------------------------------------


@in_one_test(
    ("schema", "order"),
    [
        ({"type": ["null", "string"]}, ("null", "string")),
        (
            {"enum": ["a", 1, 0.5, None, True, [], {}]},
            ("string", "integer", "number", "null", "boolean", "array", "object"),
        ),
        ({"const": 1}, ("integer",)),
        ({"properties": {}}, ("object",)),
        ({"items": STRING}, ("array",)),
        ({"type": "integer", "nullable": True}, ("integer", "null")),
        ({"anyOf": [INTEGER, {"oneOf": [STRING, NULL]}]}, ("integer", "string", "null")),
        ({"anyOf": [INTEGER, {}]}, ()),
        ({"anyOf": [INTEGER, False]}, ("integer",)),
        ({"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"]}]}, ("integer",)),
        ({"allOf": [NUMBER, INTEGER]}, ("integer",)),
        ({"allOf": [{"anyOf": [STRING, NULL]}]}, ("string", "null")),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": INTEGER}}, ("integer",)),
        ({"$ref": "#/$defs/a%20b", "$defs": {"a b": INTEGER}}, ("integer",)),
        ({"$ref": "#/$defs/a", "nullable": True, "description": "d", "$defs": {"a": INTEGER}}, ("integer", "null")),
        ({"$ref": "#/$defs/a/anyOf/1", "$defs": {"a": {"anyOf": [STRING, INTEGER]}}}, ("integer",)),
        ({"$ref": "#"}, ("object",)),
        ({"type": "string", "$comment": "x", "items": True}, ("string",)),
    ],
)
def test_kinds_keep_their_order(schema: Any, order: tuple[str, ...]) -> None:
    shape = shape_of(schema)
    assert shape.order == order
    assert shape.kinds == frozenset(order)


def test_all_of_merges() -> None:
    shape = shape_of(
        {
            "allOf": [POINT, {"properties": {"x": {"description": "across"}, "z": STRING}, "required": ["z"]}],
            "properties": {"w": BOOLEAN},
        }
    )
    assert list(shape.properties) == ["x", "y", "z", "w"]
    assert shape.required == {"x", "z"}
    assert shape.property_type("x").kinds == {"integer"}
    assert shape_of({"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}]}).enum == (Number("2"), Number("3"))


def test_alternatives_at_the_top_declare_together() -> None:
    tool = tool_of(
        {
            "anyOf": [
                {"type": "object", "properties": {"kind": {"const": "a"}, "n": INTEGER}, "required": ["kind", "n"]},
                {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]},
            ]
        }
    )
    assert tool.declares("kind") and tool.declares("n")
    assert tool.required == {"kind"}
    expect(coerce_text("b", tool.type_of("kind"), "argument kind"), "b")
    expect_defect(coerce_text("c", tool.type_of("kind"), "argument a"), "", 'one of "a", "b"')


def test_additional_properties_shape_what_is_not_declared() -> None:
    tool = tool_of({"type": "object", "properties": {"a": STRING}, "additionalProperties": INTEGER})
    assert not tool.declares("b")
    expect(coerce_text("5", tool.type_of("b"), "argument b"), Number("5"))
    assert tool_of({"type": "object", "additionalProperties": True}).type_of("b") is ANY


def test_recursive_types() -> None:
    shape = shape_of(TREE)
    child = shape.property_type("children").items
    assert child.property_type("children").items is child
    deep: Value = {"value": Number("0")}
    for _ in range(20):
        deep = {"value": Number("1"), "children": [deep]}
    expect(coerce_value(deep, shape, "argument a"), deep)
    repr(shape)


def test_recursive_types_merged_with_themselves() -> None:
    one = {"properties": {"next": {"$ref": "#/$defs/one"}}}
    other = {"properties": {"next": {"$ref": "#/$defs/other"}}, "allOf": [{"$ref": "#/$defs/one"}]}
    shape = shape_of({"$ref": "#/$defs/other", "$defs": {"one": one, "other": other}})
    assert shape.property_type("next").kinds == {"object"}


TYPE_NAMES: dict[str, list[Any]] = {
    "string": ["str", "text", "String", "STRING", " string "],
    "integer": ["int", "long", "Int64", ["INTEGER"]],
    "number": ["float", "double", "Float", "float, optional"],
    "boolean": ["bool", "Boolean", ("boolean",)],
    "array": ["list", "tuple", "List[int]", "Tuple[int, str]", "ArrayList"],
    "object": ["dict", "Dict[str, Any]", "map", "HashMap"],
    "null": ["None", [None]],
}


@in_one_test(("kind", "name"), [(kind, name) for kind, names in TYPE_NAMES.items() for name in names])
def test_types_of_programming_languages_mean_their_json_types(kind: str, name: Any) -> None:
    assert shape_of({"type": name}).kinds == {kind}


def test_a_type_of_several_names_takes_each() -> None:
    assert shape_of({"type": "str|null"}).nullable_text
    assert shape_of({"type": ["float", None]}).kinds == {"number", "null"}


SAY_NOTHING: list[Any] = [
    {"type": "any"},
    {"type": "file"},
    {"type": ""},
    {"type": None},
    {"type": 5},
    {"type": ["string", 5]},
    {"type": [["string"]]},
    {"type": "function (a) => b"},
    {"enum": "abc"},
    {"enum": None},
    {"enum": [object()]},
    {"items": 5, "additionalProperties": "no"},
    {"required": True},
    {"required": ["b", 5]},
    {"anyOf": STRING, "oneOf": STRING, "allOf": STRING},
    {"allOf": [{"type": "x"}]},
    {"anyOf": [STRING, 5]},
    {"$ref": 5},
    {"$ref": "#/$defs/none"},
    {"$ref": "#/properties/a/anyOf/7", "anyOf": []},
    {"$ref": "other.json#/x"},
    {"$ref": "#/properties/a"},
    {"properties": []},
    {"properties": None},
    None,
    "string",
]


@in_one_test("schema", SAY_NOTHING)
def test_what_is_not_json_schema_allows_any_value(schema: Any) -> None:
    tool = make_tool(a=schema, b=INTEGER)
    assert not tool.type_of("a").kinds and not tool.required
    assert tool.type_of("b").kinds == {"integer"}


def test_the_rest_of_an_odd_schema_counts() -> None:
    odd = {
        "type": "dict",
        "properties": {"a": {"type": "enum", "enum": ["x", "y"]}, "b": 5, "c": True},
        "required": ["a"],
    }
    shape = shape_of(odd)
    assert (set(shape.kinds), set(shape.required), list(shape.properties)) == ({"object"}, {"a"}, ["a", "b", "c"])
    assert shape.property_type("a").enum == ("x", "y")
    assert shape_of({"type": "array", "items": 5}).kinds == {"array"}


KEYWORDS = (
    "$ref",
    "type",
    "properties",
    "additionalProperties",
    "items",
    "required",
    "enum",
    "allOf",
    "anyOf",
    "oneOf",
    "a",
)
WORDS = st.sampled_from(("string", "float", "null", "#", "#/properties/a", "#/properties/a/anyOf/0", "a"))
ODD_SCHEMAS = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
    max_leaves=20,
)


@given(ODD_SCHEMAS)
def test_no_schema_is_refused(schema: Any) -> None:
    shape = make_tool(a=schema).type_of("a")
    coerce_value({"a": [True, "x"]}, shape, "argument a")


@in_one_test(
    ("tools", "tool", "path"),
    [
        ([5], "#0", "tool"),
        ([{"name": "a"}, None], "#1", "tool"),
        ([{"type": "function", "function": "f"}], "#0", "function"),
        ([{"name": "a"}, {"description": "no name"}], "#1", "name"),
        ([{"name": ""}], "#0", "name"),
        ([{"name": " "}], "#0", "name"),
        ([{"name": 5}], "#0", "name"),
        ([{"name": "a", "parameters": []}], "a", "parameters"),
        ([{"name": "a", "parameters": "x"}], "a", "parameters"),
        ([{"name": "a", "input_schema": 5}], "a", "input_schema"),
        ([{"name": "a"}, {"name": "b"}, {"name": "a"}], "a", "name"),
        ({"name": "a"}, "#0", "tools"),
        ("abc", "#0", "tools"),
    ],
)
def test_unusable_tools_are_named(tools: Any, tool: str, path: str) -> None:
    with pytest.raises(ToolSchemaError) as caught:
        CompiledTools(tools)
    assert (caught.value.tool, caught.value.path) == (tool, path)


# -- hostile input -----------------------------------------------------------------------------------------------------


def chain_of(length: int, link: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {f"d{i}": {link: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{length}": STRING}}


def test_shared_references_are_followed_once() -> None:
    assert shape_of(chain_of(40, "allOf")).streams


@pytest.mark.parametrize("schema", [chain_of(40, "anyOf"), chain_of(5000, "allOf")])
def test_reference_bombs_allow_any_value(schema: Any) -> None:
    assert not shape_of(schema).kinds


def test_deep_schemas_need_no_stack() -> None:
    schema: dict[str, Any] = STRING
    for _ in range(5000):
        schema = {"type": "array", "items": schema}
    assert shape_of(schema).kinds == {"array"}


def test_deep_values_are_a_defect_and_not_a_crash() -> None:
    node: dict[str, Any] = {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/n"}}, STRING, INTEGER]}
    node["anyOf"].append({"type": "object", "additionalProperties": {"$ref": "#/$defs/n"}})
    shape = shape_of({"$ref": "#/$defs/n", "$defs": {"n": node}})
    value: Value = "x"
    for i in range(5000):
        value = [value] if i % 2 else {"k": value}
    for typed in (coerce_value(value, shape, "a"), coerce_text_leaves(value, shape, "a")):
        (defect,) = typed.defects
        assert "more than 100 levels" in defect.found
    shallow: Value = "[" * 99 + "1" + "]" * 99
    for i in range(98):
        shallow = [shallow] if i % 2 else {"k": shallow}
    limit = sys.getrecursionlimit()
    assert limit <= 1000
    coerce_text_leaves(shallow, shape, "a")


def test_nested_unions_are_not_tried_again_and_again() -> None:
    either = [
        {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "tag": {"const": tag}}, "required": ["tag"]}
        for tag in "abc"
    ]
    shape = shape_of({"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": either}}})
    value: Value = {"tag": "none of them"}
    for _ in range(60):
        value = {"tag": "c", "next": value}
    started = time.process_time()
    assert coerce_value(value, shape, "a").defects
    assert coerce_text_leaves(value, shape, "a").defects
    assert time.process_time() - started < 2


@pytest.mark.parametrize("value", ["abc", '"abc"', {"k": {"k": {"k": "v"}}}, ["abc"]])
def test_lists_of_themselves_end(value: Any) -> None:
    lists = {"type": "array", "items": {"$ref": "#/$defs/l"}}
    for definition in (lists, {"anyOf": [lists, {**lists, "minItems": 1}, POINT]}):
        shape = shape_of({"$ref": "#/$defs/l", "$defs": {"l": definition}})
        assert coerce_value(value, shape, "a").defects
        assert coerce_text_leaves(value, shape, "a").defects
        assert coerce_text(dump(value), shape, "a").defects


# -- tools -------------------------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"a": INTEGER}, "required": ["a"]}


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}},
        {"name": "f", "description": "d", "parameters": SCHEMA},
        {"name": "f", "description": "d", "input_schema": SCHEMA},
        {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA},
    ],
)
def test_every_way_to_declare_a_tool(entry: Any) -> None:
    tool = CompiledTools([entry]).find("f")
    assert tool is not None
    assert (tool.name, tool.description, tool.required) == ("f", "d", frozenset({"a"}))
    assert tool.declares("a") and tool.type_of("a").kinds == {"integer"}


@pytest.mark.parametrize("extra", [{}, {"parameters": None}, {"parameters": {}}, {"input_schema": None}])
def test_a_tool_without_parameters_takes_anything(extra: Any) -> None:
    tool = CompiledTools([{"name": "f", **extra}]).find("f")
    assert tool is not None
    assert tool.parameters.kinds == {"object"}
    assert (tool.description, tool.required, tool.missing(())) == ("", frozenset(), ())
    assert tool.type_of("x") is ANY
    expect(coerce_value({"x": "5"}, tool.parameters, "arguments"), {"x": "5"})


def test_names_and_supported_tools() -> None:
    box = CompiledTools([{"name": "f", "parameters": SCHEMA}], ["g", "f"])
    assert box.names == ("f", "g")
    offered, supported = box.find("f"), box.find("g")
    assert offered is not None and offered.declares("a")
    assert supported is not None and supported.parameters is ANY and supported.type_of("x") is ANY
    assert (
        CompiledTools(None).names == ()
        and CompiledTools([]).find("f") is None
        and CompiledTools(None).suggest_name("f") is None
    )


def test_missing_arguments_are_named_in_declared_order() -> None:
    tool = tool_of({"properties": {"b": STRING, "a": INTEGER, "c": {}}, "required": ["z", "a", "b"]})
    defects = tool.missing({"c": 1})
    assert [defect.where for defect in defects] == ["argument b", "argument a", "argument z"]
    assert [defect.expected for defect in defects] == ["text", "an integer such as 10", "a value"]
    assert {defect.reason for defect in defects} == {Reason.MISSING_ARGUMENT}
    assert tool.missing(["z", "a", "b"]) == ()


@in_one_test(
    ("parameters", "sole"),
    [
        ({"properties": {"a": STRING}}, "a"),
        ({"properties": {"a": INTEGER}}, "a"),
        ({"properties": {"a": STRING, "b": STRING}}, None),
        ({"properties": {"a": STRING, "b": STRING}, "required": ["b"]}, "b"),
        ({"properties": {"a": STRING, "b": INTEGER}, "required": ["a", "b"]}, "a"),
        ({"properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]}, None),
        ({"properties": {"a": {"anyOf": [STRING, NULL]}, "b": STRING}, "required": ["a"]}, "a"),
        ({"properties": {"a": INTEGER, "b": STRING}, "required": ["a"]}, None),
        ({}, None),
    ],
)
def test_sole_text_parameter(parameters: Any, sole: str | None) -> None:
    assert tool_of(parameters).sole_text_parameter == sole


NAMES = ["get_name", "read_file", "api.search", "ns:7", "Write"]


@in_one_test(
    ("written", "name"),
    [
        *((name, name) for name in NAMES),
        *((form, "get_name") for form in (" get_name\n", '"get_name"', "`get_name`", "'get_name'", '"`get_name`"')),
        *(
            (form, "get_name")
            for form in ("get\\_name", "get_name:3", "get_name()", "get_name.call", "get_name.call()")
        ),
        *((f"{prefix}get_name", "get_name") for prefix in ("functions.", "function.", "tools.", "tool.")),
        *((f"{prefix}get_name", "get_name") for prefix in ("default_api.", "api.", "functions:")),
        ("`functions.get\\_name:0`", "get_name"),
        ("functions.`get_name`:12", "get_name"),
        ("functions.api.search:1", "api.search"),
        ("ns:7:2", "ns:7"),
    ],
)
def test_names_are_found_as_models_write_them(written: str, name: str) -> None:
    tool = CompiledTools([{"name": name} for name in NAMES]).find(written)
    assert tool is not None and tool.name == name


@in_one_test(
    "written",
    [
        "",
        "Get_Name",
        "getname",
        "get-name",
        "get_names",
        "write",
        "other.get_name",
        "search",
        "get_name:",
        "x" * 100_000,
    ],
)
def test_similar_names_are_not_found(written: str) -> None:
    assert CompiledTools([{"name": name} for name in NAMES]).find(written) is None


@in_one_test(
    ("written", "name"),
    [
        ("Get_Name", "get_name"),
        ("getName", "get_name"),
        ("functions.get_nmae", "get_name"),
        ("readfile", "read_file"),
        ("WRITE", "Write"),
        ("zzz", None),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_nearest_suggests(written: str, name: str | None) -> None:
    assert CompiledTools([{"name": name} for name in NAMES]).suggest_name(written) == name


def test_forty_tools_are_compiled_quickly() -> None:
    parameters = {
        "type": "object",
        "properties": {
            "path": STRING,
            "limit": {"anyOf": [INTEGER, NULL]},
            "files": FILES,
            "mode": {"enum": ["r", "w"]},
        },
        "required": ["path"],
    }
    tools = [{"type": "function", "function": {"name": f"t{i}", "parameters": parameters}} for i in range(40)]
    timings = []
    for _ in range(5):
        started = time.process_time()
        CompiledTools(tools)
        timings.append(time.process_time() - started)
    assert min(timings) < 0.05, "ten times what it takes on a quiet machine"


def test_the_same_tools_are_compiled_once() -> None:
    """A library user declares the same tools for every answer. Changing them afterwards must not change the old ones."""
    enum = ["x"]
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"enum": enum}}, "required": ["a"]}}]
    first = compile_declared(tools, ())
    assert compile_declared(json.loads(json.dumps(tools)), ()) is first
    assert compile_declared(tools, ("g",)) is not first
    enum.append("y")
    second = compile_declared(tools, ())
    assert second is not first
    found = [tool.type_of("a").enum for box in (first, second) if (tool := box.find("f")) is not None]
    assert found == [("x",), ("x", "y")]


def test_tools_that_are_not_json_are_compiled_too() -> None:
    schema = MappingProxyType({"type": "object", "properties": {}})
    assert compile_declared([{"name": "f", "parameters": schema}], ()).names == ("f",)
