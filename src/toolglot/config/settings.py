"""Every setting, as frozen values; beside each stands what it means and what it accepts.

The loader, ``toolglot config show`` and the table in docs/CONFIGURATION.md are made from these fields, so a new setting
is one new line here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from toolglot.clients.toolsets import TOOLSET_NAMES as EDITING
from toolglot.clients.xml import all_clients
from toolglot.clients.xml.argument_escaping import GUARD_OPTIONS
from toolglot.config.keys import KeyHash, Secret
from toolglot.config.rollout import FULL, TRANSFORMATIONS, Live, Plan, Rollout
from toolglot.config.value_types import (
    ADDRESS,
    BOOL,
    BYTES,
    DIALECT,
    HEADERS,
    KEYS,
    MAYBE,
    NAMES,
    NEVER,
    OWN_PLAN,
    PLAN,
    SECONDS,
    SECRET,
    TEXT,
    ValueType,
    choice,
    integer,
    number,
    subset,
)
from toolglot.core.call_patterns import Patterns, read_patterns
from toolglot.core.errors import UnknownModelError
from toolglot.core.options import SHELL_SYNTAX, UNKNOWN_TOOLS, Options, make_options
from toolglot.reading.reader import dialect_index
from toolglot.wires import wire_names

MODES: Final = ("auto", "native", "text", "off")
WIRES: Final = wire_names()
ANY: Final = "*"
DEFAULT_DIALECT: Final = "roo_xml"
LISTED: Final = 20
REMEMBERED: Final = 1000
"""How many of the names that were asked for are remembered."""
NAME_LENGTH: Final = 500
SECRET_LENGTH: Final = 8
NO_KEY: Final = Secret()
LEVELS: Final = ("debug", "info", "warning", "error")
USUAL_TOOLS: Final = (
    "read",
    "write",
    "edit",
    "bash",
    "glob",
    "grep",
    "list_files",
    "search_files",
    "execute_command",
    "read_file",
    "write_to_file",
    "apply_diff",
    "attempt_completion",
    "ask_followup_question",
)
"""The tools of well-known coding agents."""
CONFIDENCE: Final = number(0, 1)
NO_PATTERNS: Final = read_patterns(dict.fromkeys(("json_code_blocks", "bare_json", "python_calls"), False))


def setting(kind: ValueType, tells: str, default: Any = None, *, flag: str = "", also: tuple[str, ...] = ()) -> Any:
    """A field that is a setting. ``flag`` is its short name, ``also`` are further environment variables."""
    metadata = {"kind": kind, "tells": tells, "flag": flag, "also": also}
    if isinstance(default, dict):
        return field(default_factory=default.copy, hash=False, repr=False, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where we listen, and to whom."""

    host: str = setting(TEXT, "address to listen on; any other than loopback needs keys", "127.0.0.1")
    port: int = setting(integer(0, 65535), "port to listen on; 0 takes a free one", 8484)
    keys: tuple[KeyHash, ...] = setting(
        KEYS, "keys that clients must present; none: no key asked", (), flag="client_keys"
    )
    workers: int = setting(integer(1, 256), "processes that share the port", 1)
    heartbeat_seconds: float = setting(SECONDS, "silence towards a client after which a heartbeat is sent", 12.0)
    drain_seconds: float = setting(SECONDS, "time that streams have to end when the server is stopped", 30.0)
    log_bodies: bool = setting(
        BOOL,
        "log requests and answers too, as client and upstream see them, and the model's own text; cut, keys blackened",
        False,
    )
    log_level: str = setting(
        choice(*LEVELS), "what is logged; each request is told at `info`", "info", also=("LOG_LEVEL",)
    )
    default_model: str = setting(TEXT, "the model that a request without a model is taken to ask for", "")
    state_dir: str = setting(
        TEXT, "folder for what was learned; empty: `toolglot` where the system keeps such; `none`: only in memory", ""
    )


