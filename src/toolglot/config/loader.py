"""Loads the settings: command line, then environment, then file, then defaults.

A file defines upstreams and their models. The fallback upstream is defined by the command line and the environment
alone. Its address and key are never mixed with those of a file, so that a key in the environment is not sent to an
address in a file.
"""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolglot.clients.gateway_key import KEY_VARIABLE
from toolglot.config.file import FileSetting, read_toml
from toolglot.config.litellm import read_litellm
from toolglot.config.problems import FIRST, Problems
from toolglot.config.references import FILE_SUFFIX, References, Secrets
from toolglot.config.settings import ANY, FALLBACK, SECTIONS, SETTINGS, ModelSettings, Setting, Settings
from toolglot.config.upstreams import DEFAULT_DIALECT, Upstream
from toolglot.core.errors import UsageError
from toolglot.wires import all_wires

FILE_NAME = "toolglot.toml"
FILE_VARIABLE = "TOOLGLOT_CONFIG"
MODEL_SUFFIX = ".gguf"
DEFAULT = "default"
NO_COMMANDS = "patterns.shell_commands is on and reading.shell lists no commands, so no shell fence is read"


def find_file(arguments: Mapping[str, Any], environ: Mapping[str, str], folder: Path) -> Path | None:
    """The file to read: ``--config``, else ``TOOLGLOT_CONFIG``, else ``toolglot.toml`` in the folder, if any."""
    named = arguments.get("config") or environ.get(FILE_VARIABLE)
    if named:
        return Path(named)
    usual = folder / FILE_NAME
    return usual if usual.is_file() else None


def load(
    arguments: Mapping[str, Any],
    environ: Mapping[str, str],
    path: Path | None = None,
    problems: Problems = FIRST,
    secrets: Secrets | None = None,
    needs_secrets: bool = True,
) -> Settings:
    """Load all settings.

    Parameters: ``arguments`` are named like environment variables, in lower case and without ``TOOLGLOT_``; ``path`` is
    the settings file, if any; ``problems`` can collect all problems instead of raising the first; ``secrets`` are
    files that were read before and are not read again, to which new ones are added; without ``needs_secrets`` the
    secrets of upstreams may be missing. Raises: UsageError if a value or a name is invalid.
    """
    references = References(environ, secrets=secrets, needs_secrets=needs_secrets)
    found = _read_file(path, references, problems)
    given: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    sources: dict[str, str] = {}
    for one in SETTINGS:
        origin = ""
        with problems.at():
            origin, raw = _pick(one, arguments, references)
            if origin:
                given[one.section][one.field] = _read(one, raw, origin, references)
        if one.key in found.values and (not origin or problems.collects):
            origin, raw = origin or str(path), found.values[one.key]
            with problems.at(one.section, one.field):
                given[one.section].setdefault(one.field, one.kind.read(raw, f"{path}: {one.key}"))
        sources[one.key] = origin or DEFAULT
    sections: dict[str, Any] = {section: SECTIONS[section](**values) for section, values in given.items()}
    settings = Settings(**sections, sources=sources, notes=(*found.notes, *_unknown_variables(environ)))
    if settings.patterns.shell_commands and not settings.reading.shell:
        settings = replace(settings, notes=(*settings.notes, NO_COMMANDS))
    settings = _place_model_file(_place_profiles(settings, path), path)
    settings = _add_fallback(_add_upstreams(settings, found, path), arguments, references)
    settings = replace(settings, notes=(*settings.notes, *references.notes))
    for at, model in enumerate(settings.models):
        with problems.at("model", at):
            _check_model(settings, model, path)
    for at, upstream in enumerate(settings.upstreams):
        with problems.at("upstream", at):
            _check_terms(upstream, path)
    return settings


def _read_file(path: Path | None, references: References, problems: Problems) -> FileSetting:
    found = FileSetting()
    if path is not None and path.suffix in (".yaml", ".yml"):
        with problems.at():
            found = read_litellm(path, references)
    elif path is not None:
        found = read_toml(path, references, problems)
    return found


