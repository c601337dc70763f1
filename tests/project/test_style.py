"""Limits of the code: sizes, complexity, names, duplication, and what may not be in the files at all."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from statistics import mean
from typing import TypeAlias

import pytest
from radon.complexity import cc_visit
from radon.visitors import Function
from support.source_tables import parse_source

import toolglot

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

FILE_LINES = 800
FUNCTION_LINES = 60
COMPLEXITY = 15
MEAN_COMPLEXITY = 4
REPEATED_SHARE = 0.03
WINDOW = 6

HOLLOW_WORDS = {"manager", "handler", "service", "processor", "helper", "util", "base", "impl"}
WORD = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home/(?!user\b)|root/|work/|Users/)[\w.-]+")
REGISTRY = re.compile(r"(?:pypi|pythonhosted|npmjs|yarnpkg|crates|rubygems|anaconda)\.(?:org|com|io)\b|index-url")
SERVER_MODULES = {
    "aiohttp",
    "asyncio",
    "httptools",
    "httpx",
    "prometheus_client",
    "starlette",
    "uvicorn",
    "uvloop",
}

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def definitions(path: Path) -> Iterator[Definition]:
    for node in ast.walk(parse_source(path)):
        if isinstance(node, Definition):
            yield node


def test_there_are_sources_to_look_at() -> None:
    assert ROOT / "src/toolglot/core/events.py" in SOURCES


def test_no_file_is_too_long() -> None:
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in SOURCES}
    assert {name: length for name, length in lengths.items() if length > FILE_LINES} == {}


def test_no_function_is_too_long() -> None:
    lengths = {
        f"{name_of(path)}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in SOURCES
        for node in definitions(path)
        if not isinstance(node, ast.ClassDef)
    }
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LINES} == {}


def test_complexity_stays_low() -> None:
    measured = {
        f"{name_of(path)}:{block.lineno} {block.name}": block.complexity
        for path in SOURCES
        for block in cc_visit(path.read_text("utf-8"))
        if isinstance(block, Function)
    }
    assert {name: complexity for name, complexity in measured.items() if complexity > COMPLEXITY} == {}
    assert mean(measured.values()) <= MEAN_COMPLEXITY


def hollow_words(name: str) -> set[str]:
    words = {word.lower() for word in WORD.findall(name)}
    return {word for word in words if word in HOLLOW_WORDS or word.removesuffix("s") in HOLLOW_WORDS}


def test_names_are_split_into_words() -> None:
    assert hollow_words("JSONHandler") == {"handler"}
    assert hollow_words("_str_utils") == {"utils"}
    assert hollow_words("BaseReader2") == {"base"}
    assert hollow_words("decode_base64_database") == set()


def test_no_name_is_hollow() -> None:
    modules = {name_of(path): hollow_words(path.stem) for path in SOURCES}
    defined = {
        f"{name_of(path)}:{node.lineno} {node.name}": hollow_words(node.name)
        for path in SOURCES
        for node in definitions(path)
    }
    assert {name: words for name, words in (modules | defined).items() if words} == {}


@pytest.mark.parametrize("use", ["import toolglot", "from toolglot.cli.main import build_parser; build_parser()"])
def test_library_and_command_line_pull_in_no_server_module(use: str) -> None:
    program = f"import sys; {use}; print(sorted({SERVER_MODULES!r} & set(sys.modules)))"
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"


def project_texts() -> Iterator[Path]:
    folders = ("src", "docs", ".ci", "bench")
    inside = chain.from_iterable((ROOT / folder).rglob("*") for folder in folders)
    for path in chain(inside, ROOT.glob("*.md"), (ROOT / "Makefile", ROOT / "pyproject.toml")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def places(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name_of(path)}:{number} {found.group()}"
        for path in project_texts()
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for found in pattern.finditer(line)
    ]


def test_no_path_of_one_machine_is_written_down() -> None:
    assert places(MACHINE_PATH) == []


def test_no_package_registry_is_named() -> None:
    assert places(REGISTRY) == []


def comparable_lines(text: str) -> list[tuple[int, str]]:
    """The lines worth comparing: no blank ones, no lone brackets, no imports."""
    stripped = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [
        (number, line)
        for number, line in stripped
        if sum(map(str.isalnum, line)) > 2 and not line.startswith(("import ", "from "))
    ]


def repeated_lines(texts: Iterable[tuple[str, str]]) -> tuple[set[tuple[str, int]], int]:
    """Lines that stand in a run of WINDOW lines seen before, and the number of lines looked at."""
    first_seen: dict[tuple[str, ...], tuple[str, int]] = {}
    repeated: set[tuple[str, int]] = set()
    total = 0
    for name, text in texts:
        lines = comparable_lines(text)
        total += len(lines)
        for start in range(len(lines) - WINDOW + 1):
            window = lines[start : start + WINDOW]
            seen_in, seen_at = first_seen.setdefault(tuple(line for _, line in window), (name, start))
            if seen_in != name or start - seen_at >= WINDOW:
                repeated.update((name, number) for number, _ in window)
    return repeated, total


def test_a_copied_run_of_lines_is_found() -> None:
    run = "\n".join(f"line_{number} = {number}" for number in range(8))
    repeated, total = repeated_lines([("a", run), ("b", f"import os\nother = 1\n{run}\n)\n")])
    assert total == 17
    assert {name for name, _ in repeated} == {"b"}
    assert {number for _, number in repeated} == set(range(3, 11))
    assert repeated_lines([("a", "same = 1\n" * 8)])[0] == set()


def test_little_code_is_duplicated() -> None:
    repeated, total = repeated_lines((name_of(path), path.read_text("utf-8")) for path in SOURCES)
    by_file: dict[str, list[int]] = defaultdict(list)
    for name, number in sorted(repeated):
        by_file[name].append(number)
    assert len(repeated) <= REPEATED_SHARE * total, dict(by_file)


def test_public_names_exist_and_are_documented() -> None:
    assert len(set(toolglot.__all__)) == len(toolglot.__all__)
    public = {name: getattr(toolglot, name) for name in toolglot.__all__}
    received = {
        name: thing.__doc__ for name, thing in public.items() if inspect.isclass(thing) or inspect.isroutine(thing)
    }
    assert [name for name, doc in received.items() if not doc] == []
    assert toolglot.__doc__
