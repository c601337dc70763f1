"""Every Markdown sample: whole, one character at a time and with random cuts, without any hint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.samples import (
    DIALECTS,
    Sample,
    chunkings,
    load_samples,
    load_tools,
    parse_sample,
    render_sample,
    squeeze,
    update_sample,
)

import toolglot

SAMPLES = load_samples()


def each_sample(samples: list[Sample]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("sample", samples, ids=[sample.id for sample in samples])


@each_sample(SAMPLES)
def test_sample_is_read(sample: Sample, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-samples"):
        update_sample(sample)
        return
    reading = toolglot.read(sample.text, tools=load_tools(sample.tools), truncated=sample.truncated, **sample.options)
    expected = sample.expected
    assert [call.name for call in reading.calls] == [name for name, _ in expected.calls]
    for call, (_, arguments) in zip(reading.calls, expected.calls, strict=True):
        if sample.canonical:
            assert call.arguments == arguments
        else:
            assert json.dumps(json.loads(call.arguments)) == json.dumps(json.loads(arguments))
    assert squeeze(reading.text) == squeeze(expected.text)
    if expected.reasoning is not None:
        assert squeeze(reading.reasoning) == squeeze(expected.reasoning)
    assert [(str(r.reason), r.raw) for r in reading.rejected] == list(expected.rejected)


@each_sample(SAMPLES)
def test_any_chunking_gives_the_same_events(sample: Sample) -> None:
    whole = sample.read()
    for name, chunks in chunkings(sample.text, sample.id):
        assert sample.read(chunks) == whole, name


@each_sample([sample for sample in SAMPLES if sample.canonical and sample.path.stem != "nasty-closer"])
def test_canonical_sample_needs_no_repair(sample: Sample) -> None:
    reading = toolglot.read(sample.text, tools=load_tools(sample.tools), **sample.options)
    assert [call.repairs for call in reading.calls] == [()] * len(reading.calls)
    assert all(call.confidence >= sample.options.get("min_confidence", 0.9) for call in reading.calls)


@pytest.mark.parametrize("dialect", toolglot.list_dialects(), ids=lambda dialect: dialect.name)
def test_dialect_has_samples_of_its_own(dialect: toolglot.Dialect) -> None:
    assert list((DIALECTS / dialect.name).glob("*.md")), f"write samples in tests/data/dialects/{dialect.name}/"


@pytest.mark.parametrize("folder", sorted(path.name for path in DIALECTS.iterdir()))
def test_sample_folder_is_a_known_dialect(folder: str) -> None:
    assert folder in {dialect.name for dialect in toolglot.list_dialects()}


@each_sample(SAMPLES)
def test_sample_file_survives_rendering(sample: Sample, tmp_path: Path) -> None:
    copy = tmp_path / sample.dialect / sample.path.name
    copy.parent.mkdir()
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


def test_update_writes_what_is_read(tmp_path: Path) -> None:
    sample = Sample(
        tmp_path / "sample.md", "Update", 'Hm.\n<tool_call>\n{"name": "list_sensors", "arguments": {}}\n</tool_call>'
    )
    update_sample(sample)
    assert parse_sample(sample.path).expected.calls == (("list_sensors", "{}"),)
    assert squeeze(parse_sample(sample.path).expected.text) == "Hm."
