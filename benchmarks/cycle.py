"""The whole way of an operation through the services: claim, authorize, complete. Three commits each, so pgbench's
one-row commits divided by three are what the server could do at best."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from datetime import timedelta

from benchmarks.harness import Figure, database, medians, one_row_table, one_row_update, server
from benchmarks.world import Connected, add_clubs, add_operations, loader
from lastcall.db.database import Database
from lastcall.operations.services.worker import ClaimHeld, WorkerSteps
from lastcall.protocol.outcomes import Outcome

WORKERS, CLUBS = 8, 40
COMMITS = 3
AT_LEAST = 0.25
OPERATIONS = 100
"""Of each club in each run."""
BASELINE_SECONDS = 3.0
RESULT = {"memberStatus": "member"}


async def run() -> list[Figure]:
    async with server() as on, database(on) as db:
        clubs = await add_clubs(db, CLUBS, accounts=WORKERS)
        await one_row_table(db)
        steps = WorkerSteps(db)
        runs = itertools.count()

        async def cycles() -> float:
            await _enqueue(db, next(runs))
            return await _drain(db, steps, clubs)

        async def baseline() -> float:
            return await on.pgbench(one_row_update(), clients=WORKERS, seconds=BASELINE_SECONDS) / COMMITS

        done, commits, ratio = await medians(cycles, baseline)
    note = f"{done:,.0f} cycles/s of {WORKERS} workers in {CLUBS} clubs against {commits * COMMITS:,.0f} commits/s ÷ 3"
    return [Figure("claim → authorize → complete", "service", ratio, at_least=AT_LEAST, note=note)]


async def _enqueue(db: Database, run: int) -> None:
    async with loader(db) as connection:
        for club in range(1, CLUBS + 1):
            first = OPERATIONS * (1 + run * CLUBS + club)
            await add_operations(connection, club, first, OPERATIONS, due_in=-timedelta(minutes=2))


async def _drain(db: Database, steps: WorkerSteps, clubs: Sequence[Connected]) -> float:
    """Cycles a second until every club's operations have succeeded."""
    before = await _succeeded(db)
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(WORKERS):
            group.create_task(_work(steps, clubs[number::WORKERS]))
    took = time.perf_counter() - began
    done = await _succeeded(db) - before
    if done != CLUBS * OPERATIONS:
        raise RuntimeError(f"{done} operations of {CLUBS * OPERATIONS} succeeded")
    return done / took


async def _work(steps: WorkerSteps, clubs: Sequence[Connected]) -> None:
    """One worker: its clubs in turn, one operation each, until none is left."""
    left = list(clubs)
    while left:
        left = [club for club in left if await _one(steps, club)]


async def _one(steps: WorkerSteps, club: Connected) -> bool:
    claimed = await steps.claim(club.worker, club.lease, club.journal_id)
    if claimed is None:
        return False
    lease = club.lease
    held = ClaimHeld(
        *(lease.club_id, lease.connection_id, lease.epoch, lease.fencing_token),
        operation_id=claimed.operation_id,
        nonce=claimed.nonce,
    )
    verdict = await steps.authorize(club.worker, held, claimed.kind, club.evidence)
    if not verdict.is_authorized:
        raise RuntimeError(f"not authorized: {verdict.code}")
    await steps.complete(club.worker, held, Outcome.SUCCEEDED, result=RESULT)
    return True


async def _succeeded(db: Database) -> int:
    count: int = await db.pool.fetchval("select count(*) from operations where state = 'succeeded'")
    return count
