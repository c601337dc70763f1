"""Fuzz target: any text, cut anywhere, is read to its end, without an exception, without loss and in one way only.

Two kinds of texts are made from a seed. ``jumble`` mixes pieces of samples. ``mangle`` takes the marks of all dialects in turn: whole,
cut after any character, repeated, with random text between them. Each text is read under an alarm, and the reader's own count of
steps must not end: a reader that makes no progress is an error even though it gives up by itself.

``make fuzz-reader`` runs it alone and prints the slowest texts: ``python tests/support/fuzz_reader.py [ROUNDS] [SEED]``. With atheris
installed ``python tests/support/fuzz_reader.py --atheris`` is coverage-guided fuzzing, with the command line of atheris.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from time import process_time
from types import FrameType
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

import toolglot
from support.fragments import LOOSE, fragments, snippets
from support.samples import load_tools, random_cuts, read_events
from toolglot.core.events import CallEnded, CallRejected, ReasoningDelta, TextDelta
from toolglot.core.schema.toolset import CompiledTools, compile_declared
from toolglot.dialects.mark_templates import SLOTS, TOKEN
from toolglot.dialects.scanner import FIRST_STEPS, STEPS_PER_CHARACTER
from toolglot.dialects.spec import Dialect
from toolglot.reading.plugins import known_dialects

ALARM_SECONDS = 20
"""Seconds that one text may take; the slowest takes some milliseconds."""

SLOW = 3e-5
"""Seconds for each character from which on a text is measured again."""
SHORT = 20
"""Characters: what a shorter text costs is not what its characters cost."""

SLOT_TEXTS: dict[str, tuple[str, ...]] = {
    **{slot: ("save_note", "list_sensors", "nothing_like_it") for slot in SLOTS if slot.startswith("name")},
    "recipient": (" functions.save_note", " save_note"),
    "name_parallel": ("multi_tool_use.parallel",),
    "name_group": ("parameters",),
    "snake": ("save_note",),
    "key": ("path", "body", "other"),
    "key_plain": ("path", "body", "other"),
    "key_loose": ("path", "body"),
    "quoted": ("path", "save_note"),
    "quoted_once": ("path", "save_note"),
    "id": ("functions.save_note:0", "call_1"),
    "command": ("ls -l",),
    "type": ("string", "integer"),
    "index": ("0", "1"),
    "q": ('"', "'", ""),
    "sign": ("_", "."),
    "bar": ("|", "｜"),
    "gt": (">", "＞"),
    "gap": ("▁", "_"),
    "marker": ("tool_call", "TOOL"),
    "own_role": ("assistant",),
    "slash": ("/", ""),
    "ing": ("ing", ""),
    "item": ("- ", "1. "),
    "language": ("json", ""),
    "one_comment": ("// a\n", "# b\n"),
    "words": ("a word", ""),
    "stray": (".",),
    "operator": ("+", " or "),
}
"""What slots of marks are filled with; slots that may be empty, and lookaheads, are not listed."""

VALUES = (
    "a.py",
    "1",
    "null",
    '"x"',
    "[1, 2]",
    '{"path": "a.py", "body": "b"}',
    '"path": "a.py"',
    '{"name": "save_note", ',
    "path='a', ",
)


class Hang(AssertionError):
    """A text was not read in time."""


@contextmanager
def alarm(seconds: int = ALARM_SECONDS) -> Iterator[None]:
    """Raise ``Hang`` in the main thread if the block takes longer."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hang(f"not read within {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# -- texts ---------------------------------------------------------------------------------------------------------------------


def list_templates(dialect: Dialect) -> Iterator[str]:
    """The templates of all marks of a dialect."""
    for wrap in dialect.wrap:
        yield from (*wrap.open, *wrap.close)
    for region in dialect.regions:
        yield from (*region.open, *region.close)
    yield from (*dialect.results, *dialect.turns, *dialect.noise)
    for call in dialect.calls:
        yield from (*call.header, *call.close)
        for parameter in getattr(call.body, "parameters", ()):
            yield from (parameter.open, *parameter.close)


def _fill(template: str, choice: int) -> str:
    """A mark as it is written, with one of the texts for each slot."""

    def fill_slot(token: re.Match[str]) -> str:
        if token[1]:
            texts = SLOT_TEXTS.get(token[1], ("",))
            return texts[choice % len(texts)]
        return {"{{": "{", "}}": "}"}.get(token[0], token[0])

    return TOKEN.sub(fill_slot, template)


@cache
def marks() -> tuple[tuple[str, ...], ...]:
    """The marks of each dialect, and the samples of calls in it."""
    found = []
    for dialect in known_dialects():
        filled = dict.fromkeys(_fill(template, choice) for template in list_templates(dialect) for choice in range(3))
        call = toolglot.write("save_note", {"path": "src/a.py", "body": "x = [1]\n</y>"}, dialect.name)
        found.append((*filter(str.strip, filled), dialect.sample, call))
    return tuple(found)


def mangle(random: Random, number: int) -> str:
    """Marks of one dialect, sometimes of two: each whole, cut or repeated, with random text between them."""
    dialects = marks()
    own = dialects[number % len(dialects)]
    first = own[number // len(dialects) % len(own)]
    pieces = []
    for piece in (first, *random.choices(own, k=random.randrange(6))):
        if random.random() < 0.1:
            piece = random.choice(random.choice(dialects))
        if random.random() < 0.4:
            piece = piece[: random.randrange(len(piece)) + 1]
        if random.random() < 0.1:
            piece = piece[random.randrange(len(piece)) :]
        if random.random() < 0.15:
            piece *= random.choice((2, 3, 7, 40))
        pieces += [piece, _glue(random)]
    return "".join(pieces)


def _glue(random: Random) -> str:
    kind = random.random()
    if kind < 0.02:
        return random.choice((" ", "\n", " \n", "\\", '"', "<", "[", "{", "-", "`", "a", "1")) * random.choice(
            (60, 400, 3000)
        )
    if kind < 0.3:
        return random.choice(("", " ", "\n"))
    if kind < 0.6:
        return random.choice(VALUES)
    return "".join(random.choices(LOOSE if kind < 0.9 else fragments(), k=random.randrange(4)))


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


# -- checks --------------------------------------------------------------------------------------------------------------------


@cache
def _tools() -> CompiledTools:
    return compile_declared(load_tools("house"), ())


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


def check_progress(text: str, seed: int) -> tuple[float, int]:
    """Read the text, sometimes in pieces too. Returns the CPU seconds and steps for the whole text.

    Raises ``AssertionError`` if the reader gives up.
    """
    options: dict[str, Any] = {"unknown_tools": ("allow", "text", "reject")[seed % 3]}
    truncated = seed % 2 == 0
    if seed % 4 == 0:
        pieces = toolglot.Reader(_tools(), **options)
        for chunk in random_cuts(text, seed):
            pieces.feed(chunk)
        pieces.close(truncated)
        assert not pieces.is_stuck, f"no progress in pieces: {text!r}"
    reader = toolglot.Reader(_tools(), **options)
    began = process_time()
    reader.feed_last(text, truncated)
    taken = process_time() - began
    assert not reader.is_stuck, f"no progress: {text!r}"
    return taken, FIRST_STEPS + STEPS_PER_CHARACTER * len(text) - reader._source.steps


def loop(rounds: int, seed: int) -> None:
    """Read jumbled texts and compare what is read of them in several ways."""
    random = Random(seed)
    for number in range(rounds):
        text = jumble(random)
        with _reported(number, seed, text), alarm():
            check(text, number, truncated=bool(number % 2))


def loop_marks(rounds: int, seed: int) -> Iterator[tuple[float, float, str]]:
    """Read mangled marks. Yields CPU seconds and steps for each character, and the text."""
    random = Random(seed)
    for number in range(rounds):
        text = mangle(random, number + seed * 7919)
        with _reported(number, seed, text), alarm():
            taken, steps = check_progress(text, number)
            if taken > SLOW * len(text):  # perhaps something was compiled for the first time
                taken = min(check_progress(text, number)[0] for _ in range(3))
        size = max(len(text), SHORT)
        yield taken / size, steps / size, text


@contextmanager
def _reported(number: int, seed: int, text: str) -> Iterator[None]:
    try:
        yield
    except Exception:
        print(f"round {number} of seed {seed}: {text!r}", file=sys.stderr)
        raise


def fuzz_one(data: bytes) -> None:
    check(data[1:].decode("utf-8", "surrogateescape"), data[0] if data else 0, truncated=bool(data and data[0] & 128))


def main() -> None:
    if "--atheris" in sys.argv:
        sys.argv.remove("--atheris")
        atheris = import_module("atheris")
        atheris.instrument_all()
        atheris.Setup(sys.argv, fuzz_one)
        atheris.Fuzz()
    rounds, seed = (*map(int, sys.argv[1:]), *(20_000, 0)[len(sys.argv) - 1 :])
    slowest: list[tuple[float, float, str]] = []
    busiest: list[tuple[float, float, str]] = []
    for measured in loop_marks(rounds, seed):
        slowest = sorted((*slowest, measured), reverse=True)[:5]
        busiest = sorted((*busiest, measured), key=lambda one: -one[1])[:5]
    print(f"{rounds:,} texts of seed {seed}: all are read to their end")
    for title, found in (("slowest", slowest), ("most steps", busiest)):
        for seconds, steps, text in found:
            print(
                f"{title}: {seconds * 1e6:.1f} us and {steps:.1f} steps a character, {len(text)} characters: {text[:100]!r}"
            )


if __name__ == "__main__":
    main()
