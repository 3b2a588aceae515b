"""The figures for Prometheus, on a port of loopback: read from the tallies when somebody asks for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import structlog
from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from lastcall.collector.account import Account
from lastcall.errors import Unavailable

_log = structlog.get_logger("lastcall.collector")

LOOPBACK = "127.0.0.1"
PREFIX = "lastcall_collector_"


class _Figures(Collector):
    """What the accounts did. It is asked in a thread of its own, and only reads."""

    def __init__(self, accounts: Sequence[Account]) -> None:
        self._accounts = accounts

    def collect(self) -> Iterable[Metric]:
        """Every figure, by account."""
        running = GaugeMetricFamily(f"{PREFIX}passes_running", "Passes under way.", labels=["account"])
        may_ask = GaugeMetricFamily(
            f"{PREFIX}may_ask", "1 while nothing keeps the account from asking VRChat.", labels=["account"]
        )
        plain = {
            name: CounterMetricFamily(f"{PREFIX}{name}", meaning, labels=["account"])
            for name, meaning in _PLAIN.items()
        }
        parted = {
            name: CounterMetricFamily(f"{PREFIX}{name}", meaning, labels=["account", label])
            for name, (meaning, label) in _PARTED.items()
        }
        for account in self._accounts:
            tally = account.tally
            running.add_metric([account.name], tally.running)
            may_ask.add_metric([account.name], account.fault is None)
            plain["requests"].add_metric([account.name], account.windows.account.total)
            plain["passes"].add_metric([account.name], tally.passes)
            plain["samples"].add_metric([account.name], tally.samples)
            plain["audit_pages"].add_metric([account.name], tally.audit_pages)
            counters = {"operations": tally.operations, "reads": tally.reads, "faults": tally.faults}
            for name, counter in counters.items():
                for value, count in list(counter.items()):
                    parted[name].add_metric([account.name, value], count)
        return [running, may_ask, *plain.values(), *parted.values()]


_PLAIN = {
    "requests": "Requests sent to VRChat.",
    "passes": "Passes over a connection.",
    "samples": "Aggregates handed in.",
    "audit_pages": "Pages of audit logs handed in.",
}
_PARTED = {
    "operations": ("Operations by how they left the collector.", "outcome"),
    "reads": ("Reads for somebody at a screen.", "outcome"),
    "faults": ("Failures that the server was told of.", "code"),
}


@contextlib.contextmanager
def serve_metrics(port: int | None, accounts: Sequence[Account]) -> Iterator[None]:
    """Serve them while the process runs; nothing without a port. Raises ``Unavailable`` for one that is taken."""
    if port is None:
        yield
        return
    registry = CollectorRegistry()
    registry.register(_Figures(accounts))
    ProcessCollector(registry=registry)
    try:
        server, thread = start_http_server(port, LOOPBACK, registry)
    except OSError as error:
        raise Unavailable(
            "metrics_port",
            f"The figures cannot be shown on port {port}: {error.strerror}.",
            advice="Set LASTCALL_METRICS_PORT to a free port, or leave it out.",
        ) from error
    _log.info("metrics", url=f"http://{LOOPBACK}:{server.server_port}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