def make_settings(path: Path | None = None, environ: Mapping[str, str] | None = None, **values: Any) -> Settings:
    """Make the settings of a gateway that runs inside another program.

    Parameters: ``path`` is a settings file, if any; ``environ`` is ``os.environ`` if the environment counts, too.
    ``values`` are settings, which take precedence: named like their environment variables, in lower case and without
    ``TOOLGLOT_`` (``base_url``, ``mode``, ``client_keys``, ``port``, ``state_dir``).
    Raises: UsageError if a value is invalid or a name is unknown.
    """
    known = [one.flag for one in (*SETTINGS, *FALLBACK)]
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise UsageError(f"{name} is not a setting{f'; did you mean {near[0]}?' if near else ''}")
    return load(values, environ or {}, path)


def _pick(one: Setting, arguments: Mapping[str, Any], references: References) -> tuple[str, Any]:
    """The origin and raw value of a setting on the command line or in the environment; an empty origin if neither."""
    if arguments.get(one.flag) is not None:
        return "--" + one.flag.replace("_", "-"), arguments[one.flag]
    found = (references.find_variable(name, one.kind) for name in one.variables)
    return next(filter(any, found), ("", ""))


def _read(one: Setting, raw: Any, origin: str, references: References) -> Any:
    """The value of a setting on the command line or in the environment. Raises: UsageError."""
    return one.kind.read(references.fill_in(raw, one.kind, origin) if one.kind.secret else raw, origin)


def _place_profiles(settings: Settings, path: Path | None) -> Settings:
    """Resolve the path of the profiles relative to the settings file that names it."""
    named = settings.tool_calling.profiles
    if path is None or not named or settings.sources["tool_calling.profiles"] != str(path):
        return settings
    return replace(settings, tool_calling=replace(settings.tool_calling, profiles=str(path.parent / named)))


def _place_model_file(settings: Settings, path: Path | None) -> Settings:
    """Resolve the path of an embedded model's file relative to the settings file that names it."""
    named = settings.embedded.model
    if path is None or not named.lower().endswith(MODEL_SUFFIX) or settings.sources["embedded.model"] != str(path):
        return settings
    file = str(path.parent / Path(named).expanduser())
    return replace(settings, embedded=replace(settings.embedded, model=file))


def _add_upstreams(settings: Settings, found: FileSetting, path: Path | None) -> Settings:
    models = found.models
    if found.upstreams and not models:
        models = [ModelSettings(name=ANY)]
    named = [f"upstream.{one.name}" for one in found.upstreams] + [f"model.{one.name}" for one in models]
    sources = {**settings.sources, **dict.fromkeys(named, str(path))}
    return replace(settings, upstreams=tuple(found.upstreams), models=tuple(models), sources=sources)


