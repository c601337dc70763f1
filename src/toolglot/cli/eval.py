"""``toolglot eval``: read recorded outputs of models and score what was read."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

import toolglot
from toolglot.cli.exit_codes import FINDINGS, OK, AddParser
from toolglot.cli.input_files import STANDARD_INPUT, read_lines
from toolglot.cli.terminal import ProgressLine
from toolglot.core.errors import ToolSchemaError, UsageError
from toolglot.reading.reader import Reading, collect
from toolglot.reading.scoring import MISSED, RIGHT, VERDICTS, ComparedCall, judge_calls

EXAMPLES = """\
examples:
  toolglot eval outputs.jsonl                    score every output, by dialect, family or model
  toolglot eval outputs.jsonl --stream 1         read one character at a time
  toolglot eval outputs.jsonl --show 20          and list outputs that are not right
  toolglot eval outputs.jsonl --at-least 95      exit code 1 below 95 % right

Each line is a JSON object. Its text is in 'raw', 'text', 'output' or 'raw_output', the offered tools are in 'tools',
the expected calls in 'expected': {"calls": [{"name": ..., "arguments": {...}}]}, 'finish' is "length" if it was cut.
Without 'expected' the line is counted by what was read: calls, repaired calls, rejected calls, text.

exit codes:
  0    the outputs were scored
  1    fewer are right than --at-least asks for
  2    usage error: an invalid option or line
