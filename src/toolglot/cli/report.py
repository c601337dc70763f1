"""``toolglot report``: compare the success of transformations by rollout arm, from logs or a running gateway."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from urllib.request import Request, urlopen

from toolglot.cli.exit_codes import OK, AddParser
from toolglot.cli.input_files import STANDARD_INPUT, read_lines
from toolglot.cli.store_options import add_store_options, run_with_store
from toolglot.cli.terminal import ProgressLine
from toolglot.config.rollout import NATIVE_CALLS, TRANSFORMATIONS, Arm
from toolglot.core.errors import UsageError
from toolglot.gateway.telemetry.report import TARGET, Groups, Tally, read_log, read_metrics
from toolglot.store.interface import RecordQuery, Store

EXAMPLES = """\
examples:
  toolglot serve 2>> requests.log               log one line of JSON per request
  toolglot report requests.log                  report from that log
  zcat requests.log.*.gz | toolglot report      the same from standard input
  toolglot report --url http://127.0.0.1:8484   report from the metrics of a running gateway
  toolglot report --since 24h                   report from the records in the store
  toolglot report --since 7d --html report.html the same as a page with plots over time
"""
NO_RECORDS_LOGGED = "no request records found: the gateway writes them only if its log is not a terminal"
NO_RECORDS_STORED = "there are no records of that time in the store"
UNITS = {"m": 60, "h": 3600, "d": 86_400}
PAGE = 500
ORDER = (Arm.ON, Arm.CONTROL, Arm.DRY_RUN, Arm.OFF)
NO_TRANSFORMATION = "requests without a transformation"
TITLES = {**TRANSFORMATIONS, NATIVE_CALLS: "calls that upstreams with native tools make themselves"}
TIMEOUT_SECONDS = 10
TOOLS_SHOWN = 8
"""How many entries a list shows, most frequent first."""


def add(add_parser: AddParser) -> None:
    report = add_parser(
        description="Show the success of each transformation: its rates in each arm of the rollout, next to the target"
        f" success rate of {TARGET:.0%}. docs/ROLLOUT.md explains the measures.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_argument(
        "files", nargs="*", metavar="LOGFILE", help="logs with a line of JSON per request (default: stdin)"
    )
    report.add_argument("--url", metavar="URL", help="read the metrics of a running gateway instead of logs")
    report.add_argument(
        "--since", type=parse_since, metavar="TIME", help="read the store: records since 30m, 24h, 7d or a date"
    )
    report.add_argument("--html", metavar="FILE", help="write a page with plots over time; from logs or the store")
    report.add_argument("--key", metavar="KEY", default="", help="client key, if the gateway requires one")
    report.add_argument("--json", action="store_true", help="print one JSON document")
    add_store_options(report)
    report.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    given = [source for source in (arguments.url, arguments.files or None, arguments.since) if source is not None]
    if len(given) > 1:
        raise UsageError("report reads logs, a gateway or the store: give files, --url or --since")
    if arguments.html and arguments.url:
        raise UsageError("metrics have no times: --html needs logs or --since")
    groups = _read_records(arguments) if arguments.url is None else _fetch_metrics(arguments.url, arguments.key)
    if arguments.json:
        document = {name: [tally.describe() for tally in _sorted(arms)] for name, arms in groups.items()}
        print(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        print("\n".join(format_report(groups)))
    return OK


def _read_records(arguments: argparse.Namespace) -> Groups:
    """Tally the records of logs or of the store; write the page, if one is wanted. Raises: UsageError."""
    lines = _read_store(arguments) if arguments.since else _read_logs(arguments.files or [STANDARD_INPUT])
    groups, found = read_log(lines)
    if not found:
        raise UsageError(NO_RECORDS_STORED if arguments.since else NO_RECORDS_LOGGED)
    if arguments.html:
        _write_page(arguments.html, lines)
    return groups


def parse_since(text: str) -> float:
    """A time, in seconds since 1970: that long ago (``24h``), or a date (``2026-01-31``)."""
    amount, unit = text[:-1], text[-1:]
    if amount.isdecimal() and unit in UNITS:
        return time.time() - int(amount) * UNITS[unit]
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a time such as 30m, 24h or 7d nor a date") from None


def _read_store(arguments: argparse.Namespace) -> list[str]:
    """The records in the store since a time, newest first, as lines of JSON."""

    async def read(store: Store) -> list[str]:
        lines: list[str] = []
        before = ""
        with ProgressLine("reading records", unit="records") as progress:
            while True:
                rows = await store.list_records(None, RecordQuery(limit=PAGE, before=before))
                recent = [row for row in rows if row.time >= arguments.since]
                lines += [row.data.decode("utf-8", "replace") for row in recent]
                progress.advance(len(recent))
                if len(recent) < PAGE:
                    return lines
                before = rows[-1].id

    return run_with_store(arguments, read, must_exist=True)


def _write_page(name: str, lines: list[str]) -> None:
    from toolglot.cli.report_page import make_page

    try:
        Path(name).write_text(make_page(lines), "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror}") from None
    print(f"{name} written", file=sys.stderr)


def _read_logs(names: list[str]) -> list[str]:
    """The lines of logs that may hold records."""
    paths = [Path(name) for name in names if name != STANDARD_INPUT]
    total = sum(path.stat().st_size for path in paths if path.is_file()) if len(paths) == len(names) else 0
    with ProgressLine("reading logs", total) as progress:
        return [line for line in _lines(names, progress) if '"arms"' in line]


def _lines(names: list[str], progress: ProgressLine) -> Iterator[str]:
    for line in chain.from_iterable(map(read_lines, names)):
        progress.advance(len(line))
        yield line.decode("utf-8", "replace")


def _fetch_metrics(url: str, key: str) -> Groups:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url} is not the address of a gateway: it must begin with http:// or https://")
    path = parts.path.rstrip("/").removesuffix("/metrics").removesuffix("/v1") + "/metrics"
    request = Request(urlunsplit(parts._replace(path=path, query="", fragment="")))
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as reply:
            return read_metrics(reply.read().decode("utf-8", "replace"))
    except (OSError, HTTPException, ValueError, KeyError) as error:
        problem = getattr(error, "reason", "") or str(error) or type(error).__name__
        raise UsageError(f"cannot read the metrics of the gateway at {url}: {problem}") from None


# -- terminal output ---------------------------------------------------------------------------------------------------


def _sorted(arms: Mapping[str, Tally]) -> list[Tally]:
    return sorted(arms.values(), key=lambda tally: ORDER.index(Arm(tally.arm)) if tally.arm in ORDER else len(ORDER))


def format_report(groups: Groups) -> Iterator[str]:
    names = sorted(groups, key=lambda name: (*TITLES, name).index(name))
    for at, name in enumerate(names):
        if at:
            yield ""
        yield f"{name}: {TITLES.get(name, NO_TRANSFORMATION)}"
        yield ""
        yield from _table(_sorted(groups[name]))
        yield from chain.from_iterable(_details(tally) for tally in _sorted(groups[name]))
    if not names:
        yield "nothing has been counted yet"


def _table(tallies: list[Tally]) -> Iterator[str]:
    rows = list(_rows(tallies))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells, target in rows:
        columns = "  ".join(map(str.rjust, cells, widths[1:]))
        yield f"  {name:<{widths[0]}}  {columns}  {target}".rstrip()


def _rows(tallies: list[Tally]) -> Iterator[list[str]]:
    """One row per measure, one column per arm, and the target if there is one."""
    yield ["", *(tally.arm for tally in tallies), "target"]
    yield ["answers", *(str(tally.answers) for tally in tallies), ""]
    if any(tally.conversations for tally in tallies):
        yield ["conversations", *(str(len(tally.conversations)) for tally in tallies), ""]
    rates = [tally.rates() for tally in tallies]
    for measure in rates[0]:
        target = f"{TARGET:.0%}, {_verdict(tallies)}" if measure == "success rate" else ""
        yield [measure, *(_percent(rate[measure]) for rate in rates), target]
    yield ["mean confidence", *("-" if one.confidence is None else f"{one.confidence:.3f}" for one in tallies), ""]


def _verdict(tallies: list[Tally]) -> str:
    """Whether the target is reached, in the first arm with attempts: ``on`` before the others."""
    return next((tally.verdict for tally in tallies if tally.attempts), "no attempts")


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate * 100:.1f} %"


def _details(tally: Tally) -> Iterator[str]:
    details = {
        "attempts": f"{tally.attempts}, {tally.successes} of them calls" if tally.attempts else "",
        "failures": _format_counts(tally.failures),
        "skipped": _format_counts(tally.skipped),
        "complaints": _format_counts(tally.complaints),
        "tools": _format_counts(tally.tools),
    }
    lines = [f"    {name + ':':<12}{text}" for name, text in details.items() if text]
    if lines:
        yield from ("", f"  {tally.arm}", *lines)


def _format_counts(counted: Counter[str]) -> str:
    most = counted.most_common(TOOLS_SHOWN)
    others = counted.total() - sum(times for _, times in most)
    return ", ".join([*(f"{name} {times}" for name, times in most), *([f"others {others}"] if others else [])])
