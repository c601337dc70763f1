"""Redaction of JSON documents and streams: secrets go, and JSON stays JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.rows import in_one_test

from toolglot.core.redaction import HIDING_ESCAPE, MASK, redact, redact_document, redact_stream

SECRET = "kn0wn-s3cret"
SHAPED = "sk-0123456789abcdefgh"
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [SECRET, SHAPED, f"x {SECRET}", f"password: {SHAPED}", '{"password": {"a": 1}}', "api_key=", "Bearer "]
    ),
)
NAMES = st.one_of(
    st.text(max_size=6), st.sampled_from(["password", "api_key", "client_secret", "x-api-key", "content"])
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=12,
)


def shape(value: Any) -> Any:
    """Objects and lists without their values."""
    if isinstance(value, dict):
        return {key.replace(SECRET, MASK): shape(inner) for key, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else None


@given(VALUES)
def test_a_document_stays_one_and_has_no_secret(value: Any) -> None:
    redacted = redact_document(json.dumps(value), (SECRET,))
    assert SECRET not in redacted and SHAPED not in redacted
    if isinstance(value, dict | list):
        assert shape(json.loads(redacted)) == shape(value)
    assert redact_document(redacted, (SECRET,)) == redacted


@given(st.lists(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3), max_size=4))
def test_the_events_of_a_stream_stay_events(events: list[Any]) -> None:
    stream = "".join(f"event: x\ndata: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    redacted = redact_stream(stream, (SECRET,))
    assert SECRET not in redacted and SHAPED not in redacted
    lines = [line[6:] for line in redacted.split("\n") if line.startswith("data: {")]
    assert [shape(json.loads(line)) for line in lines] == [shape(event) for event in events]
    assert redacted.endswith("data: [DONE]\n\n")


@in_one_test(
    ("value", "expected"),
    [
        ({"password": "x"}, {"password": MASK}),
        ({"password": 12}, {"password": MASK}),
        ({"password": True, "secret": None}, {"password": True, "secret": None}),
        ({"password": {"type": "string"}}, {"password": {"type": "string"}}),
        ({"password": ["a", "b"]}, {"password": [MASK, MASK]}),
        ({"client_secret": "x", "secretary": "y"}, {"client_secret": MASK, "secretary": "y"}),
        ({"arguments": '{"password": "x", "n": 1}'}, {"arguments": '{"password": "***", "n": 1}'}),
        ({"arguments": '{"password": {"n": 1}}'}, {"arguments": '{"password": {"n": 1}}'}),
        ({"text": "password: swordfish"}, {"text": f"password: {MASK}"}),
        ({"text": "Authorization: Bearer abcdefghijk"}, {"text": f"Authorization: Bearer {MASK}"}),
        ({"n": 12345678901234567890, "password": "x"}, {"n": 12345678901234567890, "password": MASK}),
    ],
)
def test_members_with_the_name_of_a_secret(value: Any, expected: Any) -> None:
    assert json.loads(redact_document(json.dumps(value))) == expected


@st.composite
def hidden(draw: st.DrawFn) -> str:
    """A secret as JSON may write it: some characters as escapes, once or in JSON within JSON, in either case."""
    out = ""
    for char in draw(st.sampled_from([SECRET, SHAPED, f"/{SHAPED}", "api/s3cret"])):
        escape = "\\" * draw(st.sampled_from([1, 1, 2, 4])) + f"u{ord(char):04{draw(st.sampled_from('xX'))}}"
        slash = draw(st.sampled_from(["\\/", "/"])) if char == "/" else char
        out += draw(st.sampled_from([slash, slash, escape]))
    return out


@given(hidden(), st.sampled_from(['{"content":"x %s"}', '{"a":["%s",1]}', '{"%s":1}', '{"a":"{\\"key\\":\\"%s\\"}"}']))
def test_escapes_hide_no_secret(written: str, document: str) -> None:
    redacted = redact_document(document % written, (SECRET, "api/s3cret"))
    assert MASK in redacted
    while HIDING_ESCAPE.search(redacted):
        redacted = HIDING_ESCAPE.sub(lambda found: chr(int(found["code"], 16)) if found["code"] else "/", redacted)
    assert not any(secret in redacted for secret in (SECRET, SHAPED, "api/s3cret"))
    json.loads(redacted)


@given(hidden(), st.integers(1, 9))
def test_escapes_over_several_events_hide_no_secret(written: str, size: int) -> None:
    """The arguments of a call are JSON in JSON, and come in pieces that may cut an escape."""
    arguments = f'{{"key":"{written}"}}'
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    stream = "".join(f"data: {json.dumps({'arguments': piece})}\n\n" for piece in pieces)
    redacted = redact_stream(stream, (SECRET, "api/s3cret"))
    joined = "".join(json.loads(line[6:])["arguments"] for line in redacted.split("\n") if line)
    assert MASK in joined and redact(joined, (SECRET, "api/s3cret")) == joined


@pytest.mark.parametrize(
    "text",
    [
        '{"\\u0061pi_key": "swordfish"}',
        '{"client_\\u0073ecret": "swordfish"}',
        '{"text": "passw\\u006Frd: swordfish"}',
        '{"arguments": "{\\"pass\\\\u0077ord\\": \\"swordfish\\"}"}',
        'not JSON: {"pass\\u0077ord": "swordfish"',
        "postgresql:\\/\\/user:swordfish@host\\/db",
        '{"url": "https:\\/\\/user:swordfish@host\\/"}',
    ],
)
def test_names_of_secrets_are_found_behind_escapes(text: str) -> None:
    assert "swordfish" not in redact_document(text) and MASK in redact_document(text)


def test_escapes_that_hide_nothing_stay_as_they_are() -> None:
    text = '{ "a" : "\\u0041\\/b \\u003cb\\u003E \\\\u0073k-" }'
    assert redact_document(text, (SECRET,)) == text == redact(text)


@pytest.mark.parametrize("secret", [SECRET, SHAPED])
def test_members_that_occur_twice(secret: str) -> None:
    """A reader takes the last one; the first one is in the body all the same."""
    document = f'{{"a":"x {secret}","a":"y"}}'
    assert secret not in redact_document(document, (SECRET,))
    assert secret not in redact_stream(f"data: {document}\n\ndata: {{}}\n\n", (SECRET,))


@pytest.mark.parametrize("value", ["null", "true", "1", "[]", "{}", '""'])
def test_names_of_members_are_no_place_for_secrets(value: str) -> None:
    document = f'{{"a":[{{"{SHAPED}":{value}}}]}}'
    assert SHAPED not in redact_document(document) and SHAPED not in redact_stream(f"data: {document}\n\n")


def test_events_that_are_not_json_each() -> None:
    """Two lines that are one object only if they are joined."""
    stream = f'data: {{"a":"{SECRET}}}\n\ndata: {{","b":1}}\n\ndata: {{"password":"x1"}},{{}}\n\n'
    redacted = redact_stream(stream, (SECRET,))
    assert SECRET not in redacted and "x1" not in redacted


def test_a_document_without_secrets_keeps_its_bytes() -> None:
    text = '{ "a" : 1.0,\n "api": [ "\\u00e4" ] }'
    assert redact_document(text) == text


@in_one_test("length", [10, 2000, 8190, 20_000, 50_000])
@in_one_test("before", [0, 8000, 8185, 10_200])
def test_long_secrets_in_long_texts(length: int, before: int) -> None:
    """Longer than a window of the search, and across its edges."""
    key = "sk-" + "A" * length
    assert redact("." * before + f" {key} end") == "." * before + f" {MASK} end"
    assert redact("." * before + f' "password": "{key}" end') == "." * before + f' "password": "{MASK}" end'
