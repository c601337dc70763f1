"""Long texts are searched in windows: the same matches, and no search that is longer than one."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot.core import windowed_search as windows
from toolglot.core.normal_forms import normal_forms
from toolglot.core.text_cache import ENTRY_COST, TextCache
from toolglot.prompting.mark_escaping import get_mark_escaper

PATTERN = re.compile(r"<\w{1,6}>|\n *x(?=!)|b+")
PIECES = st.sampled_from(["<", "a", "b", "<ab>", ">", "\n ", "x", "!", "<abcdef>", " "])


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW", 16)
    monkeypatch.setattr(windows, "MAX_MATCH", 12)


@given(st.lists(PIECES, max_size=60).map("".join))
def test_windows_find_what_one_search_finds(text: str) -> None:
    text = re.sub(r" {4,}|b{9,}", "", text)  # a match is no longer than the overlap of two windows
    assert [found.span() for found in windows.find_all(PATTERN, text)] == [f.span() for f in PATTERN.finditer(text)]
    assert windows.replace_all(PATTERN, text, "-") == PATTERN.sub("-", text)


class _Counting:
    """A pattern that knows how far it was asked to look."""

    def __init__(self) -> None:
        self.longest = 0

    def search(self, text: str, start: int, end: int | None = None) -> None:
        self.longest = max(self.longest, (len(text) if end is None else end) - start)


def test_no_search_is_longer_than_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = _Counting()
    assert windows.search(pattern, "a" * 5000) is None  # type: ignore[arg-type]
    assert pattern.longest <= windows.WINDOW + windows.MAX_MATCH


def _count_searches(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> int:
    """How many windows some work looks at."""
    asked = 0
    search = windows.search

    def counting(pattern: re.Pattern[str], text: str, start: int = 0) -> re.Match[str] | None:
        nonlocal asked
        asked += 1 + (len(text) - start) // windows.WINDOW if start == 0 else 1
        return search(pattern, text, start)

    monkeypatch.setattr(windows, "search", counting)
    work()
    return asked


@pytest.mark.parametrize("unit", ["\n", " ", '"', "// ", '", "', "1: "])
def test_normal_forms_take_linear_work(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    small = _count_searches(monkeypatch, lambda: normal_forms("é" + unit * 400))
    large = _count_searches(monkeypatch, lambda: normal_forms("é" + unit * 4000))
    assert large <= 12 * small


def test_marks_are_found_across_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "MAX_MATCH", 2048)
    for before in range(90, 130):
        text = "x" * before + "<tool_call> read <read>" + "y" * 9000
        assert list(get_mark_escaper("hermes", ("read",)).find_positions(text)) == [before + 1, before + 18]


def test_texts_are_kept_within_a_bound() -> None:
    kept = TextCache[str](10 * (10 + ENTRY_COST))
    for number in range(50):
        kept.add(f"key {number}", "x" * 10)
        assert kept.get("key 0") is not None or number > 9
    assert kept.size == kept.max_characters and len(kept) == 10
    assert kept.get("key 0") is not None  # it was asked for again and again
    kept.add("long", "x" * kept.max_characters)
    kept.add("key 49", "y")
    assert kept.get("long") is None and kept.get("key 49") == "y" and kept.size == kept.max_characters - 9


def test_texts_in_keys_are_charged() -> None:
    kept = TextCache[str](10 * (20 + ENTRY_COST))
    for number in range(50):
        kept.add(f"{number:10}", "x" * 10, 10)
    assert kept.size == kept.max_characters and len(kept) == 10
    kept.add("x" * kept.max_characters, "", kept.max_characters)
    assert len(kept) == 10
