"""The tables that ``gateway.py`` prints: medians, ratios, and how they stand against the targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from gateways import Gateway

Key = tuple[str, str, str]
TRANSLATED = ("hermes", "qwen3_coder", "native")


@dataclass(frozen=True)
class Result:
    """Median and relative spread (largest less smallest, over the median) by load, lane and metric."""

    medians: Mapping[Key, float]
    spreads: Mapping[Key, float]
    lanes: Sequence[str]
    gateways: Mapping[str, Gateway]

    def get(self, load: str, lane: str, metric: str) -> float | None:
        return self.medians.get((load, lane, metric))

    def added(self, load: str, lane: str, metric: str) -> float | None:
        """What a lane takes longer than no gateway."""
        here, direct = self.get(load, lane, metric), self.get(load, "direct", metric)
        return None if here is None or direct is None else here - direct


def ratio(figure: float | None, to: float | None) -> float | None:
    return None if figure is None or not to else figure / to


def worst(ratios: Sequence[float | None], choose: Callable[[list[float]], float] = max) -> float | None:
    known = [one for one in ratios if one is not None]
    return choose(known) if known else None


def say(figure: float | None, digits: int = 1, unit: str = "") -> str:
    return "-" if figure is None else f"{figure:,.{digits}f}{unit}"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print("| " + " | ".join(columns) + " |")
    print("|---" + "|---:" * (len(columns) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def label(result: Result, lane: str) -> str:
    gateway = result.gateways[lane]
    name = f"toolglot, {lane}" if gateway.name.startswith("toolglot") else lane
    return f"{name} {gateway.version}".strip()


def show(result: Result) -> None:
    show_medians(result)
    show_ratios(result)
    show_rest(result)
    show_targets(result)
    show_noise(result)


METRICS = (
    ("paced, CPU us/event", "paced", "event", 1),
    ("paced, added p50 us", "paced", "latency_p50", 0),
    ("paced, p99 us", "paced", "latency_p99", 0),
    ("slow, CPU us/event", "slow", "event", 0),
    ("slow, added p50 us", "slow", "latency_p50", 0),
    ("flood, CPU us/event", "flood", "event", 1),
    ("short, CPU us/request", "short", "request", 0),
    ("first chunk p50 us", "short", "ttfb_p50", 0),
    ("first chunk p99 us", "short", "ttfb_p99", 0),
    ("requests/s", "busy", "rate", 0),
)


def show_medians(result: Result) -> None:
    rows = []
    for lane in result.lanes:
        row = [label(result, lane)]
        for title, load, metric, digits in METRICS:
            if lane == "direct" and "CPU" in title:
                row.append("-")
            elif "added" in title and lane != "direct":
                row.append(say(result.added(load, lane, metric), digits))
            else:
                row.append(say(result.get(load, lane, metric), digits))
        rows.append(row)
    print("Added is over the direct way, whose own figure stands in its row.\n")
    table(["gateway", *(title for title, *_ in METRICS)], rows)


RATIOS = (
    ("paced CPU", "paced", "event"),
    ("slow CPU", "slow", "event"),
    ("flood CPU", "flood", "event"),
    ("short CPU", "short", "request"),
    ("busy CPU", "busy", "request"),
)


def show_ratios(result: Result) -> None:
    rows = []
    for lane in result.lanes:
        if lane in ("direct", "nginx"):
            continue
        row = [label(result, lane)]
        row += [
            say(ratio(result.get(load, lane, what), result.get(load, "nginx", what)), 2) for _, load, what in RATIOS
        ]
        for load, what in (("short", "ttfb_p50"), ("paced", "latency_p50")):
            row.append(say(ratio(result.added(load, lane, what), result.added(load, "nginx", what)), 2))
        row.append(say(ratio(result.get("slow", "LiteLLM", "event"), result.get("slow", lane, "event")), 0))
        row.append(say(ratio(result.get("flood", "LiteLLM", "event"), result.get("flood", lane, "event")), 0))
        row.append(say(ratio(result.get("short", "LiteLLM", "request"), result.get("short", lane, "request")), 0))
        rows.append(row)
    print("Times nginx; in the last three columns how many times less CPU than LiteLLM.\n")
    columns = [*(title for title, *_ in RATIOS), "added first chunk", "added per chunk"]
    table(["gateway", *columns, "slow event", "flood event", "short request"], rows)


def show_rest(result: Result) -> None:
    rows = []
    for lane in result.lanes:
        gateway = result.gateways[lane]
        if lane in ("direct", "plain"):
            continue
        held, unseen = result.get("hold", lane, "streams"), result.get("disconnect", lane, "unseen")
        rows.append(
            [
                label(result, lane),
                say(gateway.start_seconds, 2),
                say(gateway.idle_bytes / 1e6, 0),
                f"{say(result.get('hold', lane, 'total'), 0)} at {say(held, 0)}" if held else "-",
                say(result.get("hold", lane, "stream"), 1),
                say(result.get("disconnect", lane, "p50"), 1),
                say(result.get("disconnect", lane, "most"), 1),
                say(unseen, 0),
            ]
        )
    columns = ["start s", "idle MB", "MB with open streams", "KB/stream", "disconnect p50 ms", "most ms", "never seen"]
    table(["gateway", *columns], rows)


def show_targets(result: Result) -> None:
    def to_nginx(load: str, lanes: Sequence[str], metric: str, added: bool = False) -> float | None:
        get = result.added if added else result.get
        return worst([ratio(get(load, lane, metric), get(load, "nginx", metric)) for lane in lanes])

    def to_litellm(load: str, metric: str, lanes: Sequence[str]) -> float | None:
        other = result.get(load, "LiteLLM", metric)
        return worst([ratio(other, result.get(load, lane, metric)) for lane in lanes], min)

    ours = [gateway for gateway in result.gateways.values() if gateway.name.startswith("toolglot")]
    plain, all_lanes = ("relay", "plain"), ("relay", "plain", *TRANSLATED)
    starts = {gateway.name: gateway.start_seconds for gateway in ours}
    disconnects = [result.get("disconnect", lane, "most") for lane in all_lanes]
    two = ratio(result.get("workers", "hermes, 2 workers", "rate"), result.get("workers", "hermes", "rate"))
    rows: list[tuple[str, float | None, float, str]] = [
        ("translated chunk, CPU, paced", to_nginx("paced", TRANSLATED, "event"), 2, "x nginx"),
        ("plain text chunk and relay, CPU, paced", to_nginx("paced", plain, "event"), 1.7, "x nginx"),
        ("short request without tools, CPU", to_nginx("short", ("relay",), "request"), 4, "x nginx"),
        ("short request with tools, CPU", to_nginx("short", ("plain", *TRANSLATED), "request"), 4, "x nginx"),
        ("added time to first chunk p50, without tools", to_nginx("short", ("relay",), "ttfb_p50", True), 3, "x nginx"),
        ("added time to first chunk p50, with tools", to_nginx("short", TRANSLATED, "ttfb_p50", True), 3, "x nginx"),
        ("added per chunk p50, paced", to_nginx("paced", all_lanes, "latency_p50", True), 2, "x nginx"),
        ("CPU per chunk, slow, less than LiteLLM", to_litellm("slow", "event", ("relay", "hermes")), -15, "x"),
        ("CPU per chunk, flood, less than LiteLLM", to_litellm("flood", "event", all_lanes), -15, "x"),
        ("CPU per request, less than LiteLLM", to_litellm("short", "request", all_lanes), -60, "x"),
        ("memory per open stream", worst([result.get("hold", lane, "stream") for lane in all_lanes]), 40, " KB"),
        ("memory idle", worst([gateway.idle_bytes / 1e6 for gateway in ours]), 60, " MB"),
        ("start", median(starts.values()) if starts else None, 0.8, " s"),
        ("requests per second, 2 workers to 1", two, -1.8, "x"),
        ("client gone to upstream closed, most", worst(disconnects), 1000, " ms"),
    ]
    table(["figure, the worst of its lanes", "target", "here", "reached"], [judge(*row) for row in rows])


def judge(name: str, figure: float | None, target: float, unit: str) -> list[str]:
    """A negative target is one to stay above."""
    goal = f"{'>=' if target < 0 else '<='} {abs(target):g}{unit}"
    if figure is None:
        return [name, goal, "-", "not measured"]
    reached = figure >= -target if target < 0 else figure <= target
    return [name, goal, say(figure, 2 if figure < 10 else 0, unit), "yes" if reached else "**no**"]


def show_noise(result: Result) -> None:
    lines = []
    for title, load, metric in RATIOS[:4]:
        spreads = [
            f"{lane} {result.spreads[load, lane, metric]:.0%}"
            for lane in result.lanes
            if (load, lane, metric) in result.spreads and lane != "direct"
        ]
        lines.append(f"{title}: {', '.join(spreads)}")
    print("Noise, largest round less smallest over the median. " + "; ".join(lines) + ".")
