"""Compares the arms of each transformation, from the lines of a log or the metrics of a gateway.

The measures for one transformation in one arm:

    transformation rate   answers with a transformed call, of all answers subject to the transformation
    success rate          transformed calls without a complaint of the client, of all attempts
    error rate            the other attempts
    tool recognition      transformed calls, of all intended calls: attempts, skipped calls, and answers in which the
                          client found no call
    without complaint     answers without a complaint of the client, the nearest measure of a satisfied user

A near miss (text intended as a call to a known tool that could not be parsed) is a failed attempt. Native calls are
counted in the same way, as ``native``: complete calls of the upstream, of all that it started.

Replays are not counted: no client got them.

A dry run delivers nothing, so complaints do not apply to it: only its attempts count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from toolglot.clients.complaints import CALL_COMPLAINTS, NO_TOOL
from toolglot.config.rollout import NATIVE_CALLS, SKIPPED, SUCCESS, UNTOUCHED, Arm

TARGET: Final = 0.95
"""The target success rate."""


class Tally(Struct):
    """The counts of one transformation in one arm."""

    arm: str
    answers: int = 0
    transformed: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    complaints: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    conversations: set[str] = field(default_factory=set)
    confidence_sum: float = 0.0
    confidence_count: int = 0

    @property
    def successes(self) -> int:
        return self.outcomes[SUCCESS]

    @property
    def skipped(self) -> Counter[str]:
        return Counter({reason: times for reason, times in self.outcomes.items() if reason in SKIPPED})

    @property
    def failures(self) -> Counter[str]:
        return self.outcomes - self.skipped - Counter({SUCCESS: self.successes})

    @property
    def attempts(self) -> int:
        return self.successes + self.failures.total()

    @property
    def broken(self) -> int:
        """Delivered calls that the client could not use."""
        complaints = sum(self.complaints[kind] for kind in CALL_COMPLAINTS) if self.arm == Arm.ON else 0
        return min(complaints, self.successes)

    @property
    def missed(self) -> int:
        """Answers in which the client expected a call and found none."""
        return self.complaints[NO_TOOL] if self.arm == Arm.ON else 0

    def rates(self) -> dict[str, float | None]:
        good = self.successes - self.broken
        meant = self.attempts + self.skipped.total() + self.missed
        return {
            "transformation rate": _share(self.transformed, self.answers if self.arm in READ_ARMS else 0),
            "success rate": _share(good, self.attempts),
            "error rate": _share(self.attempts - good, self.attempts),
            "tool recognition": _share(self.successes, meant),
            "without complaint": _share(max(self.answers - self.complaints.total(), 0), self.answers),
        }

    @property
    def confidence(self) -> float | None:
        return self.confidence_sum / self.confidence_count if self.confidence_count else None

    @property
    def verdict(self) -> str:
        rate = self.rates()["success rate"]
        return "no attempts" if rate is None else "met" if rate >= TARGET else "missed"

    def describe(self) -> dict[str, object]:
        """All counts and rates, for JSON output."""
        return {
            "arm": self.arm,
            "answers": self.answers,
            "conversations": len(self.conversations),
            "attempts": self.attempts,
            "successes": self.successes,
            "failures": dict(self.failures),
            "skipped": dict(self.skipped),
            "complaints": dict(self.complaints),
            "tools": dict(self.tools),
            "confidence": self.confidence,
            "rates": self.rates(),
            "target": TARGET,
            "verdict": self.verdict,
        }


READ_ARMS: Final = (Arm.ON, Arm.DRY_RUN)
"""The arms in which answers are parsed."""

Groups = dict[str, dict[str, Tally]]
"""Tallies by transformation and arm."""


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _tally(groups: Groups, transformation: str, arm: str) -> Tally:
    return groups.setdefault(transformation, {}).setdefault(arm, Tally(arm))


# -- from a log --------------------------------------------------------------------------------------------------------


class _Outcomes(msgspec.Struct, kw_only=True):
    """What was delivered, or would have been in a dry run."""

    outcomes: dict[str, dict[str, int]] = {}
    tools: list[str] = []
    confidences: list[float] = []


class CountedRecord(_Outcomes, kw_only=True):
    """The fields of a request record that are counted."""

    arms: dict[str, str]
    status: int
    mode: str = ""
    conversation: str = ""
    complaints: list[str] = []
    transformed: list[str] = []
    would: _Outcomes | None = None
    replay_of: str = ""


_RECORD: Final = msgspec.json.Decoder(CountedRecord)


def read_log(lines: Iterable[str]) -> tuple[Groups, int]:
    """Tally the records among the lines of a log. Returns the tallies and the number of records."""
    groups: Groups = {}
    found = 0
    for line in lines:
        record = _read_record(line)
        if record is not None and not record.replay_of:
            found += 1
            add_record(groups, record)
    return groups, found


def add_record(groups: Groups, record: CountedRecord) -> None:
    """Tally one record."""
    arms = dict(record.arms or UNTOUCHED)
    if record.mode == NATIVE_CALLS or NATIVE_CALLS in record.outcomes:
        arms[NATIVE_CALLS] = str(Arm.ON)
    for transformation, arm in arms.items():
        _add(_tally(groups, transformation, arm), transformation, record)


def _read_record(line: str) -> CountedRecord | None:
    """The record in a line, after any prefix of a log collector."""
    begin = line.find("{")
    if begin < 0 or '"arms"' not in line:
        return None
    try:
        return _RECORD.decode(line[begin:])
    except (ValueError, RecursionError):
        return None


def _add(tally: Tally, transformation: str, record: CountedRecord) -> None:
    if record.status < 400:
        tally.answers += 1
    if record.conversation:
        tally.conversations.add(record.conversation)
    tally.complaints.update(record.complaints)
    would = record.would if tally.arm == Arm.DRY_RUN else None
    source = would or record
    ends: Mapping[str, int] = source.outcomes.get(transformation, {})
    tally.outcomes.update(ends)
    if SUCCESS in ends:
        tally.transformed += 1
        made = record.tools if transformation == NATIVE_CALLS else record.transformed
        tally.tools.update(would.tools if would else made)
        tally.confidence_sum += sum(source.confidences)
        tally.confidence_count += len(source.confidences)


# -- from metrics ------------------------------------------------------------------------------------------------------

_SAMPLE = re.compile(r"(?P<name>toolglot_\w+)\{(?P<labels>.*)\} (?P<value>[^ ]+)")
_LABEL = re.compile(r'(?<!\w)(\w++)="((?:[^"\\]|\\.)*)"')
COUNTED: Final = {
    "toolglot_attempts_total": ("outcomes", "outcome"),
    "toolglot_complaints_total": ("complaints", "complaint"),
    "toolglot_tools_transformed_total": ("tools", "tool"),
}
"""Counters: the field of a tally that they fill, and the label that they are counted by."""
SUMMED: Final = {
    "toolglot_answers_total": "answers",
    "toolglot_answers_transformed_total": "transformed",
    "toolglot_confidence_count": "confidence_count",
    "toolglot_confidence_sum": "confidence_sum",
}


def read_metrics(text: str) -> Groups:
    """Tally metrics in the Prometheus text format, which have no conversations."""
    groups: Groups = {}
    for sample in filter(None, map(_SAMPLE.fullmatch, text.splitlines())):
        name, labels, value = sample["name"], dict(_LABEL.findall(sample["labels"])), float(sample["value"])
        if name in COUNTED:
            kind, label = COUNTED[name]
            getattr(_tally(groups, labels["transformation"], labels["arm"]), kind)[labels[label]] += int(value)
        elif name in SUMMED:
            tally, kind = _tally(groups, labels["transformation"], labels["arm"]), SUMMED[name]
            setattr(tally, kind, value if kind == "confidence_sum" else int(value))
    return groups
