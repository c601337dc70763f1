"""Values that prompts make up: how they are made, and that each is found in a call, whatever the model does to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from support.rows import in_one_test

from toolglot.core.made_up_values import (
    FIXED,
    KEEP,
    LOOKS_MADE_UP,
    WRITE,
    find_made_up,
    find_open_end,
    list_made_up,
    make_number,
    make_word,
)

WORD, NUMBER = make_word("read", "path"), str(make_number("read", "offset"))
COPIES = (
    *(WORD, WORD.upper(), WORD.title(), f"src/{WORD}/x.py", f"{WORD.capitalize()}Service", f"rm -rf {WORD}"),
    *(f"\\u007A{WORD[1:]}", f"z\\u0071{WORD[2:]}", NUMBER, f"--port={NUMBER}.5"),
    *(*FIXED, KEEP.format("path"), WRITE.format("path").upper()),
)
OTHERS = (
    "zq",
    f"{WORD[:-1]}x",
    f"1{NUMBER}",
    f"{NUMBER}1",
    "721900000",
    "7219",
    "7219-04-18",
    "[... keep going]",
    "zqueue",
)


@in_one_test("copy", COPIES)
def test_a_made_up_value_is_found_in_whole_arguments_and_in_pieces(copy: str) -> None:
    arguments = f'{{"a":{{"list":["{copy}"]}}}}'
    found = find_made_up(arguments)
    assert found is not None and LOOKS_MADE_UP(arguments) and arguments[: found.start].startswith('{"a":{"list":["')
    assert find_made_up(arguments, {found.value}) is None, "it is the user's own"
    for cut in range(found.start + 1, found.start + len(found.value)):
        assert LOOKS_MADE_UP(arguments[:cut]), "the end is looked at"
        assert find_open_end(arguments[:cut]) <= found.start or find_made_up(arguments[:cut]), arguments[:cut]


@in_one_test("text", OTHERS)
def test_other_values_are_not_found(text: str) -> None:
    assert find_made_up(json.dumps({"a": text})) is None
    assert find_open_end(f'{{"a":"{text}"}}') == len(text) + 8


def test_values_of_one_parameter_differ() -> None:
    assert len({make_word("a", "b", number=number) for number in range(1000)}) == 1000
    assert len({make_number("a", "b", number=number) for number in range(100)}) == 100


def test_values_are_the_same_in_every_process() -> None:
    program = "from toolglot.core.made_up_values import *; print(make_word('a', 'b'), make_number('a', 'b'))"
    made = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert made == {f"{make_word('a', 'b')} {make_number('a', 'b')}\n"}


def test_values_in_the_conversation_are_listed() -> None:
    assert list_made_up(f"Rename {WORD.upper()} to {NUMBER}.") == {WORD, NUMBER}
    assert list_made_up("Rename zqueue to 7219.") == frozenset()
