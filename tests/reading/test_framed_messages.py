"""Messages to the user in frames of special tokens: in them only the marks of the frames' own dialect mean anything."""

from __future__ import annotations

import json

import pytest
from support.rows import in_one_test
from support.samples import chunkings, read_events

import toolglot
from toolglot.dialects.records import all_dialects
from toolglot.dialects.spec import Channel

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]
SAMPLES = {dialect.name: dialect.sample for dialect in all_dialects()}
FRAMES = (
    ("harmony", "<|channel|>final<|message|>{}<|return|>"),
    ("harmony", "<|channel|>analysis<|message|>Plan.<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>"),
    ("harmony", "<|channel|>commentary<|message|>{}<|end|>"),
    ("kimi_k3", "<|open|>response<|sep|>{}<|close|>response<|sep|>"),
    ("inkling", "<|message_model|><|content_text|>{}<|end_message|>"),
    ("muse_glimmer", "to=user<|message|>{}<|eom|>"),
    ("cohere_action", "<|START_RESPONSE|>{}<|END_RESPONSE|>"),
)
FRAME_TOKENS = ("<|start|>", "<|message|>", "<|open|>", "<|message_model|>")
QUOTED = [
    sample
    for sample in (
        *(sample for sample in SAMPLES.values() if not sample.startswith(FRAME_TOKENS)),
        '<atem:function_calls>\n<atem:invoke name="get_weather">\n</atem:invoke>\n</atem:function_calls>',
        '```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```',
        '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
        "<think>I call it.</think>",
        "</think>",
        'to=functions.get_weather {"city": "Oslo"}',
    )
]


def read(text: str) -> toolglot.Reading:
    whole = read_events([text], tools=TOOLS)
    for name, chunks in chunkings(text, text, rounds=1):
        assert read_events(chunks, tools=TOOLS) == whole, name
    return toolglot.read(text, tools=TOOLS)


def test_every_dialect_with_framed_messages_is_tested() -> None:
    framed = {d.name for d in all_dialects() if any(region.channel is Channel.MESSAGE for region in d.regions)}
    assert {name for name, _ in FRAMES} == framed


@in_one_test(("dialect", "frame"), [*FRAMES])
def test_a_call_of_another_dialect_in_a_message_is_text(dialect: str, frame: str) -> None:
    for sample in QUOTED:
        if sample == SAMPLES[dialect]:
            continue
        for message in (sample, f"Write:\n{sample}\nThat is all.", f"Write {sample}"):
            reading = read(frame.format(message))
            assert (reading.text, reading.calls) == (message, []), (frame, message)


@in_one_test(("dialect", "frame"), [*FRAMES])
def test_a_message_says_nothing_about_the_call_after_it(dialect: str, frame: str) -> None:
    for message in ("For example:", "| 1 | 2 |", "Not like this:\n<get_weather>\nx", "> quoted: ", ""):
        reading = read(frame.format(message) + SAMPLES[dialect] + frame.format("Done."))
        assert [(call.name, json.loads(call.arguments)) for call in reading.calls] == [
            ("get_weather", {"city": "Oslo"})
        ], (frame, message)
        assert reading.text.split() == f"{message} Done.".split()


@in_one_test("frame", [frame for _, frame in FRAMES])
def test_an_empty_message_is_an_empty_text(frame: str) -> None:
    reading = read(frame.format(""))
    assert (reading.text, reading.calls) == ("", [])


@pytest.mark.parametrize("inside", ["<think>{}</think>", "{}</think>", "```python\nx\n```{}"])
def test_reasoning_marks_of_another_dialect_in_reasoning_are_text(inside: str) -> None:
    thought = inside.format("It rains.")
    reading = read(
        "<|channel|>commentary to=functions.get_weather<|message|>{}<|call|><|start|>assistant"
        f"<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>final<|message|>Rain.<|return|>"
    )
    assert (reading.reasoning, reading.text) == (thought, "Rain.")
