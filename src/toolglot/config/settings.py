"""All settings as frozen dataclasses; each field has its value type, description and default.

The loader, ``toolglot config show`` and the tables in docs/CONFIGURATION.md are generated from these fields, so a new
setting is one new field here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Final

from toolglot.clients.toolsets import TOOLSET_NAMES as EDITING
from toolglot.clients.xml import all_clients
from toolglot.clients.xml.argument_escaping import GUARD_OPTIONS
from toolglot.config.console_settings import ConsoleSettings
from toolglot.config.embedded_settings import EmbeddedSettings
from toolglot.config.keys import KeyHash
from toolglot.config.prompt_settings import PromptSettings
from toolglot.config.recovery_settings import RecoverySettings
from toolglot.config.rollout import FULL, TRANSFORMATIONS, Live, Plan, Rollout
from toolglot.config.store_settings import StoreSettings
from toolglot.config.upstream_errors import list_names
from toolglot.config.upstreams import Upstream
from toolglot.config.value_types import (
    BOOL,
    BYTES,
    DIALECT,
    KEYS,
    MAYBE,
    NAMES,
    NEVER,
    OWN_PLAN,
    PLAN,
    SECONDS,
    TEXT,
    ValueType,
    choice,
    integer,
    number,
    setting,
    subset,
)
from toolglot.core.call_patterns import Patterns, read_patterns
from toolglot.core.errors import UnknownModelError
from toolglot.core.options import SHELL_SYNTAX, UNKNOWN_TOOLS

MODES: Final = ("auto", "native", "text", "off")
ANY: Final = "*"
REMEMBERED: Final = 1000
"""How many requested model names are cached."""
NAME_LENGTH: Final = 500
REFUSE: Final = "refuse"
ONLY_MODEL: Final = "only_model"
NO_UPSTREAM: Final = (
    "the operator gives an upstream: 'toolglot serve --base-url URL', or [[upstream]] in a settings file."
)
LEVELS: Final = ("debug", "info", "warning", "error")
OTLP: Final = "otlp"
USUAL_TOOLS: Final = (
    *("read", "write", "edit", "bash", "glob", "grep", "list_files", "search_files", "execute_command", "read_file"),
    *("write_to_file", "apply_diff", "attempt_completion", "ask_followup_question"),
)
"""The tools of well-known coding agents."""
CONFIDENCE: Final = number(0, 1)


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Address, client keys, timeouts and logging of the server."""

    host: str = setting(TEXT, "address to listen on; any other than loopback needs keys", "127.0.0.1")
    port: int = setting(integer(0, 65535), "port to listen on; 0 takes a free one", 8484)
    keys: tuple[KeyHash, ...] = setting(
        KEYS, "keys that clients must present one of; empty: no key is required", (), flag="client_keys"
    )
    require_key: bool = setting(
        BOOL, "refuse requests without a client key even while no key is known, as keys of the store may be", False
    )
    workers: int = setting(integer(1, 256), "processes that share the port", 1)
    heartbeat_seconds: float = setting(
        SECONDS, "time without a write to a streaming client after which a heartbeat is sent", 12.0
    )
    drain_seconds: float = setting(SECONDS, "time that open streams have to finish at shutdown", 30.0)
    log_bodies: bool = setting(
        BOOL,
        "log request and response bodies of client and upstream, and the model's own text; truncated, keys redacted",
        False,
    )
    log_level: str = setting(
        choice(*LEVELS), "minimum level of log messages; requests are logged at `info`", "info", also=("LOG_LEVEL",)
    )
    traces: str = setting(
        choice("off", OTLP),
        "`otlp`: send OpenTelemetry traces to where the variables `OTEL_EXPORTER_OTLP_...` say; needs the extra `otel`",
        "off",
    )
    default_model: str = setting(TEXT, "model of requests that name none", "")
    start_checks: bool = setting(
        BOOL, "check upstreams, their keys, models and context sizes after the start, without asking a model", True
    )
    unknown_model: str = setting(
        choice(REFUSE, ONLY_MODEL),
        "a model name that is not known: `refuse`: an error that lists the known ones; `only_model`: the only model of"
        " the settings, or else of the upstream, answers",
        REFUSE,
    )
    unknown_ids: str = setting(
        choice(REFUSE, "pass"),
        "with client keys, ids of responses, conversations, files, caches and containers that an upstream stores and"
        " that the gateway has not given to this key: `refuse` them, or `pass` them on",
        REFUSE,
    )
    state_dir: str = setting(
        TEXT,
        "folder of the store and learned failures; empty: `toolglot` in the XDG state directory; `none`: memory only",
        "",
    )


