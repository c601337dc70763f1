"""One TOML file: ``[server] [tool_calling] [reading] [patterns] [limits] [rollout] [store] [[upstream]] [[model]]``.

Values may refer to environment variables and files (``references``), so that the settings need not contain secrets.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolglot.config.problems import FIRST, Problems
from toolglot.config.references import References, refers_to
from toolglot.config.settings import FIELDS, SECTIONS, TABLES, ModelSettings
from toolglot.config.upstreams import Upstream
from toolglot.core.call_patterns import to_snake_case
from toolglot.core.errors import UsageError
from toolglot.wires import all_wires

ERROR_LINE = re.compile(r"\(at line (\d+)")


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


def read_toml(path: Path, references: References, problems: Problems) -> FileSetting:
    """Read the file. Raises: UsageError for its first problem, unless they are collected."""
    found = FileSetting()
    document = _parse(path, problems)
    for section in check_names(document, (*SECTIONS, *TABLES), str(path), problems):
        if section in SECTIONS:
            found.values |= _read_section(document[section], section, path, references, problems)
    found.upstreams = [Upstream(**row) for row in _rows(document, "upstream", path, references, problems)]
    found.models = [ModelSettings(**row) for row in _rows(document, "model", path, references, problems)]
    _check_rows(found, path, problems)
    return found


def _parse(path: Path, problems: Problems) -> dict[str, Any]:
    data = read_bytes(path)
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        problems.report(f"{path} is not TOML: {error}", line=data.count(b"\n", 0, error.start) + 1)
    except tomllib.TOMLDecodeError as error:
        at = ERROR_LINE.search(str(error))
        problems.report(f"{path} is not TOML: {error}", line=int(at[1]) if at else data.count(b"\n") + 1)
    except RecursionError:
        problems.report(f"{path} is nested too deeply")
    return {}


def _read_section(table: Any, section: str, path: Path, references: References, problems: Problems) -> dict[str, Any]:
    """The raw values of a section, under keys such as ``server.port``."""
    place, values = f"{path}: [{section}]", {}
    if not isinstance(table, dict):
        problems.report(f"{place} must be a table", section)
        return {}
    table = _spell_names(table, FIELDS[section], place, problems, section)
    for name in check_names(table, FIELDS[section], place, problems, section):
        with problems.at(section, name):
            kind = FIELDS[section][name].kind
            values[f"{section}.{name}"] = references.fill_in(table[name], kind, f"{place} {name}", path.parent)
    return values


def _rows(
    document: Mapping[str, Any], name: str, path: Path, references: References, problems: Problems
) -> Iterable[dict[str, Any]]:
    rows = document.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        problems.report(f"{path}: write [[{name}]], with two brackets: there can be several", name)
        return
    known = FIELDS[name]
    for at, row in enumerate(rows):
        place = f"{path}: [[{name}]] number {at + 1}"
        raws = {key: row[key] for key in check_names(row, known, place, problems, name, at)}
        if name == "upstream":
            raws = _add_variables(row, references) | raws
        values = {}
        for key, raw in raws.items():
            with problems.at(name, at, key):
                kind, where = known[key].kind, f"{place} {key}"
                values[key] = kind.read(references.fill_in(raw, kind, where, path.parent), where)
        yield values


def _add_variables(row: Mapping[str, Any], references: References) -> dict[str, str]:
    """The other variables of the wire, if the row refers to one of them."""
    wire = all_wires().get(str(row.get("wire")))
    variables = wire.variables if wire is not None else {}
    if not any(refers_to(raw) in variables.values() for raw in row.values()):
        return {}
    known = FIELDS["upstream"]
    return {
        name: f"env:{variable}"
        for name, variable in variables.items()
        if any(references.find_variable(variable, known[name].kind))
    }


def _check_rows(found: FileSetting, path: Path, problems: Problems) -> None:
    upstreams, models = [one.name for one in found.upstreams], [one.name for one in found.models]
    for what, names in (("upstream", upstreams), ("model", models)):
        for at, name in enumerate(names):
            if name and name in names[:at]:
                problems.report(f"{path}: there are two [[{what}]] with the name {name!r}", what, at)
    for at, name in enumerate(models):
        if not name and not problems.has("model", at, "name"):
            problems.report(f"{path}: a [[model]] needs a name", "model", at)
    for at, upstream in enumerate(found.upstreams):
        if not upstream.base_url and not problems.has("upstream", at, "base_url"):
            problems.report(f"{path}: the upstream {upstream.name!r} needs a base_url", "upstream", at)


def _spell_names(
    table: Mapping[str, Any], known: Collection[str], place: str, problems: Problems, section: str
) -> dict[str, Any]:
    """The table with setting names in snake case; a file may use camel case."""
    spelled: dict[str, Any] = {}
    for given, raw in table.items():
        name = given if given in known or to_snake_case(given) not in known else to_snake_case(given)
        if name in spelled:
            problems.report(f"{place} has {name} twice, in two spellings", section, given)
        spelled[name] = raw
    return spelled


def check_names(
    given: Iterable[str], known: Iterable[str], place: str, problems: Problems = FIRST, *where: str | int
) -> list[str]:
    """The known names among those given. An unknown one is a problem, with the closest known one."""
    names, found = list(known), []
    for name in given:
        if name in names:
            found.append(name)
            continue
        near = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
        problems.report(f"{place} has an unknown key {name!r}; {hint}", *where, name)
    return found
