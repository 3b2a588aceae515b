"""A moved event that fifty thousand operations follow: how fast they are gone through, in how long transactions, and
what that does to a worker that claims from the same connection meanwhile."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass
from datetime import timedelta

from benchmarks.harness import RUNS, Figure, Server, database, one_row_table, one_row_update, server
from benchmarks.world import OWNER, PERSON, Connected, add_clubs, add_operations, loader, row_id
from lastcall.db.database import Database
from lastcall.deadlines.owner import PAGE
from lastcall.events.fields import EventFields
from lastcall.events.queries import EventView
from lastcall.events.services.write import create_event, edit_event
from lastcall.events.times import Timed
from lastcall.operations.listeners import register
from lastcall.operations.owners.fanout import Fanouts
from lastcall.operations.services.worker import WorkerSteps
from lastcall.people.actor import Actor

FOLLOWERS = 50_000
CLAIMS = 1_000
"""Measured before each move, and at most so many while it is gone through."""
PACE = 0.004
"""Seconds from the end of one claim to the next: far more than a collector makes."""
RATE_AT_LEAST, LONGEST_MS, CLAIM_AT_MOST = 1.0, 100.0, 2.0
BASELINE_SECONDS = 3.0

_FOLLOW = """
with followers as (
    select o.id, e.id as event_id, e.starts_at,
           round(extract(epoch from o.due_at - e.starts_at) * 1000)::bigint as offset_ms
      from operations o join events e on e.club_id = o.club_id)
update operations o
   set event_id = f.event_id, event_cancel_generation = 0, event_tba_generation = 0,
       schedule_kind = 'event_relative', offset_ms = f.offset_ms,
       due_at = event_due(f.starts_at, f.offset_ms), ready_at = event_due(f.starts_at, f.offset_ms)
  from followers f
 where f.id = o.id
"""
_UNMOVED = "select count(*) from operations where event_id is not null and due_at <> event_due($1, offset_ms)"


@dataclass(frozen=True)
class Run:
    """What one move cost. Times in milliseconds."""

    rows_a_second: float
    commits_a_second: float
    longest: float
    claim_before: float
    claim_meanwhile: float


async def run() -> list[Figure]:
    register()
    async with server() as on, database(on) as db:
        connected = (await add_clubs(db, 1))[0]
        await one_row_table(db)
        event = await _followed_event(db, connected)
        runs = [await _one_run(on, db, connected, event, number) for number in range(RUNS)]
    rate = statistics.median(each.rows_a_second / each.commits_a_second for each in runs)
    claim = statistics.median(each.claim_meanwhile / each.claim_before for each in runs)
    rows, commits = (
        statistics.median(getattr(each, name) for each in runs)
        for name in ("rows_a_second", "commits_a_second")
    )
    before, meanwhile = (
        statistics.median(getattr(each, name) for each in runs)
        for name in ("claim_before", "claim_meanwhile")
    )
    name = f"moved event, {FOLLOWERS:,} followers"
    return [
        Figure(
            f"{name}: rows",
            "service",
            rate,
            at_least=RATE_AT_LEAST,
            note=f"{rows:,.0f} rows/s against {commits:,.0f} commits/s of one pgbench client",
        ),
        Figure(
            f"{name}: longest transaction",
            "service",
            statistics.median(each.longest for each in runs),
            "ms",
            at_most=LONGEST_MS,
            note=f"of {FOLLOWERS // PAGE} in each of {RUNS}; the worst {max(each.longest for each in runs):.0f} ms",
        ),
        Figure(
            f"{name}: claim meanwhile, 95th of 100",
            "service",
            claim,
            at_most=CLAIM_AT_MOST,
            note=f"{meanwhile:.1f} ms against {before:.1f} ms before",
        ),
    ]


async def _followed_event(db: Database, connected: Connected) -> EventView:
    start = await db.pool.fetchval("select date_trunc('second', lastcall_now()) + interval '1 day'")
    event = await create_event(
        db, _owner(), connected.lease.club_id, EventFields("Evening", Timed(start), "Europe/Berlin")
    )
    async with loader(db) as connection:
        await add_operations(connection, 1, 1_000_000, FOLLOWERS, due_in=timedelta(days=1))
        await connection.execute(_FOLLOW)
    async with loader(db) as connection:
        await add_operations(connection, 1, 1, 2 * RUNS * CLAIMS, due_in=-timedelta(minutes=1))
    return event


def _owner() -> Actor:
    return Actor(row_id(PERSON, OWNER), "owner", is_operator=False)


async def _one_run(on: Server, db: Database, connected: Connected, event: EventView, number: int) -> Run:
    commits = await on.pgbench(one_row_update(), clients=1, seconds=BASELINE_SECONDS)
    steps = WorkerSteps(db)
    before = [await _claim(steps, connected) for _ in range(CLAIMS)]
    assert isinstance(event.time, Timed)
    start = event.time.starts_at + timedelta(minutes=10 * (number + 1))
    fields = EventFields(event.title, Timed(start), event.zone)
    await edit_event(db, _owner(), connected.lease.club_id, event.id, fields, event.revision + number)

    began = time.perf_counter()
    pages = asyncio.create_task(_go_through(Fanouts(db)))
    meanwhile: list[float] = []
    while not pages.done() and len(meanwhile) < CLAIMS:
        meanwhile.append(await _claim(steps, connected))
    taken = await pages
    took = time.perf_counter() - began
    left = await db.pool.fetchval(_UNMOVED, start)
    if left:
        raise RuntimeError(f"{left} operations still have their old time")
    return Run(
        rows_a_second=FOLLOWERS / took,
        commits_a_second=commits,
        longest=max(taken) * 1000,
        claim_before=_p95(before),
        claim_meanwhile=_p95(meanwhile),
    )


async def _go_through(fanouts: Fanouts) -> list[float]:
    """Seconds that each page took, its commit included."""
    taken: list[float] = []
    while (note := await fanouts.first(None)) is not None:
        began = time.perf_counter()
        await fanouts.step(note)
        taken.append(time.perf_counter() - began)
    return taken


async def _claim(steps: WorkerSteps, connected: Connected) -> float:
    await asyncio.sleep(PACE)
    began = time.perf_counter()
    claimed = await steps.claim(connected.worker, connected.lease, connected.journal_id)
    if claimed is None:
        raise RuntimeError("nothing was claimed")
    return time.perf_counter() - began


def _p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1] * 1000
