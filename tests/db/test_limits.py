"""Limits hold exactly, over all connections at once, by the database's clock."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

import lastcall.db.limits as limits
from lastcall.db.database import Database
from lastcall.db.limits import SWEPT, Limit, source_of, take
from lastcall.errors import TooFast
from lastcall.testing.clock import TestClock
from lastcall.testing.locks import wait_until_blocked
from lastcall.testing.waiting import eventually

FIVE = Limit("five", 5, timedelta(hours=1))


async def is_taken(database: Database, limit: Limit, key: str) -> bool:
    try:
        await take(database, limit, key)
    except TooFast:
        return False
    return True


async def test_a_window_lets_its_count_through_and_says_when_it_is_over(
    database: Database, test_clock: TestClock
) -> None:
    for _ in range(5):
        await take(database, FIVE, "sam")
    await test_clock.advance(timedelta(minutes=20))
    with pytest.raises(TooFast) as refused:
        await take(database, FIVE, "sam")
    assert 39 * 60 < refused.value.retry_after <= 40 * 60
    assert refused.value.advice == "Try again in 40 minutes."
    await take(database, FIVE, "robin")
    await take(database, Limit("another", 5, timedelta(hours=1)), "sam")
    await test_clock.advance(timedelta(minutes=40))
    assert [await is_taken(database, FIVE, "sam") for _ in range(6)] == [True] * 5 + [False]


async def test_a_thousand_at_once_let_exactly_the_limit_through(database: Database) -> None:
    limit = Limit("exact", 20, timedelta(hours=1))
    answers = await asyncio.gather(*(is_taken(database, limit, "one") for _ in range(1000)))
    assert sum(answers) == 20
    assert await database.pool.fetchval("select count from rate_limits where name = 'exact'") == 20


async def test_the_last_one_is_decided_under_the_rows_lock(database: Database) -> None:
    for _ in range(4):
        await take(database, FIVE, "sam")
    async with database.transaction() as tx:
        assert await tx.raw.fetchval("select count from rate_limits for update") == 4
        both = [asyncio.create_task(is_taken(database, FIVE, "sam")) for _ in range(2)]
        await wait_until_blocked(database, "insert into rate_limits", by=tx.raw.get_server_pid())
    assert sorted(await asyncio.gather(*both)) == [False, True]


COUNT_FIRST = """
with seen as (select count from rate_limits where name = $1 and key_hash = $2), waited as (
    select pg_advisory_xact_lock_shared(1)
), taken as (
    insert into rate_limits as known (name, key_hash, ends_at, count)
    select $1, $2, lastcall_now() + $3, 1 from waited
    where coalesce((select count from seen), 0) < $4 and $5::int > 0
    on conflict (name, key_hash) do update set count = known.count + 1
    returning 1
)
select exists (select from taken) as is_taken, null::float8 as wait
"""


async def test_a_count_read_before_it_is_written_would_let_more_through(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: the condition belongs to the update that holds the row."""
    monkeypatch.setattr(limits, "_TAKE", COUNT_FIRST)
    for _ in range(4):
        await take(database, FIVE, "sam")
    async with database.transaction() as tx:
        await tx.raw.execute("select pg_advisory_xact_lock(1)")
        both = [asyncio.create_task(is_taken(database, FIVE, "sam")) for _ in range(2)]
        await eventually(lambda: _waits_twice(database, tx.raw.get_server_pid()), message="both do not wait")
    assert await asyncio.gather(*both) == [True, True]


async def _waits_twice(database: Database, holder: int) -> bool:
    blocked = "select count(*) from pg_stat_activity where $1 = any (pg_blocking_pids(pid))"
    return await database.pool.fetchval(blocked, holder) == 2


async def test_a_refused_attempt_is_one_statement_and_prolongs_nothing(database: Database) -> None:
    for _ in range(5):
        await take(database, FIVE, "sam")
    before = await database.pool.fetchrow("select * from rate_limits")
    sent = database.statements
    assert not any([await is_taken(database, FIVE, "sam") for _ in range(10)])
    assert database.statements - sent == 10
    assert await database.pool.fetchrow("select * from rate_limits") == before


async def test_a_rollback_of_the_caller_gives_nothing_back(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.transaction():
            await take(database, FIVE, "sam")
            _ = 1 / 0
    assert await database.pool.fetchval("select count from rate_limits") == 1


async def test_windows_that_are_over_go_away_a_few_at_a_time(
    database: Database, test_clock: TestClock
) -> None:
    for number in range(3 * SWEPT):
        await take(database, FIVE, str(number))
    await test_clock.advance(timedelta(hours=2))
    left = []
    for key in ("a", "b", "c"):
        await take(database, FIVE, key)
        left.append(await database.pool.fetchval("select count(*) from rate_limits"))
    assert left == [2 * SWEPT + 1, SWEPT + 2, 3]


async def test_sweeping_waits_for_nobody(database: Database, test_clock: TestClock) -> None:
    """Two attempts that each hold what the other sweeps would wait for each other for ever."""
    await take(database, FIVE, "old")
    await test_clock.advance(timedelta(hours=2))
    async with database.transaction() as tx:
        await tx.raw.fetch("select from rate_limits for update")
        async with asyncio.timeout(3):
            await take(database, FIVE, "new")
    assert await database.pool.fetchval("select count(*) from rate_limits") == 2


async def test_what_was_limited_cannot_be_read_out_of_the_database(database: Database) -> None:
    await take(database, FIVE, "sam@example.org")
    stored = await database.pool.fetchval("select t::text from rate_limits t")
    assert "sam" not in stored
    assert b"sam".hex() not in stored


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("unknown", "unknown"),
    ],
)
def test_a_source_is_an_address_or_a_network_of_ipv6(address: str, source: str) -> None:
    assert source_of(address) == source
