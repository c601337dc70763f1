"""Reads and writes YAML. Imported only when a call is YAML: the library is slow to load."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from toolglot.core.lenient_json import Number, Value, to_json_number


class _Dumper(yaml.SafeDumper):
    """Keeps the spelling of numbers; writes multi-line text as block scalars."""


def _represent_number(dumper: yaml.SafeDumper, value: Number) -> yaml.Node:
    kind = "float" if set(value) & set(".eE") else "int"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{kind}", to_json_number(value))


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, "|" if "\n" in value else None)


_Dumper.add_representer(Number, _represent_number)
_Dumper.add_representer(str, _represent_text)


def write_yaml(values: Mapping[str, Value]) -> str:
    return yaml.dump(dict(values), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=2**31)


def read_yaml(text: str) -> object:
    """The document with scalars as text, or None if the text is not YAML."""
    try:
        document: object = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return document