@dataclass(frozen=True, slots=True)
class ToolCallingSettings:
    """How tools are offered to models and calls are delivered."""

    enabled: bool = setting(
        BOOL, "`false`: remove tools from requests and translate nothing", True, also=("TOOL_CALLING_ENABLED",)
    )
    auto_detect: bool = setting(
        BOOL,
        "parse calls to `supported_tools` even if the request offers no tools; with the default list of tools only if"
        " the last user message asks to read, write, edit, list or search files, or to execute something",
        True,
        also=("TOOL_CALLING_AUTO_DETECT",),
    )
    max_tools: int = setting(
        integer(1, 100_000), "maximum tools of a request; more are refused", 128, also=("TOOL_CALLING_MAX_TOOLS",)
    )
    max_parameter_bytes: int = setting(
        BYTES,
        "maximum size of a call's arguments; beyond it the answer ends with the error `parameter_too_large`",
        16 << 20,
        also=("TOOL_CALLING_MAX_PARAMETER_BYTES",),
    )
    supported_tools: tuple[str, ...] = setting(
        NAMES,
        "tools that are known even if a request does not offer them; the default list applies only to requests without"
        " tools (`auto_detect`)",
        USUAL_TOOLS,
    )
    mode: str = setting(
        choice(*MODES),
        "`native`: the upstream handles tools; `text`: describe tools in the prompt and parse calls; `off`: relay"
        " requests unchanged; `auto`: native if the profiles say that the upstream supports tools, text if it fails",
        "auto",
        flag="mode",
    )
    dialect: str = setting(
        DIALECT, "dialect for tools as text; empty: the one known for the model id, else roo_xml", "", flag="dialect"
    )
    profiles: str = setting(
        TEXT,
        "profiles file that takes precedence over the built-in profiles; relative to the settings file that names it",
        "",
        flag="profiles",
    )
    cool_down_seconds: float = setting(
        SECONDS, "time after which `auto` tries native tools again for a model that fell back to text", 3600.0
    )


FEEDBACK: Final = "feedback"
"""The value of ``reading.leaked_calls`` with which calls in the text of a model with native tools are not made."""


@dataclass(frozen=True, slots=True)
class ReadingSettings:
    """How calls are parsed from answers."""

    unknown_tools: str = setting(
        choice(*UNKNOWN_TOOLS), "whether calls to unknown tools are delivered, left as text or rejected", "allow"
    )
    min_confidence: float = setting(CONFIDENCE, "minimum confidence of delivered calls", 0.9)
    parallel_calls: bool | None = setting(
        MAYBE,
        "several calls in one answer, unless the request decides; `false`: only the first is delivered; `auto`: all are"
        " delivered, and the prompt allows several if the model's own dialect is used",
    )
    leaked_calls: str = setting(
        choice("execute", FEEDBACK),
        "a call that a model with native tools writes as text: `execute` it, or never make it and ask the model"
        " again with `feedback`, as often as `recovery.retries` says; then it stays text",
        "execute",
    )
    shell: tuple[str, ...] = setting(
        NAMES,
        "commands that a shell code block may call, by their first words; such calls have the confidence"
        " `patterns.shell_commands_confidence`, which must reach `min_confidence`",
        (),
    )
    shell_syntax: tuple[str, ...] = setting(
        subset(*SHELL_SYNTAX), "shell syntax that such commands may use; every command in a line must be listed", ()
    )
    shell_cwd: str = setting(TEXT, "working directory of such commands, if the tool has a parameter for it", "")


