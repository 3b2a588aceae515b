"""Claiming beside a crowd that may not run yet: a hundred thousand deferred and a million future rows of the same
connection, against a connection that has only what may run."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg

from benchmarks.harness import LARGE, RUNS, Figure, Server, alternating, create, database, server
from benchmarks.world import Connected, add_clubs, add_operations, loader
from lastcall.db.connect import connect
from lastcall.db.database import Database
from lastcall.operations.services.worker import ANY_LANE_EVERY

DEFERRED, FUTURE = 100_000, 1_000_000
AT_MOST = 1.3
CALLS = 100

_CLAIM = "select * from claim_operation($1, $2, $3, $4, $5, $6, $7, $8, $9)"


async def run() -> list[Figure]:
    async with server(settings=LARGE) as on:
        async with database(on, "empty") as db:
            connected = (await add_clubs(db, 1))[0]
            async with loader(db) as connection:
                await add_operations(connection, 1, 1, 2 * RUNS * CALLS, due_in=-timedelta(minutes=2))
        await _crowd(on)
        crowded = await connect(on.url_of("crowded"))
        alone = await connect(on.url_of("empty"))
        try:
            ratio, here, there = await alternating(
                await _claimer(crowded, connected), await _claimer(alone, connected), CALLS
            )
        finally:
            await crowded.close()
            await alone.close()
    note = f"{here * 1e6:.0f} µs against {there * 1e6:.0f} µs, commits not waited for"
    name = f"claim beside {DEFERRED:,} deferred and {FUTURE:,} future"
    return [Figure(name, "SQL", ratio, at_most=AT_MOST, note=note)]


async def _crowd(on: Server) -> None:
    await create(on, "crowded", "empty")
    db = await Database.open(on.url_of("crowded"))
    try:
        async with loader(db) as connection:
            await add_operations(
                connection,
                *(1, 1_000_000, DEFERRED),
                due_in=-timedelta(minutes=2),
                deferred_for=timedelta(minutes=12),
            )
            await add_operations(connection, 1, 2_000_000, FUTURE, due_in=timedelta(days=1))
    finally:
        await db.close()


async def _claimer(
    connection: asyncpg.Connection[asyncpg.Record], connected: Connected
) -> Callable[[], Awaitable[None]]:
    """A call that claims the next row as a worker would."""
    await connection.execute("set synchronous_commit = off")
    claim = await connection.prepare(_CLAIM)
    worker, lease = connected.worker, connected.lease
    asked = (
        *(worker.account_id, worker.generation, worker.worker_id, connected.journal_id),
        *(lease.club_id, lease.connection_id, lease.epoch, lease.fencing_token),
    )
    numbers = itertools.count()

    async def call() -> None:
        row = await claim.fetchrow(*asked, next(numbers) % ANY_LANE_EVERY == ANY_LANE_EVERY - 1)
        if row is None or row["outcome"] != "claimed":
            raise RuntimeError(f"nothing was claimed: {row}")

    return call
