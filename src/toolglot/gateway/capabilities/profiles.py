"""What servers and models can do: rules with globs, stored as data in ``profiles.toml``.

    profiles = load_profiles()
    if profiles.needs_facts(address, model):                the server has to be queried
        queries = profiles.list_queries(address, model)     the requests to send
        facts = profiles.read_facts(bodies)                 what their responses say
    rule = profiles.find(address, model, facts)             the first rule that matches

Nothing here uses the network; ``server.upstream.discovery`` sends the queries.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

from msgspec import Struct, convert, field
from msgspec.structs import replace

from toolglot.config.file import check_names
from toolglot.config.value_types import BOOL, DIALECT, NAMES, TEXT, ValueType, choice
from toolglot.core.errors import UsageError
from toolglot.core.globs import matches_glob
from toolglot.gateway.recovery.call_ids import check_form

BUILT_IN: Final = Path(__file__).with_suffix(".toml")
SERVER: Final = "server"
STRIPS_SPECIAL_TOKENS: Final = "strips_special_tokens"
NAMED_CHOICE_IS_AUTO: Final = "named_choice_is_auto"
CHOICE_IGNORED: Final = "choice_ignored"
SIGNED_CALLS: Final = "signed_calls"
REASONING_RETURNED: Final = "reasoning_returned"
STREAM_ONLY: Final = "stream_only"
THINKING_OR_CHOICE: Final = "thinking_or_choice"
DEFECTIVE_CALLS: Final = "defective_calls"
"""The model makes many defective calls: they are checked before they are sent (``recovery.hold_calls``)."""
NEEDS_EXAMPLES: Final = "needs_examples"
"""The model gets the schemas of tools, an example of each, and a grammar in every prompt."""
NEEDS_GUIDANCE: Final = "needs_guidance"
"""The model gets examples of tasks on files, and a note on each failed call."""
QUIRKS: Final = (
    STRIPS_SPECIAL_TOKENS,
    NAMED_CHOICE_IS_AUTO,
    CHOICE_IGNORED,
    SIGNED_CALLS,
    REASONING_RETURNED,
    STREAM_ONLY,
    THINKING_OR_CHOICE,
    DEFECTIVE_CALLS,
    NEEDS_EXAMPLES,
    NEEDS_GUIDANCE,
)
REASONING_MISSING: Final = "reasoning_missing"
"""The kind of an error that means: the server wants reasoning of earlier turns back."""
UNPARSED: Final = "unparsed"
"""The kind of an error that means: the server could not parse what its model wrote."""
THOUGHTS: Final = ("reasoning_content", "reasoning")
GRAMMAR: Final = "grammar"
STRUCTURAL_TAG: Final = "structural_tag"
JSON_SCHEMA: Final = "json_schema"
STRUCTURED: Final = (GRAMMAR, STRUCTURAL_TAG, JSON_SCHEMA)
MESSAGE_LENGTH: Final = 4000
"""How many characters of an error's text are searched."""
GENERATION_LENGTH: Final = 1 << 20
"""How many characters of an error's text are searched for what the model wrote."""

Facts: TypeAlias = Mapping[str, tuple[str, ...]]
Row = TypeVar("Row")
"""What a server reports about itself: for each fact a list of values, mostly one."""

NO_FACTS: Final[Facts] = {}


class Rule(Struct, frozen=True):
    """Which servers and models it matches, and what they can do. ``number`` and ``source`` are its position."""

    name: str
    address: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    native: bool = False
    parallel: bool | None = None
    dialect: str = ""
    reasoning: str = ""
    structured: str = ""
    strict: bool = False
    quirks: tuple[str, ...] = ()
    why: str = ""
    number: int = 0
    source: str = BUILT_IN.name

    def matches_names(self, hosts: Iterable[str], models: Iterable[str]) -> bool:
        """Whether address and model match; facts are not considered."""
        return _matches(self.address, hosts) and _matches(self.model, models)

    def matches_facts(self, facts: Facts) -> bool:
        return all(_matches((glob,), facts.get(name, ())) for name, glob in self.facts.items())

    def explain(self) -> str:
        """Which rule it is, and why it matches."""
        conditions = {"address": self.address, "model": self.model, **self.facts}
        matched = [f"{name} {_join(globs)}" for name, globs in conditions.items() if globs]
        because = f", for {', '.join(matched)}" if matched else ""
        reason = f": {self.why}" if self.why else ""
        return f"rule {self.number} of {self.source} ({self.name}){because}{reason}"


