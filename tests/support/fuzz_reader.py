"""Fuzz target: any bytes, cut anywhere, must be read without an exception, without loss and in one way only.

Run it alone with ``python tests/fuzz_reader.py``. With atheris installed that is coverage-guided fuzzing (its usual
command line applies); without it a seeded loop over jumbled marks: ``python tests/fuzz_reader.py [ROUNDS] [SEED]``.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from random import Random
from typing import Any

import toolglot
from support.fragments import fragments, snippets
from support.samples import load_tools, random_cuts, read_events
from toolglot.core.events import CallEnded, CallRejected, ReasoningDelta, TextDelta


def check(text: str, seed: int, *, truncated: bool = False) -> None:
    """Raise ``AssertionError`` (or whatever the reader raises) if the text is not read as it must be."""
    options: dict[str, Any] = {
        "tools": load_tools("house"),
        "truncated": truncated,
        "unknown_tools": ("allow", "text", "reject")[seed % 3],
        "parallel": seed % 5 != 0,
    }
    events = read_events([text], **options)
    assert read_events(random_cuts(text, seed), **options) == events, f"chunking matters: {text!r}"
    kept = any(
        isinstance(event, CallEnded | CallRejected)
        or (isinstance(event, TextDelta | ReasoningDelta) and event.text.strip())
        for event in events
    )
    answer_text = text.replace("<think>", "").replace("</think>", "")  # marks that hold nothing
    assert kept or not answer_text.strip(), f"everything is lost: {text!r}"
    for call in toolglot.read(text, **options).calls:
        assert isinstance(json.loads(call.arguments), dict), call


def jumble(random: Random) -> str:
    """A random text: marks, pieces of samples, a sample with a few characters changed, or noise."""
    kind = random.random()
    if kind < 0.5:
        return "".join(random.choices(fragments(), k=random.randrange(40)))
    text = "".join(random.choices(snippets(), k=random.randrange(1, 4)))
    if kind < 0.7:
        return text
    characters = list(text)
    for _ in range(random.randrange(1, 8)):
        place = random.randrange(len(characters) + 1)
        characters[place : place + random.randrange(3)] = random.choice(fragments())
    return "".join(characters)


def loop(rounds: int, seed: int) -> None:
    random = Random(seed)
    for number in range(rounds):
        text = jumble(random)
        try:
            check(text, number, truncated=bool(number % 2))
        except Exception:
            print(f"round {number} of seed {seed}: {text!r}", file=sys.stderr)
            raise


def fuzz_one(data: bytes) -> None:
    check(data[1:].decode("utf-8", "surrogateescape"), data[0] if data else 0, truncated=bool(data and data[0] & 128))


def main() -> None:
    try:
        atheris = import_module("atheris")
    except ImportError:
        rounds, seed = (*map(int, sys.argv[1:]), *(20_000, 0)[len(sys.argv) - 1 :])
        loop(rounds, seed)
        return
    atheris.instrument_all()
    atheris.Setup(sys.argv, fuzz_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
