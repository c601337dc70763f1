"""xgrammar's own compiler and matcher; tests that need them are skipped where they are not installed.

The package imports PyTorch, which neither of the two needs. So their library is loaded without the package.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_CLASSES = ("Grammar", "GrammarCompiler", "CompiledGrammar", "GrammarMatcher", "TokenizerInfo")

needs_xgrammar = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("xgrammar", "tvm_ffi"))), reason="xgrammar is not installed"
)


@cache
def _load() -> dict[str, Any]:
    """The classes of the library."""
    runtime = importlib.import_module("tvm_ffi")
    package = importlib.util.find_spec("xgrammar")
    folders = (package.submodule_search_locations if package else None) or ()
    [library] = [file for folder in folders for file in Path(folder).glob("libxgrammar_bindings.*")]
    runtime.load_module(str(library))
    return {
        name: runtime.register_object(f"xgrammar.tvm_ffi_binding.{name}")(type(name, (runtime.Object,), {}))
        for name in _CLASSES
    }


@cache
def _compiler() -> Any:
    classes = _load()
    without_tokens = classes["TokenizerInfo"]([], 0, None, None, False)
    return classes["GrammarCompiler"](without_tokens, 1, False, -1)


class Matcher:
    """Tells whether a text follows a compiled grammar, to its end."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled

    @classmethod
    def of_tag(cls, structural_tag: Mapping[str, Any]) -> Matcher:
        return cls(_compiler().compile_structural_tag(json.dumps({"type": "structural_tag", "format": structural_tag})))

    @classmethod
    def of_grammar(cls, source: str) -> Matcher:
        return cls(_compiler().compile_grammar_ebnf(_load()["Grammar"].from_ebnf(source, "root")))

    @classmethod
    def of_schema(cls, schema: Mapping[str, Any]) -> Matcher:
        return cls.of_tag({"type": "json_schema", "json_schema": schema})

    def accepts(self, text: str) -> bool:
        matcher = _load()["GrammarMatcher"](self.compiled, None, True, -1, None)
        return bool(matcher.accept_string(text.encode(), False)) and bool(matcher.is_completed())
