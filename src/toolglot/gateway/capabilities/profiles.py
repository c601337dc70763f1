"""What servers and models can do: rules with globs, kept as data in ``profiles.toml``.

    profiles = load_profiles()
    if profiles.needs_facts(address, model):        the server itself has to be asked
        questions = profiles.ask(address, model)    what to ask it, and where
        facts = profiles.read(answers)              what it told
    rule = profiles.find(address, model, facts)     the first rule that fits

Nothing here touches the network; who does is ``inquiry``.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlsplit, urlunsplit

from toolglot.config.file import check_names
from toolglot.config.value_types import BOOL, DIALECT, NAMES, TEXT, ValueType, choice
from toolglot.core.errors import UsageError

BUILT_IN: Final = Path(__file__).with_suffix(".toml")
SERVER: Final = "server"
STRIPS_SPECIAL_TOKENS: Final = "strips_special_tokens"
NAMED_CHOICE_IS_AUTO: Final = "named_choice_is_auto"
CHOICE_IGNORED: Final = "choice_ignored"
SIGNED_CALLS: Final = "signed_calls"
QUIRKS: Final = (STRIPS_SPECIAL_TOKENS, NAMED_CHOICE_IS_AUTO, CHOICE_IGNORED, SIGNED_CALLS)
THOUGHTS: Final = ("reasoning_content", "reasoning")
GRAMMAR: Final = "grammar"
MESSAGE_LENGTH: Final = 4000
"""How much of an error's text is looked at."""

Facts: TypeAlias = Mapping[str, tuple[str, ...]]
"""What a server told of itself: each a list of words, most of them of one."""

NO_FACTS: Final[Facts] = {}


@dataclass(frozen=True, slots=True)
class Rule:
    """Who it is about, and what they can do. ``number`` and ``source`` say where it stands."""

    name: str
    address: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    native: bool = False
    parallel: bool | None = None
    dialect: str = ""
    reasoning: str = ""
    structured: str = ""
    quirks: tuple[str, ...] = ()
    why: str = ""
    number: int = 0
    source: str = BUILT_IN.name

    def concerns(self, hosts: Iterable[str], models: Iterable[str]) -> bool:
        """Whether address and model fit; the facts are another matter."""
        return _fits(self.address, hosts) and _fits(self.model, models)

    def holds(self, facts: Facts) -> bool:
        return all(_fits((glob,), facts.get(name, ())) for name, glob in self.facts.items())

    def explain(self) -> str:
        """Which rule it is, and what made it fit."""
        conditions = {"address": self.address, "model": self.model, **self.facts}
        told = [f"{name} {_join(globs)}" for name, globs in conditions.items() if globs]
        because = f", for {', '.join(told)}" if told else ""
        reason = f": {self.why}" if self.why else ""
        return f"rule {self.number} of {self.source} ({self.name}){because}{reason}"


def _fits(globs: Sequence[str], words: Iterable[str]) -> bool:
    return not globs or any(fnmatchcase(word.lower(), glob.lower()) for word in words for glob in globs)


def _join(globs: str | Sequence[str]) -> str:
    return globs if isinstance(globs, str) else " or ".join(globs)


@dataclass(frozen=True, slots=True)
class Question:
    """One request to a server about itself."""

    method: str
    url: str
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What a kind of server is asked about itself, and what its answer tells."""

    server: str
    ask: str
    has: tuple[str, ...]
    body: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)

    def question(self, address: str, model: str) -> Question:
        method, _, path = self.ask.partition(" ")
        url = _root(address) + path.replace("{model}", quote(model, safe=""))
        return Question(method, url, self.body.replace("{model}", json.dumps(model)).encode() or None)

    def read(self, answer: bytes) -> Facts:
        """The facts in an answer; none if it is not from this kind of server."""
        try:
            told = json.loads(answer)
        except (ValueError, RecursionError):
            return NO_FACTS
        if not isinstance(told, dict) or not all(name in told for name in self.has):
            return NO_FACTS
        found = {name: _words(_member(told, path)) for name, path in self.facts.items()}
        return {SERVER: (self.server,)} | {name: words for name, words in found.items() if words}


def _root(address: str) -> str:
    """The address of a server, of which an upstream tells the part that answers chats."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/").removesuffix("/v1"), "", ""))


