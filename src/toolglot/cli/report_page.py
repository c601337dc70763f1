"""The page of ``toolglot report --html``: rates, outcomes and latencies over time, as one file that works offline.

Plots are SVG drawn here; the page has no script and loads nothing, so texts of models cannot do anything in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any, Final

from toolglot.gateway.telemetry.kpis import Kpis, find_span
from toolglot.gateway.telemetry.report import TARGET

Point = tuple[float, float]
Lines = Mapping[str, Sequence[Point]]
"""The points of each line of a plot, by its name."""

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 220, 52, 24, 10
COLORS: Final = ("#2f6fde", "#d9822b", "#2b9a66", "#c93c6e", "#7a5af0", "#6b7280", "#b59f00", "#0e9aa7")
STYLE: Final = """
:root { color-scheme: light dark; --line: #d7dbe0; --dim: #667085; }
@media (prefers-color-scheme: dark) { :root { --line: #333a44; --dim: #98a2b3; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 980px; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: right; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
.wide { overflow-x: auto; } .dim { color: var(--dim); } svg { max-width: 100%; height: auto; }
svg text { fill: currentColor; font-size: 11px; } .grid { stroke: var(--line); }
.legend span { margin-right: 1rem; white-space: nowrap; } .swatch { display: inline-block; width: .8em; height: .8em; }
"""


RATES: Final = {"success": "success rate", "errors": "error rate", "recognition": "tool recognition"}
"""Columns of the table of models, and the rates in them."""


def make_page(lines: Sequence[str]) -> str:
    """The page for these records, as lines of JSON with any prefix of a log collector."""
    encoded = [line[line.find("{") :].encode("utf-8", "replace") for line in lines]
    kpis = Kpis(*find_span(encoded))
    for record in encoded:
        kpis.add(record)
    return "".join(_render(kpis.describe()))


def _render(found: Mapping[str, Any]) -> Iterator[str]:
    series: Sequence[Mapping[str, Any]] = found["series"]
    yield "<!doctype html><html lang=en><meta charset=utf-8><title>toolglot report</title>"
    yield '<meta name=viewport content="width=device-width, initial-scale=1">'
    yield f"<style>{STYLE}</style><h1>toolglot report</h1>"
    yield f"<p>{found['requests']:,} requests from {_format_time(found['begin'])} to {_format_time(found['end'])}.</p>"
    yield "<h2>Success of transformations</h2>"
    yield f"<p class=dim>Calls delivered without a complaint, of calls attempted. The target is {TARGET:.0%}.</p>"
    yield draw_plot(_collect_rates(series, "success rate"), found, _format_percent, top=1.0, mark=TARGET)
    yield "<h2>Tool recognition</h2><p class=dim>Calls delivered, of calls that were meant.</p>"
    yield draw_plot(_collect_rates(series, "tool recognition"), found, _format_percent, top=1.0)
    yield "<h2>Requests by end</h2>"
    yield draw_plot(_collect_counts(series, "outcomes"), found, _format_number)
    yield "<h2>Who was at fault</h2>"
    faults = {name: points for name, points in _collect_counts(series, "faults").items() if name != "none"}
    yield draw_plot(faults, found, _format_number)
    yield "<h2>Time to the first chunk, and to the end</h2>"
    latencies = {
        f"{title} {quantile}": [(one["time"], one[key][quantile]) for one in series if one[key]]
        for key, title in (("first_chunk", "first"), ("duration", "end"))
        for quantile in ("p50", "p95")
    }
    yield draw_plot(latencies, found, _format_seconds)
    yield "<h2>Overhead</h2><p class=dim>Time that the gateway itself took.</p>"
    overheads = {
        quantile: [(one["time"], one["overhead"][quantile]) for one in series if one["overhead"]]
        for quantile in ("p50", "p95", "p99")
    }
    yield draw_plot(overheads, found, _format_seconds)
    yield from _render_models(found["models"])


def _render_models(models: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    heads = ("model", "dialect", "requests", "calls", "repairs", "rejected", "retries", *RATES)
    yield "<h2>Models and dialects</h2><div class=wide><table><tr>"
    yield "".join(f"<th>{head}" for head in heads)
    for model in models:
        rates: Mapping[str, Any] = model["rates"]
        cells = (
            model["model"] or "-",
            model["dialect"] or "-",
            f"{model['requests']:,}",
            f"{model['calls']:,}",
            f"{sum(model['repairs'].values()):,}",
            f"{sum(model['rejected'].values()):,}",
            f"{model['retries']:,}",
            *(_format_share(rates.get(rate)) for rate in RATES.values()),
        )
        yield "<tr>" + "".join(f"<td>{escape(str(cell))}" for cell in cells)
    yield "</table></div></html>\n"


def _collect_rates(series: Sequence[Mapping[str, Any]], rate: str) -> dict[str, list[Point]]:
    lines: dict[str, list[Point]] = {}
    for one in series:
        for name, found in one["transformations"].items():
            if found["rates"][rate] is not None:
                lines.setdefault(name, []).append((one["time"], found["rates"][rate]))
    return lines


def _collect_counts(series: Sequence[Mapping[str, Any]], key: str) -> dict[str, list[Point]]:
    """The counts of each name over time, with zeros where there is none."""
    names = dict.fromkeys(name for one in series for name in one[key])
    return {name: [(one["time"], float(one[key].get(name, 0))) for one in series] for name in names}


# Plots


def draw_plot(
    lines: Lines, found: Mapping[str, Any], show: Callable[[float], str], top: float = 0.0, mark: float | None = None
) -> str:
    """An SVG with one line per name; ``mark`` is a horizontal line."""
    highest = top or max((value for points in lines.values() for _, value in points), default=0.0)
    if not lines or not highest:
        return "<p class=dim>nothing was counted</p>"
    begin, width = found["begin"] - found["bucket_seconds"], WIDTH - LEFT - 10
    span = max(found["end"] - begin, 1.0)

    def place(point: Point) -> str:
        x = LEFT + (point[0] - begin) / span * width
        y = TOP + (1 - min(point[1] / highest, 1.0)) * (HEIGHT - TOP - BOTTOM)
        return f"{x:.1f},{y:.1f}"

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role=img>']
    for share in (0.0, 0.5, 1.0):
        y = TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)
        parts.append(f"<line class=grid x1={LEFT} x2={WIDTH - 10} y1={y:.1f} y2={y:.1f} />")
        parts.append(f"<text x={LEFT - 6} y={y + 4:.1f} text-anchor=end>{escape(show(share * highest))}</text>")
    for share, anchor in ((0.0, "start"), (1.0, "end")):
        label = _format_time(begin + share * span)
        parts.append(f"<text x={LEFT + share * width:.1f} y={HEIGHT - 6} text-anchor={anchor}>{label}</text>")
    if mark is not None:
        y = TOP + (1 - mark / highest) * (HEIGHT - TOP - BOTTOM)
        parts.append(f'<line x1={LEFT} x2={WIDTH - 10} y1={y:.1f} y2={y:.1f} stroke="#d33" stroke-dasharray="5 4" />')
    legend = []
    for at, (name, points) in enumerate(lines.items()):
        color = COLORS[at % len(COLORS)]
        path = " ".join(map(place, points))
        parts.append(f'<polyline points="{path}" fill=none stroke="{color}" stroke-width=2 />')
        parts += [f'<circle cx={x} cy={y} r=2.5 fill="{color}" />' for x, y in (p.split(",") for p in path.split())]
        legend.append(f'<span><i class=swatch style="background:{color}"></i> {escape(name)}</span>')
    return "".join([*parts, "</svg><p class=legend>", *legend, "</p>"])


def _format_time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


def _format_percent(share: float) -> str:
    return f"{share:.0%}"


def _format_share(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _format_number(number: float) -> str:
    return f"{number:,.0f}"


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.2g} s"
