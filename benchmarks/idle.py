"""What an idle evening costs the database: the whole house up and a collector that waits, for twenty seconds; an hour
of 500 connections without analytics, on a clock that runs fast; and one look of a group whose people are counted."""

from __future__ import annotations

import asyncio
import re
import statistics
import tempfile
from datetime import timedelta
from pathlib import Path

from benchmarks.fleet import CONNECTIONS, ROOT, fleet
from benchmarks.harness import RUNS, Figure
from lastcall.demo.club import forgotten_request
from lastcall.demo.stage import stage
from lastcall.protocol.constants import ACTIVE_LOOK, QUIET_LOOK
from lastcall.settings import Settings
from lastcall.testing.quiet import calls_by_statement, collector_settled

SECONDS = 20
FAR = timedelta(days=90)
MEMBERS = 40
HOUR = timedelta(hours=1)
RATE = 120
"""How many times as fast as the host's the clock of the idle hour runs."""
STATED = ROOT / "docs" / "explanation" / "telemetry.md"


async def run() -> list[Figure]:
    return [await _evening(), *await _hour(), *await _looks()]


async def _evening() -> Figure:
    with tempfile.TemporaryDirectory(prefix="lastcall-bench-") as home:
        settings = Settings(home=Path(home), port=0, simulator_port=0)
        async with stage(settings, members=MEMBERS, is_kept=False, say=lambda _: None) as running:
            await forgotten_request(running.db, running.club, FAR)
            await collector_settled(running.db)
            before = await _executed(running.db.url)
            await asyncio.sleep(SECONDS)
            executed = await _executed(running.db.url) - before
    note = f"{SECONDS} s with a collector waiting, by pg_stat_statements"
    return Figure("statements while idle", "HTTP", executed, at_most=0, note=note)


async def _hour() -> list[Figure]:
    """By two witnesses: what the server executed in that database, and what this process sent there."""
    async with fleet(RATE) as it:
        await collector_settled(it.db)
        asked = await it.requests()
        before, sent = await _executed(it.db.url), it.db.statements
        await asyncio.sleep(HOUR.total_seconds() / RATE)
        own, executed = it.db.statements - sent, await _executed(it.db.url) - before
        kept = await it.requests() - asked
    name = f"statements in an idle hour of {CONNECTIONS} connections without analytics"
    note = f"a clock {RATE} times as fast; sessions kept alive {kept} times meanwhile"
    return [
        Figure(name, "HTTP", executed, at_most=0, note=f"by pg_stat_statements; {note}"),
        Figure(name, "HTTP", own, at_most=0, note="by the server's own counter"),
    ]


async def _looks() -> list[Figure]:
    """Everything that the server sends while every group is looked at once, a count of its people. The looks that the
    allowance left no room for cost something too."""
    stated = _stated()
    async with fleet() as it:
        await it.switch("analytics")
        await it.look_everywhere()  # the first one reads the audit log from its beginning
        seen = []
        for _ in range(RUNS):
            before, counted = it.db.statements, await it.counts()
            await it.look_everywhere()
            seen.append((it.db.statements - before) / (await it.counts() - counted))
    each = statistics.median(seen)
    hour = ", ".join(
        f"{stated * HOUR / least:,.0f} for {which}"
        for which, (least, _) in (("a quiet group", QUIET_LOOK), ("one with people in it", ACTIVE_LOOK))
    )
    note = f"the stated constant is {stated} a look, so at most {hour} an hour"
    return [Figure("statements of a look with analytics", "HTTP", each, at_most=stated, note=note)]


def _stated() -> int:
    """The constant that the documentation states."""
    found = re.search(r"stated constant is \*\*(\d+)\s+statements a look\*\*", STATED.read_text())
    if found is None:
        raise RuntimeError(f"{STATED} states no constant")
    return int(found[1])


async def _executed(url: str) -> int:
    return sum((await calls_by_statement(url)).values())
