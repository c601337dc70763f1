"""All clients: for each a record with its files, its variables, its wire and how its program is started.

The records are in ``agents.toml``; their texts have the placeholders that ``Connection`` fills.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, convert

from toolglot.clients.file_editing import merge_text, merge_values, parse_text
from toolglot.clients.gateway_key import NO_KEY
from toolglot.clients.setting_paths import MISSING, find_value, show_path


class Connection(Struct, frozen=True, kw_only=True):
    """What a client must know of the gateway."""

    address: str
    model: str
    key: str = ""
    folder: str = ""

    def fill(self, template: Any) -> Any:
        """The template with its placeholders filled, in keys, too."""
        if isinstance(template, str):
            values = {
                "{address}": self.address,
                "{model}": self.model,
                "{key}": self.key or NO_KEY,
                "{folder}": self.folder,
            }
            return values.get(template) or _replace_all(template, values)
        if isinstance(template, Mapping):
            return {self.fill(key): self.fill(value) for key, value in template.items()}
        return [self.fill(item) for item in template] if isinstance(template, list | tuple) else template


def _replace_all(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


class ConfigFile(Struct, frozen=True, kw_only=True):
    """A configuration file of a client.

    ``folder`` is in the home directory, unless ``variable`` names another one; ``below`` is a path in that. Of the
    ``names`` the first that exists is used, else the first. ``keyed`` are settings only for a gateway with client keys,
    ``defaults`` are those that a file has anyway, unless it is new. ``volatile`` are keys that the client itself keeps
    up to date.
    """

    folder: str
    names: tuple[str, ...]
    format: str
    settings: Mapping[str, Any]
    keyed: Mapping[str, Any] = {}
    defaults: Mapping[str, Any] = {}
    volatile: tuple[str, ...] = ()
    variable: str = ""
    below: str = ""

    def list_places(self, environ: Mapping[str, str], home: Path) -> list[Path]:
        """Where the file can be."""
        named = environ.get(self.variable) if self.variable else None
        folder = Path(named) / self.below if named else home / self.folder
        return [folder / name for name in self.names]

    def locate(self, environ: Mapping[str, str], home: Path) -> Path:
        """Where the file is, or is to be made."""
        paths = self.list_places(environ, home)
        return next((path for path in paths if os.path.lexists(path)), paths[0])

    def merge(self, text: str, connection: Connection) -> str:
        """The text of the file with the settings for the gateway. Raises: ValueError if it cannot be edited."""
        known = parse_text(text, self.format)
        changes = {key: value for key, value in self.defaults.items() if key not in known}
        changes |= connection.fill(self.settings)
        if connection.key:
            changes = merge_values(changes, self.keyed)
        return merge_text(text, changes, self.format)

    def list_keyed(self, text: str) -> list[str]:
        """The settings in the text that only a gateway with client keys needs. Raises: ValueError."""
        known = parse_text(text, self.format)
        paths = [tuple(path.split(".")) for path, _ in _flatten(self.keyed)]
        return [show_path(path) for path in paths if find_value(known, path) is not MISSING]


class Launch(Struct, frozen=True, kw_only=True):
    """How the program of a client is started for a gateway without a change of its files.

    ``install`` is the command that installs it. ``options`` come before the arguments of the user. ``variables`` are
    set in addition to those of the client; one that is an object is JSON. ``unset`` are variables that would take
    precedence. ``files`` are written to the temporary folder: new ones or, if ``copies`` is set, with what the file
    that they stand for has. ``mirrors`` is the path in the temporary folder where they are, and where links lead to
    the other files of the client's folder. ``override`` is an option that takes ``key=value``: it is repeated for all
    settings of the client's file. ``resume`` are arguments that continue the last conversation in a folder.
    """

    install: str
    options: tuple[str, ...] = ()
    variables: Mapping[str, Any] = {}
    unset: tuple[str, ...] = ()
    files: tuple[ConfigFile, ...] = ()
    copies: bool = False
    mirrors: str = ""
    override: str = ""
    resume: str = ""


class Agent(Struct, frozen=True, kw_only=True):
    """A client: the wire that it uses, its files, or a snippet where it is configured in a program or a dialog.

    ``start`` is the command that starts it, ``launch`` how that is done for a gateway of its own. ``variables`` point
    it to the gateway without its files. ``tested`` is the version that these settings were tried with, if any.
    """

    name: str
    title: str
    wire: str
    start: str = ""
    launch: Launch | None = None
    files: tuple[ConfigFile, ...] = ()
    variables: Mapping[str, str] = {}
    snippet: str = ""
    notes: tuple[str, ...] = ()
    tested: str = ""

    def list_command(self, arguments: Sequence[str], connection: Connection) -> list[str]:
        """The command line of the program: its name, the options for the gateway, and the arguments of the user."""
        assert self.launch is not None
        program, *usual = self.start.split()
        overrides = [f"{path}={json.dumps(value)}" for path, value in _flatten(self._settings(connection))]
        options = [word for override in overrides for word in (self.launch.override, override)]
        return [program, *connection.fill(self.launch.options), *options, *(arguments or usual)]

    def _settings(self, connection: Connection) -> Mapping[str, Any]:
        """The settings of the file that are passed as options."""
        assert self.launch is not None
        if not self.launch.override:
            return {}
        file = self.files[0]
        settings: Mapping[str, Any] = connection.fill(file.settings)
        return merge_values(settings, file.keyed) if connection.key else settings

    def list_variables(self, environ: Mapping[str, str], connection: Connection) -> dict[str, str]:
        """The variables of the program that are not those of ``environ``. Raises: ValueError if one is not JSON."""
        assert self.launch is not None
        found: dict[str, str] = {}
        for name, value in (connection.fill(self.variables) | connection.fill(self.launch.variables)).items():
            known = parse_text(environ.get(name, ""), "json") if isinstance(value, dict) else {}
            found[name] = json.dumps(merge_values(known, value)) if isinstance(value, dict) else value
        return found


def _flatten(settings: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested objects, each with its path."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _load_agents() -> tuple[Agent, ...]:
    document = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return convert([_refer(agent) for agent in document["agent"]], tuple[Agent, ...])


def _refer(agent: dict[str, Any]) -> dict[str, Any]:
    """The record with its own files and settings where its launch refers to them."""
    if "launch" not in agent:
        return agent
    own = {"{files}": agent["files"], "{settings}": agent["files"][0]["settings"]}
    launch = _replace_values(agent["launch"], own)
    return agent | {"launch": launch | {"variables": _replace_values(launch.get("variables", {}), own)}}


def _replace_values(table: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    return {name: own.get(str(value), value) for name, value in table.items()}


AGENTS: Final = _load_agents()


def suggest_agent(name: str) -> str:
    """The end of a message about an unknown client: the nearest known one, if any is near."""
    near = difflib.get_close_matches(name.lower(), [agent.name for agent in AGENTS], 1, 0.75)
    return f" (did you mean {near[0]}?)" if near else ""


def find_agent(name: str) -> Agent | None:
    """The client of this name."""
    return next((agent for agent in AGENTS if agent.name == name), None)