def _matches(globs: Sequence[str], values: Iterable[str]) -> bool:
    return not globs or any(matches_glob(value.lower(), glob.lower()) for value in values for glob in globs)


def _join(globs: str | Sequence[str]) -> str:
    return globs if isinstance(globs, str) else " or ".join(globs)


class Query(Struct, frozen=True):
    """One request that asks a server about itself."""

    method: str
    url: str
    body: bytes | None = None


class ServerProbe(Struct, frozen=True):
    """The query for one kind of server (``[[look]]``), and the facts in its response."""

    server: str
    ask: str
    has: tuple[str, ...]
    body: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)

    def make_query(self, address: str, model: str) -> Query:
        method, _, path = self.ask.partition(" ")
        url = _server_root(address) + path.replace("{model}", quote(model, safe=""))
        return Query(method, url, self.body.replace("{model}", json.dumps(model)).encode() or None)

    def read_facts(self, body: bytes) -> Facts:
        """The facts in a response; none if it is not from this kind of server."""
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):
            return NO_FACTS
        if not isinstance(content, dict) or not all(name in content for name in self.has):
            return NO_FACTS
        found = {name: _as_texts(_member(content, path)) for name, path in self.facts.items()}
        return {SERVER: (self.server,)} | {name: texts for name, texts in found.items() if texts}


def _server_root(address: str) -> str:
    """The root of a server, from the base URL of its chat endpoint."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1"), "", ""))


def _member(content: object, path: str) -> object:
    for name in path.split("."):
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _as_texts(value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    texts = (json.dumps(one) if isinstance(one, bool | int | float) else one for one in values)
    return tuple(text for text in texts if isinstance(text, str) and text)


class ErrorPattern(Struct, frozen=True):
    """Texts in a server's errors that mean native tools do not work with it, or not this way (``[[trouble]]``)."""

    kind: str
    status: tuple[int, ...]
    texts: tuple[str, ...]
    generation: tuple[str, ...] = ()
    """Regular expressions whose group is what the model wrote, where the error shows it."""


class IdRule(Struct, frozen=True):
    """The form of call ids that servers or models insist on (``[[ids]]``), see ``recovery/call_ids.py``."""

    form: str
    address: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    why: str = ""


class Profiles(Struct, frozen=True):
    """All rules, server probes, error patterns and forms of ids, in order of precedence."""

    rules: tuple[Rule, ...]
    probes: tuple[ServerProbe, ...] = ()
    error_patterns: tuple[ErrorPattern, ...] = ()
    id_rules: tuple[IdRule, ...] = ()

    def find(self, address: str, model: str, facts: Facts = NO_FACTS) -> Rule:
        """The first rule that matches; the last rule matches everything."""
        hosts, models = _names(address, model)
        return next(rule for rule in self.rules if rule.matches_names(hosts, models) and rule.matches_facts(facts))

    def find_id_form(self, address: str, model: str) -> str:
        """The form of call ids that the first matching rule demands; empty if there is none."""
        hosts, models = _names(address, model)
        matching = (one for one in self.id_rules if _matches(one.address, hosts) and _matches(one.model, models))
        return next((one.form for one in matching), "")

    def needs_facts(self, address: str, model: str) -> bool:
        """Whether the first rule for address and model depends on facts of the server."""
        hosts, models = _names(address, model)
        return bool(next(rule for rule in self.rules if rule.matches_names(hosts, models)).facts)

    def list_queries(self, address: str, model: str) -> list[Query]:
        """The requests that ask a server about itself, one for each probe."""
        return [probe.make_query(address, model) for probe in self.probes]

    def read_facts(self, bodies: Iterable[bytes]) -> Facts:
        """The facts in the responses to these queries; an empty body is no response."""
        found = (probe.read_facts(body) for probe, body in zip(self.probes, bodies, strict=True) if body)
        return next(filter(None, found), NO_FACTS)

    def classify_error(self, text: str, status: int | None = None) -> str:
        """The kind of native-tool failure that an error's text shows, or ""; an error in a stream has no status."""
        text = text[:MESSAGE_LENGTH].lower()
        for pattern in self.error_patterns:
            if (status is None or status in pattern.status) and any(known in text for known in pattern.texts):
                return pattern.kind
        return ""

    def find_generation(self, text: str) -> str:
        """What the model wrote, if the error of a server that could not parse it shows that."""
        for pattern in self.error_patterns:
            for shown in pattern.generation:
                if found := re.search(shown, text[:GENERATION_LENGTH], re.IGNORECASE):
                    return found[1]
        return ""


