"""Properties that hold for any text."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.fragments import SCALE, fragments, snippets
from support.rows import in_one_test
from support.samples import Sample, chunkings, load_samples, load_tools, random_cuts, read_events, squeeze

import toolglot
from toolglot.core.errors import ClientError, UsageError
from toolglot.core.events import CallArguments, CallStarted, Reason, TextDelta
from toolglot.dialects.mark_templates import SLOTS

HOME_TOOLS = load_tools("house")
CANONICAL = [sample for sample in load_samples() if sample.canonical]
WORD = re.compile(r"zq\d+q")

pieces = st.one_of(st.sampled_from(fragments()), st.sampled_from(fragments()), st.sampled_from(snippets()))
jumbles = st.lists(st.one_of(pieces, pieces, st.text(max_size=8)), max_size=30).map("".join)
options = st.fixed_dictionaries(
    {
        "unknown_tools": st.sampled_from(["allow", "text", "reject"]),
        "parallel": st.booleans(),
    }
)


@st.composite
def numbered_jumbles(draw: st.DrawFn) -> str:
    """Marks of all kinds with words between them that no mark contains: zq0q, zq1q, ..."""
    parts = draw(st.lists(pieces, min_size=1, max_size=20))
    spaces = draw(st.lists(st.sampled_from([" ", "\n", ""]), min_size=2 * len(parts), max_size=2 * len(parts)))
    return "".join(f"{part}{spaces[2 * i]}zq{i}q{spaces[2 * i + 1]}" for i, part in enumerate(parts))


# Any chunking, no exception, lawful order


@settings(max_examples=400 * SCALE)
@given(text=jumbles, truncated=st.booleans(), seed=st.integers(0, 999), options=options)
def test_any_chunking_gives_the_same_events(text: str, truncated: bool, seed: int, options: dict[str, Any]) -> None:
    whole = read_events([text], truncated=truncated, tools=HOME_TOOLS, **options)
    assert read_events(list(text), truncated=truncated, tools=HOME_TOOLS, **options) == whole
    assert read_events(random_cuts(text, seed), truncated=truncated, tools=HOME_TOOLS, **options) == whole


@settings(max_examples=200 * SCALE)
@given(first=st.sampled_from(CANONICAL), second=st.sampled_from(CANONICAL), seed=st.integers(0, 999))
def test_two_dialects_in_one_answer(first: Sample, second: Sample, seed: int) -> None:
    text = f"{first.text}\n\n{second.text}"
    assert read_events(random_cuts(text, seed), tools=HOME_TOOLS) == read_events([text], tools=HOME_TOOLS)


# Nothing is lost


@settings(max_examples=600 * SCALE)
@given(text=jumbles, truncated=st.booleans(), options=options)
@example(text="</tool_call>", truncated=False, options={})
@example(text="<|im_end|>", truncated=False, options={})
@example(text="<think></think>", truncated=False, options={})
@example(text="<tool_call></tool_call>", truncated=False, options={})
def test_no_call_and_no_text_is_impossible(text: str, truncated: bool, options: dict[str, Any]) -> None:
    reading = toolglot.read(text, tools=HOME_TOOLS, truncated=truncated, **options)
    if text.strip():
        assert reading.text.strip() or reading.reasoning.strip() or reading.calls or reading.rejected


@settings(max_examples=800 * SCALE)
@given(text=numbered_jumbles(), truncated=st.booleans(), options=options)
def test_all_text_outside_of_calls_is_text_or_reasoning(text: str, truncated: bool, options: dict[str, Any]) -> None:
    reading = toolglot.read(text, tools=HOME_TOOLS, truncated=truncated, **options)
    spans = [call.span for call in reading.calls] + [rejected.span for rejected in reading.rejected]
    kept = set(WORD.findall(reading.text)) | set(WORD.findall(reading.reasoning))
    for word in WORD.finditer(text):
        inside = any(span and span[0] <= word.start() and word.end() <= span[1] for span in spans)
        assert inside or word[0] in kept, word


@settings(max_examples=300 * SCALE)
@given(text=jumbles, truncated=st.booleans())
def test_spans_and_raw_text_agree(text: str, truncated: bool) -> None:
    reading = toolglot.read(text, tools=HOME_TOOLS, truncated=truncated)
    given = [call.span for call in reading.calls] + [rejected.span for rejected in reading.rejected]
    spans = sorted(span for span in given if span)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))
    for rejected in reading.rejected:
        if rejected.span:
            assert text[slice(*rejected.span)] == rejected.raw


@settings(max_examples=300 * SCALE)
@given(text=jumbles, truncated=st.booleans(), options=options)
def test_arguments_of_a_complete_call_are_one_json_object(text: str, truncated: bool, options: dict[str, Any]) -> None:
    for call in toolglot.read(text, tools=HOME_TOOLS, truncated=truncated, **options).calls:
        assert call.name
        assert isinstance(json.loads(call.arguments), dict)


@given(text=st.text(alphabet="abc .,;!?\n-*#()éß漢🚀", max_size=300))
def test_plain_prose_is_handed_on_byte_for_byte(text: str) -> None:
    reading = toolglot.read(text, tools=HOME_TOOLS)
    assert reading.text == text
    assert not reading.calls
    assert not reading.rejected


# A cut call is never complete


def cut_points(sample: Sample) -> list[int]:
    length = len(sample.text)
    if length <= 60:
        return list(range(length))
    return sorted(Random(sample.id).sample(range(length), 60))


def calls_of(text: str, *, truncated: bool = False) -> list[tuple[str, str]]:
    return [(call.name, call.arguments) for call in toolglot.read(text, tools=HOME_TOOLS, truncated=truncated).calls]


@in_one_test("sample", CANONICAL, ids=[sample.id for sample in CANONICAL])
def test_cut_anywhere_is_never_a_complete_call(sample: Sample) -> None:
    whole = calls_of(sample.text)
    for cut in cut_points(sample):
        calls = calls_of(sample.text[:cut], truncated=True)
        assert calls == whole[: len(calls)], f"cut at {cut}: ...{sample.text[max(0, cut - 60) : cut]!r}"


# Without the word of the upstream an answer that ends after a closed value was stopped, not cut: the closers that follow
# may be missing. A closing mark inside a value cannot be distinguished from its end there, so those samples are left out; so are
# samples without a call, because some calls are text only for what follows them.
STOPPABLE = [sample for sample in CANONICAL if sample.path.stem != "nasty-closer" and sample.expected.calls]


@in_one_test("sample", STOPPABLE, ids=[sample.id for sample in STOPPABLE])
def test_cut_anywhere_never_shortens_a_value(sample: Sample) -> None:
    whole = calls_of(sample.text)
    for cut in cut_points(sample):
        calls = calls_of(sample.text[:cut])
        place = f"cut at {cut}: ...{sample.text[max(0, cut - 60) : cut]!r}"
        assert len(calls) <= len(whole), place
        for (name, arguments), (whole_name, whole_arguments) in zip(calls, whole, strict=False):
            assert name == whole_name, place
            given, wanted = json.loads(arguments), json.loads(whole_arguments)
            assert given == {key: wanted[key] for key in given if key in wanted}, place


@in_one_test("sample", CANONICAL, ids=[sample.id for sample in CANONICAL])
def test_a_cut_call_that_started_is_rejected_as_truncated(sample: Sample) -> None:
    for cut in cut_points(sample)[::4]:
        events = read_events([sample.text[:cut]], tools=HOME_TOOLS, truncated=True)
        reading = toolglot.read(sample.text[:cut], tools=HOME_TOOLS, truncated=True)
        started = sum(isinstance(event, CallStarted) for event in events)
        assert started <= len(reading.calls) + len(reading.rejected)
        assert {rejected.reason for rejected in reading.rejected} <= {Reason.TRUNCATED}, sample.text[:cut]


# Hold-back


@in_one_test("sample", CANONICAL, ids=[sample.id for sample in CANONICAL])
def test_text_before_a_call_is_not_held_back(sample: Sample) -> None:
    prose = "Let me look at the house, room by room, before I say anything. " * 4
    reader = toolglot.Reader(tools=HOME_TOOLS)
    shown = 0
    for position, character in enumerate(prose, start=1):
        shown += sum(len(event.text) for event in reader.feed(character) if isinstance(event, TextDelta))
        assert position - shown <= 80
    reader.feed("\n\n" + sample.text)
    reader.close()


def test_a_long_string_argument_is_released_as_it_comes() -> None:
    body = "All work and no play. " * 200
    reader = toolglot.Reader(tools=HOME_TOOLS)
    reader.feed('<tool_call>\n{"name": "save_note", "arguments": {"path": "a", "body": "')
    shown = 0
    for position, character in enumerate(body, start=1):
        shown += sum(len(event.fragment) for event in reader.feed(character) if isinstance(event, CallArguments))
        assert position - shown <= 80


@in_one_test("slot", SLOTS)
def test_the_beginning_of_a_slot_ends_where_the_text_ends(slot: str) -> None:
    """Any other would be waited for without end."""
    beginning = re.compile(SLOTS[slot].prefix)
    assert beginning.match("") is not None
    for text in ("\x00", "a\x00", 'a": "\x00', "a" * 1000 + "\x00"):
        found = beginning.match(text)
        assert found is None or found.end() == len(text)


# Bad input


@pytest.mark.parametrize("chunk", [None, b"text", 7, ["text"]], ids=repr)
def test_feeding_anything_but_a_string_is_a_usage_error(chunk: Any) -> None:
    reader = toolglot.Reader(tools=HOME_TOOLS)
    with pytest.raises(UsageError):
        reader.feed(chunk)
    with pytest.raises(UsageError):
        toolglot.read(chunk, tools=HOME_TOOLS)


def test_feeding_after_close_is_a_usage_error() -> None:
    reader = toolglot.Reader(tools=HOME_TOOLS)
    reader.close()
    with pytest.raises(UsageError):
        reader.feed("more")


@pytest.mark.parametrize(
    "options",
    [
        {"dialect": 7},
        {"unknown_tools": "maybe"},
        {"min_confidence": 2},
        {"no_such_option": 1},
    ],
    ids=repr,
)
def test_a_wrong_option_is_an_error_of_the_client(options: dict[str, Any]) -> None:
    with pytest.raises((ClientError, TypeError)):
        toolglot.Reader(tools=HOME_TOOLS, **options)


@pytest.mark.parametrize(
    "text", ["", "\ud800", "a\x00b", "\udfff<tool_call>\ud800", "\x00" * 100, "\ufeff{", "<\x00read>"], ids=repr
)
def test_odd_characters_pass_through(text: str) -> None:
    reading = toolglot.read(text, tools=HOME_TOOLS)
    assert squeeze(reading.text + "".join(rejected.raw for rejected in reading.rejected)) == squeeze(text)
    for name, chunks in chunkings(text, "odd"):
        assert read_events(chunks, tools=HOME_TOOLS) == read_events([text], tools=HOME_TOOLS), name


def test_odd_characters_inside_an_argument_survive() -> None:
    text = "<tool_call>\n<function=save_note>\n<parameter=path>\na\n</parameter>\n<parameter=body>\n\ud800\x00\x07é\r\n</parameter>\n</function>\n</tool_call>"
    (call,) = toolglot.read(text, tools=HOME_TOOLS).calls
    assert json.loads(call.arguments)["body"].rstrip("\r") == "\ud800\x00\x07é"


@pytest.mark.parametrize("unit", ["x", "word ", "<", "{", '"', "é🚀"], ids=repr)
def test_one_very_long_line(unit: str) -> None:
    size = 100_000 if unit in "<{" else 1_000_000
    text = unit * (size // len(unit))
    reading = toolglot.read(text, tools=HOME_TOOLS)
    assert reading.text + "".join(rejected.raw for rejected in reading.rejected) == text
    assert not reading.calls


def test_an_unknown_hint_does_no_harm() -> None:
    sample = CANONICAL[0]
    assert toolglot.read(sample.text, tools=HOME_TOOLS, dialect="no-such-model-7b") == toolglot.read(
        sample.text, tools=HOME_TOOLS
    )


def test_no_tools_at_all() -> None:
    assert toolglot.read("Just text.").text == "Just text."
    assert toolglot.read("Just text.", tools=[]).text == "Just text."
