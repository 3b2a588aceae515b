"""One collector process with 500 connections: what it holds in memory, and what a request to VRChat costs it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable

from benchmarks.fleet import CONNECTIONS, Fleet, fleet
from benchmarks.harness import RUNS, Figure

MEGABYTES = 400
CPU_MS = 5


async def run() -> list[Figure]:
    looks: list[tuple[float, int, float]] = []
    actions: list[tuple[float, int, float]] = []
    async with fleet() as it:
        for _ in range(RUNS):
            await it.switch("analytics")
            looks.append(await _cost(it, it.look_everywhere))
            await it.switch("membership_management")
            actions.append(await _cost(it, it.act_everywhere))
        memory = it.memory()
    return [
        Figure(
            f"memory of a collector with {CONNECTIONS} connections, MB", "HTTP", memory, at_most=MEGABYTES
        ),
        _figure("looks with analytics", looks),
        _figure("actions", actions),
    ]


async def _cost(it: Fleet, work: Callable[[], Awaitable[None]]) -> tuple[float, int, float]:
    """Milliseconds of CPU a request to VRChat while ``work`` was done, how many there were, and in which time."""
    began, cpu, requests = time.monotonic(), it.cpu(), await it.requests()
    await work()
    sent = await it.requests() - requests
    return (it.cpu() - cpu) * 1000 / sent, sent, time.monotonic() - began


def _figure(of: str, rounds: list[tuple[float, int, float]]) -> Figure:
    cost, sent, seconds = (statistics.median(column) for column in zip(*rounds, strict=True))
    note = (
        f"{sent:.0f} requests in {seconds:.0f} s for {CONNECTIONS} connections, the collector's process alone"
    )
    return Figure(f"CPU a provider request, {of}", "HTTP", cost, "ms", at_most=CPU_MS, note=note)