def _names(address: str, model: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The values that globs are matched with: host, host and port; model id, its last part."""
    parts = urlsplit(address)
    return (parts.hostname or "", parts.netloc.rpartition("@")[2]), (model, model.rpartition("/")[2])


# -- the file ----------------------------------------------------------------------------------------------------------


def _facts(raw: object) -> dict[str, str]:
    if not isinstance(raw, dict) or not all(isinstance(value, str) for value in raw.values()):
        raise TypeError(type(raw).__name__)
    return raw


def _quirks(raw: object) -> tuple[str, ...]:
    names: tuple[str, ...] = NAMES.read(raw, "quirks")
    if not set(names) <= set(QUIRKS):
        raise ValueError(raw)
    return names


def _statuses(raw: object) -> tuple[int, ...]:
    if not isinstance(raw, list) or not all(isinstance(value, int) for value in raw):
        raise TypeError(type(raw).__name__)
    return tuple(raw)


def _texts(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(value, str) and value for value in raw):
        raise TypeError(type(raw).__name__)
    return tuple(value.lower() for value in raw)


def _patterns(raw: object) -> tuple[str, ...]:
    patterns: tuple[str, ...] = tuple(raw) if isinstance(raw, list) else ()
    if not patterns or not all(isinstance(one, str) and re.compile(one).groups == 1 for one in patterns):
        raise ValueError(raw)
    return patterns


def _id_form(raw: object) -> str:
    if not isinstance(raw, str):
        raise TypeError(type(raw).__name__)
    return check_form(raw)


FACTS = ValueType("a table of names and texts", _facts)
KINDS: Final[Mapping[str, Mapping[str, ValueType]]] = {
    "rule": {
        **dict.fromkeys(("name", "why"), TEXT),
        **dict.fromkeys(("address", "model"), NAMES),
        **dict.fromkeys(("native", "parallel", "strict"), BOOL),
        "facts": FACTS,
        "dialect": DIALECT,
        "reasoning": choice(*THOUGHTS, empty=True),
        "structured": choice(*STRUCTURED, empty=True),
        "quirks": ValueType(f"a list of {', '.join(QUIRKS)}", _quirks),
    },
    "look": {**dict.fromkeys(("server", "ask", "body"), TEXT), "has": NAMES, "facts": FACTS},
    "trouble": {
        "kind": TEXT,
        "status": ValueType("a list of numbers", _statuses),
        "texts": ValueType("a list of texts", _texts),
        "generation": ValueType("a list of regular expressions with one group", _patterns),
    },
    "ids": {
        **dict.fromkeys(("address", "model"), NAMES),
        "form": ValueType("a text with {index} or {code9}, and perhaps {name}", _id_form),
        "why": TEXT,
    },
}
NEEDED: Final = {
    "rule": ("name", "native"),
    "look": ("server", "ask", "has"),
    "trouble": ("kind", "status", "texts"),
    "ids": ("form",),
}


def load_profiles(own: str = "") -> Profiles:
    """The built-in profiles, after those of the user's file ``own``, if any.

    Raises: UsageError if the file cannot be read or is invalid.
    """
    built_in = _read_built_in()
    if not own:
        return built_in
    front = _read(Path(own))
    return Profiles(
        front.rules + built_in.rules,
        front.probes + built_in.probes,
        front.error_patterns + built_in.error_patterns,
        front.id_rules + built_in.id_rules,
    )


@cache
def _read_built_in() -> Profiles:
    return _read(BUILT_IN)


def _read(path: Path) -> Profiles:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the profiles in {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    check_names(document, KINDS, str(path))
    rules = tuple(
        replace(rule, number=number, source=path.name)
        for number, rule in enumerate(_read_rows(document, "rule", Rule, path), 1)
    )
    probes = tuple(_read_rows(document, "look", ServerProbe, path))
    patterns = tuple(_read_rows(document, "trouble", ErrorPattern, path))
    return Profiles(rules, probes, patterns, tuple(_read_rows(document, "ids", IdRule, path)))


def _read_rows(document: Mapping[str, object], name: str, kind: type[Row], path: Path) -> Iterable[Row]:
    kinds, rows = KINDS[name], document.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path}: write [[{name}]], with two brackets: there can be several")
    for number, row in enumerate(rows, 1):
        place = f"{path}: [[{name}]] number {number}"
        check_names(row, kinds, place)
        for needed in NEEDED[name]:
            if needed not in row:
                raise UsageError(f"{place} needs {needed}")
        yield convert({key: kinds[key].read(raw, f"{place} {key}") for key, raw in row.items()}, kind)
