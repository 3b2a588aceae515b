"""What is asked with each look and on each page costs the same however much was collected before."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from sqlalchemy import text
from tests.telemetry.conftest import people

from lastcall.telemetry import queries

PAGES_MOST = 60
"""Pages of 8 kB that one of these statements may look at; the history below fills several hundred."""
HISTORY = """
    insert into telemetry_samples
           (club_id, id, connection_id, epoch, poll_id, observed_at, member_count, population, instance_count)
    select c.club_id, gen_random_uuid(), c.id, c.epoch - interval '1 year', 'old-' || n,
           c.epoch - interval '1 hour' - n * interval '1 minute', null, 3, 1
      from connections c, generate_series(1, 20000) as n
"""
SCANS = """
    insert into audit_scans (club_id, id, connection_id, epoch, starts_at, ends_at, finished_at)
    select c.club_id, gen_random_uuid(), c.id, c.epoch - interval '1 year', at - interval '10 minutes', at, at
      from connections c, generate_series(1, 20000) as n
     cross join lateral (select c.epoch - n * interval '5 minutes' as at) as times
"""


async def pages_of(stage, statement: str, **parameters: object) -> int:
    async with stage.db.read() as tx:
        plan = await tx.scalar(text(f"explain (analyze, buffers, format json) {statement}"), parameters)
    found = plan if isinstance(plan, list) else json.loads(plan)
    top = found[0]["Plan"]
    return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])


@pytest.mark.postgres15
async def test_neither_the_last_look_nor_the_page_walks_over_an_earlier_epoch(stage):
    await stage.db.pool.execute(HISTORY)
    await stage.db.pool.execute(SCANS)
    await stage.db.pool.execute("analyze telemetry_samples")
    await stage.db.pool.execute("analyze audit_scans")
    last = "select telemetry_last_observed(club_id, id, epoch) from connections"
    await pages_of(stage, last)
    assert await pages_of(stage, last) <= PAGES_MOST
    for _ in range(2):  # before and after the first look of this epoch
        cost = await pages_of(stage, queries._COVERAGE.text, club_id=stage.site.club_id)
        assert cost <= PAGES_MOST
        await stage.sample(people(_1=5), age=timedelta(0))
