"""The kit tells the truth: its clock is the database's, its waits see locks, its quiet hears all."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from lastcall.db.connect import connect
from lastcall.db.database import Database
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.quiet import assert_quiet
from lastcall.testing.waiting import eventually

NEW_YEAR = datetime(2030, 1, 1, tzinfo=UTC)


async def test_the_clock_starts_as_the_real_one(test_clock: TestClock) -> None:
    assert abs(await test_clock.now() - datetime.now(UTC)) < timedelta(seconds=5)


async def test_a_frozen_clock_stands_and_advances_as_told(database: Database, test_clock: TestClock) -> None:
    assert await test_clock.freeze(NEW_YEAR) == NEW_YEAR
    await test_clock.advance(timedelta(days=30, microseconds=1))
    moment = await database.pool.fetchval("select lastcall_now()")
    assert moment == NEW_YEAR + timedelta(days=30, microseconds=1)


async def test_the_clock_runs_at_any_rate_and_does_not_jump_when_that_changes(test_clock: TestClock) -> None:
    await test_clock.freeze(NEW_YEAR)
    await test_clock.run_at(3600)
    assert await test_clock.now() - NEW_YEAR < timedelta(hours=2)

    async def an_hour_passed() -> bool:
        return await test_clock.now() > NEW_YEAR + timedelta(hours=1)

    await eventually(an_hour_passed)


async def test_an_open_transaction_sees_the_clock_move(database: Database, test_clock: TestClock) -> None:
    await test_clock.freeze(NEW_YEAR)
    async with database.transaction() as tx:
        assert await tx.raw.fetchval("select lastcall_now()") == NEW_YEAR
        await test_clock.advance(timedelta(minutes=1))
        assert await tx.raw.fetchval("select lastcall_now()") == NEW_YEAR + timedelta(minutes=1)


async def test_quiet_hears_this_process(database: Database) -> None:
    async with assert_quiet(database, 0.1):
        pass
    with pytest.raises(AssertionError, match=r"pg_backend_pid"):
        async with assert_quiet(database, 0.1):
            await database.pool.fetchval("select pg_backend_pid()")


async def test_quiet_hears_another_process(database: Database, database_url: str) -> None:
    other = await connect(database_url)
    with pytest.raises(AssertionError, match=r"statements in 0.1 quiet seconds: .*version"):
        async with assert_quiet(database, 0.1):
            await other.fetchval("select version()")
    await other.close()


@pytest.mark.postgres15
async def test_a_lock_wait_is_seen_with_the_one_it_waits_for(database: Database) -> None:
    async def wait() -> None:
        async with database.transaction() as tx:
            await tx.raw.execute("lock table directory /* second */")

    async with database.transaction() as first:
        await first.raw.execute("lock table directory")
        with pytest.raises(AssertionError, match="nothing waits"):
            await wait_until_blocked(database, "second", within=0.05)
        waiting = asyncio.create_task(wait())
        pid = await wait_until_blocked(database, "second", by=first.raw.get_server_pid())
        assert await wait_until_blocked(database, pid) == pid
        with pytest.raises(AssertionError, match="nothing waits"):
            await wait_until_blocked(database, pid, by=pid, within=0.05)
    await waiting


async def test_eventually_says_what_it_saw_last() -> None:
    values = iter([None, 0, "there"])
    assert await eventually(lambda: next(values)) == "there"
    with pytest.raises(AssertionError, match="last value: 0"):
        await eventually(lambda: 0, within=0.02)
