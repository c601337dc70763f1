"""How many turns of a weak model end well: recovery off and on, on every client wire, beside each other.

The simulated model makes a defect in a share of its turns and corrects it when it is asked to. A gateway in a process of its
own stands between it and clients of five wires and one that reads XML, streamed and whole, native and text mode in all
dialects of ``support.weak_turns``. What the client would run is read without toolglot's decoders and compared with what the
model meant. *Wrong* are calls that a client would run and that was not meant; *invalid* are delivered calls that a client
refuses for their name or arguments; *half* are calls that were declared complete in an answer that then failed.

    python bench/recovery.py [--turns N] [--seed N] [--defects P] [--class NAME ...] [--show N]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from gateways import free_port, launch
from support.weak_turns import (
    AT_ONCE,
    Figures,
    Turn,
    ask_all,
    attach,
    configure,
    describe,
    judge,
    plan_turns,
    sum_up,
)

from toolglot.sim import REQUEST_LOG, SimOptions, make_app, running

WRITE_BYTES = 200
"""What the model writes at a time, so that a gateway has sent text on before it sees the call."""
RETRIES = "TOOLGLOT_RECOVERY_RETRIES"
RUNS: Mapping[str, Mapping[str, str]] = {"off": {RETRIES: "0"}, "on": {}}
COLUMNS = ("turns", "success", "extra per defect", "wrong", "invalid", "half", "duplicated", "foreign")


@contextmanager
def gateway(base_url: str, environment: Mapping[str, str]) -> Iterator[int]:
    """A gateway in a process of its own; its port."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toolglot.toml"
        path.write_text(configure(base_url), encoding="utf-8")
        command = [sys.executable, "-m", "toolglot", "serve", "--port", str(port), "--config", str(path)]
        process = launch("toolglot", [*command, "--state-dir", "none"], port, Path(folder), environment, spread=True)
        try:
            yield port
        finally:
            process.stop()


async def run(environment: Mapping[str, str], options: SimOptions, count: int) -> list[Turn]:
    app = make_app(options)
    turns = plan_turns(count, options.seed)
    async with running(app) as base_url:
        with gateway(base_url, environment) as port:
            await ask_all(turns, port, AT_ONCE)
    if strays := attach(turns, app[REQUEST_LOG].requests):
        print(f"{strays} requests belong to no turn", file=sys.stderr)
    return turns


# -- the tables --------------------------------------------------------------------------------------------------------


def group(turns: Sequence[Turn]) -> dict[str, list[Turn]]:
    """Turns by class of defect."""
    found: dict[str, list[Turn]] = {}
    for turn in turns:
        found.setdefault(turn.defect or "(clean)", []).append(turn)
    return dict(sorted(found.items()))


def write_cells(figures: Figures) -> list[str]:
    counts = (figures.wrong, figures.invalid, figures.half, figures.duplicated, figures.foreign)
    return [
        str(figures.turns), f"{figures.success:.1%}", f"{figures.extra_per_defect:.2f}", *map(str, counts),
    ]  # fmt: skip


def print_table(first: str, rows: Mapping[str, Figures], columns: Sequence[str] = COLUMNS) -> None:
    print(f"| {first} | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for name, figures in rows.items():
        print(f"| {name} | " + " | ".join(write_cells(figures)) + " |")
    print()


def print_totals(runs: Mapping[str, Sequence[Turn]]) -> None:
    columns = ("turns", "defects", "success", "extra per defect", "extra on clean", "wrong", "invalid", "half",
               "duplicated", "foreign", "p50, ms", "p95, ms", "with a defect: p50, ms", "p95, ms")  # fmt: skip
    print("| recovery | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for name, turns in runs.items():
        figures = sum_up(turns)
        count, success, extra, *counts = write_cells(figures)
        times = [*measure(turns), *measure([turn for turn in turns if turn.defect])]
        cells = [count, str(figures.defects), success, extra, str(figures.extra_clean), *counts, *times]
        print(f"| {name} | " + " | ".join(cells) + " |")
    print()


def measure(turns: Sequence[Turn]) -> list[str]:
    """The median and the 95th percentile of the time of turns, in milliseconds."""
    if len(turns) < 2:
        return ["-", "-"]
    percentiles = quantiles([turn.seconds for turn in turns], n=100)
    return [f"{1e3 * percentiles[at - 1]:.1f}" for at in (50, 95)]


def print_classes(runs: Mapping[str, Sequence[Turn]]) -> None:
    """Success by class in both runs; all other figures with recovery."""
    off, on = ({name: sum_up(found) for name, found in group(turns).items()} for turns in runs.values())
    print("| defect | turns | success, off | " + " | ".join(COLUMNS[1:]) + " |\n|---|" + "---:|" * (len(COLUMNS) + 1))
    for name, figures in on.items():
        count, *cells = write_cells(figures)
        before = f"{off[name].success:.1%}" if name in off else "-"
        print(f"| {name} | {count} | {before} | " + " | ".join(cells) + " |")
    print()


def print_lanes(turns: Sequence[Turn]) -> None:
    names = sorted({turn.lane.name for turn in turns})
    print_table("lane", {name: sum_up(turn for turn in turns if turn.lane.name == name) for name in names})


def show(turns: Sequence[Turn], limit: int) -> None:
    """Turns that did not end well, the worst first, on standard error."""
    judged = [(turn, judge(turn)) for turn in turns]
    bad = [(turn, verdict) for turn, verdict in judged if not verdict.success]
    bad.sort(key=lambda pair: (not pair[1].wrong, not pair[1].half, not pair[1].duplicated, pair[0].number))
    for turn, verdict in bad[:limit]:
        flags = " ".join(name for name in ("wrong", "invalid", "half") if getattr(verdict, name))
        print(f"{flags or 'failed'}: {describe(turn, verdict)}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--defects", type=float, default=0.3, help="share of turns with a defect (default: 0.3)")
    parser.add_argument("--heeds", type=float, default=1.0, help="share of corrections that are followed (default: 1)")
    parser.add_argument("--class", dest="classes", nargs="*", default=[], help="only these classes of defects")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="list N turns that did not end well")
    arguments = parser.parse_args()
    options = SimOptions(
        defects=arguments.defects,
        heeds=arguments.heeds,
        seed=arguments.seed,
        classes=tuple(arguments.classes),
        keep=10 * arguments.turns,
        chunk_bytes=WRITE_BYTES,
    )
    runs: dict[str, list[Turn]] = {}
    for name, environment in RUNS.items():
        print(f"recovery {name}: {arguments.turns} turns", file=sys.stderr)
        runs[name] = asyncio.run(run(environment, options, arguments.turns))
    print(f"{arguments.turns} turns, seed {arguments.seed}, defects in {arguments.defects:.0%} of them.\n")
    print_totals(runs)
    print_classes(runs)
    print_lanes(runs["on"])
    show(runs["on"], arguments.show)


if __name__ == "__main__":
    main()
