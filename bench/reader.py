"""What reading costs: per chunk, by size, next to a bare loop in the same run, and how much is held back.

One answer per dialect: two sentences and a ``write_file`` call whose ``content`` is code-like text of 2k to 2M characters;
besides them plain prose and prose with HTML. Everything is read with automatic detection and no hint, in chunks of
four characters and in one piece. The bare loop only appends the same chunks to a list. Rounds are interleaved and medians
taken, with the garbage collector left on. Times are CPU time of this process, so that other work on the machine counts
less; what is left of its noise is still large: trust the ratios, not the microseconds.

With ``--against`` two checkouts are compared: their readers take turns, each in a process of its own, many times, and the
ratio of their times is printed with its spread.

    python bench/reader.py [--quick] [--rounds N] [--only NAME ...]
    python bench/reader.py --against FOLDER [--rounds N] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from math import exp, log
from pathlib import Path
from statistics import mean, median
from time import process_time

import toolglot
from toolglot import CallArguments, ReasoningDelta, TextDelta

CHUNK = 4
SIZES = (2_000, 20_000, 200_000, 2_000_000)
QUICK_SIZES = (2_000, 20_000, 200_000)
PATH = "src/report.py"
INTRO = "I will write the report module first. Then I will run its tests.\n\n"

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "description": "Write a file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["path", "content"],
            },
        },
    }
]

CODE = """\
def total(rows, *, key="amount"):
    '''Sum one column; "none" counts as 0 and a < b is not checked.'''
    result = 0
    for row in rows:
        value = row.get(key) or 0
        if value > 10 and key != 'skip':
            print(f"{key}: {value:>8}  # {len(rows)} rows\\t[ok]")
        result += value
    return {"total": result, "key": key}


"""
PROSE = """\
The harbour opens at six and the first ferry leaves a little later, if the wind allows. Last year 41 of 365 trips were
cancelled (most of them in January), so a second boat was bought; it is slower, but it can carry ten cars. "That will do",
said the captain, and went back to his coffee - a habit nobody has ever seen him break.

- Tickets: 4.50 for adults, 2.25 for children
- Bicycles travel free of charge

"""
HTML = """\
A page needs a `<title>` and a body. Use <div class="card"> for each item & close it:

<ul>
  <li><a href="/one">One</a></li>
  <li>List<String> names = new ArrayList<>(); if (a < b) { return {"name": "x"}; }</li>
</ul>

Then add <br/> where needed, and remember that Vec<T> in Rust is not HTML.

