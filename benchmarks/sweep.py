"""A backlog of overdue join requests, each archived in a transaction of its own, against pgbench's one-row update."""

from __future__ import annotations

import time
from datetime import timedelta

from benchmarks.harness import RUNS, Figure, database, medians, one_row_table, one_row_update, server
from benchmarks.world import add_clubs, add_join_requests, loader
from lastcall.db.database import Database
from lastcall.deadlines.owner import Done, More, Stop
from lastcall.decisions.retention.kinds.join_request import JOIN_REQUEST
from lastcall.decisions.retention.sweep import retention_owner

ROWS = 20_000
CLUBS = 10
AT_LEAST = 0.3
BASELINE_SECONDS = 3.0


async def run() -> list[Figure]:
    async with server() as on, database(on) as db:
        await _add_overdue(db)
        await one_row_table(db)
        sweep = _Sweep(db)

        async def baseline() -> float:
            return await on.pgbench(one_row_update(), clients=1, seconds=BASELINE_SECONDS)

        rows, commits, ratio = await medians(sweep.stretch, baseline)
        await sweep.check()
    note = f"{rows:,.0f} rows/s of {ROWS:,} against {commits:,.0f} commits/s of one pgbench client"
    return [Figure("sweep of overdue rows", "service", ratio, at_least=AT_LEAST, note=note)]


async def _add_overdue(db: Database) -> None:
    await add_clubs(db, CLUBS)
    share = ROWS // CLUBS
    async with loader(db) as connection:
        for club in range(CLUBS):
            await add_join_requests(
                connection, 1 + club, 1 + club * share, share, activity_ago=timedelta(days=91)
            )


class _Sweep:
    """One cycle over the whole backlog, run in as many stretches as there are runs, with a baseline after each."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._owner = retention_owner(db, JOIN_REQUEST)
        self._done = 0

    async def stretch(self) -> float:
        """Rows a second over the next share of the backlog, one pass after the other as the scheduler runs them."""
        goal = self._done + ROWS // RUNS
        began, start = time.perf_counter(), self._done
        while self._done < goal:
            result = await self._owner.run_pass(Stop())
            match result:
                case More(done):
                    self._done += done
                case ended:
                    raise RuntimeError(f"The cycle ended after {self._done} rows of {ROWS}: {ended}.")
        return (self._done - start) / (time.perf_counter() - began)

    async def check(self) -> None:
        """Every row is archived, and the cycle finds nothing more."""
        end = await self._owner.run_pass(Stop())
        archived = await self._db.pool.fetchval(
            "select count(*) from retention where archived_reason = 'idle'"
        )
        if end != Done(0) or archived != ROWS:
            raise RuntimeError(f"{archived} rows of {ROWS} were archived; the cycle ended with {end}.")
