"""Redaction of JSON documents and streams: secrets go, and JSON stays JSON."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.rows import in_one_test

from toolglot.core.redaction import MASK, redact, redact_document, redact_stream

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
