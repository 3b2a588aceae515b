"""What an idle evening costs: the whole house up, a collector waiting, a deadline ninety days off. The two minutes of
the promise are a test; this is its figure, in twenty seconds."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import timedelta
from pathlib import Path

from benchmarks.harness import Figure
from lastcall.demo.club import forgotten_request
from lastcall.demo.stage import stage
from lastcall.settings import Settings
from lastcall.testing.quiet import calls_by_statement, collector_settled

SECONDS = 20
FAR = timedelta(days=90)
MEMBERS = 40


async def run() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="lastcall-bench-") as home:
        settings = Settings(home=Path(home), port=0, simulator_port=0)
        async with stage(settings, members=MEMBERS, is_kept=False, say=lambda _: None) as running:
            await forgotten_request(running.db, running.club, FAR)
            await collector_settled(running.db)
            before = await calls_by_statement(running.db.url)
            await asyncio.sleep(SECONDS)
            after = await calls_by_statement(running.db.url)
    executed = sum(after.values()) - sum(before.values())
    note = f"{SECONDS} s with a collector waiting, by pg_stat_statements"
    return [Figure("statements while idle", "HTTP", executed, at_most=0, note=note)]
