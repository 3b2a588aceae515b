"""How late a deadline is met: join requests two seconds from their archive, through service, signal, scheduler
and sweep, judged by the database's clock."""

from __future__ import annotations

import asyncio
import statistics
from datetime import datetime, timedelta
from uuid import UUID

from benchmarks.harness import RUNS, Figure, database, server
from benchmarks.world import CLUB, INVITE, OWNER, PERSON, add_clubs, row_id
from lastcall.access.requests import AgentSubject, record_join_request
from lastcall.db.database import Database
from lastcall.deadlines.scheduler import Scheduler
from lastcall.decisions.registration import register
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.decisions.retention.sweep import retention_owner
from lastcall.testing.waiting import eventually

COUNT = 50
AHEAD = timedelta(seconds=2)
RETENTION = timedelta(days=90)
MEDIAN_MS, WORST_MS = 50.0, 250.0
PATIENCE = 30.0

_NOW = "select lastcall_now()"
_LATENESS = """
    select extract(epoch from r.archived_at - (j.activity_at + interval '2160 hours')) * 1000 as late
      from join_requests j
      left join retention r on r.club_id = j.club_id and r.join_request_id = j.id
     where j.id = any ($1)
"""


async def run() -> list[Figure]:
    register()
    async with server() as on, database(on) as db:
        await add_clubs(db, 1)
        scheduler = Scheduler(db, [retention_owner(db, JOIN_REQUEST)])
        await scheduler.start()
        try:
            late = [await _fifty(db, 1 + run * COUNT) for run in range(RUNS)]
        finally:
            await scheduler.stop()
    early = sum(each < 0 for one in late for each in one)
    median = statistics.median(statistics.median(one) for one in late)
    worst = max(max(one) for one in late)
    note = f"{RUNS} runs of {COUNT} join requests, {AHEAD.seconds} s ahead"
    return [
        Figure("deadlines met early", "service", early, at_most=0, note=note),
        Figure("deadline met late, median", "service", median, "ms", at_most=MEDIAN_MS, note=note),
        Figure("deadline met late, worst", "service", worst, "ms", at_most=WORST_MS, note=note),
    ]


async def _fifty(db: Database, first: int) -> list[float]:
    """Milliseconds by which each was late, for requests made one after the other and due two seconds on."""
    club = row_id(CLUB, 1)
    await db.pool.execute(
        f"""
        insert into invites (club_id, id, token_hash, invited_by, expires_at)
        select $1, row_id({INVITE}, n), sha256(uuid_send(gen_random_uuid())), row_id({PERSON}, {OWNER}),
               lastcall_now() + interval '1 day'
          from generate_series($2::bigint, $2::bigint + {COUNT} - 1) as n
        """,
        club,
        first,
    )
    made: list[UUID] = []
    for number in range(first, first + COUNT):
        now: datetime = await db.pool.fetchval(_NOW)
        guest = AgentSubject(f"guest {number}")
        invite = row_id(INVITE, number)
        made.append(await record_join_request(db, club, invite, guest, activity_at=now + AHEAD - RETENTION))

    async def late() -> list[float] | None:
        found = [row["late"] for row in await db.pool.fetch(_LATENESS, made)]
        return None if None in found else [float(each) for each in found]

    # Asked only when all should be over, to leave the machine to what is measured.
    await asyncio.sleep(AHEAD.total_seconds())
    measured: list[float] = await eventually(late, within=PATIENCE)
    return measured
