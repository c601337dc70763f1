"""What is counted, as Prometheus reads it. Loaded when it asks: its package is a good part of a start."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE

from toolglot.gateway.telemetry.metrics import Count, Family, Metrics, Spread

__all__ = ["CONTENT_TYPE", "render"]


def render(metrics: Metrics) -> bytes:
    """All of them in the text format of Prometheus, of type ``CONTENT_TYPE``."""
    registry = CollectorRegistry()
    registry.register(_Families(metrics))
    return generate_latest(registry)


class _Families:
    """The metrics in the words of the package."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics

    def collect(self) -> Iterator[Metric]:
        created = _tells_created()
        return (_tell(family, created) for family in self.metrics.families)


def _tell(family: Family[Count] | Family[Spread], created: bool) -> Metric:
    metric = Metric(family.name, family.tells, family.kind)
    for values, (counted, since) in family.told.items():
        labels = dict(zip(family.labels, values, strict=True))
        for ending, more, number in counted.tell():
            metric.add_sample(family.name + ending, {**labels, **more}, number)
        if created and family.kind != "gauge":
            metric.add_sample(f"{family.name}_created", labels, since)
    return metric


def _tells_created() -> bool:
    """Whether it is told since when something is counted: the environment can turn that off for all of Prometheus."""
    (probe,) = Counter("probe", "", registry=None).collect()
    return len(probe.samples) > 1
