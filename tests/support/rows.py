"""Many small cases in one test: pytest takes longer to start a test than most of them need.

``@in_one_test`` takes the place of ``@pytest.mark.parametrize``. Every row is checked, also behind one that fails, and the report
names all that fail. All rows share the other fixtures of the test. ``EACH_ROW=1 pytest tests/...`` makes a test of each row,
which ``-k`` can select.
"""

from __future__ import annotations

import functools
import inspect
import os
import textwrap
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

import pytest

SHOWN = 10
"""Failures that are shown with their traceback; the others with their last line."""

PARAM = type(pytest.param(0))
Row = TypeVar("Row")
CheckFunction: TypeAlias = Callable[..., None]
Names: TypeAlias = Iterable[str] | Callable[[Any], Any] | None


def in_one_test(
    arguments: str | Sequence[str], values: Iterable[Any], ids: Names = None, by: Callable[..., str] | None = None
) -> Callable[[CheckFunction], CheckFunction]:
    """Call a test with each of the values, all in one test; the parameters are those of ``pytest.mark.parametrize``.

    With ``by`` it is a test for each group of rows: ``by`` gets the values of a row and returns the name of its group.
    """
    values = list(values)
    assert values, f"no rows for {arguments}"
    assert not any(value.marks for value in values if isinstance(value, PARAM)), "a row cannot have marks"
    if os.environ.get("EACH_ROW"):
        return pytest.mark.parametrize(arguments, values, ids=ids if ids is None or callable(ids) else list(ids))
    names = [name.strip() for name in arguments.split(",")] if isinstance(arguments, str) else list(arguments)
    cases = [dict(zip(names, _unpack(value, len(names)), strict=True)) for value in values]
    labels: list[object] = [value.id if isinstance(value, PARAM) else None for value in values]
    if ids is not None and not callable(ids):
        labels = list(ids)
        assert len(labels) == len(cases), f"{len(labels)} ids for {len(cases)} rows"
    groups: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        groups.setdefault(by(*case.values()) if by else "", []).append(number)

    def decorate(test: CheckFunction) -> CheckFunction:
        @functools.wraps(test)
        def check_group(group: str = "", **fixtures: Any) -> None:
            check_rows(
                groups[group],
                lambda number: test(**fixtures, **cases[number]),
                lambda number: str(labels[number] or "") or _label(cases[number], ids),
            )

        own = inspect.signature(test)
        others = [parameter for name, parameter in own.parameters.items() if name not in names]
        group = [inspect.Parameter("group", inspect.Parameter.KEYWORD_ONLY)] if by else []
        check_group.__signature__ = own.replace(parameters=[*others, *group])  # type: ignore[attr-defined]
        return pytest.mark.parametrize("group", list(groups))(check_group) if by else check_group

    return decorate


def check_rows(values: Iterable[Row], check: Callable[[Row], None], name: Callable[[Row], str] = str) -> None:
    """Check each of the values within a test, and fail with the names of all that do not pass."""
    failed, count = [], 0
    for count, value in enumerate(values, 1):  # noqa: B007
        try:
            check(value)
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # to skip one would skip the rest
            failed.append((name(value), error))
    assert count, "no rows"
    if failed:
        pytest.fail(_report(failed, count), pytrace=False)


def _unpack(value: Any, count: int) -> Sequence[Any]:
    if isinstance(value, PARAM):
        return value.values
    return value if count > 1 else (value,)


def _label(case: dict[str, Any], ids: Names) -> str:
    """What a row without an id is called: its values."""
    shown = []
    for value in case.values():
        text = ids(value) if callable(ids) else None
        shown.append(str(text) if text is not None else textwrap.shorten(repr(value), 200))
    return "-".join(shown)


def _report(failed: Sequence[tuple[str, BaseException]], count: int) -> str:
    listed = [f"{len(failed)} of {count} rows failed: {', '.join(label for label, _ in failed)}"]
    for number, (label, error) in enumerate(failed):
        shown = traceback.format_exception(error) if number < SHOWN else traceback.format_exception_only(error)
        listed.append(f"-- row {label}\n{''.join(shown)}")
    return "\n".join(listed)
