"""The reader ends for every text: it makes progress, and gives up where it does not."""

from __future__ import annotations

from typing import Any

import pytest
from support.fragments import SCALE
from support.fuzz_reader import alarm, loop_marks
from support.rows import in_one_test
from support.samples import Sample, load_samples, load_tools, read_events

import toolglot
from toolglot.core.events import CallEnded, CallRejected, CallStarted, TextDelta
from toolglot.dialects import scanner

WRITE: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
]

UNENDING = (
    '[TOOL_CALLS] [{"name": "write_file", [TOOL_CALLS]',
    '[TOOL_CALLS] [{"name": "write_file", "arguments": {"path": "a"}}\n[TOOL_CALLS] [{"name": "write_file", "arguments": {"path": "b"}}]',
    'Mistral writes [TOOL_CALLS] [{"name": "write_file"}, and then [TOOL_CALLS] again.',
    '[TOOL_CALLS] [{"name": "write_file", "arguments": {"path": "a"}}, "[TOOL_CALLS]", [TOOL_CALLS]',
)
"""Texts of which a reader could read the same element of a list again and again."""


@in_one_test("dialect", ["auto", "hermes", "mistral_array", "qwen3_coder", "roo_xml"])
@in_one_test("text", UNENDING)
def test_a_mark_inside_a_list_ends_it(text: str, dialect: str) -> None:
    for chunks in ([text], list(text)):
        reader = toolglot.Reader(WRITE, dialect)
        with alarm():
            events = [event for chunk in chunks for event in reader.feed(chunk)] + reader.close()
        assert not reader.is_stuck and sum(not isinstance(event, TextDelta) for event in events) < 20


def test_a_call_after_an_unclosed_list_is_read() -> None:
    reading = toolglot.read(UNENDING[1], WRITE)
    assert [call.arguments for call in reading.calls] == ['{"path":"a"}', '{"path":"b"}']


@in_one_test("seed", range(8))
def test_all_marks_cut_repeated_and_mixed(seed: int) -> None:
    for _ in loop_marks(rounds=625 * SCALE, seed=seed):
        pass


# A reader that gives up


@in_one_test("steps", [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89])
@in_one_test("sample", load_samples()[::5])
def test_without_steps_the_rest_is_text(sample: Sample, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No event is out of order, no call is complete that was not, and no character is lost."""
    complete = [event for event in sample.read() if isinstance(event, CallEnded)]
    for chunks in ([sample.text], [sample.text[at : at + 7] for at in range(0, len(sample.text), 7)]):
        with monkeypatch.context() as patched:
            patched.setattr(scanner, "FIRST_STEPS", steps)
            patched.setattr(scanner, "STEPS_PER_CHARACTER", 0)
            events = sample.read(chunks)
        ended = [event for event in events if isinstance(event, CallEnded)]
        assert [one.span for one in ended] == [one.span for one in complete][: len(ended)]
        started = sum(isinstance(event, CallStarted) for event in events)
        rejected = [event for event in events if isinstance(event, CallRejected)]
        assert started == len(ended) + sum(event.index is not None for event in rejected)


@in_one_test("steps", range(0, 40, 3))
def test_nothing_is_lost_when_the_reader_gives_up(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "FIRST_STEPS", steps)
    monkeypatch.setattr(scanner, "STEPS_PER_CHARACTER", 0)
    call = '<tool_call>{"name": "write_file", "arguments": {"path": "a"}}</tool_call>'
    text = f"Now:\n{call}\nand then {call} more"
    for size in (len(text), 40, 3):
        reader = toolglot.Reader(WRITE)
        events = [event for at in range(0, len(text), size) for event in reader.feed(text[at : at + size])]
        events += reader.close()
        assert reader.is_stuck == bool(reader.missed) and (reader.is_stuck or steps > 12)
        kept = "".join(event.text for event in events if isinstance(event, TextDelta))
        spans = [event.span for event in events if isinstance(event, CallEnded | CallRejected) and event.span]
        assert "".join(kept.split()) == "".join((text[: spans[0][0]] + text[spans[-1][1] :] if spans else text).split())


def test_a_reader_that_gave_up_reads_no_call_after_a_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "FIRST_STEPS", 0)
    reader = toolglot.Reader(WRITE)
    call = '<tool_call>{"name": "write_file", "arguments": {"path": "a"}}</tool_call>'
    monkeypatch.setattr(scanner, "STEPS_PER_CHARACTER", 0)
    events = reader.feed("<tool_call>")
    monkeypatch.setattr(scanner, "STEPS_PER_CHARACTER", 64)
    events += [*reader.flush_text(), *reader.feed("\n" + call), *reader.close()]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "<tool_call>\n" + call


def test_steps_are_paid_by_characters_not_by_chunks() -> None:
    """Many small chunks give no more steps than one large chunk."""
    text = "prose and <b>tags</b> " * 50
    assert read_events([text], tools=load_tools("house")) == read_events(list(text), tools=load_tools("house"))
