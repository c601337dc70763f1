from __future__ import annotations

import inspect
import re

import pytest

from toolglot.core import errors
from toolglot.core.errors import (
    ClientError,
    InternalError,
    ToolglotError,
    ToolSchemaError,
    UnknownModelError,
    UpstreamError,
    UsageError,
)


def error_classes() -> dict[str, type[ToolglotError]]:
    return {
        name: cls
        for name, cls in inspect.getmembers(errors, inspect.isclass)
        if cls.__module__ == errors.__name__ and issubclass(cls, ToolglotError)
    }


def test_the_tree_at_the_top_of_the_file_is_the_real_one() -> None:
    drawn: dict[str, str] = {}
    above: list[str] = []
    for stem, name in re.findall(r"^ {4}([│├└─ ]*)(\w+Error)\b", errors.__doc__ or "", re.MULTILINE):
        depth = len(stem) // 4
        above[depth:] = [name]
        drawn[name] = above[depth - 1] if depth else "Exception"
    assert drawn == {name: cls.__bases__[0].__name__ for name, cls in error_classes().items()}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ClientError("x"), 400),
        (UsageError("x"), 400),
        (UnknownModelError("x"), 404),
        (ToolSchemaError("t", "parameters", "x"), 400),
        (UpstreamError("x"), 502),
        (InternalError("x"), 500),
    ],
)
def test_the_branch_of_an_error_decides_its_status(error: ToolglotError, status: int) -> None:
    assert error.status == status
    assert error.message == str(error)


def test_a_schema_error_names_the_tool_and_the_place() -> None:
    error = ToolSchemaError("read_file", "parameters.properties.path", "is not an object")
    assert str(error) == "tool read_file: parameters.properties.path: is not an object"
    assert (error.tool, error.path, error.problem) == ("read_file", "parameters.properties.path", "is not an object")
