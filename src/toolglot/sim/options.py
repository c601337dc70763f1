"""Options of the simulated model: defaults of the server, overridden per request.

A request overrides options by its model name (``sim:qwen3_coder+cut_mid_call+chunk=3``) or by headers
(``x-sim-dialect``, ``x-sim-fault``, ``x-sim-chunk``, ...), because a gateway in between may forward only one of them.
Precedence: headers, model name, scripted answer, options of the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from toolglot.core.errors import UsageError
from toolglot.reading.plugins import known_dialects
from toolglot.sim.answer import NATIVE
from toolglot.sim.defects import DEFECTS
from toolglot.sim.faults import FAULTS
from toolglot.sim.script import ScriptedAnswer

AUTO = "auto"
HEADER_PREFIX = "x-sim-"
MINIMUMS = {"chunk": 1, "chunk_bytes": 0, "latency": 0, "pace": 0}
"""The numeric options and their minimum."""


@dataclass(frozen=True, slots=True)
class SimOptions:
    """How the simulated model answers.

    ``dialect`` is a dialect, ``native``, or ``auto``: native if the request has native tools, else the dialect of the
    prompt. ``chunk`` is in characters per event, ``chunk_bytes`` in bytes per network write (0: whole events),
    ``latency`` and ``pace`` are milliseconds before the first byte and between writes. ``keep`` limits the request log,
    ``hang`` is how many seconds a hanging fault lasts. ``known_faults`` and ``minimums`` limit names and numbers;
    the simulator of another wire has its own. ``defects`` is the share of turns in which a weak model makes a defect,
    ``heeds`` the share of requests to correct one that it follows, ``seed`` decides which, and ``classes`` limits the
    defects to some (see ``weak_model``).

    Raises: ``UsageError`` for an unknown dialect, fault or class, a number below its minimum, or a share above 1.
    """

    dialect: str = AUTO
    chunk: int = 12
    chunk_bytes: int = 0
    latency: float = 0
    pace: float = 0
    faults: tuple[str, ...] = ()
    script: tuple[ScriptedAnswer, ...] = ()
    keep: int = 256
    hang: float = 600
    defects: float = 0
    heeds: float = 1
    seed: int = 0
    classes: tuple[str, ...] = ()
    clock: Callable[[], float] = time.time
    known_faults: ClassVar[Mapping[str, str]] = FAULTS
    minimums: ClassVar[Mapping[str, float]] = MINIMUMS

    def __post_init__(self) -> None:
        for fault in self.faults:
            if fault not in self.known_faults:
                raise UsageError(f"there is no fault {fault!r}; faults are {_join(self.known_faults)}")
        if self.dialect not in (AUTO, NATIVE):
            check_dialect(self.dialect)
        for name, least in self.minimums.items():
            if getattr(self, name) < least:
                raise UsageError(f"{name} must be {least} or more")
        for name in ("defects", "heeds"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} must be between 0 and 1")
        for name in self.classes:
            if name not in DEFECTS:
                raise UsageError(f"there is no defect {name!r}; defects are {_join(DEFECTS)}")
        for scripted in self.script:
            replace(self, script=(), **scripted.options)


AnyOptions = TypeVar("AnyOptions", bound=SimOptions)


def options_for_request(
    options: AnyOptions, model: str, headers: Mapping[str, str], scripted: Mapping[str, Any]
) -> AnyOptions:
    """The options for one request.

    Raises: ``UsageError`` if the model name or a header has an unknown or invalid option.
    """
    given = dict(scripted) | _parse_model(model, options) | parse_headers(headers, options)
    return replace(options, **given) if given else options


def _parse_model(model: str, options: SimOptions) -> dict[str, Any]:
    """Parse ``sim:hermes+no_done+chunk=3``: a dialect, faults and numbers, in any order."""
    name, colon, suffix = model.rpartition("/")[2].partition(":")
    if name != "sim" or not colon:
        return {}
    given: dict[str, Any] = {}
    for word in filter(None, suffix.split("+")):
        key, equals, value = word.partition("=")
        if equals:
            given[key] = _parse_number(key, value, options)
        elif word in options.known_faults:
            given["faults"] = (*given.get("faults", ()), word)
        else:
            check_dialect(word)
            given["dialect"] = word
    return given


def parse_headers(headers: Mapping[str, str], options: SimOptions) -> dict[str, Any]:
    """The options that the headers of a request set. Raises: ``UsageError``."""
    given: dict[str, Any] = {}
    for key, value in headers.items():
        name = key.lower()
        if not name.startswith(HEADER_PREFIX):
            continue
        name = name.removeprefix(HEADER_PREFIX).replace("-", "_")
        if name == "fault":
            given["faults"] = parse_faults(value)
        elif name == "dialect":
            given["dialect"] = value
        else:
            given[name] = _parse_number(name, value, options)
    return given


def _parse_number(name: str, value: str, options: SimOptions) -> int:
    if name not in options.minimums:
        raise UsageError(f"there is no option {name!r}; options are dialect, fault, {', '.join(options.minimums)}")
    if not value.isdecimal():
        raise UsageError(f"{name} must be a whole number, not {value!r}")
    return int(value)


def parse_faults(text: str) -> tuple[str, ...]:
    """Parse fault names, separated by commas, plus signs or spaces; ``none`` is no fault."""
    names = text.replace(",", " ").replace("+", " ").split()
    return tuple(name for name in names if name != "none")


def check_dialect(name: str) -> None:
    known = {AUTO, NATIVE, *(dialect.name for dialect in known_dialects())}
    if name not in known:
        raise UsageError(f"there is no dialect or fault {name!r}; dialects are {_join(known)}")


def _join(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
