"""What the deadline owners of this process did, for Prometheus: read from memory when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lastcall.api.ops.awake import Awake
from lastcall.deadlines.lane import OwnerStatus

PREFIX = "lastcall_"

_COUNTERS: dict[str, tuple[str, Callable[[OwnerStatus], int]]] = {
    "owner_passes": ("Passes over due rows.", lambda one: one.passes),
    "owner_reads": ("Reads of the next deadline.", lambda one: one.reads),
    "owner_rows": ("Rows settled.", lambda one: one.rows_done),
    "owner_failures": ("Passes, rows and reads that failed.", lambda one: one.failures),
    "owner_signals": ("Signals taken in.", lambda one: one.signals),
    "owner_signals_coalesced": ("Signals that changed nothing.", lambda one: one.coalesced),
}
_GAUGES: dict[str, tuple[str, Callable[[OwnerStatus], float | None]]] = {
    "owner_deadline_timestamp_seconds": (
        "The saved deadline, by the database's clock; absent when nothing is due.",
        lambda one: _seconds(one.deadline),
    ),
    "owner_retry_timestamp_seconds": (
        "When what failed is tried again; absent when nothing did.",
        lambda one: _seconds(one.retry),
    ),
    "owner_last_pass_timestamp_seconds": (
        "When the last pass began; absent before the first.",
        lambda one: _seconds(one.last_pass),
    ),
    "owner_poison_rows": ("Rows that keep failing and are set apart.", lambda one: len(one.poison)),
    "owner_unclear_commits": (
        "Commits of which nobody knows the outcome yet.",
        lambda one: one.unclear_commits,
    ),
    "owner_running": ("1 while a pass or a read is under way.", lambda one: one.running),
}


class _Figures(Collector):
    def __init__(self, status: Sequence[OwnerStatus], awake: Sequence[Awake], statements: int) -> None:
        self._status, self._awake, self._statements = status, awake, statements

    def collect(self) -> Iterable[Metric]:
        """Every figure, by owner."""
        for name, (meaning, count) in _COUNTERS.items():
            counter = CounterMetricFamily(PREFIX + name, meaning, labels=["owner"])
            for one in self._status:
                counter.add_metric([one.name], count(one))
            yield counter
        for name, (meaning, level) in _GAUGES.items():
            gauge = GaugeMetricFamily(PREFIX + name, meaning, labels=["owner"])
            for one in self._status:
                value = level(one)
                if value is not None:
                    gauge.add_metric([one.name], value)
            yield gauge
        awake = GaugeMetricFamily(
            f"{PREFIX}awake", "Work that needs this process awake, by its sort.", labels=["reason"]
        )
        for reason in self._awake:
            awake.add_metric([reason.name], reason.count())
        yield awake
        statements = CounterMetricFamily(f"{PREFIX}statements", "Statements sent to the database.")
        statements.add_metric([], self._statements)
        yield statements


def figures(status: Sequence[OwnerStatus], awake: Sequence[Awake], statements: int) -> bytes:
    """All of them, in Prometheus' text form."""
    registry = CollectorRegistry()
    registry.register(_Figures(status, awake, statements))
    return generate_latest(registry)


def _seconds(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()