@dataclass(frozen=True, slots=True)
class ToolCallingSettings:
    """What is done with tools."""

    enabled: bool = setting(
        BOOL, "off: tools are taken out of requests and nothing is translated", True, also=("TOOL_CALLING_ENABLED",)
    )
    auto_detect: bool = setting(
        BOOL,
        "read calls to `supported_tools` also where the request offered no tools; with the usual list of tools only if"
        " the last user message asks to read, write, edit, list or search files, or to execute something",
        True,
        also=("TOOL_CALLING_AUTO_DETECT",),
    )
    max_tools: int = setting(
        integer(1, 100_000), "a request with more tools is refused", 128, also=("TOOL_CALLING_MAX_TOOLS",)
    )
    max_parameter_bytes: int = setting(
        BYTES,
        "a call with larger arguments is not delivered: the answer ends with the error `parameter_too_large`",
        16 << 20,
        also=("TOOL_CALLING_MAX_PARAMETER_BYTES",),
    )
    supported_tools: tuple[str, ...] = setting(
        NAMES,
        "tools that are known even if a request does not offer them; the usual list counts only where a request offers"
        " none (`auto_detect`)",
        USUAL_TOOLS,
    )
    mode: str = setting(
        choice(*MODES),
        "`native` leaves tools to the upstream, `text` teaches them as text, `off` passes requests as they are,"
        " `auto` is native where profiles say that the upstream has tools, until it shows that it has not",
        "auto",
        flag="mode",
    )
    dialect: str = setting(
        DIALECT, "dialect to teach; empty: the one the model id is known for, else roo_xml", "", flag="dialect"
    )
    profiles: str = setting(
        TEXT, "file of profiles that come before those of toolglot; in a settings file, beside it", "", flag="profiles"
    )
    cool_down_seconds: float = setting(
        SECONDS, "time after which native tools are tried again where `auto` has turned to text", 3600.0
    )


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """How answers are read."""

    unknown_tools: str = setting(
        choice(*UNKNOWN_TOOLS), "a call to a tool nobody offered is delivered, left as text or rejected", "allow"
    )
    min_confidence: float = setting(CONFIDENCE, "calls read with less confidence are not delivered", 0.9)
    parallel_calls: bool | None = setting(
        MAYBE,
        "several calls in one answer, unless the request itself says; `false`: only the first is delivered; `auto`: all"
        " are, and the model is told to make several if its own dialect is taught",
    )
    shell: tuple[str, ...] = setting(
        NAMES,
        "commands that a shell fence may call, by their first words; such calls have the confidence of"
        " `patterns.shell_commands_confidence`, which `min_confidence` must allow",
        (),
    )
    shell_syntax: tuple[str, ...] = setting(
        subset(*SHELL_SYNTAX), "what such a line may do besides; every command in it must be listed", ()
    )
    shell_cwd: str = setting(TEXT, "where such commands are run, if the tool can be told", "")


