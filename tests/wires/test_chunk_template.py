"""Chunks that are read with a template give the same events as chunks that are parsed one by one."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot.core.events import CallArguments, Event, ReasoningDelta, TextDelta
from toolglot.wires.openai_chat import chunk_template, response_decoder
from toolglot.wires.openai_chat.response_decoder import StreamDecoder
from toolglot.wires.sse import split_framed

CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
WORDS = st.sampled_from(
    ["a", " the", '"', "\\", "\n", 'x":"y', "é", "\U0001f600", "\x01", "content", "m", "", "null", "\ud83d"]
)
TEXTS = st.lists(WORDS, max_size=3).map("".join)
DELTAS = st.one_of(
    TEXTS.map(lambda text: {"content": text}),
    TEXTS.map(lambda text: {"reasoning_content": text}),
    TEXTS.map(lambda text: {"reasoning": text, "content": None}),
    TEXTS.map(lambda text: {"content": text, "extra": {"content": text}}),
    TEXTS.map(lambda text: {"content": [{"type": "text", "text": text}]}),
    TEXTS.map(lambda text: {"refusal": text}),
    TEXTS.map(lambda text: {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}),
    TEXTS.map(lambda text: {"tool_calls": [{"index": 1, "function": {"arguments": text}}]}),
    TEXTS.map(lambda text: {"tool_calls": [{"function": {"arguments": text}}], "content": text}),
    TEXTS.map(lambda text: {"tool_calls": [{}], "content": text}),
    TEXTS.map(lambda text: {"tool_calls": [{"function": {"arguments": text}}]}),
    st.just({"tool_calls": [{"id": "new", "function": {"arguments": ""}}]}),
    st.just({"tool_calls": [CALL]}),
    st.just({"tool_calls": [{**CALL, "index": 1, "id": "d"}]}),
)
STYLES: list[dict[str, Any]] = [
    {"separators": (",", ":")},
    {"separators": (", ", ": ")},
    {"separators": (",", ":"), "ensure_ascii": False},
]


def chunk(delta: object, style: dict[str, Any] = STYLES[0], **more: object) -> bytes:
    received = {"id": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}], **more}
    return b"data: " + json.dumps(received, **style).encode("utf-8", "replace") + b"\n\n"


def read(pieces: list[bytes], casts: int) -> list[Event]:
    ids = count()
    reader = StreamDecoder(lambda: f"id{next(ids)}")
    reader.templates_left, reader.chunks_to_wait = casts, 0
    return [event for piece in pieces for event in reader.feed(piece)] + reader.close()


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    style = draw(st.sampled_from(STYLES))
    pieces: list[bytes] = []
    for delta in draw(st.lists(DELTAS, max_size=12)):
        more: dict[str, Any] = draw(
            st.sampled_from([{}, {}, {}, {"usage": {"prompt_tokens": len(pieces)}}, {"model": "m"}])
        )
        pieces += [chunk(delta, style, **more)] * draw(st.integers(1, 2))
    pieces += draw(st.sampled_from([[], [b"data: [DONE]\n\n"], [chunk({}, style, error="no")]]))
    where = st.integers(0, len(pieces))
    for _ in range(draw(st.integers(0, 3))):
        pieces.insert(draw(where), draw(st.sampled_from([b": alive\n\n", b"\n", b"data: {", b'data: "x"\n\n', b"\r"])))
    if draw(st.booleans()):  # reads that bring two events, or half of one
        whole = b"".join(pieces)
        cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=4)))
        pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    return pieces


@given(streams())
def test_a_template_changes_no_event(pieces: list[bytes]) -> None:
    assert read(pieces, casts=1000) == read(pieces, casts=0)


@pytest.mark.parametrize(
    ("first", "second", "received"),
    [
        ({"content": " a"}, {"content": 'x"\n'}, TextDelta('x"\n')),
        ({"reasoning_content": " a"}, {"reasoning_content": "b"}, ReasoningDelta("b")),
        (
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"a'}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '":1}'}}]},
            CallArguments(0, '":1}'),
        ),
    ],
)
def test_a_chunk_like_the_one_before_is_not_taken_apart(
    first: object, second: object, received: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = StreamDecoder(lambda: "id")
    reader.chunks_to_wait = 0
    reader.feed(chunk({"tool_calls": [CALL]}))
    reader.feed(chunk(first))
    monkeypatch.setattr(response_decoder, "decode", None)
    assert reader.feed(chunk(second)) == [received]
    assert reader.calls[0].pieces == ['{"a', '":1}'] or not isinstance(received, CallArguments)


def test_chunks_that_arrive_together_are_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = StreamDecoder(lambda: "id")
    reader.feed(b"".join(chunk({"content": "a"}) for _ in range(response_decoder.CHUNKS_BEFORE_TEMPLATE)))
    reader.feed(b"".join(chunk({"content": each}) for each in "ab"))
    monkeypatch.setattr(response_decoder, "decode", None)
    texts = ["c", '"', "\n\ndata: ", "é"]
    assert reader.feed(b"".join(chunk({"content": each}) for each in texts)) == [*map(TextDelta, texts)]


@pytest.mark.parametrize("strange", [{"content": ""}, {"content": 1}, {"content": "b", "refusal": "no"}, {}])
def test_a_strange_chunk_among_others_is_taken_apart(strange: object) -> None:
    usual = chunk({"content": "a"})
    pieces = [usual, usual, usual + chunk(strange) + usual, usual + usual]
    assert read(pieces, casts=1000) == read(pieces, casts=0)


PARTS = st.lists(
    st.sampled_from([b"", b"a", b'"', b"\n", b"\n\n", b"data: {", b"}", b'"}\n\ndata: {"']), max_size=3
).map(b"".join)


@given(st.lists(PARTS, min_size=1, max_size=5))
def test_events_are_split_only_where_all_have_the_frame(contents: list[bytes]) -> None:
    before, after = b'data: {"a": "', b'"}     \n\n'
    data = b"".join(before + content + after for content in contents)
    found = split_framed(data, before, after)
    assert found is not None and b"".join(before + content + after for content in found) == data
    assert split_framed(data + b"data: [DONE]\n\n", before, after) is None
    assert split_framed(data.replace(b"}     ", b"}    "), before, after) is None


def test_a_string_elsewhere_in_a_chunk_is_not_its_template_slot() -> None:
    """The name of the model is found first; with another name the chunk would give the same text."""
    piece = chunk({"content": "m"}, model="m")
    assert chunk_template.infer_template(piece, TextDelta("m"), TextDelta) is None
    assert chunk_template.infer_template(chunk({"content": "n"}, model="m"), TextDelta("n"), TextDelta) is not None


def test_few_chunks_are_not_worth_a_template() -> None:
    reader = StreamDecoder(lambda: "id")
    for _ in range(response_decoder.CHUNKS_BEFORE_TEMPLATE + 1):  # the first one also starts the answer
        reader.feed(chunk({"content": "a"}))
        assert reader.template is None
    reader.feed(chunk({"content": "a"}))
    assert reader.template is not None


def test_no_template_is_inferred_for_chunks_that_always_differ() -> None:
    reader = StreamDecoder(lambda: "id")
    for number in range(20):
        reader.feed(chunk({"content": "a"}, obfuscation=str(number)))
    assert reader.templates_left == 0 and reader.template is None


def test_arguments_go_to_a_call_that_has_no_name_yet() -> None:
    """Without an index they belong to the last call, although that one had no other chunk."""
    begun, more, other = {**CALL, "index": None}, {"function": {"arguments": '{"a'}}, {"id": "d"}
    rest = {"function": {"arguments": '":1}'}}
    sent = [chunk({"tool_calls": [call]}) for call in (begun, more, other, rest)] + [b"data: [DONE]\n\n"]
    assert read(sent, casts=1000) == read(sent, casts=0)
