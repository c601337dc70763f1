"""``toolglot top``: the requests of a running gateway, live in the terminal."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from toolglot.cli.common_options import load_settings
from toolglot.cli.exit_codes import OK, AddParser
from toolglot.cli.gateway_contact import GatewayContact, find_address, find_key
from toolglot.cli.terminal import BOLD, DIM, GREEN, RED, Paint, add_color_option, wants_color
from toolglot.clients.gateway_key import KEY_VARIABLE
from toolglot.core.errors import UsageError
from toolglot.core.redaction import make_printable

EXAMPLES = """\
examples:
  toolglot top                                   the gateway of the settings here; end with Ctrl-C
  toolglot top --url http://10.0.0.5:8484        another one; with client keys set TOOLGLOT_KEY
  toolglot top --once                            print the current state once, for scripts with --json
"""
ENTER_SCREEN, LEAVE_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
COLOR: Final = re.compile(r"(\x1b\[[0-9;]*m)")
HOME, CLEAR_REST, CLEAR_LINE = "\x1b[H", "\x1b[J", "\x1b[K"
RECORDS: Final = 100
HEADS: Final = ("time", "end", "model", "mode", "seconds", "first", "tokens", "calls", "notes")
COLUMNS: Final = (8, 9, 22, 20, 8, 6, 11, 24)
"""Widths of all columns but the last."""
WITHOUT_TERMINAL: Final = 20
"""Requests that are shown if there is no terminal with a height."""


@dataclass(frozen=True, slots=True)
class State:
    """What a gateway says of itself: totals of its metrics by name and labels, and its latest records."""

    seconds: float
    totals: Mapping[str, Counter[str]]
    records: Sequence[Mapping[str, Any]]
    has_store: bool

    def sum(self, metric: str) -> int:
        return self.totals.get(metric, Counter()).total()


def add(add_parser: AddParser) -> None:
    top = add_parser(
        description="Show the requests of a running gateway, its load, and how they ended, live in the terminal.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--url", metavar="URL", help="address of the gateway (default: that of the settings, port 8484)")
    top.add_argument("--config", metavar="FILE", help="settings file that the address is taken from")
    top.add_argument("--key", metavar="KEY", help=f"client key; visible in the process list, unlike {KEY_VARIABLE}")
    top.add_argument("--interval", type=_seconds, default=1.0, metavar="SECONDS", help="between updates (default: 1)")
    top.add_argument("--once", action="store_true", help="print the state once and end")
    top.add_argument("--json", action="store_true", help="print the state as one JSON document; implies --once")
    add_color_option(top)
    top.set_defaults(run=run)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 3600")
    return seconds


def run(arguments: argparse.Namespace) -> int:
    settings = load_settings(argparse.Namespace(config=arguments.config), needs_secrets=False)
    contact = GatewayContact(find_address(arguments.url, settings), find_key(arguments.key))
    if not contact.is_running():
        raise UsageError(f"no gateway answers at {contact.address}: start it with 'toolglot serve', or give --url")
    state = fetch_state(contact)
    if arguments.json:
        totals = {name: dict(counts) for name, counts in state.totals.items()}
        print(json.dumps({"address": contact.address, "totals": totals, "records": state.records}, ensure_ascii=False))
        return OK
    paint = Paint(wants_color(arguments.color, sys.stdout))
    if arguments.once or not sys.stdout.isatty():
        print("\n".join(draw(contact.address, state, None, paint, WITHOUT_TERMINAL)))
        return OK
    with own_screen():
        watch(contact, state, arguments.interval, paint)
    return OK


def watch(contact: GatewayContact, state: State, interval: float, paint: Paint) -> None:
    """Redraw until Ctrl-C. A gateway that does not answer is shown as such, and asked again."""
    before, problem = state, ""
    while True:
        width, height = shutil.get_terminal_size()
        lines = list(draw(contact.address, state, before, paint, max(height - 8, 1)))
        if problem:
            lines[1:1] = [paint(problem, RED)]
        show(lines[: height - 1], width)
        time.sleep(interval)
        try:
            before, state, problem = state, fetch_state(contact), ""
        except UsageError as error:
            problem = error.message


@contextmanager
def own_screen() -> Iterator[None]:
    """Draw on the second screen of the terminal; the first one returns at the end. Ctrl-C ends it."""
    sys.stdout.write(ENTER_SCREEN)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        sys.stdout.write(LEAVE_SCREEN)
        sys.stdout.flush()


def show(lines: Sequence[str], width: int) -> None:
    sys.stdout.write(HOME + "".join(f"{cut_line(line, width)}{CLEAR_LINE}\r\n" for line in lines) + CLEAR_REST)
    sys.stdout.flush()


def cut_line(line: str, width: int) -> str:
    """The line with at most ``width`` visible characters; all of its colours stay, so that none goes on behind it."""
    left, parts = width, []
    for at, part in enumerate(COLOR.split(line)):
        parts.append(part if at % 2 else part[:left])
        left -= 0 if at % 2 else len(parts[-1])
    return "".join(parts)


# What the gateway says


def fetch_state(contact: GatewayContact) -> State:
    """Raises: UsageError if the gateway does not answer, or refuses the key."""
    metrics = contact.fetch("/metrics").decode("utf-8", "replace")
    try:
        page = json.loads(contact.fetch(f"/v1/records?limit={RECORDS}"))
        records, has_store = page["data"], True
    except UsageError:  # no store
        records, has_store = [], False
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"the server at {contact.address} is no gateway: its list of records is unknown") from None
    return State(time.monotonic(), parse_totals(metrics), records, has_store)


def parse_totals(text: str) -> dict[str, Counter[str]]:
    """The values of all metrics but the buckets of histograms, by name and label values."""
    from prometheus_client.parser import text_string_to_metric_families

    totals: dict[str, Counter[str]] = {}
    for sample in (sample for family in text_string_to_metric_families(text) for sample in family.samples):
        if "le" not in sample.labels and not sample.name.endswith("_created"):
            labels = ", ".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            totals.setdefault(sample.name, Counter())[labels] += int(sample.value)
    return totals


# Drawing


def draw(address: str, state: State, before: State | None, paint: Paint, most: int) -> Iterator[str]:
    """The lines of one frame, with at most this many requests."""
    requests = state.sum("toolglot_requests_total")
    passed = state.seconds - before.seconds if before is not None and before is not state else 0.0
    rate = f"  {(requests - before.sum('toolglot_requests_total')) / passed:.1f}/s" if before and passed else ""
    yield paint(f"toolglot  {address}  {datetime.now():%H:%M:%S}", BOLD)
    yield (
        f"requests {requests:,}{rate}   open {state.sum('toolglot_requests_open')}"
        f"   queued {state.sum('toolglot_requests_queued')}   streams {state.sum('toolglot_streams_in_flight')}"
    )
    yield "ends     " + format_counts(group(state, "toolglot_outcomes_total", "outcome"))
    yield "faults   " + format_counts(group(state, "toolglot_outcomes_total", "fault"), ignored="none")
    yield (
        f"calls {state.sum('toolglot_calls_total'):,}   repairs {state.sum('toolglot_repairs_total'):,}"
        f"   rejected {state.sum('toolglot_rejections_total'):,}"
    )
    yield ""
    if not state.has_store:
        yield "no store: single requests are not listed ('toolglot serve' without --state-dir none keeps them)"
        return
    yield paint(format_row(HEADS), DIM)
    for record in state.records[:most]:
        line = format_row(describe(record))
        yield paint(line, {"ok": "" if record.get("fault", "none") == "none" else DIM}.get(record["outcome"], RED))
    if not state.records:
        yield paint("no requests yet", GREEN)


def group(state: State, metric: str, label: str) -> Counter[str]:
    """The values of a metric by one of its labels."""
    counts: Counter[str] = Counter()
    for labels, value in state.totals.get(metric, {}).items():
        named = dict(part.split("=", 1) for part in labels.split(", ") if part)
        counts[named.get(label, "")] += value
    return counts


def format_counts(counts: Counter[str], ignored: str = "") -> str:
    shown = [f"{name} {number:,}" for name, number in counts.most_common() if number and name != ignored]
    return "   ".join(shown) or "-"


def describe(record: Mapping[str, Any]) -> tuple[str, ...]:
    """One request as the cells of a row. What clients and models chose is made printable."""
    usage = record.get("usage") or {}
    mode = f"{record['mode']}/{record['dialect']}" if record.get("dialect") else record.get("mode") or "-"
    first = record.get("first_chunk")
    cells = (
        datetime.fromisoformat(record["time"]).astimezone().strftime("%H:%M:%S"),
        record["outcome"],
        record.get("model") or "-",
        mode,
        f"{record['duration']:.2f}",
        "-" if first is None else f"{first:.2f}",
        f"{usage.get('input_tokens', 0)}>{usage.get('output_tokens', 0)}" if usage else "-",
        ", ".join(record.get("tools") or ()) or "-",
        "; ".join(filter(None, list_notes(record))),
    )
    return tuple(map(make_printable, cells))


def list_notes(record: Mapping[str, Any]) -> Iterator[str]:
    """What was special about a request."""
    yield record.get("error") or ""
    yield from (f"repaired: {name}" for name in record.get("repairs") or ())
    yield from (f"rejected: {name}" for name in record.get("rejected") or ())
    attempts = len(record.get("attempts") or ())
    yield f"{attempts} attempts" if attempts > 1 else ""
    yield from record.get("notes") or ()


def format_row(cells: Sequence[str]) -> str:
    fixed = "".join(f"{cell[:width]:{width}} " for cell, width in zip(cells, COLUMNS, strict=False))
    return f"{fixed}{cells[-1]}".rstrip()
