"""Parts of the docs that are generated from the source: the package graph and the table of caches.

``pytest --update-samples tests/project/test_docs.py`` writes them into docs/ARCHITECTURE.md and docs/state.md.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolglot.clients.agents import Agent

from toolglot.core.error_guide import SOURCES, find_status, load_guide, show_example

PACKAGE = "toolglot"


@cache
def parse_source(path: Path) -> ast.Module:
    """The syntax tree of a module; it is parsed once and must not be changed."""
    return ast.parse(path.read_text("utf-8"))


def layers(root: Path) -> list[list[str]]:
    """The layers of the import contract in pyproject.toml, top first, without the name of the root package."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    return [[name.strip().removeprefix(f"{PACKAGE}.") for name in row.split("|")] for row in rows]


def imported_packages(source: Path) -> dict[str, set[str]]:
    """For each package below ``source``, the other packages that its modules import."""
    found: dict[str, set[str]] = {}
    for folder in sorted(path.parent for path in source.glob("*/__init__.py")):
        modules = (name for path in folder.rglob("*.py") for name in imported_modules(path))
        parts = (name.split(".") for name in modules)
        found[folder.name] = {part[1] for part in parts if part[0] == PACKAGE and len(part) > 1} - {folder.name}
    return found


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(parse_source(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package_graph(root: Path) -> str:
    """The packages in the rows of the contract, each with the packages that it imports."""
    rows = layers(root)
    imports = imported_packages(root / "src" / PACKAGE)
    order = [name for row in reversed(rows) for name in row]
    width = max(map(len, order))
    lines = []
    for number, row in enumerate(rows):
        if number:
            lines.append("    " + "-" * 60)
        for name in row:
            below = " ".join(other for other in order if other in imports[name])
            lines.append(f"    {name:{width}}  ->  {below}" if below else f"    {name}")
    return "\n" + "\n".join(lines) + "\n\n"


def cache_table(root: Path) -> str:
    """A table of all ``lru_cache``, ``cache`` and ``TextCache`` uses in the source, by module."""
    source = root / "src" / PACKAGE
    rows = ["| module | entries | characters | by data |", "|---|---|---|---|"]
    for path in sorted(source.rglob("*.py")):
        tree = parse_source(path)
        constants = _constants(tree) | _imported_constants(tree, source)
        bounds: dict[str, list[int]] = defaultdict(list)
        for kind, bound in _caches(tree):
            bounds[kind].append(_value(bound, constants) if bound is not None else 1)
        if bounds:
            by_data = str(len(bounds["cache"])) if bounds["cache"] else ""
            cells = (_counted(bounds["lru_cache"]), _counted(bounds["TextCache"]), by_data)
            rows.append(f"| `{path.relative_to(source).as_posix()}` | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _caches(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """Each cache of a module: how it is made, and the expression of its bound (none: one entry per argument)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from (
                ("cache", None) for mark in node.decorator_list if isinstance(mark, ast.Name) and mark.id == "cache"
            )
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("lru_cache", "TextCache")
        ):
            yield node.func.id, node.args[0] if node.args else node.keywords[0].value


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found


def _imported_constants(tree: ast.Module, source: Path) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{PACKAGE}."):
            path = source.joinpath(*node.module.split(".")[1:]).with_suffix(".py")
            if path.is_file():
                theirs = _constants(parse_source(path))
                found |= {
                    alias.asname or alias.name: theirs[alias.name] for alias in node.names if alias.name in theirs
                }
    return found


def _value(bound: ast.expr, constants: Mapping[str, ast.expr]) -> int:
    if isinstance(bound, ast.Name):
        return _value(constants[bound.id], constants)
    if isinstance(bound, ast.BinOp) and isinstance(bound.op, ast.LShift):
        return _value(bound.left, constants) << _value(bound.right, constants)
    value = ast.literal_eval(bound)
    assert isinstance(value, int)
    return value


def _counted(bounds: list[int]) -> str:
    """The bounds as text, sorted: ``64, 1,024 x 3`` are one cache of 64 entries and three of 1,024."""
    sizes = sorted(set(bounds))
    return ", ".join(f"{size:,}" + (f" x {bounds.count(size)}" if bounds.count(size) > 1 else "") for size in sizes)


def client_table(root: Path) -> str:
    """The table of the clients that ``toolglot setup`` knows."""
    from toolglot.clients.agents import AGENTS

    rows = ["| client | configured in | wire | tried with |\n|---|---|---|---|\n"]
    for agent in AGENTS:
        files = ", ".join(f"`~/{file.folder}/{file.names[0]}`".replace("~//", "~/") for file in agent.files)
        rows.append(
            f"| `{agent.name}` ({agent.title}) | {files or 'printed'} | `{agent.wire}` | {agent.tested or '-'} |\n"
        )
    return "".join(rows)


def start_table(_: Path) -> str:
    """How ``toolglot run`` points each client to its gateway."""
    from toolglot.clients.agents import AGENTS

    rows = [
        f"| `{agent.name}` | {', '.join(_list_means(agent))} | `{agent.launch.install}` |\n"
        for agent in AGENTS
        if agent.launch
    ]
    return "".join(["| client | how | installed with |\n|---|---|---|\n", *rows])


def _list_means(agent: Agent) -> Iterator[str]:
    launch = agent.launch
    assert launch is not None
    named = {name for name, value in launch.variables.items() if isinstance(value, str) and "{folder}" in value}
    variables = [*agent.variables, *launch.variables]
    if launch.override:
        yield f"options (`{launch.override} key=value`)"
    yield from (f"a file in a temporary folder (`{option}`)" for option in launch.options[::2])
    yield from (f"a temporary folder (`{name}`)" for name in variables if name in named)
    if others := [f"`{name}`" for name in variables if name not in named]:
        yield f"variables ({', '.join(others)})"


def error_pages(root: Path) -> str:
    """The entries of the guide to errors, by their source."""
    lines: list[str] = []
    for source, meaning in SOURCES.items():
        entries = [entry for entry in load_guide().values() if entry.source is source]
        lines += ["", f"## Errors of the {source}", "", meaning, "", "| code | status | next | |", "|---|---|---|---|"]
        lines += [f"| [{one.code}](#{one.code}) | {find_status(one)} | {one.actor} | {one.step} |" for one in entries]
        for entry in entries:
            lines += ["", f"### {entry.code}", "", entry.cause, ""]
            lines += [f"- HTTP status: {find_status(entry)}", f"- Next ({entry.actor}): {entry.step}"]
            lines += ["", "```text", show_example(entry), "```"]
    return "\n".join(lines) + "\n\n"