@dataclass(frozen=True, slots=True)
class PatternSettings:
    """Ways of writing calls that ordinary text has too: which of them are read, and how sure they are."""

    json_code_blocks: bool = setting(BOOL, "read calls as JSON in a code fence", True)
    json_code_blocks_confidence: float = setting(CONFIDENCE, "how sure they are; `min_confidence` must allow it", 0.95)
    shell_commands: bool | None = setting(
        MAYBE, "read shell fences as commands; `auto`: if `reading.shell` lists commands, without which none is read"
    )
    shell_commands_confidence: float = setting(CONFIDENCE, "how sure they are; `min_confidence` must allow it", 0.8)
    require_cwd: bool = setting(
        BOOL, "a shell fence is read only if `reading.shell_cwd` is set and the tool takes a working directory", False
    )
    bare_json: bool = setting(BOOL, "read calls as JSON without marks and without a fence", True)
    bare_json_confidence: float = setting(CONFIDENCE, "how sure they are; `min_confidence` must allow it", 0.95)
    python_calls: bool = setting(BOOL, "read calls as Python, without marks or in a code fence", True)
    python_calls_confidence: float = setting(CONFIDENCE, "how sure they are; `min_confidence` must allow it", 0.95)
    natural_language: bool = setting(NEVER, "prose is never read as a call", False)

    def compile(self) -> Patterns:
        """The same for a reader."""
        return read_patterns({one.name: getattr(self, one.name) for one in fields(self)})


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Clients that take tool calls as XML in text: Roo, Kilo, Cline."""

    xml: str = setting(
        choice("auto", "off", *sorted(all_clients())),
        "`auto` knows them by their prompts, `off` leaves their requests and answers alone; a profile is taken for"
        " whoever offers no tools",
        "auto",
        flag="xml_clients",
    )
    guard: tuple[str, ...] = setting(
        subset(*GUARD_OPTIONS),
        "for Roo and its successors with native tools: `entities` escapes what they un-escape in files, diffs and"
        " commands, `diffs` puts slips in the head of a diff right",
        (),
        flag="client_guard",
    )


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """What a request may cost before it is read."""

    body_bytes: int = setting(BYTES, "a larger request body is refused (413)", 32 << 20)
    header_bytes: int = setting(BYTES, "a larger request header is refused", 64 << 10)
    messages: int = setting(integer(1, 10_000_000), "a request with more messages is refused", 10_000)
    kept_bytes: int = setting(
        BYTES, "room for what is kept between requests: seals of reasoning, answers that clients refer to", 64 << 20
    )
    kept_seconds: float = setting(SECONDS, "time after which that is forgotten if nobody uses it", 14400.0)
    open_requests: int = setting(
        integer(1, 1_000_000), "model requests that one process answers at a time; further ones wait in order", 10_000
    )
    queued_requests: int = setting(
        integer(0, 1_000_000), "requests that may wait for that; further ones are refused (503)", 10_000
    )
    queue_seconds: float = setting(SECONDS, "time after which a request that still waits is refused (503)", 60.0)
    requests_per_minute: int = setting(
        integer(0, 1_000_000),
        "model requests of one client key in any minute, per process; further ones are refused (429); without"
        " `server.keys` all clients count together; 0: no limit",
        0,
    )


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """How far transformations are rolled out. This part of the file is read again whenever it changes."""

    stage: Plan = setting(
        PLAN, "how far all transformations are rolled out, but for those with a stage of their own", FULL
    )
    reading: Plan | None = setting(OWN_PLAN, TRANSFORMATIONS["reading"])
    rescue: Plan | None = setting(OWN_PLAN, TRANSFORMATIONS["rescue"])
    xml: Plan | None = setting(OWN_PLAN, TRANSFORMATIONS["xml"])
    shell: Plan | None = setting(OWN_PLAN, TRANSFORMATIONS["shell"])
    editing: Plan | None = setting(OWN_PLAN, TRANSFORMATIONS["editing"])

    def as_rollout(self) -> Rollout:
        own = {name: plan for name in TRANSFORMATIONS if (plan := getattr(self, name)) is not None}
        return Rollout(self.stage, own)


@dataclass(frozen=True)
class Upstream:
    """A place that answers."""

    name: str = setting(TEXT, "what models call it", "default")
    base_url: str = setting(
        ADDRESS, "its address, up to `/chat/completions`; without a path `/v1` is meant, for ollama `/api`", ""
    )
    api_key: Secret = setting(SECRET, "the key we present to it", NO_KEY)
    wire: str = setting(choice(*WIRES), "the protocol it speaks", "openai_chat")
    coached: bool = setting(
        BOOL, "for a very small model behind llama.cpp: it is shown examples, and a grammar holds it to calls", False
    )
    headers: Mapping[str, str] = setting(HEADERS, "further headers we send to it", {})
    connect_timeout: float = setting(SECONDS, "time to reach it", 10.0)
    read_timeout: float = setting(SECONDS, "silence after which it is given up", 600.0)

    @cached_property
    def secrets(self) -> tuple[str, ...]:
        """What nobody else may see: its key, and whatever long words are in its headers and its address."""
        words = [value.split()[-1] for value in self.headers.values() if value.strip()]
        parts = urlsplit(self.base_url)
        words += [parts.username or "", parts.password or "", *(value for _, value in parse_qsl(parts.query))]
        words += [unquote(word) for word in words if "%" in word]
        return tuple(word for word in (self.api_key.reveal(), *words) if len(word) >= SECRET_LENGTH)

    def endpoint(self, path: str, root: str = "/v1") -> str:
        """The address of one of its endpoints, such as ``/chat/completions``."""
        return _extend(self.base_url, root, path)


@lru_cache(maxsize=1024)
def _extend(address: str, root: str, path: str) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(path=(parts.path or root) + path))


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A name that clients ask for, and what it stands for."""

    name: str = setting(TEXT, "the name clients ask for; `*` in it stands for anything", "")
    upstream: str = setting(TEXT, "the upstream that answers; empty: the first one", "")
    model: str = setting(
        TEXT, "the name the upstream knows; empty: the one asked for; `*`: what the `*` of `name` stood for", ""
    )
    dialect: str = setting(DIALECT, "as in `tool_calling`, for this model", "")
    mode: str = setting(choice(*MODES, empty=True), "as in `tool_calling`, for this model", "")
    editing: str = setting(
        choice(*EDITING, empty=True),
        "the tools for editing that it was trained on: a client's own are told as these, and its calls as the client's;"
        " empty: tools stay as they are",
        "",
    )

    def match(self, asked: str) -> str | None:
        """The name for the upstream if this model is meant by the name asked for."""
        found = _pattern(self.name).fullmatch(asked)
        if not found:
            return None
        return self.model.replace(ANY, found[1] if found.re.groups else asked) or asked


