"""Real small models behind toolglot: alone, without and with recovery, and behind other gateways that repair calls.

Three kinds of items: the 20 requests and the small talk of ``bench/local.py``; questions of BFCL; tasks on real files that
take several turns (``agent_tasks.py``). Every way to the model gets the same items at temperature 0. What the model was
asked is counted by a relay before it.

Answers of the models and verdicts are kept in ``build/models``, so the bench can run in pieces: what has a verdict is not
done again, and equal requests are answered from memory.

    python bench/models.py                                  everything that has no verdict yet, then the tables
    python bench/models.py --models qwen-1.5b --rows 6      one model, 36 questions of BFCL
    python bench/models.py --minutes 20                     stop after 20 minutes
    python bench/models.py --again --ways on                anew, after a change of toolglot
    python bench/models.py --tables                         only print what was measured
    python bench/models.py --tuning --ways on               other items, to try changes of toolglot with
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import agent_tasks
import asking
import bfcl
import local
import packages
import rivals
import tuning_items
from message_wire import from_messages_answer, to_messages_request
from remembering import Memory, RememberingRelay

BUILD = Path(__file__).resolve().parent.parent / "build" / "models"
MODELS = tuple(packages.MODELS)
RETRIES = "TOOLGLOT_RECOVERY_RETRIES"
TOOLGLOT: Mapping[str, Mapping[str, str]] = {"off": {RETRIES: "0"}, "on": {}}
WAYS = ("bare", *TOOLGLOT, *rivals.RIVALS)
NAMES = {
    "bare": "the model alone",
    "off": "toolglot, `retries = 0`",
    "on": "toolglot",
    "forge": "forge 0.10.0",
    "coderouter": "CodeRouter 2.19",
}
FIRST_ROWS = 6
"""Questions of each category at equal distances, as ``bench/reading.py --rows 6`` has them; further ones by a hash."""
TUNING_ROWS = 12
"""Further questions of each category, behind those that measure."""
LONGEST_ANSWER = 256
PATIENCE = 900


class Way:
    """One way to a model: its address, its wire, and the relay that counts."""

    def __init__(self, name: str, base_url: str, model: str, relay: RememberingRelay) -> None:
        self.name, self.base_url, self.model, self.relay = name, base_url, model, relay

    def ask(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        """The message that answers, or ``{"error": text}``."""
        asked = {
            "model": self.model,
            "messages": messages,
            "tools": tools,
            "temperature": 0,
            "max_tokens": LONGEST_ANSWER,
        }
        try:
            if self.name in rivals.RIVALS and rivals.RIVALS[self.name].messages_wire:
                return from_messages_answer(self._send("/messages", to_messages_request(asked)))
            return dict(self._send("/chat/completions", asked)["choices"][0]["message"])
        except urllib.error.HTTPError as refused:
            return {"error": f"{refused.code} {refused.read()[:300]!r}"}

    def _send(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
        request = urllib.request.Request(self.base_url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)


# -- items -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """One thing to do. ``run`` returns verdicts, of which each counts in a column, and what there is to show."""

    part: str
    name: str
    run: Callable[[Way], tuple[list[str], str]]


def list_items(parts: Sequence[str], rows: int, tuning: bool) -> Iterator[Item]:
    """The items of the parts, in a fixed order. Those for tuning are others, as long as ``rows`` is not changed."""
    if "requests" in parts:
        asked = tuning_items if tuning else local
        yield from (Item("requests", each[0], _Request(*each, asked.TOOLS)) for each in asked.REQUESTS)
        yield from (Item("requests", text, _SmallTalk(text, asked.TOOLS)) for text in asked.SMALL_TALK)
    if "tasks" in parts:
        tasks = tuning_items.TASKS if tuning else agent_tasks.TASKS
        yield from (Item("tasks", task.name, _TaskRun(task)) for task in tasks)
    if "bfcl" in parts:
        questions = choose_questions(packages.download(packages.BFCL, BUILD), rows + TUNING_ROWS * tuning)
        if tuning:
            questions = questions[rows * len(bfcl.CATEGORIES) :]
        yield from (Item("bfcl", question.name, _Question(question)) for question in questions)


def choose_questions(wheel: Path, rows: int) -> list[bfcl.Question]:
    """``rows`` questions of every category, in turns: first those at equal distances, then by the hash of their names."""
    by_category: dict[str, list[bfcl.Question]] = {}
    for question in bfcl.load_questions(wheel, sys.maxsize):
        by_category.setdefault(question.category, []).append(question)
    chosen = []
    for questions in by_category.values():
        first = [questions[at] for at in bfcl.choose(len(questions), FIRST_ROWS)]
        others = sorted(
            (each for each in questions if each not in first),
            key=lambda each: hashlib.sha256(each.name.encode()).hexdigest(),
        )
        chosen.append([*first, *others][:rows])
    return [question for turn in zip(*chosen, strict=True) for question in turn]


@dataclass(frozen=True)
class _Request:
    text: str
    tool: str
    arguments: Mapping[str, str]
    tools: list[dict[str, Any]]

    def __call__(self, way: Way) -> tuple[list[str], str]:
        message = way.ask([{"role": "user", "content": self.text}], self.tools)
        call = local.read_call(message, self.tools)
        right = call is not None and call[0] == self.tool
        exact = call == (self.tool, self.arguments)
        return ["valid"] * (call is not None) + ["right"] * right + ["exact"] * exact, show(message)


@dataclass(frozen=True)
class _SmallTalk:
    text: str
    tools: list[dict[str, Any]]

    def __call__(self, way: Way) -> tuple[list[str], str]:
        message = way.ask([{"role": "user", "content": self.text}], self.tools)
        return ["text"] * (not message.get("tool_calls") and bool(message.get("content"))), show(message)


@dataclass(frozen=True)
class _Question:
    question: bfcl.Question

    def __call__(self, way: Way) -> tuple[list[str], str]:
        message = way.ask(self.question.messages, self.question.tools)
        failed = "error" in message
        return ["failed" if failed else bfcl.judge(self.question, asking.read_calls(message))], show(message)


@dataclass(frozen=True)
class _TaskRun:
    task: agent_tasks.Task

    def __call__(self, way: Way) -> tuple[list[str], str]:
        with tempfile.TemporaryDirectory() as folder:
            solved, ending = agent_tasks.work(self.task, Path(folder), way.ask)
        return ["solved"] * solved, ending


def show(message: Mapping[str, Any]) -> str:
    """An answer in one line."""
    calls = asking.read_calls(dict(message))
    return str(message.get("error") or " ".join(filter(None, (str(calls) if calls else "", message.get("content")))))


# -- results -----------------------------------------------------------------------------------------------------------

Key = tuple[str, str, str, str]


@dataclass
class Results:
    """The verdicts by model, part, item and way; the last one of an item counts."""

    path: Path
    kept: dict[Key, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                self._take(json.loads(line))

    def _take(self, result: dict[str, Any]) -> None:
        self.kept[result["model"], result["part"], result["item"], result["way"]] = result

    def add(self, result: dict[str, Any]) -> None:
        self._take(result)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result, ensure_ascii=False) + "\n")


# -- running -----------------------------------------------------------------------------------------------------------


@contextmanager
def open_ways(model: str, names: Iterable[str], options: argparse.Namespace) -> Iterator[list[Way]]:
    """The model, and the ways to it that can be opened."""
    memory = Memory(BUILD / f"{model}.answers.jsonl")
    with ExitStack() as stack:
        running = stack.enter_context(packages.run_model(model))
        name, served = running.model, running.base_url.removesuffix("/v1")
        ways = []
        for each in names:
            relay = RememberingRelay(served, memory)
            try:
                address = stack.enter_context(_open(each, relay.base_url, name, options.python))
            except RuntimeError as absent:
                packages.tell(f"{NAMES[each]} is left out: {absent}")
            else:
                ways.append(Way(each, address, name, relay))
        yield ways


@contextmanager
def _open(way: str, base_url: str, model: str, python: str | None) -> Iterator[str]:
    """The address at which a client finds the model this way."""
    if way == "bare":
        yield base_url
    elif way in TOOLGLOT:
        mode = "embedded" if model == packages.SMALL else "auto"
        with asking.gateway(base_url, model, mode, TOOLGLOT[way]) as address:
            yield address
    else:
        with rivals.running(way, base_url, model, BUILD, python) as address:
            yield address


def measure(model: str, results: Results, options: argparse.Namespace, end: float) -> None:
    """Give every way the items that it has no verdict for."""
    items = list(list_items(options.parts, options.rows, options.tuning))
    due = {
        (item.part, item.name, way)
        for item in items
        for way in options.ways
        if options.again or (model, item.part, item.name, way) not in results.kept
    }
    if not due:
        return
    packages.tell(f"{model}: {len(due)} to do")
    with open_ways(model, options.ways, options) as ways:
        for item in items:
            for way in ways:
                if (item.part, item.name, way.name) in due and time.monotonic() < end:
                    results.add({"model": model, "way": way.name} | _run_item(item, way))


def _run_item(item: Item, way: Way) -> dict[str, Any]:
    asked, seconds = way.relay.asked, way.relay.seconds
    verdicts, shown = item.run(way)
    result = {
        "part": item.part,
        "item": item.name,
        "verdicts": verdicts,
        "requests": way.relay.asked - asked,
        "seconds": round(way.relay.seconds - seconds, 1),
        "shown": shown,
    }
    packages.tell(f"{way.name} {item.name}: {verdicts} {result['requests']} {result['seconds']} s {shown[:200]!r}")
    return result


# -- tables ------------------------------------------------------------------------------------------------------------

COLUMNS = {
    "requests": ("valid", "right", "exact", "text"),
    "tasks": ("solved",),
    "bfcl": bfcl.VERDICTS,
}
TITLES = {
    "requests": "20 requests, 6 of small talk",
    "tasks": f"{len(agent_tasks.TASKS)} tasks on files",
    "bfcl": packages.BFCL,
}


def print_tables(results: Results, models: Sequence[str]) -> None:
    """A table for each model and part, over the items that all of its ways have a verdict for."""
    for model in models:
        for part, columns in COLUMNS.items():
            found = [result for key, result in results.kept.items() if key[:2] == (model, part)]
            ways = [way for way in WAYS if any(result["way"] == way for result in found)]
            if not ways:
                continue
            done = {way: {each["item"] for each in found if each["way"] == way} for way in ways}
            common = set.intersection(*done.values())
            print(f"\n{model}, {TITLES[part]}: {len(common)} items\n")
            print(f"| way | {' | '.join(columns)} | requests | s of the model per request |")
            print("|---" + "|---:" * (len(columns) + 2) + "|")
            for way in ways:
                print(
                    _table_row(way, columns, [each for each in found if each["way"] == way and each["item"] in common])
                )
            if part == "bfcl":
                _print_categories(found, ways, common)


def _table_row(way: str, columns: Sequence[str], found: Sequence[dict[str, Any]]) -> str:
    counts = [sum(column in each["verdicts"] for each in found) for column in columns]
    requests = sum(each["requests"] for each in found)
    seconds = sum(each["seconds"] for each in found) / max(1, requests)
    return f"| {NAMES[way]} | {' | '.join(map(str, counts))} | {requests} | {seconds:.1f} |"


def _print_categories(found: Sequence[dict[str, Any]], ways: Sequence[str], common: set[str]) -> None:
    """The exact answers by category, and those of the first 36 questions."""
    first = {each.name for each in choose_questions(packages.download(packages.BFCL, BUILD), FIRST_ROWS)}
    print(f"\n| exact | {' | '.join(bfcl.CATEGORIES)} | of the first {len(first & common)} |")
    print("|---" + "|---:" * (len(bfcl.CATEGORIES) + 1) + "|")
    totals = Counter(map(bfcl.find_category, common))
    for way in ways:
        exact = {each["item"] for each in found if each["way"] == way and "exact" in each["verdicts"]} & common
        counts = Counter(map(bfcl.find_category, exact))
        cells = (f"{counts[category]}/{totals[category]}" for category in bfcl.CATEGORIES)
        print(f"| {NAMES[way]} | {' | '.join(cells)} | {len(exact & first)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--parts", nargs="+", choices=COLUMNS, default=tuple(COLUMNS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--rows", type=int, default=34, help="questions of each of the six categories (default 34)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
    parser.add_argument("--again", action="store_true", help="also what has a verdict")
    parser.add_argument("--python", help="a Python of at least 3.12, for the other gateways")
    parser.add_argument("--tuning", action="store_true", help="the items for tuning, which measure nothing")
    parser.add_argument("--results", type=Path, help="file of the verdicts")
    parser.add_argument("--tables", action="store_true", help="only print the tables")
    options = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    file = options.results or BUILD / ("tuning.jsonl" if options.tuning else "results.jsonl")
    results, end = Results(file), time.monotonic() + options.minutes * 60
    for model in () if options.tables else options.models:
        measure(model, results, options, end)
    print_tables(results, options.models)


if __name__ == "__main__":
    main()
