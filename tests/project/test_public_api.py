"""The public API: what ``toolglot`` exports, documented and typed."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.resources import files
from types import UnionType
from typing import Any, get_args, get_type_hints

import pytest
from support.rows import in_one_test

import toolglot

EXPORTS = [
    "Call",
    "CallArguments",
    "CallEnded",
    "CallRejected",
    "CallStarted",
    "ClientError",
    "Defect",
    "Dialect",
    "Event",
    "Options",
    "Reader",
    "Reading",
    "Reason",
    "ReasoningDelta",
    "RejectedCall",
    "Speech",
    "TextDelta",
    "ToolSchemaError",
    "ToolglotError",
    "UsageError",
    "feedback",
    "list_dialects",
    "read",
    "speak",
    "teach",
    "write",
]
ALIASES = {"Event"}
"""Unions of classes; a union has no docstring."""
FUNCTIONS = [name for name in EXPORTS if inspect.isfunction(getattr(toolglot, name, None))]
CLASSES = [name for name in EXPORTS if inspect.isclass(getattr(toolglot, name, None))]


def test_exactly_these_names_are_exported() -> None:
    assert toolglot.__all__ == EXPORTS
    assert {*FUNCTIONS, *CLASSES, *ALIASES} == set(EXPORTS)


def test_a_star_import_brings_exactly_these_names() -> None:
    namespace: dict[str, Any] = {}
    exec("from toolglot import *", namespace)
    assert namespace.keys() - {"__builtins__"} == set(EXPORTS)


@in_one_test("name", [*FUNCTIONS, *CLASSES])
def test_every_export_has_its_own_docstring(name: str) -> None:
    export = getattr(toolglot, name)
    docstring = vars(export).get("__doc__") if inspect.isclass(export) else export.__doc__
    assert docstring, f"{name} has no docstring"
    assert not docstring.startswith(f"{export.__name__}("), f"{name}: the docstring is generated"


@pytest.mark.parametrize("name", sorted(ALIASES))
def test_the_members_of_a_union_are_documented(name: str) -> None:
    alias = getattr(toolglot, name)
    assert isinstance(alias, UnionType) or get_args(alias)
    for member in get_args(alias):
        assert member.__doc__, member


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_signatures_of_functions_are_annotated(name: str) -> None:
    assert_annotated(getattr(toolglot, name), name)


@in_one_test("name", CLASSES)
def test_the_public_methods_of_classes_are_annotated(name: str) -> None:
    for attribute, value in vars(getattr(toolglot, name)).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if inspect.isfunction(function) and not attribute.startswith("_"):
            assert_annotated(function, f"{name}.{attribute}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_annotations_of_functions_resolve(name: str) -> None:
    assert "return" in get_type_hints(getattr(toolglot, name))


def assert_annotated(function: Any, name: str) -> None:
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty, f"{name} has no return annotation"
    for parameter in signature.parameters.values():
        is_annotated = parameter.annotation is not inspect.Parameter.empty
        assert is_annotated or parameter.name in ("self", "cls"), f"{name}: {parameter.name} is not annotated"


def test_the_package_is_marked_as_typed() -> None:
    assert files("toolglot").joinpath("py.typed").is_file()


def test_the_library_needs_no_server_dependency() -> None:
    code = "import sys, toolglot; print([name for name in ('aiohttp', 'uvloop', 'httptools', 'jsonschema_rs') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
