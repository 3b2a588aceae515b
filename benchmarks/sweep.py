"""A backlog of overdue items, half of them join requests and half approvals, each archived in a transaction of its own,
log and notes included, against pgbench's one-row update; and what the process's memory does meanwhile."""

from __future__ import annotations

import resource
import sys
import time
from datetime import timedelta

from benchmarks.harness import RUNS, Figure, database, medians, one_row_table, one_row_update, server
from benchmarks.world import add_approvals, add_clubs, add_join_requests, loader
from lastcall.db.database import Database
from lastcall.deadlines.owner import Done, More, Stop
from lastcall.decisions.retention.kinds import KINDS
from lastcall.decisions.retention.sweep import retention_owner

ROWS = 100_000
CLUBS = 10
AT_LEAST = 0.3
BASELINE_SECONDS = 3.0
WARM = 10_000
"""Rows after which memory is what it is to stay."""
GROWTH_AT_MOST = 20.0  # MB
ADD = {"join_request": add_join_requests, "approval": add_approvals}


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
    growth = _peak_memory() - sweep.warm
    return [
        Figure("sweep of overdue rows", "service", ratio, at_least=AT_LEAST, note=note),
        Figure(
            "memory growth of the sweep",
            "service",
            growth,
            unit="MB",
            at_most=GROWTH_AT_MOST,
            note=f"from row {WARM:,} to row {ROWS:,}",
        ),
    ]


async def _add_overdue(db: Database) -> None:
    await add_clubs(db, CLUBS)
    share = ROWS // CLUBS // len(KINDS)
    async with loader(db) as connection:
        for kind in KINDS:
            for club in range(CLUBS):
                await ADD[kind](
                    connection, 1 + club, 1 + club * share, share, activity_ago=timedelta(days=91)
                )


def _peak_memory() -> float:
    """The most that this process has held so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


class _Sweep:
    """One cycle of each kind over the whole backlog, in as many stretches as there are runs, with a baseline after
    each. The kinds take turns, as the scheduler gives them."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._owners = [retention_owner(db, kind) for kind in KINDS.values()]
        self._done = 0
        self.warm = _peak_memory()

    async def stretch(self) -> float:
        """Rows a second over the next share of the backlog, one pass after the other as the scheduler runs them."""
        goal = self._done + ROWS // RUNS
        began, start = time.perf_counter(), self._done
        while self._done < goal:
            for owner in self._owners:
                result = await owner.run_pass(Stop())
                match result:
                    case More(done):
                        self._done += done
                    case ended:
                        raise RuntimeError(f"The cycle ended after {self._done} rows of {ROWS}: {ended}.")
            if self._done <= WARM:
                self.warm = _peak_memory()
        return (self._done - start) / (time.perf_counter() - began)

    async def check(self) -> None:
        """Every row is archived, and no cycle finds anything more."""
        ends = [await owner.run_pass(Stop()) for owner in self._owners]
        archived = await self._db.pool.fetchval(
            "select count(*) from retention where archived_reason = 'idle'"
        )
        if ends != [Done(0)] * len(ends) or archived != ROWS:
            raise RuntimeError(f"{archived} rows of {ROWS} were archived; the cycles ended with {ends}.")