@dataclass(frozen=True, slots=True)
class PatternSettings:
    """Call syntax that also occurs in ordinary text: whether it is parsed, and with which confidence."""

    json_code_blocks: bool = setting(BOOL, "parse calls as JSON in a code block", True)
    json_code_blocks_confidence: float = setting(
        CONFIDENCE, "confidence of such calls; must reach `min_confidence`", 0.95
    )
    shell_commands: bool | None = setting(
        MAYBE, "parse shell code blocks as commands; `auto`: if `reading.shell` lists commands (required in any case)"
    )
    shell_commands_confidence: float = setting(CONFIDENCE, "confidence of such calls; must reach `min_confidence`", 0.8)
    require_cwd: bool = setting(
        BOOL, "parse shell code blocks only if `reading.shell_cwd` is set and the tool takes a working directory", False
    )
    bare_json: bool = setting(BOOL, "parse calls as JSON without marks and code block", True)
    bare_json_confidence: float = setting(CONFIDENCE, "confidence of such calls; must reach `min_confidence`", 0.95)
    python_calls: bool = setting(BOOL, "parse calls as Python, without marks or in a code block", True)
    python_calls_confidence: float = setting(CONFIDENCE, "confidence of such calls; must reach `min_confidence`", 0.95)
    natural_language: bool = setting(NEVER, "prose is never parsed as a call", False)

    def compile(self) -> Patterns:
        """The patterns for a reader."""
        return read_patterns({one.name: getattr(self, one.name) for one in fields(self)})


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Clients that take tool calls as XML in text: Roo, Kilo, Cline."""

    xml: str = setting(
        choice("auto", "off", *sorted(all_clients())),
        "`auto`: detect them by their prompts; `off`: leave their requests and answers unchanged; a profile: use it for"
        " every client that offers no tools",
        "auto",
        flag="xml_clients",
    )
    guard: tuple[str, ...] = setting(
        subset(*GUARD_OPTIONS),
        "for Roo and its successors with native tools: `entities` escapes what they unescape in files, diffs and"
        " commands, `diffs` repairs the header of a diff",
        (),
        flag="client_guard",
    )


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """Limits on requests, concurrency and memory."""

    body_bytes: int = setting(BYTES, "maximum size of a request body; larger ones are refused (413)", 32 << 20)
    header_bytes: int = setting(BYTES, "maximum size of a request head; larger ones are refused", 64 << 10)
    messages: int = setting(integer(1, 10_000_000), "maximum messages of a request; more are refused", 10_000)
    answer_bytes: int = setting(
        BYTES,
        "maximum size of an upstream's answer, decompressed: of a whole body, or of all events of a stream; beyond it"
        " the connection is closed, and the client gets the error `answer_too_large`",
        64 << 20,
    )
    event_bytes: int = setting(
        BYTES,
        "maximum size of one event of an upstream's stream; beyond it the same, with the error `event_too_large`",
        16 << 20,
    )
    compression_ratio: int = setting(
        integer(1, 100_000),
        "how many times larger than its compressed form an upstream's body may be, from 1 MiB on; beyond it the same,"
        " with the error `compression_too_high`",
        100,
    )
    kept_bytes: int = setting(
        BYTES, "memory for state between requests: reasoning signatures, responses that clients refer to", 64 << 20
    )
    kept_seconds: float = setting(SECONDS, "time after which such state expires if it is not used", 14400.0)
    open_requests: int = setting(
        integer(1, 1_000_000), "concurrent model requests of one process; further ones are queued", 10_000
    )
    queued_requests: int = setting(
        integer(0, 1_000_000), "maximum queued requests; further ones are refused (503)", 10_000
    )
    queue_seconds: float = setting(SECONDS, "time after which a queued request is refused (503)", 60.0)
    requests_per_minute: int = setting(
        integer(0, 1_000_000),
        "model requests of one client key within a minute, per process; further ones are refused (429); without"
        " client keys all clients share the limit; 0: no limit",
        0,
    )


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """Rollout stages of the transformations. This section of the file is reloaded when it changes."""

    stage: Plan = setting(PLAN, "stage of all transformations without their own", FULL)
    reading: Plan | None = setting(OWN_PLAN, TRANSFORMATIONS["reading"])
    rescue: Plan | None = setting(OWN_PLAN, TRANSFORMATIONS["rescue"])
    xml: Plan | None = setting(OWN_PLAN, TRANSFORMATIONS["xml"])
    shell: Plan | None = setting(OWN_PLAN, TRANSFORMATIONS["shell"])
    editing: Plan | None = setting(OWN_PLAN, TRANSFORMATIONS["editing"])
    recovery: Plan | None = setting(OWN_PLAN, TRANSFORMATIONS["recovery"])

    def as_rollout(self) -> Rollout:
        own = {name: plan for name in TRANSFORMATIONS if (plan := getattr(self, name)) is not None}
        return Rollout(self.stage, own)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """A model name that clients request, and the upstream and model behind it."""

    name: str = setting(TEXT, "model name that clients request; `*` matches any text", "")
    upstream: str = setting(TEXT, "upstream that answers; empty: the first one", "")
    model: str = setting(
        TEXT, "model name for the upstream; empty: the requested name; `*`: the text that `*` in `name` matched", ""
    )
    dialect: str = setting(DIALECT, "as in `tool_calling`, for this model", "")
    mode: str = setting(choice(*MODES, empty=True), "as in `tool_calling`, for this model", "")
    editing: str = setting(
        choice(*EDITING, empty=True),
        "editing tools that the model was trained on: the client's tools are translated to these, and calls back;"
        " empty: no translation",
        "",
    )

    def match(self, asked: str) -> str | None:
        """The upstream's model name if the requested name matches, else None."""
        found = _pattern(self.name).fullmatch(asked)
        if not found:
            return None
        return self.model.replace(ANY, found[1] if found.re.groups else asked) or asked


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of the command line, the environment and the file."""

    section: str
    field: str
    kind: ValueType
    description: str
    default: Any
    flag: str
    variables: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.section}.{self.field}"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. ``sources`` has the origin of each value, ``notes`` are shown at start. ``known_models`` are the
    results of ``model_for`` so far; ``planned`` is the rollout of the start, ``live`` has a newer one."""

    server: ServerSettings = ServerSettings()
    tool_calling: ToolCallingSettings = ToolCallingSettings()
    reading: ReadingSettings = ReadingSettings()
    patterns: PatternSettings = PatternSettings()
    prompt: PromptSettings = PromptSettings()
    recovery: RecoverySettings = RecoverySettings()
    clients: ClientSettings = ClientSettings()
    limits: LimitSettings = LimitSettings()
    rollout: RolloutSettings = RolloutSettings()
    store: StoreSettings = StoreSettings()
    console: ConsoleSettings = ConsoleSettings()
    embedded: EmbeddedSettings = EmbeddedSettings()
    upstreams: tuple[Upstream, ...] = ()
    models: tuple[ModelSettings, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = ()
    live: Live = field(default_factory=Live, compare=False, repr=False)
    known_models: dict[str, tuple[ModelSettings, Upstream]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    planned: Rollout = field(init=False, compare=False, repr=False)
    compiled_patterns: Patterns = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "planned", self.rollout.as_rollout())
        object.__setattr__(self, "compiled_patterns", self.patterns.compile())

    @property
    def rollout_now(self) -> Rollout:
        """The current rollout: from the start, or from the last reload of the file."""
        return self.live.rollout or self.planned

    def model_for(self, asked: str) -> tuple[ModelSettings, Upstream]:
        """The model and upstream for a requested name: the exact name, else the first matching pattern, else ``*``.

        All fields of the returned model are resolved: ``name`` is the requested name, ``model`` the upstream's.
        Raises: UnknownModelError if nothing matches.
        """
        found = self.known_models.get(asked)
        if found is None:
            if len(self.known_models) >= REMEMBERED:
                self.known_models.clear()
            found = self.known_models[asked] = self._find(asked)
        return found

    def _find(self, asked: str) -> tuple[ModelSettings, Upstream]:
        model, known_as = self._match(asked)
        upstream = self.upstream_of(model)
        dialect = model.dialect or self.tool_calling.dialect or upstream.known_dialect(known_as, asked)
        mode = model.mode or self.tool_calling.mode
        chosen = replace(model, name=asked, upstream=upstream.name, model=known_as, dialect=dialect, mode=mode)
        return chosen, upstream

    def set_dialect(self, asked: str) -> str:
        """The dialect configured for a requested name, or an empty text."""
        return self._match(asked)[0].dialect or self.tool_calling.dialect

    def _match(self, asked: str) -> tuple[ModelSettings, str]:
        for model in sorted(self.models, key=lambda model: (model.name != asked, model.name == ANY)):
            known_as = model.match(asked) if len(asked) <= NAME_LENGTH else None
            if known_as is not None:
                return model, known_as
        if self.server.unknown_model == ONLY_MODEL and len(self.models) == 1 and ANY not in self.models[0].name:
            return self.models[0], self.models[0].model or self.models[0].name
        raise UnknownModelError(f"There is no model {asked[:100]!r} here; {self._offer()}.")

    def upstream_of(self, model: ModelSettings) -> Upstream:
        """The upstream that answers for a model. Raises: UnknownModelError if there is none."""
        for upstream in self.upstreams:
            if upstream.name == model.upstream or not model.upstream:
                return upstream
        raise UnknownModelError("No upstream is configured.", step=NO_UPSTREAM)

    def _offer(self) -> str:
        names = [model.name for model in self.models]
        return f"known are: {list_names(names)}" if names else "no model is configured"

    def answered_by(self, upstream: Upstream, model: ModelSettings | None = None) -> Settings:
        """The same settings, with this upstream as the fallback for all other model names."""
        fallback = replace(model or ModelSettings(), name=ANY, upstream=upstream.name)
        upstreams = tuple(known for known in self.upstreams if known.name != upstream.name)
        models = tuple(known for known in self.models if known.name != ANY)
        return replace(self, upstreams=(*upstreams, upstream), models=(*models, fallback))


SECTIONS: Final[Mapping[str, type]] = {
    "server": ServerSettings,
    "tool_calling": ToolCallingSettings,
    "reading": ReadingSettings,
    "patterns": PatternSettings,
    "prompt": PromptSettings,
    "recovery": RecoverySettings,
    "clients": ClientSettings,
    "limits": LimitSettings,
    "rollout": RolloutSettings,
    "store": StoreSettings,
    "console": ConsoleSettings,
    "embedded": EmbeddedSettings,
}
TABLES: Final[Mapping[str, type]] = {"upstream": Upstream, "model": ModelSettings}
PREFIXES: Final = {
    "tool_calling": "tool_calling_",
    "patterns": "patterns_",
    "prompt": "prompt_",
    "recovery": "recovery_",
    "limits": "limit_",
    "rollout": "rollout_",
    "store": "store_",
    "console": "console_",
    "embedded": "embedded_",
}


def _settings(section: str, kind: type) -> Iterator[Setting]:
    for one in fields(kind):
        metadata = one.metadata
        flag = metadata["flag"] or PREFIXES.get(section, "") + one.name
        variables = (f"TOOLGLOT_{flag.upper()}", *metadata["also"]) if section in SECTIONS else ()
        yield Setting(section, one.name, metadata["kind"], metadata["description"], _default(one), flag, variables)


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
"""The settings of the fallback upstream, which needs no file: base URL, key and model."""


@lru_cache(maxsize=1024)
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile("(.*)".join(map(re.escape, name.split(ANY))), re.DOTALL)