def _check_model(settings: Settings, model: ModelSettings, path: Path | None) -> None:
    """Raise UsageError if the upstream of a model is unknown, or cannot do what the model is to do."""
    names = [upstream.name for upstream in settings.upstreams]
    if model.upstream and model.upstream not in names:
        near = difflib.get_close_matches(model.upstream, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"known are: {', '.join(names) or 'none'}"
        raise UsageError(f"{path}: the model {model.name!r} has an unknown upstream {model.upstream!r}; {hint}")
    _check_tool_calling(settings, model, path)


def _check_tool_calling(settings: Settings, model: ModelSettings, path: Path | None) -> None:
    """Raise UsageError if mode or dialect of a model cannot work with its upstream."""
    if not settings.upstreams:
        return
    upstream, common = settings.upstream_of(model), settings.tool_calling
    own = f"{path}: the model {model.name!r} is answered by {upstream.name!r}"
    if all_wires()[upstream.wire].chat is not None and (model.mode or common.mode) == "native":
        raise UsageError(f"{own}, which has no native tools: set its mode to auto or text")
    dialect = model.dialect or common.dialect
    if dialect and not upstream.takes_dialect(dialect):
        raise UsageError(
            f"{own}, which takes calls in the dialect {dialect!r} for its own and does not pass them on: set its"
            f" dialect to another one, such as {DEFAULT_DIALECT}, or leave it out"
        )


def _check_terms(upstream: Upstream, path: Path | None) -> None:
    """Raise UsageError if the upstream may not be used before the operator accepts its terms."""
    terms = all_wires()[upstream.wire].terms
    if terms and not upstream.accept_terms:
        raise UsageError(
            f"{path}: the upstream {upstream.name!r} needs accept_terms = true.\n{terms}\nIf you accept this, write"
            " accept_terms = true into its [[upstream]]."
        )


def _add_fallback(settings: Settings, arguments: Mapping[str, Any], references: References) -> Settings:
    """Add the upstream of the command line and the environment, for all model names that the file does not define."""
    picked = {one.field: (one, *_pick(one, arguments, references)) for one in FALLBACK}
    address = picked["base_url"][1]
    if address and settings.embedded.model:
        settings = _choose_fallback(settings, address)
        if settings.embedded.model:
            return settings
    if not address or (address.startswith("OPENAI_") and settings.upstreams):
        return replace(settings, notes=(*settings.notes, *_loose_ends(picked, settings)))
    values = {name: _read(one, raw, origin, references) for name, (one, origin, raw) in picked.items() if origin}
    model = ModelSettings(model=values.pop("model", ""))
    sources = {name: origin for name, (_, origin, _) in picked.items() if origin}
    settings = replace(settings, sources={**settings.sources, **sources})
    return settings.answered_by(Upstream(name=DEFAULT, **values), model)


def _choose_fallback(settings: Settings, address: str) -> Settings:
    """Decide between an embedded model and a base URL: first the command line, then TOOLGLOT_, the file, OPENAI_."""
    embedded = settings.sources["embedded.model"]
    if _rank(embedded) == _rank(address):
        raise UsageError(f"{embedded} and {address} are two upstreams for the same requests: give only one of them")
    if _rank(embedded) > _rank(address):
        note = f"{address} is set and not used: {embedded} names the embedded model"
        return replace(settings, notes=(*settings.notes, note))
    note = f"{embedded} sets an embedded model, which is not started: {address} names the upstream"
    settings = replace(settings, notes=(*settings.notes, note))
    return replace(settings, embedded=replace(settings.embedded, model=""))


def _rank(origin: str) -> int:
    ranks = {"--": 3, "TOOLGLOT_": 2, "OPENAI_": 0}
    return next((rank for prefix, rank in ranks.items() if origin.startswith(prefix)), 1)


def _loose_ends(picked: Mapping[str, tuple[Setting, str, Any]], settings: Settings) -> list[str]:
    """Values without a base URL: an error on the command line, a note in the environment."""
    notes = []
    for _, origin, _ in picked.values():
        if origin.startswith("--"):
            raise UsageError(
                f"{origin} belongs to an upstream: give --base-url too, or write an [[upstream]] in a file"
            )
        if origin.startswith("TOOLGLOT_") or (origin and not settings.upstreams):
            notes.append(
                f"{origin} is set and not used: there is no TOOLGLOT_BASE_URL or OPENAI_BASE_URL to go with it"
            )
        elif origin == "OPENAI_BASE_URL":
            notes.append(f"{origin} is set and not used: the file names the upstreams")
    return notes


def _unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Notes on ``TOOLGLOT_`` variables that are not settings."""
    variables = [(name, one.kind.secret) for one in (*SETTINGS, *FALLBACK) for name in one.variables]
    secrets = [KEY_VARIABLE, *(name for name, secret in variables if secret)]
    known = [FILE_VARIABLE, KEY_VARIABLE, *dict(variables), *(name + FILE_SUFFIX for name in secrets)]
    notes = []
    for name in sorted(environ):
        if name.startswith("TOOLGLOT_") and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            notes.append(f"{name} is not a setting{f'; did you mean {near[0]}?' if near else ''}")
    return notes


def check_binding(settings: Settings, *, keys_needed: bool = False) -> None:
    """Raise UsageError if the gateway would be reachable from other machines without client keys. ``keys_needed``: the
    store has some."""
    server = settings.server
    has_keys = server.keys or settings.console.keys or server.require_key or keys_needed
    if has_keys or is_loopback(server.host):
        return
    raise UsageError(
        f"{server.host or 'every address'} can be reached from other machines and no client key is set, so anyone could"
        " use your upstreams. Either make a key with 'toolglot key' and set it as TOOLGLOT_CLIENT_KEYS or server.keys,"
        " or put one into the store with 'toolglot key create', or listen on 127.0.0.1 only."
    )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"
