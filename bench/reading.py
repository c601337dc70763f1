"""Public benches of reading: recorded outputs of many models, and real models that are asked for calls.

1. ``canitoolcall``: what models of nine families wrote, with the calls that a client should be given, read by toolglot
   whole, one character at a time and in random pieces.
2. BFCL: questions of the Berkeley leaderboard, put to a model alone and behind toolglot in its modes.

The packages are downloaded by name with pip into ``build/reading``; the product neither needs nor imports them. What is
printed is Markdown for ``bench/README.md``; progress goes to standard error. Figures are no test: the exit code is 0.

    python bench/reading.py                               both, with the embedded model
    python bench/reading.py --only canitoolcall --show    what is not read right
    python bench/reading.py --only bfcl --model qwen-1.5b --rows 6
    python bench/reading.py --only bfcl --model FILE.gguf --name qwen2.5-coder-7b
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

import asking
import bfcl
import outputs
import packages
from outputs import BROKEN

from toolglot.core.errors import ToolglotError
from toolglot.reading.scoring import VERDICTS

BUILD = Path(__file__).resolve().parent.parent / "build" / "reading"
MODES = ("bare", "embedded", "text", "auto", "native")
EMBEDDED_MODES = ("bare", "embedded", "auto")
OTHER_MODES = ("bare", "text", "auto", "native")

AGNOSTIC_PEER = "best peer that needs no choice of dialect"
PEER_STREAMED = 113
PEERS_WITH_MODEL = """\
| Qwen2.5-Coder-1.5B, 36 rows, one run elsewhere | exact | extra requests |
|---|---:|---:|
| bare | 6 | 0 |
| LiteLLM 1.106 | 6 | 0 |
| forge 0.10.0 | 24 | 12 |
| CodeRouter 2.19, Anthropic wire (chat wire) | 24 (6) | 0 |"""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    lines = [table_row(head), "|---" + "|---:" * (len(head) - 1) + "|"]
    return "\n".join([*lines, *map(table_row, rows)])


def table_row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


# -- canitoolcall ------------------------------------------------------------------------------------------------------


def bench_outputs(options: argparse.Namespace) -> None:
    """Print the tables of the recorded outputs."""
    package = packages.install(packages.CANITOOLCALL, BUILD)
    wheel = packages.download(packages.CANITOOLCALL, BUILD)
    rows = outputs.load_outputs(package / "canitoolcall" / "_data" / "fixtures")
    counts, faults = outputs.count_outputs(rows, options.cuts)
    complete = sum(row.calls is not None for row in rows)
    print(
        f"### {packages.CANITOOLCALL}: {complete} outputs with an answer, {len(rows) - complete} cut or broken ones\n"
    )
    print(table(("family, read whole", "rows", *VERDICTS), family_rows(counts["whole"])) + "\n")
    print(table((f"{complete} outputs with an answer", "right", "missed", "wrong", "invented", "calls from cut or broken"), [
        *(way_row(way, families) for way, families in counts.items()),
        (f"{AGNOSTIC_PEER}, streamed", PEER_STREAMED, "-", "-", "-", "-"),
    ]) + "\n")  # fmt: skip
    statuses, failed = outputs.check_outputs(package, rows, options.cuts)
    ours = ("toolglot, one reader for all", "-", len(rows), statuses["pass"], statuses["soft_pass"], statuses["fail"])
    print(
        "By the package's own checks (text, reasoning, calls, types, equal however it is cut), beside the figures that"
    )
    print("the package prints for engines, each with the parser chosen for the model:\n")
    head = ("parser", "version", "outputs it takes", "pass", "white space differs", "fail")
    print(table(head, [ours, *outputs.engine_table(wheel)]) + "\n")
    if options.show:
        print("\n".join([*faults, "", *failed]), file=sys.stderr)


def family_rows(families: dict[str, Counter[str]]) -> list[tuple[object, ...]]:
    """One row for each family, the cut and broken outputs last."""
    names = sorted(families, key=lambda name: (name == BROKEN, name))
    return [(name, families[name].total(), *(families[name][each] for each in VERDICTS)) for name in names]


def way_row(way: str, families: dict[str, Counter[str]]) -> tuple[object, ...]:
    """One way of cutting: the rows with an answer summed up, and what was delivered from the others."""
    broken = families.get(BROKEN, Counter())
    answered = sum((verdicts for name, verdicts in families.items() if name != BROKEN), Counter())
    return (f"toolglot, {way}", *(answered[each] for each in VERDICTS), broken.total() - broken["right"])


# -- BFCL --------------------------------------------------------------------------------------------------------------


def bench_models(options: argparse.Namespace) -> None:
    """Print the tables of the questions put to a model."""
    questions = bfcl.load_questions(packages.download(packages.BFCL, BUILD), options.rows)
    running = packages.run_model(options.model or packages.SMALL)
    name = options.name or running.model
    modes = options.modes or (OTHER_MODES if options.model else EMBEDDED_MODES)
    kinds = list(dict.fromkeys(question.category for question in questions))
    head = ("way", *bfcl.VERDICTS, "failed", "extra requests", *(f"{kind} exact" for kind in kinds), "s per answer")
    print(f"### {packages.BFCL}: {len(questions)} questions to {name}\n")
    print(table(head, ()), flush=True)
    with running as local:
        relay = asking.Relay(local.base_url.removesuffix("/v1"))
        for mode in modes:
            packages.tell(f"{len(questions)} questions to {name}, {mode} ...")
            with (
                nullcontext(relay.base_url) if mode == "bare" else asking.gateway(relay.base_url, name, mode) as address
            ):
                score = asking.ask_all(address, name, questions, relay, options.show)
            print(table_row(score_row(mode, score, kinds)), flush=True)
        relay.shutdown()
    print("\n" + PEERS_WITH_MODEL + "\n")


def score_row(mode: str, score: asking.Score, kinds: Sequence[str]) -> tuple[object, ...]:
    way = "the model alone" if mode == "bare" else f"toolglot, {mode}"
    exact = (f"{score.by_category[kind]['exact']}/{score.by_category[kind].total()}" for kind in kinds)
    counts = (score.verdicts[each] for each in (*bfcl.VERDICTS, "failed"))
    return (way, *counts, score.extra_requests, *exact, f"{score.median_seconds:.1f}")


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {"canitoolcall": bench_outputs, "bfcl": bench_models}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="one of the two parts")
    parser.add_argument("--cuts", type=int, default=3, help="random ways to cut each output (default 3)")
    parser.add_argument("--rows", type=int, default=2, help="questions of each of the six categories (default 2)")
    parser.add_argument(
        "--modes",
        nargs="+",
        choices=MODES,
        help=f"ways to the model (default: {' '.join(EMBEDDED_MODES)}; with --model {' '.join(OTHER_MODES)})",
    )
    parser.add_argument("--model", help=f"another model: {', '.join(packages.MODELS)}, or a file in GGUF format")
    parser.add_argument("--name", help="its name, by which toolglot finds a profile (default: that of the file)")
    parser.add_argument("--show", action="store_true", help="print what is not right, and every answer of the model")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    print(f"Python {platform.python_version()}; printed by `make bench-reading`.\n")
    for part in [options.only] if options.only else PARTS:
        try:
            PARTS[part](options)
        except (RuntimeError, ToolglotError) as absent:
            print(f"**{part} was left out:** {absent}\n")


if __name__ == "__main__":
    main()