@dataclass(frozen=True, slots=True)
class Setting:
    """One field that the command line, the environment and the file can set."""

    section: str
    field: str
    kind: ValueType
    tells: str
    default: Any
    flag: str
    variables: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.section}.{self.field}"


@dataclass(frozen=True, slots=True)
class Settings:
    """All of it. ``sources`` says where each value came from, ``notes`` what a person should know at start."""

    server: ServerSettings = ServerSettings()
    tool_calling: ToolCallingSettings = ToolCallingSettings()
    reading: ReadingSettings = ReadingSettings()
    patterns: PatternSettings = PatternSettings()
    clients: ClientSettings = ClientSettings()
    limits: LimitSettings = LimitSettings()
    rollout: RolloutSettings = RolloutSettings()
    upstreams: tuple[Upstream, ...] = ()
    models: tuple[ModelSettings, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = ()
    live: Live = field(default_factory=Live, compare=False, repr=False)
    _found: dict[str, tuple[ModelSettings, Upstream]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    _planned: Rollout = field(init=False, compare=False, repr=False)
    _patterns: Patterns = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_planned", self.rollout.as_rollout())
        object.__setattr__(self, "_patterns", self.patterns.compile())

    def reader_options(
        self, unknown: str, parallel: bool, supported: tuple[str, ...], shell: tuple[str, ...], detected: bool = False
    ) -> Options:
        """How answers are read; what a request decides is given. ``detected``: no tools were offered, so only calls
        that cannot be ordinary text count."""
        reading = self.reading
        syntax = reading.shell_syntax, reading.shell_cwd
        given = unknown, reading.min_confidence, parallel, supported, shell, *syntax
        return make_options(*given, patterns=NO_PATTERNS if detected else self._patterns)

    @property
    def rollout_now(self) -> Rollout:
        """The rollout in force: as it was at the start, or as the file was changed since."""
        return self.live.rollout or self._planned

    def model_for(self, asked: str) -> tuple[ModelSettings, Upstream]:
        """What answers to a name: the exact name, else the first pattern that fits, else ``*``.

        In the model that is returned nothing is left open: ``name`` is the one asked for, ``model`` the upstream's.
        """
        found = self._found.get(asked)
        if found is None:
            if len(self._found) >= REMEMBERED:
                self._found.clear()
            found = self._found[asked] = self._find(asked)
        return found

    def _find(self, asked: str) -> tuple[ModelSettings, Upstream]:
        model, known_as = self._match(asked)
        dialect = model.dialect or self.tool_calling.dialect or known_dialect(known_as, asked)
        mode = model.mode or self.tool_calling.mode
        upstream = self._upstream(model.upstream)
        chosen = replace(model, name=asked, upstream=upstream.name, model=known_as, dialect=dialect, mode=mode)
        return chosen, upstream

    def set_dialect(self, asked: str) -> str:
        """The dialect that was set for a name, if one was."""
        return self._match(asked)[0].dialect or self.tool_calling.dialect

    def _match(self, asked: str) -> tuple[ModelSettings, str]:
        for model in sorted(self.models, key=lambda model: (model.name != asked, model.name == ANY)):
            known_as = model.match(asked) if len(asked) <= NAME_LENGTH else None
            if known_as is not None:
                return model, known_as
        raise UnknownModelError(f"there is no model {asked[:100]!r} here; {self._offer()}")

    def _upstream(self, name: str) -> Upstream:
        for upstream in self.upstreams:
            if upstream.name == name or not name:
                return upstream
        raise UnknownModelError("no upstream is configured")

    def _offer(self) -> str:
        names = [model.name for model in self.models]
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        return f"known are: {', '.join(names[:LISTED])}{more}" if names else "no model is configured"

    def answered_by(self, upstream: Upstream, model: ModelSettings | None = None) -> Settings:
        """The same settings, with this upstream for every name that nothing else answers to."""
        fallback = replace(model or ModelSettings(), name=ANY, upstream=upstream.name)
        upstreams = tuple(known for known in self.upstreams if known.name != upstream.name)
        models = tuple(known for known in self.models if known.name != ANY)
        return replace(self, upstreams=(*upstreams, upstream), models=(*models, fallback))


SECTIONS: Final[Mapping[str, type]] = {
    "server": ServerSettings,
    "tool_calling": ToolCallingSettings,
    "reading": ReadingSettings,
    "patterns": PatternSettings,
    "clients": ClientSettings,
    "limits": LimitSettings,
    "rollout": RolloutSettings,
}
TABLES: Final[Mapping[str, type]] = {"upstream": Upstream, "model": ModelSettings}
PREFIXES: Final = {
    "tool_calling": "tool_calling_",
    "patterns": "patterns_",
    "limits": "limit_",
    "rollout": "rollout_",
}


def _settings(section: str, kind: type) -> Iterator[Setting]:
    for one in fields(kind):
        told = one.metadata
        flag = told["flag"] or PREFIXES.get(section, "") + one.name
        variables = (f"TOOLGLOT_{flag.upper()}", *told["also"]) if section in SECTIONS else ()
        yield Setting(section, one.name, told["kind"], told["tells"], _default(one), flag, variables)


def _default(one: Field[Any]) -> Any:
    return {} if callable(one.default_factory) else one.default


SETTINGS: Final = tuple(one for section, kind in SECTIONS.items() for one in _settings(section, kind))
FIELDS: Final[Mapping[str, Mapping[str, Setting]]] = {
    name: {one.field: one for one in _settings(name, kind)} for name, kind in (*SECTIONS.items(), *TABLES.items())
}
FALLBACK: Final = tuple(
    replace(FIELDS[table][name], section="", flag=name, variables=(f"TOOLGLOT_{name.upper()}", *also))
    for table, name, also in (
        ("upstream", "base_url", ("OPENAI_BASE_URL",)),
        ("upstream", "api_key", ("OPENAI_API_KEY",)),
        ("model", "model", ()),
    )
)
"""The upstream that needs no file: its address, its key, and the model it is asked for."""


@lru_cache(maxsize=1024)
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile("(.*)".join(map(re.escape, name.split(ANY))), re.DOTALL)


@lru_cache(maxsize=1024)
def known_dialect(*names: str) -> str:
    """The dialect that models of one of these names are known to write."""
    return next(filter(None, map(dialect_index().resolve_hint, names)), DEFAULT_DIALECT)
