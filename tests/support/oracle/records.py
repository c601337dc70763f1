"""A second implementation of the five wires, to check what a gateway sends and receives.

Nothing of toolglot's own wires is used. A request and an answer are plain records; each wire has four functions: a
client's request as JSON, the same read as its upstream sees it, an upstream's answer as bytes, whole or streamed, and
the same read as its client sees it. Numbers are kept as the text that stands in the JSON (`Num`), so that `1e5` and
`100000.0` differ. The reader of streams is strict: a line break inside of an event, as Python's `splitlines` sees line
breaks, two spaces of a call, or a step out of order raise `WireError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

WIRES = ("openai_chat", "openai_responses", "anthropic_messages", "gemini", "ollama")
ORDERED = ("openai_responses", "anthropic_messages", "gemini")
"""Wires whose answers and histories keep the order of text and calls."""

Json = Any
JsonObject = dict[str, Any]


class WireError(Exception):
    """What was sent breaks the rules of its wire."""


class Num(str):
    """A number as it is written."""

    __slots__ = ()


def load(text: str | bytes) -> Json:
    """JSON with its numbers as text; what is no JSON (`NaN`, `Infinity`) raises."""

    def refuse(constant: str) -> Json:
        raise WireError(f"{constant} is no JSON")

    return json.loads(text, parse_int=Num, parse_float=Num, parse_constant=refuse)


def dump(value: Json) -> str:
    """Compact JSON with numbers as they were written."""
    match value:
        case Num():
            return str(value)
        case dict():
            return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{dump(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(dump, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Reasoning:
    text: str


@dataclass(frozen=True)
class Image:
    media: str
    data: str


@dataclass(frozen=True)
class Call:
    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Result:
    call_id: str
    name: str
    text: str


@dataclass(frozen=True)
class Turn:
    """`role` is user, assistant or tool; a tool turn holds results only."""

    role: str
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    schema: str


@dataclass(frozen=True)
class Request:
    """`shape` is the format of the answer: none, `object`, or a JSON Schema."""

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    system: str = ""
    limit: int = 0
    temperature: str = ""
    effort: str = ""
    stream: bool = False
    shape: str = ""


@dataclass(frozen=True)
class Usage:
    """`input` counts what came from the cache too, `output` counts reasoning too."""

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Answer:
    """`finish` is stop, tool_calls or length."""

    parts: tuple[Any, ...]
    finish: str = "stop"
    usage: Usage = field(default_factory=Usage)


def text_of(parts: tuple[Any, ...]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


def merged(parts: list[Any] | tuple[Any, ...]) -> tuple[Any, ...]:
    """Adjacent texts, and adjacent reasoning, as one."""
    made: list[Any] = []
    for part in parts:
        if made and type(made[-1]) is type(part) and isinstance(part, Text | Reasoning):
            made[-1] = type(part)(made[-1].text + part.text)
        else:
            made.append(part)
    return tuple(made)


def compact(parts: Any) -> tuple[Any, ...]:
    """Parts with the arguments of calls in one form."""
    return tuple(replace(p, arguments=dump(load(p.arguments or "{}"))) if isinstance(p, Call) else p for p in parts)


def pieces(text: str, size: int) -> list[str]:
    """A text cut as a model would send it."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def event(data: Json, name: str = "") -> str:
    return (
        (f"event: {name}\n" if name else "")
        + "data: "
        + (data if isinstance(data, str) else escape(dump(data)))
        + "\n\n"
    )


def escape(text: str) -> str:
    """Characters that some readers take for line breaks."""
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def read_events(body: bytes) -> Iterator[Json]:
    """The data of all events, read as strictly as the clients that split at every line break of Unicode."""
    for block in body.decode().replace("\r\n", "\n").split("\n\n"):
        data = []
        for line in block.splitlines():
            name, _, rest = line.partition(":")
            if name == "data":
                data.append(rest.removeprefix(" "))
            elif name not in ("event", "id", "retry", ""):
                raise WireError(f"a line of no event: {line[:80]!r}")
        if data and data != ["[DONE]"]:
            yield load("\n".join(data))


def settings(asked: Request, limit: str, temperature: str, effort: str) -> JsonObject:
    made: JsonObject = {}
    if asked.limit:
        made[limit] = Num(asked.limit)
    if asked.temperature:
        made[temperature] = Num(asked.temperature)
    if asked.effort and effort:
        made[effort] = asked.effort
    return made


def read_address(address: str) -> Image:
    head, _, data = address.partition(",")
    return Image(head.removeprefix("data:").removesuffix(";base64"), data)


def add_result(turns: list[Turn], result: Result) -> None:
    if turns and turns[-1].role == "tool":
        turns[-1] = Turn("tool", (*turns[-1].parts, result))
    else:
        turns.append(Turn("tool", (result,)))


def numbers(counts: JsonObject) -> JsonObject:
    """Python's numbers as texts."""
    return {key: numbers(count) if isinstance(count, dict) else Num(count) for key, count in counts.items()}
