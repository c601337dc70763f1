"""Prometheus exposition of the metrics. Imported on the first scrape: ``prometheus_client`` would slow the start."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE

from toolglot.gateway.telemetry.metrics import Count, Family, Histogram, Metrics

__all__ = ["CONTENT_TYPE", "render"]


def render(metrics: Metrics) -> bytes:
    """All metrics in the Prometheus text format, of type ``CONTENT_TYPE``."""
    registry = CollectorRegistry()
    registry.register(_Families(metrics))
    return generate_latest(registry)


class _Families:
    """Adapts the metrics to a ``prometheus_client`` collector."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics

    def collect(self) -> Iterator[Metric]:
        created = _shows_created()
        return (_convert(family, created) for family in self.metrics.families)


def _convert(family: Family[Count] | Family[Histogram], created: bool) -> Metric:
    metric = Metric(family.name, family.help, family.kind)
    for values, (counted, since) in family.children.items():
        labels = dict(zip(family.labels, values, strict=True))
        for ending, more, number in counted.samples():
            metric.add_sample(family.name + ending, {**labels, **more}, number)
        if created and family.kind != "gauge":
            metric.add_sample(f"{family.name}_created", labels, since)
    return metric


def _shows_created() -> bool:
    """Whether ``_created`` samples are exposed; an environment variable of ``prometheus_client`` turns them off."""
    (probe,) = Counter("probe", "", registry=None).collect()
    return len(probe.samples) > 1
