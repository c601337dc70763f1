"""Samples: one answer of a model per Markdown file, and what must be read from it.

A sample lies in ``dialects/<dialect>/<slug>.md`` and looks like this::

    # Wrong closer

    - kind: malformed
    - tools: agent
    - why: The block is closed by a tag of another kind.

    ## Written

    ```text
    Looking.
    <tool_call>{"name": "list_sensors", "arguments": {}}</think>
    ```

    ## Read

    ### Call `list_sensors`

    ```json
    {}
    ```

    ### Text

    ```text
    Looking.
    ```

    ### Reasoning            (reasoning is not compared if this part is missing)
    ### Rejected `truncated` (one part per rejected call, with its raw text)

Fields: ``kind`` is ``canonical`` (arguments must agree to the byte) or ``malformed`` (their values and key order must
agree); ``tools`` names a file in ``tools/``; ``truncated: yes`` reads the text as cut off by the length limit;
``options`` is a JSON object of keyword arguments for the reader.

A fence is longer than any run of backticks inside it and its body is byte exact. The line break before the
closing fence belongs to the fence, so a text that ends in a line break shows an empty last line. What an editor
or Git would not keep (CR, control characters, lone surrogates, a byte order mark) is shown in a fence marked ``escaped``:
there ``\\r``, ``\\xNN``, ``\\uNNNN`` and ``\\\\`` stand for the character.

``pytest --update-samples`` rewrites the part under ``## Read`` where the reader makes something else of the text today.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from msgspec import structs

import toolglot
from support.event_order import check_order
from toolglot.core.events import CallEnded, CallStarted, Event, merge_deltas

DATA = Path(__file__).parent.parent / "data"
DIALECTS = DATA / "dialects"
UNKEEPABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff]")
ESCAPE = re.compile(r"\\(?:\\|r|x[0-9a-f]{2}|u[0-9a-f]{4})")


@dataclass(frozen=True)
class Expected:
    calls: tuple[tuple[str, str], ...] = ()
    text: str = ""
    reasoning: str | None = None
    rejected: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Sample:
    path: Path
    title: str
    text: str
    kind: str = "canonical"
    tools: str = "house"
    why: str = ""
    truncated: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    expected: Expected = Expected()

    @property
    def id(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    @property
    def dialect(self) -> str:
        return self.path.parent.name

    @property
    def canonical(self) -> bool:
        return self.kind == "canonical"

    def read(self, chunks: Iterable[str] | None = None) -> list[Event]:
        """The merged events of this sample, fed as the given chunks (by default as one)."""
        chunks = [self.text] if chunks is None else chunks
        return read_events(chunks, truncated=self.truncated, tools=load_tools(self.tools), **self.options)


@cache
def load_tools(name: str) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = json.loads((DATA / "tools" / f"{name}.json").read_text("utf-8"))
    return tools


# Reading in pieces


def read_events(chunks: Iterable[str], *, truncated: bool = False, **options: Any) -> list[Event]:
    """Feed the chunks to a new reader; return the merged events, in lawful order and with comparable ids."""
    reader = toolglot.Reader(**options)
    events: list[Event] = []
    for chunk in chunks:
        events += reader.feed(chunk)
    events += reader.close(truncated=truncated)
    check_order(events)
    return [structs.replace(e, id=f"call-{e.index}") if isinstance(e, CallStarted) else e for e in merge_deltas(events)]


def random_cuts(text: str, seed: int | str) -> list[str]:
    """The text in pieces of random length: mostly short, some empty, some long."""
    random = Random(seed)
    cuts = sorted(random.choices(range(len(text) + 1), k=random.choice((1, 3, 10, 1 + len(text) // 5))))
    return [text[a:b] for a, b in pairwise([0, *cuts, len(text)])]


def chunkings(text: str, seed: int | str, rounds: int = 3) -> Iterator[tuple[str, list[str]]]:
    """Named ways to cut the text, besides not at all."""
    yield "one character at a time", list(text)
    yield "four characters at a time", [text[i : i + 4] for i in range(0, len(text), 4)]
    for number in range(rounds):
        yield f"random cuts {number}", random_cuts(text, f"{seed}-{number}")


def squeeze(text: str) -> str:
    """The text with every run of whitespace made one space."""
    return " ".join(text.split())


def complete_calls(events: Iterable[Event]) -> set[int]:
    return {event.index for event in events if isinstance(event, CallEnded)}


# Markdown to sample and back


def load_samples() -> list[Sample]:
    return [parse_sample(path) for path in sorted(DIALECTS.glob("*/*.md"))]


def parse_sample(path: Path) -> Sample:
    fields: dict[str, str] = {}
    text: str | None = None
    calls: list[tuple[str, str]] = []
    rejected: list[tuple[str, str]] = []
    parts: dict[str, str] = {}
    title = heading = ""
    for kind, value in _blocks(iter(path.read_bytes().decode("utf-8", "surrogatepass").split("\n")), path):
        mark = re.fullmatch(r"(Call|Rejected) `(.*)`", heading)
        match kind:
            case "title":
                title = value
            case "heading":
                heading = value
            case "field":
                name, _, content = value.partition(":")
                fields[name.strip()] = content.strip()
            case "fence" if heading == "Written":
                text = value
            case "fence" if mark:
                (calls if mark[1] == "Call" else rejected).append((mark[2], value))
            case "fence":
                parts[heading] = value
    if text is None:
        raise ValueError(f"{path}: no fence under '## Written'")
    unknown = set(fields) - {"kind", "tools", "why", "truncated", "options"} | set(parts) - {"Text", "Reasoning"}
    if unknown:
        raise ValueError(f"{path}: unknown fields or headings: {sorted(unknown)}")
    return Sample(
        path=path,
        title=title,
        text=text,
        kind=fields.get("kind", "canonical"),
        tools=fields.get("tools", "house"),
        why=fields.get("why", ""),
        truncated=fields.get("truncated") == "yes",
        options=json.loads(fields.get("options", "{}")),
        expected=Expected(tuple(calls), parts.get("Text", ""), parts.get("Reasoning"), tuple(rejected)),
    )


def _blocks(lines: Iterator[str], path: Path) -> Iterator[tuple[str, str]]:
    """The file as (kind, value) pairs; what is neither title, heading, field nor fence is a remark."""
    for line in lines:
        if fence := re.fullmatch(r"(`{3,})([\w -]*)", line):
            yield "fence", _fence_body(lines, fence, path)
        elif line.startswith("# "):
            yield "title", line[2:]
        elif line.startswith(("## ", "### ")):
            yield "heading", line.lstrip("#").strip()
        elif line.startswith("- "):
            yield "field", line[2:]


def _fence_body(lines: Iterator[str], fence: re.Match[str], path: Path) -> str:
    body: list[str] = []
    for line in lines:
        if line == fence[1]:
            text = "\n".join(body)
            return ESCAPE.sub(_unescape, text) if "escaped" in fence[2] else text
        body.append(line)
    raise ValueError(f"{path}: a fence is not closed")


def _unescape(match: re.Match[str]) -> str:
    mark = match[0][1:]
    return {"\\": "\\", "r": "\r"}.get(mark) or chr(int(mark[1:], 16))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    named = {"\\": "\\\\", "\r": "\\r"}.get(match[0])
    return named or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def _fenced(text: str, language: str = "text") -> str:
    if UNKEEPABLE.search(text):
        text, language = re.sub(rf"\\|{UNKEEPABLE.pattern}", _escape, text), f"{language} escaped"
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def render_sample(sample: Sample) -> str:
    """The Markdown of a sample; ``parse_sample`` returns it unchanged."""
    fields = [f"- kind: {sample.kind}", f"- tools: {sample.tools}"]
    if sample.truncated:
        fields.append("- truncated: yes")
    if sample.options:
        fields.append(f"- options: {json.dumps(sample.options)}")
    fields.append(f"- why: {sample.why}")
    parts = [f"# {sample.title}\n", "\n".join(fields) + "\n", "## Written\n", _fenced(sample.text)]
    return "\n".join([*parts, _render_expected(sample.expected)])


def _render_expected(expected: Expected) -> str:
    parts = ["## Read\n"]
    for name, arguments in expected.calls:
        parts += [f"### Call `{name}`\n", _fenced(arguments, "json")]
    if expected.text:
        parts += ["### Text\n", _fenced(expected.text)]
    if expected.reasoning is not None:
        parts += ["### Reasoning\n", _fenced(expected.reasoning)]
    for reason, raw in expected.rejected:
        parts += [f"### Rejected `{reason}`\n", _fenced(raw)]
    return "\n".join(parts)


# Compare with what is read today


def read_sample(sample: Sample) -> Expected:
    """What the reader makes of the text today."""
    tools = load_tools(sample.tools)
    reading = toolglot.read(sample.text, tools=tools, truncated=sample.truncated, **sample.options)
    return Expected(
        calls=tuple((call.name, call.arguments) for call in reading.calls),
        text=reading.text,
        reasoning=reading.reasoning or None,
        rejected=tuple((str(rejected.reason), rejected.raw) for rejected in reading.rejected),
    )


def comparable(sample: Sample, expected: Expected) -> Expected:
    """What a sample holds the reader to: whitespace in text does not count, nor reasoning where the sample has none, nor
    the spelling of arguments in a malformed sample."""
    calls = expected.calls
    if not sample.canonical:
        calls = tuple((name, json.dumps(json.loads(arguments))) for name, arguments in calls)
    reasoning = None if sample.expected.reasoning is None else squeeze(expected.reasoning or "")
    return replace(expected, calls=calls, text=squeeze(expected.text), reasoning=reasoning)


def update_sample(sample: Sample) -> None:
    """Write what the reader makes of the text today under ``## Read`` of the sample's file.

    A file that agrees with the reader, and the part above ``## Read``, stay as they are, byte for byte.
    """
    read = read_sample(sample)
    if comparable(sample, read) == comparable(sample, sample.expected):
        return
    source = sample.path.read_bytes().decode("utf-8", "surrogatepass").split("\n")
    lines = iter(source)
    for block in _blocks(lines, sample.path):
        if block == ("heading", "Read"):
            break
    below = len(list(lines)) + 1
    updated = "\n".join([*source[:-below], _render_expected(read)])
    sample.path.write_bytes(updated.encode("utf-8", "surrogatepass"))
