"""Every Markdown sample: whole, one character at a time and with random cuts, without any hint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from support.rows import CheckFunction, in_one_test
from support.samples import (
    DIALECTS,
    Sample,
    chunkings,
    comparable,
    load_samples,
    load_tools,
    parse_sample,
    read_sample,
    render_sample,
    squeeze,
    update_sample,
)

import toolglot
from toolglot.core.events import CallEnded, merge_deltas
from toolglot.dialects.spec import Dialect
from toolglot.reading.plugins import known_dialects

SAMPLES = load_samples()
WEATHER = {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


def each_sample(samples: list[Sample]) -> Callable[[CheckFunction], CheckFunction]:
    """A test for each dialect."""
    return in_one_test("sample", samples, ids=[sample.id for sample in samples], by=lambda sample: sample.dialect)


@each_sample(SAMPLES)
def test_sample_is_read(sample: Sample, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-samples"):
        update_sample(sample)
        return
    assert comparable(sample, read_sample(sample)) == comparable(sample, sample.expected)


@each_sample(SAMPLES)
def test_any_chunking_gives_the_same_events(sample: Sample) -> None:
    whole = sample.read()
    for name, chunks in chunkings(sample.text, sample.id):
        assert sample.read(chunks) == whole, name


@each_sample(SAMPLES)
def test_a_last_chunk_gives_the_same_events(sample: Sample) -> None:
    """The whole answer, and the answer cut anywhere, with and without knowing that no more text comes."""
    tools, random = load_tools(sample.tools), Random(sample.id)
    for end in (len(sample.text), *(random.randrange(len(sample.text) + 1) for _ in range(5))):
        known = toolglot.Reader(tools, **sample.options).feed_last(sample.text[:end], sample.truncated)
        reader = toolglot.Reader(tools, **sample.options)
        unknown = [*reader.feed(sample.text[:end]), *reader.close(sample.truncated)]
        assert list(merge_deltas(known)) == list(merge_deltas(unknown)), end


@each_sample([sample for sample in SAMPLES if sample.canonical and sample.path.stem != "nasty-closer"])
def test_canonical_sample_needs_no_repair(sample: Sample) -> None:
    reading = toolglot.read(sample.text, tools=load_tools(sample.tools), **sample.options)
    assert [call.repairs for call in reading.calls] == [()] * len(reading.calls)
    assert all(call.confidence >= sample.options.get("min_confidence", 0.9) for call in reading.calls)


@pytest.mark.parametrize("dialect", toolglot.list_dialects(), ids=lambda dialect: dialect.name)
def test_dialect_has_samples_of_its_own(dialect: toolglot.Dialect) -> None:
    folder = f"tests/data/dialects/{dialect.name}/"
    assert list((DIALECTS / dialect.name).glob("*.md")), f"write samples in {folder}"
    canonical = [sample for sample in SAMPLES if sample.canonical and sample.dialect == dialect.name]
    read = [
        call
        for sample in canonical
        for call in toolglot.read(sample.text, tools=load_tools(sample.tools), **sample.options).calls
    ]
    assert read, f"no canonical sample in {folder} is read as a call: see '### Rejected' in it"


@in_one_test("folder", sorted(path.name for path in DIALECTS.iterdir()))
def test_sample_folder_is_a_known_dialect(folder: str) -> None:
    assert folder in {dialect.name for dialect in toolglot.list_dialects()}


@each_sample(SAMPLES)
def test_sample_file_survives_rendering(sample: Sample, tmp_path: Path) -> None:
    copy = tmp_path / sample.dialect / sample.path.name
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(render_sample(sample).encode("utf-8", "surrogatepass"))
    assert parse_sample(copy).expected == sample.expected
    assert parse_sample(copy).text == sample.text


@pytest.mark.parametrize(
    "text",
    ["", "\n", "a\n", "a\r\nb", "\x00\x1b[1m", "\ud800", "\ufeffa", "````\n```x\n````", "C:\\new \\r \\x41", "\u2028"],
)
def test_sample_format_is_byte_exact(text: str, tmp_path: Path) -> None:
    path = tmp_path / "sample.md"
    path.write_bytes(render_sample(Sample(path, "Odd bytes", text)).encode("utf-8", "surrogatepass"))
    assert parse_sample(path).text == text


def write_sample(sample: Sample, text: str) -> Sample:
    sample.path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return parse_sample(sample.path)


def test_update_writes_what_is_read(tmp_path: Path) -> None:
    written = 'Hm.\n<tool_call>\n{"name": "list_sensors", "arguments": {}}\n</tool_call>'
    sample = Sample(tmp_path / "sample.md", "Update", written)
    update_sample(write_sample(sample, render_sample(sample)))
    assert parse_sample(sample.path).expected.calls == (("list_sensors", "{}"),)
    assert squeeze(parse_sample(sample.path).expected.text) == "Hm."


def test_update_keeps_everything_above_what_is_read(tmp_path: Path) -> None:
    """Remarks, a second line of ``why`` and a heading inside a fence are the author's."""
    sample = Sample(tmp_path / "sample.md", "Remarks", "## Read\n\nnothing else")
    above = render_sample(sample).removesuffix("## Read\n").replace("- why: ", "- why: One.\n  Two.\n\nA remark.")
    update_sample(write_sample(sample, f"{above}## Read\n"))
    text = sample.path.read_text("utf-8")
    assert text.startswith(f"{above}## Read\n") and parse_sample(sample.path).expected.text == "## Read\n\nnothing else"


@each_sample(SAMPLES)
def test_update_leaves_a_sample_that_agrees(sample: Sample, tmp_path: Path) -> None:
    before = sample.path.read_bytes()
    copy = tmp_path / sample.path.name
    copy.write_bytes(before)
    update_sample(parse_sample(copy))
    assert copy.read_bytes() == before


LATE = {
    "Python in ordinary text, which must end the answer": ("python_call", "pythonic", "fenced_python", "nexus"),
    "Python without a closing mark, which may go on": ("llama31_builtin",),
    "JSON after a name, which a closing mark may follow": (
        "glm4_9b",
        "functionary_v32",
        "mistral_args",
        "mistral_callid",
    ),
    "a closing mark with longer spellings": ("nova",),
}
"""Dialects whose calls end only with the next character or with the answer, and why."""


@in_one_test("record", known_dialects(), ids=[record.name for record in known_dialects()])
def test_a_call_ends_with_its_last_character(record: Dialect) -> None:
    name, sample = record.name, record.sample
    if name == "shell_fence":
        return
    reader = toolglot.Reader([WEATHER])
    ended = [index for index, char in enumerate(sample) for event in reader.feed(char) if isinstance(event, CallEnded)]
    late = any(isinstance(event, CallEnded) for event in reader.close())
    assert (len(ended), late) == ((0, True) if any(name in names for names in LATE.values()) else (1, False))