def _member(told: Any, path: str) -> Any:
    for name in path.split("."):
        told = told.get(name) if isinstance(told, dict) else None
    return told


def _words(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    words = (json.dumps(one) if isinstance(one, bool | int | float) else one for one in values)
    return tuple(word for word in words if isinstance(word, str) and word)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a server says when native tools do not work with it."""

    kind: str
    status: tuple[int, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Profiles:
    rules: tuple[Rule, ...]
    looks: tuple[Look, ...] = ()
    troubles: tuple[Trouble, ...] = ()

    def find(self, address: str, model: str, facts: Facts = NO_FACTS) -> Rule:
        """The first rule that fits; the last of all fits everything."""
        hosts, models = _names(address, model)
        return next(rule for rule in self.rules if rule.concerns(hosts, models) and rule.holds(facts))

    def needs_facts(self, address: str, model: str) -> bool:
        """Whether a rule that might fit depends on what the server tells."""
        hosts, models = _names(address, model)
        return bool(next(rule for rule in self.rules if rule.concerns(hosts, models)).facts)

    def ask(self, address: str, model: str) -> list[Question]:
        """What to ask a server about itself."""
        return [look.question(address, model) for look in self.looks]

    def read(self, answers: Iterable[bytes]) -> Facts:
        """What a server told in its answers to these questions."""
        told = (look.read(answer) for look, answer in zip(self.looks, answers, strict=True) if answer)
        return next(filter(None, told), NO_FACTS)

    def judge(self, text: str, status: int | None = None) -> str:
        """The kind of trouble that an error's text tells of, if it does; an error inside a stream has no status."""
        text = text[:MESSAGE_LENGTH].lower()
        for trouble in self.troubles:
            if (status is None or status in trouble.status) and any(known in text for known in trouble.texts):
                return trouble.kind
        return ""


def _names(address: str, model: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words that globs are tried on: host, host and port; model id, its last part."""
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


FACTS = ValueType("a table of names and texts", _facts)
KINDS: Final[Mapping[str, Mapping[str, ValueType]]] = {
    "rule": {
        **dict.fromkeys(("name", "why"), TEXT),
        **dict.fromkeys(("address", "model"), NAMES),
        **dict.fromkeys(("native", "parallel"), BOOL),
        "facts": FACTS,
        "dialect": DIALECT,
        "reasoning": choice(*THOUGHTS, empty=True),
        "structured": choice(GRAMMAR, empty=True),
        "quirks": ValueType(f"a list of {', '.join(QUIRKS)}", _quirks),
    },
    "look": {**dict.fromkeys(("server", "ask", "body"), TEXT), "has": NAMES, "facts": FACTS},
    "trouble": {
        "kind": TEXT,
        "status": ValueType("a list of numbers", _statuses),
        "texts": ValueType("a list of texts", _texts),
    },
}
NEEDED: Final = {"rule": ("name", "native"), "look": ("server", "ask", "has"), "trouble": ("kind", "status", "texts")}


def load_profiles(own: str = "") -> Profiles:
    """The profiles of the house, behind those of a file of one's own, if there is one."""
    built_in = _read(BUILT_IN)
    if not own:
        return built_in
    front = _read(Path(own))
    return Profiles(front.rules + built_in.rules, front.looks + built_in.looks, front.troubles + built_in.troubles)


def _read(path: Path) -> Profiles:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the profiles in {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    check_names(document, KINDS, str(path))
    rules = tuple(
        Rule(**row, number=number, source=path.name) for number, row in enumerate(_rows(document, "rule", path), 1)
    )
    looks = tuple(Look(**row) for row in _rows(document, "look", path))
    return Profiles(rules, looks, tuple(Trouble(**row) for row in _rows(document, "trouble", path)))


def _rows(document: Mapping[str, Any], name: str, path: Path) -> Iterable[dict[str, Any]]:
    kinds, rows = KINDS[name], document.get(name, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path}: write [[{name}]], with two brackets: there can be several")
    for number, row in enumerate(rows, 1):
        place = f"{path}: [[{name}]] number {number}"
        check_names(row, kinds, place)
        for needed in NEEDED[name]:
            if needed not in row:
                raise UsageError(f"{place} needs {needed}")
        yield {key: kinds[key].read(raw, f"{place} {key}") for key, raw in row.items()}
