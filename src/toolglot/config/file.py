"""One TOML file: ``[server] [tool_calling] [reading] [patterns] [limits] [rollout] [store] [[upstream]] [[model]]``.

A value ``env:NAME`` or ``os.environ/NAME`` is replaced by the environment variable of that name, and a secret
``file:PATH`` by the content of that file, so that the settings need not contain secrets.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolglot.config.settings import FIELDS, SECTIONS, TABLES, ModelSettings, Setting
from toolglot.config.upstreams import Upstream
from toolglot.core.call_patterns import to_snake_case
from toolglot.core.errors import UsageError
from toolglot.wires import all_wires

REFERENCES = ("env:", "os.environ/")
SECRET_FILE = "file:"
OTHERS_MAY_READ = 0o077


@dataclass(slots=True)
class FileSetting:
    """The content of a settings file. ``values`` are raw, under keys such as ``server.port``."""

    values: dict[str, Any] = field(default_factory=dict)
    upstreams: list[Upstream] = field(default_factory=list)
    models: list[ModelSettings] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the settings in {path}: {error.strerror}") from error


def read_toml(path: Path, environ: Mapping[str, str]) -> FileSetting:
    try:
        document = tomllib.loads(read_bytes(path).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    check_names(document, (*SECTIONS, *TABLES), str(path))
    found = FileSetting()
    for section in SECTIONS:
        table = document.get(section, {})
        place = f"{path}: [{section}]"
        if not isinstance(table, dict):
            raise UsageError(f"{place} must be a table")
        table = _spell_names(table, FIELDS[section], place)
        check_names(table, FIELDS[section], place)
        found.values |= {
            f"{section}.{name}": fill_in(read_secret(raw, FIELDS[section][name], path), environ, f"{place} {name}")
            for name, raw in table.items()
        }
    found.upstreams = [Upstream(**row) for row in _rows(document, "upstream", path, environ)]
    found.models = [ModelSettings(**row) for row in _rows(document, "model", path, environ)]
    _check_rows(found, path)
    return found


def _rows(document: Mapping[str, Any], name: str, path: Path, environ: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    rows = document.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path}: write [[{name}]], with two brackets: there can be several")
    known = FIELDS[name]
    for number, row in enumerate(rows, 1):
        place = f"{path}: [[{name}]] number {number}"
        check_names(row, known, place)
        values = {key: read_secret(raw, known[key], path) for key, raw in row.items()}
        if name == "upstream":
            values = _add_variables(row, environ) | values
        yield {
            key: known[key].kind.read(fill_in(raw, environ, f"{place} {key}"), f"{place} {key}")
            for key, raw in values.items()
        }


def _add_variables(row: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, str]:
    """The other variables of the wire, if the row refers to one of them."""
    wire = all_wires().get(str(row.get("wire")))
    variables = wire.variables if wire is not None else {}
    if not any(refers_to(raw) in variables.values() for raw in row.values()):
        return {}
    return {name: f"env:{variable}" for name, variable in variables.items() if environ.get(variable)}


def _check_rows(found: FileSetting, path: Path) -> None:
    upstreams, models = [one.name for one in found.upstreams], [one.name for one in found.models]
    for what, names in (("upstream", upstreams), ("model", models)):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"{path}: there are two [[{what}]] with the name {twice!r}")
    if not all(models):
        raise UsageError(f"{path}: a [[model]] needs a name")
    for upstream in found.upstreams:
        if not upstream.base_url:
            raise UsageError(f"{path}: the upstream {upstream.name!r} needs a base_url")


def _spell_names(table: Mapping[str, Any], known: Collection[str], place: str) -> dict[str, Any]:
    """The table with setting names in snake case; a file may use camel case."""
    spelled: dict[str, Any] = {}
    for given, raw in table.items():
        name = given if given in known or to_snake_case(given) not in known else to_snake_case(given)
        if name in spelled:
            raise UsageError(f"{place} has {name} twice, in two spellings")
        spelled[name] = raw
    return spelled


def check_names(given: Iterable[str], known: Iterable[str], place: str) -> None:
    """Raise UsageError for an unknown name, with the closest known one."""
    names = list(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
            raise UsageError(f"{place} has an unknown key {name!r}; {hint}")


def read_secret(raw: Any, one: Setting, settings: Path) -> Any:
    """The value; if it is a secret ``file:PATH``, the content of the file. Paths are relative to the settings.

    Raises: UsageError if the file cannot be read, or if other users could read it.
    """
    if not (one.kind.secret and isinstance(raw, str) and raw.startswith(SECRET_FILE)):
        return raw
    path = settings.parent / Path(raw.removeprefix(SECRET_FILE).strip()).expanduser()
    try:
        if os.name == "posix" and path.stat().st_mode & OTHERS_MAY_READ:
            raise UsageError(f"{path}, the secret of {one.key}, can be read by other users: run chmod 600 {path}")
        return path.read_text("utf-8").strip()
    except OSError as error:
        raise UsageError(f"cannot read {path}, the secret of {one.key}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise UsageError(f"{path}, the secret of {one.key}, is not text") from None


def fill_in(raw: Any, environ: Mapping[str, str], place: str) -> Any:
    """The value with references to environment variables replaced. Raises: UsageError if one is not set."""
    if isinstance(raw, list):
        return [fill_in(item, environ, place) for item in raw]
    if isinstance(raw, dict):
        return {key: fill_in(item, environ, f"{place}.{key}") for key, item in raw.items()}
    variable = refers_to(raw)
    if not variable:
        return raw
    if not environ.get(variable):
        raise UsageError(f"{place} is read from the environment variable {variable}, which is not set")
    return environ[variable]


def refers_to(raw: object) -> str:
    """The environment variable that a value refers to, or an empty text."""
    if not isinstance(raw, str):
        return ""
    return next((raw.removeprefix(mark).strip() for mark in REFERENCES if raw.startswith(mark)), "")
