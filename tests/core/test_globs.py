"""Globs match as those of ``fnmatch`` do, and compile nothing if they have only asterisks."""

from __future__ import annotations

import random
import re
from fnmatch import fnmatchcase

import pytest

from toolglot.core.globs import matches_glob


def test_globs_match_as_those_of_fnmatch() -> None:
    chance = random.Random(3)
    matched = 0
    for _ in range(20_000):
        glob = "".join(chance.choices("ab*?[]!.-\n", (9, 9, 9, 1, 1, 1, 1, 2, 2, 1), k=chance.randrange(8)))
        text = "".join(chance.choices("ab.-*\n", k=chance.randrange(8)))
        text = glob.replace("*", text, 1) if chance.random() < 0.5 else text
        expected = fnmatchcase(text, glob)
        assert matches_glob(text, glob) == expected, (text, glob)
        matched += expected
    assert matched > 1_000


def test_asterisks_compile_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr(re, "compile", refuse)
    assert matches_glob("qwen3-coder-480b", "qwen*-coder*")
    assert not matches_glob("qwen3", "never-seen-*-before")