"""
TEXT_KEYS: Final = ("raw", "raw_output", "text", "output")
CALLS_KEYS: Final = ("calls", "tool_calls")
GROUP_KEYS: Final = ("dialect", "family", "model")
CALLS, REPAIRED, REJECTED, TEXT = "calls", "repaired", "rejected", "text"
UNSCORED: Final = (CALLS, REPAIRED, REJECTED, TEXT)
"""How outputs without expected calls are counted."""
BAR_WIDTH: Final = 30
NAME_WIDTH: Final = 32
SHOWN_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class Output:
    """One line of a corpus. ``expected`` are the readings that count as right; empty if nothing is expected. ``fields``
    are those that it can be grouped by."""

    name: str
    group: str
    text: str
    tools: list[Any]
    truncated: bool
    expected: tuple[tuple[ComparedCall, ...], ...]
    fields: tuple[str, ...] = ()


@dataclass(slots=True)
class Score:
    """What became of the outputs of one group."""

    counts: Counter[str] = field(default_factory=Counter)
    repairs: Counter[str] = field(default_factory=Counter)

    @property
    def scored(self) -> int:
        return sum(self.counts[verdict] for verdict in VERDICTS)

    @property
    def share(self) -> float | None:
        """The share of right ones; None if nothing was expected."""
        return self.counts[RIGHT] / self.scored if self.scored else None

    def describe(self) -> dict[str, Any]:
        return {**{name: self.counts[name] for name in (*VERDICTS, *UNSCORED)}, "repairs": dict(self.repairs)}


def add(add_parser: AddParser) -> None:
    evaluate = add_parser(
        description="Read recorded outputs of models and score what was read, by dialect, family or model.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    evaluate.add_argument("corpus", metavar="CORPUS.jsonl", help="outputs, one JSON object per line; - for stdin")
    evaluate.add_argument("--by", metavar="FIELD", help="field to group by (default: dialect, family or model)")
    evaluate.add_argument("--stream", type=_positive, metavar="N", help="read N characters at a time (default: whole)")
    evaluate.add_argument(
        "--unknown-tools",
        choices=("allow", "text", "reject"),
        default="text",
        help="what becomes of calls to tools that were not offered (default: text)",
    )
    evaluate.add_argument("--show", type=_positive, default=0, metavar="N", help="list up to N outputs not right")
    evaluate.add_argument("--at-least", type=_percent, metavar="PERCENT", help="exit with 1 if fewer are right")
    evaluate.add_argument("--json", action="store_true", help="print one JSON document")
    evaluate.set_defaults(run=run)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


def _percent(text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0 to 100")
    return percent


def run(arguments: argparse.Namespace) -> int:
    scores, faults = score_corpus(arguments)
    if not scores:
        raise UsageError(f"{arguments.corpus} has no outputs: one JSON object per line is expected")
    sums = add_scores(scores.values())
    if arguments.json:
        groups = {group: score.describe() for group, score in scores.items()}
        print(json.dumps({"groups": groups, "all": sums.describe(), "not_right": faults}, ensure_ascii=False, indent=2))
    else:
        print("\n".join([*format_scores(scores, sums), *format_faults(faults)]))
    too_few = arguments.at_least is not None and 100 * (sums.share or 0.0) < arguments.at_least
    return FINDINGS if too_few else OK


def score_corpus(arguments: argparse.Namespace) -> tuple[dict[str, Score], list[dict[str, Any]]]:
    """The scores by group, and up to ``--show`` outputs that are not right. Raises: UsageError."""
    scores: dict[str, Score] = {}
    faults: list[dict[str, Any]] = []
    fields: dict[str, None] = {}
    name = arguments.corpus
    total = Path(name).stat().st_size if name != STANDARD_INPUT and Path(name).is_file() else 0
    with ProgressLine("scoring", total) as progress:
        for number, line in enumerate(read_lines(name), 1):
            progress.advance(len(line))
            if not line.strip():
                continue
            output = parse_output(line, f"{name}:{number}", arguments.by)
            fields |= dict.fromkeys(output.fields)
            reading = read_output(output, arguments.stream, arguments.unknown_tools)
            verdict = judge_output(output, reading)
            score = scores.setdefault(output.group, Score())
            score.counts[verdict] += 1
            score.repairs.update(repair for call in reading.calls for repair in call.repairs)
            if verdict in VERDICTS and verdict != RIGHT and len(faults) < arguments.show:
                faults.append(describe_fault(output, reading, verdict))
    if scores and arguments.by and arguments.by not in fields:
        raise UsageError(f"--by: no line of {name} has the field {arguments.by!r}; there are: {', '.join(fields)}")
    return scores, faults


# Reading one output


def parse_output(line: bytes, place: str, by: str | None) -> Output:
    """An output from a line. Raises: UsageError."""
    try:
        row = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise UsageError(f"{place}: not JSON: {error}") from None
    text = find_text(row) if isinstance(row, dict) else None
    if text is None:
        raise UsageError(f"{place}: no text: give it as {', '.join(map(repr, TEXT_KEYS))}")
    group = next((str(row[key]) for key in ((by,) if by else GROUP_KEYS) if row.get(key)), "all")
    tools, finish = row.get("tools"), row.get("finish") or row.get("finish_reason")
    tools = [] if tools is None else tools
    if not isinstance(tools, list):
        raise UsageError(f"{place}: tools is not a list")
    fields = tuple(key for key, value in row.items() if isinstance(value, str | int | float) and key not in TEXT_KEYS)
    expected = tuple(parse_expected(row, place))
    return Output(str(row.get("id") or place), group, text, tools, finish == "length", expected, fields)


def find_text(row: Mapping[str, Any]) -> str | None:
    return next((row[key] for key in TEXT_KEYS if isinstance(row.get(key), str)), None)


def parse_expected(row: Mapping[str, Any], place: str) -> Iterator[tuple[ComparedCall, ...]]:
    """The readings that count as right: the expected one, and others that are accepted. Raises: UsageError."""
    accepted = row.get("accept") or []
    for expected in (row.get("expected"), *(accepted if isinstance(accepted, list) else ())):
        if not isinstance(expected, dict):
            continue
        calls: list[Any] = next((expected[key] for key in CALLS_KEYS if expected.get(key)), [])
        try:
            yield tuple((call["name"], parse_arguments(call["arguments"])) for call in calls)
        except (KeyError, TypeError, msgspec.DecodeError):
            raise UsageError(f"{place}: an expected call needs a 'name' and 'arguments'") from None


def parse_arguments(arguments: Any) -> Any:
    return msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments


def read_output(output: Output, size: int | None, unknown_tools: str) -> Reading:
    """What toolglot reads, with automatic detection. Raises: UsageError for tools that cannot be used."""
    try:
        reader = toolglot.Reader(tools=output.tools, unknown_tools=unknown_tools)
    except ToolSchemaError as error:
        raise UsageError(f"{output.name}: {error.message}") from None
    text, size = output.text, size or max(len(output.text), 1)
    events = [event for at in range(0, len(text), size) for event in reader.feed(text[at : at + size])]
    return collect([*events, *reader.close(truncated=output.truncated)], text)


def judge_output(output: Output, reading: Reading) -> str:
    """The verdict: the best over all accepted readings, or what was read if nothing is expected."""
    if output.expected:
        delivered = [(call.name, msgspec.json.decode(call.arguments)) for call in reading.calls]
        verdicts = [judge_calls(expected, delivered) for expected in output.expected]
        return min(verdicts, key=VERDICTS.index)
    if reading.calls:
        return REPAIRED if any(call.repairs for call in reading.calls) else CALLS
    return REJECTED if reading.rejected else TEXT


def describe_fault(output: Output, reading: Reading, verdict: str) -> dict[str, Any]:
    return {
        "id": output.name,
        "verdict": verdict,
        "text": output.text[:SHOWN_CHARACTERS],
        "expected": [{"name": name, "arguments": arguments} for name, arguments in output.expected[0]],
        "read": [{"name": call.name, "arguments": json.loads(call.arguments)} for call in reading.calls],
        "rejected": [str(rejected.reason) for rejected in reading.rejected],
    }


def add_scores(scores: Iterable[Score]) -> Score:
    total = Score()
    for score in scores:
        total.counts.update(score.counts)
        total.repairs.update(score.repairs)
    return total


# Showing the scores


def format_scores(scores: Mapping[str, Score], sums: Score) -> Iterator[str]:
    """A table with a bar for each group, the worst first."""
    columns = [name for name in (*VERDICTS, *UNSCORED) if sums.counts[name]]
    columns = columns if MISSED in columns or RIGHT not in columns else [RIGHT, *VERDICTS[1:], *columns[1:]]
    columns = list(dict.fromkeys(columns))
    width = min(NAME_WIDTH, max(map(len, (*scores, "all"))))
    yield f"{'':{width}}  outputs" + "".join(f"  {name:>8}" for name in columns)
    order = sorted(scores, key=lambda group: (scores[group].share if scores[group].scored else 2.0, group))
    for group in order:
        yield format_line(group, scores[group], columns, width)
    if len(scores) > 1:
        yield format_line("all", sums, columns, width)
    if sums.repairs:
        most = ", ".join(f"{name} {times}" for name, times in sums.repairs.most_common(8))
        yield f"\nrepairs: {most}"


def format_line(group: str, score: Score, columns: Sequence[str], width: int) -> str:
    cells = "".join(f"  {score.counts[name]:8}" for name in columns)
    line = f"{group[:width]:{width}}  {score.counts.total():7}{cells}"
    if score.share is None:
        return line
    return f"{line}  {'█' * round(score.share * BAR_WIDTH):░<{BAR_WIDTH}} {score.share:6.1%}"


def format_faults(faults: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for fault in faults:
        yield f"\n{fault['id']}: {fault['verdict']}"
        yield f"  text      {fault['text']!r}"
        yield f"  expected  {json.dumps(fault['expected'], ensure_ascii=False)}"
        yield f"  read      {json.dumps(fault['read'], ensure_ascii=False)}"
        if fault["rejected"]:
            yield f"  rejected  {', '.join(fault['rejected'])}"
