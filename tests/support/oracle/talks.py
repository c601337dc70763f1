"""Random requests and answers for the oracle: values, texts and shapes that were lost or changed somewhere."""

from __future__ import annotations

from random import Random

from support.oracle.records import (
    Answer,
    Call,
    Image,
    Json,
    Num,
    Reasoning,
    Request,
    Result,
    Text,
    Tool,
    Turn,
    Usage,
    dump,
)

NUMBERS = [
    "0",
    "-0",
    "1e5",
    "1E+5",
    "-2.50",
    "3.141592653589793238462643383279",
    "12345678901234567890123",
    "1e400",
    "-1e-400",
    "0.10",
    "7",
    "1.0",
    "-0.0",
    "9007199254740993",
    "1e05",
]
STRINGS = [
    *("", "a", "b\u2028c", "d\u2029", "\x85e", 'tab\t"q" \\n', "line\nbreak", "é😀", "<x>", '{"a": 1}', "\u200bz"),
    *("1e5", "NaN", "null", "\x00\x1f", "</tool>", "\ufeff"),
]
TAILS = [
    *("", "\n", "\n\n", " <", "{", " a", "Action", " \n", "\u2028", "`", "``", "[", "<tool", "\u2029end", "x\x85y"),
]
WORDS = ["I'll look.", "Sure", "Der Text: äöü", "1 < 2", "Let me see", "ok", "Done 😀", "a\u2028b", "x = {}"]
NAMES = ["read_file", "write", "get_weather", "Calc2"]
SHAPES = ["t", "tc", "c", "tcc", "tctc", "cct", "rt", "rc", "rtc", "trc"]
"""Answers: text, call, reasoning."""


def make_value(rng: Random, depth: int = 0) -> Json:
    kind = rng.randrange(8 if depth < 3 else 5)
    if kind <= 1:
        return Num(rng.choice(NUMBERS))
    if kind <= 3:
        return rng.choice(STRINGS)
    if kind == 4:
        return rng.choice([True, False, None])
    if kind == 5:
        return [make_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    keys = ["a", "b", "zz", "k\u2028", "1", "type"]
    return {rng.choice(keys): make_value(rng, depth + 1) for _ in range(rng.randrange(4))}


def make_arguments(rng: Random) -> str:
    keys = rng.sample(["path", "n", "data", "z\u2029", "b", "a"], rng.randrange(4))
    return dump({key: make_value(rng) for key in keys})


def make_text(rng: Random) -> str:
    return rng.choice(WORDS) + rng.choice(TAILS)


def make_schema(rng: Random) -> str:
    number = {
        "type": "number",
        "minimum": Num(rng.choice(["-2.50", "-0", "1e-5", "0.10"])),
        "default": Num(rng.choice(NUMBERS)),
    }
    text = {"type": "string", "maxLength": Num(rng.choice(["10", "1e2"]))}
    listed = {"enum": [Num("1.0"), Num("2.50"), "x"]}
    return dump({"type": "object", "properties": {"path": text, "n": number, "data": listed}})


def make_result(rng: Random) -> str:
    return rng.choice([make_text(rng), make_arguments(rng), '{"x":1e5,"y":-2.50}', "[1.0, 2]", "1e5", "text\n"])


def make_request(rng: Random, stream: bool) -> Request:
    turns: list[Turn] = []
    number = 0
    for _ in range(rng.randrange(1, 4)):
        texts = [
            make_text(rng).strip() + rng.choice(["", "?", " go on", "\u2028b"]) for _ in range(rng.choice([1, 2, 3]))
        ]
        pictures = [Image("image/png", "iVBORw0KGgo=")] if rng.random() < 0.15 else []
        turns.append(Turn("user", (*map(Text, texts), *pictures)))
        for _ in range(rng.randrange(3)):
            text = [Text(f"Step {number}: {rng.choice(WORDS)}")] if rng.random() < 0.5 else []
            calls = [
                Call(f"call_{number}_{at}", rng.choice(NAMES), make_arguments(rng)) for at in range(rng.choice([1, 2]))
            ]
            number += 1
            turns.append(Turn("assistant", (*text, *calls)))
            turns.append(Turn("tool", tuple(Result(call.id, call.name, make_result(rng)) for call in calls)))
        turns.append(Turn("assistant", (Text(f"Answer {number}. {rng.choice(WORDS)}"),)))
    if turns[-2].role == "tool" and rng.random() < 0.5:
        turns.pop()
    else:
        turns.append(Turn("user", (Text("And now?"),)))
    return Request(
        tuple(turns),
        tuple(Tool(name, f"Does {name}.", make_schema(rng)) for name in NAMES),
        rng.choice(["", "Be brief.\u2028Always."]),
        rng.choice([0, 100, 4096]),
        rng.choice(["", "0.5", "0.70"]),
        rng.choice(["", "low", "medium", "high"]),
        stream,
    )


def make_shape(rng: Random) -> str:
    """A format that every wire can express but for ``object``, which one does not have."""
    number = {"type": "number", "enum": [Num("1.0"), Num("2.50")]}
    inner = {"type": "object", "properties": {"a": number}, "required": ["a"], "additionalProperties": False}
    listed = {"type": "array", "items": rng.choice([inner, {"type": "string", "description": "é\u2028"}])}
    members = {name: rng.choice([number, inner, listed]) for name in rng.sample(["a", "b", "é"], rng.randrange(1, 4))}
    required = sorted(members)[: rng.randrange(4)]
    return dump({"type": "object", "properties": members, "required": required, "additionalProperties": False})


def make_answer(rng: Random) -> Answer:
    shape = rng.choice(SHAPES)
    parts: list[Call | Text | Reasoning] = []
    for at, kind in enumerate(shape):
        if kind == "c":
            parts.append(Call(f"call_new{at}", rng.choice(NAMES), make_arguments(rng)))
        else:
            parts.append(Text(make_text(rng)) if kind == "t" else Reasoning(f"Hmm. {make_text(rng)}"))
    finish = "tool_calls" if "c" in shape else rng.choice(["stop", "stop", "length"])
    usage = Usage(rng.randrange(100, 999), rng.randrange(50, 99), rng.choice([0, 64]), rng.choice([0, 20]))
    return Answer(tuple(parts), finish, usage)
