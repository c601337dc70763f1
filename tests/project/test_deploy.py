"""Files in deploy/: the Grafana dashboard asks only for metrics and labels that the gateway has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from support.rows import in_one_test

from toolglot.gateway.telemetry.metrics import Metrics

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "toolglot.json").read_text("utf-8"))
ENDINGS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
FAMILIES = {family.name + ending: family for family in Metrics().families for ending in ENDINGS[family.kind]}
SERVER_LABELS = {"instance", "le"}
"""Labels of Prometheus itself, and the bounds of histograms."""


def list_queries() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


@in_one_test("query", list_queries())
def test_queries_use_existing_metrics_and_labels(query: str) -> None:
    names = re.findall(r"toolglot_\w+", query)
    assert names
    for name in names:
        assert name in FAMILIES
    allowed = SERVER_LABELS.union(*(FAMILIES[name].labels for name in names))
    used = set(re.findall(r"(\w+)\s*!?=~?\s*\"", query))
    used |= {label.strip() for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(",")}
    assert used <= allowed


def test_legends_use_labels_that_the_query_keeps() -> None:
    targets: list[dict[str, Any]] = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
    for target in targets:
        kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= kept


def test_every_counter_of_requests_is_shown() -> None:
    shown = set(re.findall(r"toolglot_\w+", " ".join(list_queries())))
    for name in ("toolglot_outcomes_total", "toolglot_attempts_total", "toolglot_calls_total", "toolglot_errors_total"):
        assert name in shown


def test_prometheus_scrapes_the_default_port() -> None:
    settings = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))
    assert settings["scrape_configs"][0]["static_configs"][0]["targets"] == ["127.0.0.1:8484"]
