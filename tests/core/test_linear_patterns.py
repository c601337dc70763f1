"""Every regular expression of the product takes linear time, because a search cannot be interrupted.

The expressions are those that a process compiles while it imports the product and reads the marks of all dialects. Each is tried on texts
that are derived from it (``support.pattern_attacks``). One that is only ever matched at a position is tried there; one that searches
is tried from every position.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

from support.fuzz_reader import loop_marks
from support.pattern_attacks import MISFIT, find_attacks

import toolglot

SMALL, LARGE = 1_000, 4_000
"""Characters of an attack. Work that grows with the square takes 16 times as long."""
LIMIT = 9
NOISE = 0.003
"""Seconds below which nothing is measured."""
TRIES = 4
SEARCHING = re.compile(r"(?:search|finditer|findall|sub|subn|split)\(")
SHORT_TEXTS = {
    "toolglot.dialects.codecs.parameter_templates._SEPARATOR": "parts of samples of dialects",
    "toolglot.gateway.recovery.narrated_stops": "the end of an answer",
    "toolglot.reading.example_detection": "the 240 characters before a call",
    "toolglot.reading.phrases": "the same",
    "toolglot.console.export.IMPORT": "modules of the console itself",
    "toolglot.core.normal_forms._UNFINISHED": "the last 300 characters of a text",
    "toolglot.gateway.recovery.phrase_lists._CHOICE": "lists of words of the project itself",
}
"""Expressions that see only such texts."""
NO_MODEL_TEXT = ("toolglot.sim", "toolglot.cli", "toolglot.config")
"""Packages whose expressions see neither what a model wrote nor what a client sent."""


def list_modules() -> Iterator[str]:
    for module in pkgutil.walk_packages(toolglot.__path__, "toolglot."):
        if not module.name.startswith(NO_MODEL_TEXT) and not module.name.endswith("__main__"):
            yield module.name


def find_patterns() -> tuple[dict[str, re.Pattern[str]], set[str]]:
    """All expressions, and those of them that search: named ones by their use, others always only match."""
    compiled: dict[str, re.Pattern[str]] = {}
    compiler: Any = importlib.import_module("re._compiler")
    compile_one = compiler.compile

    def compile_and_note(pattern: str, flags: int = 0) -> re.Pattern[str]:
        made: re.Pattern[str] = compile_one(pattern, flags)
        if isinstance(made.pattern, str):
            compiled[made.pattern] = made
        return made

    compiler.compile = compile_and_note
    named: dict[str, re.Pattern[str]] = {}
    searching: set[str] = set()
    modules = {name: importlib.import_module(name) for name in list_modules()}
    everything = "\n".join(map(inspect.getsource, modules.values()))
    for name, module in modules.items():
        for attribute, value in vars(module).items():
            if not isinstance(value, re.Pattern) or not isinstance(value.pattern, str):
                continue
            if f"{name}.{attribute}".startswith(tuple(SHORT_TEXTS)):
                continue
            named[value.pattern] = value
            users = inspect.getsource(module) if attribute.startswith("_") else everything
            if re.search(rf"\b{attribute}\.{SEARCHING.pattern}", users):
                searching.add(value.pattern)
    compiled.clear()  # what was compiled so far is named, or belongs to other packages
    for _ in loop_marks(rounds=600, seed=5):
        pass
    return {**named, **compiled}, searching


def measure(pattern: re.Pattern[str], searches: bool, before: str, pump: str, size: int) -> float:
    text = before + pump * (size // len(pump) + 1) + MISFIT
    began = process_time()
    pattern.search(text) if searches else pattern.match(text)
    return process_time() - began


def grows_too_fast(pattern: re.Pattern[str], searches: bool, before: str, pump: str) -> bool:
    for _ in range(TRIES):
        large = measure(pattern, searches, before, pump, LARGE)
        if large < NOISE or large < LIMIT * measure(pattern, searches, before, pump, SMALL):
            return False
    return True


def main() -> None:
    patterns, searching = find_patterns()
    print(len(patterns), "expressions,", len(searching), "of them search")
    for written, pattern in patterns.items():
        for before, pump in find_attacks(pattern):
            if measure(pattern, written in searching, before, pump, 60) > 1:
                print(f"EXPONENTIAL {written[:300]!r}: {before[:40]!r} and {pump[:40]!r}", flush=True)
                break
            if grows_too_fast(pattern, written in searching, before, pump):
                print(f"SLOW {written[:300]!r}: {before[:40]!r} and {pump[:40]!r}", flush=True)
                break


def test_every_expression_is_linear() -> None:
    """In a process of its own: it counts what is compiled there, and none of it by other tests."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[2], env={"PYTHONPATH": "tests"})  # fmt: skip
    assert not done.returncode, done.stderr
    count, *slow = done.stdout.splitlines()
    assert int(count.split()[0]) > 200 and not slow, "\n".join(slow)


if __name__ == "__main__":
    main()
