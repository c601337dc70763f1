"""The record of one finished request, as it is logged, counted and stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from toolglot.config.rollout import Arm
from toolglot.gateway.telemetry.faults import NO_FAULT
from toolglot.store.interface import OK

Outcomes = Mapping[str, Mapping[str, int]]
"""For each transformation, how often each outcome occurred: success, or the reason why a call was not delivered."""


class DryRunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a dry run would have delivered."""

    calls: int
    tools: tuple[str, ...]
    read_as: tuple[str, ...]
    repairs: tuple[str, ...]
    rejected: tuple[str, ...]
    confidences: tuple[float, ...]
    outcomes: Outcomes
    error: str


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One request to an upstream. ``error`` is empty if it was answered; ``duration`` is in seconds."""

    upstream: str
    mode: str
    dialect: str
    error: str
    duration: float


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one request. ``time`` is its start; ``first_chunk`` (if any) and ``duration`` are in seconds.

    ``arms`` are the rollout arms of the transformations that apply, ``conversation`` is the key they are chosen by.
    ``transformed`` are the tools of calls parsed from text, ``complaints`` the client's about the previous answer.
    ``offered`` counts the tools of the request, ``stripped`` those that the model was not offered. ``outcome`` is how
    the request ended, ``outcomes`` those of the transformations.
    """

    request_id: str
    time: str
    wire: str
    model: str
    upstream: str
    upstream_model: str
    mode: str
    dialect: str
    client: str
    stream: bool
    offered: int
    stripped: int
    status: int
    calls: int
    tools: tuple[str, ...]
    read_as: tuple[str, ...]
    repairs: tuple[str, ...]
    rejected: tuple[str, ...]
    notes: tuple[str, ...]
    chunks: int
    bytes: int
    first_chunk: float | None
    duration: float
    finish: str
    usage: Mapping[str, int] | None
    error: str
    client_gone: bool
    conversation: str
    arms: Mapping[str, str]
    outcomes: Outcomes
    transformed: tuple[str, ...]
    confidences: tuple[float, ...]
    complaints: tuple[str, ...]
    would: DryRunResult | None
    outcome: str = OK
    fault: str = NO_FAULT
    """Who is at fault if it did not end well."""
    session: str = ""
    attempts: tuple[Attempt, ...] = ()
    """The requests to upstreams, in order."""
    prompt_bytes: int = 0
    """The size of the prompt; 0 if it is too small to matter."""
    stable_bytes: int | None = None
    """How many bytes at its beginning are the same as in the request before; None if there was none. The upstream could
    take as much from its cache."""
    unstable_at: str = ""
    """Where the first other byte is, if the prompt does not begin with all of the one before."""
    agent: str = ""
    """The client's program, as it names itself in User-Agent."""
    replay_of: str = ""
    """The id of the record whose request was sent again from the console."""
    overhead: float | None = None
    """Seconds that the gateway itself took: until the upstream was asked and, if its answer came whole, to translate
    it; None if no upstream was asked."""

    def __str__(self) -> str:
        """One line of JSON."""
        return msgspec.json.encode(self).decode()

    def as_line(self) -> str:
        """One short line for a terminal."""
        when = datetime.fromisoformat(self.time).astimezone().strftime("%H:%M:%S")
        mode = f"{self.mode}/{self.dialect}" if self.dialect else self.mode
        mode += f" for {self.client}" if self.client else ""
        first = "" if self.first_chunk is None else f" first {self.first_chunk:.2f}s"
        details = {
            "stripped": f"{self.stripped} of {self.offered} tools" if self.stripped else "",
            "calls": ", ".join(self.tools),
            "repairs": ", ".join(self.repairs),
            "rejected": ", ".join(self.rejected),
            "notes": "; ".join(self.notes),
            "error": self.error,
            "arms": ", ".join(f"{name} {arm}" for name, arm in self.arms.items() if arm != Arm.ON),
            "would call": ", ".join(self.would.tools) if self.would else "",
            "client complains": ", ".join(self.complaints),
            "prompt changed": f"{self.unstable_at}, byte {self.stable_bytes} of {self.prompt_bytes}"
            if self.unstable_at
            else "",
        }
        tail = "".join(f"  {what}: {text}" for what, text in details.items() if text)
        gone = "  client gone" if self.client_gone else ""
        model = self.model if self.upstream_model in ("", self.model) else f"{self.model} -> {self.upstream_model}"
        return f"{when} {self.status} {model or '-'} {mode or '-'} {self.duration:.2f}s{first}{tail}{gone}"
