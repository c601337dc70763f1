"""Tests with ``in_one_test``: every row is checked, and the report names those that fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.rows import in_one_test

SEEN: list[tuple[int, str]] = []


@in_one_test(("number", "text"), [(1, "a"), (2, "b"), (3, "c")])
def check_all(number: int, text: str) -> None:
    SEEN.append((number, text))
    assert number == 2, "not two"


def test_every_row_is_checked_and_named() -> None:
    SEEN.clear()
    with pytest.raises(pytest.fail.Exception) as caught:
        check_all()
    assert SEEN == [(1, "a"), (2, "b"), (3, "c")]
    report = str(caught.value)
    assert report.startswith("2 of 3 rows failed: 1-'a', 3-'c'\n")
    assert report.count("AssertionError: not two") == 2 and "in check_all" in report


@in_one_test("text", ["x", "y"], ids=["first", "second"])
@in_one_test("number", [1, 2], ids=lambda number: f"n{number}")
def check_pairs(number: int, text: str, tmp_path: Path) -> None:
    (tmp_path / f"{number}{text}").touch()
    if (number, text) == (2, "y"):
        pytest.fail("this pair")


def test_rows_are_combined_and_fixtures_are_shared(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        check_pairs(tmp_path=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1x", "1y", "2x", "2y"]
    report = str(caught.value)
    assert "1 of 2 rows failed: second\n" in report and "1 of 2 rows failed: n2\n" in report and "this pair" in report


@in_one_test("number", [0, 1, pytest.param(2, id="two")])
def test_a_test_with_rows_gets_its_fixtures(number: int, tmp_path: Path) -> None:
    assert number < 3 and tmp_path.is_dir()


@in_one_test(
    ("number", "text"), [(1, "a"), (2, "b"), (3, "c")], by=lambda number, text: "odd" if number % 2 else "even"
)
def check_groups(number: int, text: str) -> None:
    assert text == "a"


def test_rows_in_groups() -> None:
    [mark] = check_groups.pytestmark  # type: ignore[attr-defined]
    assert (mark.name, mark.args) == ("parametrize", ("group", ["odd", "even"]))
    with pytest.raises(pytest.fail.Exception, match=r"^1 of 2 rows failed: 3-'c'\n"):
        check_groups(group="odd")
    with pytest.raises(pytest.fail.Exception, match=r"^1 of 1 rows failed: 2-'b'\n"):
        check_groups(group="even")


def test_each_row_is_a_test_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EACH_ROW", "1")
    mark = in_one_test("number", [1, 2], ids=["one", "two"])
    assert isinstance(mark, pytest.MarkDecorator)
    assert mark.name == "parametrize" and mark.args == ("number", [1, 2]) and mark.kwargs == {"ids": ["one", "two"]}


def test_a_table_without_rows_is_refused() -> None:
    with pytest.raises(AssertionError, match="no rows for number"):
        in_one_test("number", [])
    with pytest.raises(AssertionError, match="1 ids for 2 rows"):
        in_one_test("number", [1, 2], ids=["one"])
    with pytest.raises(AssertionError, match="cannot have marks"):
        in_one_test("number", [pytest.param(1, marks=pytest.mark.skip)])