"""


def json_body(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def as_is(text: str) -> str:
    return text


Encoder = Callable[[str], str]
ARGUMENTS = f'{{"path": "{PATH}", "content": "', '"}'
CALLS: dict[str, tuple[str, str, Encoder]] = {
    "qwen3_coder": (
        f"<tool_call>\n<function=write_file>\n<parameter=path>\n{PATH}\n</parameter>\n<parameter=content>\n",
        "\n</parameter>\n</function>\n</tool_call>",
        as_is,
    ),
    "hermes": (
        '<tool_call>\n{"name": "write_file", "arguments": ' + ARGUMENTS[0],
        ARGUMENTS[1] + "}\n</tool_call>",
        json_body,
    ),
    "fenced_json": (
        '```json\n{"name": "write_file", "arguments": ' + ARGUMENTS[0],
        ARGUMENTS[1] + "}\n```",
        json_body,
    ),
    "roo_xml": (f"<write_file>\n<path>{PATH}</path>\n<content>\n", "\n</content>\n</write_file>", as_is),
    "glm47": (
        f"<tool_call>write_file<arg_key>path</arg_key><arg_value>{PATH}</arg_value><arg_key>content</arg_key><arg_value>",
        "</arg_value></tool_call>",
        as_is,
    ),
    "dsml_v4": (
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="write_file">\n<｜DSML｜parameter name="path" string="true">'
        f'{PATH}</｜DSML｜parameter>\n<｜DSML｜parameter name="content" string="true">',
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        as_is,
    ),
    "kimi_k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>"
        + ARGUMENTS[0],
        ARGUMENTS[1] + "<|tool_call_end|><|tool_calls_section_end|>",
        json_body,
    ),
    "minimax_m2": (
        '<minimax:tool_call>\n<invoke name="write_file">\n<parameter name="path">'
        f'{PATH}</parameter>\n<parameter name="content">',
        "</parameter>\n</invoke>\n</minimax:tool_call>",
        as_is,
    ),
    "anthropic": (
        f'<function_calls>\n<invoke name="write_file">\n<parameter name="path">{PATH}</parameter>\n<parameter name="content">',
        "</parameter>\n</invoke>\n</function_calls>",
        as_is,
    ),
    "harmony": (
        "<|start|>assistant<|channel|>commentary to=functions.write_file <|constrain|>json<|message|>" + ARGUMENTS[0],
        ARGUMENTS[1] + "<|call|>",
        json_body,
    ),
    "gemma4": (
        f'<|tool_call>call:write_file{{path:<|"|>{PATH}<|"|>,content:<|"|>',
        '<|"|>}<tool_call|>',
        as_is,
    ),
    "mistral_args": ("[TOOL_CALLS]write_file[ARGS]" + ARGUMENTS[0], ARGUMENTS[1], json_body),
}
TEXTS = {"plain prose": PROSE, "prose with HTML": HTML}


@dataclass(frozen=True)
class Case:
    """One text to read; ``content`` is what its call must carry, None if it has no call."""

    name: str
    size: int
    text: str
    content: str | None
    prefix: str = ""
    encode: Encoder = as_is

    @property
    def chunks(self) -> list[str]:
        return [self.text[i : i + CHUNK] for i in range(0, len(self.text), CHUNK)]


def make_case(name: str, size: int) -> Case:
    if name in TEXTS:
        return Case(name, size, fill(TEXTS[name], size), None)
    before, after, encode = CALLS[name]
    content = fill(CODE, size).strip("\n")
    prefix = INTRO + before
    return Case(name, size, prefix + encode(content) + after, content, prefix, encode)


def fill(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


# Reading


def bare_loop(chunks: Iterable[str]) -> None:
    kept: list[str] = []
    append = kept.append
    for chunk in chunks:
        append(chunk)


def read_chunks(chunks: Iterable[str]) -> None:
    reader = toolglot.Reader(tools=TOOLS)
    feed = reader.feed
    for chunk in chunks:
        feed(chunk)
    reader.close()


def verify(case: Case) -> str:
    """Why the case is not read as it must be, or nothing."""
    reading = toolglot.read(case.text, tools=TOOLS)
    if case.content is None:
        return "" if reading.text == case.text and not reading.calls else "not left as text"
    arguments = [json.loads(call.arguments) for call in reading.calls]
    return "" if arguments == [{"path": PATH, "content": case.content}] else "call not read"


# Time


def measure(work: Callable[[list[str]], None], chunks: list[str]) -> float:
    """CPU seconds for one pass, the mean of enough passes to see them."""
    passes = max(1, 100_000 // sum(map(len, chunks)))
    start = process_time()
    for _ in range(passes):
        work(chunks)
    return (process_time() - start) / passes


@dataclass
class Times:
    """Median seconds by size."""

    chunked: dict[int, float]
    bare: dict[int, float]
    whole: dict[int, float]
    chunks: dict[int, int]

    def per_chunk(self, size: int) -> float:
        return self.chunked[size] / self.chunks[size] * 1e6

    def bare_per_chunk(self, size: int) -> float:
        return self.bare[size] / self.chunks[size] * 1e6


def time_all(names: list[str], sizes: tuple[int, ...], rounds: int) -> dict[str, Times]:
    """Every case at every size, one round after the other so that noise falls on all of them alike."""
    seconds: dict[tuple[str, int, str], list[float]] = {}
    counts: dict[tuple[str, int], int] = {}
    for _ in range(rounds):
        for size in sizes:
            for name in names:
                case = make_case(name, size)
                chunks = case.chunks
                counts[name, size] = len(chunks)
                for kind, work, parts in (
                    ("bare", bare_loop, chunks),
                    ("chunked", read_chunks, chunks),
                    ("whole", read_chunks, [case.text]),
                ):
                    seconds.setdefault((name, size, kind), []).append(measure(work, parts))

    def medians(name: str, kind: str) -> dict[int, float]:
        return {size: median(seconds[name, size, kind]) for size in sizes}

    return {
        name: Times(
            chunked=medians(name, "chunked"),
            bare=medians(name, "bare"),
            whole=medians(name, "whole"),
            chunks={size: counts[name, size] for size in sizes},
        )
        for name in names
    }


# Two checkouts

KINDS = ("in chunks", "whole")
COMPARED_SIZE = 200_000
COMPARED_ROUNDS = 25
ROUNDS_OF_A_PROCESS = 5
"""Where a process happens to put things in memory makes it a little faster or slower until it ends."""


def time_requests(lines: Iterable[str]) -> None:
    """Serve another process: tell which sources are read with, then the CPU seconds of one pass for each line of input.

    A line is a JSON list of the name of a case and a kind.
    """
    print(Path(toolglot.__file__).resolve().parent, flush=True)
    cases: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        name, kind = json.loads(line)
        if (name, kind) not in cases:
            case = make_case(name, COMPARED_SIZE)
            cases[name, kind] = case.chunks if kind == KINDS[0] else [case.text]
            read_chunks(cases[name, kind])
        print(measure(read_chunks, cases[name, kind]), flush=True)


class Checkout:
    """A process that reads with the sources of one checkout; this file, whatever the checkout's own bench is like."""

    def __init__(self, folder: Path) -> None:
        sources = folder.resolve() / "src"
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(sources)},
        )
        assert self.process.stdout
        found = self.process.stdout.readline().strip()
        if found != str(sources / "toolglot"):
            raise SystemExit(f"{folder} is no checkout of toolglot: its reader would be that of {found or 'none'}")

    def measure(self, name: str, kind: str) -> float:
        """CPU seconds to read one case."""
        assert self.process.stdin and self.process.stdout
        print(json.dumps([name, kind]), file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.communicate()


def compare(names: list[str], other: Path, rounds: int) -> dict[tuple[str, str], tuple[list[float], list[float]]]:
    """Seconds of the other checkout and of this one, by case and kind. Who comes first changes from round to round."""
    here = Path(__file__).resolve().parent.parent
    checkouts: list[Checkout] = []
    seconds: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    for number in range(rounds):
        if number % ROUNDS_OF_A_PROCESS == 0:
            stop_all(checkouts)
            checkouts = [Checkout(other), Checkout(here)]
        for name in names:
            for kind in KINDS:
                taken = seconds.setdefault((name, kind), ([], []))
                for which in (0, 1) if number % 2 else (1, 0):
                    taken[which].append(checkouts[which].measure(name, kind))
    stop_all(checkouts)
    return seconds


def stop_all(checkouts: Iterable[Checkout]) -> None:
    for checkout in checkouts:
        checkout.stop()


def print_comparison(names: list[str], other: Path, rounds: int) -> None:
    """Print the ratios of this checkout to the other, case by case and over all cases."""
    print(
        f"Python {platform.python_version()}, {rounds} rounds by turns, texts of {COMPARED_SIZE:,} characters, chunks of {CHUNK}."
    )
    print(
        "Ratios of this checkout to the other one, above 1 is slower: the median of the rounds, that of the fastest rounds,"
    )
    print("and the middle half of the rounds, which is the noise.\n")
    print("| dialect | before, ms | now, ms | ratio | of the fastest | noise | whole: ratio | of the fastest | noise |")
    print("|---" + "|---:" * 8 + "|")
    seconds = compare(names, other, rounds)
    for name in names:
        before, now = (median(taken) * 1e3 for taken in seconds[name, KINDS[0]])
        cells = [f"{before:.1f}", f"{now:.1f}", *(cell for kind in KINDS for cell in ratios(*seconds[name, kind]))]
        print("| " + " | ".join([name, *cells]) + " |")
    for kind in KINDS:
        cases = [seconds[name, kind] for name in names]
        middle = exp(mean(log(median(round_ratios(*case))) for case in cases))
        fastest = exp(mean(log(min(now) / min(before)) for before, now in cases))
        print(f"\nGeometric mean over all, {kind}: {middle:.3f} of the rounds, {fastest:.3f} of the fastest rounds")


def round_ratios(before: list[float], now: list[float]) -> list[float]:
    """The ratios of single rounds, in ascending order."""
    return sorted(late / early for early, late in zip(before, now, strict=True))


def ratios(before: list[float], now: list[float]) -> tuple[str, str, str]:
    """The median of the ratios of single rounds, the ratio of the fastest rounds, and the quartiles of the former."""
    single = round_ratios(before, now)
    low, high = single[len(single) // 4], single[-1 - len(single) // 4]
    return f"{median(single):.2f}", f"{min(now) / min(before):.2f}", f"{low:.2f}-{high:.2f}"


# Hold-back


def hold_back(case: Case) -> tuple[int | None, int | None]:
    """The most characters ever withheld: outside of calls, and inside the string argument."""
    reader = toolglot.Reader(tools=TOOLS)
    shown = written = outside = inside = 0
    value_ends = list(accumulate((len(case.encode(c)) for c in case.content or ""), initial=len(case.prefix)))[1:]
    json_start = len(f'{{"path":"{PATH}","content":"')
    json_ends = list(accumulate((len(json_body(c)) for c in case.content or ""), initial=json_start))[1:]
    value_span = (len(case.prefix), value_ends[-1] if value_ends else 0)
    text_end = len(case.text) if case.content is None else len(INTRO)
    for position, character in enumerate(case.text, start=1):
        for event in reader.feed(character):
            if isinstance(event, TextDelta | ReasoningDelta):
                shown += len(event.text)
            elif isinstance(event, CallArguments):
                written += len(event.fragment)
        if position <= text_end:
            outside = max(outside, position - shown)
        elif value_span[0] < position <= value_span[1]:
            fed = bisect_right(value_ends, position)
            inside = max(inside, fed - bisect_right(json_ends, written))
    reader.close()
    return outside, None if case.content is None else inside


# Printing

COLUMNS = (
    "dialect",
    "us/chunk",
    "bare us/chunk",
    "ratio to bare",
    "t(200k)/t(20k)",
    "per chunk, largest/2k",
    "200k in chunks, ms",
    "200k whole, ms",
    "held back outside",
    "held back in string",
)


def row(name: str, times: Times, sizes: tuple[int, ...]) -> list[str]:
    middle, large, small, largest = 20_000, 200_000, sizes[0], sizes[-1]
    held = hold_back(make_case(name, middle))
    return [
        name,
        f"{times.per_chunk(large):.2f}",
        f"{times.bare_per_chunk(large):.3f}",
        f"{times.per_chunk(large) / times.bare_per_chunk(large):.0f}",
        f"{times.chunked[large] / times.chunked[middle]:.1f}",
        f"{times.per_chunk(largest) / times.per_chunk(small):.2f}",
        f"{times.chunked[large] * 1e3:.1f}",
        f"{times.whole[large] * 1e3:.1f}",
        *("-" if most is None else str(most) for most in held),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round, no 2M texts")
    parser.add_argument("--rounds", type=int, help="rounds to take the median of (default 3, quick 1)")
    names = [*CALLS, *TEXTS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="only these dialects")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="compare with the reader of another checkout")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        time_requests(sys.stdin)
        return
    if options.against:
        print_comparison(options.only, options.against, options.rounds or COMPARED_ROUNDS)
        return
    sizes = QUICK_SIZES if options.quick else SIZES
    rounds = options.rounds or (1 if options.quick else 3)

    for name in options.only:
        for size in sizes[:2]:
            if problem := verify(make_case(name, size)):
                print(f"**{name}, {size} characters: {problem}**")
    times = time_all(options.only, sizes, rounds)
    print(f"Python {platform.python_version()}, {rounds} interleaved round(s), medians, chunks of {CHUNK} characters,")
    print(
        f"largest text {sizes[-1]:,} characters, automatic detection, gc on. Machine noise matters: compare ratios.\n"
    )
    print("| " + " | ".join(COLUMNS) + " |")
    print("|---" + "|---:" * (len(COLUMNS) - 1) + "|")
    for name in options.only:
        print("| " + " | ".join(row(name, times[name], sizes)) + " |", flush=True)


if __name__ == "__main__":
    main()
